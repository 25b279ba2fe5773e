//! What TRex's official client asks of a stateful server, in its order; what it gets, and hears.
//!
//! As `rpc_transcripts`, for the conversations `astf_*`. Data threads are through with a run when
//! TRex's client hears that it is over.

use std::collections::{BTreeSet, HashMap};

use allosaur_engine::stateful::RunIndex;
use serde_json::{Value, json};

use super::world::{Owned, SESSION, profile};
use crate::common::transcripts::{Exchange, differences, events, names, read};

/// What is another way round here, for a reason: nothing has to be gathered first.
const OTHERWISE: [&str; 1] = ["get_clients_info_pull: TRex refused"];

/// A conversation put to our control.
struct Replay {
    server: Owned,
    /// Ours for TRex's.
    handlers: HashMap<String, String>,
    shapes: BTreeSet<String>,
    answered: usize,
    /// By profile.
    runs: HashMap<String, RunIndex>,
    theirs: Vec<(u64, Value)>,
    ours: Vec<(u64, Value)>,
}

impl Replay {
    fn of(name: &str) -> Replay {
        let exchanges = read(name);
        let mut replay = Replay {
            server: Owned::new(1),
            handlers: HashMap::new(),
            shapes: BTreeSet::new(),
            answered: 0,
            runs: HashMap::new(),
            theirs: Vec::new(),
            ours: Vec::new(),
        };
        replay.make_what_was_there(&exchanges);
        for exchange in &exchanges {
            replay.put(exchange);
        }
        replay
    }

    /// The profiles that were loaded when the conversation began, by an earlier one, and latency that
    /// had been measured.
    fn make_what_was_there(&mut self, exchanges: &[Exchange]) {
        let sync = exchanges.iter().find(|e| e.request["method"] == "sync");
        let states = sync.map(|sync| sync.reply["result"]["state_profile"].clone());
        let states = states.unwrap_or_default();
        for (name, state) in states.as_object().expect("profiles") {
            if state == 1 && name == "bad" {
                self.server.load(name, "{}");
            } else if state == 1 {
                self.server.load(name, &profile(&[]));
                self.server.start(name, json!({}));
                let run = self.server.newest_run();
                self.server.end_all(run);
            }
        }
        let measured = |e: &Exchange| e.reply["result"]["data"]["port-0"].is_object();
        let starts = |e: &Exchange| e.request["method"] == "start_latency";
        let was_measured = exchanges.iter().take_while(|e| !starts(e)).any(measured);
        if was_measured {
            let terms = json!({"mult": 1, "src_addr": "16.0.0.1", "dst_addr": "48.0.0.1",
                "dual_port_addr": "1.0.0.0", "mask": 3});
            self.server.ok("start_latency", terms);
            self.server.ok("stop_latency", json!({}));
        }
        self.server.told_of();
    }

    /// A profile's flows are over, as TRex's client hears; with `is_over` for good, and else unless
    /// they were told to end.
    fn end_if_over(&mut self, name: &str, is_over: bool) {
        let states = self.server.ok("sync", json!({"profile_id": "sync"}));
        let state = &states["state_profile"][name];
        if *state == 4 || (*state == 5 && is_over) {
            let run = self.runs[name];
            self.server.end_all(run);
        }
    }

    fn put(&mut self, exchange: &Exchange) {
        let method = exchange.request["method"].as_str().expect("a string");
        if method == "get_async_events" {
            return self.put_events(exchange);
        }
        let request = self.translate(&exchange.request);
        let reply = self.server.ask_raw(&request);
        let (theirs, ours) = (&exchange.reply, &reply);
        assert_ne!(ours["error"]["code"], -32601, "{method}");
        self.answered += 1;
        match (theirs.get("error"), ours.get("error")) {
            (None, None) => {
                differences(method, &theirs["result"], &ours["result"], &mut self.shapes);
            }
            (Some(theirs), Some(ours)) => assert_eq!(theirs["code"], ours["code"], "{method}"),
            (None, Some(error)) => _ = self.shapes.insert(format!("{method}: {error}")),
            (Some(_), None) => _ = self.shapes.insert(format!("{method}: TRex refused")),
        }
        if method == "acquire" {
            self.learn_handlers(&theirs["result"], &ours["result"]);
        }
        if method == "start" && ours.get("error").is_none() {
            let name = request["params"]["profile_id"].as_str().expect("a string");
            self.runs.insert(name.to_owned(), self.server.newest_run());
        }
    }

    fn learn_handlers(&mut self, theirs: &Value, ours: &Value) {
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        self.handlers
            .insert(text(&theirs["handler"]), text(&ours["handler"]));
        self.server.handler = text(&ours["handler"]);
        for port in ["0", "1"] {
            self.handlers
                .insert(text(&theirs["ports"][port]), text(&ours["ports"][port]));
        }
    }

    /// Our strings for TRex's, and our session.
    fn translate(&self, request: &Value) -> Value {
        let mut request = request.clone();
        let params = &mut request["params"];
        if params.get("api_h").is_some() {
            params["api_h"] = json!(self.server.api_h);
        }
        let ours = params["handler"]
            .as_str()
            .and_then(|theirs| self.handlers.get(theirs));
        if let Some(ours) = ours {
            params["handler"] = json!(ours);
        }
        if params.get("session_id").is_some() {
            params["session_id"] = json!(SESSION);
        }
        request
    }

    /// What TRex's client hears ends runs here; then we hear what we would.
    fn put_events(&mut self, exchange: &Exchange) {
        let heard: Vec<(u64, Value)> = events(&exchange.reply)
            .into_iter()
            .map(|event| {
                (
                    event["type"].as_u64().expect("a number"),
                    event["data"].clone(),
                )
            })
            .collect();
        for (kind, data) in &heard {
            let name = data["profile_id"].as_str().unwrap_or_default();
            match (kind, data["state"].as_u64()) {
                (60, Some(1 | 5)) => self.end_if_over(name, data["state"] == 1),
                (61, _) => self.server.settle(),
                _ => {}
            }
        }
        self.theirs.extend(heard);
        let ours = self.server.events();
        self.ours.extend(ours);
    }
}

/// Epochs since the first that was heard of: the servers had not the same past.
fn comparable(events: &[(u64, Value)]) -> Vec<(u64, Value)> {
    let first = events
        .first()
        .and_then(|(_, data)| data["epoch"].as_u64())
        .unwrap_or(0);
    let since = |(kind, data): &(u64, Value)| {
        let mut data = data.clone();
        let epoch = data["epoch"].as_u64().unwrap_or(first);
        data["epoch"] = json!(epoch - first);
        if data.get("error").is_some() {
            data["error"] = json!("a reason");
        }
        (*kind, data)
    };
    events.iter().map(since).collect()
}

#[test]
fn conversations_go_as_with_trex() {
    let names = names("astf_");
    assert_eq!(names.len(), 10, "transcripts are missing: {names:?}");
    let mut compared = 0;
    for name in names {
        let replay = Replay::of(&name);
        println!(
            "{name}: {} answered, {} events",
            replay.answered,
            replay.theirs.len()
        );
        let is_known = |path: &&String| OTHERWISE.iter().any(|known| path.starts_with(known));
        let wrong: Vec<&String> = replay
            .shapes
            .iter()
            .filter(|path| !is_known(path))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        assert_eq!(
            comparable(&replay.ours),
            comparable(&replay.theirs),
            "{name}"
        );
        compared += replay.theirs.len();
    }
    assert!(compared > 300, "only {compared} events were compared");
}
