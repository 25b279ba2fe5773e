//! Each fault alone: what it does to a flow that asks 300 bytes and is answered 20,000.

use allosaur_engine::time::MILLISECOND;
use allosaur_server::sim::stateful::{
    Fault, FaultShare, Outcome, Plan, SideOutcome, SimSettings, compile, simulate,
};
use serde_json::json;

const SEEDS: u64 = 20;

fn outcome(fault: Fault, share: f64, seed: u64) -> Outcome {
    let pool = |first: &str, last: &str, dir: &str| {
        json!({"ip_start": first, "ip_end": last, "distribution": "seq", "dir": dir,
            "ip_offset": "1.0.0.0"})
    };
    let profile = json!({
        "buf_list": [
            {"base": "YXNr", "size": 300, "fill": "Pw=="},
            {"base": "dG9sZA==", "size": 20_000, "fill": "ISE="},
        ],
        "ip_gen_dist_list": [
            pool("16.0.0.1", "16.0.0.9", "c"), pool("48.0.0.1", "48.0.0.9", "s"),
        ],
        "program_list": [
            {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": 20_000}]},
            {"commands": [{"name": "rx", "min_bytes": 300}, {"name": "tx", "buf_index": 1}]},
        ],
        "templates": [{
            "client_template": {"program_index": 0, "port": 80, "cps": 1, "cluster": {},
                "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}}},
            "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
        }],
        "tg_names": [],
    });
    let mut settings = SimSettings::perfect(seed, 20 * MILLISECOND);
    settings.faults = vec![FaultShare { fault, share }];
    let plan = Plan::basic(settings);
    let prepared = compile(&profile.to_string(), &plan).expect("the profile is right");
    simulate(&prepared, &plan, ())
}

fn value(side: &SideOutcome, name: &str) -> u64 {
    let mut rows = side.counters.iter();
    let row = rows.find(|row| row.name == name).expect("the row is there");
    row.value.as_u64().expect("it is a count")
}

/// Runs some seeds of a fault that all flows get, and asks `check` about each.
fn each(fault: Fault, is_ok: bool, check: impl Fn(&SideOutcome, &SideOutcome)) {
    for seed in 0..SEEDS {
        let outcome = outcome(fault, 1.0, seed);
        assert!(outcome.faults[fault.name()] > 0, "{fault}, seed {seed}");
        let problems = &outcome.verdict.problems;
        assert_eq!(
            outcome.verdict.ok, is_ok,
            "{fault}, seed {seed}: {problems:?}"
        );
        check(&outcome.client, &outcome.server);
    }
}

#[test]
fn what_is_lost_at_the_beginning_or_the_end_is_sent_again() {
    each(Fault::SynLost, true, |client, server| {
        assert_eq!(value(client, "tcps_rexmttimeo_syn"), 1);
        assert_eq!(value(server, "tcps_rexmttimeo_syn"), 0);
    });
    each(Fault::SynAckLost, true, |client, server| {
        let again = |side| value(side, "tcps_rexmttimeo_syn");
        assert!(again(client) + again(server) > 0);
    });
    each(Fault::FinLost, true, |client, server| {
        let again = |side| value(side, "tcps_rexmttimeo");
        assert!(again(client) + again(server) > 0);
    });
}

#[test]
fn resets_that_are_not_right_are_ignored() {
    for fault in [Fault::SynBlindReset, Fault::BlindReset] {
        each(fault, true, |client, server| {
            assert_eq!((client.reset, server.reset), (0, 0));
            assert_eq!(client.received_bytes, 20_000);
        });
    }
}

#[test]
fn who_is_refused_gives_up() {
    each(Fault::SynRefused, false, |client, server| {
        assert_eq!((client.given_up, server.flows), (1, 0));
    });
    each(Fault::WrongPort, false, |client, server| {
        assert_eq!((client.given_up, server.flows), (1, 0));
        assert_eq!(value(server, "err_no_template"), 1);
    });
}

#[test]
fn resets_in_the_middle_end_both_sides() {
    for fault in [Fault::ResetMiddle, Fault::ResetClient, Fault::ResetServer] {
        each(fault, false, |client, server| {
            assert_eq!((client.reset, server.reset), (1, 1), "{fault}");
            assert!(client.received_bytes < 20_000);
        });
    }
}

#[test]
fn silence_ends_both_sides_at_last() {
    each(Fault::Silence, false, |client, server| {
        assert_eq!((client.given_up, server.given_up), (1, 1));
    });
}

#[test]
fn spoiled_frames_are_dropped_and_counted() {
    let wrong = |outcome: &Outcome, names: &[&str]| {
        let sides = [&outcome.client, &outcome.server];
        let counts = sides.map(|side| names.iter().map(|name| value(side, name)).sum::<u64>());
        counts[0] + counts[1]
    };
    let mut totals = [0; 2];
    for seed in 0..SEEDS {
        let cut = outcome(Fault::Truncate, 0.05, seed);
        assert!(cut.verdict.ok, "{:?}", cut.verdict.problems);
        totals[0] += wrong(&cut, &["err_len_err", "err_no_tcp_udp"]);
        let flipped = outcome(Fault::Corrupt, 0.05, seed);
        assert!(flipped.verdict.ok, "{:?}", flipped.verdict.problems);
        totals[1] += wrong(&flipped, &["err_l3_cs", "err_l4_cs", "tcps_rcvbadsum"]);
    }
    assert!(totals.iter().all(|total| *total > SEEDS / 2), "{totals:?}");
    each(Fault::Pad, true, |client, server| {
        assert_eq!(
            value(client, "tcps_rcvduppack") + value(server, "tcps_rcvduppack"),
            0
        );
        assert_eq!(
            value(client, "tcps_sndrexmitpack") + value(server, "tcps_sndrexmitpack"),
            0
        );
    });
}

#[test]
fn a_share_of_the_flows_or_none() {
    let hit = |share| {
        let outcomes = (0..100).map(|seed| outcome(Fault::SynLost, share, seed));
        outcomes
            .filter(|outcome| !outcome.faults.is_empty())
            .count()
    };
    assert_eq!(hit(0.0), 0);
    assert!((20..45).contains(&hit(0.3)));
}
