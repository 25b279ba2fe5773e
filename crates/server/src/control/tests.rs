//! A domain of a few lines, which shows what the core does for each.

use allosaur_api::events::Event;
use allosaur_api::{Fields, Method, Request, ServerMethod};
use allosaur_engine::flow_stats::Tagging;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_engine::vm::Checksums;
use allosaur_nodes::namespace::NetworkNamespace;
use serde_json::{Value, json};

use super::awaited::{Awaited, Awaits};
use super::core::Core;
use super::domain::{Domain, Others};
use super::worker_command::Modes;
use super::{
    Action, BuildInfo, Control, ControlConfig, Handled, LinkOwner, PortConfig, QuestionId, Reply,
    View,
};
use crate::counters::{Counters, Snapshot};
use crate::rx_taps::{
    Answer, CaptureAnswer, CaptureRequest, Endpoint, Endpoints, NodeSocket, PacketSink, Wire,
};

/// Counts captures when it is pinged, and lets go of its count a second later.
#[derive(Debug, Default)]
struct CaptureCount {
    awaited: Awaited<CaptureCount>,
    counted: Option<usize>,
    forgets_at: Option<Nanos>,
    ticks: u64,
}

impl Awaits for CaptureCount {
    fn awaited(&mut self) -> Option<&mut Awaited<CaptureCount>> {
        Some(&mut self.awaited)
    }
}

impl Domain for CaptureCount {
    fn call(
        &mut self,
        control: &mut Core,
        _others: &mut Others<'_>,
        method: Method,
        _fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        if method != Method::Server(ServerMethod::Ping) {
            return None;
        }
        if let Some(counted) = self.counted {
            return Some(Ok(json!([counted, self.ticks])));
        }
        self.forgets_at = Some(view.now_ns + SECOND);
        let request = CaptureRequest::List;
        Some(
            self.awaited
                .ask(control, request, |counts, control, _, answer, view| {
                    if let Some(CaptureAnswer::Captures(captures)) = answer {
                        counts.counted = Some(captures.len());
                    }
                    control.queue_event(Event::PortStarted { port: 0 }, view.now_ns);
                    Ok(json!([counts.counted, counts.ticks]))
                }),
        )
    }

    fn handle_tick(&mut self, _: &mut Core, _: &mut Others<'_>, _: &View<'_>) {
        self.ticks += 1;
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.forgets_at
    }

    fn handle_timeout(&mut self, _: &mut Core, view: &View<'_>) {
        if self.forgets_at.take_if(|at| *at <= view.now_ns).is_some() {
            self.counted = None;
        }
    }
}

#[derive(Debug)]
struct NoEndpoints;

impl Endpoints for NoEndpoints {
    fn open_endpoint(&self, _: &Endpoint, _: usize) -> Result<Box<dyn PacketSink>, String> {
        Err("there are none".to_owned())
    }

    fn open_wire(&self, _: &str) -> Result<Box<dyn Wire>, String> {
        Err("there are none".to_owned())
    }

    fn open_nodes(&self, _: &NetworkNamespace) -> Result<Box<dyn NodeSocket>, String> {
        Err("there are none".to_owned())
    }
}

/// A server with one port and one more domain, before those that all have.
struct World {
    control: Control,
    snapshot: Snapshot,
    counters: Counters,
}

impl World {
    fn new() -> World {
        let mut control = Control::new(config(), 0);
        control.domains.insert(0, Box::new(CaptureCount::default()));
        World {
            control,
            snapshot: Snapshot::default(),
            counters: Counters::new(1, 1),
        }
    }

    fn at<T>(&mut self, now_ns: Nanos, act: impl FnOnce(&mut Control, &View<'_>) -> T) -> T {
        let view = View {
            now_ns,
            snapshot: &self.snapshot,
            groups: &self.counters,
            endpoints: &NoEndpoints,
            devices: &(),
        };
        act(&mut self.control, &view)
    }

    fn ask(&mut self, now_ns: Nanos, method: &str, params: Value) -> Handled {
        let request = Request {
            id: Value::Null,
            method: method.to_owned(),
            params: params.as_object().cloned().unwrap_or_default(),
        };
        self.at(now_ns, |control, view| control.handle(&request, view))
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.control.poll_action()).collect()
    }
}

fn config() -> ControlConfig {
    let port = PortConfig {
        driver: "memory".into(),
        description: "in-memory port".into(),
        interface: None,
        numa_node: None,
        line_rate_bps: 10e9,
        frame_bytes_max: 9238,
        link: LinkOwner::Server { peer: None },
        hw_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        checksums: Checksums::Complete,
        shares_inner_flows: true,
        cores: vec![0],
    };
    ControlConfig {
        ports: vec![port],
        data_cores: 1,
        modes: Modes::Stateless,
        hostname: "lab".into(),
        core_type: "test".into(),
        started: "Nov 21 2026 @ 00:02:12".into(),
        build: BuildInfo {
            version: "v0.1.0".into(),
            date: "Nov 21 2026".into(),
            time: "00:00:00".into(),
            by: "a test".into(),
        },
        marking: Tagging::Server,
        has_emulation: false,
        has_linux_stack: false,
        nodes_owner: None,
        seed: 1,
    }
}

/// Pings at that time; gives the question that it leads to.
fn ping(world: &mut World, now_ns: Nanos) -> QuestionId {
    let handled = world.ask(now_ns, "ping", json!({}));
    assert!(matches!(handled, Handled::Pending(_)), "{handled:?}");
    let actions = world.actions();
    let [Action::Ask { question, .. }] = actions[..] else {
        panic!("{actions:?}");
    };
    question
}

#[test]
fn a_domain_is_called_asks_tells_and_is_answered() {
    let mut world = World::new();
    world.at(1, |control, view| control.handle_tick(view));
    let question = ping(&mut world, 2);
    let answer = Answer::from(CaptureAnswer::Captures(Vec::new()));
    world.at(3, |control, view| {
        control.handle_answer(question, answer, view)
    });
    let actions = world.actions();
    let [Action::Reply { reply, .. }, Action::Publish(text)] = &actions[..] else {
        panic!("a reply, and then that there is an event: {actions:?}");
    };
    assert_eq!(*reply, Ok(json!([0, 1])));
    assert_eq!(text, b"{}");
    let again = world.ask(4, "ping", json!({}));
    assert!(matches!(again, Handled::Replied(Ok(_))), "{again:?}");
}

#[test]
fn its_timeout_is_one_of_controls_and_others_keep_their_commands() {
    let mut world = World::new();
    assert_eq!(world.control.poll_timeout(), None);
    let question = ping(&mut world, 0);
    let answer = Answer::from(CaptureAnswer::Captures(Vec::new()));
    world.at(1, |control, view| {
        control.handle_answer(question, answer, view)
    });
    assert_eq!(world.control.poll_timeout(), Some(SECOND));
    world.at(SECOND, |control, view| control.handle_timeout(view));
    assert_eq!(world.control.poll_timeout(), None);
    world.actions();
    // The count is gone: it asks again.
    ping(&mut world, SECOND);
    let handled = world.ask(SECOND, "get_owner", json!({"port_id": 0}));
    assert!(matches!(handled, Handled::Replied(_)), "{handled:?}");
}

#[test]
fn what_is_not_answered_in_time_is_not_awaited_any_more() {
    let mut world = World::new();
    let question = ping(&mut world, 0);
    world.at(3 * SECOND, |control, view| control.handle_timeout(view));
    let actions = world.actions();
    let [
        Action::Reply {
            reply: Err(error), ..
        },
    ] = &actions[..]
    else {
        panic!("{actions:?}");
    };
    assert!(
        error.to_string().contains("did not answer within"),
        "{error}"
    );
    let late = Answer::from(CaptureAnswer::Captures(Vec::new()));
    world.at(3 * SECOND, |control, view| {
        control.handle_answer(question, late, view)
    });
    assert!(world.actions().is_empty());
    // The late answer has counted nothing.
    ping(&mut world, 3 * SECOND);
}
