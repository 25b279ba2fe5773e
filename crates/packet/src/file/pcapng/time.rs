//! The clock of an interface in a pcapng file: ticks of some unit to nanoseconds.

/// What a tick is, and from when ticks are counted. Microseconds from 1970 unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    ticks_per_second: u128,
    offset_s: i64,
}

const NANOSECONDS_PER_SECOND: u128 = 1_000_000_000;

impl Default for Clock {
    fn default() -> Self {
        Clock {
            ticks_per_second: 1_000_000,
            offset_s: 0,
        }
    }
}

impl Clock {
    /// Takes the value of `if_tsresol`: the top bit says base 2 instead of 10, the rest is the
    /// negated exponent. `None` when the tick is shorter than 128 bits can count.
    pub(crate) fn with_resolution(self, value: u8) -> Option<Clock> {
        let base: u128 = if value & 0x80 == 0 { 10 } else { 2 };
        let ticks_per_second = base.checked_pow(u32::from(value & 0x7f))?;
        Some(Clock {
            ticks_per_second,
            ..self
        })
    }

    /// Takes the value of `if_tsoffset`: seconds that are added to every time.
    pub(crate) fn with_offset_s(self, offset_s: i64) -> Clock {
        Clock { offset_s, ..self }
    }

    /// The time in nanoseconds; `None` when it is before 1970 or after 2554.
    pub(crate) fn time_ns(self, ticks: u64) -> Option<u64> {
        // 64 bits of ticks times 30 bits cannot overflow 128.
        let since = u128::from(ticks) * NANOSECONDS_PER_SECOND / self.ticks_per_second;
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let time = i128::try_from(since).ok()? + offset;
        u64::try_from(time).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_offsets() {
        let clock = Clock::default();
        assert_eq!(clock.time_ns(7), Some(7000));
        let time_ns = |value: u8, ticks| clock.with_resolution(value).unwrap().time_ns(ticks);
        assert_eq!(
            (time_ns(0, 3), time_ns(9, 3)),
            (Some(3_000_000_000), Some(3))
        );
        assert_eq!(
            (time_ns(12, 3999), time_ns(38, u64::MAX)),
            (Some(3), Some(0))
        );
        assert_eq!(
            (time_ns(0x81, 3), time_ns(0xff, 3)),
            (Some(1_500_000_000), Some(0))
        );
        assert_eq!(clock.with_resolution(39), None);
        assert_eq!(clock.with_offset_s(-1).time_ns(1_000_001), Some(1000));
    }

    #[test]
    fn what_no_64_bits_can_say() {
        let seconds = Clock::default().with_resolution(0).unwrap();
        assert_eq!(seconds.time_ns(u64::MAX), None);
        assert_eq!(seconds.with_offset_s(i64::MAX).time_ns(0), None);
        assert_eq!(seconds.with_offset_s(-1).time_ns(0), None);
        assert_eq!(seconds.with_offset_s(i64::MIN).time_ns(1), None);
    }
}
