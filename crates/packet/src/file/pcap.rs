//! Classic pcap files over bytes: microseconds and nanoseconds, both byte orders, read and write.

use super::record::{CaptureError, LinkType, Record, Resolution};

/// Bytes of the file header.
pub const FILE_HEADER_BYTES: usize = 24;
/// Bytes of the header of each record.
pub const RECORD_HEADER_BYTES: usize = 16;
/// The snapshot length that a writer notes unless told otherwise: the one of tcpdump.
pub const SNAP_LENGTH_DEFAULT: u32 = 262_144;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Whether the bytes start as a pcap file does.
pub(crate) fn is_pcap(bytes: &[u8]) -> bool {
    magic(bytes).is_some()
}

/// Resolution, and whether the numbers are big-endian.
fn magic(bytes: &[u8]) -> Option<(Resolution, bool)> {
    let magic = *bytes.first_chunk::<4>()?;
    let known = |number| match number {
        MAGIC_MICROSECONDS => Some(Resolution::Microseconds),
        MAGIC_NANOSECONDS => Some(Resolution::Nanoseconds),
        _ => None,
    };
    let little = known(u32::from_le_bytes(magic)).map(|resolution| (resolution, false));
    little.or_else(|| known(u32::from_be_bytes(magic)).map(|resolution| (resolution, true)))
}

/// Reads the records of a pcap file, in order.
///
/// An iterator: after the first error it gives no more.
#[derive(Clone, Debug)]
pub struct PcapReader<'a> {
    bytes: &'a [u8],
    at: usize,
    records: u64,
    big_endian: bool,
    resolution: Resolution,
    snap_length: u32,
    link_type: LinkType,
}

impl<'a> PcapReader<'a> {
    /// Reads the file header.
    ///
    /// # Errors
    /// When the bytes do not start as a pcap file does.
    pub fn new(bytes: &'a [u8]) -> Result<Self, CaptureError> {
        let (resolution, big_endian) =
            magic(bytes).ok_or_else(|| CaptureError::not_a_capture(bytes))?;
        CaptureError::check_length("the file header", 0, 0, FILE_HEADER_BYTES, bytes.len())?;
        let mut reader = PcapReader {
            bytes,
            at: FILE_HEADER_BYTES,
            records: 0,
            big_endian,
            resolution,
            snap_length: 0,
            link_type: LinkType::ETHERNET,
        };
        reader.snap_length = reader.u32_at(16);
        // The upper half of the field has flags about the FCS.
        reader.link_type = LinkType(reader.u32_at(20) & 0xffff);
        Ok(reader)
    }

    /// What the frames are.
    #[must_use]
    pub fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// The unit of the times in the file; those of [`Record`] are nanoseconds in any case.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Bytes of a frame above which the writer of the file has cut it, as the file says.
    #[must_use]
    pub fn snap_length(&self) -> u32 {
        self.snap_length
    }

    fn u32_at(&self, at: usize) -> u32 {
        let bytes = self.bytes[at..at + 4]
            .try_into()
            .expect("four bytes were cut out");
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn read(&mut self) -> Result<Record<'a>, CaptureError> {
        let rest = self.bytes.len() - self.at;
        let (record, at) = (self.records, self.at);
        let what = "the header of a record";
        CaptureError::check_length(what, record, at, RECORD_HEADER_BYTES, rest)?;
        let seconds = u64::from(self.u32_at(self.at));
        let fraction = u64::from(self.u32_at(self.at + 4));
        let captured = self.u32_at(self.at + 8) as usize;
        let original_len = self.u32_at(self.at + 12);
        let data = rest - RECORD_HEADER_BYTES;
        CaptureError::check_length("the data of a record", record, at, captured, data)?;
        let start = self.at + RECORD_HEADER_BYTES;
        self.at = start + captured;
        self.records += 1;
        Ok(Record {
            time_ns: seconds * 1_000_000_000 + fraction * self.resolution.unit_ns(),
            original_len,
            data: &self.bytes[start..self.at],
        })
    }
}

impl<'a> Iterator for PcapReader<'a> {
    type Item = Result<Record<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.at = self.bytes.len();
        }
        Some(record)
    }
}

/// Writes a pcap file into memory, little-endian.
///
/// To write a long file in parts: write [`PcapWriter::bytes`] out, then [`PcapWriter::clear`], again and
/// again.
#[derive(Clone, Debug)]
pub struct PcapWriter {
    bytes: Vec<u8>,
    resolution: Resolution,
    snap_length: u32,
}

impl PcapWriter {
    /// A file of whole Ethernet frames.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        PcapWriter::with_link(resolution, LinkType::ETHERNET, SNAP_LENGTH_DEFAULT)
    }

    /// A file of frames of some kind, cut after `snap_length` bytes.
    #[must_use]
    pub fn with_link(resolution: Resolution, link_type: LinkType, snap_length: u32) -> Self {
        let magic = match resolution {
            Resolution::Microseconds => MAGIC_MICROSECONDS,
            Resolution::Nanoseconds => MAGIC_NANOSECONDS,
        };
        let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES);
        bytes.extend_from_slice(&magic.to_le_bytes());
        bytes.extend_from_slice(&2u16.to_le_bytes()); // version 2.4
        bytes.extend_from_slice(&4u16.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]); // time zone and accuracy, which nobody uses
        bytes.extend_from_slice(&snap_length.to_le_bytes());
        bytes.extend_from_slice(&link_type.0.to_le_bytes());
        PcapWriter {
            bytes,
            resolution,
            snap_length,
        }
    }

    /// Appends a whole frame.
    ///
    /// # Errors
    /// When the time does not fit in the format.
    pub fn write_frame(&mut self, time_ns: u64, frame: &[u8]) -> Result<(), CaptureError> {
        self.write(&Record::whole(time_ns, frame))
    }

    /// Appends a record; its data is cut to the snapshot length.
    ///
    /// # Errors
    /// When the time does not fit in the format.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), CaptureError> {
        let seconds = record.time_ns / 1_000_000_000;
        let seconds = u32::try_from(seconds).map_err(|_| CaptureError::TimeTooLate {
            time_ns: record.time_ns,
        })?;
        let fraction = record.time_ns % 1_000_000_000 / self.resolution.unit_ns();
        let fraction = u32::try_from(fraction).expect("less than a second is left");
        let captured = u32::try_from(record.data.len())
            .unwrap_or(u32::MAX)
            .min(self.snap_length);
        for number in [seconds, fraction, captured, record.original_len] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.bytes
            .extend_from_slice(&record.data[..captured as usize]);
        Ok(())
    }

    /// What was written since the start or the last [`PcapWriter::clear`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was written so far, after it went elsewhere.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// What was written since the start or the last [`PcapWriter::clear`].
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(bytes: &[u8]) -> Result<Vec<Record<'_>>, CaptureError> {
        PcapReader::new(bytes)?.collect()
    }

    /// A file of two records in either byte order.
    fn sample(magic: u32, number: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let header = [magic, 0x0004_0002, 0, 0, 2000, 0x1000_0001];
        let first = [7, 999, 3, 3, 0x0102_0300];
        let second = [8, 1, 0, 60];
        let mut bytes: Vec<u8> = header
            .iter()
            .chain(&first)
            .flat_map(|&value| number(value))
            .collect();
        // The data is three bytes, whatever the order of the last number's four.
        bytes.truncate(FILE_HEADER_BYTES + RECORD_HEADER_BYTES);
        bytes.extend_from_slice(&[1, 2, 3]);
        bytes.extend(second.iter().flat_map(|&value| number(value)));
        bytes
    }

    #[test]
    fn four_kinds_of_magic() {
        for (magic, unit_ns) in [(MAGIC_MICROSECONDS, 1000), (MAGIC_NANOSECONDS, 1)] {
            for number in [u32::to_le_bytes as fn(u32) -> [u8; 4], u32::to_be_bytes] {
                let bytes = sample(magic, number);
                let reader = PcapReader::new(&bytes).unwrap();
                assert_eq!(reader.resolution().unit_ns(), unit_ns);
                assert_eq!(
                    (reader.link_type(), reader.snap_length()),
                    (LinkType::ETHERNET, 2000)
                );
                let records = records(&bytes).unwrap();
                assert_eq!(
                    records[0],
                    Record::whole(7_000_000_000 + 999 * unit_ns, &[1, 2, 3])
                );
                assert_eq!(records[1].time_ns, 8_000_000_000 + unit_ns);
                assert!(records[1].is_cut() && records.len() == 2);
            }
        }
    }

    #[test]
    fn a_cut_file_names_record_and_byte() {
        let bytes = sample(MAGIC_MICROSECONDS, u32::to_le_bytes);
        let error = records(&bytes[..bytes.len() - 1]).unwrap_err();
        let CaptureError::Truncated {
            record: 1,
            offset: 43,
            needed: 16,
            available: 15,
            ..
        } = error
        else {
            panic!("{error}");
        };
        let error = records(&bytes[..42]).unwrap_err();
        let CaptureError::Truncated {
            record: 0,
            offset: 24,
            needed: 3,
            available: 2,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert!(error.to_string().contains("record 0, byte 24"), "{error}");
        assert!(
            PcapReader::new(&bytes[..23])
                .unwrap_err()
                .to_string()
                .contains("the file header")
        );
        // Whole records before the cut are given, then the error, then nothing.
        let mut reader = PcapReader::new(&bytes[..bytes.len() - 1]).unwrap();
        assert!(reader.next().unwrap().is_ok() && reader.next().unwrap().is_err());
        assert!(reader.next().is_none());
    }

    #[test]
    fn cuts_to_the_snapshot_length_and_keeps_the_original() {
        let mut writer = PcapWriter::with_link(Resolution::Nanoseconds, LinkType::RAW_IP, 4);
        writer.write_frame(5, &[1, 2, 3, 4, 5, 6]).unwrap();
        let bytes = writer.into_bytes();
        assert_eq!(
            PcapReader::new(&bytes).unwrap().link_type(),
            LinkType::RAW_IP
        );
        let expected = Record {
            time_ns: 5,
            original_len: 6,
            data: &[1, 2, 3, 4],
        };
        assert_eq!(records(&bytes), Ok(vec![expected]));
    }

    #[test]
    fn a_time_too_late_is_refused_and_nothing_written() {
        let mut writer = PcapWriter::new(Resolution::Microseconds);
        let time_ns = (u64::from(u32::MAX) + 1) * 1_000_000_000;
        assert_eq!(
            writer.write_frame(time_ns, &[1]),
            Err(CaptureError::TimeTooLate { time_ns })
        );
        assert_eq!(writer.bytes().len(), FILE_HEADER_BYTES);
    }

    #[test]
    fn written_in_parts_is_the_same_file() {
        let (mut whole, mut parts) = (
            PcapWriter::new(Resolution::Microseconds),
            PcapWriter::new(Resolution::Microseconds),
        );
        let mut file = Vec::new();
        for time_ns in 0..5 {
            for writer in [&mut whole, &mut parts] {
                writer.write_frame(time_ns * 1000, &[7; 60]).unwrap();
            }
            file.extend_from_slice(parts.bytes());
            parts.clear();
        }
        assert_eq!(file, whole.into_bytes());
    }

    proptest! {
        #[test]
        fn read_after_write_gives_the_same(
            frames in prop::collection::vec(
                (0u64..4_294_967_296_000_000_000, prop::collection::vec(any::<u8>(), 0..80)), 0..9),
            fine: bool,
        ) {
            let resolution =
                if fine { Resolution::Nanoseconds } else { Resolution::Microseconds };
            let mut writer = PcapWriter::new(resolution);
            let mut expected = Vec::new();
            for (time_ns, frame) in &frames {
                writer.write_frame(*time_ns, frame).unwrap();
                let unit_ns = resolution.unit_ns();
                expected.push(Record::whole(time_ns / unit_ns * unit_ns, frame));
            }
            prop_assert_eq!(records(writer.bytes()), Ok(expected));
        }

        #[test]
        fn any_bytes_are_safe(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0usize..5,
        ) {
            let magics = [MAGIC_MICROSECONDS.to_le_bytes(), MAGIC_NANOSECONDS.to_be_bytes()];
            if let (Some(magic), Some(start)) = (magics.get(kind), bytes.first_chunk_mut()) {
                *start = *magic;
            }
            if let Ok(records) = records(&bytes) {
                prop_assert!(records.iter().map(|r| r.data.len() + 16).sum::<usize>() + 24
                    == bytes.len());
            }
        }
    }
}
