//! Data threads that stand still.

use allosaur_engine::time::{Nanos, SECOND};

use super::TICK;
use crate::counters::Snapshot;

/// Tells of threads that do not turn. Nothing is ended because of it: the machine may be short of
/// time, and traffic goes on when it comes back.
#[derive(Default)]
pub(super) struct Watchdog {
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    total_ns: Nanos,
    ticks_still: u32,
}

/// A thread publishes its time at least every 0.1 s; this many ticks without is worth a word.
const STALL_TICKS: u32 = 4;

impl Watchdog {
    pub(super) fn watch(&mut self, snapshot: &Snapshot) {
        self.seen.resize(snapshot.cores.len(), Seen::default());
        for (core, (seen, now)) in self.seen.iter_mut().zip(&snapshot.cores).enumerate() {
            if now.total_ns != seen.total_ns {
                *seen = Seen {
                    total_ns: now.total_ns,
                    ticks_still: 0,
                };
                continue;
            }
            seen.ticks_still = seen.ticks_still.saturating_add(1);
            if seen.ticks_still == STALL_TICKS {
                let seconds = u64::from(STALL_TICKS) * TICK / SECOND;
                tracing::warn!(core, "a data thread has not turned for {seconds} s");
            }
        }
    }

    /// The threads that stand still, in words.
    pub(super) fn problems(&self) -> Vec<String> {
        let still = self.seen.iter().enumerate();
        let still = still.filter(|(_, seen)| seen.ticks_still >= STALL_TICKS);
        let text = |(core, seen): (usize, &Seen)| {
            let seconds = u64::from(seen.ticks_still) * TICK / SECOND;
            format!("data thread {core} has not turned for {seconds} s")
        };
        still.map(text).collect()
    }
}
