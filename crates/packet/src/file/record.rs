//! What the capture formats have in common: records, link types, errors.

use std::fmt;

use thiserror::Error;

/// What kind of frames a capture holds (the LINKTYPE_ numbers of the pcap formats).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// Ethernet frames without FCS.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IP packets without a link header, version 4 or 6.
    pub const RAW_IP: LinkType = LinkType(101);
    /// The "cooked" header of Linux's `any` interface.
    pub const LINUX_COOKED: LinkType = LinkType(113);
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ETHERNET => f.write_str("ethernet"),
            Self::RAW_IP => f.write_str("raw ip"),
            Self::LINUX_COOKED => f.write_str("linux cooked"),
            LinkType(number) => write!(f, "link type {number}"),
        }
    }
}

/// The unit of the times in a pcap file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// Millionths of a second: the usual pcap file.
    Microseconds,
    /// Billionths of a second.
    Nanoseconds,
}

impl Resolution {
    /// Nanoseconds in one unit.
    #[must_use]
    pub const fn unit_ns(self) -> u64 {
        match self {
            Resolution::Microseconds => 1_000,
            Resolution::Nanoseconds => 1,
        }
    }
}

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, since 1970 (or since whatever the writer of the file meant).
    pub time_ns: u64,
    /// Bytes that the frame had; more than `data` when it was cut.
    pub original_len: u32,
    /// The bytes of the frame that are in the file.
    pub data: &'a [u8],
}

impl<'a> Record<'a> {
    /// A frame of which nothing was cut.
    #[must_use]
    pub fn whole(time_ns: u64, data: &'a [u8]) -> Self {
        let original_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Record {
            time_ns,
            original_len,
            data,
        }
    }

    /// The file has less of the frame than there was.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.data.len() < self.original_len as usize
    }
}

/// A capture file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture<'a> {
    /// What the frames are.
    pub link_type: LinkType,
    /// The frames, in the order of the file.
    pub records: Vec<Record<'a>>,
}

/// Why a capture cannot be read or written, with the place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The bytes are something else.
    #[error("byte 0: this is {found}, not a capture. {remedy}")]
    NotACapture {
        /// What it seems to be.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The file ends too early.
    #[error(
        "record {record}, byte {offset}: the file ends inside {what}, which takes {needed} bytes; \
         {available} are there. The file was cut off: capture it again, or cut it at byte {offset} \
         to keep the {record} whole records before it"
    )]
    Truncated {
        /// What is cut.
        what: &'static str,
        /// How many records were read before.
        record: u64,
        /// Where the cut record begins in the file.
        offset: u64,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// A field contradicts the rest of the file.
    #[error(
        "record {record}, byte {offset}: {what} is {value}; it must be {expected}. The file is \
         damaged: capture it again, or cut it at byte {offset} to keep the {record} records before it"
    )]
    Malformed {
        /// How many records were read before.
        record: u64,
        /// Where the block begins in the file.
        offset: u64,
        /// Which field.
        what: &'static str,
        /// Its value.
        value: u32,
        /// What would be right.
        expected: &'static str,
    },
    /// The frames are not all of one kind.
    #[error(
        "record {record}, byte {offset}: the link type is {found}, that of the records before it \
         is {expected}. Give each interface a file of its own"
    )]
    MixedLinkTypes {
        /// How many records were read before.
        record: u64,
        /// Where the block begins in the file.
        offset: u64,
        /// The link type of this record.
        found: LinkType,
        /// The link type of the others.
        expected: LinkType,
    },
    /// The time of a record is before 1970 or more than 64 bits of nanoseconds.
    #[error(
        "record {record}, byte {offset}: a time of {ticks} ticks is outside of the years 1970 to \
         2554. Correct the clock or its resolution (if_tsresol, if_tsoffset) and capture again"
    )]
    TimeOutOfRange {
        /// How many records were read before.
        record: u64,
        /// Where the block begins in the file.
        offset: u64,
        /// The time as it is written.
        ticks: u64,
    },
    /// The time of a record is after the year 2106, which the format cannot say.
    #[error(
        "a time of {time_ns} ns is more than the 32-bit seconds of a pcap file. Write pcapng, or \
         times counted from a later start"
    )]
    TimeTooLate {
        /// The time.
        time_ns: u64,
    },
}

impl CaptureError {
    /// Says what bytes that are no capture look like.
    pub(crate) fn not_a_capture(bytes: &[u8]) -> CaptureError {
        let (found, remedy) = match bytes {
            [] => (
                "an empty file".to_owned(),
                "Give a pcap, pcapng or ERF file",
            ),
            [0x1f, 0x8b, ..] => ("a gzip file".to_owned(), "Unpack it first (gunzip)"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => ("a zstd file".to_owned(), "Unpack it first (unzstd)"),
            _ => {
                let start: Vec<_> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
                let found = format!("a file that begins with {}", start.join(" "));
                (found, "Give a pcap, pcapng or ERF file")
            }
        };
        CaptureError::NotACapture { found, remedy }
    }

    /// Checks that a part of a file, which takes `needed` bytes, is there as a whole. It begins at
    /// `offset`, after so many records.
    pub(crate) fn check_length(
        what: &'static str,
        record: u64,
        offset: usize,
        needed: usize,
        available: usize,
    ) -> Result<(), CaptureError> {
        if needed <= available {
            return Ok(());
        }
        Err(CaptureError::Truncated {
            what,
            record,
            offset: offset as u64,
            needed: needed as u64,
            available: available as u64,
        })
    }
}
