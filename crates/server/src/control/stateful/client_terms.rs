//! What is told of clients, for all profiles.

use allosaur_api::commands::stateful::clients::Clients;

/// What is told of clients, for all profiles.
#[derive(Debug, Default)]
pub(super) struct ClientTerms {
    /// Ranges of clients that begin no flows, in ascending order; none meets another.
    pub(super) disabled: Vec<(u32, u32)>,
    pub(super) macs: Vec<u64>,
    pub(super) addresses: Vec<u32>,
    /// Whom somebody has asked about.
    pub(super) asked: Option<Clients>,
}

impl ClientTerms {
    pub(super) fn is_disabled(&self, client: u32) -> bool {
        let mut ranges = self.disabled.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&client))
    }

    /// The disabled ranges with one more, or without one.
    pub(super) fn with(&self, first: u32, last: u32, disabled: bool) -> Vec<(u32, u32)> {
        let mut ranges = Vec::with_capacity(self.disabled.len() + 2);
        for &(a, b) in &self.disabled {
            if b < first || a > last {
                ranges.push((a, b));
                continue;
            }
            if a < first {
                ranges.push((a, first - 1));
            }
            if b > last {
                ranges.push((last + 1, b));
            }
        }
        if disabled {
            ranges.push((first, last));
        }
        ranges.sort_unstable();
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_where_clients_are_enabled_again() {
        let mut terms = ClientTerms::default();
        for (first, last, disabled) in [(10, 20, true), (30, 40, true), (15, 32, false)] {
            terms.disabled = terms.with(first, last, disabled);
        }
        assert_eq!(terms.disabled, [(10, 14), (33, 40)]);
        terms.disabled = terms.with(0, u32::MAX, true);
        assert_eq!(terms.disabled, [(0, u32::MAX)]);
        assert!(terms.is_disabled(7));
        terms.disabled = terms.with(0, u32::MAX, false);
        assert!(!terms.is_disabled(7));
    }
}
