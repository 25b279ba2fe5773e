//! Sockets of one interface that share out what arrives, by the kernel: by flow, or by a port of TCP
//! and UDP. See PACKET_FANOUT in `packet(7)`.

use std::io;

use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JEQ, BPF_JMP,
    BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MISC, BPF_RET, BPF_TAX, BPF_X, c_int,
    sock_filter,
};

use super::socket::{PacketSocket, instruction, jump, program_of};
use crate::sharing::Sharing;

/// `PACKET_FANOUT_CBPF` of `if_packet.h`: by a program.
const PACKET_FANOUT_CBPF: u32 = 6;
/// `PACKET_FANOUT_DATA` of `if_packet.h`: the program.
const PACKET_FANOUT_DATA: c_int = 22;

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

/// Gives the port of TCP and UDP that stands so far into their headers, and 0 for fragments and all
/// else; the kernel takes the rest of a division by the number of sockets, as [`Sharing::share_of`]
/// does. IPv6 is known without extension headers.
///
/// The program sees the packet from behind the Ethernet header and the first VLAN tag, which are not
/// in the packet any more.
fn program(port_at: u32) -> [sock_filter; 26] {
    let ether_type = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    let load = |size: u32, from: u32, at: u32| instruction(BPF_LD | size | from, at, 0);
    let equals = |value: u32, if_so, if_not| jump(BPF_JMP | BPF_JEQ | BPF_K, value, if_so, if_not);
    let alu = |operation: u32, value: u32| instruction(BPF_ALU | operation | BPF_K, value, 0);
    let result = |what: u32| instruction(BPF_RET | what, 0, 0);
    [
        // X: where the IP header begins.
        load(BPF_H, BPF_ABS, ether_type),
        instruction(BPF_LDX | BPF_IMM, 0, 0),
        equals(libc::ETH_P_8021Q as u32, 1, 0),
        equals(libc::ETH_P_8021AD as u32, 0, 2),
        load(BPF_H, BPF_ABS, 2),
        instruction(BPF_LDX | BPF_IMM, 4, 0),
        equals(libc::ETH_P_IP as u32, 1, 0),
        equals(libc::ETH_P_IPV6 as u32, 12, 17),
        // IPv4: no fragment, neither the first nor another.
        load(BPF_H, BPF_IND, 6),
        jump(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 15, 0),
        load(BPF_B, BPF_IND, 9),
        equals(libc::IPPROTO_TCP as u32, 1, 0),
        equals(libc::IPPROTO_UDP as u32, 0, 12),
        load(BPF_B, BPF_IND, 0),
        alu(BPF_AND, 0x0f),
        alu(BPF_LSH, 2),
        instruction(BPF_ALU | BPF_ADD | BPF_X, 0, 0),
        instruction(BPF_MISC | BPF_TAX, 0, 0),
        load(BPF_H, BPF_IND, port_at),
        result(BPF_A),
        // IPv6.
        load(BPF_B, BPF_IND, 6),
        equals(libc::IPPROTO_TCP as u32, 1, 0),
        equals(libc::IPPROTO_UDP as u32, 0, 2),
        load(BPF_H, BPF_IND, 40 + port_at),
        result(BPF_A),
        result(BPF_K),
    ]
}
