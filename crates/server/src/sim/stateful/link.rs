//! What the link between clients and servers does to frames.

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

use super::rng::SimRng;

/// What a frame takes on the wire besides its bytes: FCS (4), preamble (8) and gap (12).
const WIRE_OVERHEAD_BYTES: u64 = 24;
/// A frame is under way for so long at least: nothing is answered in no time.
const DELAY_MIN: Nanos = MICROSECOND;
/// A frame that is overtaken is late by so much at least, on links however short.
const LATE_MIN: Nanos = MILLISECOND;

/// How the link is. Shares are from 0 to 1, and of each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// How long a frame and its answer are under way, when nothing else holds them up.
    pub round_trip: Nanos,
    /// Bits per second on the wire; `None` is without limit.
    pub rate_bps: Option<f64>,
    /// Bytes that may wait for the wire; more are lost. `None` is without limit.
    pub queue_bytes: Option<u64>,
    /// The share of frames that are lost.
    pub loss: f64,
    /// The share of frames that others overtake.
    pub reorder: f64,
    /// The share of frames that arrive twice.
    pub duplicate: f64,
}

impl LinkSettings {
    /// A link that changes nothing; a frame and its answer are under way for `round_trip`.
    pub fn perfect(round_trip: Nanos) -> LinkSettings {
        LinkSettings {
            round_trip,
            rate_bps: None,
            queue_bytes: None,
            loss: 0.0,
            reorder: 0.0,
            duplicate: 0.0,
        }
    }

    /// Whether all frames arrive once, in their order.
    pub fn is_perfect(&self) -> bool {
        let may_overflow = self.rate_bps.is_some() && self.queue_bytes.is_some();
        !may_overflow && self.loss <= 0.0 && self.reorder <= 0.0 && self.duplicate <= 0.0
    }
}

/// What one direction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LinkCounters {
    /// Frames that were given to it.
    pub frames: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Frames that found the queue full.
    pub overflowed: u64,
    /// Frames that others may have overtaken.
    pub late: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
}

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Link {
    settings: LinkSettings,
    chance: SimRng,
    /// The last frame's last bit has left then, in nanoseconds.
    busy_until: f64,
    pub(super) counters: LinkCounters,
}

/// When a frame arrives; each may be never.
pub(super) type Arrivals = [Option<Nanos>; 2];

impl Link {
    pub(super) fn new(settings: LinkSettings, chance: SimRng) -> Link {
        Link {
            settings,
            chance,
            busy_until: 0.0,
            counters: LinkCounters::default(),
        }
    }

    /// A frame of so many bytes is sent.
    pub(super) fn send(&mut self, now: Nanos, bytes: usize) -> Arrivals {
        self.counters.frames += 1;
        self.counters.bytes += bytes as u64;
        let Some(left_at) = self.leave(now, bytes) else {
            self.counters.overflowed += 1;
            return [None; 2];
        };
        if self.chance.happens(self.settings.loss) {
            self.counters.lost += 1;
            return [None; 2];
        }
        let first = self.arrive(left_at);
        let is_twice = self.chance.happens(self.settings.duplicate);
        self.counters.duplicated += u64::from(is_twice);
        [Some(first), is_twice.then(|| self.arrive(left_at))]
    }

    /// When its last bit leaves; `None` when the queue is full.
    fn leave(&mut self, now: Nanos, bytes: usize) -> Option<Nanos> {
        let Some(rate_bps) = self.settings.rate_bps else {
            return Some(now);
        };
        let byte_ns = 8.0 * SECOND as f64 / rate_bps;
        let start = self.busy_until.max(now as f64);
        let waiting_bytes = (start - now as f64) / byte_ns;
        let room = self.settings.queue_bytes;
        // One frame may always wait: a queue without room for any would let nothing pass.
        if room
            .is_some_and(|room| waiting_bytes > 0.0 && waiting_bytes + bytes as f64 > room as f64)
        {
            return None;
        }
        self.busy_until = start + (bytes as u64 + WIRE_OVERHEAD_BYTES) as f64 * byte_ns;
        Some(self.busy_until as Nanos)
    }

    /// When a frame arrives that left then; some wait, and are overtaken.
    fn arrive(&mut self, left_at: Nanos) -> Nanos {
        let delay = (self.settings.round_trip / 2).max(DELAY_MIN);
        if !self.chance.happens(self.settings.reorder) {
            return left_at + delay;
        }
        self.counters.late += 1;
        left_at + delay + 1 + self.chance.below(delay.max(LATE_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(settings: LinkSettings) -> Link {
        Link::new(settings, SimRng::new(1, 0))
    }

    #[test]
    fn a_perfect_link_only_takes_time() {
        let mut link = link(LinkSettings::perfect(10 * MILLISECOND));
        assert_eq!(link.send(7, 1514), [Some(7 + 5 * MILLISECOND), None]);
        let counted = LinkCounters {
            frames: 1,
            bytes: 1514,
            ..LinkCounters::default()
        };
        assert_eq!(link.counters, counted);
    }

    #[test]
    fn frames_wait_for_the_wire_and_too_many_are_lost() {
        let settings = LinkSettings {
            rate_bps: Some(8e6),
            queue_bytes: Some(2000),
            ..LinkSettings::perfect(0)
        };
        let mut link = link(settings);
        // A byte a microsecond: 1,000 on the wire, counting what surrounds the frame.
        let sent: Vec<_> = (0..4).map(|_| link.send(0, 976)[0]).collect();
        let at = |us| Some(us * MICROSECOND + DELAY_MIN);
        assert_eq!(sent, [at(1000), at(2000), None, None]);
        assert_eq!(link.send(2000 * MICROSECOND, 976)[0], at(3000));
        assert_eq!(link.counters.overflowed, 2);
    }

    #[test]
    fn frames_are_lost_late_and_doubled_as_often_as_asked() {
        let settings = LinkSettings {
            loss: 0.1,
            reorder: 0.2,
            duplicate: 0.05,
            ..LinkSettings::perfect(10 * MILLISECOND)
        };
        let mut link = link(settings);
        let in_time = 5 * MILLISECOND;
        for _ in 0..100_000 {
            let arrivals = link.send(0, 60);
            assert!(
                arrivals
                    .iter()
                    .flatten()
                    .all(|at| (in_time..=2 * in_time).contains(at))
            );
        }
        let LinkCounters {
            lost,
            late,
            duplicated,
            ..
        } = link.counters;
        assert!((9_500..10_500).contains(&lost), "{lost} lost");
        assert!((18_000..20_000).contains(&late), "{late} late");
        assert!((4_200..4_800).contains(&duplicated), "{duplicated} twice");
    }
}
