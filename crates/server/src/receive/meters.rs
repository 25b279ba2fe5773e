//! Latency: the meters of the groups whose packets carry the time at which they were sent.
//!
//! What lives here: which meter a frame belongs to, and when it is made anew. What does not: what
//! a meter computes (`allosaur_engine::latency`).

use std::sync::Arc;

use allosaur_engine::flow_stats::{Group, LATENCY_GROUPS};
use allosaur_engine::latency::{Meter, Trailer};
use allosaur_engine::time::{Nanos, SECOND};

use crate::clock::Clock;
use crate::counters::{LatencyErrors, LatencyTerms, ReceiveBlock};

/// For so long after a frame whose latency was measured, or after control has said that there will
/// be some, the thread stays awake: a sleep would be measured with the next frame.
const MEASURING: Nanos = 2 * SECOND;

/// The meters of all groups whose latency is measured, over all ports.
#[derive(Debug)]
pub(super) struct Meters {
    meters: Vec<(LatencyTerms, Meter)>,
    /// A bit for each meter that has measured since it was last published.
    changed: u128,
    errors: LatencyErrors,
    /// When the last frame was measured, or announced.
    measured_at: Option<Nanos>,
    /// What control has announced up to now.
    expectations: u64,
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
            measured_at: None,
            expectations: 0,
            block,
            clock,
        }
    }

    /// Measures a frame with the sign of latency; its group, if it belongs to one.
    pub(super) fn measure(&mut self, frame: &[u8]) -> Option<Group> {
        // The time of the turn would be too early: frames arrive while it lasts.
        let now = self.clock.now_ns();
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
        self.measured_at = Some(now);
        let latency_ns = now.saturating_sub(trailer.sent_ns);
        meter.record(now, trailer.sequence, latency_ns);
        self.block.count_latency(trailer.group, latency_ns);
        self.changed |= 1 << trailer.group;
        Some(group)
    }

    /// Whether frames to measure are likely soon.
    pub(super) fn expect_more(&mut self, now: Nanos) -> bool {
        let expectations = self.block.expectations();
        if self.expectations != expectations {
            self.expectations = expectations;
            self.measured_at = Some(now);
        }
        let last = self.measured_at;
        last.is_some_and(|at| now.saturating_sub(at) < MEASURING)
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
