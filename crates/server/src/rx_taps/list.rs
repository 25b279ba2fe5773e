//! All taps on the frames of all ports: what the receive thread does with frames besides counting
//! them. A state machine without I/O.
//!
//! Drive it like this: call [`RxTaps::poll_transmit`] at the time that [`RxTaps::poll_timeout`] says;
//! ask [`RxTaps::watches`] before a received frame is shown with [`RxTaps::handle_received`]; show every
//! copy of a sent frame with [`RxTaps::handle_sent`]; then send all that [`RxTaps::poll_transmit`]
//! gives.

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use super::capture::Captures;
use super::echo::EchoStreams;
use super::host::Hosts;
use super::message::{Answer, Request};
use super::nodes::LinuxNodes;
use super::port::{PortAnswer, PortRequest, PortState, Reception};
use super::rx_queue::RxQueues;
use super::rx_tap::{RxTap, bit};
use super::socket::PortSockets;

/// The list of all kinds of taps, in the order in which they see a frame: echo streams before
/// hosts, which would answer their requests, and so nodes.
fn all_taps(ports: usize) -> Vec<Box<dyn RxTap>> {
    vec![
        Box::new(EchoStreams::default()),
        Box::new(LinuxNodes::new(ports)),
        Box::new(Hosts::new(ports)),
        Box::new(RxQueues::new(ports)),
        Box::new(PortSockets::new(ports)),
        Box::new(Captures::default()),
    ]
}

/// The taps of all ports.
#[derive(Debug)]
pub struct RxTaps {
    taps: Vec<RxTapEntry>,
    /// How each port receives, service mode included.
    receptions: Vec<Reception>,
}

/// A tap, with what it wants.
#[derive(Debug)]
struct RxTapEntry {
    tap: Box<dyn RxTap>,
    answers: bool,
    filtered: bool,
    changes: bool,
    received: u64,
    sent: u64,
    measured: u64,
}

impl RxTapEntry {
    fn new(tap: Box<dyn RxTap>) -> RxTapEntry {
        let mut entry = RxTapEntry {
            answers: tap.answers(),
            filtered: tap.is_filtered(),
            changes: tap.wants_change(),
            tap,
            received: 0,
            sent: 0,
            measured: 0,
        };
        entry.note_wants();
        entry
    }

    fn note_wants(&mut self) {
        self.received = self.tap.wants(Origin::Received);
        self.sent = self.tap.wants(Origin::Transmitted);
        self.measured = self.tap.measured_ports();
    }

    #[inline]
    fn offer_sent(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        if self.sent & bit(port.into()) != 0 {
            self.tap.handle_frame(at, port, Origin::Transmitted, frame);
        }
    }
}

impl RxTaps {
    /// RxTaps on so many ports; none wants anything yet.
    pub fn new(ports: usize) -> RxTaps {
        RxTaps {
            taps: all_taps(ports).into_iter().map(RxTapEntry::new).collect(),
            receptions: vec![Reception::default(); ports],
        }
    }

    /// The same with another, which sees frames after all others.
    #[must_use]
    pub fn with(mut self, tap: Box<dyn RxTap>) -> RxTaps {
        self.taps.push(RxTapEntry::new(tap));
        self
    }

    /// Does what is asked. Ports that it names are there.
    pub fn handle(&mut self, request: impl Into<Request>, now: Nanos) -> Answer {
        let answer = match request.into() {
            Request::Port(request) => self.handle_port_request(request).into(),
            request => self.ask_taps(request, now),
        };
        self.taps.iter_mut().for_each(RxTapEntry::note_wants);
        answer
    }

    fn handle_port_request(&mut self, request: PortRequest) -> PortAnswer {
        match request {
            PortRequest::State(port) => return PortAnswer::State(self.port_state(port)),
            PortRequest::SetReception { port, reception } => {
                let kept = &mut self.receptions[usize::from(port)];
                *kept = Reception {
                    service: kept.service,
                    ..reception
                };
            }
            PortRequest::SetService { port, mode } => {
                self.receptions[usize::from(port)].service = mode;
            }
        }
        PortAnswer::Done
    }

    fn ask_taps(&mut self, mut request: Request, now: Nanos) -> Answer {
        for entry in &mut self.taps {
            match entry.tap.handle_request(request, now) {
                ControlFlow::Break(answer) => return answer,
                ControlFlow::Continue(others) => request = others,
            }
        }
        Answer::NoTap
    }

    fn port_state(&self, port: PortIndex) -> PortState {
        let mut state = PortState::default();
        for entry in &self.taps {
            entry.tap.describe_port(port, &mut state);
        }
        state
    }

    /// Asks those taps what they want that change their minds by themselves.
    #[inline]
    pub fn refresh(&mut self) {
        for entry in self.taps.iter_mut().filter(|entry| entry.changes) {
            entry.note_wants();
        }
    }

    /// Ports whose sent frames must be shown, as bits.
    pub fn sending_ports(&self) -> u64 {
        self.taps.iter().fold(0, |ports, entry| ports | entry.sent)
    }

    /// How each port shall receive; may change when a request is handled.
    pub fn receptions(&self) -> impl Iterator<Item = Reception> + '_ {
        self.receptions.iter().copied()
    }

    /// Whether a tap wants what a port receives.
    #[inline]
    pub fn watches(&self, port: usize) -> bool {
        self.watched_ports() & bit(port) != 0
    }

    /// The ports of which a tap wants what they receive, as bits.
    #[inline]
    pub fn watched_ports(&self) -> u64 {
        self.taps
            .iter()
            .fold(0, |ports, entry| ports | entry.received)
    }

    /// When [`RxTaps::poll_transmit`] has something to send that cannot be late.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.taps
            .iter()
            .filter_map(|entry| entry.tap.poll_timeout())
            .min()
    }

    /// The same of taps whose timeouts may not even be a little late.
    pub fn poll_urgent_timeout(&self) -> Option<Nanos> {
        let urgent = self.taps.iter().filter(|entry| !entry.tap.is_deferrable());
        urgent.filter_map(|entry| entry.tap.poll_timeout()).min()
    }

    /// The ports of which frames are measured here by the time of their arrival, as bits: a sleep
    /// would be measured too.
    #[inline]
    pub fn measured_ports(&self) -> u64 {
        self.taps
            .iter()
            .fold(0, |ports, entry| ports | entry.measured)
    }

    /// The ports of which a tap wants all that they receive, as bits. Who answers only wants what
    /// concerns it.
    pub fn capturing_ports(&self) -> u64 {
        let watching = self.taps.iter().filter(|entry| !entry.answers);
        watching.fold(0, |ports, entry| ports | entry.received)
    }

    /// What becomes readable when a tap has something to send that came from outside of this thread.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let ports = 0..self.receptions.len();
        let taps = self.taps.iter();
        taps.flat_map(move |entry| ports.clone().filter_map(|port| entry.tap.file_of(port)))
    }

    /// Whether no tap has anything to see or to send.
    pub fn is_idle(&self) -> bool {
        self.taps.iter().all(|entry| entry.tap.is_idle())
    }

    /// Has taps ask the cache for what a burst of frames of a port needs, before each is shown.
    #[inline]
    pub fn prefetch<'f>(&self, port: PortIndex, frames: impl Iterator<Item = &'f [u8]> + Clone) {
        for entry in &self.taps {
            if entry.received & bit(port.into()) != 0 {
                entry.tap.prefetch(port, &mut frames.clone());
            }
        }
    }

    /// Shows a frame that a port received.
    pub fn handle_received(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        let is_shown = self.receptions[usize::from(port)].service.shows(frame);
        let mut is_taken = false;
        for entry in &mut self.taps {
            let is_for = (is_shown || !entry.filtered) && !(entry.answers && is_taken);
            if is_for && entry.received & bit(port.into()) != 0 {
                is_taken |= entry.tap.handle_frame(at, port, Origin::Received, frame);
            }
        }
    }

    /// Shows a frame that a port sent.
    pub fn handle_sent(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        for entry in &mut self.taps {
            entry.offer_sent(at, port, frame);
        }
    }

    /// Takes note of frames, sent or received, that could not be shown.
    pub fn note_lost(&mut self, origin: Origin, frames: u64) {
        for entry in &mut self.taps {
            entry.tap.note_lost(origin, frames);
        }
    }

    /// Hands the frames that ports shall send to `send`, which says whether there was room; one
    /// that finds none is lost. Those that are sent are shown to the other taps. Returns how many
    /// there were.
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        mut send: impl FnMut(PortIndex, &[u8]) -> bool,
    ) -> usize {
        let mut frames = 0;
        for place in 0..self.taps.len() {
            let (before, rest) = self.taps.split_at_mut(place);
            let Some((sender, behind)) = rest.split_first_mut() else {
                break;
            };
            let mut send_and_show = |port, frame: &[u8]| {
                frames += 1;
                let is_sent = send(port, frame);
                if is_sent {
                    for entry in before.iter_mut().chain(behind.iter_mut()) {
                        entry.offer_sent(now, port, frame);
                    }
                }
                is_sent
            };
            sender.tap.poll_transmit(now, &mut send_and_show);
            if sender.measured != 0 {
                // Echo streams that were stopped end when the last answer has had its time.
                sender.note_wants();
            }
        }
        frames
    }
}
