//! ERF files over bytes (Endace's extensible record format), read: records of type 2, Ethernet.
//!
//! A file is nothing but records, without a header in front of them. Each has its time, the
//! interface that it was captured on, and the frame with its FCS, which is left out here.

use std::ops::Range;

use super::record::{CaptureError, LinkType, Record};

/// Bytes of the header of each record.
pub const RECORD_HEADER_BYTES: usize = 16;
/// Bytes between the header and the frame of an Ethernet record.
const PADDING_BYTES: usize = 2;
/// Bytes before the frame.
const FRAME_OFFSET: usize = RECORD_HEADER_BYTES + PADDING_BYTES;
/// Bytes of the FCS, which the length on the wire counts.
const FCS_BYTES: usize = 4;
/// The type of Ethernet records without extension headers.
const TYPE_ETHERNET: u8 = 2;
/// The bits of the flags that say which interface.
const FLAGS_INTERFACE: u8 = 0b11;
/// The bits of the flags that are reserved, and zero.
const FLAGS_RESERVED: u8 = 0xc0;

/// Byte positions of a record's header.
mod field {
    use super::Range;

    /// Little-endian, unlike all others: seconds in the upper half, their fraction in the lower.
    pub(super) const TIME: Range<usize> = 0..8;
    pub(super) const TYPE: usize = 8;
    pub(super) const FLAGS: usize = 9;
    /// Bytes of the record, header included.
    pub(super) const RECORD_LENGTH: Range<usize> = 10..12;
    /// Bytes of the frame on the wire, FCS included.
    pub(super) const WIRE_LENGTH: Range<usize> = 14..16;
}

/// One packet of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErfRecord<'a> {
    /// Where its record begins in the file.
    pub offset: u64,
    /// The number of the interface that it was captured on, 0 to 3.
    pub interface: usize,
    /// The frame, without FCS.
    pub record: Record<'a>,
}

/// The header of a record.
#[derive(Clone, Copy)]
struct Header<'a>(&'a [u8; RECORD_HEADER_BYTES]);

impl Header<'_> {
    fn time_ns(self) -> u64 {
        let mut time = [0; 8];
        time.copy_from_slice(&self.0[field::TIME]);
        let time = u64::from_le_bytes(time);
        let (seconds, fraction) = (time >> 32, time & 0xffff_ffff);
        seconds * 1_000_000_000 + ((fraction * 1_000_000_000) >> 32)
    }

    fn kind(self) -> u8 {
        self.0[field::TYPE]
    }

    fn flags(self) -> u8 {
        self.0[field::FLAGS]
    }

    fn record_bytes(self) -> usize {
        self.u16_at(field::RECORD_LENGTH)
    }

    fn wire_bytes(self) -> usize {
        self.u16_at(field::WIRE_LENGTH)
    }

    fn u16_at(self, field: Range<usize>) -> usize {
        let mut bytes = [0; 2];
        bytes.copy_from_slice(&self.0[field]);
        usize::from(u16::from_be_bytes(bytes))
    }

    /// Which field is not that of an Ethernet record, its value, and what would be right.
    fn problem(self) -> Option<(&'static str, usize, &'static str)> {
        if self.kind() != TYPE_ETHERNET {
            let expected = "2 (Ethernet, without extension headers)";
            return Some(("the type of a record", self.kind().into(), expected));
        }
        if self.flags() & FLAGS_RESERVED != 0 {
            let flags = self.flags().into();
            return Some(("the flags of a record", flags, "below 64"));
        }
        if self.record_bytes() < FRAME_OFFSET {
            let bytes = self.record_bytes();
            return Some(("the length of a record", bytes, "at least 18"));
        }
        if self.wire_bytes() < FCS_BYTES {
            let bytes = self.wire_bytes();
            return Some((
                "the wire length of a record",
                bytes,
                "at least 4, for the FCS",
            ));
        }
        None
    }
}

/// Whether the bytes start as an ERF file does. It has no sign of its own: the first record, and the
/// one after it, must be possible.
pub(crate) fn is_erf(bytes: &[u8]) -> bool {
    let possible = |at: usize| {
        let header = bytes.get(at..)?.first_chunk().map(Header)?;
        header
            .problem()
            .is_none()
            .then(|| at + header.record_bytes())
    };
    match possible(0) {
        // What is cut off or damaged later is said by the reader, with its place.
        Some(second) => bytes.len() < second + RECORD_HEADER_BYTES || possible(second).is_some(),
        None => false,
    }
}

/// Reads the records of an ERF file, in order.
///
/// An iterator: after the first error it gives no more.
#[derive(Clone, Debug)]
pub struct ErfReader<'a> {
    bytes: &'a [u8],
    at: usize,
    records: u64,
}

impl<'a> ErfReader<'a> {
    /// Looks at the beginning.
    ///
    /// # Errors
    /// When the bytes do not start as an ERF file does.
    pub fn new(bytes: &'a [u8]) -> Result<Self, CaptureError> {
        if !is_erf(bytes) {
            return Err(CaptureError::not_a_capture(bytes));
        }
        Ok(ErfReader {
            bytes,
            at: 0,
            records: 0,
        })
    }

    /// What the frames are.
    #[must_use]
    pub fn link_type(&self) -> LinkType {
        LinkType::ETHERNET
    }

    fn read(&mut self) -> Result<ErfRecord<'a>, CaptureError> {
        let rest = &self.bytes[self.at..];
        let Some(header) = rest.first_chunk().map(Header) else {
            return Err(self.truncated("the header of a record", RECORD_HEADER_BYTES, rest.len()));
        };
        if let Some((what, value, expected)) = header.problem() {
            return Err(CaptureError::Malformed {
                record: self.records,
                offset: self.at as u64,
                what,
                value: u32::try_from(value).unwrap_or(u32::MAX),
                expected,
            });
        }
        let Some(body) = rest.get(FRAME_OFFSET..header.record_bytes()) else {
            return Err(self.truncated("a record", header.record_bytes(), rest.len()));
        };
        // Behind a frame comes its FCS, and padding; one that was cut has neither.
        let wire_bytes = header.wire_bytes() - FCS_BYTES;
        let packet = ErfRecord {
            offset: self.at as u64,
            interface: usize::from(header.flags() & FLAGS_INTERFACE),
            record: Record {
                time_ns: header.time_ns(),
                original_len: u32::try_from(wire_bytes).unwrap_or(u32::MAX),
                data: &body[..body.len().min(wire_bytes)],
            },
        };
        self.at += header.record_bytes();
        self.records += 1;
        Ok(packet)
    }

    fn truncated(&self, what: &'static str, needed: usize, available: usize) -> CaptureError {
        CaptureError::Truncated {
            what,
            record: self.records,
            offset: self.at as u64,
            needed: needed as u64,
            available: available as u64,
        }
    }
}

impl<'a> Iterator for ErfReader<'a> {
    type Item = Result<ErfRecord<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let packet = self.read();
        if packet.is_err() {
            self.at = self.bytes.len();
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record whose frame has an FCS of zeros and `padding` bytes behind it.
    fn record(time: u64, interface: u8, frame: &[u8], padding: usize) -> Vec<u8> {
        let wire_bytes = frame.len() + FCS_BYTES;
        let record_bytes = FRAME_OFFSET + wire_bytes + padding;
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend([TYPE_ETHERNET, 0x04 | interface]);
        bytes.extend(u16::try_from(record_bytes).unwrap().to_be_bytes());
        bytes.extend([0, 9]); // records that were lost before it
        bytes.extend(u16::try_from(wire_bytes).unwrap().to_be_bytes());
        bytes.extend([0; PADDING_BYTES]);
        bytes.extend(frame);
        bytes.resize(record_bytes, 0);
        bytes
    }

    fn packets(bytes: &[u8]) -> Result<Vec<ErfRecord<'_>>, CaptureError> {
        ErfReader::new(bytes)?.collect()
    }

    #[test]
    fn times_and_interfaces_are_read_and_the_fcs_is_left_out() {
        let half = (1_466_519_289 << 32) | (1 << 31);
        let mut file = record(half, 2, &[1, 2, 3, 4], 0);
        file.extend(record(half + 1, 3, &[5; 60], 6));
        let found = packets(&file).unwrap();
        assert_eq!(
            found[0].record,
            Record::whole(1_466_519_289_500_000_000, &[1, 2, 3, 4])
        );
        assert_eq!(found[1].record.data, [5; 60]);
        assert_eq!(
            found.iter().map(|p| p.interface).collect::<Vec<_>>(),
            [2, 3]
        );
        assert_eq!(found[1].offset, 26);
    }

    #[test]
    fn a_frame_that_was_cut_while_capturing_says_so() {
        let mut file = record(0, 0, &[7; 100], 0);
        file.truncate(FRAME_OFFSET + 40);
        file[10..12].copy_from_slice(&58u16.to_be_bytes());
        let found = packets(&file).unwrap();
        assert_eq!(found[0].record.data, [7; 40]);
        assert_eq!(found[0].record.original_len, 100);
        assert!(found[0].record.is_cut());
    }

    #[test]
    fn a_cut_file_names_record_and_byte() {
        let first = record(1, 0, &[1; 60], 0);
        let mut file = first.clone();
        file.extend(record(2, 1, &[2; 60], 0));
        for cut in first.len() + 1..file.len() {
            let mut reader = ErfReader::new(&file[..cut]).unwrap();
            assert!(reader.next().unwrap().is_ok());
            let error = reader.next().unwrap().unwrap_err();
            let CaptureError::Truncated {
                record: 1, offset, ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!(offset, first.len() as u64);
            assert!(reader.next().is_none());
        }
    }

    #[test]
    fn contradictions_are_said_with_their_place() {
        let check = |at: usize, value: u8, text: &str| {
            let mut file = [1, 2, 3].map(|time| record(time, 0, &[0; 4], 0)).concat();
            file[2 * 26 + at] = value;
            let error = packets(&file).unwrap_err().to_string();
            assert!(
                error.contains("record 2, byte 52: ") && error.contains(text),
                "{error}"
            );
        };
        check(8, 1, "the type of a record is 1; it must be 2");
        check(8, 0x82, "the type of a record is 130; it must be 2");
        check(9, 0x40, "the flags of a record is 64");
        check(11, 17, "the length of a record is 17");
        check(15, 3, "the wire length of a record is 3");
    }

    #[test]
    fn what_has_another_second_record_is_no_erf_file() {
        let mut file = record(1, 0, &[0; 60], 0);
        file.extend([0xff; 40]);
        let error = ErfReader::new(&file).unwrap_err().to_string();
        assert!(error.contains("not a capture"), "{error}");
        assert!(ErfReader::new(&[]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            frames in prop::collection::vec(
                (any::<u64>(), 0u8..4, prop::collection::vec(any::<u8>(), 0..80), 0usize..8), 1..9),
        ) {
            let parts = frames.iter();
            let parts = parts.map(|(time, interface, frame, padding)| {
                record(*time, *interface, frame, *padding)
            });
            let file = parts.collect::<Vec<_>>().concat();
            let found = packets(&file).unwrap();
            prop_assert_eq!(found.len(), frames.len());
            for (packet, (time, interface, frame, _)) in found.iter().zip(&frames) {
                let ns = (u128::from(*time) * 1_000_000_000) >> 32;
                prop_assert_eq!(u128::from(packet.record.time_ns), ns);
                prop_assert_eq!(packet.interface, usize::from(*interface));
                prop_assert_eq!(packet.record.data, &frame[..]);
                prop_assert!(!packet.record.is_cut());
            }
        }

        /// A good file with a few bytes changed: that gets further than noise.
        #[test]
        fn any_bytes_are_safe(
            changes in prop::collection::vec((0usize..120, any::<u8>()), 0..6),
            cut in 0usize..120,
        ) {
            let mut file = [0, 1, 2].map(|n| record(n, 1, &[9; 20], 1)).concat();
            for (at, value) in changes {
                if let Some(byte) = file.get_mut(at) {
                    *byte = value;
                }
            }
            file.truncate(cut);
            if let Ok(packets) = packets(&file) {
                let bytes: usize = packets.iter().map(|p| p.record.data.len() + FRAME_OFFSET).sum();
                prop_assert!(bytes <= file.len());
            }
        }
    }
}
