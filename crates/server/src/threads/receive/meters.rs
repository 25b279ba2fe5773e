//! Latency: the meters of the groups whose packets carry the time at which they were sent; which of
//! them a frame belongs to, and when it is made anew.

use std::sync::Arc;

use allosaur_engine::flow_stats::{Group, LATENCY_GROUPS};
use allosaur_engine::latency::{Meter, Trailer};
use allosaur_engine::time::Nanos;

use crate::counters::{LatencyErrors, LatencyTerms, ReceiveBlock};
use crate::threads::awake::AwakePolicy;
use crate::threads::clock::Clock;

/// The meters of all groups whose latency is measured, over all ports.
#[derive(Debug)]
pub(super) struct Meters {
    meters: Vec<(LatencyTerms, Meter)>,
    /// A bit for each meter that has measured since it was last published.
    changed: u128,
    errors: LatencyErrors,
    awake: AwakePolicy,
    block: Arc<ReceiveBlock>,
    clock: Clock,
}

const _: () = assert!(LATENCY_GROUPS as u32 <= u128::BITS);

impl Meters {
    pub(super) fn new(block: Arc<ReceiveBlock>, clock: Clock) -> Meters {
        let meters = usize::from(LATENCY_GROUPS);
        Meters {
            meters: vec![(LatencyTerms::default(), Meter::default()); meters],
            changed: 0,
            errors: LatencyErrors::default(),
            awake: AwakePolicy::new(Arc::clone(&block)),
            block,
            clock,
        }
    }

    /// The time.
    pub(super) fn now_ns(&self) -> Nanos {
        self.clock.now_ns()
    }

    /// Measures a frame with the sign of latency; its group, if it belongs to one.
    pub(super) fn measure(&mut self, frame: &[u8]) -> Option<Group> {
        // The time of the turn would be too early: frames arrive while it lasts.
        self.measure_at(self.clock.now_ns(), frame)
    }

    /// The same for a frame that arrived at `now`.
    pub(super) fn measure_at(&mut self, now: Nanos, frame: &[u8]) -> Option<Group> {
        let Some((trailer, group)) = read(frame) else {
            self.errors.bad_header += 1;
            return None;
        };
        let terms = self.block.latency_terms(trailer.group);
        if terms.version == 0 || terms.run != trailer.run {
            self.errors.old_flow += 1;
            return None;
        }
        let (known, meter) = &mut self.meters[usize::from(trailer.group)];
        if known.version != terms.version {
            self.block.forget_latency(trailer.group, meter.stats());
            *meter = Meter::default();
        } else if known.run != terms.run {
            meter.restart();
        }
        *known = terms;
        self.awake.note(now);
        if let Some(latency_ns) = meter.record(now, trailer.sequence, trailer.sent_ns) {
            self.block.count_latency(trailer.group, latency_ns);
        }
        self.changed |= 1 << trailer.group;
        Some(group)
    }

    /// Whether frames to measure are likely soon.
    pub(super) fn expect_more(&mut self, now: Nanos) -> bool {
        self.awake.expect_more(now)
    }

    pub(super) fn publish(&mut self) {
        while self.changed != 0 {
            let n = self.changed.trailing_zeros() as u16;
            self.changed &= self.changed - 1;
            let (terms, meter) = &self.meters[usize::from(n)];
            self.block.publish_latency(n, terms.version, meter.stats());
        }
        self.block.publish_latency_errors(self.errors);
    }
}

fn read(frame: &[u8]) -> Option<(Trailer, Group)> {
    let trailer = Trailer::parse(frame)?;
    Some((trailer, Group::latency(trailer.group)?))
}

#[cfg(test)]
mod tests {
    use allosaur_engine::latency::TRAILER_BYTES;

    use super::*;
    use crate::counters::{Counters, GroupReadout};
    use crate::threads::awake::MEASURING;

    fn frame(group: u16, run: u8, sequence: u32, sent_ns: Nanos) -> [u8; TRAILER_BYTES] {
        let mut frame = [0; TRAILER_BYTES];
        let trailer = Trailer {
            run,
            group,
            sequence,
            sent_ns,
        };
        trailer.write(&mut frame);
        frame
    }

    fn meters() -> (Counters, Meters) {
        let counters = Counters::new(1, 1);
        let meters = Meters::new(Arc::clone(&counters.receive), Clock::start());
        (counters, meters)
    }

    #[test]
    fn frames_are_expected_from_the_announcement_on_for_a_while() {
        let (counters, mut meters) = meters();
        assert!(!meters.expect_more(5));
        for at in [10, 7 * MEASURING] {
            let terms = LatencyTerms { version: 1, run: 1 };
            counters.receive.expect_latency(3, terms);
            assert!(meters.expect_more(at) && meters.expect_more(at + MEASURING - 1));
            assert!(!meters.expect_more(at + MEASURING));
        }
    }

    #[test]
    fn a_group_that_is_made_anew_shows_nothing_of_the_last_one() {
        let (counters, mut meters) = meters();
        for (version, packets) in [(1, 5), (2, 2)] {
            let terms = LatencyTerms { version, run: 9 };
            counters.receive.expect_latency(3, terms);
            for sequence in 0..packets {
                assert_eq!(meters.measure(&frame(3, 9, sequence, 0)), Group::latency(3));
            }
            meters.publish();
            let stats = counters.latency(3, version).expect("it is published");
            let times = counters.latency_times(3, version, &stats);
            let counted = times.map(|times| times.packets());
            assert_eq!(
                (stats.packets, counted),
                (packets.into(), Some(packets.into()))
            );
        }
    }

    #[test]
    fn a_frame_from_the_future_is_counted_and_is_no_time_of_zero() {
        let (counters, mut meters) = meters();
        let terms = LatencyTerms { version: 1, run: 9 };
        counters.receive.expect_latency(3, terms);
        for (sequence, sent_ns) in [(0, 1_001), (1, 700)] {
            let measured = meters.measure_at(1_000, &frame(3, 9, sequence, sent_ns));
            assert_eq!(measured, Group::latency(3), "it belongs to its group");
        }
        meters.publish();
        let stats = counters.latency(3, 1).expect("it is published");
        let times = counters.latency_times(3, 1, &stats).expect("it is");
        assert_eq!((stats.packets, stats.impossible_times), (1, 1));
        assert_eq!((stats.min_ns, times.times()), (300, &[(300, 1)][..]));
        assert_eq!((stats.dropped, counters.latency_errors().old_flow), (0, 0));
    }

    #[test]
    fn frames_of_another_run_and_without_a_group_are_errors() {
        let (counters, mut meters) = meters();
        let terms = LatencyTerms { version: 1, run: 9 };
        counters.receive.expect_latency(3, terms);
        for (group, run) in [(3, 8), (4, 9), (LATENCY_GROUPS, 9)] {
            assert_eq!(meters.measure(&frame(group, run, 0, 0)), None);
        }
        assert_eq!(meters.measure(&[0; TRAILER_BYTES]), None);
        meters.publish();
        let errors = LatencyErrors {
            old_flow: 2,
            bad_header: 2,
        };
        assert_eq!(counters.latency_errors(), errors);
    }
}
