//! The rate of a profile over time, and its maximum, which the multiplier is measured by.
//!
//! Each stream adds its rate from its first packet to its last. A chain is followed until it
//! comes back to a stream that it has been through: later rounds repeat the first. A chain of streams
//! whose delays the multiplier scales, as those of a capture, has one rate: its average.

use super::spec::{Shape, StreamId};
use crate::time::{FCS_BYTES, LAYER1_OVERHEAD_BYTES, Nanos, SECOND};

/// A burst shorter than this is no load to speak of: it counts towards the maximum only where a
/// profile has nothing else (`reference/stl.md` §4).
pub const SHORT_BURST_PACKETS: u64 = 1000;

/// The highest rates that a profile reaches, or how much they change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProfileRates {
    /// Packets per second.
    pub pps_max: f64,
    /// Bits per second at layer 2, with FCS.
    pub bps_l2_max: f64,
    /// Bits per second at layer 1, with FCS, preamble and inter-packet gap.
    pub bps_l1_max: f64,
}

/// How the rate of a profile goes over time, at a factor of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct RateGraph {
    /// When the last packet is sent; `None` when the profile does not end by itself.
    pub duration: Option<Nanos>,
    /// Each begin and end of a stream, in the order of time.
    pub events: Vec<RateEvent>,
}

/// A stream begins or ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEvent {
    /// When, from the start.
    pub at: Nanos,
    /// Which stream.
    pub stream: StreamId,
    /// How much the profile's rate changes; less than zero at an end.
    pub change: ProfileRates,
}

/// One stream as the graph sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) id: StreamId,
    pub(super) self_start: bool,
    pub(super) start_delay: Nanos,
    /// The factor scales the delay.
    pub(super) scales_delay: bool,
    pub(super) shape: Shape,
    pub(super) next: Option<usize>,
    /// Zero for a dummy stream.
    pub(super) rate_pps: f64,
    /// How fast the stream's packets follow each other, also when it is a dummy.
    pub(super) pace_pps: f64,
    /// Mean frame size without FCS.
    pub(super) frame_bytes: f64,
}

impl Load {
    pub(super) fn rates(&self) -> ProfileRates {
        if self.scales_delay && self.rate_pps > 0.0 {
            if let Some(average) = average([self].into_iter()) {
                return average;
            }
        }
        self.rates_of(self.rate_pps)
    }

    fn rates_of(&self, pps: f64) -> ProfileRates {
        let l2_bits = (self.frame_bytes + FCS_BYTES as f64) * 8.0;
        let l1_bits = l2_bits + LAYER1_OVERHEAD_BYTES as f64 * 8.0;
        ProfileRates {
            pps_max: pps,
            bps_l2_max: pps * l2_bits,
            bps_l1_max: pps * l1_bits,
        }
    }

    /// Packets from the first to the last of the stream; `None` without end.
    fn packets(&self) -> Option<u64> {
        let Shape {
            packets_per_burst,
            bursts,
            ..
        } = self.shape;
        (packets_per_burst != u64::MAX).then(|| packets_per_burst.saturating_mul(bursts))
    }

    /// How long it takes from when it is entered to its last packet, in seconds; `None` without end.
    fn seconds(&self) -> Option<f64> {
        self.packets()?;
        let Shape {
            packets_per_burst,
            bursts,
            burst_gap,
        } = self.shape;
        let gaps = self.start_delay as f64 + (bursts - 1) as f64 * burst_gap as f64;
        let bursts_s = bursts as f64 * (packets_per_burst - 1) as f64 / self.pace_pps;
        Some(gaps / SECOND as f64 + bursts_s)
    }
}

/// The maximum over time of the sum of those streams that are `meant`.
pub(super) fn rates(loads: &[Load], meant: impl Fn(usize) -> bool) -> ProfileRates {
    let (spans, _) = spans(loads);
    let sends = |span: &Span| span.rates.pps_max > 0.0 && meant(span.load);
    let only_short = spans.iter().filter(|span| sends(span)).all(|s| s.short);
    let counts = |span: &Span| sends(span) && (only_short || !span.short);
    highest(&events(loads, &spans, counts))
}

/// The rate over time, short bursts included.
pub(super) fn graph(loads: &[Load]) -> RateGraph {
    let (spans, endless) = spans(loads);
    let mut ends = spans.iter().map(|span| span.until);
    let last = ends.try_fold(0, |last: Nanos, until| Some(last.max(until?)));
    RateGraph {
        duration: last.filter(|_| !endless),
        events: events(loads, &spans, |span| span.rates.pps_max > 0.0),
    }
}

fn events(loads: &[Load], spans: &[Span], counts: impl Fn(&Span) -> bool) -> Vec<RateEvent> {
    let mut events: Vec<RateEvent> = Vec::with_capacity(2 * spans.len());
    for span in spans.iter().filter(|span| counts(span)) {
        let (stream, rates) = (loads[span.load].id, span.rates);
        let event = |at, change| RateEvent { at, stream, change };
        events.push(event(span.from, rates));
        if let Some(until) = span.until {
            let change = ProfileRates {
                pps_max: -rates.pps_max,
                bps_l2_max: -rates.bps_l2_max,
                bps_l1_max: -rates.bps_l1_max,
            };
            events.push(event(until, change));
        }
    }
    // At the same time, ends go before starts: a chain's streams do not add up.
    let rate = |event: &RateEvent| event.change.pps_max;
    events.sort_by(|a, b| a.at.cmp(&b.at).then(rate(a).total_cmp(&rate(b))));
    events
}

fn highest(events: &[RateEvent]) -> ProfileRates {
    let (mut now, mut highest) = (ProfileRates::default(), ProfileRates::default());
    for RateEvent { change, .. } in events {
        now.pps_max += change.pps_max;
        now.bps_l2_max += change.bps_l2_max;
        now.bps_l1_max += change.bps_l1_max;
        highest.pps_max = highest.pps_max.max(now.pps_max);
        highest.bps_l2_max = highest.bps_l2_max.max(now.bps_l2_max);
        highest.bps_l1_max = highest.bps_l1_max.max(now.bps_l1_max);
    }
    highest
}

/// When one stream sends.
struct Span {
    load: usize,
    from: Nanos,
    until: Option<Nanos>,
    short: bool,
    rates: ProfileRates,
}

/// All spans of streams that send or take time, and whether a chain comes back to itself.
fn spans(loads: &[Load]) -> (Vec<Span>, bool) {
    let (mut spans, mut endless) = (Vec::new(), false);
    let mut seen_in = vec![usize::MAX; loads.len()];
    for start in (0..loads.len()).filter(|&i| loads[i].self_start) {
        let (first, mut at) = (spans.len(), Some((start, 0)));
        let mut comes_back = false;
        while let Some((i, entered)) = at {
            if seen_in[i] == start {
                comes_back = true;
                break;
            }
            seen_in[i] = start;
            let span = span(i, &loads[i], entered);
            at = loads[i].next.zip(span.until);
            spans.push(span);
        }
        endless |= comes_back;
        if let Some(whole) = averaged(loads, &spans[first..], comes_back) {
            spans.truncate(first);
            spans.push(whole);
        }
    }
    (spans, endless)
}

/// The spans of a chain as one of its average rate, if the delays of all its streams are scaled.
fn averaged(loads: &[Load], chain: &[Span], comes_back: bool) -> Option<Span> {
    let streams = || chain.iter().map(|span| &loads[span.load]);
    let rates = average(streams()).filter(|_| streams().all(|stream| stream.scales_delay))?;
    let (first, last) = (chain.first()?, chain.last()?);
    Some(Span {
        load: first.load,
        from: 0,
        until: last.until.filter(|_| !comes_back),
        short: false,
        rates,
    })
}

/// The average rate of streams that follow each other; `None` where there is none.
fn average<'a>(streams: impl Iterator<Item = &'a Load>) -> Option<ProfileRates> {
    let (mut sum, mut seconds) = (ProfileRates::default(), 0.0);
    for stream in streams {
        seconds += stream.seconds()?;
        if stream.rate_pps > 0.0 {
            let packets = stream.rates_of(stream.packets()? as f64);
            sum.pps_max += packets.pps_max;
            sum.bps_l2_max += packets.bps_l2_max;
            sum.bps_l1_max += packets.bps_l1_max;
        }
    }
    (seconds > 0.0).then(|| ProfileRates {
        pps_max: sum.pps_max / seconds,
        bps_l2_max: sum.bps_l2_max / seconds,
        bps_l1_max: sum.bps_l1_max / seconds,
    })
}

fn span(load: usize, stream: &Load, entered: Nanos) -> Span {
    let (from, rates) = (entered.saturating_add(stream.start_delay), stream.rates());
    let lasts = |packets: u64| (packets as f64 * SECOND as f64 / stream.pace_pps) as Nanos;
    let Shape {
        packets_per_burst,
        bursts,
        burst_gap,
    } = stream.shape;
    if packets_per_burst == u64::MAX {
        return Span {
            load,
            from,
            until: None,
            short: false,
            rates,
        };
    }
    let burst = lasts(packets_per_burst).saturating_add(burst_gap);
    let length = burst.saturating_mul(bursts);
    Span {
        load,
        from,
        until: Some(from.saturating_add(length)),
        short: packets_per_burst < SHORT_BURST_PACKETS,
        rates,
    }
}
