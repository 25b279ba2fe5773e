//! How flows of whole profiles end: all complete on a clean link; on a bad one each ends in one way, and
//! the bytes that are sent and delivered can be compared.

use allosaur_server::sim::stateful::{
    Fault, FaultShare, Outcome, Plan, SimSettings, compile, simulate,
};
use allosaur_testkit::data;
use serde_json::{Value, json};

/// The ways in which flows end.
const ENDS: [&str; 7] = [
    "completed",
    "reset",
    "closed_early",
    "timed_out",
    "refused",
    "cut_off",
    "aborted",
];

/// All profiles that were recorded of TRex, with their names.
fn recorded() -> Vec<(String, String)> {
    let paths = data::files("profiles-stateful", ".json");
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("it is there");
        (path.display().to_string(), text)
    };
    paths.into_iter().map(read).collect()
}

fn run(text: &str, settings: SimSettings, ipv6: bool) -> Outcome {
    let plan = Plan {
        flows: Some(5),
        ipv6,
        ..Plan::basic(settings)
    };
    let prepared = compile(text, &plan).expect("it is right");
    simulate(&prepared, &plan, ())
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().expect("a count")
}

/// Flows that began, and those that ended in any way.
fn sums(outcome: &Outcome) -> [(u64, u64); 2] {
    let sides = [("client", &outcome.client), ("server", &outcome.server)];
    sides.map(|(name, side)| {
        let ends = ENDS.iter().map(|end| number(&outcome.outcomes[name], end));
        (side.flows, ends.sum())
    })
}

#[test]
fn all_flows_of_recorded_profiles_complete_on_a_clean_link() {
    for (name, text) in recorded() {
        for ipv6 in [false, true] {
            let settings = SimSettings::perfect(1, 1_000_000);
            let outcome = run(&text, settings, ipv6);
            for side in ["client", "server"] {
                let told = &outcome.outcomes[side];
                let others = ENDS[1..].iter().map(|end| number(told, end));
                assert_eq!(others.sum::<u64>(), 0, "{name} {side}: {told}");
                assert_eq!(number(told, "unanswered"), 0, "{name} {side}");
                assert!(number(told, "completed") > 0, "{name} {side}");
            }
            assert!(sums(&outcome).iter().all(|(begun, ended)| begun == ended));
            let bytes = [
                (outcome.client.sent_bytes, outcome.server.received_bytes),
                (outcome.server.sent_bytes, outcome.client.received_bytes),
            ];
            assert!(bytes.iter().all(|(sent, got)| sent == got), "{name}");
        }
    }
}

#[test]
fn a_device_that_resets_connections_is_seen_at_both_ends() {
    let text = recorded()
        .into_iter()
        .find(|(name, _)| name.contains("http_simple_limit"));
    let (_, text) = text.expect("it was recorded");
    let mut settings = SimSettings::perfect(7, 1_000_000);
    settings.faults.push(FaultShare {
        fault: Fault::ResetMiddle,
        share: 1.0,
    });
    let outcome = run(&text, settings, false);
    for side in ["client", "server"] {
        let told = &outcome.outcomes[side];
        assert_eq!(number(told, "completed"), 0, "{side}: {told}");
        assert!(number(told, "reset") > 0, "{side}: {told}");
    }
    assert_eq!(outcome.outcomes["times"]["program"]["count"], 0);
}

#[test]
fn whatever_a_link_does_each_flow_ends_in_one_way() {
    let profiles = recorded();
    for (number, (name, text)) in profiles.iter().enumerate() {
        let seed = number as u64;
        let mut settings = SimSettings::perfect(seed, 5_000_000);
        settings.link.loss = 0.1;
        settings.link.reorder = 0.1;
        settings.link.duplicate = 0.1;
        let fault = Fault::ALL[number % Fault::COUNT];
        settings.faults.push(FaultShare { fault, share: 0.5 });
        let outcome = run(text, settings, false);
        for (begun, ended) in sums(&outcome) {
            assert_eq!(
                begun, ended,
                "{name}, seed {seed}, {fault:?}: {}",
                outcome.outcomes
            );
        }
    }
}

/// The recorded profile of a request and an answer whose client waits by this command instead.
fn with_rx(rx: &Value) -> String {
    let (_, text) = recorded()
        .into_iter()
        .find(|(name, _)| name.contains("http_simple_limit"))
        .expect("it was recorded");
    let mut profile: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut has_changed = false;
    for program in profile["program_list"].as_array_mut().expect("programs") {
        let commands = program["commands"].as_array_mut().expect("commands");
        if commands[0]["name"] == "tx" {
            commands[1] = rx.clone();
            has_changed = true;
        }
    }
    assert!(has_changed, "{profile}");
    profile.to_string()
}

#[test]
fn a_client_says_whether_it_waits_for_bytes_or_for_the_end() {
    for (rx, outcome) in [
        (json!({"name": "rx", "until_close": true}), "completed"),
        (
            json!({"name": "rx", "until_close": true, "min_bytes": 5}),
            "completed",
        ),
        (
            json!({"name": "rx", "until_close": false, "min_bytes": 5}),
            "completed",
        ),
        (
            json!({"name": "rx", "min_bytes": 1_000_000_000}),
            "closed_early",
        ),
    ] {
        let ended = run(&with_rx(&rx), SimSettings::perfect(1, 1_000_000), false);
        let told = &ended.outcomes["client"];
        assert_eq!(number(told, outcome), ended.client.flows, "{rx}: {told}");
        assert_eq!(number(told, "http_2xx"), ended.client.flows, "{rx}: {told}");
        assert_eq!(number(told, "unanswered"), 0, "{rx}: {told}");
    }
    let wrong = with_rx(&json!({"name": "rx", "until_close": "yes"}));
    let plan = Plan::basic(SimSettings::perfect(1, 1_000_000));
    let refused = compile(&wrong, &plan)
        .expect_err("it is no flag")
        .to_string();
    assert!(refused.contains("until_close"), "{refused}");
}
