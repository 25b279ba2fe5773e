//! The observer: what the receive thread does with frames besides counting them. A state machine
//! without I/O.
//!
//! Drive it like this: call [`Observer::poll_transmit`] at the time that
//! [`Observer::poll_timeout`] says; ask [`Observer::watches`] before a received frame is shown with
//! [`Observer::handle_received`]; show every copy of a sent frame with
//! [`Observer::handle_sent`]; then send all that [`Observer::poll_transmit`] gives.

use std::collections::VecDeque;

use allosaur_engine::capture::{Capture, CaptureSettings, Origin};
use allosaur_engine::echo::{EchoArrival, Echoes};
use allosaur_engine::host::Host;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use super::{
    Answer, CAPTURES_MAX, CaptureState, Endpoint, PacketSink, PortState, Reception, Request,
    ServiceMode, Wire, queue_settings,
};
use crate::filter::Filter;

/// Frames that are taken from one wire before the next has its turn.
const WIRE_BUDGET: usize = 64;

/// Answers that wait to be sent; requests beyond them are not answered.
const REPLIES_MAX: usize = 1024;

/// A filter as captures want it.
type Wanted = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Watches the frames of all ports.
#[derive(Debug)]
pub struct Observer {
    captures: Vec<Watching>,
    next_number: u32,
    ports: Vec<PortSide>,
    /// The last echo streams, also when they are over: what they measured is still told.
    echoes: Option<Echoes>,
    /// Frames of echo streams may arrive, or are to be sent.
    is_echoing: bool,
    /// The ports of echo streams while there are any, as bits.
    measured_ports: u64,
    /// What ports answer as hosts, until it is sent.
    replies: VecDeque<(PortIndex, Vec<u8>)>,
    /// Buffers of replies that were sent.
    spare: Vec<Vec<u8>>,
}

/// One capture.
struct Watching {
    number: u32,
    started_at: Nanos,
    filter: String,
    capture: Capture<Wanted>,
    endpoint: Option<(Endpoint, Box<dyn PacketSink>)>,
    /// Frames that were lost on the way here, wanted or not, and packets on the way to the
    /// endpoint.
    lost: u64,
}

/// What watches one port alone.
#[derive(Debug, Default)]
struct PortSide {
    host: Option<Host>,
    mode: ServiceMode,
    queue: Option<Queue>,
    wire: Option<Joined>,
    reception: Reception,
    /// Whether anybody watches what it receives.
    watched: bool,
}

/// A receive queue.
struct Queue {
    packets_max: u32,
    capture: Capture<Wanted>,
}

/// A socket that a port is joined to.
#[derive(Debug)]
struct Joined {
    endpoint: String,
    filter: Filter,
    wire: Box<dyn Wire>,
}

impl Observer {
    /// An observer of so many ports; nobody watches yet.
    pub fn new(ports: usize) -> Observer {
        Observer {
            captures: Vec::new(),
            next_number: 1,
            ports: std::iter::repeat_with(PortSide::default)
                .take(ports)
                .collect(),
            echoes: None,
            is_echoing: false,
            measured_ports: 0,
            replies: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Does what is asked. Ports that it names are there.
    pub fn handle(&mut self, request: Request, now: Nanos) -> Answer {
        let answer = match request {
            Request::StartCapture {
                settings,
                filter,
                endpoint,
            } => self.start_capture(now, settings, filter, endpoint),
            Request::StopCapture(number) => self.stop_capture(number),
            Request::FetchCapture {
                capture,
                packets_max,
            } => self.fetch_capture(capture, packets_max),
            Request::RemoveCapture(number) => self.remove_capture(number),
            Request::ListCaptures => {
                Answer::Captures(self.captures.iter().map(Watching::state).collect())
            }
            Request::TakeQueue(port) => self.take_queue(port),
            Request::PortState(port) => Answer::Port(self.ports[usize::from(port)].state()),
            Request::StartEcho(terms) => {
                self.echoes = Some(Echoes::new(terms, now));
                self.is_echoing = true;
                Answer::Done
            }
            Request::SetEchoRate(rate_pps) => {
                self.change_echoes(|echoes| echoes.set_rate(now, rate_pps))
            }
            Request::StopEcho => self.change_echoes(|echoes| echoes.stop(now)),
            Request::ReadEcho => {
                Answer::Echo(self.echoes.as_ref().map_or(Vec::new(), Echoes::readout))
            }
            of_port => self.set_up_port(of_port, now),
        };
        self.note_watched();
        answer
    }

    /// Ports whose sent frames must be shown, as bits.
    pub fn sending_ports(&self) -> u64 {
        let captures = self.captures.iter().filter(|c| c.capture.is_active());
        captures.fold(0, |ports, c| ports | c.capture.settings().transmit_ports)
    }

    /// How each port shall receive; may change when a request is handled.
    pub fn receptions(&self) -> impl Iterator<Item = Reception> + '_ {
        self.ports.iter().map(|side| Reception {
            service: side.mode,
            ..side.reception
        })
    }

    /// Whether anybody watches what a port receives.
    #[inline]
    pub fn watches(&self, port: usize) -> bool {
        self.ports[port].watched
    }

    /// The ports of which anybody watches what they receive, as bits.
    pub fn watched_ports(&self) -> u64 {
        let ports = (0..).zip(&self.ports);
        let watched = ports.filter(|(_, side)| side.watched);
        watched.fold(0, |ports, (port, _)| ports | 1 << port)
    }

    /// When [`Observer::poll_transmit`] has something to send that cannot be late.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let echoes = self.echoes.as_ref().filter(|_| self.is_echoing);
        echoes.and_then(Echoes::poll_timeout)
    }

    /// The ports of which frames are measured here by the time of their arrival, as bits: a sleep
    /// would be measured too.
    pub fn measured_ports(&self) -> u64 {
        self.measured_ports
    }

    /// The ports of which somebody wants all that they receive, as bits: captures, queues, sockets
    /// and service mode. A host alone only wants what concerns it.
    pub fn capturing_ports(&self) -> u64 {
        let ports = (0..).zip(&self.ports);
        let captured = ports.filter(|(port, side)| {
            let mut captures = self.captures.iter();
            side.queue.is_some()
                || side.wire.is_some()
                || captures.any(|c| c.capture.wants(*port, Origin::Received))
        });
        captured.fold(0, |ports, (port, _)| ports | 1 << port)
    }

    /// Whether anybody watches anything.
    pub fn is_idle(&self) -> bool {
        !self.is_echoing && self.captures.is_empty() && self.ports.iter().all(PortSide::is_idle)
    }

    /// Shows a frame that a port received.
    pub fn handle_received(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        if !self.is_echo(at, port, frame) {
            self.answer_as_host(at, port, frame);
        }
        let side = &mut self.ports[usize::from(port)];
        if !side.mode.shows(frame) {
            return;
        }
        if let Some(queue) = &mut side.queue {
            queue.capture.offer(at, port, Origin::Received, frame);
        }
        if let Some(joined) = &mut side.wire {
            joined.offer(frame);
        }
        show(&mut self.captures, at, port, Origin::Received, frame);
    }

    /// Shows a frame that a port sent.
    pub fn handle_sent(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        show(&mut self.captures, at, port, Origin::Transmitted, frame);
    }

    /// Takes note of frames, sent or received, that could not be shown.
    pub fn note_lost(&mut self, origin: Origin, frames: u64) {
        let captures = self.captures.iter_mut();
        for watching in captures.filter(|c| c.capture.is_active()) {
            let settings = watching.capture.settings();
            let ports = match origin {
                Origin::Transmitted => settings.transmit_ports,
                Origin::Received => settings.receive_ports,
            };
            if ports != 0 {
                watching.lost += frames;
            }
        }
    }

    /// Hands the frames that ports shall send to `send`, which says whether there was room; one
    /// that finds none is lost. Returns how many there were.
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        mut send: impl FnMut(PortIndex, &[u8]) -> bool,
    ) -> usize {
        let mut frames = 0;
        let captures = &mut self.captures;
        let mut send = |port, frame: &[u8]| {
            frames += 1;
            let sent = send(port, frame);
            if sent {
                show(captures, now, port, Origin::Transmitted, frame);
            }
            sent
        };
        while let Some((port, reply)) = self.replies.pop_front() {
            send(port, &reply);
            self.spare.push(reply);
        }
        for (port, side) in (0..).zip(&mut self.ports) {
            side.poll_transmit(now, &mut self.spare, |frame| {
                send(port, frame);
            });
        }
        if let Some(echoes) = self.echoes.as_mut().filter(|_| self.is_echoing) {
            echoes.poll_transmit(now, &mut send);
            if !echoes.is_alive(now) {
                self.is_echoing = false;
                self.note_watched();
            }
        }
        frames
    }

    /// Whether a frame belongs to echo streams, which take it then.
    fn is_echo(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) -> bool {
        let echoes = self.echoes.as_mut().filter(|_| self.is_echoing);
        let arrival = echoes.map(|echoes| echoes.handle_frame(at, port, frame));
        arrival == Some(EchoArrival::Disposition)
    }

    fn change_echoes(&mut self, change: impl FnOnce(&mut Echoes)) -> Answer {
        match &mut self.echoes {
            Some(echoes) => {
                change(echoes);
                Answer::Done
            }
            None => Answer::Unknown,
        }
    }

    fn answer_as_host(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        let Some(host) = &mut self.ports[usize::from(port)].host else {
            return;
        };
        if host.is_seeking() {
            host.hear_gateway(at, frame);
        }
        if host.is_silent() || self.replies.len() >= REPLIES_MAX {
            return;
        }
        let mut reply = self.spare.pop().unwrap_or_default();
        if host.handle_frame(frame, &mut reply) {
            self.replies.push_back((port, reply));
        } else {
            self.spare.push(reply);
        }
    }

    fn start_capture(
        &mut self,
        now: Nanos,
        settings: CaptureSettings,
        filter: Filter,
        endpoint: Option<(Endpoint, Box<dyn PacketSink>)>,
    ) -> Answer {
        if self.captures.len() >= CAPTURES_MAX {
            return Answer::Full;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.captures.push(Watching {
            number,
            started_at: now,
            filter: filter.text().to_owned(),
            capture: Capture::new(settings, Box::new(move |frame| filter.matches(frame))),
            endpoint,
            lost: 0,
        });
        Answer::Started { capture: number }
    }

    fn capture(&mut self, number: u32) -> Option<&mut Watching> {
        self.captures.iter_mut().find(|c| c.number == number)
    }

    fn stop_capture(&mut self, number: u32) -> Answer {
        let Some(watching) = self.capture(number) else {
            return Answer::Unknown;
        };
        watching.capture.stop();
        let endpoint = watching.endpoint.as_ref();
        Answer::Stopped {
            pending: watching.pending(),
            endpoint: endpoint.map_or(String::new(), |(endpoint, _)| endpoint.text.clone()),
        }
    }

    fn fetch_capture(&mut self, number: u32, packets_max: usize) -> Answer {
        let Some(watching) = self.capture(number) else {
            return Answer::Unknown;
        };
        let packets = watching.capture.fetch(packets_max);
        Answer::Packets {
            packets,
            pending: watching.pending(),
            started_at: watching.started_at,
        }
    }

    fn remove_capture(&mut self, number: u32) -> Answer {
        let before = self.captures.len();
        self.captures.retain(|c| c.number != number);
        if self.captures.len() < before {
            Answer::Done
        } else {
            Answer::Unknown
        }
    }

    fn take_queue(&mut self, port: PortIndex) -> Answer {
        let side = &mut self.ports[usize::from(port)];
        let Some(queue) = &mut side.queue else {
            return Answer::Unknown;
        };
        Answer::Packets {
            packets: queue.capture.fetch(usize::MAX),
            pending: 0,
            started_at: 0,
        }
    }

    fn set_up_port(&mut self, request: Request, now: Nanos) -> Answer {
        match request {
            Request::SetHost { port, settings } => {
                let host = &mut self.ports[usize::from(port)].host;
                match host {
                    Some(host) => host.configure(settings, now),
                    None => *host = Some(Host::new(settings, now)),
                }
            }
            Request::SetQueue { port, packets_max } => {
                let queue = (packets_max > 0).then(|| Queue::new(port, packets_max));
                self.ports[usize::from(port)].queue = queue;
            }
            Request::SetReception { port, reception } => {
                self.ports[usize::from(port)].reception = reception;
            }
            Request::SetService { port, mode } => self.ports[usize::from(port)].mode = mode,
            Request::OpenWire {
                port,
                endpoint,
                filter,
                wire,
            } => {
                self.ports[usize::from(port)].wire = Some(Joined {
                    endpoint,
                    filter,
                    wire,
                });
            }
            Request::SetWireFilter { port, filter } => {
                let Some(joined) = &mut self.ports[usize::from(port)].wire else {
                    return Answer::Unknown;
                };
                joined.filter = filter;
            }
            Request::CloseWire(port) => self.ports[usize::from(port)].wire = None,
            _ => return Answer::Unknown,
        }
        Answer::Done
    }

    fn note_watched(&mut self) {
        let captures = &self.captures;
        let echoes = self.echoes.as_ref().filter(|_| self.is_echoing);
        self.measured_ports = 0;
        for (port, side) in (0..).zip(&mut self.ports) {
            let captured = captures
                .iter()
                .any(|c| c.capture.wants(port, Origin::Received));
            let echoing = echoes.is_some_and(|echoes| echoes.has(port));
            self.measured_ports |= u64::from(echoing) << port;
            side.watched = captured || echoing || !side.is_idle();
        }
    }
}

fn show(captures: &mut [Watching], at: Nanos, port: PortIndex, origin: Origin, frame: &[u8]) {
    for watching in captures {
        watching.offer(at, port, origin, frame);
    }
}

impl Watching {
    fn offer(&mut self, at: Nanos, port: PortIndex, origin: Origin, frame: &[u8]) {
        let Some((_, sink)) = &mut self.endpoint else {
            return self.capture.offer(at, port, origin, frame);
        };
        if let Some(packet) = self.capture.hand_on(at, port, origin, frame) {
            self.lost += u64::from(!sink.push(packet));
        }
    }

    /// Packets to be fetched, or on the way to the endpoint.
    fn pending(&self) -> u64 {
        match &self.endpoint {
            Some((_, sink)) => sink.pending(),
            None => self.capture.counters().kept,
        }
    }

    fn state(&self) -> CaptureState {
        let counters = self.capture.counters();
        CaptureState {
            number: self.number,
            settings: *self.capture.settings(),
            filter: self.filter.clone(),
            is_active: self.capture.is_active(),
            matched: counters.matched,
            fetched: counters.fetched,
            count: self.pending(),
            bytes: counters.bytes,
            lost: self.lost,
            endpoint: self.endpoint.as_ref().map(|(endpoint, _)| endpoint.clone()),
        }
    }
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watching").field(&self.state()).finish()
    }
}

impl PortSide {
    fn is_idle(&self) -> bool {
        let is_host = self.host.as_ref().is_some_and(|host| !host.is_silent());
        !is_host && self.queue.is_none() && self.wire.is_none()
    }

    /// Hands what the port announces as a host, and what its socket wants sent, to `send`.
    fn poll_transmit(&mut self, now: Nanos, spare: &mut Vec<Vec<u8>>, mut send: impl FnMut(&[u8])) {
        let due = |host: &&mut Host| host.poll_timeout().is_some_and(|at| at <= now);
        if let Some(host) = self.host.as_mut().filter(due) {
            let mut frame = spare.pop().unwrap_or_default();
            while host.poll_transmit(now, &mut frame) {
                send(&frame);
            }
            spare.push(frame);
        }
        let Some(joined) = &mut self.wire else {
            return;
        };
        for _ in 0..WIRE_BUDGET {
            let Some(frame) = joined.wire.receive() else {
                break;
            };
            send(&frame);
        }
    }

    fn state(&self) -> PortState {
        let wire = self.wire.as_ref();
        PortState {
            queue: self.queue.as_ref().map(Queue::fill),
            wire: wire.map(|w| (w.endpoint.clone(), w.filter.text().to_owned())),
            gateway_mac: self.host.as_ref().and_then(Host::gateway_mac),
        }
    }
}

impl Queue {
    fn new(port: PortIndex, packets_max: u32) -> Queue {
        let all: Wanted = Box::new(|_| true);
        Queue {
            packets_max,
            capture: Capture::new(queue_settings(port, packets_max), all),
        }
    }

    fn fill(&self) -> (u32, u64) {
        (self.packets_max, self.capture.counters().kept)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.fill()).finish()
    }
}

impl Joined {
    fn offer(&mut self, frame: &[u8]) {
        if self.filter.matches(frame) {
            self.wire.push(frame);
        }
    }
}
