//! The TCP header (RFC 9293). Its options live in `tcp_options`; the protocol is the engine's.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use crate::bytes;
use crate::error::{HeaderError, check_length};
use crate::network::checksum::Sum;
use crate::transport::tcp_options::{self, TcpOption, TcpOptions};
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const SOURCE_PORT: Field = 0..2;
    pub(super) const DESTINATION_PORT: Field = 2..4;
    pub(super) const SEQUENCE: Field = 4..8;
    pub(super) const ACKNOWLEDGMENT: Field = 8..12;
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const WINDOW: Field = 14..16;
    pub(super) const CHECKSUM: Field = 16..18;
    pub(super) const URGENT_POINTER: Field = 18..20;
}

/// Bytes of the header without options.
pub const HEADER_BYTES_MIN: usize = field::URGENT_POINTER.end;
/// Where the checksum lies in the header.
pub const CHECKSUM_OFFSET: usize = field::CHECKSUM.start;

/// The control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// None.
    pub const NONE: TcpFlags = TcpFlags(0);
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Sequence numbers start here.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// The connection is gone.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Hand the data over now.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgment number means something.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// The urgent pointer means something.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// Congestion was seen (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// The sender has slowed down (RFC 3168).
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether all of the given bits are set.
    #[must_use]
    pub const fn contains(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for TcpFlags {
    type Output = TcpFlags;

    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

impl BitOrAssign for TcpFlags {
    fn bitor_assign(&mut self, other: TcpFlags) {
        self.0 |= other.0;
    }
}

impl fmt::Display for TcpFlags {
    /// One letter a bit, as tcpdump writes them; `-` when there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == TcpFlags::NONE {
            return f.write_str("-");
        }
        for (bit, letter) in "FSRPAUEW".chars().enumerate() {
            if self.0 & (1 << bit) != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

view! {
    /// A view over a TCP segment.
    TcpView of TcpHeader
}

impl<B: AsRef<[u8]>> TcpView<B> {
    /// Makes every accessor safe when it is `Ok`.
    ///
    /// # Errors
    /// When the bytes end before the header and its options do, or its length is below 20.
    pub fn check_len(&self) -> Result<(), HeaderError> {
        let bytes = self.bytes.as_ref();
        check_length("tcp", bytes, HEADER_BYTES_MIN)?;
        if self.header_bytes() < HEADER_BYTES_MIN {
            return Err(HeaderError::Field {
                header: "tcp",
                field: "data offset",
                value: self.header_bytes() as u64,
                expected: "at least 20 bytes",
            });
        }
        check_length("tcp", bytes, self.header_bytes())
    }

    /// The port that sent it.
    pub fn source_port(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::SOURCE_PORT)
    }

    /// The port that it goes to.
    pub fn destination_port(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::DESTINATION_PORT)
    }

    /// The sequence number of the first byte.
    pub fn sequence(&self) -> u32 {
        bytes::u32_at(self.bytes.as_ref(), field::SEQUENCE)
    }

    /// The next sequence number that the sender of it expects.
    pub fn acknowledgment(&self) -> u32 {
        bytes::u32_at(self.bytes.as_ref(), field::ACKNOWLEDGMENT)
    }

    /// Bytes of the header with its options.
    pub fn header_bytes(&self) -> usize {
        4 * usize::from(self.bytes.as_ref()[field::DATA_OFFSET] >> 4)
    }

    /// The control bits.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.bytes.as_ref()[field::FLAGS])
    }

    /// Bytes that the sender of it takes, not scaled.
    pub fn window(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::WINDOW)
    }

    /// The checksum over pseudo header, header and payload.
    pub fn checksum(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::CHECKSUM)
    }

    /// Where urgent data ends.
    pub fn urgent_pointer(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::URGENT_POINTER)
    }

    /// The options; ends at what is not well formed.
    pub fn options(&self) -> impl Iterator<Item = TcpOption<'_>> {
        tcp_options::iterate(self.option_bytes())
    }

    /// The bytes of the options, with their padding.
    pub fn option_bytes(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_BYTES_MIN..self.header_bytes()]
    }

    /// What follows, up to the end of the bytes: TCP itself does not say where a segment ends.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_bytes()..]
    }

    /// Whether the segment is intact, given the sum over its pseudo header.
    pub fn has_right_checksum(&self, pseudo_header: Sum) -> bool {
        pseudo_header.and(self.bytes.as_ref()).checksum() == 0
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> TcpView<B> {
    /// Sets the port that sent it.
    pub fn set_source_port(&mut self, port: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::SOURCE_PORT, port);
    }

    /// Sets the port that it goes to.
    pub fn set_destination_port(&mut self, port: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::DESTINATION_PORT, port);
    }

    /// Sets the sequence number of the first byte.
    pub fn set_sequence(&mut self, sequence: u32) {
        bytes::set_u32(self.bytes.as_mut(), field::SEQUENCE, sequence);
    }

    /// Sets the next sequence number that the sender of it expects.
    pub fn set_acknowledgment(&mut self, acknowledgment: u32) {
        bytes::set_u32(self.bytes.as_mut(), field::ACKNOWLEDGMENT, acknowledgment);
    }

    /// Sets the length of the header: a multiple of 4, from 20 to 60, which the bytes must have.
    pub fn set_header_bytes(&mut self, header_bytes: usize) {
        let words = u8::try_from(header_bytes / 4).expect("a header has at most 60 bytes");
        self.bytes.as_mut()[field::DATA_OFFSET] = words << 4;
    }

    /// Sets the control bits.
    pub fn set_flags(&mut self, flags: TcpFlags) {
        self.bytes.as_mut()[field::FLAGS] = flags.0;
    }

    /// Sets the bytes that the sender of it takes, not scaled.
    pub fn set_window(&mut self, window: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::WINDOW, window);
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::CHECKSUM, checksum);
    }

    /// Sets where urgent data ends.
    pub fn set_urgent_pointer(&mut self, urgent_pointer: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::URGENT_POINTER, urgent_pointer);
    }

    /// Computes and sets the checksum over all of the bytes, given the sum over the pseudo header
    /// ([`crate::network::checksum::pseudo_header_v4`], [`crate::network::checksum::pseudo_header_v6`]).
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.and(self.bytes.as_ref()).checksum();
        self.set_checksum(checksum);
    }

    /// What follows, to write.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let start = self.header_bytes();
        &mut self.bytes.as_mut()[start..]
    }
}

/// The meaning of a TCP header. Its checksum is not part of it, for it covers the payload too:
/// see [`TcpView::fill_checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// The port that sent it.
    pub source_port: u16,
    /// The port that it goes to.
    pub destination_port: u16,
    /// The sequence number of the first byte.
    pub sequence: u32,
    /// The next sequence number that the sender of it expects.
    pub acknowledgment: u32,
    /// The control bits.
    pub flags: TcpFlags,
    /// Bytes that the sender of it takes, not scaled.
    pub window: u16,
    /// Where urgent data ends.
    pub urgent_pointer: u16,
    /// The options.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Reads the header at the start of `bytes`, which need not hold the payload.
    ///
    /// # Errors
    /// When the bytes end too early, or the data offset or an option is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = TcpView::new_checked(bytes)?;
        Ok(TcpHeader {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            sequence: view.sequence(),
            acknowledgment: view.acknowledgment(),
            flags: view.flags(),
            window: view.window(),
            urgent_pointer: view.urgent_pointer(),
            options: TcpOptions::parse(&bytes[HEADER_BYTES_MIN..view.header_bytes()])?,
        })
    }

    /// Bytes that [`TcpHeader::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_BYTES_MIN + self.options.buffer_len()
    }

    /// Writes the header, with a checksum of zero, at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`TcpHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let header_bytes = self.buffer_len();
        self.options
            .emit(&mut bytes[HEADER_BYTES_MIN..header_bytes]);
        let mut view = TcpView::new_unchecked(bytes);
        view.set_source_port(self.source_port);
        view.set_destination_port(self.destination_port);
        view.set_sequence(self.sequence);
        view.set_acknowledgment(self.acknowledgment);
        view.set_header_bytes(header_bytes);
        view.set_flags(self.flags);
        view.set_window(self.window);
        view.set_checksum(0);
        view.set_urgent_pointer(self.urgent_pointer);
    }
}

impl fmt::Display for TcpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tcp {} > {} [{}]",
            self.source_port, self.destination_port, self.flags
        )?;
        write!(f, " seq {}", self.sequence)?;
        if self.flags.contains(TcpFlags::ACK) {
            write!(f, " ack {}", self.acknowledgment)?;
        }
        write!(f, " win {}", self.window)?;
        if self.options != TcpOptions::EMPTY {
            write!(f, " <{}>", self.options)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp_options::tests::any_options;
    use proptest::prelude::*;

    const BYTES: [u8; 26] = [
        0x1f, 0x90, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x60, 0x12, 0xff,
        0xfe, 0xab, 0xcd, 0x00, 0x07, 2, 4, 0x05, 0xb4, 0xaa, 0xbb,
    ];

    fn header() -> TcpHeader {
        TcpHeader {
            source_port: 8080,
            destination_port: 80,
            sequence: 0x0102_0304,
            acknowledgment: 0x0506_0708,
            flags: TcpFlags::SYN | TcpFlags::ACK,
            window: 0xfffe,
            urgent_pointer: 7,
            options: TcpOptions::parse(&[2, 4, 0x05, 0xb4]).unwrap(),
        }
    }

    #[test]
    fn every_field_lies_where_it_should() {
        assert_eq!(TcpHeader::parse(&BYTES), Ok(header()));
        let mut bytes = [0xff; 24];
        header().emit(&mut bytes);
        TcpView::new_checked(&mut bytes)
            .unwrap()
            .set_checksum(0xabcd);
        assert_eq!(bytes, BYTES[..24]);
        let view = TcpView::new_checked(BYTES).unwrap();
        assert_eq!((view.checksum(), view.payload()), (0xabcd, &BYTES[24..]));
        assert_eq!(
            view.options().next(),
            Some(TcpOption::MaximumSegmentSize(1460))
        );
        let text = "tcp 8080 > 80 [SA] seq 16909060 ack 84281096 win 65534 <mss 1460>";
        assert_eq!(view.to_string(), text);
    }

    #[test]
    fn the_checksum_covers_everything() {
        let pseudo_header = Sum::of(b"pseudo");
        let mut view = TcpView::new_checked(BYTES).unwrap();
        assert!(!view.has_right_checksum(pseudo_header));
        view.fill_checksum(pseudo_header);
        assert!(view.has_right_checksum(pseudo_header));
        view.payload_mut()[1] ^= 0x10;
        assert!(!view.has_right_checksum(pseudo_header));
    }

    #[test]
    fn flags_have_letters() {
        assert_eq!(TcpFlags(0xff).to_string(), "FSRPAUEW");
        assert_eq!(TcpFlags::NONE.to_string(), "-");
        let mut flags = TcpFlags::PSH;
        flags |= TcpFlags::ACK;
        assert!(flags.contains(TcpFlags::PSH | TcpFlags::ACK) && !flags.contains(TcpFlags::FIN));
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let mut bytes = BYTES;
        bytes[12] = 0x40;
        let error = TcpHeader::parse(&bytes).unwrap_err().to_string();
        assert_eq!(
            error,
            "tcp: field 'data offset' is 16; it must be at least 20 bytes"
        );
        bytes[12] = 0x70;
        let short = HeaderError::Short {
            header: "tcp",
            needed: 28,
            available: 26,
        };
        assert_eq!(TcpHeader::parse(&bytes), Err(short));
        assert!(TcpHeader::parse(&BYTES[..19]).is_err());
    }

    prop_compose! {
        fn any_header()(
            (source_port, destination_port, sequence, acknowledgment) in any::<(u16, u16, u32, u32)>(),
            (flags, window, urgent_pointer) in any::<(u8, u16, u16)>(),
            options in any_options(),
        ) -> TcpHeader {
            TcpHeader {
                source_port, destination_port, sequence, acknowledgment, flags: TcpFlags(flags),
                window, urgent_pointer, options,
            }
        }
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(header in any_header()) {
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(TcpHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(view) = TcpView::new_checked(&bytes) {
                let _ = (view.payload(), view.options().count());
            }
            let _ = TcpView::new_unchecked(&bytes).to_string();
        }
    }
}
