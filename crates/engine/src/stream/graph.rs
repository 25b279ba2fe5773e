//! The rate of a profile over time, and its maximum, which the multiplier is measured by.
//!
//! Each stream adds its rate from its first packet to its last. A chain is followed until it
//! comes back to a stream that it has been through: later rounds repeat the first.

use super::spec::{Mode, StreamSpec};
use crate::time::{FCS_BYTES, LAYER1_OVERHEAD_BYTES, Nanos, SECOND};

/// A burst shorter than this is no load to speak of: it counts towards the maximum only where a
/// profile has nothing else (`reference/stl.md` §4).
pub const SHORT_BURST_PACKETS: u64 = 1000;

/// The highest rates that a profile reaches at a factor of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProfileRates {
    /// Packets per second.
    pub pps_max: f64,
    /// Bits per second at layer 2, with FCS.
    pub bps_l2_max: f64,
    /// Bits per second at layer 1, with FCS, preamble and inter-packet gap.
    pub bps_l1_max: f64,
}

/// One stream as the graph sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    pub(super) spec: &'a StreamSpec,
    pub(super) next: Option<usize>,
    /// At a factor of 1; zero for a dummy stream.
    pub(super) rate_pps: f64,
    /// How fast the stream's packets follow each other, also when it is a dummy.
    pub(super) pace_pps: f64,
    /// Mean frame size without FCS.
    pub(super) frame_bytes: f64,
}

/// The maximum over time of the sum of all streams.
pub(super) fn rates(loads: &[Load<'_>]) -> ProfileRates {
    let spans = spans(loads);
    let only_short = spans.iter().all(|span| span.short);
    let mut steps: Vec<(Nanos, f64, f64)> = Vec::with_capacity(2 * spans.len());
    for span in spans.iter().filter(|span| only_short || !span.short) {
        let load = &loads[span.load];
        let l2_bps = load.rate_pps * (load.frame_bytes + FCS_BYTES as f64) * 8.0;
        steps.push((span.from, load.rate_pps, l2_bps));
        if let Some(until) = span.until {
            steps.push((until, -load.rate_pps, -l2_bps));
        }
    }
    // At the same time, ends go before starts: a chain's streams do not add up.
    steps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    highest(&steps)
}

fn highest(steps: &[(Nanos, f64, f64)]) -> ProfileRates {
    let overhead_bits = LAYER1_OVERHEAD_BYTES as f64 * 8.0;
    let (mut pps, mut bps) = (0.0, 0.0);
    let mut rates = ProfileRates::default();
    for step in steps {
        pps += step.1;
        bps += step.2;
        rates.pps_max = rates.pps_max.max(pps);
        rates.bps_l2_max = rates.bps_l2_max.max(bps);
        rates.bps_l1_max = rates.bps_l1_max.max(bps + pps * overhead_bits);
    }
    rates
}

/// When one stream sends.
struct Span {
    load: usize,
    from: Nanos,
    until: Option<Nanos>,
    short: bool,
}

fn spans(loads: &[Load<'_>]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut seen_in = vec![usize::MAX; loads.len()];
    for start in (0..loads.len()).filter(|&i| loads[i].spec.self_start) {
        let mut at = Some((start, 0));
        while let Some((i, entered)) = at.filter(|&(i, _)| seen_in[i] != start) {
            seen_in[i] = start;
            let span = span(i, &loads[i], entered);
            at = loads[i].next.zip(span.until);
            if loads[i].rate_pps > 0.0 {
                spans.push(span);
            }
        }
    }
    spans
}

fn span(load: usize, stream: &Load<'_>, entered: Nanos) -> Span {
    let from = entered.saturating_add(stream.spec.start_delay);
    let lasts = |packets: u64| (packets as f64 * SECOND as f64 / stream.pace_pps) as Nanos;
    let (packets, length) = match stream.spec.mode {
        Mode::Continuous => {
            let (until, short) = (None, false);
            return Span {
                load,
                from,
                until,
                short,
            };
        }
        Mode::SingleBurst { packets } => (packets, lasts(packets)),
        Mode::MultiBurst {
            packets_per_burst,
            gap,
            bursts,
        } => {
            let burst = lasts(packets_per_burst).saturating_add(gap);
            (packets_per_burst, burst.saturating_mul(bursts))
        }
    };
    let until = Some(from.saturating_add(length));
    Span {
        load,
        from,
        until,
        short: packets < SHORT_BURST_PACKETS,
    }
}
