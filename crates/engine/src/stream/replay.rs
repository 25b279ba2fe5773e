//! A capture that is sent again: frames, each with its time in a round, round after round.
//!
//! The times are planned before the first frame leaves and never change: a late core sends late
//! and shifts nothing.

use std::num::NonZeroU32;

use super::spec::PACKET_BYTES_PADDED;
use crate::time::{Due, Gap, Nanos};

/// What `rounds_left` is when nothing ends it.
const ENDLESS: u64 = u64::MAX;

/// Frames to be sent by one core, with the state of sending them.
#[derive(Debug)]
pub struct Replay {
    bytes: Vec<u8>,
    /// In the order of their times.
    frames: Vec<Frame>,
    /// From the start of a round to that of the next.
    period: Gap,
    rounds_left: u64,
    round_at: Due,
    /// Always one of `frames`, unless there are none.
    next: usize,
    /// Packets of the whole capture that were recorded before one in front of them: they leave with it.
    pub early_packets: usize,
}

/// One frame, ready to leave.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Since the start of its round.
    at: Nanos,
    start: usize,
    len: u16,
}

/// The addresses that a frame gets in place of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Macs {
    /// `None` keeps that of the capture.
    pub source: Option<[u8; 6]>,
    /// `None` keeps that of the capture.
    pub destination: Option<[u8; 6]>,
}

impl Replay {
    /// Nothing to send yet, with room for frames of `bytes` bytes in all.
    pub(super) fn with_capacity(bytes: usize) -> Replay {
        Replay {
            bytes: Vec::with_capacity(bytes),
            frames: Vec::new(),
            period: Gap::default(),
            rounds_left: 0,
            round_at: Due::default(),
            next: 0,
            early_packets: 0,
        }
    }

    /// Adds a frame that leaves `at` after the start of a round, not before those added earlier.
    /// `packet` holds a whole Ethernet header and is no longer than a template may be.
    pub(super) fn push(&mut self, at: Nanos, packet: &[u8], macs: Macs) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        let len = packet.len().max(PACKET_BYTES_PADDED);
        self.bytes.resize(start + len, 0);
        if let Some(destination) = macs.destination {
            self.bytes[start..start + 6].copy_from_slice(&destination);
        }
        if let Some(source) = macs.source {
            self.bytes[start + 6..start + 12].copy_from_slice(&source);
        }
        let len = u16::try_from(len).expect("the longest packet has fewer bytes");
        self.frames.push(Frame { at, start, len });
    }

    /// How long a round takes and how many there are; `None` is without end, and takes time.
    pub(super) fn repeat(&mut self, period: Gap, rounds: Option<NonZeroU32>) {
        self.period = period;
        self.rounds_left = rounds.map_or(ENDLESS, |rounds| u64::from(rounds.get()));
    }

    /// Frames of one round.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The frames of one round, as they leave.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let frames = self.frames.iter();
        frames.map(|frame| &self.bytes[frame.start..][..usize::from(frame.len)])
    }

    /// The first round starts at `at`.
    pub(crate) fn start(&mut self, at: Nanos) {
        self.round_at = Due::at(at);
        self.next = 0;
        if self.frames.is_empty() {
            self.rounds_left = 0;
        }
    }

    /// When the next frame is due; `None` when all have had their turn.
    #[inline]
    pub(crate) fn due_at(&self) -> Option<Nanos> {
        if self.rounds_left == 0 {
            return None;
        }
        Some(self.due_of(&self.frames[self.next]))
    }

    /// The next frame and its time, if it is due by `until`.
    #[inline]
    pub(crate) fn peek(&self, until: Nanos) -> Option<(Nanos, &[u8])> {
        if self.rounds_left == 0 {
            return None;
        }
        let frame = &self.frames[self.next];
        let at = self.due_of(frame);
        let bytes = frame.start..frame.start + usize::from(frame.len);
        (at <= until).then(|| (at, &self.bytes[bytes]))
    }

    /// The next frame is done with.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.next += 1;
        if self.next == self.frames.len() {
            self.end_rounds(1);
        }
    }

    /// Gives up all frames that are due by `until`; says how many.
    pub(crate) fn skip(&mut self, until: Nanos) -> u64 {
        let mut skipped = 0;
        if self.next > 0 {
            skipped += self.skip_in_round(until);
        }
        if self.next == 0 {
            let rounds = self.whole_rounds(until);
            self.end_rounds(rounds);
            skipped += rounds.saturating_mul(self.frames.len() as u64);
            skipped += self.skip_in_round(until);
        }
        skipped
    }

    /// Whether it goes on until it is stopped.
    pub(crate) fn is_endless(&self) -> bool {
        self.rounds_left == ENDLESS
    }

    fn skip_in_round(&mut self, until: Nanos) -> u64 {
        if self.rounds_left == 0 {
            return 0;
        }
        let is_due = |frame: &Frame| self.due_of(frame) <= until;
        let end = self.next + self.frames[self.next..].partition_point(is_due);
        let skipped = (end - self.next) as u64;
        self.next = end;
        if end == self.frames.len() {
            self.end_rounds(1);
        }
        skipped
    }

    /// Rounds from here on of which every frame is due by `until`.
    fn whole_rounds(&self, until: Nanos) -> u64 {
        let Some(last) = self.frames.last().map(|frame| self.due_of(frame)) else {
            return 0;
        };
        match until.checked_sub(last) {
            None => 0,
            Some(span) => {
                let rounds = self.period.count_in(span).saturating_add(1);
                rounds.min(self.rounds_left)
            }
        }
    }

    fn end_rounds(&mut self, rounds: u64) {
        self.next = 0;
        self.round_at = self.round_at.after(self.period.times(rounds));
        if self.rounds_left != ENDLESS {
            self.rounds_left -= rounds;
        }
    }

    #[inline]
    fn due_of(&self, frame: &Frame) -> Nanos {
        self.round_at.at.saturating_add(frame.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames at these times, in rounds of `period` each.
    fn replay(times: &[Nanos], period: f64, rounds: u32) -> Replay {
        let mut replay = Replay::with_capacity(0);
        for at in times {
            replay.push(*at, &[7; 14], Macs::default());
        }
        replay.repeat(Gap::from_nanos(period), NonZeroU32::new(rounds));
        replay.start(1000);
        replay
    }

    /// What giving up one after the other gives up.
    fn skip_slowly(replay: &mut Replay, until: Nanos) -> u64 {
        let mut skipped = 0;
        while replay.due_at().is_some_and(|at| at <= until) {
            replay.advance();
            skipped += 1;
        }
        skipped
    }

    #[test]
    fn skipping_at_once_is_skipping_one_by_one() {
        let kinds = [
            (&[0, 5, 5, 9][..], 12.25, 0),
            (&[0, 5, 5, 9], 9.0, 3),
            (&[0, 0], 0.0, 5),
            (&[3], 2.5, 1),
            (&[], 1.0, 4),
        ];
        for (times, period, rounds) in kinds {
            for first in 995..1040 {
                for second in first..1060 {
                    let mut fast = replay(times, period, rounds);
                    let mut slow = replay(times, period, rounds);
                    for until in [first, second] {
                        let skipped = fast.skip(until);
                        assert_eq!(skipped, skip_slowly(&mut slow, until), "{times:?} {until}");
                        assert_eq!(fast.due_at(), slow.due_at(), "{times:?} {until}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_endless_replay_that_was_away_for_long_is_quick_to_skip() {
        let mut replay = replay(&[0, 1], 3.0, 0);
        let hour = 3_600_000_000_000;
        assert_eq!(replay.skip(1000 + hour), hour / 3 * 2 + 1);
        assert!(replay.is_endless() && replay.due_at() == Some(1000 + hour + 1));
    }

    #[test]
    fn fractions_of_a_nanosecond_add_up_over_rounds() {
        let mut replay = replay(&[0], 333.25, 0);
        (0..4000).for_each(|_| replay.advance());
        assert_eq!(replay.due_at(), Some(1000 + 1_333_000));
    }

    #[test]
    fn short_frames_are_padded_with_zeros() {
        let macs = Macs {
            source: Some([2; 6]),
            destination: None,
        };
        let mut replay = Replay::with_capacity(0);
        replay.push(0, &[7; 14], macs);
        replay.repeat(Gap::default(), NonZeroU32::new(1));
        replay.start(0);
        let (_, bytes) = replay.peek(0).expect("it is due");
        let expected = [&[7; 6][..], &[2; 6], &[7, 7], &[0; 46]].concat();
        assert_eq!(bytes, expected);
    }
}
