//! Ranges of sequence numbers, in order and apart from each other.

use super::seq::Seq;

/// Ranges from a first byte to the byte after the last, in order; between two there is a hole.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: Vec<(Seq, Seq)>,
}

impl Ranges {
    /// Adds a range, joined with those that it touches. Returns how many bytes are new; `None`,
    /// and nothing is added, when it would be one range more than `ranges_max`.
    pub(super) fn insert(&mut self, from: Seq, to: Seq, ranges_max: usize) -> Option<u32> {
        // The ranges that end at `from` or later, and of those the ones that begin by `to`.
        let first = self.ranges.partition_point(|range| range.1.is_before(from));
        let touching = self.ranges[first..].partition_point(|range| !range.0.is_after(to));
        if touching == 0 {
            if self.ranges.len() >= ranges_max {
                return None;
            }
            self.ranges.insert(first, (from, to));
            return Some(from.until(to));
        }
        let touched = &self.ranges[first..first + touching];
        let known: u32 = touched.iter().map(|range| range.0.until(range.1)).sum();
        let (start, end) = (touched[0].0.min(from), touched[touching - 1].1.max(to));
        self.ranges[first] = (start, end);
        self.ranges.drain(first + 1..first + touching);
        Some(start.until(end) - known)
    }

    /// Takes what begins at `at` or before away, and says where it ends.
    pub(super) fn take_front(&mut self, at: Seq) -> Option<Seq> {
        let mut end = None;
        while let Some(front) = self.ranges.first().copied() {
            if front.0.is_after(end.unwrap_or(at)) {
                break;
            }
            end = Some(end.unwrap_or(at).max(front.1));
            self.ranges.remove(0);
        }
        end.filter(|end| end.is_after(at))
    }

    /// Forgets what lies before `at`.
    pub(super) fn trim(&mut self, at: Seq) {
        self.ranges.retain(|range| range.1.is_after(at));
        if let Some(front) = self.ranges.first_mut() {
            front.0 = front.0.max(at);
        }
    }

    /// The ranges in order.
    pub(super) fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.ranges
    }

    /// How many bytes they are together.
    pub(super) fn bytes(&self) -> u32 {
        let lengths = self.ranges.iter().map(|range| range.0.until(range.1));
        lengths.fold(0, u32::saturating_add)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The range that `at` lies in.
    pub(super) fn around(&self, at: Seq) -> Option<(Seq, Seq)> {
        let place = self.ranges.partition_point(|range| !range.1.is_after(at));
        let range = self.ranges.get(place).copied();
        range.filter(|range| !range.0.is_after(at))
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_bytes_is_the_same(
            base in any::<u32>(),
            pieces in prop::collection::vec((0u32..200, 1u32..20), 0..60),
            cut in 0u32..100,
        ) {
            let mut ranges = Ranges::default();
            let mut naive = [false; 256];
            for (from, len) in pieces {
                let new = naive[from as usize..(from + len) as usize].iter().filter(|known| !**known).count();
                naive[from as usize..(from + len) as usize].fill(true);
                let added = ranges.insert(Seq(base) + from, Seq(base) + from + len, 1000);
                prop_assert_eq!(added, Some(new as u32));
            }
            let check = |ranges: &Ranges, naive: &[bool]| {
                for (offset, known) in (0..).zip(naive) {
                    assert_eq!(ranges.around(Seq(base) + offset).is_some(), *known, "{offset}");
                }
                let apart = ranges.as_slice().windows(2);
                apart.for_each(|pair| assert!(pair[0].1.is_before(pair[1].0)));
            };
            check(&ranges, &naive);
            ranges.trim(Seq(base) + cut);
            naive[..cut as usize].fill(false);
            check(&ranges, &naive);
            let end = ranges.take_front(Seq(base) + cut);
            let run = naive[cut as usize..].iter().take_while(|known| **known).count();
            prop_assert_eq!(end, (run > 0).then(|| Seq(base) + cut + run as u32));
            naive[..cut as usize + run].fill(false);
            check(&ranges, &naive);
        }
    }

    #[test]
    fn one_range_too_many_is_refused() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(Seq(10), Seq(20), 1), Some(10));
        assert_eq!(ranges.insert(Seq(30), Seq(40), 1), None);
        assert_eq!(ranges.insert(Seq(20), Seq(25), 1), Some(5), "it only grows");
        assert_eq!(ranges.as_slice(), [(Seq(10), Seq(25))]);
    }
}
