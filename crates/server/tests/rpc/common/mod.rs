//! A server without threads or sockets, for the tests of the RPC: control under virtual time,
//! counters and data threads played by hand.

pub(crate) mod transcripts;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use allosaur_api::{Exchange, MainDialect};
use allosaur_engine::capture::Captured;
use allosaur_engine::flow_stats::Tagging;
use allosaur_engine::stateless::{Change, ProfileEvent, StatelessCommand};
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_engine::vm::Checksums;
use allosaur_l7::tls::KeyLines;
use allosaur_nodes::namespace::NetworkNamespace;
use allosaur_packet::file::Resolution;
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_server::control::worker_command::{FlowCommand, Modes, PortMode};
use allosaur_server::control::{
    Action, BuildInfo, CaptureFiles, Control, ControlConfig, FileError, Handled, Job, JobId,
    JobResult, LinkOwner, PendingId, PortConfig, QuestionId, Reply, StartAddresses, View,
};
use allosaur_server::counters::{CoreCounters, Counters, PortCounters, Snapshot};
use allosaur_server::emulation::EmulatedClients;
use allosaur_server::rpc::{frame_of, read_frame};
use allosaur_server::rx_taps::{
    Answer, Endpoint, Endpoints, NodeSocket, PacketSink, Request, RxTaps, Wire,
};
use allosaur_server::transport::Codec;
use serde_json::{Value, json};

/// The commands of a server in stateless mode.
pub(crate) fn stateless_commands() -> impl Iterator<Item = &'static allosaur_api::Command> {
    let all = allosaur_api::commands();
    all.filter(|command| command.method.is_in(allosaur_api::Mode::Stateless))
}

/// A base64 packet of 60 bytes.
pub(crate) const PACKET: &str =
    "AAAAAQAAAAAAAgAACABFAAAuAAEAAEAROr0QAAABMAAAAQQBAAwAGn9veHh4eHh4eHh4eHh4eHh4eHh4";

/// The server.
pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) snapshot: Snapshot,
    /// Of packet groups; what is published here is read by control.
    pub(crate) counters: Counters,
    pub(crate) files: MapFiles,
    /// How long a job takes.
    pub(crate) thinking_ns: Nanos,
    /// Who watches frames; a test shows it frames as the receive thread does.
    pub(crate) watchers: Watchers,
    /// Emulated clients, where there are some.
    pub(crate) emulated: Option<EmulatedClients>,
    pub(crate) now_ns: Nanos,
    pub(crate) published: Vec<Vec<u8>>,
    pub(crate) started: Vec<Started>,
    /// What data threads were told to do with their flows.
    pub(crate) orders: Vec<(usize, FlowCommand)>,
    pub(crate) stopped: Vec<(usize, u8, ProfileKey)>,
    /// What data threads were told to change, each core in order.
    pub(crate) changed: Vec<(usize, ProfileKey, Nanos, Change)>,
    /// What ports were told to receive: port, promiscuous, multicast.
    pub(crate) receive: Vec<(u8, bool, bool)>,
    pub(crate) shut_down: bool,
    pub(crate) port_modes: Vec<(u8, PortMode)>,
    /// Data threads answer a stop at once.
    pub(crate) obedient: bool,
    /// Of each request while they do not answer: whether control waited for it, in vain.
    pub(crate) gave_up: Vec<bool>,
    /// Answers that data threads owe.
    answers: Vec<(usize, ProfileEvent)>,
    /// Replies to requests that waited.
    pub(crate) replies: HashMap<PendingId, Reply>,
    /// Jobs are done at once; else they are kept here.
    pub(crate) has_jobs_done: bool,
    pub(crate) jobs: Vec<(JobId, Job)>,
    /// The receive thread answers at once; else its questions are kept here.
    pub(crate) has_answers: bool,
    pub(crate) questions: Vec<(QuestionId, Request)>,
    next_id: u64,
}

fn view<'a>(
    now_ns: Nanos,
    snapshot: &'a Snapshot,
    groups: &'a Counters,
    endpoints: &'a Watchers,
) -> View<'a> {
    View {
        now_ns,
        snapshot,
        groups,
        endpoints,
        devices: &(),
    }
}

/// Capture files by their names.
#[derive(Debug, Default)]
pub(crate) struct MapFiles(pub(crate) HashMap<String, Vec<u8>>);

impl CaptureFiles for MapFiles {
    fn read(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let folder = "nowhere".to_owned();
        let file = self.0.get(path).ok_or(FileError::Missing { folder })?;
        let bytes = file.len() as u64;
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        Ok(file.clone())
    }

    fn open_key_log(&self, _: &str) -> Result<Arc<dyn KeyLines>, FileError> {
        Err(FileError::NoFolder)
    }
}

/// A capture of Ethernet packets of 60 bytes, 1 ms apart; the last byte of each is its number.
/// Those with odd numbers are answers.
pub(crate) fn capture(packets: u8) -> Vec<u8> {
    let mut writer = PcapWriter::new(Resolution::Nanoseconds);
    for number in 0..packets {
        let (from, to) = ([2, 0, 0, 0, 0, number % 2], [2, 0, 0, 0, 0, 1 - number % 2]);
        let packet = [&to[..], &from, &[0x88, 0xb5], &[number; 46]].concat();
        let written = writer.write_frame(u64::from(number) * MILLISECOND, &packet);
        written.expect("a small time");
    }
    writer.into_bytes()
}

/// The observer without a thread. Endpoints and sockets whose address has the word `bad` cannot be
/// opened; the others take everything and give nothing.
#[derive(Debug)]
pub(crate) struct Watchers(pub(crate) RefCell<RxTaps>);

impl Endpoints for Watchers {
    fn open_endpoint(&self, endpoint: &Endpoint, _: usize) -> Result<Box<dyn PacketSink>, String> {
        match endpoint.text.contains("bad") {
            true => Err(format!("{} cannot be opened", endpoint.text)),
            false => Ok(Box::new(Nowhere)),
        }
    }

    fn open_wire(&self, endpoint: &str) -> Result<Box<dyn Wire>, String> {
        match endpoint.contains("bad") {
            true => Err(format!("{endpoint} cannot be opened")),
            false => Ok(Box::new(Nowhere)),
        }
    }

    fn open_nodes(&self, _: &NetworkNamespace) -> Result<Box<dyn NodeSocket>, String> {
        Err("there are no nodes here".to_owned())
    }
}

#[derive(Debug)]
struct Nowhere;

impl PacketSink for Nowhere {
    fn push(&mut self, _: Captured) -> bool {
        true
    }

    fn pending(&self) -> u64 {
        0
    }
}

impl Wire for Nowhere {
    fn push(&mut self, _: &[u8]) -> bool {
        true
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// A profile's share that a data thread was told to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) core: usize,
    pub(crate) port: u8,
    pub(crate) profile: ProfileKey,
    pub(crate) start_at: Nanos,
    pub(crate) duration: Option<Nanos>,
}

impl World {
    /// Two ports of 10 Gb/s and so many data threads.
    pub(crate) fn new(cores: usize) -> World {
        World::grouped(cores, [(0..cores).collect(), (0..cores).collect()])
    }

    /// The same, where each port has data threads of its own.
    pub(crate) fn grouped(cores: usize, of_ports: [Vec<usize>; 2]) -> World {
        World::of(config(cores), of_ports)
    }

    /// Two ports on interfaces, whose links the system has.
    pub(crate) fn on_interfaces(cores: usize) -> World {
        let mut config = config(cores);
        for port in &mut config.ports {
            port.link = LinkOwner::System;
        }
        World::of(config, [(0..cores).collect(), (0..cores).collect()])
    }

    /// Two ports and so many data threads, in stateful mode.
    pub(crate) fn stateful(cores: usize) -> World {
        World::stateful_on(cores, ["memory", "memory"])
    }

    /// The same, with ports of these kinds.
    pub(crate) fn stateful_on(cores: usize, drivers: [&str; 2]) -> World {
        let mut stateful = ControlConfig {
            modes: Modes::Stateful,
            ..config(cores)
        };
        for (port, driver) in stateful.ports.iter_mut().zip(drivers) {
            port.driver = driver.into();
        }
        World::of(stateful, [(0..cores).collect(), (0..cores).collect()])
    }

    /// Two pairs of ports, each with a data thread of its own, that can be in both modes.
    pub(crate) fn both() -> World {
        let ports = (0..4).map(|index| PortConfig {
            cores: vec![usize::from(index) / 2],
            ..port(2, index)
        });
        World::with(ControlConfig {
            ports: ports.collect(),
            modes: Modes::Both,
            ..config(2)
        })
    }

    fn of(mut config: ControlConfig, of_ports: [Vec<usize>; 2]) -> World {
        for (port, cores) in config.ports.iter_mut().zip(of_ports) {
            port.cores = cores;
        }
        World::with(config)
    }

    fn with(config: ControlConfig) -> World {
        let now_ns = 5 * SECOND;
        let (ports, cores) = (config.ports.len(), config.data_cores);
        World {
            control: Control::new(config, now_ns),
            snapshot: Snapshot {
                ports: vec![PortCounters::default(); ports],
                cores: vec![CoreCounters::default(); cores],
                flow_tables: vec![Default::default(); cores],
                receive: vec![CoreCounters::default()],
                key_log_lines_dropped: 0,
            },
            counters: Counters::new(ports, cores),
            files: MapFiles::default(),
            thinking_ns: 0,
            watchers: Watchers(RefCell::new(RxTaps::new(ports))),
            emulated: None,
            now_ns,
            published: Vec::new(),
            started: Vec::new(),
            orders: Vec::new(),
            stopped: Vec::new(),
            changed: Vec::new(),
            answers: Vec::new(),
            replies: HashMap::new(),
            has_jobs_done: true,
            jobs: Vec::new(),
            has_answers: true,
            questions: Vec::new(),
            receive: Vec::new(),
            shut_down: false,
            port_modes: Vec::new(),
            obedient: true,
            gave_up: Vec::new(),
            next_id: 0,
        }
    }

    /// Answers one message, as the control thread does.
    pub(crate) fn ask_raw(&mut self, message: &[u8]) -> Vec<u8> {
        let mut codec = Codec::default();
        let mut exchange: Exchange<MainDialect> = read_frame(&mut codec, message.to_vec(), 0);
        while let Some(request) = exchange.next_request() {
            exchange.answer(self.handle(&request));
        }
        frame_of(&mut codec, exchange)
    }

    fn handle(&mut self, request: &allosaur_api::Request) -> Reply {
        match self.begin(request) {
            Handled::Replied(reply) => {
                self.drain();
                match self.obedient {
                    true => self.hear_data_threads(),
                    false => self.gave_up.push(false),
                }
                reply
            }
            Handled::Pending(pending) => self.wait_for_reply(pending),
        }
    }

    /// Data threads do what they were told when nobody waited for it.
    fn hear_data_threads(&mut self) {
        while let Some((core, event)) = self.answers.pop() {
            self.control.handle_report(core, event, self.now_ns);
            self.drain();
        }
    }

    /// Hands in a request and does nothing of what follows.
    pub(crate) fn begin(&mut self, request: &allosaur_api::Request) -> Handled {
        let view = view(self.now_ns, &self.snapshot, &self.counters, &self.watchers);
        self.control.handle(request, &view)
    }

    /// Does all that has to happen before a request that waits is answered.
    pub(crate) fn wait_for_reply(&mut self, pending: PendingId) -> Reply {
        self.drain();
        while self.obedient && !self.replies.contains_key(&pending) {
            let (core, event) = self.answers.pop().unwrap_or_else(|| self.end_of_push());
            self.control.handle_report(core, event, self.now_ns);
            self.drain();
        }
        if !self.obedient {
            let has_waited = !self.replies.contains_key(&pending);
            self.gave_up.push(has_waited);
            self.give_up_waiting();
        }
        self.replies.remove(&pending).expect("it is answered")
    }

    /// So much time passes for requests that wait that they are answered.
    pub(crate) fn give_up_waiting(&mut self) {
        self.timeout(self.now_ns + 3 * SECOND);
    }

    /// Has done what is due at that time.
    pub(crate) fn timeout(&mut self, now_ns: Nanos) {
        let view = view(now_ns, &self.snapshot, &self.counters, &self.watchers);
        self.control.handle_timeout(&view);
        self.drain();
    }

    /// Pushed packets have left.
    fn end_of_push(&self) -> (usize, ProfileEvent) {
        let started = self.started.last();
        let started = started.expect("a stop, a change or pushed packets were sent");
        let (port, profile, at) = (started.port, started.profile, self.now_ns);
        (
            started.core,
            ProfileEvent::ProfileDone { port, profile, at },
        )
    }

    /// Does all that control wants done.
    pub(crate) fn drain(&mut self) {
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Publish(text) => self.published.push(text),
                Action::ExpectLatency { group, terms } => {
                    self.counters.receive.expect_latency(group, terms);
                }
                Action::SetReceive {
                    port,
                    promiscuous,
                    multicast,
                } => self.receive.push((port, promiscuous, multicast)),
                Action::SetPortMode { port, mode } => self.port_modes.push((port, mode)),
                Action::Shutdown => self.shut_down = true,
                Action::Command { core, command } => self.note(core, command),
                Action::Reply { pending, reply } => _ = self.replies.insert(pending, reply),
                Action::Ask { question, request } if !self.has_answers => {
                    self.questions.push((question, request));
                }
                Action::Ask { question, request } => {
                    let answer = match (request, &mut self.emulated) {
                        (Request::Emulation(request), Some(clients)) => {
                            clients.handle_request(request, 5 * SECOND).into()
                        }
                        (request, _) => self.watchers.0.borrow_mut().handle(request, 5 * SECOND),
                    };
                    self.hear(question, answer);
                }
                Action::Job { job, work } if self.has_jobs_done => {
                    let result = work.run(&self.files);
                    self.hand_in(job, result);
                }
                Action::Job { job, work } => self.jobs.push((job, work)),
                Action::Flows { core, command } => self.orders.push((core, command)),
            }
        }
    }

    /// The receive thread has answered.
    pub(crate) fn hear(&mut self, question: QuestionId, answer: Answer) {
        let view = view(self.now_ns, &self.snapshot, &self.counters, &self.watchers);
        self.control.handle_answer(question, answer, &view);
    }

    /// A job is done.
    pub(crate) fn hand_in(&mut self, job: JobId, result: JobResult) {
        let now_ns = self.now_ns + self.thinking_ns;
        let view = view(now_ns, &self.snapshot, &self.counters, &self.watchers);
        self.control.handle_job(job, result, &view);
    }

    fn note(&mut self, core: usize, command: StatelessCommand) {
        match command {
            StatelessCommand::StartProfile {
                port,
                profile,
                start_at,
                duration,
                ..
            } => self.started.push(Started {
                core,
                port,
                profile,
                start_at,
                duration,
            }),
            StatelessCommand::StopProfile { port, profile } => {
                self.stopped.push((core, port, profile));
                let at = self.now_ns;
                let event = ProfileEvent::ProfileStopped { port, profile, at };
                self.answers.push((core, event));
            }
            StatelessCommand::ChangeProfile {
                port,
                profile,
                at,
                change,
            } => {
                self.changed.push((core, profile, at, change));
                let event = ProfileEvent::ProfileChanged { port, profile, at };
                self.answers.push((core, event));
            }
        }
    }

    /// Calls a method; gives the whole reply object.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        let reply = self.ask_raw(request.to_string().as_bytes());
        let reply: Value = serde_json::from_slice(&reply).expect("a reply is JSON");
        assert_eq!(reply["id"], self.next_id);
        reply
    }

    /// Calls a method that must succeed; gives the result.
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.call(method, params);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    /// Calls a method that must be refused; gives the code and the specific text.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let reply = self.call(method, params);
        let error = &reply["error"];
        let code = error["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("{method}: {reply}"));
        (
            code,
            error["specific_err"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    /// The handshake.
    pub(crate) fn sync(&mut self) -> String {
        let reply = self.ok(
            "api_sync_v2",
            json!({"name": "STL", "major": 5, "minor": 1}),
        );
        reply["api_h"].as_str().expect("a string").to_owned()
    }

    /// Lets time pass, in steps of half a second with a tick after each.
    pub(crate) fn pass(&mut self, time: Nanos) {
        let end = self.now_ns + time;
        while self.now_ns < end {
            self.now_ns = (self.now_ns + SECOND / 2).min(end);
            let view = view(self.now_ns, &self.snapshot, &self.counters, &self.watchers);
            self.control.handle_tick(&view);
            self.drain();
        }
    }

    /// Does to the MAC filters what a server does when it starts.
    pub(crate) fn begin_mac_filters(&mut self, promiscuous: bool) {
        for port in 0..2 {
            let begun = self.control.begin_mac_filter(port, promiscuous);
            begun.expect("the port is there");
        }
        self.drain();
    }

    /// Gives a port the addresses of a configuration.
    pub(crate) fn set_start_addresses(&mut self, port: u8, addresses: &StartAddresses) {
        let set = self.control.set_start_addresses(port, addresses);
        set.expect("nobody transmits yet");
        self.drain();
    }

    /// A data thread is through with a profile.
    pub(crate) fn done(&mut self, started: Started) {
        let event = ProfileEvent::ProfileDone {
            port: started.port,
            profile: started.profile,
            at: self.now_ns,
        };
        self.control.handle_report(started.core, event, self.now_ns);
        self.drain();
    }

    /// How many notifications were published since the last call.
    pub(crate) fn doorbells(&mut self) -> usize {
        let published = std::mem::take(&mut self.published);
        published.iter().filter(|text| *text == b"{}").count()
    }
}

/// A user with a session and the ports it took.
pub(crate) struct User {
    pub(crate) api_h: String,
    pub(crate) name: String,
    pub(crate) session: u32,
    pub(crate) handlers: [String; 2],
}

impl User {
    /// Connects, without taking ports.
    pub(crate) fn connect(world: &mut World, name: &str, session: u32) -> User {
        let api_h = world.sync();
        world.ok(
            "get_async_events",
            json!({"api_h": api_h, "session_id": session}),
        );
        User {
            api_h,
            name: name.to_owned(),
            session,
            handlers: Default::default(),
        }
    }

    /// Connects and takes port 0.
    pub(crate) fn with_port(world: &mut World, name: &str, session: u32) -> User {
        let mut user = User::connect(world, name, session);
        user.acquire(world, 0, false).expect("the port is free");
        user
    }

    /// Takes a port.
    pub(crate) fn acquire(
        &mut self,
        world: &mut World,
        port: usize,
        force: bool,
    ) -> Result<(), String> {
        let params = json!({
            "api_h": self.api_h, "port_id": port, "user": self.name, "session_id": self.session,
            "force": force,
        });
        let reply = world.call("acquire", params);
        match reply["result"].as_str() {
            Some(handler) => {
                self.handlers[port] = handler.to_owned();
                Ok(())
            }
            None => Err(reply["error"]["specific_err"].to_string()),
        }
    }

    /// The parameters that every command on port 0 needs, and `more`.
    pub(crate) fn params(&self, more: Value) -> Value {
        let mut params = json!({"api_h": self.api_h, "port_id": 0, "handler": self.handlers[0]});
        if let (Value::Object(params), Value::Object(more)) = (&mut params, more) {
            params.extend(more);
        }
        params
    }

    /// The types, data and numbers of the events that wait.
    pub(crate) fn events(&self, world: &mut World) -> Vec<(u64, Value, u64)> {
        let params = json!({"api_h": self.api_h, "session_id": self.session});
        let reply = world.ok("get_async_events", params);
        let events = reply["data"].as_array().expect("a list").iter();
        let number = |event: &Value, name: &str| event[name].as_u64().expect("a number");
        events
            .map(|e| (number(e, "type"), e["data"].clone(), number(e, "seq")))
            .collect()
    }

    /// The types only.
    pub(crate) fn event_types(&self, world: &mut World) -> Vec<u64> {
        self.events(world)
            .into_iter()
            .map(|(id, _, _)| id)
            .collect()
    }
}

/// A continuous stream of 100 packets a second.
pub(crate) fn stream() -> Value {
    json!({
        "flags": 0, "action_count": 0, "enabled": true, "self_start": true,
        "start_paused": false, "isg": 0.0, "core_id": -1, "next_stream_id": -1,
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 100}},
        "packet": {"binary": PACKET, "meta": ""},
        "vm": {"instructions": []}, "flow_stats": {"enabled": false}, "name": "s1"
    })
}

/// UDP to `port` with an IPv4 packet within VXLAN.
pub(crate) fn vxlan_packet(port: u16) -> Vec<u8> {
    let ipv4 = |bytes: u8, protocol: u8| {
        let mut header = vec![0x45, 0, 0, bytes, 0, 1, 0, 0, 64, protocol, 0, 0];
        header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        header
    };
    let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let inner = [&ethernet[..], &ipv4(40, 253), &[0; 20]].concat();
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat();
    let ports = [[0x12, 0x34], port.to_be_bytes()].concat();
    let udp = [&ports[..], &[0, 8 + vxlan.len() as u8, 0, 0], &vxlan].concat();
    [&ethernet[..], &ipv4(20 + udp.len() as u8, 17), &udp].concat()
}

/// Parameters of `start_traffic`: a multiplier, and no end.
pub(crate) fn start(kind: &str, value: f64) -> Value {
    json!({
        "mul": {"type": kind, "op": "abs", "value": value}, "duration": -1, "force": false,
    })
}

fn port(cores: usize, index: u8) -> PortConfig {
    PortConfig {
        driver: "memory".into(),
        description: "in-memory port".into(),
        interface: None,
        numa_node: None,
        line_rate_bps: 10e9,
        frame_bytes_max: 9238,
        link: LinkOwner::Server {
            peer: Some(index ^ 1),
        },
        hw_mac: [2, 0xa1, 5, 0, 0, index],
        destination_mac: [2, 0xa1, 5, 0, 0, index ^ 1],
        checksums: Checksums::Complete,
        shares_inner_flows: true,
        cores: (0..cores).collect(),
    }
}

fn config(cores: usize) -> ControlConfig {
    ControlConfig {
        ports: vec![port(cores, 0), port(cores, 1)],
        data_cores: cores,
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
