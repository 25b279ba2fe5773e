//! What a port is told that computes the checksums of a program itself.

use allosaur_packet::offload::TxChecksumOffload;

use super::header::ipv4_header_bytes;
use super::instruction::{Instruction, Layer4};

/// What a card is told of the checksums of a program, when it can compute all of them: those that one
/// `fix_checksum_hw` asks for, of TCP or UDP.
pub fn left_checksums(instructions: &[Instruction], template: &[u8]) -> Option<TxChecksumOffload> {
    let mut fixes = instructions.iter().filter(|instruction| {
        matches!(
            instruction,
            Instruction::FixChecksums { .. }
                | Instruction::FixChecksumIpv4 { .. }
                | Instruction::FixChecksumIcmpv6 { .. }
        )
    });
    let (Some(fix), None) = (fixes.next(), fixes.next()) else {
        return None;
    };
    let Instruction::FixChecksums {
        l2_bytes,
        l3_bytes,
        layer4,
    } = *fix
    else {
        return None;
    };
    let segment = l2_bytes + l3_bytes;
    let l4_bytes = match layer4 {
        Layer4::Udp => 8,
        // The data offset counts words of 4 bytes (RFC 9293 §3.1).
        Layer4::Tcp => (template.get(segment + 12)? >> 4) * 4,
        Layer4::Any => return None,
    };
    Some(TxChecksumOffload {
        l2_bytes: l2_bytes.try_into().ok()?,
        l3_bytes: l3_bytes.try_into().ok()?,
        l4_bytes,
        is_ipv4: ipv4_header_bytes(template, l2_bytes).is_some(),
        is_tcp: layer4 == Layer4::Tcp,
    })
}
