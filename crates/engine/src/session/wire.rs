//! Between frames and what they mean to a flow.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::MacAddress;
use allosaur_packet::checksum::{self, Sum};
use allosaur_packet::frame::{Fragment, Health, Layout, Network, Transport};
use allosaur_packet::ip_protocol::IpProtocol;
use allosaur_packet::ipv4::Ipv4View;
use allosaur_packet::ipv6::Ipv6View;
use allosaur_packet::tcp::{self as tcp_header, TcpFlags, TcpView};
use allosaur_packet::tcp_options::{SackBlocks, TcpOption};
use allosaur_packet::udp::{self as udp_header, UdpView};

use crate::tcp::{Segment, Seq};

const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Where TCP begins in an IPv4 packet without options in a frame without tags.
const PLAIN_TRANSPORT: usize = ETHERNET_BYTES + IPV4_BYTES;
/// Of a frame without FCS; what is shorter is padded with zeros.
const FRAME_BYTES_MIN: usize = 60;
/// The ECN field of the IP header (RFC 3168, section 5): may be marked, and marked.
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// Two bytes of padding, and the head of the timestamps option.
const USUAL_OPTIONS: u32 = 0x0101_080a;
/// The bytes of these options, both times included.
const USUAL_OPTIONS_BYTES: usize = 12;

/// The addresses of a frame on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4: source, destination.
    V4(Ipv4Addr, Ipv4Addr),
    /// IPv6: source, destination.
    V6(Ipv6Addr, Ipv6Addr),
}

/// What surrounds the segments that a flow sends.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// MAC addresses: to, from.
    pub macs: (MacAddress, MacAddress),
    /// The tag control information of a VLAN tag.
    pub vlan: Option<u16>,
    /// Source, destination.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// The type of service, or traffic class, without ECN.
    pub type_of_service: u8,
    /// Time to live, or hop limit.
    pub time_to_live: u8,
    /// The identification of an IPv4 packet.
    pub identification: u16,
}

/// What a frame brought.
#[derive(Clone, Copy, Debug)]
pub enum Arrival {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram with so many bytes.
    Udp(u16),
}

/// A frame that may belong to a flow.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Source, destination.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// What it brought.
    pub arrival: Arrival,
}

/// Why a frame belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Neither TCP nor UDP.
    Other,
    /// A part of an IPv4 packet.
    Fragment,
    /// Its lengths contradict each other, or it ends too early.
    Length,
    /// The checksum of its IPv4 header is wrong.
    NetworkChecksum,
    /// The checksum of TCP or UDP is wrong.
    TransportChecksum,
}

/// Reads a frame; `layout` is what the parser found in it.
///
/// # Errors
///
/// Why it belongs to no flow.
pub fn read(frame: &[u8], layout: &Layout) -> Result<Received, Refusal> {
    let at = (layout.network_offset, layout.transport_offset);
    let is_plain = at == (ETHERNET_BYTES as u16, PLAIN_TRANSPORT as u16)
        && (layout.network, layout.transport) == (Network::Ipv4, Transport::Tcp)
        && (layout.fragment, layout.health) == (Fragment::No, Health::Whole);
    match frame.first_chunk() {
        Some(headers) if is_plain => read_plain(headers, frame, layout),
        _ => read_any(frame, layout),
    }
}

/// The short way for TCP in IPv4 without tags and IP options: all is where it mostly is.
#[inline]
fn read_plain(
    headers: &[u8; PLAIN_TRANSPORT + tcp_header::HEADER_BYTES_MIN],
    frame: &[u8],
    layout: &Layout,
) -> Result<Received, Refusal> {
    let word = |at: usize| {
        let bytes = [
            headers[at],
            headers[at + 1],
            headers[at + 2],
            headers[at + 3],
        ];
        u32::from_be_bytes(bytes)
    };
    let ip = |n: usize| word(ETHERNET_BYTES + 4 * n);
    let sum = (0..5).fold(Sum::default(), |sum, n| sum.and_u32(ip(n)));
    if sum.checksum() != 0 {
        return Err(Refusal::NetworkChecksum);
    }
    let segment = layout.segment(frame);
    let (from, to) = (Ipv4Addr::from(ip(3)), Ipv4Addr::from(ip(4)));
    let addresses = Addresses::V4(from, to);
    let sum = pseudo_header(addresses, IpProtocol::TCP, segment.len());
    if sum.and(segment).checksum() != 0 {
        return Err(Refusal::TransportChecksum);
    }
    let tcp = |n: usize| word(PLAIN_TRANSPORT + 4 * n);
    let header_bytes = layout.payload_offset - layout.transport_offset;
    let mut read = Segment {
        seq: Seq(tcp(1)),
        ack: Seq(tcp(2)),
        flags: TcpFlags((tcp(3) >> 16) as u8),
        window: tcp(3) as u16,
        len: (segment.len() - usize::from(header_bytes)) as u32,
        ecn: (ip(0) >> 16) as u8 & CE == CE,
        ..Segment::default()
    };
    if usize::from(header_bytes) > tcp_header::HEADER_BYTES_MIN {
        read_options(&TcpView::new_unchecked(segment), &mut read);
    }
    Ok(Received {
        addresses,
        ports: ((tcp(0) >> 16) as u16, tcp(0) as u16),
        arrival: Arrival::Tcp(read),
    })
}

fn read_any(frame: &[u8], layout: &Layout) -> Result<Received, Refusal> {
    if layout.fragment != Fragment::No {
        return Err(Refusal::Fragment);
    }
    if !matches!(layout.protocol, IpProtocol::TCP | IpProtocol::UDP) {
        return Err(Refusal::Other);
    }
    if layout.health != Health::Whole {
        return Err(Refusal::Length);
    }
    let (addresses, marked) = read_network(frame, layout)?;
    let segment = layout.segment(frame);
    let pseudo_header = pseudo_header(addresses, layout.protocol, segment.len());
    match layout.transport {
        Transport::Tcp => {
            let view = TcpView::new_unchecked(segment);
            if !view.has_right_checksum(pseudo_header) {
                return Err(Refusal::TransportChecksum);
            }
            Ok(Received {
                addresses,
                ports: (view.source_port(), view.destination_port()),
                arrival: Arrival::Tcp(read_segment(&view, segment.len(), marked)),
            })
        }
        Transport::Udp => {
            let view = UdpView::new_unchecked(segment);
            if !view.has_right_checksum(pseudo_header) {
                return Err(Refusal::TransportChecksum);
            }
            Ok(Received {
                addresses,
                ports: (view.source_port(), view.destination_port()),
                arrival: Arrival::Udp(view.payload().len() as u16),
            })
        }
        _ => Err(Refusal::Length),
    }
}

/// What is wrong with a TCP segment whose packet is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is shorter than a header.
    Short,
    /// Its header is shorter than one, or longer than the segment.
    Offset,
    /// Its checksum is wrong.
    Checksum,
}

/// The damage of a segment that [`read`] refused, and from which address and port to which it
/// says that it is; `None` where not that much is there.
pub fn read_damaged(frame: &[u8], layout: &Layout) -> Option<(Damage, Addresses, (u16, u16))> {
    if layout.fragment != Fragment::No || layout.protocol != IpProtocol::TCP {
        return None;
    }
    let (addresses, _) = read_network(frame, layout).ok()?;
    let segment = layout.segment(frame);
    let port = |at: usize| Some(u16::from_be_bytes(*segment.get(at..)?.first_chunk()?));
    let shortest = tcp_header::HEADER_BYTES_MIN;
    let damage = match segment.get(12) {
        Some(offset) if segment.len() >= shortest => {
            let header_bytes = usize::from(offset >> 4) * 4;
            if !(shortest..=segment.len()).contains(&header_bytes) {
                Damage::Offset
            } else if layout.health == Health::Whole {
                Damage::Checksum
            } else {
                return None;
            }
        }
        _ => Damage::Short,
    };
    Some((damage, addresses, (port(0)?, port(2)?)))
}

/// The addresses, and whether a router marked the packet.
fn read_network(frame: &[u8], layout: &Layout) -> Result<(Addresses, bool), Refusal> {
    let network = &frame[usize::from(layout.network_offset)..];
    match layout.network {
        Network::Ipv4 => {
            let view = Ipv4View::new_unchecked(network);
            if !view.has_right_checksum() {
                return Err(Refusal::NetworkChecksum);
            }
            let addresses = Addresses::V4(view.source(), view.destination());
            Ok((addresses, view.type_of_service() & CE == CE))
        }
        Network::Ipv6 => {
            let view = Ipv6View::new_unchecked(network);
            let addresses = Addresses::V6(view.source(), view.destination());
            Ok((addresses, view.traffic_class() & CE == CE))
        }
        Network::Arp | Network::None => Err(Refusal::Other),
    }
}

#[inline]
fn read_segment(view: &TcpView<&[u8]>, segment_bytes: usize, marked: bool) -> Segment {
    let mut segment = Segment {
        seq: Seq(view.sequence()),
        ack: Seq(view.acknowledgment()),
        flags: view.flags(),
        window: view.window(),
        len: (segment_bytes - view.header_bytes()) as u32,
        ecn: marked,
        ..Segment::default()
    };
    read_options(view, &mut segment);
    segment
}

#[inline]
fn read_options(view: &TcpView<&[u8]>, segment: &mut Segment) {
    if let Some(timestamps) = read_usual_options(view) {
        segment.timestamps = Some(timestamps);
        return;
    }
    for option in view.options() {
        match option {
            TcpOption::MaximumSegmentSize(bytes) => segment.mss = Some(bytes),
            TcpOption::WindowScale(shift) => segment.window_scale = Some(shift),
            TcpOption::SackPermitted => segment.sack_permitted = true,
            TcpOption::Timestamps { value, echo } => segment.timestamps = Some((value, echo)),
            TcpOption::Sack(blocks) => segment.sack = blocks,
            _ => {}
        }
    }
}

/// The timestamps of a segment that has them and nothing else, in the form that RFC 7323, appendix
/// A, recommends and all systems use.
#[inline]
fn read_usual_options(view: &TcpView<&[u8]>) -> Option<(u32, u32)> {
    let options: &[u8; USUAL_OPTIONS_BYTES] = view.option_bytes().try_into().ok()?;
    let [k0, k1, k2, k3, v0, v1, v2, v3, e0, e1, e2, e3] = *options;
    let is_usual = u32::from_be_bytes([k0, k1, k2, k3]) == USUAL_OPTIONS;
    let (value, echo) = ([v0, v1, v2, v3], [e0, e1, e2, e3]);
    is_usual.then(|| (u32::from_be_bytes(value), u32::from_be_bytes(echo)))
}

fn pseudo_header(addresses: Addresses, protocol: IpProtocol, bytes: usize) -> Sum {
    match addresses {
        Addresses::V4(from, to) => checksum::pseudo_header_v4(from, to, protocol, bytes as u16),
        Addresses::V6(from, to) => checksum::pseudo_header_v6(from, to, protocol, bytes as u32),
    }
}

/// What is written: a segment, or a datagram with so many bytes.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A TCP segment.
    Tcp(&'a Segment),
    /// A UDP datagram with so many bytes.
    Udp(u16),
}

impl Content<'_> {
    fn data_bytes(&self) -> usize {
        match self {
            Content::Tcp(segment) => segment.len as usize,
            Content::Udp(bytes) => usize::from(*bytes),
        }
    }

    fn header_bytes(&self) -> usize {
        match self {
            Content::Tcp(segment) => tcp_header::HEADER_BYTES_MIN + option_bytes(segment),
            Content::Udp(_) => udp_header::HEADER_BYTES,
        }
    }

    fn protocol(&self) -> IpProtocol {
        match self {
            Content::Tcp(_) => IpProtocol::TCP,
            Content::Udp(_) => IpProtocol::UDP,
        }
    }
}

/// Bytes of a frame around the data of a segment without options.
pub fn header_bytes(is_v6: bool, is_tagged: bool) -> usize {
    let network = if is_v6 { IPV6_BYTES } else { IPV4_BYTES };
    let tag = if is_tagged { VLAN_BYTES } else { 0 };
    ETHERNET_BYTES + tag + network + tcp_header::HEADER_BYTES_MIN
}

/// Where the parts of a frame are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    network: usize,
    transport: usize,
    payload: usize,
    end: usize,
}

impl Places {
    /// The length of the frame, without FCS.
    #[inline]
    pub fn frame_bytes(self) -> usize {
        self.end.max(FRAME_BYTES_MIN)
    }
}

impl Envelope {
    fn network_offset(&self) -> usize {
        ETHERNET_BYTES + self.vlan.map_or(0, |_| VLAN_BYTES)
    }

    fn network_bytes(&self) -> usize {
        match self.addresses {
            Addresses::V4(..) => IPV4_BYTES,
            Addresses::V6(..) => IPV6_BYTES,
        }
    }

    /// The length of the frame around `content`, without FCS.
    pub fn frame_bytes(&self, content: &Content<'_>) -> usize {
        self.places(content).frame_bytes()
    }

    /// Where the parts of the frame around `content` are.
    #[inline]
    pub fn places(&self, content: &Content<'_>) -> Places {
        let network = self.network_offset();
        let transport = network + self.network_bytes();
        let payload = transport + content.header_bytes();
        Places {
            network,
            transport,
            payload,
            end: payload + content.data_bytes(),
        }
    }

    /// Writes the frame around `content`. `data` writes the data and returns its sum; it is called
    /// also when there is none.
    ///
    /// # Panics
    ///
    /// When `frame` is not as long as [`frame_bytes`](Envelope::frame_bytes) says.
    pub fn write(
        &self,
        content: &Content<'_>,
        frame: &mut [u8],
        data: impl FnOnce(&mut [u8]) -> Sum,
    ) {
        self.write_at(self.places(content), content, frame, data);
    }

    /// The same, where the parts have their [`places`](Envelope::places).
    #[inline]
    pub fn write_at(
        &self,
        places: Places,
        content: &Content<'_>,
        frame: &mut [u8],
        data: impl FnOnce(&mut [u8]) -> Sum,
    ) {
        let Places {
            network,
            transport,
            payload,
            end,
        } = places;
        let segment_bytes = end - transport;
        self.write_link(frame);
        self.write_network(content, segment_bytes, &mut frame[network..transport]);
        let data_sum = data(&mut frame[payload..end]);
        if end < frame.len() {
            frame[end..].fill(0);
        }
        let header = &mut frame[transport..payload];
        let sum = pseudo_header(self.addresses, content.protocol(), segment_bytes);
        let sum = sum.and_sum(data_sum);
        match content {
            Content::Tcp(segment) => write_segment(segment, self.ports, sum, header),
            Content::Udp(_) => write_datagram(self.ports, segment_bytes, sum, header),
        }
    }

    fn write_link(&self, frame: &mut [u8]) {
        if let (None, Addresses::V4(..), Some(link)) =
            (self.vlan, self.addresses, frame.first_chunk_mut())
        {
            let ([t0, t1, t2, t3, t4, t5], [f0, f1, f2, f3, f4, f5]) =
                (self.macs.0.0, self.macs.1.0);
            let link: &mut [u8; ETHERNET_BYTES] = link;
            *link = [t0, t1, t2, t3, t4, t5, f0, f1, f2, f3, f4, f5, 8, 0];
            return;
        }
        frame[..6].copy_from_slice(&self.macs.0.0);
        frame[6..12].copy_from_slice(&self.macs.1.0);
        let ether_type: u16 = match self.addresses {
            Addresses::V4(..) => 0x0800,
            Addresses::V6(..) => 0x86dd,
        };
        let mut at = 12;
        if let Some(tag) = self.vlan {
            frame[12..14].copy_from_slice(&0x8100u16.to_be_bytes());
            frame[14..16].copy_from_slice(&tag.to_be_bytes());
            at = 16;
        }
        frame[at..at + 2].copy_from_slice(&ether_type.to_be_bytes());
    }

    fn write_network(&self, content: &Content<'_>, segment_bytes: usize, header: &mut [u8]) {
        let ecn = match content {
            Content::Tcp(segment) if segment.ecn => ECT_0,
            _ => 0,
        };
        let class = self.type_of_service & !CE | ecn;
        let protocol = content.protocol().0;
        match self.addresses {
            Addresses::V4(from, to) => {
                let total = (IPV4_BYTES + segment_bytes) as u16;
                let words = [
                    word([0x45, class], total),
                    // Do not fragment: our segments have the size that the way allows.
                    u32::from(self.identification) << 16 | 0x4000,
                    word([self.time_to_live, protocol], 0),
                    from.to_bits(),
                    to.to_bits(),
                ];
                let sum = put_words(words, header).checksum();
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            Addresses::V6(from, to) => {
                let first = 6 << 28 | u32::from(class) << 20;
                header[..4].copy_from_slice(&first.to_be_bytes());
                header[4..6].copy_from_slice(&(segment_bytes as u16).to_be_bytes());
                header[6..8].copy_from_slice(&[protocol, self.time_to_live]);
                header[8..24].copy_from_slice(&from.octets());
                header[24..40].copy_from_slice(&to.octets());
            }
        }
    }
}

/// Two bytes and a 16-bit number, in the order of the wire.
#[inline]
fn word([first, second]: [u8; 2], third: u16) -> u32 {
    u32::from(first) << 24 | u32::from(second) << 16 | u32::from(third)
}

/// Writes words in the order of the wire, and returns their sum.
#[inline]
fn put_words<const N: usize>(words: [u32; N], to: &mut [u8]) -> Sum {
    let mut sum = Sum::default();
    for (word, place) in words.into_iter().zip(to.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_be_bytes());
        sum = sum.and_u32(word);
    }
    sum
}

fn write_datagram(ports: (u16, u16), bytes: usize, sum: Sum, header: &mut [u8]) {
    header[..2].copy_from_slice(&ports.0.to_be_bytes());
    header[2..4].copy_from_slice(&ports.1.to_be_bytes());
    header[4..6].copy_from_slice(&(bytes as u16).to_be_bytes());
    header[6..8].fill(0);
    let sum = checksum::for_udp(sum.and(header).checksum());
    header[6..8].copy_from_slice(&sum.to_be_bytes());
}

fn write_segment(segment: &Segment, ports: (u16, u16), sum: Sum, header: &mut [u8]) {
    let offset = (header.len() / 4) << 4;
    let words = [
        u32::from(ports.0) << 16 | u32::from(ports.1),
        segment.seq.0,
        segment.ack.0,
        word([offset as u8, segment.flags.0], segment.window),
        // The checksum, and nothing urgent.
        0,
    ];
    let (fixed, options) = header.split_at_mut(tcp_header::HEADER_BYTES_MIN);
    let sum = sum.and_sum(put_words(words, fixed));
    let sum = sum.and_sum(write_all_options(segment, options));
    fixed[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
}

/// Writes the options, and returns their sum.
#[inline]
fn write_all_options(segment: &Segment, options: &mut [u8]) -> Sum {
    match segment.timestamps {
        Some((value, echo)) if options.len() == USUAL_OPTIONS_BYTES => {
            put_words([USUAL_OPTIONS, value, echo], options)
        }
        _ => {
            write_options(segment, options);
            Sum::of(options)
        }
    }
}

/// Bytes of the options with their padding to whole words.
fn option_bytes(segment: &Segment) -> usize {
    let blocks = segment.sack.as_slice().len();
    segment.mss.map_or(0, |_| 4)
        + segment.window_scale.map_or(0, |_| 4)
        + if segment.sack_permitted { 4 } else { 0 }
        + segment.timestamps.map_or(0, |_| 12)
        + if blocks > 0 { 4 + 8 * blocks } else { 0 }
}

/// Each option is padded to whole words in front, as all systems do.
fn write_options(segment: &Segment, mut rest: &mut [u8]) {
    let mut put = |bytes: &[u8]| {
        let (place, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        place.copy_from_slice(bytes);
        rest = after;
    };
    if let Some(bytes) = segment.mss {
        let [high, low] = bytes.to_be_bytes();
        put(&[2, 4, high, low]);
    }
    if segment.sack_permitted {
        put(&[1, 1, 4, 2]);
    }
    if let Some((value, echo)) = segment.timestamps {
        put(&[1, 1, 8, 10]);
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    }
    if let Some(shift) = segment.window_scale {
        put(&[1, 3, 3, shift]);
    }
    put_sack(segment.sack, put);
}

fn put_sack(blocks: SackBlocks, mut put: impl FnMut(&[u8])) {
    let blocks = blocks.as_slice();
    if blocks.is_empty() {
        return;
    }
    put(&[1, 1, 5, (2 + 8 * blocks.len()) as u8]);
    for block in blocks {
        put(&block.left.to_be_bytes());
        put(&block.right.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use allosaur_packet::frame;
    use allosaur_packet::tcp::TcpFlags;
    use allosaur_packet::tcp_options::SackBlock;
    use proptest::prelude::*;

    use super::*;

    fn some_addresses() -> impl Strategy<Value = Addresses> {
        prop_oneof![
            any::<(u32, u32)>().prop_map(|(a, b)| Addresses::V4(a.into(), b.into())),
            any::<(u128, u128)>().prop_map(|(a, b)| Addresses::V6(a.into(), b.into())),
        ]
    }

    prop_compose! {
        fn some_envelope()(
            macs in any::<([u8; 6], [u8; 6])>(),
            vlan in prop::option::of(any::<u16>()),
            addresses in some_addresses(),
            ports in any::<(u16, u16)>(),
            type_of_service in any::<u8>(),
            time_to_live in any::<u8>(),
            identification in any::<u16>(),
        ) -> Envelope {
            let macs = (MacAddress(macs.0), MacAddress(macs.1));
            Envelope {
                macs, vlan, addresses, ports, type_of_service, time_to_live, identification,
            }
        }
    }

    prop_compose! {
        fn some_segment()(
            numbers in any::<(u32, u32, u8, u16)>(),
            len in 0..2000u32,
            syn in any::<(Option<u16>, Option<u8>, bool)>(),
            is_syn in any::<bool>(),
            timestamps in any::<Option<(u32, u32)>>(),
            blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=3),
            ecn in any::<bool>(),
        ) -> Segment {
            let blocks = blocks.iter().map(|&(left, right)| SackBlock { left, right });
            let blocks: Vec<SackBlock> = blocks.collect();
            Segment {
                seq: Seq(numbers.0),
                ack: Seq(numbers.1),
                flags: TcpFlags(numbers.2),
                window: numbers.3,
                len,
                // The options of a SYN, or SACK: both do not fit.
                mss: syn.0.filter(|_| is_syn),
                window_scale: syn.1.filter(|_| is_syn),
                sack_permitted: syn.2 && is_syn,
                timestamps,
                sack: if is_syn { SackBlocks::default() } else { SackBlocks::new(&blocks) },
                ecn,
                ..Segment::default()
            }
        }
    }

    fn written(envelope: &Envelope, content: &Content<'_>) -> Vec<u8> {
        let mut frame = vec![0xaa; envelope.frame_bytes(content)];
        envelope.write(content, &mut frame, |data| {
            data.iter_mut()
                .zip(0u8..=255)
                .for_each(|(byte, n)| *byte = n);
            Sum::of(data)
        });
        frame
    }

    proptest! {
        #[test]
        fn a_segment_is_read_as_it_was_written(envelope in some_envelope(), segment in some_segment()) {
            let frame = written(&envelope, &Content::Tcp(&segment));
            let received = read(&frame, &frame::parse(&frame)).expect("it is right");
            prop_assert_eq!(received.addresses, envelope.addresses);
            prop_assert_eq!(received.ports, envelope.ports);
            let Arrival::Tcp(read) = received.arrival else {
                return Err(TestCaseError::fail("it is TCP"));
            };
            // A packet that may be marked was not marked yet.
            let expected = Segment { ecn: false, ..segment };
            prop_assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        }

        #[test]
        fn a_datagram_is_read_as_it_was_written(envelope in some_envelope(), bytes in 0..3000u16) {
            let frame = written(&envelope, &Content::Udp(bytes));
            let received = read(&frame, &frame::parse(&frame)).expect("it is right");
            prop_assert!(matches!(received.arrival, Arrival::Udp(read) if read == bytes));
            prop_assert_eq!(received.ports, envelope.ports);
        }

        #[test]
        fn one_wrong_bit_is_seen(
            envelope in some_envelope(),
            segment in some_segment(),
            place in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let mut frame = written(&envelope, &Content::Tcp(&segment));
            let is_v4 = matches!(envelope.addresses, Addresses::V4(..));
            let from = envelope.network_offset() + if is_v4 { 0 } else { 8 };
            let layout = frame::parse(&frame);
            let at = from + place.index(usize::from(layout.end_offset) - from);
            frame[at] ^= 1u8 << bit;
            let refused = read(&frame, &frame::parse(&frame)).is_err();
            prop_assert!(refused, "byte {at}");
        }

        #[test]
        fn any_bytes_are_read(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&frame, &frame::parse(&frame));
        }
    }
}
