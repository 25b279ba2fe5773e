//! From the bytes of a capture file to what is sent again: the order and the times of its frames,
//! their addresses, and in which direction each goes.
//!
//! Two directions are told apart like this. When the file is a pcapng or ERF with the frames of two
//! interfaces, those of the interface with the lower number go in the first direction. Otherwise
//! by addresses: the sender of the first frame stands on the first side and its receiver on the
//! other; each sender that is seen later stands opposite to whom it sends to, where that is known,
//! and on the first side where it is not; a frame goes in the direction of its sender's side. The
//! addresses are the MAC addresses, or the IP addresses when by MAC addresses all frames go one way.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

use allosaur_packet::file::erf::ErfReader;
use allosaur_packet::file::pcap::PcapReader;
use allosaur_packet::file::pcapng::PcapngReader;
use allosaur_packet::file::{CaptureError, LinkType, Record};
use allosaur_packet::frame::{self, Network};
use thiserror::Error;

use super::replay::{Macs, Replay};
use super::spec::{GAP_MAX, PACKET_BYTES_MAX, PACKET_BYTES_MIN};
use crate::time::{Due, Gap, Nanos, SECOND};

/// When the frames of a capture leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Between two frames, in nanoseconds, before `speedup`; `None` takes what was recorded.
    pub gap_ns: Option<f64>,
    /// Shorter gaps become so long, in nanoseconds, after `speedup`.
    pub gap_min_ns: f64,
    /// Gaps are divided by this; above zero.
    pub speedup: f64,
    /// How often all of it is sent; `None` is without end.
    pub rounds: Option<NonZeroU32>,
}

/// Why a capture cannot be sent, with the packet (counted from 0) and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// It is no capture, or a damaged one.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Frames of another kind.
    #[error(
        "packet {packet} has link type {found}: only ethernet can be sent, capture on an Ethernet interface"
    )]
    LinkType {
        /// The packet.
        packet: usize,
        /// What it is.
        found: LinkType,
    },
    /// Nothing to send.
    #[error("the capture holds no packets: give one that does")]
    Empty,
    /// A packet that no port can send.
    #[error(
        "packet {packet} is {bytes} bytes; it must be {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX} \
         (without the 4 bytes of FCS): leave it out, or capture with segmentation offload off"
    )]
    PacketSize {
        /// The packet.
        packet: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// Packets that lack bytes: their headers would tell of more than is sent.
    #[error(
        "it was cut while it was recorded: of {of} packets {packets} lack bytes, packet {packet} has \
         {bytes} of {wire_bytes}: capture whole packets (tcpdump -s 0), or fill them up (tcprewrite \
         --fixlen=pad)"
    )]
    Cut {
        /// So many lack some.
        packets: usize,
        /// Of so many.
        of: usize,
        /// The one that lacks most.
        packet: usize,
        /// Its bytes.
        bytes: usize,
        /// Those that it had.
        wire_bytes: usize,
    },
    /// Times beyond all use.
    #[error(
        "packet {packet} would leave more than a year after the first: raise 'speedup', or give \
         the gap by 'ipg_usec'"
    )]
    TooLong {
        /// The packet.
        packet: usize,
    },
    /// Endless frames in one instant.
    #[error(
        "all packets would leave at one instant, again and again forever: give 'ipg_usec' or \
         'min_ipg_usec' above zero, or a 'count'"
    )]
    Timeless,
    /// No second direction.
    #[error(
        "all packets go in one direction, by interface, MAC and IP addresses: set 'is_dual' to \
         false, or give a capture of both directions"
    )]
    OneWay,
}

/// Packets that several interfaces recorded are out of order by less.
const SET_BACK_NS: u64 = SECOND;

/// What one port sends of a capture.
pub fn one_way(bytes: &[u8], pace: &Pace, macs: Macs) -> Result<Replay, RecordingError> {
    check_whole(bytes)?;
    let mut replay = Replay::with_capacity(bytes.len());
    let mut timeline = Timeline::new(pace);
    for (i, packet) in Packets::new(bytes)?.enumerate() {
        let packet = checked(i, packet?)?;
        replay.push(timeline.next(i, packet.time_ns)?, packet.data, macs);
    }
    replay.repeat(timeline.period()?, pace.rounds);
    replay.early_packets = timeline.early_packets;
    Ok(replay)
}

/// What two ports send of a capture, the first direction first. Both keep to one timeline, which
/// is that of the whole capture.
pub fn both_ways(
    bytes: &[u8],
    pace: &Pace,
    macs: [Macs; 2],
) -> Result<[Replay; 2], RecordingError> {
    let sides = sides(bytes)?;
    check_whole(bytes)?;
    let [mut first, mut second] = [0, 0].map(Replay::with_capacity);
    let mut timeline = Timeline::new(pace);
    for (i, (packet, side)) in Packets::new(bytes)?.zip(sides).enumerate() {
        let packet = packet?;
        let at = timeline.next(i, packet.time_ns)?;
        match side {
            Side::First => first.push(at, packet.data, macs[0]),
            Side::Second => second.push(at, packet.data, macs[1]),
        }
    }
    let period = timeline.period()?;
    for replay in [&mut first, &mut second] {
        replay.repeat(period, pace.rounds);
        replay.early_packets = timeline.early_packets;
    }
    Ok([first, second])
}

/// One packet of a capture of any format.
struct Packet<'a> {
    time_ns: u64,
    data: &'a [u8],
    wire_bytes: usize,
    link_type: LinkType,
    interface: usize,
}

impl<'a> Packet<'a> {
    fn new(record: &Record<'a>, link_type: LinkType, interface: usize) -> Packet<'a> {
        Packet {
            time_ns: record.time_ns,
            data: record.data,
            wire_bytes: record.original_len as usize,
            link_type,
            interface,
        }
    }

    fn lacks_bytes(&self) -> usize {
        self.wire_bytes.saturating_sub(self.data.len())
    }
}

enum Packets<'a> {
    Pcap(PcapReader<'a>),
    Pcapng(PcapngReader<'a>),
    Erf(ErfReader<'a>),
}

impl<'a> Packets<'a> {
    fn new(bytes: &'a [u8]) -> Result<Packets<'a>, CaptureError> {
        match PcapReader::new(bytes) {
            Err(CaptureError::NotACapture { .. }) => {}
            reader => return reader.map(Packets::Pcap),
        }
        match PcapngReader::new(bytes) {
            Err(CaptureError::NotACapture { .. }) => ErfReader::new(bytes).map(Packets::Erf),
            reader => reader.map(Packets::Pcapng),
        }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Packets::Pcap(reader) => {
                let link_type = reader.link_type();
                reader
                    .next()
                    .map(|record| record.map(|record| Packet::new(&record, link_type, 0)))
            }
            Packets::Erf(reader) => {
                let link_type = reader.link_type();
                reader.next().map(|packet| {
                    packet.map(|packet| Packet::new(&packet.record, link_type, packet.interface))
                })
            }
            Packets::Pcapng(reader) => reader.next().map(|packet| {
                packet.map(|packet| {
                    let interface = packet.interface;
                    Packet::new(&packet.record, interface.link_type, interface.number)
                })
            }),
        }
    }
}

/// A packet that a port can send.
fn checked(packet: usize, read: Packet<'_>) -> Result<Packet<'_>, RecordingError> {
    let found = read.link_type;
    if found != LinkType::ETHERNET {
        return Err(RecordingError::LinkType { packet, found });
    }
    let bytes = read.data.len();
    if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&bytes) {
        return Err(RecordingError::PacketSize { packet, bytes });
    }
    Ok(read)
}

/// All packets must be as long as they were on the wire.
fn check_whole(bytes: &[u8]) -> Result<(), RecordingError> {
    let (mut packets, mut of, mut worst) = (0, 0, None);
    // A packet that cannot be read is told where packets are taken.
    for (i, packet) in Packets::new(bytes)?.map_while(Result::ok).enumerate() {
        of += 1;
        let lacks = packet.lacks_bytes();
        if lacks > 0 {
            packets += 1;
            let seen = worst.get_or_insert((lacks, i, packet.data.len()));
            if lacks > seen.0 {
                *seen = (lacks, i, packet.data.len());
            }
        }
    }
    let Some((lacks, packet, bytes)) = worst else {
        return Ok(());
    };
    Err(RecordingError::Cut {
        packets,
        of,
        packet,
        bytes,
        wire_bytes: bytes + lacks,
    })
}

/// Gives each packet its time in a round.
struct Timeline<'a> {
    pace: &'a Pace,
    /// Of the last packet: when it leaves, and the latest time that was recorded until then, as a
    /// clock shows it that was not set.
    last: Option<(Due, u64)>,
    /// What was added to the recorded times since a clock was set back.
    shift_ns: u64,
    /// The latest time that was recorded.
    latest_ns: u64,
    /// Packets that were recorded before one in front of them.
    early_packets: usize,
}

impl<'a> Timeline<'a> {
    fn new(pace: &'a Pace) -> Timeline<'a> {
        Timeline {
            pace,
            last: None,
            shift_ns: 0,
            latest_ns: 0,
            early_packets: 0,
        }
    }

    /// A packet whose time is before that of one in front leaves with the one in front, and the times
    /// behind it hold; of a clock that was set back, only the gaps hold from then on.
    fn next(&mut self, packet: usize, recorded_ns: u64) -> Result<Nanos, RecordingError> {
        let (due, time_ns) = match self.last {
            None => (Due::default(), recorded_ns),
            Some((due, before_ns)) => {
                let mut time_ns = recorded_ns.wrapping_add(self.shift_ns);
                if time_ns < before_ns.saturating_sub(SET_BACK_NS) {
                    self.shift_ns = before_ns.wrapping_sub(recorded_ns);
                    time_ns = before_ns;
                }
                self.early_packets += usize::from(recorded_ns < self.latest_ns);
                let time_ns = time_ns.max(before_ns);
                (due.after(self.gap(time_ns - before_ns)), time_ns)
            }
        };
        if due.at > GAP_MAX {
            return Err(RecordingError::TooLong { packet });
        }
        self.latest_ns = self.latest_ns.max(recorded_ns);
        self.last = Some((due, time_ns));
        Ok(due.at)
    }

    /// From the first packet to the first of the next round, which follows the last at once as
    /// far as the recording goes.
    fn period(&self) -> Result<Gap, RecordingError> {
        let (last, _) = self.last.ok_or(RecordingError::Empty)?;
        let period = last.after(self.gap(0)).since(Due::default());
        if self.pace.rounds.is_none() && period == Gap::default() {
            return Err(RecordingError::Timeless);
        }
        Ok(period)
    }

    fn gap(&self, recorded_ns: u64) -> Gap {
        let planned_ns = self.pace.gap_ns.unwrap_or(recorded_ns as f64);
        Gap::from_nanos((planned_ns / self.pace.speedup).max(self.pace.gap_min_ns))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    First,
    Second,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }
}

/// The direction of each packet, by the rule at the top of this file.
fn sides(bytes: &[u8]) -> Result<Vec<Side>, RecordingError> {
    let mut interfaces = BTreeSet::new();
    let mut packets = 0;
    for (i, packet) in Packets::new(bytes)?.enumerate() {
        interfaces.insert(checked(i, packet?)?.interface);
        packets += 1;
    }
    if packets == 0 {
        return Err(RecordingError::Empty);
    }
    if let (2, Some(&lower)) = (interfaces.len(), interfaces.first()) {
        return sides_by(bytes, |packet| match packet.interface == lower {
            true => Side::First,
            false => Side::Second,
        });
    }
    let mut talkers = Talkers::default();
    let by_mac = sides_by(bytes, |packet| {
        let (to, from) = mac_addresses(packet.data);
        talkers.side(from, to, to[0] & 1 == 1)
    })?;
    if has_both(&by_mac) {
        return Ok(by_mac);
    }
    let mut talkers = Talkers::default();
    let by_ip = sides_by(bytes, |packet| match ip_addresses(packet.data) {
        Some((from, to)) => talkers.side(from, to, to.is_multicast()),
        None => Side::First,
    })?;
    Some(by_ip)
        .filter(|sides| has_both(sides))
        .ok_or(RecordingError::OneWay)
}

fn sides_by(
    bytes: &[u8],
    mut side: impl FnMut(&Packet<'_>) -> Side,
) -> Result<Vec<Side>, RecordingError> {
    let packets = Packets::new(bytes)?;
    let sides = packets.map(|packet| Ok(side(&packet?)));
    sides.collect()
}

fn has_both(sides: &[Side]) -> bool {
    sides.contains(&Side::First) && sides.contains(&Side::Second)
}

/// Who stands on which side.
struct Talkers<A>(HashMap<A, Side>);

impl<A> Default for Talkers<A> {
    fn default() -> Talkers<A> {
        Talkers(HashMap::new())
    }
}

impl<A: Copy + Eq + Hash> Talkers<A> {
    /// The side of a sender. An address that means many stands nowhere.
    fn side(&mut self, from: A, to: A, to_many: bool) -> Side {
        let opposite = self.0.get(&to).map(|side| side.other());
        let side = *self
            .0
            .entry(from)
            .or_insert(opposite.unwrap_or(Side::First));
        if !to_many {
            self.0.entry(to).or_insert(side.other());
        }
        side
    }
}

/// Destination and source; the packet was [`checked`] before.
fn mac_addresses(packet: &[u8]) -> ([u8; 6], [u8; 6]) {
    let mut addresses = packet.chunks_exact(6);
    let mut next = || {
        let bytes = addresses.next().and_then(|bytes| bytes.try_into().ok());
        bytes.expect("a checked packet has a whole Ethernet header")
    };
    (next(), next())
}

/// Source and destination.
fn ip_addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let layout = frame::parse(packet);
    let header = &packet[usize::from(layout.network_offset)..];
    let v4 = |at: usize| Some(IpAddr::from(*header.get(at..)?.first_chunk::<4>()?));
    let v6 = |at: usize| Some(IpAddr::from(*header.get(at..)?.first_chunk::<16>()?));
    match layout.network {
        Network::Ipv4 => Some((v4(12)?, v4(16)?)),
        Network::Ipv6 => Some((v6(8)?, v6(24)?)),
        Network::None | Network::Arp => None,
    }
}
