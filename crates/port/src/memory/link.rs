//! What a link does to frames: when each arrives, and whether it does.

use super::settings::{DELAY_NS_MAX, LinkSettings, RATE_BPS_MAX, RATE_BPS_MIN};

/// What a frame takes on the wire besides its bytes: FCS (4), preamble (8) and gap (12).
const WIRE_OVERHEAD_BYTES: u128 = 24;
/// Parts of a nanosecond that the link counts in: 2⁴⁸, so that rounding does not add up to a
/// nanosecond in 2⁴⁸ bytes.
pub(super) const FRACTION_BITS: u32 = 48;

/// One direction of a link. Frames go through it one after the other.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// How long a byte takes, in 2⁻⁴⁸ ns, rounded down: what ends on a whole nanosecond must not
    /// end just behind it.
    byte_time: u128,
    delay_ns: u64,
    /// The last frame's last bit has left at this time, in 2⁻⁴⁸ ns.
    busy_until: u128,
}

/// When a frame would go through the link, see [`Link::offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Its first bit leaves, in 2⁻⁴⁸ ns.
    start: u128,
    /// Its last bit leaves, in 2⁻⁴⁸ ns. Of the frames that are taken none leaves before the last.
    pub(super) end: u128,
    /// It arrives.
    pub(super) arrival_ns: u64,
}

impl Passage {
    /// Whether this frame's first bit could leave before the other's.
    #[inline]
    pub(super) fn starts_before(self, other: Passage) -> bool {
        self.start < other.start
    }
}

impl Link {
    /// A link that is idle. Settings out of range are pulled into it.
    pub(super) fn new(settings: &LinkSettings) -> Link {
        let byte_time = settings.rate_bps.map_or(0, |rate_bps| {
            let rate_bps = rate_bps.clamp(RATE_BPS_MIN, RATE_BPS_MAX);
            (8e9 / rate_bps * (1u64 << FRACTION_BITS) as f64) as u128
        });
        Link {
            byte_time,
            delay_ns: settings.delay_ns.min(DELAY_NS_MAX),
            busy_until: 0,
        }
    }

    /// When a frame of `bytes`, without FCS, that was sent at `sent_ns` would go through if it
    /// were the next.
    #[inline]
    pub(super) fn offer(&self, sent_ns: u64, bytes: usize) -> Passage {
        let start = (u128::from(sent_ns) << FRACTION_BITS).max(self.busy_until);
        let end = start + (bytes as u128 + WIRE_OVERHEAD_BYTES) * self.byte_time;
        let end_ns = (end + (1 << FRACTION_BITS) - 1) >> FRACTION_BITS;
        Passage {
            start,
            end,
            arrival_ns: (end_ns as u64).saturating_add(self.delay_ns),
        }
    }

    /// Takes the frame that was offered.
    #[inline]
    pub(super) fn take(&mut self, passage: Passage) {
        self.busy_until = passage.end;
    }
}

/// Decides which frames of one queue are lost.
///
/// Each queue has a sequence of its own: which of its frames are lost depends on their number
/// alone, not on how the queues of a port mix.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// A frame is lost when its draw of 53 bits is below this.
    threshold: u64,
    state: u64,
}

impl Loss {
    const DRAW_BITS: u32 = 53;

    /// The losses of queue number `queue` in direction number `direction`.
    pub(super) fn new(settings: &LinkSettings, direction: u64, queue: u64) -> Loss {
        let share = settings.loss.clamp(0.0, 1.0);
        let mut state = settings.seed;
        for number in [direction, queue] {
            state = mix(state.wrapping_add(number).wrapping_add(GOLDEN_RATIO));
        }
        Loss {
            threshold: (share * (1u64 << Self::DRAW_BITS) as f64).round() as u64,
            state,
        }
    }

    /// Draws for the next frame: true when it is lost.
    #[inline]
    pub(super) fn draw(&mut self) -> bool {
        if self.threshold == 0 {
            return false;
        }
        self.state = self.state.wrapping_add(GOLDEN_RATIO);
        mix(self.state) >> (u64::BITS - Self::DRAW_BITS) < self.threshold
    }
}

/// 2⁶⁴ divided by the golden ratio, the increment of the SplitMix64 generator (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function.
#[inline]
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Link {
        Link::new(&text.parse().expect("well formed"))
    }

    #[test]
    fn a_frame_takes_its_time_and_the_next_one_waits() {
        // 10 Gb/s: 60 + 24 bytes take 67.2 ns.
        let mut link = link("rate=10gbps:delay=1us");
        let mut arrivals = Vec::new();
        for sent_ns in [100, 100, 100, 100, 100, 5000] {
            let passage = link.offer(sent_ns, 60);
            link.take(passage);
            arrivals.push(passage.arrival_ns);
        }
        assert_eq!(arrivals, [1168, 1235, 1302, 1369, 1436, 6068]);
    }

    #[test]
    fn a_million_frames_keep_the_rate() {
        let mut link = link("rate=3gbps");
        for _ in 0..1_000_000 {
            let passage = link.offer(0, 1514);
            link.take(passage);
        }
        let expected_ns = 1538 * 8 * 1_000_000 / 3;
        assert_eq!(link.offer(0, 0).start >> FRACTION_BITS, expected_ns);
    }

    #[test]
    fn without_limits_a_frame_arrives_when_it_is_sent() {
        let mut link = link("");
        for sent_ns in [0, 7, 7, u64::MAX] {
            let passage = link.offer(sent_ns, 9238);
            link.take(passage);
            assert_eq!(passage.arrival_ns, sent_ns);
        }
    }

    #[test]
    fn settings_out_of_range_are_pulled_into_it() {
        let settings = LinkSettings {
            rate_bps: Some(-5.0),
            delay_ns: u64::MAX,
            loss: 7.0,
            ..LinkSettings::default()
        };
        let passage = Link::new(&settings).offer(0, 101);
        assert_eq!(passage.arrival_ns, 1_000_000_000 + DELAY_NS_MAX);
        assert!(Loss::new(&settings, 0, 0).draw());
    }

    /// The numbers of the frames lost among the first `count`.
    fn lost(text: &str, direction: u64, queue: u64, count: usize) -> Vec<usize> {
        let mut loss = Loss::new(&text.parse().expect("well formed"), direction, queue);
        (0..count).filter(|_| loss.draw()).collect()
    }

    #[test]
    fn losses_come_again_with_the_seed_and_differ_by_direction_and_queue() {
        let first = lost("loss=10%:seed=7", 0, 0, 1000);
        assert_eq!(first, lost("loss=10%:seed=7", 0, 0, 1000));
        assert_ne!(first, lost("loss=10%:seed=8", 0, 0, 1000));
        assert_ne!(first, lost("loss=10%:seed=7", 1, 0, 1000));
        assert_ne!(first, lost("loss=10%:seed=7", 0, 1, 1000));
        assert_ne!(
            lost("loss=10%:seed=7", 1, 0, 1000),
            lost("loss=10%:seed=7", 0, 1, 1000)
        );
    }

    #[test]
    fn the_share_of_losses_is_the_asked_one() {
        // Standard deviation of the count: sqrt(1e6 * 0.001 * 0.999) = 32.
        let count = lost("loss=0.1%:seed=1", 0, 0, 1_000_000).len();
        assert!((840..1160).contains(&count), "{count}");
        assert_eq!(lost("loss=100%", 0, 0, 1000).len(), 1000);
        assert_eq!(lost("loss=0%", 0, 0, 1000).len(), 0);
    }
}
