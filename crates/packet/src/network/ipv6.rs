//! The fixed header of IPv6 (RFC 8200). Its extension headers live in files of their own
//! (`ipv6_options`, `ipv6_routing`, `ipv6_fragment`); `ipv6_extension` passes over them all.

use std::fmt;
use std::net::Ipv6Addr;

use crate::bytes;
use crate::error::HeaderError;
use crate::network::ip_protocol::IpProtocol;
use crate::view::view;

mod field {
    use crate::bytes::Field;

    /// Version (4 bits), traffic class (8), flow label (20).
    pub(super) const FIRST_WORD: Field = 0..4;
    pub(super) const PAYLOAD_LENGTH: Field = 4..6;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SOURCE: Field = 8..24;
    pub(super) const DESTINATION: Field = 24..40;
}

/// All stations on the link (RFC 4291 section 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Bytes of the header.
pub const HEADER_BYTES: usize = field::DESTINATION.end;

const VERSION_SHIFT: u32 = 28;
const TRAFFIC_CLASS_SHIFT: u32 = 20;
const FLOW_LABEL: u32 = 0x000f_ffff;
const TRAFFIC_CLASS: u32 = 0x0ff0_0000;

view! {
    /// A view over an IPv6 packet.
    Ipv6View of Ipv6Header, "ipv6", HEADER_BYTES
}

impl<B: AsRef<[u8]>> Ipv6View<B> {
    /// The version, 6.
    pub fn version(&self) -> u8 {
        self.bytes.as_ref()[field::FIRST_WORD.start] >> 4
    }

    /// Traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub fn traffic_class(&self) -> u8 {
        let [first, second, ..] = self.first_word().to_be_bytes();
        (first << 4) | (second >> 4)
    }

    /// What packets of one flow have in common, 20 bits.
    pub fn flow_label(&self) -> u32 {
        self.first_word() & FLOW_LABEL
    }

    /// Bytes that follow the header, as it says; there may be fewer or more.
    pub fn payload_bytes(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::PAYLOAD_LENGTH)
    }

    /// What follows: an extension header or the upper layer.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.bytes.as_ref()[field::NEXT_HEADER])
    }

    /// Hops that are left.
    pub fn hop_limit(&self) -> u8 {
        self.bytes.as_ref()[field::HOP_LIMIT]
    }

    /// Where the packet comes from.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(bytes::array::<16>(self.bytes.as_ref(), field::SOURCE))
    }

    /// Where the packet goes.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(bytes::array::<16>(self.bytes.as_ref(), field::DESTINATION))
    }

    /// What follows, up to the end that the header says or the end of the bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_BYTES..self.end()]
    }

    fn first_word(&self) -> u32 {
        bytes::u32_at(self.bytes.as_ref(), field::FIRST_WORD)
    }

    fn end(&self) -> usize {
        (HEADER_BYTES + usize::from(self.payload_bytes())).min(self.bytes.as_ref().len())
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv6View<B> {
    /// Sets the version.
    pub fn set_version(&mut self, version: u8) {
        let rest = self.first_word() & (TRAFFIC_CLASS | FLOW_LABEL);
        self.set_first_word(rest | (u32::from(version) << VERSION_SHIFT));
    }

    /// Sets the traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub fn set_traffic_class(&mut self, traffic_class: u8) {
        let rest = self.first_word() & !TRAFFIC_CLASS;
        self.set_first_word(rest | (u32::from(traffic_class) << TRAFFIC_CLASS_SHIFT));
    }

    /// Sets what packets of one flow have in common; cut to 20 bits.
    pub fn set_flow_label(&mut self, flow_label: u32) {
        let rest = self.first_word() & !FLOW_LABEL;
        self.set_first_word(rest | (flow_label & FLOW_LABEL));
    }

    /// Sets the bytes that follow the header.
    pub fn set_payload_bytes(&mut self, payload_bytes: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::PAYLOAD_LENGTH, payload_bytes);
    }

    /// Sets what follows.
    pub fn set_next_header(&mut self, next_header: IpProtocol) {
        self.bytes.as_mut()[field::NEXT_HEADER] = next_header.0;
    }

    /// Sets how many hops are left.
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.bytes.as_mut()[field::HOP_LIMIT] = hop_limit;
    }

    /// Sets where the packet comes from.
    pub fn set_source(&mut self, address: Ipv6Addr) {
        self.bytes.as_mut()[field::SOURCE].copy_from_slice(&address.octets());
    }

    /// Sets where the packet goes.
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        self.bytes.as_mut()[field::DESTINATION].copy_from_slice(&address.octets());
    }

    /// What follows, to write.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.end();
        &mut self.bytes.as_mut()[HEADER_BYTES..end]
    }

    fn set_first_word(&mut self, word: u32) {
        bytes::set_u32(self.bytes.as_mut(), field::FIRST_WORD, word);
    }
}

/// The meaning of the fixed header of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// What packets of one flow have in common, 20 bits.
    pub flow_label: u32,
    /// Bytes that follow this header.
    pub payload_bytes: u16,
    /// What follows: an extension header or the upper layer.
    pub next_header: IpProtocol,
    /// Hops that are left.
    pub hop_limit: u8,
    /// Where the packet comes from.
    pub source: Ipv6Addr,
    /// Where the packet goes.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// The header of a packet of 64 hops. Its length is not known yet.
    #[must_use]
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: IpProtocol) -> Self {
        Ipv6Header {
            traffic_class: 0,
            flow_label: 0,
            payload_bytes: 0,
            next_header,
            hop_limit: 64,
            source,
            destination,
        }
    }

    /// Reads the header at the start of `bytes`, which need not hold the payload.
    ///
    /// # Errors
    /// When the bytes end before the header does, or the version is not 6.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = Ipv6View::new_checked(bytes)?;
        if view.version() != 6 {
            return Err(HeaderError::Field {
                header: "ipv6",
                field: "version",
                value: u64::from(view.version()),
                expected: "6",
            });
        }
        Ok(Ipv6Header {
            traffic_class: view.traffic_class(),
            flow_label: view.flow_label(),
            payload_bytes: view.payload_bytes(),
            next_header: view.next_header(),
            hop_limit: view.hop_limit(),
            source: view.source(),
            destination: view.destination(),
        })
    }

    /// Bytes that [`Ipv6Header::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Ipv6Header::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = Ipv6View::new_unchecked(bytes);
        view.set_version(6);
        view.set_traffic_class(self.traffic_class);
        view.set_flow_label(self.flow_label);
        view.set_payload_bytes(self.payload_bytes);
        view.set_next_header(self.next_header);
        view.set_hop_limit(self.hop_limit);
        view.set_source(self.source);
        view.set_destination(self.destination);
    }
}

impl fmt::Display for Ipv6Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ipv6 {} > {} {}",
            self.source, self.destination, self.next_header
        )?;
        write!(f, " hops {} length {}", self.hop_limit, self.payload_bytes)?;
        if self.traffic_class != 0 {
            write!(f, " class {:#04x}", self.traffic_class)?;
        }
        if self.flow_label != 0 {
            write!(f, " flow {:#07x}", self.flow_label)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Ipv6Header {
        Ipv6Header {
            traffic_class: 0xab,
            flow_label: 0xcdef1,
            payload_bytes: 3,
            next_header: IpProtocol::UDP,
            hop_limit: 64,
            source: "2001:db8::1".parse().unwrap(),
            destination: "ff02::2".parse().unwrap(),
        }
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = vec![0x6a, 0xbc, 0xde, 0xf1, 0, 3, 17, 64];
        bytes.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes.extend([0xaa, 0xbb, 0xcc, 0xee]);
        bytes
    }

    #[test]
    fn every_field_lies_where_it_should() {
        assert_eq!(Ipv6Header::parse(&bytes()), Ok(header()));
        let mut emitted = [0xff; 40];
        header().emit(&mut emitted);
        assert_eq!(emitted, bytes()[..40]);
        let view = Ipv6View::new_checked(bytes()).unwrap();
        assert_eq!(view.payload(), [0xaa, 0xbb, 0xcc]);
        let text = "ipv6 2001:db8::1 > ff02::2 udp hops 64 length 3 class 0xab flow 0xcdef1";
        assert_eq!(view.to_string(), text);
    }

    #[test]
    fn setters_change_only_their_bits() {
        let mut view = Ipv6View::new_checked(bytes()).unwrap();
        view.set_flow_label(0xfff0_0000);
        view.set_traffic_class(0);
        view.set_version(4);
        assert_eq!(view.into_inner()[..4], [0x40, 0, 0, 0]);
    }

    #[test]
    fn the_payload_ends_with_the_bytes() {
        let mut view = Ipv6View::new_checked(bytes()).unwrap();
        for (said, there) in [(0, 0), (4, 4), (5, 4), (0xffff, 4)] {
            view.set_payload_bytes(said);
            assert_eq!(
                (view.payload().len(), view.payload_mut().len()),
                (there, there)
            );
        }
    }

    #[test]
    fn wrong_versions_and_lengths_are_refused() {
        let mut bytes = bytes();
        let short = HeaderError::Short {
            header: "ipv6",
            needed: 40,
            available: 39,
        };
        assert_eq!(Ipv6Header::parse(&bytes[..39]), Err(short));
        bytes[0] = 0x45;
        let error = Ipv6Header::parse(&bytes).unwrap_err().to_string();
        assert_eq!(error, "ipv6: field 'version' is 4; it must be 6");
    }

    prop_compose! {
        fn any_header()(
            (traffic_class, payload_bytes, next, hop_limit) in any::<(u8, u16, u8, u8)>(),
            flow_label in 0u32..=FLOW_LABEL,
            (source, destination) in any::<(u128, u128)>(),
        ) -> Ipv6Header {
            Ipv6Header {
                traffic_class, flow_label, payload_bytes, next_header: IpProtocol(next),
                hop_limit, source: source.into(), destination: destination.into(),
            }
        }
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(header in any_header()) {
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(Ipv6Header::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(view) = Ipv6View::new_checked(&bytes) {
                let _ = view.payload();
            }
            let _ = Ipv6View::new_unchecked(&bytes).to_string();
        }
    }
}
