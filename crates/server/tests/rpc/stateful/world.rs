//! A server in stateful mode with its owner, and data threads that do as they are told.

use std::collections::HashMap;
use std::sync::Arc;

use allosaur_engine::stateful::{EndCause, Event, GroupCounters, RunIndex, StatefulCommand};
use allosaur_engine::time::MILLISECOND;
use allosaur_server::control::worker_command::{FlowCommand, FlowReport};
use allosaur_server::counters::RunBlock;
use serde_json::{Value, json};

use crate::common::World;

pub(crate) const SESSION: u32 = 77;

/// A server, its owner, and what its data threads have.
pub(crate) struct Owned {
    pub(crate) world: World,
    pub(crate) api_h: String,
    pub(crate) handler: String,
    /// Handlers of ports.
    pub(crate) ports: Value,
    /// Where the data threads publish: by data thread and run.
    pub(crate) blocks: HashMap<(usize, RunIndex), Arc<RunBlock>>,
    /// What data threads were told, without what is in `blocks`.
    pub(crate) told: Vec<(usize, FlowCommand)>,
}

impl Owned {
    /// A server of so many data threads that belongs to us.
    pub(crate) fn new(cores: usize) -> Owned {
        Owned::of(World::stateful(cores))
    }

    /// The server of this world.
    pub(crate) fn of(mut world: World) -> Owned {
        let api_h = sync(&mut world);
        let mut owned = Owned {
            world,
            api_h,
            handler: String::new(),
            ports: Value::Null,
            blocks: HashMap::new(),
            told: Vec::new(),
        };
        owned.acquire();
        owned
    }

    /// Takes the server, by force.
    pub(crate) fn acquire(&mut self) {
        let params = json!({"user": "ann", "session_id": SESSION, "force": true});
        let answer = self.ok("acquire", params);
        self.handler = answer["handler"].as_str().expect("a string").to_owned();
        self.ports = answer["ports"].clone();
    }

    fn params(&self, params: Value) -> Value {
        let mut all = json!({"api_h": self.api_h, "handler": self.handler});
        for (name, value) in params.as_object().expect("an object") {
            all[name] = value.clone();
        }
        all
    }

    /// Calls a method that must succeed; gives the result.
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        let params = self.params(params);
        let result = self.world.ok(method, params);
        self.hear_orders();
        result
    }

    /// Calls a method that must be refused; gives the code and the text.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let params = self.params(params);
        self.world.refused(method, params)
    }

    /// Calls a method; gives the whole reply.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let params = self.params(params);
        let reply = self.world.call(method, params);
        self.hear_orders();
        reply
    }

    /// Puts a request as it is; gives the whole reply.
    pub(crate) fn ask_raw(&mut self, request: &Value) -> Value {
        let reply = self.world.ask_raw(request.to_string().as_bytes());
        self.hear_orders();
        serde_json::from_slice(&reply).expect("a reply is JSON")
    }

    fn hear_orders(&mut self) {
        for (core, order) in std::mem::take(&mut self.world.orders) {
            match order {
                FlowCommand::Publish { run, block } => _ = self.blocks.insert((core, run), block),
                order => self.told.push((core, order)),
            }
        }
    }

    /// Loads a profile in one part.
    pub(crate) fn load(&mut self, name: &str, text: &str) {
        let params = json!({"profile_id": name, "fragment": text, "frag_first": true,
            "frag_last": true});
        assert_eq!(self.ok("profile_fragment", params), Value::Null);
    }

    /// Starts a profile, with some parameters that are others.
    pub(crate) fn start(&mut self, name: &str, others: Value) {
        let params = start_params(name, others);
        assert_eq!(self.ok("start", params), Value::Null);
    }

    /// The runs that data threads were told to start and not to forget, in order.
    pub(crate) fn runs(&self) -> Vec<RunIndex> {
        let mut runs: Vec<RunIndex> = Vec::new();
        for (_, order) in &self.told {
            match order {
                FlowCommand::Command(StatefulCommand::Start { run, .. }) if !runs.contains(run) => {
                    runs.push(*run);
                }
                FlowCommand::Command(StatefulCommand::Remove { run }) => {
                    runs.retain(|other| other != run)
                }
                _ => {}
            }
        }
        runs
    }

    /// The run that data threads were told to start last; any, when there was none.
    pub(crate) fn newest_run(&self) -> RunIndex {
        let mut newest = RunIndex(u16::MAX);
        for (_, order) in &self.told {
            if let FlowCommand::Command(StatefulCommand::Start { run, .. }) = order {
                newest = *run;
            }
        }
        newest
    }

    /// What was told to data threads since the last call, in words.
    pub(crate) fn words(&mut self) -> Vec<String> {
        let told = std::mem::take(&mut self.told);
        let word = |(core, order): (usize, FlowCommand)| {
            let word = match order {
                FlowCommand::Command(StatefulCommand::Start { clients, .. }) => {
                    format!("start {clients:x}")
                }
                FlowCommand::Command(StatefulCommand::Update { factor, .. }) => {
                    format!("update {factor}")
                }
                FlowCommand::Command(StatefulCommand::Stop { abort, .. }) => {
                    format!("stop {abort}")
                }
                FlowCommand::Command(StatefulCommand::Retire { .. }) => "retire".to_owned(),
                FlowCommand::Command(StatefulCommand::Remove { .. }) => "remove".to_owned(),
                FlowCommand::Command(StatefulCommand::SetLink { port, .. }) => {
                    format!("link {port}")
                }
                FlowCommand::Command(StatefulCommand::SetTopology(_)) => "topology".to_owned(),
                FlowCommand::Command(StatefulCommand::EnableClients { enabled, .. }) => {
                    format!("clients {enabled}")
                }
                FlowCommand::Command(StatefulCommand::SetIgnored(_)) => "ignored".to_owned(),
                FlowCommand::Sample { interval, .. } => format!("sample {interval:?}"),
                other => format!("{other:?}"),
            };
            format!("{core} {word}")
        };
        told.into_iter().map(word).collect()
    }

    /// A data thread reports.
    pub(crate) fn report(&mut self, core: usize, report: FlowReport) {
        let now_ns = self.world.now_ns;
        self.world.control.handle_report(core, report, now_ns);
        self.world.drain();
        self.hear_orders();
    }

    /// A data thread is through with a run.
    pub(crate) fn end(&mut self, core: usize, run: RunIndex) {
        let (at, cause) = (self.world.now_ns, EndCause::Done);
        self.report(core, FlowReport::Event(Event::Ended { run, at, cause }));
    }

    /// All data threads are through with a run.
    pub(crate) fn end_all(&mut self, run: RunIndex) {
        let cores: Vec<usize> = self
            .blocks
            .keys()
            .filter(|key| key.1 == run)
            .map(|key| key.0)
            .collect();
        for core in cores {
            self.end(core, run);
        }
    }

    /// A data thread publishes what the clients of a group have counted.
    pub(crate) fn publish(
        &mut self,
        core: usize,
        run: RunIndex,
        group: usize,
        count: impl FnOnce(&mut [GroupCounters; 2]),
    ) {
        let block = &self.blocks[&(core, run)];
        let mut groups: Vec<_> = (0..block.groups())
            .map(|group| block.group(group))
            .collect();
        count(&mut groups[group]);
        block.publish(&groups);
    }

    /// Lets the time come that control waits for, once.
    pub(crate) fn next_timeout(&mut self) -> bool {
        let Some(at) = self.world.control.poll_timeout() else {
            return false;
        };
        self.world.now_ns = self.world.now_ns.max(at);
        self.world.timeout(self.world.now_ns);
        self.hear_orders();
        true
    }

    /// Lets time pass until control waits for nothing.
    pub(crate) fn settle(&mut self) {
        while self.next_timeout() {
            self.world.now_ns += MILLISECOND;
        }
    }

    /// The events that wait, as type and data.
    pub(crate) fn events(&mut self) -> Vec<(u64, Value)> {
        let params = json!({"api_h": self.api_h, "session_id": SESSION});
        let reply = self.world.ok("get_async_events", params);
        let events = reply["data"].as_array().expect("a list").iter();
        events
            .map(|event| {
                (
                    event["type"].as_u64().expect("a number"),
                    event["data"].clone(),
                )
            })
            .collect()
    }

    /// The events that wait, in short: `60 _ 2`, `50 2`, `61 _`.
    pub(crate) fn told_of(&mut self) -> Vec<String> {
        let events = self.events().into_iter();
        let short = |(kind, data): (u64, Value)| match kind {
            50 => format!("50 {}", data["state"]),
            60 => format!(
                "60 {} {}",
                data["profile_id"].as_str().unwrap_or(""),
                data["state"]
            ),
            61 => format!("61 {}", data["profile_id"].as_str().unwrap_or("")),
            _ => format!("{kind} {data}"),
        };
        events.map(short).collect()
    }
}

/// The handshake.
pub(crate) fn sync(world: &mut World) -> String {
    let api = json!({"name": "ASTF", "major": 2, "minor": 3});
    let reply = world.ok("api_sync_v2", api);
    reply["api_h"].as_str().expect("a string").to_owned()
}

/// The parameters of `start`, with some others.
pub(crate) fn start_params(name: &str, others: Value) -> Value {
    let mut params = json!({"profile_id": name, "mult": 1, "duration": -1, "nc": false,
        "latency_pps": 0, "ipv6": false, "client_mask": u32::MAX, "e_duration": 0,
        "t_duration": 0, "dump_interval": 0});
    for (name, value) in others.as_object().expect("an object") {
        params[name] = value.clone();
    }
    params
}

/// A profile of a connection per second and template that asks and is answered; one group each.
pub(crate) fn profile(groups: &[&str]) -> String {
    let template = |number: usize| {
        json!({
            "client_template": {"program_index": 0, "port": 80 + number, "cps": 10, "cluster": {},
                "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}}},
            "server_template": {"program_index": 1, "assoc": [{"port": 80 + number}]},
            "tg_id": if groups.is_empty() { 0 } else { number + 1 },
        })
    };
    let pool = |side: &str, start: &str, end: &str| {
        json!({"dir": side, "ip_start": start, "ip_end": end, "distribution": "seq",
            "ip_offset": "1.0.0.0"})
    };
    json!({
        "buf_list": ["YXNr", "YW5zd2Vy"],
        "ip_gen_dist_list": [
            pool("c", "16.0.0.0", "16.0.0.255"), pool("s", "48.0.0.0", "48.0.255.255"),
        ],
        "program_list": [
            {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": 6}]},
            {"commands": [{"name": "rx", "min_bytes": 3}, {"name": "tx", "buf_index": 1}]},
        ],
        "templates": (0..groups.len().max(1)).map(template).collect::<Vec<_>>(),
        "tg_names": groups,
    })
    .to_string()
}
