//! Times, jitter, loss and order of the packets of one group.

use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// The highest of the last full and of the current one of such windows is the last maximum.
const WINDOW: Nanos = 500 * MILLISECOND;
/// Packets that are remembered behind the newest, to tell one that is late from one that is there
/// twice; any that is older counts as late.
const REMEMBERED: u32 = 1024;
/// Buckets of the histogram: below 10 µs, nine for each power of ten up to 10 s, and above.
pub const BUCKETS: usize = 1 + 9 * 6 + 1;

/// What was measured of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyStats {
    /// Packets whose times were measured.
    pub packets: u64,
    /// The sum of their times on the way.
    pub sum_ns: u64,
    /// The lowest time.
    pub min_ns: Nanos,
    /// The highest.
    pub max_ns: Nanos,
    /// The highest of the last half to whole second with packets.
    pub last_max_ns: Nanos,
    /// The jitter (RFC 3550, section 6.4.1).
    pub jitter_ns: Nanos,
    /// Packets that are missing.
    pub dropped: u64,
    /// Packets that came after a later one.
    pub out_of_order: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Times that a number was higher than expected.
    pub sequence_too_high: u64,
    /// Times that it was lower.
    pub sequence_too_low: u64,
    /// Packets that arrived before they were sent, by the clocks: their times are in no other number.
    pub impossible_times: u64,
    /// Packets by time, see [`bucket_usec`].
    pub histogram: [u64; BUCKETS],
}

impl Default for LatencyStats {
    fn default() -> Self {
        LatencyStats {
            packets: 0,
            sum_ns: 0,
            min_ns: 0,
            max_ns: 0,
            last_max_ns: 0,
            jitter_ns: 0,
            dropped: 0,
            out_of_order: 0,
            duplicates: 0,
            sequence_too_high: 0,
            sequence_too_low: 0,
            impossible_times: 0,
            histogram: [0; BUCKETS],
        }
    }
}

/// The numbers of [`LatencyStats`], so that threads can share them.
pub const WORDS: usize = SUMS + BUCKETS;
/// Those in front of the histogram.
const SUMS: usize = 12;

impl LatencyStats {
    /// All numbers in order.
    pub fn to_words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..SUMS].copy_from_slice(&[
            self.packets,
            self.sum_ns,
            self.min_ns,
            self.max_ns,
            self.last_max_ns,
            self.jitter_ns,
            self.dropped,
            self.out_of_order,
            self.duplicates,
            self.sequence_too_high,
            self.sequence_too_low,
            self.impossible_times,
        ]);
        words[SUMS..].copy_from_slice(&self.histogram);
        words
    }

    /// From all numbers in order.
    pub fn from_words(words: &[u64; WORDS]) -> LatencyStats {
        let mut histogram = [0; BUCKETS];
        histogram.copy_from_slice(&words[SUMS..]);
        LatencyStats {
            packets: words[0],
            sum_ns: words[1],
            min_ns: words[2],
            max_ns: words[3],
            last_max_ns: words[4],
            jitter_ns: words[5],
            dropped: words[6],
            out_of_order: words[7],
            duplicates: words[8],
            sequence_too_high: words[9],
            sequence_too_low: words[10],
            impossible_times: words[11],
            histogram,
        }
    }
}

/// The lower bound of a bucket of the histogram, in microseconds: 0, then 10 to 90, 100 to 900 and
/// so on.
pub fn bucket_usec(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => 0,
        Some(n) => (n as u64 % 9 + 1) * 10_u64.pow(n as u32 / 9 + 1),
    }
}

fn bucket(usec: u64) -> usize {
    if usec < 10 {
        return 0;
    }
    let power = usec.ilog10();
    let digit = usec / 10_u64.pow(power);
    ((power as usize - 1) * 9 + digit as usize).min(BUCKETS - 1)
}

/// Measures one group.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    stats: LatencyStats,
    /// The number after the highest seen.
    expected: u32,
    /// A bit for each number before `expected`, by its remainder: whether it came.
    seen: [u64; (REMEMBERED / 64) as usize],
    last_ns: Option<Nanos>,
    jitter_ns: f64,
    window_start: Nanos,
    window_max: Nanos,
    window_before: Nanos,
}

impl Meter {
    /// A new run begins: numbers start at zero again. What was measured stays.
    pub fn restart(&mut self) {
        self.expected = 0;
        self.seen = Default::default();
        self.last_ns = None;
    }

    /// What was measured.
    pub fn stats(&self) -> &LatencyStats {
        &self.stats
    }

    /// Takes note of packet `sequence` of the run, which was sent at `sent_ns` and arrived at
    /// `arrived_ns`. Returns its time on the way; none is below zero, so one that would be is counted
    /// apart, and is no time.
    pub fn record(&mut self, arrived_ns: Nanos, sequence: u32, sent_ns: Nanos) -> Option<Nanos> {
        self.note_order(sequence);
        let Some(latency_ns) = arrived_ns.checked_sub(sent_ns) else {
            self.stats.impossible_times += 1;
            return None;
        };
        self.note_time(arrived_ns, latency_ns);
        Some(latency_ns)
    }

    fn note_order(&mut self, sequence: u32) {
        let ahead = sequence.wrapping_sub(self.expected);
        if ahead <= i32::MAX as u32 {
            if ahead > 0 {
                self.stats.dropped += u64::from(ahead);
                self.stats.sequence_too_high += 1;
            }
            self.forget(ahead);
            self.expected = sequence.wrapping_add(1);
            self.remember(sequence);
            return;
        }
        self.stats.sequence_too_low += 1;
        let behind = self.expected.wrapping_sub(sequence);
        if behind <= REMEMBERED && self.has_come(sequence) {
            self.stats.duplicates += 1;
            return;
        }
        // It was counted as missing when a later one came.
        self.stats.out_of_order += 1;
        self.stats.dropped = self.stats.dropped.saturating_sub(1);
        if behind <= REMEMBERED {
            self.remember(sequence);
        }
    }

    /// The `skipped` numbers from the expected one on have not come.
    fn forget(&mut self, skipped: u32) {
        if skipped >= REMEMBERED {
            self.seen = Default::default();
            return;
        }
        for n in 0..skipped {
            let (word, bit) = place(self.expected.wrapping_add(n));
            self.seen[word] &= !bit;
        }
    }

    fn remember(&mut self, sequence: u32) {
        let (word, bit) = place(sequence);
        self.seen[word] |= bit;
    }

    fn has_come(&self, sequence: u32) -> bool {
        let (word, bit) = place(sequence);
        self.seen[word] & bit != 0
    }

    fn note_time(&mut self, now: Nanos, latency_ns: Nanos) {
        let stats = &mut self.stats;
        stats.min_ns = if stats.packets == 0 {
            latency_ns
        } else {
            stats.min_ns.min(latency_ns)
        };
        stats.max_ns = stats.max_ns.max(latency_ns);
        stats.packets += 1;
        stats.sum_ns = stats.sum_ns.saturating_add(latency_ns);
        stats.histogram[bucket(latency_ns / MICROSECOND)] += 1;
        if let Some(last_ns) = self.last_ns.replace(latency_ns) {
            let difference = latency_ns.abs_diff(last_ns) as f64;
            self.jitter_ns += (difference - self.jitter_ns) / 16.0;
            stats.jitter_ns = self.jitter_ns as Nanos;
        }
        let elapsed = now.saturating_sub(self.window_start);
        if elapsed >= WINDOW {
            self.window_before = if elapsed < 2 * WINDOW {
                self.window_max
            } else {
                0
            };
            self.window_start = now;
            self.window_max = 0;
        }
        self.window_max = self.window_max.max(latency_ns);
        stats.last_max_ns = self.window_max.max(self.window_before);
    }
}

fn place(sequence: u32) -> (usize, u64) {
    let n = sequence % REMEMBERED;
    ((n / 64) as usize, 1 << (n % 64))
}
