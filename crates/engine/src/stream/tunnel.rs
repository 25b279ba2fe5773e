//! A stream in the tunnel of its port: the frame that the user wrote behind the headers of the tunnel, and
//! its field-engine program with what of these headers depends on the packet.
//!
//! All of it is done once, when a profile is compiled. While it runs, such a stream is like any other.

use allosaur_packet::MacAddress;
use allosaur_packet::frame::{self, Layout, Network, Transport};
use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::{ipv4, ipv6};

use super::error::CompileError;
use super::spec::{PACKET_BYTES_MAX, StreamSpec};
use crate::encapsulation::{Encapsulation, LinkPrefix, Tunnel, flow_hash};
use crate::flow_stats::VxlanPorts;
use crate::latency::ChecksumFixup;
use crate::vm::{self, FieldProgram, Instruction, Values, Width};

/// The offsets of a header of UDP (RFC 768), and of lengths in headers of IP (RFC 791, RFC 8200).
const UDP_DESTINATION: usize = 2;
const UDP_LENGTH: usize = 4;
const IPV4_LENGTH: usize = 2;
const IPV6_LENGTH: usize = 4;
/// Bits of the outer source port that differ from flow to flow: the others say that it is a dynamic port
/// (RFC 7348, section 5).
const ENTROPY_BITS: usize = 14;
/// Variables that the outer source port depends on at most; more say little.
const ENTROPY_VARIABLES_MAX: usize = 4;

/// What stands in front of the frames of a port's streams.
#[derive(Debug)]
pub(super) struct TunnelHeaders {
    prefix: LinkPrefix,
}

impl TunnelHeaders {
    /// Those of `tunnel`, in frames from `own` to `peer`.
    pub(super) fn new(tunnel: Tunnel, peer: [u8; 6], own: [u8; 6]) -> TunnelHeaders {
        let encapsulation = Encapsulation::Tunnel(tunnel);
        let (peer, own) = (MacAddress(peer), MacAddress(own));
        TunnelHeaders {
            prefix: LinkPrefix::new(peer, own, &encapsulation, EtherType::IPV4),
        }
    }

    /// How many bytes they are.
    pub(super) fn bytes(&self) -> usize {
        // The Ethernet header within the tunnel is that of the stream's frame.
        self.prefix.bytes() - ethernet::HEADER_BYTES
    }

    /// Where frames go within the tunnel, and where they come from.
    pub(super) fn inner_macs(&self) -> ([u8; 6], [u8; 6]) {
        let mut bytes = vec![0; self.prefix.bytes()];
        self.prefix.write(0, || 0, &mut bytes);
        let mac = |at: usize| bytes[at..].first_chunk().copied();
        let macs = mac(self.bytes()).zip(mac(self.bytes() + 6));
        macs.expect("a prefix ends with an Ethernet header")
    }

    /// The frame of a stream behind them, and its program for the frame that this makes. `packet` is the frame
    /// as it would be sent without a tunnel, `ports` are those of VXLAN.
    ///
    /// # Errors
    /// What is wrong with the program, by the frame that the user wrote; a frame with a tunnel of its own; one
    /// that gets too long.
    pub(super) fn compile(
        &self,
        spec: &StreamSpec,
        packet: &[u8],
        ports: &VxlanPorts,
    ) -> Result<(Vec<u8>, FieldProgram), CompileError> {
        let stream = spec.id;
        let wrong = |error| CompileError::Program { stream, error };
        if is_vxlan(packet, ports) {
            return Err(CompileError::TunnelInTunnel(stream));
        }
        vm::verify(&spec.program, packet).map_err(wrong)?;
        let (packet, program) = self.encapsulate(packet, &spec.program);
        if packet.len() > PACKET_BYTES_MAX {
            let bytes = packet.len();
            return Err(CompileError::PacketSize { stream, bytes });
        }
        let program = FieldProgram::compile_behind(self.bytes(), &program, &packet);
        program.map(|program| (packet, program)).map_err(wrong)
    }

    /// The checksum that covers the trailer of a measured frame behind them.
    pub(super) fn fixup(&self, packet: &[u8]) -> Option<ChecksumFixup> {
        let at = self.bytes();
        ChecksumFixup::of(&frame::parse(&packet[at..]), at)
    }

    fn encapsulate(&self, inner: &[u8], program: &[Instruction]) -> (Vec<u8>, Vec<Instruction>) {
        let shift = self.bytes();
        let mut packet = vec![0; shift + inner.len()];
        let layout = frame::parse(inner);
        let packet_bytes = inner.len() - ethernet::HEADER_BYTES;
        self.prefix
            .write(packet_bytes, || hash_of(inner, &layout), &mut packet);
        packet[shift..].copy_from_slice(inner);
        let outer = frame::parse(&packet);
        let length = program.iter().find_map(|instruction| match instruction {
            Instruction::TrimPacketSize { variable } => Some(variable.as_str()),
            _ => None,
        });
        let moved = program.iter().cloned();
        let mut program: Vec<Instruction> = moved
            .map(|instruction| moved_by(shift, length, inner.len(), instruction))
            .collect();
        add_entropy(&outer, &layout, shift, &mut program);
        if let Some(length) = length {
            add_lengths(&outer, length, &mut program);
        }
        (packet, program)
    }
}

/// Whether a frame is in a tunnel by itself.
fn is_vxlan(packet: &[u8], ports: &VxlanPorts) -> bool {
    let layout = frame::parse(packet);
    let at = usize::from(layout.transport_offset) + UDP_DESTINATION;
    let port = packet.get(at..at + 2);
    let goes_to = |port: &[u8]| ports.contains(u16::from_be_bytes([port[0], port[1]]));
    layout.transport == Transport::Udp && port.is_some_and(goes_to)
}

/// An instruction for a frame that begins `shift` bytes later. The variable `length`, the length of the
/// frame, has values for the longer one, and is written as it was.
fn moved_by(
    shift: usize,
    length: Option<&str>,
    inner_bytes: usize,
    mut instruction: Instruction,
) -> Instruction {
    match &mut instruction {
        Instruction::Variable { name, values, .. } if length == Some(name) => {
            lengthen(values, shift as u64, inner_bytes as u64);
        }
        Instruction::Variable { .. }
        | Instruction::Tuple { .. }
        | Instruction::TrimPacketSize { .. } => {}
        Instruction::Write {
            variable,
            offset,
            add,
            ..
        }
        | Instruction::WriteMask {
            variable,
            offset,
            add,
            ..
        } => {
            *offset += shift;
            if length == Some(variable) {
                *add -= shift as i64;
            }
        }
        Instruction::FixChecksumIpv4 { offset }
        | Instruction::FixChecksums {
            l2_bytes: offset, ..
        }
        | Instruction::FixChecksumIcmpv6 {
            l2_bytes: offset, ..
        } => *offset += shift,
    }
    instruction
}

/// Adds `shift` to the values of a length, which ends at `max` as it does without a tunnel.
fn lengthen(values: &mut Values, shift: u64, max: u64) {
    let longer = |length: &mut u64| *length = (*length).min(max) + shift;
    match values {
        Values::Range(range) => {
            longer(&mut range.init);
            longer(&mut range.min);
            longer(&mut range.max);
        }
        Values::List { values, .. } => values.iter_mut().for_each(longer),
        Values::Sequence(sequence) => {
            longer(&mut sequence.min);
            longer(&mut sequence.max);
        }
    }
}

/// Writes the lengths of the outer headers, where frames differ in length.
fn add_lengths(outer: &Layout, length: &str, program: &mut Vec<Instruction>) {
    let network = usize::from(outer.network_offset);
    let mut write = |offset: usize, counts_from: usize| {
        program.push(Instruction::Write {
            variable: length.to_owned(),
            offset,
            add: -(counts_from as i64),
            big_endian: true,
        });
    };
    if outer.transport == Transport::Udp {
        let udp = usize::from(outer.transport_offset);
        write(udp + UDP_LENGTH, udp);
    }
    match outer.network {
        Network::Ipv4 => {
            write(network + IPV4_LENGTH, network);
            program.push(Instruction::FixChecksumIpv4 { offset: network });
        }
        Network::Ipv6 => write(network + IPV6_LENGTH, network + ipv6::HEADER_BYTES),
        Network::Arp | Network::None => {}
    }
}

/// Lets the outer source port depend on the variables that addresses and ports of the inner packet are
/// made of, each with a share of its bits.
fn add_entropy(outer: &Layout, inner: &Layout, shift: usize, program: &mut Vec<Instruction>) {
    if outer.transport != Transport::Udp {
        return;
    }
    let mut variables: Vec<&String> = Vec::new();
    for instruction in program.iter() {
        let (variable, offset) = match instruction {
            Instruction::Write {
                variable, offset, ..
            }
            | Instruction::WriteMask {
                variable, offset, ..
            } => (variable, *offset),
            _ => continue,
        };
        if !variables.contains(&variable) && tells_flows_apart(inner, offset - shift) {
            variables.push(variable);
        }
    }
    variables.truncate(ENTROPY_VARIABLES_MAX);
    let bits = ENTROPY_BITS / variables.len().max(1);
    let writes = variables.into_iter().enumerate();
    let writes = writes.map(|(place, variable)| Instruction::WriteMask {
        variable: variable.clone(),
        offset: usize::from(outer.transport_offset),
        field: Width::Two,
        mask: ((1 << bits) - 1) << (place * bits),
        shift: (place * bits) as i64,
        add: 0,
        big_endian: true,
    });
    let writes: Vec<Instruction> = writes.collect();
    program.extend(writes);
}

/// Whether what is written at `offset` of a frame is an address of IP or a port.
fn tells_flows_apart(layout: &Layout, offset: usize) -> bool {
    let network = usize::from(layout.network_offset);
    let transport = usize::from(layout.transport_offset);
    let is_address = match layout.network {
        Network::Ipv4 => (network + 12..network + ipv4::HEADER_BYTES_MIN).contains(&offset),
        Network::Ipv6 => (network + 8..network + ipv6::HEADER_BYTES).contains(&offset),
        Network::Arp | Network::None => false,
    };
    let has_ports = matches!(layout.transport, Transport::Tcp | Transport::Udp);
    is_address || has_ports && (transport..transport + 4).contains(&offset)
}

/// The hash of the flow that a frame is of, as flows have it.
fn hash_of(packet: &[u8], layout: &Layout) -> u16 {
    let network = usize::from(layout.network_offset);
    let (from, to) = match layout.network {
        Network::Ipv4 => (network + 12, network + 16),
        Network::Ipv6 => (network + 20, network + 36),
        Network::Arp | Network::None => return 0,
    };
    let word = |at: usize| packet.get(at..).and_then(<[u8]>::first_chunk);
    let word = |at: usize| word(at).copied().map_or(0, u32::from_be_bytes);
    let has_ports = matches!(layout.transport, Transport::Tcp | Transport::Udp);
    let ports = match has_ports {
        true => word(usize::from(layout.transport_offset)),
        false => 0,
    };
    flow_hash(word(from), word(to), ((ports >> 16) as u16, ports as u16))
}
