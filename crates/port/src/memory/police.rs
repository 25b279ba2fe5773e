//! What a device in place of the link would drop: the surplus over a rate of frames (a policer), and
//! a share of all frames while there are too many (an overload).

use super::settings::{BURST_FRAMES_MAX, LinkSettings, POLICE_PPS_MAX, POLICE_PPS_MIN, QUEUE_NS};

/// Parts of a nanosecond that times have here, as those of a link.
const FRACTION_BITS: u32 = super::link::FRACTION_BITS;
/// The least that a meter passes at once when its burst is not set: what a data thread sends in one
/// burst.
const BURST_FRAMES_MIN: u64 = 64;

/// A token bucket that counts frames, in the form of the generic cell rate algorithm (ITU-T I.371,
/// annex A, "virtual scheduling"): as many frames as its burst conform at once, and its rate of them
/// in the long run.
#[derive(Clone, Debug)]
struct Meter {
    /// How long a frame takes at the meter's rate, in 2⁻⁴⁸ ns.
    frame_time: u128,
    /// How long as many frames take as may come at once.
    burst_time: u128,
    /// When all frames that conformed have taken their time.
    caught_up_at: u128,
}

impl Meter {
    /// A meter that has seen no frame. Settings out of range are pulled into it.
    fn new(rate_pps: f64, burst_frames: Option<u64>) -> Meter {
        let rate_pps = rate_pps.clamp(POLICE_PPS_MIN, POLICE_PPS_MAX);
        let usual = (rate_pps * QUEUE_NS as f64 / 1e9) as u64;
        let burst_frames = burst_frames.unwrap_or(usual.max(BURST_FRAMES_MIN));
        let frame_time = (1e9 / rate_pps * (1u64 << FRACTION_BITS) as f64) as u128;
        Meter {
            frame_time,
            burst_time: frame_time * u128::from(burst_frames.clamp(1, BURST_FRAMES_MAX)),
            caught_up_at: 0,
        }
    }

    /// Whether the frame that comes at this time conforms. Times never go back.
    fn conforms(&mut self, at: u128) -> bool {
        let until = self.caught_up_at.max(at) + self.frame_time;
        let conforms = until - at <= self.burst_time;
        if conforms {
            self.caught_up_at = until;
        }
        conforms
    }

    fn has_caught_up(&self, at: u128) -> bool {
        self.caught_up_at <= at
    }
}

/// The policer and the overload of one direction of a link; without settings for them it passes all.
#[derive(Clone, Debug)]
pub(super) struct Police {
    rate: Option<Meter>,
    /// What the loss of the link is for, when it is not for all frames.
    overload: Option<Meter>,
    is_overloaded: bool,
}

impl Police {
    pub(super) fn new(settings: &LinkSettings) -> Police {
        let meter = |rate_pps| Meter::new(rate_pps, settings.burst_frames);
        Police {
            rate: settings.police_pps.map(meter),
            overload: settings.loss_above_pps.map(meter),
            is_overloaded: false,
        }
    }

    /// Whether the frame that leaves the line at this time, in 2⁻⁴⁸ ns, is dropped. Every frame is
    /// told, in order of time; `drawn` says that the link's loss has drawn it.
    #[inline]
    pub(super) fn drops(&mut self, at: u128, drawn: bool) -> bool {
        let mut lost = drawn;
        if let Some(meter) = &mut self.overload {
            // Once above, the load is above until the meter has caught up: between two frames that
            // do not conform there are many that do.
            self.is_overloaded &= !meter.has_caught_up(at);
            self.is_overloaded |= !meter.conforms(at);
            lost &= self.is_overloaded;
        }
        if let Some(meter) = &mut self.rate {
            lost |= !meter.conforms(at);
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn police(text: &str) -> Police {
        Police::new(&text.parse().expect("well formed"))
    }

    /// How many of the frames that come at an even rate for so many seconds are dropped.
    fn dropped(police: &mut Police, from_ns: u64, pps: u64, seconds: u64, drawn: bool) -> u64 {
        let times = (0..pps * seconds).map(|number| from_ns + number * SECOND_NS / pps);
        let drops = times.filter(|&at_ns| police.drops(u128::from(at_ns) << FRACTION_BITS, drawn));
        drops.count() as u64
    }

    #[test]
    fn up_to_its_rate_a_policer_drops_nothing_and_above_it_the_surplus() {
        for (pps, surplus) in [
            (900_000, 0),
            (1_000_000, 0),
            (1_250_000, 500_000),
            (2_000_000, 2_000_000),
        ] {
            // What comes at once on top is less than a frame in ten thousand here.
            let count = dropped(&mut police("police=1mpps:burst=100"), 7, pps, 2, false);
            assert!(
                (surplus.max(100) - 100..=surplus).contains(&count),
                "{pps}: {count}"
            );
        }
    }

    #[test]
    fn a_burst_passes_at_once_and_is_worked_off_at_the_rate() {
        let mut police = police("police=10kpps:burst=50");
        let mut at = |at_ns: u64, frames: usize| {
            let at = u128::from(at_ns) << FRACTION_BITS;
            (0..frames).filter(|_| police.drops(at, false)).count()
        };
        assert_eq!(at(0, 80), 30);
        // A millisecond works ten of them off.
        assert_eq!(at(1_000_000, 80), 70);
        assert_eq!(at(SECOND_NS, 51), 1);
    }

    #[test]
    fn without_a_burst_five_milliseconds_pass_at_once() {
        for (text, frames) in [("police=1mpps", 5000), ("police=1kpps", BURST_FRAMES_MIN)] {
            let mut police = police(text);
            let passed = (0..10_000).filter(|_| !police.drops(0, false)).count();
            assert_eq!(passed as u64, frames);
        }
    }

    #[test]
    fn loss_is_for_frames_of_an_overload_only() {
        let text = "loss=1%:loss_above=800kpps:burst=100";
        for (pps, lost) in [(100_000, 0), (800_000, 0), (900_000, 899_000)] {
            let count = dropped(&mut police(text), 0, pps, 1, true);
            // The first thousand of 900 kpps bring the hundred that may be above.
            assert!(count >= lost && count <= lost + 110, "{pps}: {count}");
        }
    }

    #[test]
    fn an_overload_ends_when_it_has_caught_up() {
        let mut police = police("loss=1%:loss_above=1kpps:burst=100");
        assert_eq!(dropped(&mut police, 0, 3000, 1, true), 3000 - 149);
        // At half the rate the hundred are worked off in a fifth of a second.
        assert_eq!(dropped(&mut police, SECOND_NS, 500, 1, true), 99);
        assert_eq!(dropped(&mut police, 2 * SECOND_NS, 1000, 1, true), 0);
    }

    #[test]
    fn a_loss_that_is_not_drawn_is_none() {
        assert_eq!(
            dropped(&mut police("loss=1%:loss_above=1kpps"), 0, 5000, 1, false),
            0
        );
        assert_eq!(dropped(&mut police("delay=1ms"), 0, 5000, 1, false), 0);
        assert_eq!(dropped(&mut police("loss=1%"), 0, 5000, 1, true), 5000);
    }

    #[test]
    fn settings_out_of_range_are_pulled_into_it() {
        let settings = LinkSettings {
            police_pps: Some(-3.0),
            burst_frames: Some(0),
            ..LinkSettings::default()
        };
        let mut police = Police::new(&settings);
        assert_eq!(dropped(&mut police, 0, 10, 3, false), 27);
    }
}
