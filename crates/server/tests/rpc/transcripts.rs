//! What TRex's official client asks, in its order, and the shape of what it gets.
//!
//! Each request is put to our control; where TRex answered with a result, ours has at least the
//! same keys with the same types; where it answered with an error, ours has the same code.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::common::transcripts::{Exchange, differences, events, names, read};
use crate::common::{World, capture};
use serde_json::{Value, json};

/// Methods of TRex that belong to later work; the list only shrinks.
const LATER: [&str; 8] = [
    "clear_tpg_stats",
    "disable_tpg",
    "enable_tpg",
    "get_tpg_state",
    "get_tpg_stats",
    "get_tpg_tags",
    "get_tpg_tx_stats",
    "get_tpg_unknown_tags",
];

/// Fields that TRex has only while a feature is on that we do not have yet.
const LATER_FIELDS: [&str; 5] = [
    "get_port_status.attr.layer_cfg.ipv4.",
    "get_port_status.attr.layer_cfg.ipv6.",
    "get_port_status.rx_info.",
    // Nothing arrives here, and the groups are others; `rpc_groups` has the shape of this reply.
    "get_pgid_stats.",
    "get_tpg_status.",
];

/// Events by session.
type Events = BTreeMap<u64, Vec<Value>>;

/// A transcript put to our control.
struct Replay {
    world: World,
    api_h: String,
    handlers: HashMap<String, Value>,
    shapes: BTreeSet<String>,
    later: BTreeSet<String>,
    refused: BTreeSet<String>,
    answered: usize,
    /// The events that each session fetched.
    their_events: Events,
    our_events: Events,
}

impl Replay {
    fn new() -> Replay {
        let mut world = World::new(1);
        let file = "trex-core/scripts/stl/sample.pcap".to_owned();
        world.files.0.insert(file, capture(1));
        Replay {
            api_h: world.sync(),
            world,
            handlers: HashMap::new(),
            shapes: BTreeSet::new(),
            later: BTreeSet::new(),
            refused: BTreeSet::new(),
            answered: 0,
            their_events: Events::new(),
            our_events: Events::new(),
        }
    }

    /// Lets somebody take the ports before the conversation begins.
    fn own_all_ports(&mut self) {
        for port in 0..2 {
            let params = json!({"api_h": self.api_h, "port_id": port, "user": "before",
                "session_id": 1, "force": false});
            self.world.ok("acquire", params);
        }
    }

    fn put(&mut self, exchange: &Exchange) {
        let method = exchange.request["method"].as_str().expect("a string");
        self.finish_what_trex_finished(&exchange.reply);
        let request = self.translate(&exchange.request);
        let reply = self.world.ask_raw(request.to_string().as_bytes());
        let reply: Value = serde_json::from_slice(&reply).expect("a reply is JSON");
        let (theirs, ours) = (&exchange.reply, &reply);
        if ours["error"]["code"] == -32601 {
            if theirs["error"]["code"] != -32601 {
                self.later.insert(method.to_owned());
            }
            return;
        }
        self.answered += 1;
        if let Some(session) = request["params"]["session_id"].as_u64() {
            if method == "get_async_events" {
                let theirs = events(theirs);
                self.their_events.entry(session).or_default().extend(theirs);
                let ours = events(ours);
                self.our_events.entry(session).or_default().extend(ours);
                return;
            }
        }
        self.compare(method, theirs, ours);
        if method != "acquire" {
            return;
        }
        if let Some(handler) = theirs["result"].as_str() {
            self.handlers
                .insert(handler.to_owned(), ours["result"].clone());
        }
    }

    fn compare(&mut self, method: &str, theirs: &Value, ours: &Value) {
        match (theirs.get("error"), ours.get("error")) {
            (None, None) => {
                differences(method, &theirs["result"], &ours["result"], &mut self.shapes);
            }
            (Some(theirs), Some(ours)) => {
                // TRex takes a stream's fields for execution, and says so with the same code.
                assert_eq!(theirs["code"], ours["code"], "{method}: {theirs} {ours}");
            }
            (None, Some(error)) => {
                let text = error["specific_err"].as_str().unwrap_or_default();
                self.refused.insert(format!("{method}: {text}"));
            }
            (Some(error), None) => {
                self.shapes
                    .insert(format!("{method}: TRex refused: {error}"));
            }
        }
    }

    /// Our strings for TRex's.
    fn translate(&self, request: &Value) -> Value {
        let mut request = request.clone();
        let params = &mut request["params"];
        let known = params["api_h"].as_str().is_some_and(|h| h != "zzzz");
        if known {
            params["api_h"] = json!(self.api_h);
        }
        if let Some(ours) = params["handler"]
            .as_str()
            .and_then(|h| self.handlers.get(h))
        {
            params["handler"] = ours.clone();
        }
        request
    }

    /// The data threads are played by hand: a profile (or a capture, of whose end there is no event
    /// of its own) ends when TRex's client hears that it has.
    fn finish_what_trex_finished(&mut self, reply: &Value) {
        let Some(events) = reply["result"]["data"].as_array() else {
            return;
        };
        let ends = |event: &&Value| event["type"] == 14 || event["type"] == 4;
        for event in events.iter().filter(ends) {
            let port = event["data"]["port_id"].as_u64().expect("a port");
            let started = &mut self.world.started;
            if let Some(at) = started.iter().rposition(|s| u64::from(s.port) == port) {
                let run = started.remove(at);
                self.world.done(run);
            }
        }
    }
}

fn replay(name: &str) -> Replay {
    let mut replay = Replay::new();
    read(name).iter().for_each(|exchange| replay.put(exchange));
    replay
}

/// What that TRex server refused, or divided by zero, and ours can do.
const BETTER: [&str; 2] = [
    "conf_ipv6: TRex refused",
    "start_traffic.multiplier is double, TRex's null",
];

/// What a refusal says that follows from an earlier one.
const CONSEQUENCES: [&str; 2] = [
    "does not exist",
    "cannot be executed on current state: 'IDLE",
];

#[test]
fn replies_have_trex_s_keys_and_types() {
    let names = names("stl_");
    assert_eq!(names.len(), 18, "transcripts are missing: {names:?}");
    let mut later = BTreeSet::new();
    for name in names {
        let result = replay(&name);
        println!(
            "{name}: {} answered; later: {:?}",
            result.answered, result.later
        );
        let is_known = |path: &&String| {
            let mut known = LATER_FIELDS.iter().chain(&BETTER);
            known.any(|field| path.starts_with(field))
        };
        let wrong: Vec<&String> = result.shapes.iter().filter(|p| !is_known(p)).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        for text in &result.refused {
            println!("    refused: {text}");
            let follows = CONSEQUENCES.iter().any(|part| text.contains(part));
            assert!(
                text.contains("not supported yet") || follows,
                "{name}: {text}"
            );
        }
        later.extend(result.later);
    }
    assert_eq!(later, LATER.map(str::to_owned).into());
}

#[test]
fn the_basic_conversations_are_answered_whole() {
    for name in [
        "stl_s01_connect_disconnect",
        "stl_s02_basic_traffic",
        "stl_s06_stats",
        "stl_s12_ownership_two_clients",
        "stl_s14_pub_raw",
    ] {
        let result = replay(name);
        assert!(result.answered > 20, "{name}");
        assert_eq!((result.later, result.refused), Default::default(), "{name}");
    }
}

/// Conversations whose events are not compared, and why.
const OTHER_EVENTS: [(&str, &str); 1] =
    [("stl_s16_tpg", "streams of tagged packet groups are sent")];

/// Their ports belonged to somebody when the conversation began.
const OWNED_BEFORE: [&str; 2] = ["stl_s05_profiles", "stl_s11_dynamic_profiles"];

/// A session's events as TRex would have them, with numbers from 0 on: TRex's server had served
/// some sessions before, in other transcripts. Whatever the first number is, there is no gap.
fn comparable(events: &[Value]) -> Vec<Value> {
    let first = events.first().and_then(|event| event["seq"].as_u64());
    for (n, event) in events.iter().enumerate() {
        let seq = event["seq"].as_u64();
        assert_eq!(seq, first.map(|first| first + n as u64), "{event}");
    }
    // TRex tells of changed attributes when a cable is pulled, we also when a user changes them.
    let others = events.iter().filter(|event| event["type"] != 8);
    let numbered = others.cloned().enumerate().map(|(n, mut event)| {
        event["seq"] = json!(n);
        event
    });
    numbered.collect()
}

#[test]
fn sessions_hear_of_the_same_events_in_the_same_order() {
    let mut compared = 0;
    for name in names("stl_") {
        if let Some((_, why)) = OTHER_EVENTS.iter().find(|(other, _)| name == *other) {
            println!("{name} is not compared: {why}");
            continue;
        }
        let mut replay = Replay::new();
        if OWNED_BEFORE.contains(&name.as_str()) {
            replay.own_all_ports();
        }
        read(&name).iter().for_each(|exchange| replay.put(exchange));
        let (theirs, ours) = (&replay.their_events, &replay.our_events);
        assert!(theirs.keys().eq(ours.keys()), "{name}");
        for (session, theirs) in theirs {
            let theirs = comparable(theirs);
            assert_eq!(comparable(&ours[session]), theirs, "{name} {session}");
            compared += theirs.len();
        }
    }
    assert!(compared > 300, "only {compared} events were compared");
}

#[test]
fn a_capture_that_is_sent_is_heard_of_as_from_trex() {
    let exchanges = read("stl_s09_push_pcap");
    let mut replay = Replay::new();
    let mut pushed = 0;
    for exchange in &exchanges {
        let is_push = exchange.request["method"] == "push_remote";
        if is_push && pushed == 0 {
            replay.their_events.clear();
            replay.our_events.clear();
        }
        pushed += usize::from(is_push);
        replay.put(exchange);
    }
    let heard = |events: &Events| -> Vec<(Value, Value)> {
        let heard = events
            .values()
            .flatten()
            .map(|e| (e["type"].clone(), e["data"].clone()));
        // Which session fetches the releases at the end first is a matter of luck.
        heard.filter(|(kind, _)| *kind != 6).collect()
    };
    assert_eq!((pushed, heard(&replay.their_events).len()), (3, 18));
    assert_eq!(heard(&replay.our_events), heard(&replay.their_events));
}
