//! IPv4 with options (RFC 791). Fragments are seen here, but put together nowhere.

use std::fmt;
use std::net::Ipv4Addr;

use crate::bytes;
use crate::error::{HeaderError, check_length};
use crate::network::checksum::Sum;
use crate::network::ip_protocol::IpProtocol;
use crate::options::{OptionList, RawOptions};
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const VERSION: usize = 0;
    pub(super) const TYPE_OF_SERVICE: usize = 1;
    pub(super) const TOTAL_LENGTH: Field = 2..4;
    pub(super) const IDENTIFICATION: Field = 4..6;
    pub(super) const FRAGMENT: Field = 6..8;
    pub(super) const TIME_TO_LIVE: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: Field = 10..12;
    pub(super) const SOURCE: Field = 12..16;
    pub(super) const DESTINATION: Field = 16..20;
}

/// Bytes of the header without options.
pub const HEADER_BYTES_MIN: usize = field::DESTINATION.end;
/// Where the checksum lies in the header.
pub const CHECKSUM_OFFSET: usize = field::CHECKSUM.start;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

view! {
    /// A view over an IPv4 packet.
    Ipv4View of Ipv4Header
}

impl<B: AsRef<[u8]>> Ipv4View<B> {
    /// Makes every accessor safe when it is `Ok`.
    ///
    /// # Errors
    /// When the bytes end before the header and its options do, or its length is below 20.
    pub fn check_len(&self) -> Result<(), HeaderError> {
        let bytes = self.bytes.as_ref();
        check_length("ipv4", bytes, HEADER_BYTES_MIN)?;
        if self.header_bytes() < HEADER_BYTES_MIN {
            return Err(HeaderError::Field {
                header: "ipv4",
                field: "header length",
                value: self.header_bytes() as u64,
                expected: "at least 20 bytes",
            });
        }
        check_length("ipv4", bytes, self.header_bytes())
    }

    /// The version, 4.
    pub fn version(&self) -> u8 {
        self.bytes.as_ref()[field::VERSION] >> 4
    }

    /// Bytes of the header with its options.
    pub fn header_bytes(&self) -> usize {
        4 * usize::from(self.bytes.as_ref()[field::VERSION] & 0xf)
    }

    /// Type of service: DSCP in the upper six bits, ECN in the lower two.
    pub fn type_of_service(&self) -> u8 {
        self.bytes.as_ref()[field::TYPE_OF_SERVICE]
    }

    /// Bytes of the packet with its header, as it says; there may be fewer or more.
    pub fn total_bytes(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::TOTAL_LENGTH)
    }

    /// What fragments of the same datagram have in common.
    pub fn identification(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::IDENTIFICATION)
    }

    /// Routers must not cut the packet.
    pub fn dont_fragment(&self) -> bool {
        self.fragment() & DONT_FRAGMENT != 0
    }

    /// There are fragments after this one.
    pub fn more_fragments(&self) -> bool {
        self.fragment() & MORE_FRAGMENTS != 0
    }

    /// Where in the whole datagram this payload lies, in bytes; a multiple of 8.
    pub fn fragment_offset_bytes(&self) -> u16 {
        (self.fragment() & FRAGMENT_OFFSET) << 3
    }

    /// Hops that are left.
    pub fn time_to_live(&self) -> u8 {
        self.bytes.as_ref()[field::TIME_TO_LIVE]
    }

    /// What follows.
    pub fn protocol(&self) -> IpProtocol {
        IpProtocol(self.bytes.as_ref()[field::PROTOCOL])
    }

    /// The checksum over the header.
    pub fn checksum(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::CHECKSUM)
    }

    /// Where the packet comes from.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(bytes::array(self.bytes.as_ref(), field::SOURCE))
    }

    /// Where the packet goes.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(bytes::array(self.bytes.as_ref(), field::DESTINATION))
    }

    /// The options; ends at what is not well formed.
    pub fn options(&self) -> impl Iterator<Item = Ipv4Option<'_>> {
        let options = &self.bytes.as_ref()[HEADER_BYTES_MIN..self.header_bytes()];
        RawOptions::over(options).map(Ipv4Option::from_raw)
    }

    /// What follows, up to the end that the header says or the end of the bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_bytes()..self.end()]
    }

    /// Whether the header is intact.
    pub fn has_right_checksum(&self) -> bool {
        Sum::of(&self.bytes.as_ref()[..self.header_bytes()]).checksum() == 0
    }

    fn fragment(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::FRAGMENT)
    }

    fn end(&self) -> usize {
        let end = usize::from(self.total_bytes()).min(self.bytes.as_ref().len());
        end.max(self.header_bytes())
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv4View<B> {
    /// Sets the version to 4 and the length of the header: a multiple of 4, from 20 to 60, which
    /// the bytes must have.
    pub fn set_header_bytes(&mut self, header_bytes: usize) {
        let words = u8::try_from(header_bytes / 4).expect("a header has at most 60 bytes");
        self.bytes.as_mut()[field::VERSION] = 0x40 | (words & 0xf);
    }

    /// Sets the type of service: DSCP in the upper six bits, ECN in the lower two.
    pub fn set_type_of_service(&mut self, type_of_service: u8) {
        self.bytes.as_mut()[field::TYPE_OF_SERVICE] = type_of_service;
    }

    /// Sets the bytes of the packet with its header.
    pub fn set_total_bytes(&mut self, total_bytes: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::TOTAL_LENGTH, total_bytes);
    }

    /// Sets what fragments of the same datagram have in common.
    pub fn set_identification(&mut self, identification: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::IDENTIFICATION, identification);
    }

    /// Sets the flags and the offset (in bytes, rounded down to a multiple of 8) of a fragment.
    pub fn set_fragment(&mut self, dont_fragment: bool, more_fragments: bool, offset_bytes: u16) {
        let flag = |on: bool, bit: u16| if on { bit } else { 0 };
        let flags = flag(dont_fragment, DONT_FRAGMENT) | flag(more_fragments, MORE_FRAGMENTS);
        bytes::set_u16(
            self.bytes.as_mut(),
            field::FRAGMENT,
            flags | (offset_bytes >> 3),
        );
    }

    /// Sets how many hops are left.
    pub fn set_time_to_live(&mut self, time_to_live: u8) {
        self.bytes.as_mut()[field::TIME_TO_LIVE] = time_to_live;
    }

    /// Sets what follows.
    pub fn set_protocol(&mut self, protocol: IpProtocol) {
        self.bytes.as_mut()[field::PROTOCOL] = protocol.0;
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::CHECKSUM, checksum);
    }

    /// Sets where the packet comes from.
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.bytes.as_mut()[field::SOURCE].copy_from_slice(&address.octets());
    }

    /// Sets where the packet goes.
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.bytes.as_mut()[field::DESTINATION].copy_from_slice(&address.octets());
    }

    /// Computes and sets the checksum.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let header_bytes = self.header_bytes();
        let checksum = Sum::of(&self.bytes.as_ref()[..header_bytes]).checksum();
        self.set_checksum(checksum);
    }

    /// What follows, to write.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let range = self.header_bytes()..self.end();
        &mut self.bytes.as_mut()[range]
    }
}

/// One option of an IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv4Option<'a> {
    /// One byte of padding.
    NoOperation,
    /// Routers shall look at the packet (RFC 2113).
    RouterAlert(u16),
    /// Any other, as it is.
    Other {
        /// The type byte: copy flag, class and number.
        kind: u8,
        /// What follows type and length.
        data: &'a [u8],
    },
}

const ROUTER_ALERT: u8 = 148;

impl<'a> Ipv4Option<'a> {
    fn from_raw(raw: crate::options::RawOption<'a>) -> Self {
        match (raw.kind, raw.data) {
            _ if raw.is_no_operation() => Ipv4Option::NoOperation,
            (ROUTER_ALERT, &[high, low]) => {
                Ipv4Option::RouterAlert(u16::from_be_bytes([high, low]))
            }
            (kind, data) => Ipv4Option::Other { kind, data },
        }
    }
}

/// The options of an IPv4 header: well formed, at most 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ipv4Options(OptionList);

impl Ipv4Options {
    /// No options.
    pub const EMPTY: Ipv4Options = Ipv4Options(OptionList::EMPTY);

    /// Appends an option.
    ///
    /// # Errors
    /// When the options would be more than 40 bytes.
    pub fn push(&mut self, option: Ipv4Option<'_>) -> Result<(), HeaderError> {
        match option {
            Ipv4Option::NoOperation => self.0.push_no_operation("ipv4"),
            Ipv4Option::RouterAlert(value) => {
                self.0.push("ipv4", ROUTER_ALERT, &value.to_be_bytes())
            }
            Ipv4Option::Other { kind, data } => self.0.push("ipv4", kind, data),
        }
    }

    /// The options, in order.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Option<'_>> {
        self.0.iter().map(Ipv4Option::from_raw)
    }
}

/// The meaning of an IPv4 header. Its checksum is not part of it: [`Ipv4Header::emit`] computes
/// it, and [`Ipv4View::has_right_checksum`] checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Type of service: DSCP in the upper six bits, ECN in the lower two.
    pub type_of_service: u8,
    /// Bytes of the packet with this header.
    pub total_bytes: u16,
    /// What fragments of the same datagram have in common.
    pub identification: u16,
    /// Routers must not cut the packet.
    pub dont_fragment: bool,
    /// There are fragments after this one.
    pub more_fragments: bool,
    /// Where in the whole datagram this payload lies; a multiple of 8.
    pub fragment_offset_bytes: u16,
    /// Hops that are left.
    pub time_to_live: u8,
    /// What follows.
    pub protocol: IpProtocol,
    /// Where the packet comes from.
    pub source: Ipv4Addr,
    /// Where the packet goes.
    pub destination: Ipv4Addr,
    /// The options.
    pub options: Ipv4Options,
}

impl Ipv4Header {
    /// The header of a packet that is never cut into fragments: without options, of 64 hops, and of
    /// number zero (RFC 6864 section 4.1: such a packet needs none). Its length is not known yet.
    #[must_use]
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: IpProtocol) -> Self {
        Ipv4Header {
            type_of_service: 0,
            total_bytes: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset_bytes: 0,
            time_to_live: 64,
            protocol,
            source,
            destination,
            options: Ipv4Options::EMPTY,
        }
    }

    /// Reads the header at the start of `bytes`, which need not hold the payload.
    ///
    /// # Errors
    /// When the bytes end too early, or version, a length or an option is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = Ipv4View::new_checked(bytes)?;
        let refuse = |field, value, expected| {
            Err(HeaderError::Field {
                header: "ipv4",
                field,
                value,
                expected,
            })
        };
        if view.version() != 4 {
            return refuse("version", u64::from(view.version()), "4");
        }
        if usize::from(view.total_bytes()) < view.header_bytes() {
            let total_bytes = u64::from(view.total_bytes());
            return refuse("total length", total_bytes, "at least the header length");
        }
        let options = &bytes[HEADER_BYTES_MIN..view.header_bytes()];
        Ok(Ipv4Header {
            type_of_service: view.type_of_service(),
            total_bytes: view.total_bytes(),
            identification: view.identification(),
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset_bytes: view.fragment_offset_bytes(),
            time_to_live: view.time_to_live(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            options: Ipv4Options(OptionList::parse("ipv4", options)?),
        })
    }

    /// Bytes that [`Ipv4Header::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_BYTES_MIN + self.options.0.padded_bytes()
    }

    /// Writes the header, with its checksum, at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Ipv4Header::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let header_bytes = self.buffer_len();
        self.options
            .0
            .emit(&mut bytes[HEADER_BYTES_MIN..header_bytes]);
        let mut view = Ipv4View::new_unchecked(bytes);
        view.set_header_bytes(header_bytes);
        view.set_type_of_service(self.type_of_service);
        view.set_total_bytes(self.total_bytes);
        view.set_identification(self.identification);
        view.set_fragment(
            self.dont_fragment,
            self.more_fragments,
            self.fragment_offset_bytes,
        );
        view.set_time_to_live(self.time_to_live);
        view.set_protocol(self.protocol);
        view.set_source(self.source);
        view.set_destination(self.destination);
        view.fill_checksum();
    }
}

impl fmt::Display for Ipv4Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ipv4 {} > {} {}",
            self.source, self.destination, self.protocol
        )?;
        write!(f, " ttl {} length {}", self.time_to_live, self.total_bytes)?;
        if self.type_of_service != 0 {
            write!(f, " tos {:#04x}", self.type_of_service)?;
        }
        if self.more_fragments || self.fragment_offset_bytes != 0 {
            let (id, at) = (self.identification, self.fragment_offset_bytes);
            write!(
                f,
                " fragment {id:#06x}@{at}{}",
                if self.more_fragments { "+" } else { "" }
            )?;
        }
        if self.options != Ipv4Options::EMPTY {
            write!(f, " options {:?}", self.options)?;
        }
        Ok(())
    }
}

impl Default for Ipv4Options {
    fn default() -> Self {
        Ipv4Options::EMPTY
    }
}

impl fmt::Debug for Ipv4Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example that many textbooks compute the checksum (b861) of.
    const BYTES: [u8; 22] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7, 0xaa, 0xbb,
    ];

    fn header() -> Ipv4Header {
        Ipv4Header {
            type_of_service: 0,
            total_bytes: 115,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset_bytes: 0,
            time_to_live: 64,
            protocol: IpProtocol::UDP,
            source: Ipv4Addr::new(192, 168, 0, 1),
            destination: Ipv4Addr::new(192, 168, 0, 199),
            options: Ipv4Options::EMPTY,
        }
    }

    #[test]
    fn every_field_lies_where_it_should() {
        assert_eq!(Ipv4Header::parse(&BYTES), Ok(header()));
        let mut bytes = [0xff; 22];
        header().emit(&mut bytes);
        assert_eq!(bytes[..20], BYTES[..20]);
        let view = Ipv4View::new_checked(BYTES).unwrap();
        assert!(view.has_right_checksum() && view.checksum() == 0xb861);
        assert_eq!(view.payload(), [0xaa, 0xbb]);
        let text = "ipv4 192.168.0.1 > 192.168.0.199 udp ttl 64 length 115";
        assert_eq!(view.to_string(), text);
    }

    #[test]
    fn the_payload_ends_where_the_header_says() {
        let mut view = Ipv4View::new_checked(BYTES).unwrap();
        for (total_bytes, payload_bytes) in [(21, 1), (20, 0), (0, 0), (22, 2), (23, 2)] {
            view.set_total_bytes(total_bytes);
            assert_eq!(view.payload().len(), payload_bytes);
            assert_eq!(view.payload_mut().len(), payload_bytes);
        }
    }

    #[test]
    fn wrong_fields_are_refused_by_name() {
        for (at, value, field) in [
            (0, 0x55, "version"),
            (0, 0x44, "header length"),
            (3, 19, "total length"),
        ] {
            let mut bytes = BYTES;
            bytes[at] = value;
            let error = Ipv4Header::parse(&bytes).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("ipv4: field '{field}'")),
                "{error}"
            );
        }
        let mut bytes = BYTES;
        bytes[0] = 0x46;
        let short = HeaderError::Short {
            header: "ipv4",
            needed: 24,
            available: 22,
        };
        assert_eq!(Ipv4Header::parse(&bytes), Err(short));
        assert!(Ipv4View::new_checked(&BYTES[..19]).is_err());
    }

    #[test]
    fn options_are_read_and_padded() {
        let mut header = header();
        header.options.push(Ipv4Option::NoOperation).unwrap();
        header.options.push(Ipv4Option::RouterAlert(7)).unwrap();
        let mut bytes = vec![0xff; header.buffer_len()];
        header.emit(&mut bytes);
        assert_eq!(bytes[20..], [1, 148, 4, 0, 7, 0, 0, 0]);
        let view = Ipv4View::new_checked(&bytes).unwrap();
        assert_eq!(view.options().last(), Some(Ipv4Option::RouterAlert(7)));
        assert!(
            view.to_string()
                .ends_with("options [NoOperation, RouterAlert(7)]"),
            "{view}"
        );
    }

    fn options() -> impl Strategy<Value = Ipv4Options> {
        prop::collection::vec((0u8..255, prop::collection::vec(any::<u8>(), 0..12)), 0..5).prop_map(
            |given| {
                let mut options = Ipv4Options::EMPTY;
                for (kind, data) in &given {
                    let option = match kind {
                        0 | 1 => Ipv4Option::NoOperation,
                        2 => Ipv4Option::RouterAlert(99),
                        &kind => Ipv4Option::Other { kind, data },
                    };
                    let _ = options.push(option);
                }
                options
            },
        )
    }

    prop_compose! {
        fn any_header()(
            (type_of_service, identification, dont_fragment, more_fragments) in
                any::<(u8, u16, bool, bool)>(),
            total_bytes in 60u16..,
            fragment_offset_bytes in (0u16..8192).prop_map(|units| units * 8),
            (time_to_live, protocol, source, destination) in any::<(u8, u8, u32, u32)>(),
            options in options(),
        ) -> Ipv4Header {
            Ipv4Header {
                type_of_service, total_bytes, identification, dont_fragment, more_fragments,
                fragment_offset_bytes, time_to_live, protocol: IpProtocol(protocol),
                source: source.into(), destination: destination.into(), options,
            }
        }
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(header in any_header()) {
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(Ipv4Header::parse(&bytes), Ok(header));
            prop_assert!(Ipv4View::new_checked(&bytes).unwrap().has_right_checksum());
        }

        #[test]
        fn any_bytes_are_safe(mut bytes in prop::collection::vec(any::<u8>(), 0..80), ip: bool) {
            if let (true, Some(first)) = (ip, bytes.first_mut()) {
                *first = 0x40 | (*first & 0xf);
            }
            if let Ok(view) = Ipv4View::new_checked(&bytes) {
                let _ = (view.payload(), view.options().count(), view.has_right_checksum());
            }
            let _ = Ipv4View::new_unchecked(&bytes).to_string();
        }
    }
}
