//! Profiles whose text is being understood, which takes long: what others may do meanwhile.

use allosaur_engine::stateful::StatefulCommand;
use allosaur_server::control::JobResult;
use allosaur_server::control::worker_command::FlowCommand;
use serde_json::{Value, json};

use super::world::{Owned, profile, start_params};

/// A server with a profile that was told to start, and whose text is being understood.
fn compiling() -> Owned {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.load("b", &profile(&["x"]));
    server.told_of();
    server.world.has_jobs_done = false;
    server.start("_", json!({}));
    assert_eq!(server.told_of(), ["60 _ 2", "50 2"]);
    server
}

fn done(server: &mut Owned) {
    for (job, work) in std::mem::take(&mut server.world.jobs) {
        let result = work.run(&server.world.files);
        server.world.hand_in(job, result);
    }
    server.world.drain();
}

#[test]
fn it_starts_when_its_text_is_understood_and_others_are_answered_meanwhile() {
    let mut server = compiling();
    server.ok("ping", json!({}));
    let params = json!({"port_id": 0});
    assert_eq!(server.ok("get_port_status", params)["state"], "ASTF_PARSE");
    assert!(server.runs().is_empty());
    done(&mut server);
    server.ok("ping", json!({}));
    assert_eq!(server.told_of(), ["60 _ 3", "50 3", "60 _ 4", "50 4"]);
    assert_eq!(server.runs().len(), 1);
}

#[test]
fn what_would_change_it_is_refused() {
    let mut server = compiling();
    let fragment = json!({"profile_id": "_", "fragment": "{}", "frag_first": true,
        "frag_last": true});
    for (method, params) in [
        ("start", start_params("_", json!({}))),
        ("profile_fragment", fragment),
        ("profile_clear", json!({"profile_id": "_"})),
    ] {
        let (_, text) = server.refused(method, params);
        assert!(
            text.contains("it starts; stop it first"),
            "{method}: {text}"
        );
    }
    done(&mut server);
    server.ok("ping", json!({}));
    assert_eq!(server.runs().len(), 1);
}

/// TRex's console does not wait until what it started runs.
#[test]
fn it_starts_with_the_multiplier_that_came_meanwhile() {
    let started = |server: &Owned| {
        let orders = server.told.iter();
        let mut factors = orders.filter_map(|(_, order)| match order {
            FlowCommand::Command(StatefulCommand::Start { factor, .. }) => Some(*factor),
            _ => None,
        });
        factors.next_back()
    };
    let mut server = compiling();
    let params = json!({"profile_id": "_", "mult": 2.5});
    assert_eq!(server.ok("update", params), Value::Null);
    let (_, text) = server.refused("update", json!({"profile_id": "_", "mult": 0}));
    assert!(text.contains("give a number above 0"), "{text}");
    done(&mut server);
    server.ok("ping", json!({}));
    assert_eq!(started(&server), Some(2.5));
    // It was meant for that start, and not for the next one.
    server.ok("stop", json!({"profile_id": "_"}));
    let run = server.newest_run();
    server.end_all(run);
    server.start("_", json!({}));
    assert_eq!(started(&server), Some(1.0));
}

#[test]
fn a_stop_ends_it_before_it_has_begun() {
    let mut server = compiling();
    assert_eq!(server.ok("stop", json!({"profile_id": "_"})), Value::Null);
    assert_eq!(server.told_of(), ["60 _ 5", "50 5", "60 _ 1", "50 1"]);
    done(&mut server);
    assert_eq!(server.told_of(), [] as [&str; 0]);
    assert!(server.runs().is_empty());
    server.world.has_jobs_done = true;
    server.start("_", json!({}));
    assert_eq!(server.told_of().last().map(String::as_str), Some("50 4"));
}

#[test]
fn two_profiles_start_one_after_the_other() {
    let mut server = compiling();
    server.start("b", json!({}));
    done(&mut server);
    let told = server.told_of();
    let of = |name: &str| {
        let mut states = told
            .iter()
            .filter(|told| told.starts_with(&format!("60 {name}")));
        states.next_back().cloned()
    };
    assert_eq!(
        (of("_"), of("b")),
        (Some("60 _ 4".into()), Some("60 b 4".into()))
    );
}

#[test]
fn a_job_that_breaks_down_is_told_as_a_profile_that_is_wrong() {
    let mut server = compiling();
    let (job, _) = server.world.jobs.remove(0);
    server
        .world
        .hand_in(job, JobResult::Failed("its job broke down".into()));
    let events = server.events();
    let error = events.iter().find_map(|(_, data)| data["error"].as_str());
    assert_eq!(error, Some("Profile parsing error: its job broke down"));
}
