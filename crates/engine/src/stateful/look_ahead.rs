//! Memory that flows will need whose timers are due, read before the first of them is handled.
//!
//! A flow whose timer comes was not looked at for long, and is in no cache. Who wakes one after the
//! other waits for each, and then for its place in the table. Loads that do not depend on each other
//! wait together: first all flows, then all places. Of flows in TIME-WAIT these are the places only,
//! as their entries lie side by side.
//!
//! So it is with the place that a new flow gets in a large table, however few flows there are:
//! nobody was there for long. Those of flows that clients begin are read some at a time, and those
//! that the SYNs and datagrams of a burst ask for. And so it is with flows that are cut off at the end
//! of a run, and forgotten. What is read here decides nothing.

use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::prefetch;
use allosaur_packet::transport::tcp::TcpFlags;

use super::clients::Tuple;
use super::open::FlowOpener;
use super::time_wait::TimeWaitEntry;
use super::{RunIndex, StatefulEngine, WOKEN_AHEAD};
use crate::flow::{FlowIndex, FlowKey, Protocol};
use crate::template::Side;
use crate::time::Nanos;
use crate::transmit::PortIndex;

/// Fewer flows than this are in the cache of a core: it holds 2 MB or more, a flow takes a quarter
/// of a KB.
const FLOWS_MIN: usize = 1 << 14;
/// Flows of clients that begin together.
pub(super) const BEGUN_AHEAD: usize = 16;

/// A flow of clients that begins next: whose it is, by their place in the run, and between which
/// ends; `None` where all clients rest.
pub(super) type Beginner = (u32, Option<Tuple>);

impl StatefulEngine {
    /// Asks for the places in the table of the flows of clients that begin next.
    pub(super) fn fetch_beginners(&self, run: RunIndex, beginners: &[Beginner]) {
        let Some(its) = self.run(run) else {
            return;
        };
        let keys = beginners.iter().filter_map(|&(clients, tuple)| {
            let template = its.template_of(clients);
            let who = FlowOpener {
                run,
                clients,
                template,
                is_executed: false,
            };
            // Flows of IPv6, or in a tunnel, are elsewhere.
            Some(its.key_between(who, tuple?, None, false))
        });
        self.fetch_places(keys);
    }

    /// Frames arrived at a port that will be handled next: asks for the places in the table of the
    /// flows that they may ask for. Those of other flows were used a moment ago.
    pub fn fetch_asked<'f>(&self, port: PortIndex, frames: impl Iterator<Item = &'f [u8]>) {
        let info = self.ports.get(usize::from(port)).and_then(Option::as_ref);
        let serves = info.is_some_and(|info| info.side == Side::Server);
        if serves && self.table.is_large() {
            self.fetch_places(frames.filter_map(|frame| asked_key(port, frame)));
        }
    }

    /// Whether there are so many flows that it pays to look ahead.
    #[inline]
    pub(super) fn looks_ahead(&self) -> bool {
        self.flows() >= FLOWS_MIN
    }

    /// Asks for the flows that are woken next, and their places in the table.
    pub(super) fn fetch_due(&self, now: Nanos) {
        let mut due = [FlowIndex(0); WOKEN_AHEAD as usize];
        let count = self.timers.peek_due(now, &mut due);
        self.fetch_flows(due[..count].iter());
    }

    /// Asks for the flows of a run that are cut off next, and their places in the table.
    pub(super) fn fetch_left(&self, run: RunIndex) {
        if let Some(run) = self.run(run) {
            self.fetch_flows(run.left.iter().rev().take(WOKEN_AHEAD as usize));
        }
    }

    /// Asks for flows, and then for their places in the table. Those in TIME-WAIT lie side by side.
    pub(super) fn fetch_flows<'i>(&self, flows: impl Iterator<Item = &'i FlowIndex> + Clone) {
        let open = flows.clone().filter_map(|index| self.flows.at(*index));
        for entry in open {
            prefetch(&entry.template);
            entry.session.fetch();
        }
        self.fetch_places(flows.filter_map(|index| {
            if index.is_in_fifo() {
                return self.time_wait.at(*index).map(TimeWaitEntry::key);
            }
            self.flows.at(*index).map(|entry| *entry.session.key())
        }));
    }

    /// Asks for the places of flows in the table.
    pub(super) fn fetch_places(&self, keys: impl Iterator<Item = FlowKey>) {
        for key in keys {
            self.table.fetch(key.packed());
        }
    }
}

/// The key of the flow that a SYN asks for, or any datagram, over IPv4 without IP options or tags.
#[inline]
fn asked_key(port: PortIndex, frame: &[u8]) -> Option<FlowKey> {
    const NETWORK: usize = ethernet::HEADER_BYTES;
    const TRANSPORT: usize = NETWORK + 20;
    let headers: &[u8; TRANSPORT + 14] = frame.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    let flags = TcpFlags(headers[TRANSPORT + 13] & (TcpFlags::SYN | TcpFlags::ACK).0);
    let protocol = match IpProtocol(headers[NETWORK + 9]) {
        IpProtocol::TCP if flags == TcpFlags::SYN => Protocol::Tcp,
        IpProtocol::UDP => Protocol::Udp,
        _ => return None,
    };
    let is_plain = half(NETWORK - 2) == EtherType::IPV4.0 && headers[NETWORK] == 0x45;
    is_plain.then(|| FlowKey {
        local: word(NETWORK + 16),
        remote: word(NETWORK + 12),
        local_port: half(TRANSPORT + 2),
        remote_port: half(TRANSPORT),
        space: None,
        scope: protocol.into(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use allosaur_packet::MacAddress;
    use allosaur_packet::network::checksum::Sum;
    use proptest::prelude::*;

    use super::*;
    use crate::encapsulation::{Encapsulation, LinkPrefix};
    use crate::session::wire::{Addresses, Content, Envelope};
    use crate::tcp::Segment;

    fn frame(content: &Content<'_>, encapsulation: &Encapsulation) -> Vec<u8> {
        let (client, server) = (Ipv4Addr::new(16, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 2));
        let envelope = Envelope {
            link: &LinkPrefix::new(
                MacAddress([2; 6]),
                MacAddress([4; 6]),
                encapsulation,
                EtherType::IPV4,
            ),
            addresses: Addresses::V4(client, server),
            ports: (1024, 80),
            type_of_service: 0,
            time_to_live: 64,
            identification: 1,
        };
        let mut frame = vec![0; envelope.frame_bytes(content)];
        envelope.write(content, &mut frame, |_| Sum::default());
        frame
    }

    fn segment(flags: TcpFlags, encapsulation: &Encapsulation) -> Vec<u8> {
        let segment = Segment {
            flags,
            mss: Some(1460),
            ..Segment::default()
        };
        frame(&Content::Tcp(&segment), encapsulation)
    }

    #[test]
    fn syns_and_datagrams_ask_for_a_flow_and_nothing_else_does() {
        let asked = |protocol: Protocol| FlowKey {
            local: 0x3000_0002,
            remote: 0x1000_0001,
            local_port: 80,
            remote_port: 1024,
            space: None,
            scope: protocol.into(),
            port: 3,
        };
        let plain = Encapsulation::Ethernet;
        for flags in [TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR] {
            let key = asked_key(3, &segment(flags, &plain));
            assert_eq!(key, Some(asked(Protocol::Tcp)));
        }
        let datagram = frame(&Content::Udp(20), &plain);
        assert_eq!(asked_key(3, &datagram), Some(asked(Protocol::Udp)));
        let answer = TcpFlags::SYN | TcpFlags::ACK;
        assert_eq!(asked_key(3, &segment(answer, &plain)), None);
        assert_eq!(asked_key(3, &segment(TcpFlags::ACK, &plain)), None);
        let tagged = segment(TcpFlags::SYN, &Encapsulation::Vlan(7));
        assert_eq!(asked_key(3, &tagged), None);
    }

    proptest! {
        #[test]
        fn any_bytes_may_ask(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = asked_key(0, &bytes);
        }
    }
}
