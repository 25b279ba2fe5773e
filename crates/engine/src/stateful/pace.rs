//! How fast flows begin: a rate, evenly, or rising evenly to it.

use crate::time::{Due, Gap, Nanos, SECOND};

/// Until when a rate rises to its height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ramp {
    pub(super) start_at: Nanos,
    pub(super) span: Nanos,
}

impl Ramp {
    /// The ramp of a profile, if it has one.
    pub(super) fn new(rampup_s: Option<u32>, start_at: Nanos) -> Option<Ramp> {
        rampup_s.map(|seconds| Ramp {
            start_at,
            span: Nanos::from(seconds) * SECOND,
        })
    }

    fn end_at(self) -> Nanos {
        self.start_at.saturating_add(self.span)
    }
}

/// The pace of flows that begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate_cps: f64,
    gap: Gap,
    ramp: Option<Ramp>,
}

impl Pace {
    pub(super) fn new(rate_cps: f64, ramp: Option<Ramp>) -> Pace {
        Pace {
            rate_cps,
            gap: Gap::from_pps(rate_cps),
            ramp,
        }
    }

    /// The same way up, to another height.
    pub(super) fn at_rate(self, rate_cps: f64) -> Pace {
        Pace::new(rate_cps, self.ramp)
    }

    /// When the flow after that of `due` is due.
    #[inline]
    pub(super) fn next(&self, due: Due) -> Due {
        match self.ramp {
            Some(ramp) if due.at < ramp.end_at() => self.after(due.at, 1.0),
            _ => due.after(self.gap),
        }
    }

    /// When `flows` flows have begun since `from`, a part of a flow too.
    pub(super) fn after(&self, from: Nanos, flows: f64) -> Due {
        let Some(ramp) = self.ramp.filter(|ramp| from < ramp.end_at()) else {
            return Due::at(from).after(self.gap.scaled(flows));
        };
        let begun = self.begun(ramp, from) + flows;
        let at_the_end = self.begun(ramp, ramp.end_at());
        if begun >= at_the_end {
            let rest = self.gap.scaled(begun - at_the_end);
            return Due::at(ramp.end_at()).after(rest);
        }
        // The number of flows is the area below the rate, a triangle.
        let span_s = ramp.span as f64 / SECOND as f64;
        let passed_s = (2.0 * begun * span_s / self.rate_cps).sqrt();
        Due::at(ramp.start_at).after(Gap::from_nanos(passed_s * SECOND as f64))
    }

    /// How many flows begin between two times.
    pub(super) fn flows_between(&self, from: Nanos, to: Nanos) -> f64 {
        let rate_per_ns = self.rate_cps / SECOND as f64;
        match self.ramp.filter(|ramp| from < ramp.end_at()) {
            Some(ramp) => self.begun(ramp, to) - self.begun(ramp, from),
            None => to.saturating_sub(from) as f64 * rate_per_ns,
        }
    }

    /// How many flows have begun since the start of a ramp.
    fn begun(&self, ramp: Ramp, at: Nanos) -> f64 {
        let passed = at.saturating_sub(ramp.start_at);
        let rising_s = passed.min(ramp.span) as f64 / SECOND as f64;
        let level_s = passed.saturating_sub(ramp.span) as f64 / SECOND as f64;
        let span_s = ramp.span as f64 / SECOND as f64;
        self.rate_cps * (rising_s * rising_s / (2.0 * span_s) + level_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(rate_cps: f64) -> Pace {
        Pace::new(rate_cps, Ramp::new(Some(10), 5 * SECOND))
    }

    #[test]
    fn half_of_the_flows_begin_while_the_rate_rises() {
        let pace = rising(100.0);
        let mut due = pace.after(5 * SECOND, 0.0);
        let mut begun = 0;
        while due.at < 15 * SECOND {
            begun += 1;
            due = pace.next(due);
        }
        assert!((499..=501).contains(&begun), "{begun}");
        // From then on it is even.
        let next = pace.next(due);
        assert!((next.at - due.at).abs_diff(SECOND / 100) <= 1);
        assert!((pace.flows_between(5 * SECOND, 15 * SECOND) - 500.0).abs() < 1e-6);
        assert!((pace.flows_between(10 * SECOND, 20 * SECOND) - 875.0).abs() < 1e-6);
        assert!((pace.flows_between(20 * SECOND, 30 * SECOND) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn slow_rates_rise_too() {
        // The first flow is due when the area is one, even after the ramp.
        let pace = rising(0.1);
        let first = pace.after(5 * SECOND, 1.0);
        assert_eq!(first.at, 20 * SECOND);
    }

    #[test]
    fn times_and_numbers_of_flows_go_together() {
        for pace in [rising(50.0), Pace::new(50.0, None)] {
            for from in [5, 6, 14, 15, 16].map(|second| second * SECOND) {
                for flows in [0.25, 1.0, 17.5, 600.0] {
                    let due = pace.after(from, flows);
                    let counted = pace.flows_between(from, due.at);
                    assert!((counted - flows).abs() < 1e-3, "{from} {flows} {counted}");
                }
            }
        }
    }
}
