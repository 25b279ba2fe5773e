//! Requests whose replies wait, and others that are answered meanwhile.

use crate::common::{User, World, capture, start, stream};
use allosaur_api::Request;
use allosaur_engine::time::SECOND;
use allosaur_server::control::{Action, Handled, JobResult, PendingId};
use serde_json::{Value, json};

const FILE: &str = "talk.pcap";

/// Two users, each with a port, and a capture file whose reading takes as long as the test wants.
fn world() -> (World, User, User) {
    let mut world = World::new(2);
    world.files.0.insert(FILE.to_owned(), capture(6));
    world.has_jobs_done = false;
    let ann = User::with_port(&mut world, "ann", 1);
    let mut bob = User::connect(&mut world, "bob", 2);
    bob.acquire(&mut world, 1, false).expect("it is free");
    (world, ann, bob)
}

fn push(user: &User) -> Value {
    user.params(json!({
        "pcap_filename": FILE, "ipg_usec": -1, "speedup": 1.0, "count": 1, "duration": -1,
        "is_dual": false, "slave_handler": "", "min_ipg_usec": 0,
    }))
}

/// Asks for something that waits.
fn begin(world: &mut World, method: &str, params: Value) -> PendingId {
    let Value::Object(params) = params else {
        panic!("parameters are an object");
    };
    let request = Request {
        id: json!(1),
        method: method.to_owned(),
        params,
    };
    match world.begin(&request) {
        Handled::Pending(pending) => pending,
        Handled::Replied(reply) => panic!("{method} was answered: {reply:?}"),
    }
}

fn state(world: &mut World, user: &User) -> Value {
    world.ok("get_port_status", user.params(json!({})))["state"].take()
}

fn done(world: &mut World) {
    for (job, work) in std::mem::take(&mut world.jobs) {
        let result = work.run(&world.files);
        world.hand_in(job, result);
    }
    world.drain();
}

#[test]
fn others_are_answered_while_a_file_is_read() {
    let (mut world, ann, bob) = world();
    let pending = begin(&mut world, "push_remote", push(&ann));
    world.drain();
    world.ok("ping", json!({}));
    let other = json!({"api_h": bob.api_h, "port_id": 1, "handler": bob.handlers[1],
        "stream_id": 1, "stream": stream()});
    world.ok("add_stream", other);
    assert!(world.replies.is_empty() && world.started.is_empty());
    done(&mut world);
    assert_eq!(world.replies.remove(&pending), Some(Ok(json!({}))));
    assert_eq!(world.started.len(), 1);
}

#[test]
fn counters_are_published_while_a_file_is_read() {
    let (mut world, ann, _) = world();
    let pending = begin(&mut world, "push_remote", push(&ann));
    world.drain();
    world.published.clear();
    world.pass(10 * SECOND);
    let frames = world.published.iter().filter(|frame| *frame != b"{}");
    assert_eq!(frames.count(), 20, "two a second");
    assert!(world.replies.is_empty());
    done(&mut world);
    assert_eq!(world.replies.remove(&pending), Some(Ok(json!({}))));
}

#[test]
fn a_port_for_which_a_file_is_read_does_nothing_else() {
    let (mut world, ann, _) = world();
    world.ok(
        "add_stream",
        ann.params(json!({"stream_id": 1, "stream": stream()})),
    );
    let pending = begin(&mut world, "push_remote", push(&ann));
    world.drain();
    assert_eq!(state(&mut world, &ann), "PCAP_TX");
    for (method, params) in [
        ("push_remote", push(&ann)),
        ("start_traffic", ann.params(start("raw", 1.0))),
        ("set_vlan", ann.params(json!({"vlan": [5]}))),
    ] {
        let (_, text) = world.refused(method, params);
        assert!(text.contains("cannot be executed"), "{method}: {text}");
    }
    done(&mut world);
    assert_eq!(world.replies.remove(&pending), Some(Ok(json!({}))));
    assert_eq!(world.started.len(), 1);
}

#[test]
fn a_stop_ends_the_wait_for_a_file_that_is_read() {
    let (mut world, ann, _) = world();
    let pending = begin(&mut world, "push_remote", push(&ann));
    world.drain();
    world.ok("stop_traffic", ann.params(json!({})));
    let error = world.replies.remove(&pending).expect("it was answered");
    let text = error.expect_err("it did not start").to_string();
    assert!(text.contains("stopped before"), "{text}");
    assert_eq!(state(&mut world, &ann), "IDLE");
    done(&mut world);
    assert!(world.started.is_empty() && world.control.pending() == 0);
}

#[test]
fn a_job_that_breaks_down_or_takes_too_long_is_an_error_and_the_port_is_free() {
    let (mut world, ann, _) = world();
    let pending = begin(&mut world, "push_remote", push(&ann));
    world.drain();
    let (job, _) = world.jobs.remove(0);
    world.hand_in(job, JobResult::Failed("it broke down".to_owned()));
    world.drain();
    let error = world.replies.remove(&pending).expect("it was answered");
    assert!(
        error
            .expect_err("it broke")
            .to_string()
            .contains("broke down")
    );
    assert_eq!(state(&mut world, &ann), "IDLE");
    let pending = begin(&mut world, "push_remote", push(&ann));
    world.drain();
    let until = world.control.poll_timeout().expect("nobody waits for ever");
    world.timeout(until);
    let error = world.replies.remove(&pending).expect("it was answered");
    assert!(
        error
            .expect_err("too slow")
            .to_string()
            .contains("longer than")
    );
    assert_eq!(state(&mut world, &ann), "IDLE");
    done(&mut world);
    assert!(world.started.is_empty());
}

#[test]
fn others_are_answered_while_the_receive_thread_does_not_answer() {
    let (mut world, ann, _) = world();
    world.ok("service", ann.params(json!({"enabled": true})));
    let pending = begin(&mut world, "get_rx_queue_pkts", ann.params(json!({})));
    let [question] = questions(&mut world)[..] else {
        panic!("one question was asked");
    };
    world.ok("ping", json!({}));
    world.give_up_waiting();
    let error = world.replies.remove(&pending).expect("it was answered");
    let text = error.expect_err("nobody answered").to_string();
    assert!(
        text.contains("the receive thread did not answer within 2.5 s"),
        "{text}"
    );
    // What comes later is nobody's.
    let answer = allosaur_server::rx_taps::Answer::NoTap;
    world.hear(question, answer);
    assert!(world.replies.is_empty());
}

/// The questions that control asks and that nobody answers.
fn questions(world: &mut World) -> Vec<allosaur_server::control::QuestionId> {
    let mut asked = Vec::new();
    while let Some(action) = world.control.poll_action() {
        if let Action::Ask { question, .. } = action {
            asked.push(question);
        }
    }
    asked
}

#[test]
fn what_a_request_changes_holds_at_once() {
    let (mut world, ann, _) = world();
    let params = ann.params(json!({"vlan": [5]}));
    let pending = begin(&mut world, "set_vlan", params);
    assert_eq!(questions(&mut world).len(), 1);
    let status = world.ok("get_port_status", ann.params(json!({})));
    assert_eq!(status["attr"]["vlan"]["tags"], json!([5]));
    world.give_up_waiting();
    assert!(world.replies[&pending].is_err());
}
