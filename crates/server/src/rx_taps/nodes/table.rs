//! The nodes of one port, by MAC address, by interface and by IP address.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

use allosaur_packet::link::ethernet::{EtherType, HEADER_BYTES, TYPE_OFFSET};
use allosaur_packet::link::vlan;
use rustc_hash::FxHashMap;

use super::flood::FloodQueue;
use super::request::{NodeCounters, NodeEntry, NodeSocket};
use crate::rx_taps::service::ServiceMask;

/// Frames of nodes to come that are kept; beyond them the oldest are dropped.
const EARLY_MAX: usize = 256;
/// The shortest frame without FCS.
const FRAME_BYTES_MIN: usize = 60;
/// The bits of a tag that are the number of the network.
const NUMBER: u16 = 0x0fff;
/// In an ARP packet over Ethernet: where its operation and the address that is asked for are.
const ARP_OPERATION: usize = HEADER_BYTES + 6;
const ARP_TARGET: usize = HEADER_BYTES + 24;
const ARP_REQUEST: [u8; 2] = [0, 1];
/// Where a neighbor solicitation without extension headers has its type and target (RFC 4861, section 4.3).
const IPV6_NEXT_HEADER: usize = HEADER_BYTES + 6;
const ICMPV6: u8 = 58;
const ICMPV6_TYPE: usize = HEADER_BYTES + 40;
const SOLICITATION: u8 = 135;
/// All types of neighbor discovery, from router solicitations to redirects.
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
const SOLICITATION_TARGET: usize = ICMPV6_TYPE + 8;

/// The nodes of a port, and the socket with their frames.
#[derive(Debug)]
pub(super) struct PortNodeTable {
    pub(super) counters: NodeCounters,
    /// Whether the port as a host has more than what is about addresses.
    pub(super) port_answers: bool,
    socket: Box<dyn NodeSocket>,
    nodes: Vec<NodeEntry>,
    /// Places in `nodes`.
    by_mac: FxHashMap<[u8; 6], usize>,
    by_interface: FxHashMap<u32, usize>,
    by_ipv4: FxHashMap<Ipv4Addr, usize>,
    by_ipv6: FxHashMap<Ipv6Addr, usize>,
    floods: FloodQueue,
    /// What interfaces sent that are no node's yet, the oldest first: the kernel has a node a little earlier
    /// than this table, and its first words are those by which others know of it.
    early: VecDeque<(u32, Vec<u8>)>,
    /// A frame whose tags are being changed.
    scratch: Vec<u8>,
}

impl PortNodeTable {
    /// No nodes yet.
    pub(super) fn new(socket: Box<dyn NodeSocket>) -> PortNodeTable {
        PortNodeTable {
            counters: NodeCounters::default(),
            port_answers: false,
            socket,
            nodes: Vec::new(),
            by_mac: FxHashMap::default(),
            by_interface: FxHashMap::default(),
            by_ipv4: FxHashMap::default(),
            by_ipv6: FxHashMap::default(),
            floods: FloodQueue::default(),
            early: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds a node, in the place of one with the same MAC address.
    pub(super) fn set(&mut self, node: NodeEntry) {
        self.remove(node.mac);
        let place = self.nodes.len();
        self.by_mac.insert(node.mac, place);
        self.by_interface.insert(node.interface, place);
        self.by_ipv4.extend(node.ipv4.map(|ip| (ip, place)));
        self.by_ipv6.extend(node.ipv6.iter().map(|ip| (*ip, place)));
        self.nodes.push(node);
    }

    /// Removes a node, if it is there; the last takes its place.
    pub(super) fn remove(&mut self, mac: [u8; 6]) {
        let Some(place) = self.by_mac.remove(&mac) else {
            return;
        };
        let node = self.nodes.swap_remove(place);
        self.by_interface.remove(&node.interface);
        // Two nodes may have one address; then it is the other's.
        if let Some(ip) = &node.ipv4 {
            remove_if(&mut self.by_ipv4, ip, place);
        }
        for ip in &node.ipv6 {
            remove_if(&mut self.by_ipv6, ip, place);
        }
        let Some(moved) = self.nodes.get(place) else {
            return;
        };
        self.by_mac.insert(moved.mac, place);
        self.by_interface.insert(moved.interface, place);
        self.by_ipv4.extend(moved.ipv4.map(|ip| (ip, place)));
        self.by_ipv6
            .extend(moved.ipv6.iter().map(|ip| (*ip, place)));
    }

    /// Takes a frame that the port received. True when it is a node's alone; who looks for the gateway of
    /// the port sees its frames, too.
    pub(super) fn handle_frame(&mut self, frame: &[u8]) -> bool {
        let Some(to) = frame.first_chunk::<6>() else {
            return false;
        };
        if to[0] & 1 == 0 {
            let Some(place) = self.by_mac.get(to).copied() else {
                return false;
            };
            self.deliver(place, frame);
            return !self.nodes[place].is_port;
        }
        match self.asked(frame) {
            Some(place) => self.deliver(place, frame),
            None if self.nodes.is_empty() => {}
            None if self.floods.push(frame) => self.counters.flooded += 1,
            None => self.counters.flood_lost += 1,
        }
        false
    }

    /// Whether frames to all nodes wait.
    pub(super) fn is_flooding(&self) -> bool {
        !self.floods.is_empty()
    }

    /// Serves the nodes whose turn it is with frames to all.
    pub(super) fn flood_next(&mut self) {
        let mut floods = std::mem::take(&mut self.floods);
        floods.serve(self.nodes.len(), |place, frame| self.deliver(place, frame));
        self.floods = floods;
    }

    /// Has `send` send what nodes sent.
    pub(super) fn poll_transmit(&mut self, budget: usize, send: &mut dyn FnMut(&[u8]) -> bool) {
        let (counters, scratch) = (&mut self.counters, &mut self.scratch);
        let (nodes, places) = (&self.nodes, &self.by_interface);
        let mut send_from = |place: usize, frame: &[u8]| {
            counters.sent.count(frame);
            if !send(tagged(frame, &nodes[place].tags, scratch)) {
                counters.send_lost += 1;
            }
        };
        let early = &mut self.early;
        if !early.is_empty() {
            early.retain(|(interface, frame)| match places.get(interface) {
                Some(place) => {
                    send_from(*place, frame);
                    false
                }
                None => true,
            });
        }
        let mut each = |interface, frame: &[u8]| match places.get(&interface) {
            Some(place) => send_from(*place, frame),
            None => {
                early.push_back((interface, frame.to_vec()));
                if early.len() > EARLY_MAX {
                    early.pop_front();
                }
            }
        };
        for _ in 0..budget {
            if !self.socket.receive(&mut each) {
                break;
            }
        }
    }

    /// Becomes readable when a node has sent something.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.socket.file()
    }

    /// The node that a frame to all asks for: with ARP, or neighbor discovery.
    fn asked(&self, frame: &[u8]) -> Option<usize> {
        let behind = tag_bytes(frame);
        let at = |position: usize, length: usize| {
            let start = behind + position;
            frame.get(start..start + length)
        };
        let kind = EtherType(u16::from_be_bytes(at(TYPE_OFFSET, 2)?.try_into().ok()?));
        if kind == EtherType::ARP && at(ARP_OPERATION, 2)? == ARP_REQUEST {
            let target: [u8; 4] = at(ARP_TARGET, 4)?.try_into().ok()?;
            return self.by_ipv4.get(&Ipv4Addr::from(target)).copied();
        }
        let is_solicitation = kind == EtherType::IPV6
            && at(IPV6_NEXT_HEADER, 1)? == [ICMPV6]
            && at(ICMPV6_TYPE, 1)? == [SOLICITATION];
        if !is_solicitation {
            return None;
        }
        let target: [u8; 16] = at(SOLICITATION_TARGET, 16)?.try_into().ok()?;
        self.by_ipv6.get(&Ipv6Addr::from(target)).copied()
    }

    /// Gives a node a frame, if it is in its VLAN and passes its filter.
    fn deliver(&mut self, place: usize, frame: &[u8]) {
        let node = &self.nodes[place];
        if !has_tags(frame, &node.tags) {
            self.counters.other_vlan += 1;
            return;
        }
        let bytes = node.tags.len() * vlan::HEADER_BYTES;
        let frame = match bytes {
            0 => frame,
            _ => {
                self.scratch.clear();
                self.scratch.extend_from_slice(&frame[..TYPE_OFFSET]);
                self.scratch
                    .extend_from_slice(&frame[TYPE_OFFSET + bytes..]);
                &self.scratch
            }
        };
        if node.is_port && !self.port_answers && !is_about_addresses(frame) {
            self.counters.filtered += 1;
            return;
        }
        let filter = &node.filter;
        let passes_all = filter.tcp_udp && filter.others;
        let is_of_class = || match ServiceMask(ServiceMask::NO_TCP_UDP).takes(frame) {
            true => filter.others,
            false => filter.tcp_udp,
        };
        if !(passes_all || is_of_class()) || !filter.bpf.matches(frame) {
            self.counters.filtered += 1;
            return;
        }
        match self.socket.send(node.interface, frame) {
            true => self.counters.received.count(frame),
            false => self.counters.receive_lost += 1,
        }
    }
}

fn remove_if<K: std::hash::Hash + Eq>(places: &mut FxHashMap<K, usize>, key: &K, place: usize) {
    if places.get(key) == Some(&place) {
        places.remove(key);
    }
}

/// How many bytes of tags a frame has.
fn tag_bytes(frame: &[u8]) -> usize {
    let mut bytes = 0;
    while frame
        .get(TYPE_OFFSET + bytes..TYPE_OFFSET + bytes + 2)
        .is_some_and(|kind| {
            let kind = EtherType(u16::from_be_bytes([kind[0], kind[1]]));
            kind == EtherType::VLAN || kind == EtherType::QINQ
        })
    {
        bytes += vlan::HEADER_BYTES;
    }
    bytes
}

/// Whether the tags of a frame are those of a node, whatever their priority. What stands in front of a
/// node's tags may be any type.
fn has_tags(frame: &[u8], tags: &[[u16; 2]]) -> bool {
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let mut at = TYPE_OFFSET;
    let are_there = tags.iter().all(|[kind, number]| {
        let found =
            word(at) == Some(*kind) && word(at + 2).map(|tag| tag & NUMBER) == Some(*number);
        at += vlan::HEADER_BYTES;
        found
    });
    let next = word(at).map(EtherType);
    are_there && next.is_some_and(|kind| kind != EtherType::VLAN && kind != EtherType::QINQ)
}

/// Whether an untagged frame is ARP, or neighbor discovery (RFC 4861).
fn is_about_addresses(frame: &[u8]) -> bool {
    match frame.get(TYPE_OFFSET..).and_then(<[u8]>::first_chunk) {
        Some(kind) if EtherType(u16::from_be_bytes(*kind)) == EtherType::ARP => true,
        Some(kind) if EtherType(u16::from_be_bytes(*kind)) == EtherType::IPV6 => {
            frame.get(IPV6_NEXT_HEADER) == Some(&ICMPV6)
                && frame
                    .get(ICMPV6_TYPE)
                    .is_some_and(|kind| DISCOVERY.contains(kind))
        }
        _ => false,
    }
}

/// The frame with tags in front of its type, and as long as any on Ethernet: the kernel leaves that to
/// devices.
fn tagged<'s>(frame: &'s [u8], tags: &[[u16; 2]], scratch: &'s mut Vec<u8>) -> &'s [u8] {
    if tags.is_empty() && frame.len() >= FRAME_BYTES_MIN {
        return frame;
    }
    let (addresses, rest) = frame.split_at(TYPE_OFFSET.min(frame.len()));
    scratch.clear();
    scratch.extend_from_slice(addresses);
    for word in tags.iter().flatten() {
        scratch.extend_from_slice(&word.to_be_bytes());
    }
    scratch.extend_from_slice(rest);
    scratch.resize(scratch.len().max(FRAME_BYTES_MIN), 0);
    scratch
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::rx_taps::filter::Filter;
    use crate::rx_taps::nodes::request::NodeFilter;

    type Frames = Arc<Mutex<Vec<(u32, Vec<u8>)>>>;

    /// Keeps what nodes are given, and has what they send.
    #[derive(Debug)]
    struct Kept {
        given: Frames,
        sent: Vec<(u32, Vec<u8>)>,
        file: File,
    }

    impl NodeSocket for Kept {
        fn send(&mut self, interface: u32, frame: &[u8]) -> bool {
            let mut given = self.given.lock().expect("one thread");
            given.push((interface, frame.to_vec()));
            true
        }

        fn receive(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> bool {
            let next = self.sent.pop();
            next.is_some_and(|(interface, frame)| {
                each(interface, &frame);
                true
            })
        }

        fn file(&self) -> BorrowedFd<'_> {
            self.file.as_fd()
        }
    }

    fn table(sent: Vec<(u32, Vec<u8>)>) -> (PortNodeTable, Frames) {
        let given = Frames::default();
        let socket = Kept {
            given: Arc::clone(&given),
            sent,
            file: File::open("/dev/null").expect("it is there"),
        };
        (PortNodeTable::new(Box::new(socket)), given)
    }

    fn mac(last: u8) -> [u8; 6] {
        [2, 0, 0, 0, 0, last]
    }

    fn node(last: u8, tags: &[[u16; 2]]) -> NodeEntry {
        NodeEntry {
            mac: mac(last),
            is_port: false,
            interface: 100 + u32::from(last),
            tags: tags.to_vec(),
            filter: NodeFilter {
                tcp_udp: true,
                others: true,
                bpf: Filter::compile("").expect("the empty one"),
            },
            ipv4: Some([192, 0, 2, last].into()),
            ipv6: Vec::new(),
        }
    }

    fn frame(to: [u8; 6], tags: &[u16], rest: &[u8]) -> Vec<u8> {
        let mut frame = [&to[..], &mac(99)].concat();
        frame.extend(tags.iter().flat_map(|word| word.to_be_bytes()));
        frame.extend(rest);
        frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        frame
    }

    fn interfaces(given: &Frames) -> Vec<u32> {
        let mut given = given.lock().expect("one thread");
        let mut found: Vec<u32> = given.drain(..).map(|(interface, _)| interface).collect();
        found.sort_unstable();
        found
    }

    const OTHER_TYPE: [u8; 2] = [0x88, 0xb5];
    const ALL: [u8; 6] = [0xff; 6];

    #[test]
    fn each_node_gets_its_own_frames_and_those_for_all() {
        let (mut table, given) = table(Vec::new());
        (1..=3).for_each(|last| table.set(node(last, &[])));
        assert!(table.handle_frame(&frame(mac(2), &[], &OTHER_TYPE)));
        assert_eq!(interfaces(&given), [102]);
        assert!(
            !table.handle_frame(&frame(mac(7), &[], &OTHER_TYPE)),
            "nobody's"
        );
        assert!(
            !table.handle_frame(&frame(ALL, &[], &OTHER_TYPE)),
            "others' too"
        );
        assert!(table.is_flooding());
        table.flood_next();
        assert_eq!(interfaces(&given), [101, 102, 103]);
        table.remove(mac(1));
        assert!(!table.handle_frame(&frame(mac(1), &[], &OTHER_TYPE)));
        assert!(table.handle_frame(&frame(mac(3), &[], &OTHER_TYPE)));
        assert_eq!(interfaces(&given), [103]);
    }

    #[test]
    fn an_arp_request_goes_to_who_is_asked() {
        let (mut table, given) = table(Vec::new());
        (1..=3).for_each(|last| table.set(node(last, &[])));
        let mut arp = frame(ALL, &[], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        arp[ARP_TARGET..ARP_TARGET + 4].copy_from_slice(&[192, 0, 2, 3]);
        table.handle_frame(&arp);
        assert_eq!(interfaces(&given), [103]);
        // Somebody may have given a node another address.
        arp[ARP_TARGET + 3] = 77;
        table.handle_frame(&arp);
        table.flood_next();
        assert_eq!(interfaces(&given), [101, 102, 103]);
        // The last node takes the place of the first; its address is found there.
        table.remove(mac(1));
        arp[ARP_TARGET + 3] = 3;
        table.handle_frame(&arp);
        assert_eq!(interfaces(&given), [103]);
    }

    #[test]
    fn tags_are_taken_off_and_put_on() {
        let sent = frame(mac(99), &[], &OTHER_TYPE);
        let (mut table, given) = table(vec![(101, sent[..20].to_vec()), (55, sent)]);
        table.set(node(1, &[[0x88a8, 100], [0x8100, 7]]));
        for tags in [&[][..], &[0x8100, 100], &[0x8100, 100, 0x8100, 7]] {
            assert!(table.handle_frame(&frame(mac(1), tags, &OTHER_TYPE)));
        }
        assert!(interfaces(&given).is_empty());
        assert_eq!(table.counters.other_vlan, 3);
        // With a priority.
        table.handle_frame(&frame(mac(1), &[0x88a8, 0x6064, 0x8100, 7], &OTHER_TYPE));
        let got = given
            .lock()
            .expect("one thread")
            .pop()
            .expect("it is the node's");
        assert_eq!(got.1[TYPE_OFFSET..TYPE_OFFSET + 2], OTHER_TYPE);
        let mut left = Vec::new();
        table.poll_transmit(8, &mut |frame| {
            left.push(frame.to_vec());
            true
        });
        assert_eq!(
            left.len(),
            1,
            "an interface that is no node's sends nothing"
        );
        assert_eq!(left[0][12..20], [0x88, 0xa8, 0, 100, 0x81, 0, 0, 7]);
        assert_eq!(left[0].len(), FRAME_BYTES_MIN);
    }

    #[test]
    fn any_type_may_stand_in_front_of_a_tag() {
        let (mut table, given) = table(Vec::new());
        table.set(node(1, &[[0x8011, 22]]));
        for tags in [&[0x8100, 22][..], &[0x8011, 23], &[0x8011, 22, 0x8100, 7]] {
            table.handle_frame(&frame(mac(1), tags, &OTHER_TYPE));
        }
        assert!(interfaces(&given).is_empty());
        table.handle_frame(&frame(mac(1), &[0x8011, 22], &OTHER_TYPE));
        assert_eq!(interfaces(&given), [101]);
    }

    #[test]
    fn the_port_as_a_host_has_what_is_about_addresses_until_it_may_answer_more() {
        let (mut table, given) = table(Vec::new());
        let mut port = node(1, &[]);
        port.is_port = true;
        table.set(port);
        let mut solicitation =
            [&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255][..], &[0; 32]].concat();
        solicitation.extend([135, 0, 0, 0]);
        let arp = [8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
        let mut echo = [
            &[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 1, 0, 0][..],
            &[0; 8],
        ]
        .concat();
        echo.extend([8, 0]);
        for (answers, bytes, interfaces_given) in [
            (false, &arp[..], &[101][..]),
            (false, &solicitation, &[101]),
            (false, &echo, &[]),
            (true, &echo, &[101]),
        ] {
            table.port_answers = answers;
            let is_taken = table.handle_frame(&frame(mac(1), &[], bytes));
            assert!(!is_taken, "who looks for the gateway sees it, too");
            assert_eq!(interfaces(&given), interfaces_given, "{bytes:?}");
        }
        assert_eq!(table.counters.filtered, 1);
    }

    #[test]
    fn what_a_node_sends_before_it_is_known_leaves_later() {
        let sent = |last: u32| (100 + last, frame(ALL, &[], &OTHER_TYPE));
        let (mut table, _) = table((1..=3).map(sent).collect());
        let left = |table: &mut PortNodeTable| {
            let mut left = 0;
            table.poll_transmit(8, &mut |_| {
                left += 1;
                true
            });
            left
        };
        table.set(node(2, &[]));
        assert_eq!(left(&mut table), 1);
        table.set(node(3, &[]));
        assert_eq!(left(&mut table), 1);
        assert_eq!(left(&mut table), 0);
        assert_eq!(table.counters.sent.broadcast.frames, 2);
    }

    #[test]
    fn filters_leave_frames_out() {
        let (mut table, given) = table(Vec::new());
        let mut one = node(1, &[]);
        one.filter.tcp_udp = false;
        table.set(one);
        let udp = [
            &[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0][..],
            &[0; 34],
        ]
        .concat();
        assert!(
            table.handle_frame(&frame(mac(1), &[], &udp)),
            "nobody else's either"
        );
        assert!(interfaces(&given).is_empty());
        assert_eq!(table.counters.filtered, 1);
        assert!(table.handle_frame(&frame(mac(1), &[], &OTHER_TYPE)));
        assert_eq!(interfaces(&given), [101]);
        let mut one = node(1, &[]);
        one.filter.bpf = Filter::compile("udp").expect("a filter");
        table.set(one);
        assert!(table.handle_frame(&frame(mac(1), &[], &OTHER_TYPE)));
        assert!(table.handle_frame(&frame(mac(1), &[], &udp)));
        assert_eq!(interfaces(&given), [101]);
    }
}
