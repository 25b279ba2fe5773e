//! How long the flows of clients took: as distributions, from which percentiles are read.
//!
//! Slots are log-linear: of each power of two 16, so that a time in one is known to 6 %, and in the
//! middle of it to 3 %. They stop at a good four minutes; what is longer is in the last one, but
//! counts as it is in average and maximum.

use super::begin_time::UNIT_SHIFT;

/// Slots of each power of two.
const PER_OCTAVE: usize = 1 << PER_OCTAVE_BITS;
const PER_OCTAVE_BITS: u32 = 4;
/// The longest time that has a slot of its own, in units of 1,024 ns, is shorter than this.
const UNITS_MAX: u64 = 1 << 28;
const SLOTS: usize = (UNITS_MAX.ilog2() - PER_OCTAVE_BITS + 1) as usize * PER_OCTAVE;
/// Slots that are published together.
const PER_PART: usize = 8;
const PARTS: usize = SLOTS.div_ceil(PER_PART);
const _: () = assert!(PARTS <= u64::BITS as usize && SLOTS % PER_PART == 0);

/// Of a distribution, what is no slot: count, sum, shortest, longest.
const HEAD: usize = 4;
/// The numbers of one distribution.
const WORDS: usize = HEAD + SLOTS;

/// Times, sorted into slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeHistogram {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    slots: [u64; SLOTS],
    /// Parts that have changed since they were last published, one bit each.
    changed: u64,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        TimeHistogram {
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            slots: [0; SLOTS],
            changed: 0,
        }
    }
}

/// The slot of a time.
fn slot_of(units: u64) -> usize {
    let units = units.min(UNITS_MAX - 1);
    if units < PER_OCTAVE as u64 {
        return units as usize;
    }
    let shift = units.ilog2() - PER_OCTAVE_BITS;
    shift as usize * PER_OCTAVE + (units >> shift) as usize
}

/// Where a slot begins, and how wide it is.
fn bounds(slot: usize) -> (u64, u64) {
    if slot < PER_OCTAVE {
        return (slot as u64, 1);
    }
    let shift = slot / PER_OCTAVE - 1;
    let first = (slot % PER_OCTAVE + PER_OCTAVE) as u64;
    (first << shift, 1 << shift)
}

fn seconds(units: f64) -> f64 {
    units * f64::from(1 << UNIT_SHIFT) / 1e9
}

impl TimeHistogram {
    /// Counts a time, in units of 1,024 ns.
    #[inline]
    pub(super) fn count(&mut self, units: u64) {
        let slot = slot_of(units);
        self.count += 1;
        self.sum += units;
        self.min = self.min.min(units);
        self.max = self.max.max(units);
        self.slots[slot] += 1;
        self.changed |= 1 << (slot / PER_PART);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.count
    }

    /// Their sum, in seconds.
    pub fn sum_s(&self) -> f64 {
        seconds(self.sum as f64)
    }

    /// The shortest, in seconds; 0 when there is none.
    pub fn min_s(&self) -> f64 {
        match self.count {
            0 => 0.0,
            _ => seconds(self.min as f64),
        }
    }

    /// The longest, in seconds.
    pub fn max_s(&self) -> f64 {
        seconds(self.max as f64)
    }

    /// The time that a share of them, 0 to 1, did not exceed, in seconds; 0 when there is none.
    pub fn quantile_s(&self, share: f64) -> f64 {
        let rank = share * self.count as f64;
        let mut before = 0;
        for (slot, count) in self.slots.iter().enumerate() {
            if *count > 0 && (before + count) as f64 >= rank {
                let (first, width) = bounds(slot);
                // As if those in a slot lay there in equal distances.
                let part = ((rank - before as f64) / *count as f64).clamp(0.0, 1.0);
                let units = first as f64 + part * width as f64;
                // Who reads while they are published may see the first of both without the other.
                return seconds(units.max(self.min as f64).min(self.max as f64));
            }
            before += count;
        }
        self.max_s()
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &TimeHistogram) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.slots.iter_mut().zip(other.slots) {
            *mine += theirs;
        }
        self.changed |= other.changed;
    }

    /// Its numbers that have changed since this was last asked, by their places.
    fn take_changes(&mut self, mut each: impl FnMut(usize, u64)) {
        let mut changed = std::mem::take(&mut self.changed);
        if changed == 0 {
            return;
        }
        let head = [self.count, self.sum, self.min, self.max];
        head.into_iter()
            .enumerate()
            .for_each(|(place, word)| each(place, word));
        while changed != 0 {
            let first = changed.trailing_zeros() as usize * PER_PART;
            let slots = &self.slots[first..first + PER_PART];
            for (slot, count) in slots.iter().enumerate() {
                each(HEAD + first + slot, *count);
            }
            changed &= changed - 1;
        }
    }

    /// From all its numbers.
    fn from_words(word: impl Fn(usize) -> u64) -> TimeHistogram {
        let mut made = TimeHistogram {
            count: word(0),
            sum: word(1),
            min: word(2),
            max: word(3),
            slots: std::array::from_fn(|slot| word(HEAD + slot)),
            changed: 0,
        };
        if made.count == 0 {
            // Nothing was published yet.
            made.min = u64::MAX;
        }
        made
    }
}

/// The times of the flows that clients of a run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTimes {
    /// TCP: from the SYN to the connection.
    pub connect: TimeHistogram,
    /// From the beginning to the first byte or message that came.
    pub first_byte: TimeHistogram,
    /// From the beginning to the end of the program, of flows that completed.
    pub program: TimeHistogram,
    /// From the first to the last of the handshake that secures the connection, such as TLS.
    pub handshake: TimeHistogram,
    /// From a request to the first byte of its response, where the application knows requests.
    pub response_begin: TimeHistogram,
    /// The same to the last byte.
    pub response: TimeHistogram,
}

impl FlowTimes {
    /// The names of the distributions, in the order of [`all`](FlowTimes::all).
    pub const NAMES: [&'static str; 6] = [
        "connect",
        "first_byte",
        "program",
        "handshake",
        "response_begin",
        "response",
    ];
    /// How many numbers there are.
    pub const WORDS: usize = Self::NAMES.len() * WORDS;

    /// The distributions.
    pub fn all(&self) -> [&TimeHistogram; Self::NAMES.len()] {
        [
            &self.connect,
            &self.first_byte,
            &self.program,
            &self.handshake,
            &self.response_begin,
            &self.response,
        ]
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &FlowTimes) {
        self.connect.add(&other.connect);
        self.first_byte.add(&other.first_byte);
        self.program.add(&other.program);
        self.handshake.add(&other.handshake);
        self.response_begin.add(&other.response_begin);
        self.response.add(&other.response);
    }

    /// Tells `each` the numbers that have changed since the last time, with their places: most do not.
    pub fn take_changes(&mut self, mut each: impl FnMut(usize, u64)) {
        let all = [
            &mut self.connect,
            &mut self.first_byte,
            &mut self.program,
            &mut self.handshake,
            &mut self.response_begin,
            &mut self.response,
        ];
        for (number, times) in all.into_iter().enumerate() {
            times.take_changes(|place, word| each(number * WORDS + place, word));
        }
    }

    /// From its numbers by their places, see [`take_changes`](FlowTimes::take_changes).
    pub fn from_words(word: impl Fn(usize) -> u64) -> FlowTimes {
        let of = |number: usize| TimeHistogram::from_words(|place| word(number * WORDS + place));
        FlowTimes {
            connect: of(0),
            first_byte: of(1),
            program: of(2),
            handshake: of(3),
            response_begin: of(4),
            response: of(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_follow_each_other_without_a_gap() {
        let mut end = 0;
        for slot in 0..SLOTS {
            let (first, width) = bounds(slot);
            assert_eq!(first, end, "slot {slot}");
            assert_eq!((slot_of(first), slot_of(first + width - 1)), (slot, slot));
            end = first + width;
        }
        assert_eq!(end, UNITS_MAX);
        assert_eq!(slot_of(u64::MAX), SLOTS - 1);
    }

    #[test]
    fn nothing_counted_is_all_zero() {
        let none = TimeHistogram::default();
        let told = [
            none.sum_s(),
            none.min_s(),
            none.max_s(),
            none.quantile_s(0.5),
        ];
        assert_eq!(told, [0.0; 4]);
        assert_eq!(FlowTimes::from_words(|_| 0), FlowTimes::default());
    }

    proptest! {
        #[test]
        fn percentiles_are_right_within_a_few_percent(
            mut times in prop::collection::vec(1_u64..50_000_000, 1..300),
            share in 0.01_f64..1.0,
        ) {
            let mut counted = TimeHistogram::default();
            times.iter().for_each(|units| counted.count(*units));
            times.sort_unstable();
            let rank = (share * times.len() as f64).ceil().max(1.0) as usize;
            let right = seconds(times[rank - 1] as f64);
            let told = counted.quantile_s(share);
            prop_assert!((told - right).abs() <= right * 0.0626 + seconds(1.0), "{told} for {right}");
        }

        #[test]
        fn changes_are_all_that_must_be_told(
            rounds in prop::collection::vec(prop::collection::vec(0_u64..1_u64 << 40, 0..20), 1..6),
        ) {
            let mut words = vec![0; FlowTimes::WORDS];
            let mut times = FlowTimes::default();
            for round in rounds {
                for (n, units) in round.into_iter().enumerate() {
                    let all = [&mut times.connect, &mut times.first_byte, &mut times.program];
                    all.into_iter().nth(n % 3).expect("one of three").count(units);
                }
                times.take_changes(|place, word| words[place] = word);
                times.take_changes(|_, _| panic!("nothing changed since"));
                let told = FlowTimes::from_words(|place| words[place]);
                prop_assert_eq!(&told, &times);
            }
        }
    }
}
