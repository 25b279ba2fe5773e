//! Streams in virtual time: the same control and the same engines as in a server.

use std::rc::Rc;

use allosaur_api::{Fields, Request};
use allosaur_engine::flow_stats::Tagging;
use allosaur_engine::stream::spec::PACKET_BYTES_MAX;
use allosaur_engine::time::{Due, Gap, MICROSECOND, Nanos};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_engine::vm::Checksums;
use allosaur_engine::{StatelessCommand, StatelessEngine};
use allosaur_nodes::namespace::NetworkNamespace;
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_packet::file::{CaptureError, Resolution};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::control::worker_command::Modes;
use crate::control::{
    Action, CaptureFiles, Control, ControlConfig, Handled, LinkOwner, PortConfig, Reply, View,
};
use crate::counters::{Counters, Snapshot};
use crate::rx_taps::{
    self, Answer, CaptureRequest, Endpoint, Endpoints, NodeSocket, PacketSink, Wire,
};

/// Packets that are written when nothing says how many.
pub const LIMIT_PACKETS: u64 = 5000;
/// Most data cores.
pub const CORES_MAX: usize = 64;
/// The line rate of simulated ports, which percentages are of.
pub const LINE_RATE_BPS: f64 = 10e9;
/// The source MAC of simulated ports.
pub const SOURCE_MAC: [u8; 6] = [0x18; 6];
/// The destination MAC of simulated ports.
pub const DESTINATION_MAC: [u8; 6] = [0x10; 6];

/// Virtual time moves on by so much at once; packets are put in order within it.
const STEP: Nanos = 100 * MICROSECOND;
/// The user that the simulator acquires its ports as.
const USER: &str = "simulator";

/// What to simulate: requests, and how many packets and cores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// `add_stream`, `start_traffic` and so on. Handles for the API and for ports are filled in.
    pub commands: Vec<Value>,
    /// Packets to write at most.
    pub limit_packets: Option<u64>,
    /// Data cores.
    pub cores: Option<usize>,
    /// Who computes the checksums of `fix_checksum_hw`: captures show them as on the wire, unless
    /// they are left to the port, as TRex's simulator shows them.
    pub checksums: Checksums,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamsOutcome {
    /// Packets written.
    pub packets: u64,
    /// Their bytes, with FCS.
    pub bytes: u64,
    /// When the first was due, in seconds from the start of traffic.
    pub first_s: f64,
    /// When the last was due.
    pub last_s: f64,
    /// Whether the limit ended the run, and not the traffic itself.
    pub limited: bool,
    /// What was written, as a pcap file in nanoseconds.
    #[serde(skip)]
    pub capture: Vec<u8>,
}

/// Why there is nothing to show.
#[derive(Debug, Error)]
pub enum SimError {
    /// The file is not what it should be.
    #[error("{0}")]
    Scenario(String),
    /// A request was refused.
    #[error("{method}: {message}")]
    Refused {
        /// The request's method.
        method: String,
        /// What the server would have answered.
        message: String,
    },
    /// A packet is due later than a capture can say.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

impl Scenario {
    /// Reads the JSON of a scenario: a list of requests, or an object with `commands` and
    /// perhaps `pkt_limit` and `dp_cores`.
    pub fn parse(text: &[u8]) -> Result<Scenario, SimError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum File {
            List(Vec<Value>),
            Object {
                commands: Vec<Value>,
                pkt_limit: Option<u64>,
                dp_cores: Option<usize>,
            },
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| SimError::Scenario(format!("this is not JSON: {error}")))?;
        match serde_json::from_value(value) {
            Ok(File::List(commands)) => Ok(Scenario {
                commands,
                ..Scenario::default()
            }),
            Ok(File::Object {
                commands,
                pkt_limit,
                dp_cores,
            }) => Ok(Scenario {
                commands,
                limit_packets: pkt_limit,
                cores: dp_cores,
                checksums: Checksums::default(),
            }),
            Err(_) => Err(SimError::Scenario(
                "a scenario is a list of JSON-RPC requests, or an object with 'commands' (that \
                 list), 'pkt_limit' and 'dp_cores'"
                    .to_owned(),
            )),
        }
    }

    /// Runs the requests, then lets virtual time pass until nothing is left to send. Capture
    /// files that they name are read from `files`.
    pub fn run(&self, files: &dyn CaptureFiles) -> Result<StreamsOutcome, SimError> {
        let cores = self.cores.unwrap_or(1);
        if !(1..=CORES_MAX).contains(&cores) {
            let problem = format!("{cores} data cores: give 1 to {CORES_MAX}");
            return Err(SimError::Scenario(problem));
        }
        let limit = self.limit_packets.unwrap_or(LIMIT_PACKETS);
        if limit == 0 {
            let problem = "a limit of 0 packets leaves nothing to write: give at least 1";
            return Err(SimError::Scenario(problem.to_owned()));
        }
        let requests = self.requests()?;
        let ports = requests
            .iter()
            .filter_map(port_of)
            .max()
            .map_or(1, |last| last + 1);
        let config = control_config(ports as usize, cores, self.checksums);
        let mut simulation = Simulation::new(config, files)?;
        for request in requests {
            simulation.request(request)?;
        }
        simulation.finish(limit)
    }

    fn requests(&self) -> Result<Vec<Request>, SimError> {
        let parse = |(i, command): (usize, &Value)| {
            let mut command = command.clone();
            if let Some(object) = command.as_object_mut() {
                object.entry("id").or_insert(json!(i + 1));
                object.entry("jsonrpc").or_insert(json!("2.0"));
            }
            Request::parse(command)
                .map_err(|refused| SimError::Scenario(format!("commands[{i}]: {}", refused.error)))
        };
        self.commands.iter().enumerate().map(parse).collect()
    }
}

/// The highest port that a request needs.
fn port_of(request: &Request) -> Option<u64> {
    let port = Fields::new(&request.params).uint64("port_id").ok()?;
    let last = if is_dual(&request.params) {
        port | 1
    } else {
        port
    };
    Some(last).filter(|&port| port < 255)
}

/// Whether a capture leaves by two ports.
fn is_dual(params: &Map<String, Value>) -> bool {
    params
        .get("is_dual")
        .is_some_and(|dual| *dual == json!(true))
}

/// Nobody watches a simulation while it runs: all its frames are in the outcome.
#[derive(Debug)]
struct Nobody;

impl Endpoints for Nobody {
    fn open_endpoint(&self, _: &Endpoint, _: usize) -> Result<Box<dyn PacketSink>, String> {
        Err(NOBODY.to_owned())
    }

    fn open_wire(&self, _: &str) -> Result<Box<dyn Wire>, String> {
        Err(NOBODY.to_owned())
    }

    fn open_nodes(&self, _: &NetworkNamespace) -> Result<Box<dyn NodeSocket>, String> {
        Err(NOBODY.to_owned())
    }
}

const NOBODY: &str = "a simulation has no captures: it writes all its packets itself";

/// Control, its data cores, and the time.
struct Simulation<'a> {
    files: &'a dyn CaptureFiles,
    control: Control,
    api_handle: Value,
    handlers: Vec<Value>,
    engines: Vec<StatelessEngine>,
    /// When the traffic began: time zero of the capture.
    started_at: Option<Nanos>,
    recorder: Recorder,
    /// All zero: the capture tells what was sent.
    counters: Rc<Counters>,
}

impl Simulation<'_> {
    fn new(config: ControlConfig, files: &dyn CaptureFiles) -> Result<Simulation<'_>, SimError> {
        let (ports, cores) = (config.ports.len(), config.data_cores);
        let mut simulation = Simulation {
            files,
            control: Control::new(config, 0),
            api_handle: Value::Null,
            handlers: Vec::new(),
            engines: (0..cores).map(|_| StatelessEngine::new(ports, 0)).collect(),
            started_at: None,
            recorder: Recorder::default(),
            counters: Rc::new(Counters::new(ports, cores)),
        };
        let version = json!({"name": "STL", "major": 5, "minor": 1});
        simulation.api_handle = simulation.call("api_sync_v2", version)?["api_h"].take();
        for port in 0..ports {
            let owner = json!({"port_id": port, "user": USER, "session_id": 1, "force": false});
            let handler = simulation.call("acquire", owner)?;
            simulation.handlers.push(handler);
        }
        Ok(simulation)
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, SimError> {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        self.request(Request {
            id: json!(0),
            method: method.to_owned(),
            params,
        })
    }

    fn request(&mut self, mut request: Request) -> Result<Value, SimError> {
        let params = &mut request.params;
        params.insert("api_h".to_owned(), self.api_handle.clone());
        let port = params.get("port_id").and_then(Value::as_u64);
        if let Some(handler) = port.and_then(|port| self.handlers.get(port as usize)) {
            params.insert("handler".to_owned(), handler.clone());
        }
        if let Some(peer) = port.filter(|_| is_dual(params)).map(|port| port ^ 1) {
            let handler = self.handlers.get(peer as usize);
            params.insert(
                "slave_handler".to_owned(),
                handler.cloned().unwrap_or_default(),
            );
        }
        let counters = Rc::clone(&self.counters);
        let view = View {
            now_ns: 0,
            snapshot: &Snapshot::default(),
            groups: &*counters,
            endpoints: &Nobody,
            devices: &(),
        };
        let mut reply = match self.control.handle(&request, &view) {
            Handled::Replied(reply) => Some(reply),
            Handled::Pending(_) => None,
        };
        reply = self.act(&view).or(reply);
        if reply.is_none() {
            // Threads that would answer it do not live in a simulation.
            let later = View {
                now_ns: Nanos::MAX,
                ..view
            };
            self.control.handle_timeout(&later);
            reply = self.act(&later);
        }
        let reply = reply.expect("who does not wait any longer is answered");
        let Request { method, .. } = request;
        reply.map_err(|error| SimError::Refused {
            method,
            message: error.to_string(),
        })
    }

    /// Does what control wants done; gives the reply of a request that waited.
    fn act(&mut self, view: &View<'_>) -> Option<Reply> {
        let mut replied = None;
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Command { core, command } => self.command(core, command),
                Action::Job { job, work } => {
                    let result = work.run(self.files);
                    self.control.handle_job(job, result, view);
                }
                // It stays without an answer, as nobody is there.
                Action::Ask {
                    request: rx_taps::Request::Capture(CaptureRequest::Start { .. }),
                    ..
                } => {}
                Action::Ask { question, .. } => {
                    self.control.handle_answer(question, Answer::NoTap, view);
                }
                Action::Reply { reply, .. } => replied = Some(reply),
                _ => {}
            }
        }
        replied
    }

    fn command(&mut self, core: usize, command: StatelessCommand) {
        if let StatelessCommand::StartProfile { start_at, .. } = command {
            let first = self.started_at.get_or_insert(start_at);
            *first = start_at.min(*first);
        }
        self.engines[core].handle_command(0, command, &mut self.recorder);
    }

    fn finish(mut self, limit: u64) -> Result<StreamsOutcome, SimError> {
        let zero = self.started_at.unwrap_or(0);
        let mut capture = PcapWriter::new(Resolution::Nanoseconds);
        let mut outcome = StreamsOutcome {
            packets: 0,
            bytes: 0,
            first_s: 0.0,
            last_s: 0.0,
            limited: false,
            capture: Vec::new(),
        };
        'time: while let Some(next) = self
            .engines
            .iter()
            .filter_map(StatelessEngine::poll_timeout)
            .min()
        {
            self.run_until(next + STEP);
            for (at, frame) in self.recorder.in_order() {
                if outcome.packets == limit {
                    outcome.limited = true;
                    break 'time;
                }
                capture.write_frame(at - zero, frame)?;
                outcome.note(at - zero, frame.len());
            }
            self.recorder.clear();
        }
        outcome.capture = capture.into_bytes();
        Ok(outcome)
    }

    /// Lets every engine send all that is due by `now`.
    fn run_until(&mut self, now: Nanos) {
        for engine in &mut self.engines {
            while engine.poll_timeout().is_some_and(|next| next <= now) {
                engine.poll_transmit(now, &mut self.recorder);
            }
            while engine.poll_event().is_some() || engine.poll_retired().is_some() {}
        }
    }
}

impl StreamsOutcome {
    fn note(&mut self, at: Nanos, frame_bytes: usize) {
        let at_s = at as f64 / 1e9;
        if self.packets == 0 {
            self.first_s = at_s;
        }
        self.last_s = at_s;
        self.packets += 1;
        self.bytes += frame_bytes as u64 + allosaur_engine::time::FCS_BYTES;
    }
}

fn control_config(ports: usize, cores: usize, checksums: Checksums) -> ControlConfig {
    let port = PortConfig {
        driver: "simulated".to_owned(),
        description: "a port in virtual time".to_owned(),
        interface: None,
        numa_node: None,
        line_rate_bps: LINE_RATE_BPS,
        frame_bytes_max: PACKET_BYTES_MAX,
        link: LinkOwner::Server { peer: None },
        hw_mac: SOURCE_MAC,
        destination_mac: DESTINATION_MAC,
        checksums,
        shares_inner_flows: true,
        cores: (0..cores).collect(),
    };
    ControlConfig {
        ports: vec![port; ports],
        data_cores: cores,
        modes: Modes::Stateless,
        hostname: USER.to_owned(),
        core_type: USER.to_owned(),
        started: String::new(),
        build: crate::control::BuildInfo {
            version: String::new(),
            date: String::new(),
            time: String::new(),
            by: String::new(),
        },
        marking: Tagging::Simulator,
        has_emulation: false,
        has_linux_stack: false,
        nodes_owner: None,
        seed: 0,
    }
}

/// Keeps what the engines send, each frame with the time that it is due.
#[derive(Debug, Default)]
struct Recorder {
    frames: Vec<Recorded>,
    bytes: Vec<u8>,
    registered: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Recorded {
    at: Nanos,
    start: usize,
    len: usize,
}

impl Recorder {
    fn slot(&mut self, at: Nanos, len: usize) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        self.frames.push(Recorded { at, start, len });
        &mut self.bytes[start..]
    }

    /// The frames by the time that they are due; those of one time in the order of sending.
    fn in_order(&mut self) -> impl Iterator<Item = (Nanos, &[u8])> {
        self.frames.sort_by_key(|frame| frame.at);
        let bytes = &self.bytes;
        self.frames
            .iter()
            .map(|frame| (frame.at, &bytes[frame.start..frame.start + frame.len]))
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
    }
}

impl TxQueues for Recorder {
    fn with_queue<J: QueueOp>(&mut self, _port: PortIndex, job: J) -> J::Output {
        job.run(self)
    }
}

impl Transmit for Recorder {
    const REUSES: bool = false;

    fn slot(&mut self, at: Nanos, len: usize) -> Option<&mut [u8]> {
        Some(Recorder::slot(self, at, len))
    }

    fn repeat(&mut self, frame: FrameHandle, first: Due, gap: Gap, count: u32) -> u32 {
        let bytes = std::mem::take(&mut self.registered[frame.0 as usize]);
        let mut due = first;
        for _ in 0..count {
            Recorder::slot(self, due.at, bytes.len()).copy_from_slice(&bytes);
            due = due.after(gap);
        }
        self.registered[frame.0 as usize] = bytes;
        count
    }

    fn reuse(&mut self, at: Nanos, frame: FrameHandle, len: usize) -> Option<&mut [u8]> {
        let bytes = self.registered[frame.0 as usize][..len].to_vec();
        let slot = Recorder::slot(self, at, len);
        slot.copy_from_slice(&bytes);
        Some(slot)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameHandle> {
        self.registered.push(frame.to_vec());
        Some(FrameHandle(self.registered.len() as u32 - 1))
    }

    fn unregister(&mut self, frame: FrameHandle) {
        self.registered[frame.0 as usize] = Vec::new();
    }
}
