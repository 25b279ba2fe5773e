//! Sockets of one interface that share out what arrives, by the kernel: by flow, or by a port of TCP
//! and UDP. See PACKET_FANOUT in `packet(7)`.

use std::io;

use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ,
    BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MISC, BPF_RET, BPF_TAX, BPF_X, c_int,
    sock_filter,
};

use allosaur_packet::transport::vxlan;

use super::socket::{PacketSocket, instruction, jump, program_of};
use crate::sharing::Sharing;

/// `PACKET_FANOUT_CBPF` of `if_packet.h`: by a program.
const PACKET_FANOUT_CBPF: u32 = 6;
/// `PACKET_FANOUT_DATA` of `if_packet.h`: the program.
const PACKET_FANOUT_DATA: c_int = 22;

/// Bytes in front of the packet that an error of ICMP quotes.
const ICMP_BYTES: u32 = 8;
const IPV6_BYTES: u32 = 40;
/// From a header of UDP to that of VXLAN, to the type of the frame in it, and to the packet of that.
const VXLAN_AT: u32 = 8;
const INNER_TYPE_AT: u32 = VXLAN_AT + vxlan::HEADER_BYTES as u32 + 12;
const INNER_AT: u32 = INNER_TYPE_AT + 2;

/// A group of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FanoutGroup {
    number: u16,
    kind: u32,
}

impl PacketSocket {
    /// Makes a group that shares out by this rule what arrives, and is its first socket. By flow, both
    /// directions of one go to the same socket, and fragments by their addresses. The socket must be
    /// bound.
    pub(super) fn begin_fanout(&self, sharing: Sharing) -> io::Result<FanoutGroup> {
        let (kind, port_at) = match sharing {
            Sharing::ByFlow => (libc::PACKET_FANOUT_HASH, None),
            Sharing::BySourcePort => (PACKET_FANOUT_CBPF, Some(0)),
            Sharing::ByDestinationPort => (PACKET_FANOUT_CBPF, Some(2)),
        };
        // The kernel picks a number that nobody else has.
        let new = (kind | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16;
        self.set(libc::PACKET_FANOUT, &new)?;
        if let Some(port_at) = port_at {
            self.set(PACKET_FANOUT_DATA, &program_of(&program(port_at)))?;
        }
        let mut now = 0u32;
        self.read(libc::SOL_PACKET, libc::PACKET_FANOUT, &mut now)?;
        // The number stands in the lower half.
        let number = now as u16;
        Ok(FanoutGroup { number, kind })
    }

    /// Joins a group. The socket must be bound.
    pub(super) fn join_fanout(&self, group: FanoutGroup) -> io::Result<FanoutGroup> {
        self.set(
            libc::PACKET_FANOUT,
            &(group.kind << 16 | u32::from(group.number)),
        )?;
        Ok(group)
    }
}

/// Where the program ends without a port.
const NONE: usize = 88;
/// Where it goes on with UDP, by the network: behind that X is the place of the header of UDP.
const UDP_OVER_IPV6: usize = 53;
const UDP_OVER_IPV4: usize = 57;
/// Where it looks at a datagram, and where at one that carries no frame.
const DATAGRAM: usize = 62;
const PLAIN: usize = 86;

/// Gives the port of TCP and UDP that stands so far into their headers, that of the other end where an
/// error of ICMP quotes a packet, and 0 for fragments and all else; the kernel takes the rest of a
/// division by the number of sockets, as [`Sharing::share_of`] does. IPv6 is known without extension
/// headers. A frame in VXLAN has the port of the frame within it, which is known without tags and
/// without errors of ICMP.
///
/// The program sees the packet from behind the Ethernet header and the first VLAN tag, which are not
/// in the packet any more.
fn program(port_at: u32) -> Vec<sock_filter> {
    [packet(port_at).as_slice(), &datagram(port_at)].concat()
}

/// Its beginning: all but UDP.
fn packet(port_at: u32) -> [sock_filter; UDP_OVER_IPV6] {
    let ether_type = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    let [v4_0, v4_1, v4_2, v4_3, v4_4] = skip_ipv4(0);
    let [in_0, in_1, in_2, in_3, in_4] = skip_ipv4(ICMP_BYTES);
    let quoted_port_at = ICMP_BYTES + 2 - port_at;
    [
        // X: where the IP header begins.
        load(BPF_H, BPF_ABS, ether_type),
        instruction(BPF_LDX | BPF_IMM, 0, 0),
        equals(2, libc::ETH_P_8021Q, 4, 3),
        equals(3, libc::ETH_P_8021AD, 4, 6),
        load(BPF_H, BPF_ABS, 2),
        instruction(BPF_LDX | BPF_IMM, 4, 0),
        equals(6, libc::ETH_P_IP, 8, 7),
        equals(7, libc::ETH_P_IPV6, 40, NONE),
        // IPv4: no fragment, neither the first nor another.
        load(BPF_H, BPF_IND, 6),
        has(9, 0x3fff, NONE, 10),
        load(BPF_B, BPF_IND, 9),
        equals(11, libc::IPPROTO_TCP, 13, 12),
        equals(12, libc::IPPROTO_UDP, UDP_OVER_IPV4, 20),
        v4_0,
        v4_1,
        v4_2,
        v4_3,
        v4_4,
        load(BPF_H, BPF_IND, port_at),
        result(BPF_A),
        // An error of ICMP: unreachable, time exceeded, parameter problem.
        equals(20, libc::IPPROTO_ICMP, 21, NONE),
        v4_0,
        v4_1,
        v4_2,
        v4_3,
        v4_4,
        load(BPF_B, BPF_IND, 0),
        equals(27, 3, 30, 28),
        equals(28, 11, 30, 29),
        equals(29, 12, 30, NONE),
        load(BPF_B, BPF_IND, ICMP_BYTES + 9),
        equals(31, libc::IPPROTO_TCP, 33, 32),
        equals(32, libc::IPPROTO_UDP, 33, NONE),
        in_0,
        in_1,
        in_2,
        in_3,
        in_4,
        load(BPF_H, BPF_IND, quoted_port_at),
        result(BPF_A),
        // IPv6.
        load(BPF_B, BPF_IND, 6),
        equals(41, libc::IPPROTO_TCP, 43, 42),
        equals(42, libc::IPPROTO_UDP, UDP_OVER_IPV6, 45),
        load(BPF_H, BPF_IND, IPV6_BYTES + port_at),
        result(BPF_A),
        // An error of ICMPv6 has the high bit of its type clear.
        equals(45, libc::IPPROTO_ICMPV6, 46, NONE),
        load(BPF_B, BPF_IND, IPV6_BYTES),
        has(47, 0x80, NONE, 48),
        load(BPF_B, BPF_IND, IPV6_BYTES + ICMP_BYTES + 6),
        equals(49, libc::IPPROTO_TCP, 51, 50),
        equals(50, libc::IPPROTO_UDP, 51, NONE),
        load(BPF_H, BPF_IND, IPV6_BYTES + IPV6_BYTES + quoted_port_at),
        result(BPF_A),
    ]
}

/// The rest of it: UDP, where X is the place of the IP header.
fn datagram(port_at: u32) -> [sock_filter; NONE + 1 - UDP_OVER_IPV6] {
    let [udp_0, udp_1, udp_2, udp_3, udp_4] = skip_ipv4(0);
    let [vx_0, vx_1, vx_2, vx_3, vx_4] = skip_ipv4(INNER_AT);
    [
        instruction(BPF_LD | BPF_IMM, IPV6_BYTES, 0),
        instruction(BPF_ALU | BPF_ADD | BPF_X, 0, 0),
        instruction(BPF_MISC | BPF_TAX, 0, 0),
        instruction(BPF_JMP | BPF_JA, (DATAGRAM - UDP_OVER_IPV4) as u32, 0),
        udp_0,
        udp_1,
        udp_2,
        udp_3,
        udp_4,
        load(BPF_H, BPF_IND, 2),
        equals(63, vxlan::PORT.into(), 64, PLAIN),
        load(BPF_B, BPF_IND, VXLAN_AT),
        equals(65, vxlan::HAS_VNI.into(), 66, PLAIN),
        load(BPF_H, BPF_IND, INNER_TYPE_AT),
        equals(67, libc::ETH_P_IP, 69, 68),
        equals(68, libc::ETH_P_IPV6, 81, NONE),
        load(BPF_H, BPF_IND, INNER_AT + 6),
        has(70, 0x3fff, NONE, 71),
        load(BPF_B, BPF_IND, INNER_AT + 9),
        equals(72, libc::IPPROTO_TCP, 74, 73),
        equals(73, libc::IPPROTO_UDP, 74, NONE),
        vx_0,
        vx_1,
        vx_2,
        vx_3,
        vx_4,
        load(BPF_H, BPF_IND, INNER_AT + port_at),
        result(BPF_A),
        load(BPF_B, BPF_IND, INNER_AT + 6),
        equals(82, libc::IPPROTO_TCP, 84, 83),
        equals(83, libc::IPPROTO_UDP, 84, NONE),
        load(BPF_H, BPF_IND, INNER_AT + IPV6_BYTES + port_at),
        result(BPF_A),
        load(BPF_H, BPF_IND, port_at),
        result(BPF_A),
        result(BPF_K),
    ]
}

fn load(size: u32, from: u32, at: u32) -> sock_filter {
    instruction(BPF_LD | size | from, at, 0)
}

fn result(what: u32) -> sock_filter {
    instruction(BPF_RET | what, 0, 0)
}

/// The instruction at `here`, which goes on at one of two behind it.
fn equals(here: usize, value: c_int, if_so: usize, if_not: usize) -> sock_filter {
    let to = |there: usize| (there - here - 1) as u8;
    jump(
        BPF_JMP | BPF_JEQ | BPF_K,
        value as u32,
        to(if_so),
        to(if_not),
    )
}

/// The same, if any of these bits is set.
fn has(here: usize, bits: u32, if_so: usize, if_not: usize) -> sock_filter {
    let to = |there: usize| (there - here - 1) as u8;
    jump(BPF_JMP | BPF_JSET | BPF_K, bits, to(if_so), to(if_not))
}

/// X grows by the length of the IPv4 header that begins `at` bytes behind it: a part of its first byte.
fn skip_ipv4(at: u32) -> [sock_filter; 5] {
    let alu = |operation: u32, value: u32| instruction(BPF_ALU | operation | BPF_K, value, 0);
    [
        load(BPF_B, BPF_IND, at),
        alu(BPF_AND, 0x0f),
        alu(BPF_LSH, 2),
        instruction(BPF_ALU | BPF_ADD | BPF_X, 0, 0),
        instruction(BPF_MISC | BPF_TAX, 0, 0),
    ]
}
