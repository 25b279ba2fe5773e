//! Captures that tell what is right: read, compared, and the difference in words.

use std::fmt;
use std::path::Path;

use allosaur_packet::file::{self, CaptureError};

use crate::hexdump;

/// Frames whose times are no further apart than this may come in any order.
pub const ANY_ORDER_NS: u64 = 1_000;

/// A frame with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// From any origin: comparisons are relative to the first frame of a capture.
    pub time_ns: u64,
    /// Without FCS.
    pub bytes: Vec<u8>,
}

/// Reads a capture file.
pub fn load(path: &Path) -> Vec<Record> {
    let place = path.display();
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{place}: {error}"));
    parse(&bytes).unwrap_or_else(|error| panic!("{place}: {error}"))
}

/// Reads a capture.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Vec<Record>, CaptureError> {
    let capture = file::read(bytes)?;
    let records = capture.records.iter().map(|record| Record {
        time_ns: record.time_ns,
        bytes: record.data.to_vec(),
    });
    Ok(records.collect())
}

/// How two captures differ; its text is made to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// One has more frames.
    Count {
        /// Frames that should be there.
        expected: usize,
        /// Frames that are.
        got: usize,
    },
    /// A frame should be there, and none of the frames at its place is the same.
    Bytes {
        /// Its number, from 0.
        number: usize,
        /// What should be there.
        expected: Record,
        /// What is there instead; its time is relative to the first frame, like the other's.
        got: Record,
    },
    /// A frame is there at another time.
    Time {
        /// Its number in the expected capture, from 0.
        number: usize,
        /// When it should be, from the first frame on.
        expected_ns: u64,
        /// When it is.
        got_ns: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Count { expected, got } => {
                write!(
                    f,
                    "{got} frames instead of {expected}; those in both are equal"
                )
            }
            Mismatch::Bytes {
                number,
                expected,
                got,
            } => {
                writeln!(
                    f,
                    "frame {number} differs: expected {} bytes at {} ns, got {} bytes at {} ns",
                    expected.bytes.len(),
                    expected.time_ns,
                    got.bytes.len(),
                    got.time_ns
                )?;
                let diff = hexdump::diff(&expected.bytes, &got.bytes);
                let note = "the bytes are equal, but this frame stands for an earlier one\n";
                f.write_str(if diff.is_empty() { note } else { &diff })?;
                write!(f, "expected\n{}", hexdump::dump(&expected.bytes))
            }
            Mismatch::Time {
                number,
                expected_ns,
                got_ns,
            } => {
                let apart_ns = expected_ns.abs_diff(*got_ns);
                write!(
                    f,
                    "frame {number} is at {got_ns} ns instead of {expected_ns} ns after the \
                     first frame: {apart_ns} ns apart"
                )
            }
        }
    }
}

/// Compares what was sent with what should have been.
///
/// Each expected frame must be there with the same bytes, at the same time relative to the first
/// frame (give or take `time_tolerance_ns`), and at the same place; frames whose expected times
/// are within [`ANY_ORDER_NS`] may change places.
///
/// # Errors
///
/// The first frame that differs.
pub fn compare(
    expected: &[Record],
    got: &[Record],
    time_tolerance_ns: u64,
) -> Result<(), Mismatch> {
    let mut matcher = Matcher::new(expected, got, time_tolerance_ns);
    for number in 0..expected.len().min(got.len()) {
        matcher.find(number)?;
    }
    if expected.len() != got.len() {
        return Err(Mismatch::Count {
            expected: expected.len(),
            got: got.len(),
        });
    }
    Ok(())
}

struct Matcher<'a> {
    expected: &'a [Record],
    got: &'a [Record],
    tolerance_ns: u64,
    /// Which of `got` are taken.
    taken: Vec<bool>,
}

impl<'a> Matcher<'a> {
    fn new(expected: &'a [Record], got: &'a [Record], tolerance_ns: u64) -> Matcher<'a> {
        Matcher {
            expected,
            got,
            tolerance_ns,
            taken: vec![false; got.len()],
        }
    }

    /// Finds the frame that expected frame `number` is, among those that may stand in its place.
    fn find(&mut self, number: usize) -> Result<(), Mismatch> {
        let expected = &self.expected[number];
        let expected_ns = since_first(self.expected, number);
        let places = self.places(number);
        let mut same_bytes = places
            .clone()
            .filter(|&place| !self.taken[place] && self.got[place].bytes == expected.bytes);
        let in_time = |&place: &usize| {
            since_first(self.got, place).abs_diff(expected_ns) <= self.tolerance_ns
        };
        if let Some(place) = same_bytes.clone().find(in_time) {
            self.taken[place] = true;
            return Ok(());
        }
        if let Some(place) = same_bytes.next() {
            return Err(Mismatch::Time {
                number,
                expected_ns,
                got_ns: since_first(self.got, place),
            });
        }
        let untaken = places.clone().find(|&place| !self.taken[place]);
        let place = untaken.unwrap_or(number);
        Err(Mismatch::Bytes {
            number,
            expected: Record {
                time_ns: expected_ns,
                bytes: expected.bytes.clone(),
            },
            got: Record {
                time_ns: since_first(self.got, place),
                bytes: self.got[place].bytes.clone(),
            },
        })
    }

    /// The places around `number` whose expected times are as good as the same.
    fn places(&self, number: usize) -> std::ops::Range<usize> {
        let time_ns = self.expected[number].time_ns;
        let close = |record: &&Record| record.time_ns.abs_diff(time_ns) <= ANY_ORDER_NS;
        let before = self.expected[..number].iter().rev().take_while(close);
        let after = self.expected[number..].iter().take_while(close);
        let end = (number + after.count()).min(self.got.len());
        number - before.count()..end
    }
}

/// The time of a frame from the first one on. A frame that is before the first counts as at it.
fn since_first(records: &[Record], number: usize) -> u64 {
    records[number].time_ns.saturating_sub(records[0].time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(frames: &[(u64, &str)]) -> Vec<Record> {
        let record = |&(time_ns, bytes): &(u64, &str)| Record {
            time_ns,
            bytes: bytes.as_bytes().to_vec(),
        };
        frames.iter().map(record).collect()
    }

    const FRAMES: [(u64, &str); 4] = [(1000, "a"), (5000, "b"), (5500, "c"), (9000, "d")];

    #[test]
    fn equal_captures_agree_whatever_their_origin() {
        let expected = records(&FRAMES);
        assert_eq!(compare(&expected, &expected, 0), Ok(()));
        let later = FRAMES.map(|(time_ns, bytes)| (time_ns + 77, bytes));
        assert_eq!(compare(&expected, &records(&later), 0), Ok(()));
        assert_eq!(compare(&[], &[], 0), Ok(()));
    }

    #[test]
    fn only_frames_of_one_microsecond_may_change_places() {
        let expected = records(&FRAMES);
        let swapped = records(&[(1000, "a"), (5000, "c"), (5500, "b"), (9000, "d")]);
        assert_eq!(compare(&expected, &swapped, 500), Ok(()));
        let far = records(&[(1000, "a"), (5000, "b"), (5500, "d"), (9000, "c")]);
        let mismatch = compare(&expected, &far, u64::MAX).expect_err("c and d are far apart");
        assert!(
            matches!(mismatch, Mismatch::Bytes { number: 2, .. }),
            "{mismatch}"
        );
    }

    #[test]
    fn times_are_compared_within_the_tolerance() {
        let late = records(&[(1000, "a"), (5000, "b"), (5500, "c"), (9100, "d")]);
        assert_eq!(compare(&records(&FRAMES), &late, 100), Ok(()));
        let mismatch = compare(&records(&FRAMES), &late, 99).expect_err("100 ns late");
        assert_eq!(
            mismatch.to_string(),
            "frame 3 is at 8100 ns instead of 8000 ns after the first frame: 100 ns apart"
        );
    }

    #[test]
    fn a_missing_and_an_extra_frame_are_told() {
        let expected = records(&FRAMES);
        for (expected, got) in [
            (&expected[..], &expected[..3]),
            (&expected[..3], &expected[..]),
        ] {
            let mismatch = compare(expected, got, 0).expect_err("one frame more or less");
            assert!(matches!(mismatch, Mismatch::Count { .. }), "{mismatch}");
        }
        let mismatch = compare(&expected, &[], 0).expect_err("no frames");
        assert!(mismatch.to_string().starts_with("0 frames instead of 4"));
    }

    #[test]
    fn a_frame_is_matched_once() {
        let expected = records(&[(0, "a"), (0, "a"), (0, "b")]);
        let got = records(&[(0, "a"), (0, "b"), (0, "b")]);
        let mismatch = compare(&expected, &got, 0).expect_err("one a is missing");
        assert!(mismatch.to_string().contains("^^"), "{mismatch}");
    }

    #[test]
    fn every_golden_can_be_read_and_equals_itself() {
        for (name, _, pcap) in crate::data::golden_pairs() {
            let records = load(&pcap);
            assert!(!records.is_empty(), "{name}");
            assert_eq!(compare(&records, &records, 0), Ok(()), "{name}");
        }
    }
}
