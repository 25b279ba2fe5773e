//! Echo streams beside flows, by which the latency between ports is measured.
//!
//! A port of clients asks: so many echo requests a second. Its port of servers measures each on its
//! way there and answers with a new stamp, which the first measures on its way back. Where a real
//! host answers in its place, with the stamp that it got, the way there and back is measured.

mod frame;

use std::collections::VecDeque;
use std::net::IpAddr;

use allosaur_packet::MacAddress;
use allosaur_packet::link::vlan::tags_of;

use crate::latency::histogram::{SLOTS, slot};
use crate::latency::{Histogram, LatencyStats, Meter};
use crate::stats::counters;
use crate::time::{Due, Gap, MILLISECOND, Nanos, SECOND};
use crate::transmit::PortIndex;
use frame::{Condition, Echo, Stamp};

/// Requests that are later than this are given up and counted.
const LATE_MAX: Nanos = 100 * MILLISECOND;
/// Requests of a port in a turn at most.
const BURST_MAX: u32 = 64;
/// Answers that wait to be sent; requests beyond them are not answered.
const ANSWERS_MAX: usize = 1024;
/// What is under way when the streams are stopped is still measured for so long.
const LINGER: Nanos = SECOND;

/// What echo streams there shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct EchoTerms {
    /// A number by which messages of another time are known.
    pub run: u32,
    /// Requests a second of each port that asks; more than 0.
    pub rate_pps: f64,
    /// How long they ask; `None` is until they are stopped.
    pub duration: Option<Nanos>,
    /// The ports that take part.
    pub ports: Vec<EchoPort>,
}

/// A port that takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct EchoPort {
    /// Its number.
    pub port: PortIndex,
    /// The port at the other end.
    pub partner: PortIndex,
    /// What it does.
    pub role: EchoRole,
    /// Its MAC address.
    pub own_mac: MacAddress,
    /// The VLANs of its requests, outer first.
    pub vlans: Vec<u16>,
    /// Its address.
    pub own_address: IpAddr,
    /// The address at the other end; of the same version.
    pub other_address: IpAddr,
}

/// What a port does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoRole {
    /// It sends requests.
    Asks {
        /// Where its frames go: the other port, or the gateway.
        peer_mac: MacAddress,
    },
    /// It answers requests.
    Answers,
}

counters! {
    /// What one port counts of its echo messages. All only grow.
    EchoCounters;
    /// Messages sent.
    sent,
    /// Messages that could not be sent in time.
    not_sent,
    /// Messages that arrived and were measured.
    received,
    /// Messages to our address without a stamp.
    no_stamp,
    /// Messages with the stamp of another run, or of another port.
    foreign,
    /// Messages whose lengths are wrong.
    length,
    /// Messages whose IPv4 header has a wrong checksum.
    network_checksum,
    /// Messages with a wrong checksum.
    transport_checksum,
}

/// All that was measured of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct EchoReadout {
    /// The port.
    pub port: PortIndex,
    /// What it counted.
    pub counters: EchoCounters,
    /// Times, jitter and order of what arrived.
    pub latency: LatencyStats,
    /// Its times, finely sorted.
    pub times: Histogram,
}

/// What becomes of a frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoArrival {
    /// It belongs to the echo streams, and took so long.
    Measured(Nanos),
    /// It belongs to the echo streams; there is no time to be had of it.
    Echo,
    /// It is somebody else's.
    Other,
}

/// The echo streams of all ports.
///
/// Give it each frame that arrived at its ports with [`Echoes::handle_frame`]; call
/// [`Echoes::poll_transmit`] at the time that [`Echoes::poll_timeout`] says, and after frames
/// arrived.
#[derive(Debug)]
pub struct Echoes {
    run: u32,
    gap: Gap,
    /// From when on they ask no more.
    until: Nanos,
    /// By the number of the port.
    ports: Vec<Option<Side>>,
    /// Requests to be answered, as they arrived.
    asked: VecDeque<(PortIndex, Vec<u8>)>,
    /// Buffers of requests that were answered.
    spare: Vec<Vec<u8>>,
}

/// One port.
#[derive(Debug)]
struct Side {
    terms: EchoPort,
    tags: Vec<u8>,
    /// The number of the next message.
    sequence: u32,
    due: Due,
    counters: EchoCounters,
    meter: Meter,
    slots: Box<[u64]>,
}

/// What was found out about a message.
#[derive(Clone, Copy, Debug, Default)]
struct Disposition {
    /// It is right so far that a host would answer it.
    is_right: bool,
    /// How long it took, when it was measured.
    latency: Option<Nanos>,
}

impl Disposition {
    /// A message that is right, and nothing to be measured.
    const RIGHT: Disposition = Disposition {
        is_right: true,
        latency: None,
    };
}

impl Echoes {
    /// Streams that begin at `now`.
    pub fn new(terms: EchoTerms, now: Nanos) -> Echoes {
        let ports = terms.ports.iter().map(|port| usize::from(port.port) + 1);
        let mut sides: Vec<Option<Side>> = Vec::new();
        sides.resize_with(ports.max().unwrap_or(0), || None);
        for port in terms.ports {
            let place = usize::from(port.port);
            sides[place] = Some(Side::new(port, now));
        }
        Echoes {
            run: terms.run,
            gap: Gap::from_pps(terms.rate_pps),
            until: now.saturating_add(terms.duration.unwrap_or(Nanos::MAX)),
            ports: sides,
            asked: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Another rate from now on.
    pub fn set_rate(&mut self, now: Nanos, rate_pps: f64) {
        self.gap = Gap::from_pps(rate_pps);
        for side in self.ports.iter_mut().flatten() {
            // The next request keeps its time, or comes sooner.
            let soonest = Due::at(now).after(self.gap);
            if soonest.at < side.due.at {
                side.due = soonest;
            }
        }
    }

    /// Asks no more from `now` on; what was due before is still sent. What is under way is
    /// answered and measured for another second.
    pub fn stop(&mut self, now: Nanos) {
        self.until = self.until.min(now);
    }

    /// Whether frames of these streams may still arrive.
    pub fn is_alive(&self, now: Nanos) -> bool {
        now < self.until.saturating_add(LINGER)
    }

    /// Whether this port takes part.
    pub fn has(&self, port: PortIndex) -> bool {
        matches!(self.ports.get(usize::from(port)), Some(Some(_)))
    }

    /// A frame arrived at a port.
    pub fn handle_frame(&mut self, now: Nanos, port: PortIndex, frame: &[u8]) -> EchoArrival {
        let Some(Some(side)) = self.ports.get_mut(usize::from(port)) else {
            return EchoArrival::Other;
        };
        let Some((echo, condition)) = Echo::read(frame) else {
            return EchoArrival::Other;
        };
        let stamp = Stamp::parse(echo.data);
        // Addresses may have been translated on the way.
        let is_ours = echo.addresses.1 == side.terms.own_address
            || stamp.is_some_and(|stamp| stamp.run == self.run);
        if echo.is_reply != side.asks() || !is_ours {
            return EchoArrival::Other;
        }
        let found = side.take(self.run, now, stamp, condition);
        let is_request = found.is_right && !echo.is_reply && echo.macs.1.is_unicast();
        if is_request && self.asked.len() < ANSWERS_MAX {
            let mut request = self.spare.pop().unwrap_or_default();
            request.clear();
            request.extend(frame);
            self.asked.push_back((port, request));
        }
        found
            .latency
            .map_or(EchoArrival::Echo, EchoArrival::Measured)
    }

    /// Hands all frames that are due at `now` to `send`, which says whether there was room.
    /// Returns how many there were.
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        mut send: impl FnMut(PortIndex, &[u8]) -> bool,
    ) -> usize {
        let mut frames = 0;
        let mut frame = self.spare.pop().unwrap_or_default();
        while let Some((port, request)) = self.asked.pop_front() {
            if let Some(Some(side)) = self.ports.get_mut(usize::from(port)) {
                side.answer(self.run, now, &request, &mut frame);
                side.note_sent(send(port, &frame));
                frames += 1;
            }
            self.spare.push(request);
        }
        let (run, gap, until) = (self.run, self.gap, self.until);
        for side in self.ports.iter_mut().flatten() {
            frames += side.ask_due(run, (now, until), gap, &mut frame, &mut send);
        }
        self.spare.push(frame);
        frames
    }

    /// When [`Echoes::poll_transmit`] has the next request to send.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let asking = self.ports.iter().flatten().filter(|side| side.asks());
        let due = asking.map(|side| side.due.at).min();
        due.filter(|due| *due < self.until)
    }

    /// What each port counted and measured, without the fine times: next to no work.
    pub fn counted(&self) -> impl Iterator<Item = (PortIndex, &EchoCounters, &LatencyStats)> {
        let sides = self.ports.iter().flatten();
        sides.map(|side| (side.terms.port, &side.counters, side.meter.stats()))
    }

    /// All that was measured.
    pub fn readout(&self) -> Vec<EchoReadout> {
        self.ports.iter().flatten().map(Side::readout).collect()
    }
}

impl Side {
    fn new(terms: EchoPort, now: Nanos) -> Side {
        Side {
            tags: tags_of(&terms.vlans),
            terms,
            sequence: 0,
            due: Due::at(now),
            counters: EchoCounters::default(),
            meter: Meter::default(),
            slots: vec![0; SLOTS].into(),
        }
    }

    fn asks(&self) -> bool {
        matches!(self.terms.role, EchoRole::Asks { .. })
    }

    /// Takes note of a message.
    fn take(
        &mut self,
        run: u32,
        now: Nanos,
        stamp: Option<Stamp>,
        condition: Condition,
    ) -> Disposition {
        let counters = &mut self.counters;
        match condition {
            Condition::Whole => {}
            Condition::Length => counters.length += 1,
            Condition::NetworkChecksum => counters.network_checksum += 1,
            Condition::TransportChecksum => counters.transport_checksum += 1,
        }
        if condition != Condition::Whole {
            return Disposition::default();
        }
        let Some(stamp) = stamp else {
            counters.no_stamp += 1;
            return Disposition::RIGHT;
        };
        // A real host returns what we sent ourselves.
        let is_returned = self.asks() && stamp.port == self.terms.port;
        if stamp.run != run || stamp.port != self.terms.partner && !is_returned {
            self.counters.foreign += 1;
            return Disposition::RIGHT;
        }
        self.counters.received += 1;
        let latency = self.meter.record(now, stamp.sequence, stamp.sent_ns);
        if let Some(latency_ns) = latency {
            self.slots[slot(latency_ns)] += 1;
        }
        Disposition {
            latency,
            ..Disposition::RIGHT
        }
    }

    /// Writes the answer to a request. A message of our own gets a new stamp; any other comes back
    /// as it is, as from any host.
    fn answer(&self, run: u32, now: Nanos, request: &[u8], frame: &mut Vec<u8>) {
        let (request, _) = Echo::read(request).expect("it was read when it arrived");
        let own = Stamp::parse(request.data);
        let own = own.filter(|stamp| stamp.run == run && stamp.port == self.terms.partner);
        let stamp = self.stamp(run, now).to_bytes();
        let answer = Echo {
            macs: (request.macs.1, self.terms.own_mac),
            addresses: (request.addresses.1, request.addresses.0),
            is_reply: true,
            data: match own {
                Some(_) => &stamp,
                None => request.data,
            },
            ..request
        };
        answer.write(frame);
    }

    fn stamp(&self, run: u32, now: Nanos) -> Stamp {
        Stamp {
            sent_ns: now,
            port: self.terms.port,
            sequence: self.sequence,
            run,
        }
    }

    /// Sends the requests that are due before `until`. Returns how many there were.
    fn ask_due(
        &mut self,
        run: u32,
        (now, until): (Nanos, Nanos),
        gap: Gap,
        frame: &mut Vec<u8>,
        send: &mut impl FnMut(PortIndex, &[u8]) -> bool,
    ) -> usize {
        let EchoRole::Asks { peer_mac } = self.terms.role else {
            return 0;
        };
        self.give_up_late(now.min(until.saturating_add(LATE_MAX)), gap);
        let mut frames = 0;
        while self.due.at <= now && self.due.at < until && frames < BURST_MAX as usize {
            self.due = self.due.after(gap);
            let stamp = self.stamp(run, now).to_bytes();
            let request = Echo {
                macs: (peer_mac, self.terms.own_mac),
                tags: &self.tags,
                addresses: (self.terms.own_address, self.terms.other_address),
                is_reply: false,
                // One identifier a port and run, as each ping has its own.
                identifier: run as u16 ^ u16::from(self.terms.port) << 8,
                sequence: self.sequence as u16,
                data: &stamp,
            };
            request.write(frame);
            let sent = send(self.terms.port, frame);
            self.note_sent(sent);
            frames += 1;
        }
        frames
    }

    fn give_up_late(&mut self, now: Nanos, gap: Gap) {
        let soonest = now.saturating_sub(LATE_MAX);
        if self.due.at < soonest {
            let late = Due::at(soonest).gaps_since(self.due, gap);
            self.counters.not_sent += late;
            self.due = self.due.after(gap.times(late));
        }
    }

    /// Numbers are only those of messages that left, so that what is missing was lost on its way.
    fn note_sent(&mut self, sent: bool) {
        if sent {
            self.counters.sent += 1;
            self.sequence = self.sequence.wrapping_add(1);
        } else {
            self.counters.not_sent += 1;
        }
    }

    fn readout(&self) -> EchoReadout {
        let latency = *self.meter.stats();
        let slots = slot(latency.min_ns)..=slot(latency.max_ns);
        let slots = slots.map(|slot| (slot, self.slots[slot]));
        EchoReadout {
            port: self.terms.port,
            counters: self.counters.clone(),
            times: Histogram::new(slots, latency.min_ns, latency.max_ns),
            latency,
        }
    }
}
