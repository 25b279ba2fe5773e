//! The device on the way that makes faults.

use std::collections::HashMap;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::session::LinkAddresses;
use allosaur_engine::session::wire::{self, Addresses, Arrival, Content, Envelope, Received};
use allosaur_engine::tcp::{Segment, Seq};
use allosaur_engine::template::Side;
use allosaur_packet::MacAddress;
use allosaur_packet::frame::{self, Layout};
use allosaur_packet::network::checksum::{Sum, update_bytes};
use allosaur_packet::transport::tcp::{TcpFlags, TcpView};

use super::{Fault, FaultShare};
use crate::sim::stateful::rng::SimRng;

/// The port that nobody serves.
const WRONG_PORT: u16 = 1;
/// Faults in the middle of a flow come with one of so many first segments with data.
const MIDDLE_SEGMENTS: u64 = 4;
/// By how much the number of a reset is wrong that is near.
const NEAR: u32 = 100;
/// Where the network header is; simulated frames have no VLAN.
const NETWORK_OFFSET: usize = 14;
/// The longest frame after padding, without FCS.
const PADDED_BYTES_MAX: u64 = 1514;
const TIME_TO_LIVE: u8 = 64;

/// The ends of a flow: client, server, the client's port, the server's.
type Key = (u128, u128, u16, u16);

/// What the device remembers of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The number of its SYN: another one is another flow.
    first: u32,
    /// The faults that it gets, as bits.
    faults: u16,
    /// Those that it had, as bits.
    done: u16,
    /// A FIN has come for the server, for the client.
    has_fin: [bool; 2],
    /// Segments with data that are left before the middle.
    until_middle: u64,
}

/// The device.
#[derive(Debug)]
pub(crate) struct Device {
    faults: Vec<FaultShare>,
    flows: HashMap<Key, Flow>,
    /// Of flows that go to a wrong port, as the server sees them: the right one.
    right_ports: HashMap<Key, u16>,
    chance: SimRng,
    counters: [u64; Fault::COUNT],
}

/// What leaves the device: to whom, and the frame.
pub(crate) type Out = Vec<(Side, Vec<u8>)>;

/// A segment of a flow, with all that is known of it.
struct Passing<'a> {
    to: Side,
    received: &'a Received,
    segment: &'a Segment,
    macs: (MacAddress, MacAddress),
}

fn bit(fault: Fault) -> u16 {
    1 << fault as u16
}

fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

impl Device {
    pub(crate) fn new(faults: &[FaultShare], chance: SimRng) -> Device {
        Device {
            faults: faults.to_vec(),
            flows: HashMap::new(),
            right_ports: HashMap::new(),
            chance,
            counters: [0; Fault::COUNT],
        }
    }

    /// How often it made each fault, in their order.
    pub(crate) fn counters(&self) -> &[u64; Fault::COUNT] {
        &self.counters
    }

    /// A frame comes. Whatever leaves is added to `out`.
    pub(crate) fn pass(&mut self, to: Side, mut frame: Vec<u8>, out: &mut Out) {
        if self.faults.is_empty() {
            return out.push((to, frame));
        }
        let layout = frame::parse(&frame);
        if let Ok(received) = wire::read(&frame, &layout) {
            if !self.pass_flow(to, &mut frame, &layout, &received, out) {
                return;
            }
        }
        self.spoil(&mut frame);
        out.push((to, frame));
    }

    /// What happens to a frame for the flow that it belongs to; `false` when it is lost.
    fn pass_flow(
        &mut self,
        to: Side,
        frame: &mut [u8],
        layout: &Layout,
        received: &Received,
        out: &mut Out,
    ) -> bool {
        let Arrival::Tcp(segment) = received.arrival else {
            return true;
        };
        let mut key = key_of(to, received);
        if to == Side::Client && key.3 == WRONG_PORT {
            key.3 = self.right_ports.get(&key).copied().unwrap_or(WRONG_PORT);
        }
        let is_syn = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK);
        let known = self.flows.get(&key).copied();
        let flow = match known {
            Some(flow) if !is_syn || flow.first == segment.seq.0 => flow,
            None if !is_syn => return true,
            _ => self.draw(segment.seq.0),
        };
        if flow.faults == 0 {
            if known.is_some() {
                self.flows.remove(&key);
            }
            return true;
        }
        let passing = Passing {
            to,
            received,
            segment: &segment,
            macs: (mac(&frame[6..12]), mac(&frame[..6])),
        };
        let (flow, passes) = self.treat(flow, &passing, out);
        self.flows.insert(key, flow);
        if passes && flow.faults & bit(Fault::WrongPort) != 0 {
            self.divert(to, key, frame, layout);
        }
        passes
    }

    /// Gives a segment of a flow to a wrong port the other port of the server.
    fn divert(&mut self, to: Side, key: Key, frame: &mut [u8], layout: &Layout) {
        let wrong = (key.0, key.1, key.2, WRONG_PORT);
        self.right_ports.insert(wrong, key.3);
        let (start, end) = (layout.transport_offset, layout.end_offset);
        let segment = &mut frame[usize::from(start)..usize::from(end)];
        let mut view = TcpView::new_unchecked(segment);
        let (old, new) = match to {
            Side::Server => (key.3, WRONG_PORT),
            Side::Client => (WRONG_PORT, key.3),
        };
        match to {
            Side::Server => view.set_destination_port(new),
            Side::Client => view.set_source_port(new),
        }
        let sum = update_bytes(view.checksum(), &old.to_be_bytes(), &new.to_be_bytes());
        view.set_checksum(sum);
    }

    /// A flow begins: which faults it gets.
    fn draw(&mut self, first: u32) -> Flow {
        let mut faults = 0;
        for one in self.faults.iter().filter(|one| !one.fault.is_of_frames()) {
            if self.chance.happens(one.share) {
                faults |= bit(one.fault);
            }
        }
        Flow {
            first,
            faults,
            done: 0,
            has_fin: [false; 2],
            until_middle: self.chance.below(MIDDLE_SEGMENTS),
        }
    }

    /// What a segment meets. Returns the flow as it is then, and whether the segment passes.
    fn treat(&mut self, mut flow: Flow, passing: &Passing<'_>, out: &mut Out) -> (Flow, bool) {
        let segment = passing.segment;
        let is_syn = segment.has(TcpFlags::SYN);
        let passes = if is_syn && passing.to == Side::Server {
            self.treat_syn(&mut flow, passing, out)
        } else if is_syn {
            !self.once(&mut flow, Fault::SynAckLost)
        } else if segment.has(TcpFlags::FIN) && self.is_fin_lost(&mut flow, passing.to) {
            false
        } else {
            self.treat_middle(&mut flow, passing, out)
        };
        let is_silent = flow.done & bit(Fault::Silence) != 0;
        (flow, passes && !is_silent)
    }

    fn treat_syn(&mut self, flow: &mut Flow, passing: &Passing<'_>, out: &mut Out) -> bool {
        let segment = passing.segment;
        if self.once(flow, Fault::SynLost) {
            return false;
        }
        if flow.faults & bit(Fault::WrongPort) != 0 {
            self.counters[Fault::WrongPort as usize] += 1;
        }
        if self.each_time(flow, Fault::SynBlindReset) {
            let reset = reset_for(segment.ack.0, segment.seq.0.wrapping_add(1 + NEAR));
            out.push(passing.back(&reset));
        }
        if self.each_time(flow, Fault::SynRefused) {
            out.push(passing.back(&reset_for(0, segment.seq.0.wrapping_add(1))));
            return false;
        }
        true
    }

    fn is_fin_lost(&mut self, flow: &mut Flow, to: Side) -> bool {
        let is_first = !std::mem::replace(&mut flow.has_fin[usize::from(to == Side::Client)], true);
        let is_lost = is_first && flow.faults & bit(Fault::FinLost) != 0;
        self.counters[Fault::FinLost as usize] += u64::from(is_lost);
        is_lost
    }

    fn treat_middle(&mut self, flow: &mut Flow, passing: &Passing<'_>, out: &mut Out) -> bool {
        let segment = passing.segment;
        if segment.len == 0 {
            return true;
        }
        if flow.until_middle > 0 {
            flow.until_middle -= 1;
            return true;
        }
        let (seq, ack) = (segment.seq.0, segment.ack.0);
        if self.once(flow, Fault::BlindReset) {
            out.push(passing.on(&reset_for(seq.wrapping_add(NEAR), ack)));
            out.push(passing.back(&reset_for(ack.wrapping_add(NEAR), seq)));
        }
        let mut passes = true;
        for fault in [Fault::ResetMiddle, Fault::ResetClient, Fault::ResetServer] {
            if !self.once(flow, fault) {
                continue;
            }
            passes = false;
            let told = |side| fault == Fault::ResetMiddle || fault == tells(side);
            if told(passing.to) {
                out.push(passing.on(&reset_for(seq, ack)));
            }
            if told(other(passing.to)) {
                out.push(passing.back(&reset_for(ack, seq)));
            }
        }
        passes && !self.once(flow, Fault::Silence)
    }

    /// Whether a flow gets a fault that it has not had yet.
    fn once(&mut self, flow: &mut Flow, fault: Fault) -> bool {
        let happens = flow.faults & bit(fault) != 0 && flow.done & bit(fault) == 0;
        flow.done |= if happens { bit(fault) } else { 0 };
        self.counters[fault as usize] += u64::from(happens);
        happens
    }

    fn each_time(&mut self, flow: &Flow, fault: Fault) -> bool {
        let happens = flow.faults & bit(fault) != 0;
        self.counters[fault as usize] += u64::from(happens);
        happens
    }

    /// What happens to any frame.
    fn spoil(&mut self, frame: &mut Vec<u8>) {
        for i in 0..self.faults.len() {
            let FaultShare { fault, share } = self.faults[i];
            if !fault.is_of_frames() || !self.chance.happens(share) {
                continue;
            }
            let bytes = frame.len() as u64;
            match fault {
                Fault::Truncate => frame.truncate(self.chance.below(bytes) as usize),
                Fault::Corrupt if frame.len() > NETWORK_OFFSET => {
                    let bits = (bytes - NETWORK_OFFSET as u64) * 8;
                    let at = self.chance.below(bits) as usize;
                    frame[NETWORK_OFFSET + at / 8] ^= 1 << (at % 8);
                }
                Fault::Pad if bytes < PADDED_BYTES_MAX => {
                    let more = 1 + self.chance.below(PADDED_BYTES_MAX - bytes);
                    let filler = self.chance.bits() as u8;
                    frame.resize((bytes + more) as usize, filler);
                }
                _ => continue,
            }
            self.counters[fault as usize] += 1;
        }
    }
}

/// Which fault resets only this side.
fn tells(side: Side) -> Fault {
    match side {
        Side::Client => Fault::ResetClient,
        Side::Server => Fault::ResetServer,
    }
}

fn reset_for(seq: u32, ack: u32) -> Segment {
    Segment {
        seq: Seq(seq),
        ack: Seq(ack),
        flags: TcpFlags::RST | TcpFlags::ACK,
        ..Segment::default()
    }
}

fn mac(bytes: &[u8]) -> MacAddress {
    MacAddress(bytes.try_into().expect("six bytes were cut out"))
}

fn key_of(to: Side, received: &Received) -> Key {
    let (from, into) = match received.addresses {
        Addresses::V4(from, into) => (from.to_bits().into(), into.to_bits().into()),
        Addresses::V6(from, into) => (from.to_bits(), into.to_bits()),
    };
    let ports = received.ports;
    match to {
        Side::Server => (from, into, ports.0, ports.1),
        Side::Client => (into, from, ports.1, ports.0),
    }
}

impl Passing<'_> {
    /// A segment that goes on in the place of this one.
    fn on(&self, segment: &Segment) -> (Side, Vec<u8>) {
        let (from, to) = self.macs;
        let frame = make(
            segment,
            (to, from),
            self.received.addresses,
            self.received.ports,
        );
        (self.to, frame)
    }

    /// A segment that answers this one.
    fn back(&self, segment: &Segment) -> (Side, Vec<u8>) {
        let addresses = match self.received.addresses {
            Addresses::V4(from, to) => Addresses::V4(to, from),
            Addresses::V6(from, to) => Addresses::V6(to, from),
        };
        let (from, to) = self.received.ports;
        (
            other(self.to),
            make(segment, self.macs, addresses, (to, from)),
        )
    }
}

fn make(
    segment: &Segment,
    macs: (MacAddress, MacAddress),
    addresses: Addresses,
    ports: (u16, u16),
) -> Vec<u8> {
    let link = LinkAddresses {
        own: macs.1,
        peer: macs.0,
        encapsulation: Encapsulation::Ethernet,
    };
    let envelope = Envelope {
        link: &link.prefix(matches!(addresses, Addresses::V6(..))),
        addresses,
        ports,
        type_of_service: 0,
        time_to_live: TIME_TO_LIVE,
        identification: 0,
    };
    let content = Content::Tcp(segment);
    let mut frame = vec![0; envelope.frame_bytes(&content)];
    envelope.write(&content, &mut frame, |_| Sum::default());
    frame
}
