//! What must hold for the checksums of whole segments: the headers are where the program says.

use super::{InstructionError, Verifier};
use crate::vm::header::{
    ICMPV6_CHECKSUM_OFFSET, IPV4_CHECKSUM_OFFSET, IPV4_PROTOCOL_OFFSET, IPV6_HEADER_BYTES,
    IPV6_NEXT_HEADER_OFFSET, TCP_CHECKSUM_OFFSET, UDP_CHECKSUM_OFFSET, ipv4_header_bytes,
};
use crate::vm::instruction::Layer4;

/// Bytes of an untagged Ethernet header.
const ETHERNET_HEADER_BYTES: usize = 14;

impl Verifier<'_> {
    /// A header of ICMPv6 behind one of IPv6.
    pub(super) fn check_icmpv6(
        &self,
        l2_bytes: usize,
        l3_bytes: usize,
    ) -> Result<(), InstructionError> {
        self.check_layers(l2_bytes, l3_bytes)?;
        if ipv4_header_bytes(self.template, l2_bytes).is_some() {
            return self.refuse(
                "l2_len",
                format!("the header at offset {l2_bytes} is of IPv4"),
                "use it for packets of ICMPv6, which is IPv6's",
            );
        }
        self.check_protocol(l2_bytes, l3_bytes, 58, "ICMPv6")?;
        self.check_field(
            "l3_len",
            l3_bytes.saturating_add(l2_bytes + ICMPV6_CHECKSUM_OFFSET),
            2,
        )
    }

    pub(super) fn check_checksums(
        &self,
        l2_bytes: usize,
        l3_bytes: usize,
        layer4: Layer4,
    ) -> Result<(), InstructionError> {
        self.check_layers(l2_bytes, l3_bytes)?;
        let ipv4 = ipv4_header_bytes(self.template, l2_bytes).is_some();
        if ipv4 {
            self.check_field("l2_len", l2_bytes + IPV4_CHECKSUM_OFFSET, 2)?;
        }
        let (protocol, name, offset) = match layer4 {
            Layer4::Udp => (17, "UDP", UDP_CHECKSUM_OFFSET),
            Layer4::Tcp => (6, "TCP", TCP_CHECKSUM_OFFSET),
            Layer4::Any if ipv4 => return Ok(()),
            Layer4::Any => {
                return self.refuse(
                    "l4_type",
                    "17 is the IPv4 header alone, and the packet has IPv6, which has no checksum",
                    "use 11 for UDP or 13 for TCP, or leave the instruction out",
                );
            }
        };
        self.check_protocol(l2_bytes, l3_bytes, protocol, name)?;
        self.check_field("l3_len", l3_bytes.saturating_add(l2_bytes + offset), 2)
    }

    /// There is an IP header of `l3_bytes` after `l2_bytes`.
    fn check_layers(&self, l2_bytes: usize, l3_bytes: usize) -> Result<(), InstructionError> {
        if l2_bytes < ETHERNET_HEADER_BYTES {
            return self.refuse(
                "l2_len",
                format!("{l2_bytes} bytes are less than an Ethernet header"),
                format!("give the offset of the IP header, {ETHERNET_HEADER_BYTES} or more"),
            );
        }
        if let Some(bytes) = ipv4_header_bytes(self.template, l2_bytes) {
            if l3_bytes != bytes {
                return self.refuse(
                    "l3_len",
                    format!("it is {l3_bytes}, and the IPv4 header has {bytes} bytes"),
                    format!("use {bytes}"),
                );
            }
            return Ok(());
        }
        let version = self.template.get(l2_bytes).map(|byte| byte >> 4);
        if version != Some(6) || l2_bytes + IPV6_HEADER_BYTES > self.template.len() {
            return self.refuse(
                "l2_len",
                format!(
                    "there is no whole IPv4 or IPv6 header at offset {l2_bytes} of the packet of \
                     {} bytes",
                    self.template.len()
                ),
                "give the offset of the IP header, 14 after an untagged Ethernet header",
            );
        }
        if l3_bytes < IPV6_HEADER_BYTES {
            return self.refuse(
                "l3_len",
                format!("it is {l3_bytes}, and an IPv6 header has {IPV6_HEADER_BYTES} bytes"),
                format!("use {IPV6_HEADER_BYTES}, and more with extension headers"),
            );
        }
        Ok(())
    }

    /// The IP header names this protocol, unless extension headers of IPv6 come between.
    fn check_protocol(
        &self,
        l2_bytes: usize,
        l3_bytes: usize,
        protocol: u8,
        name: &str,
    ) -> Result<(), InstructionError> {
        let ipv4 = ipv4_header_bytes(self.template, l2_bytes).is_some();
        let found = match (ipv4, l3_bytes) {
            (true, _) => self.template[l2_bytes + IPV4_PROTOCOL_OFFSET],
            (false, IPV6_HEADER_BYTES) => self.template[l2_bytes + IPV6_NEXT_HEADER_OFFSET],
            _ => return Ok(()),
        };
        if found != protocol {
            let field = if protocol == 58 { "l2_len" } else { "l4_type" };
            return self.refuse(
                field,
                format!("it says {name}, and the IP header says protocol {found}"),
                format!("use it for packets of {name}, protocol {protocol}"),
            );
        }
        Ok(())
    }
}
