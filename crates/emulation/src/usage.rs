//! What the process uses, for the resource monitor.

use allosaur_engine::time::{MILLISECOND, Nanos};

crate::counters! {
    /// What the process uses.
    pub(crate) struct UsageCounters: u64, "Resource monitor" {
        elapsed_ms: "elapsedTimeMs", "Elapsed time since reset", "milliseconds", Info;
        cpu_percent: "cpuPercent", "CPU utilization since reset", "percent", Info, zero;
        rss_bytes: "rss", "RSS memory consumption", "bytes", Info;
    }
}

/// What the process has used, and since when it is looked at.
#[derive(Debug)]
pub(crate) struct Usage {
    cpu_time: Nanos,
    rss_bytes: u64,
    reset_at: Nanos,
    cpu_time_then: Nanos,
}

impl Usage {
    /// Nothing yet, looked at from now on.
    pub(crate) fn new(now: Nanos) -> Usage {
        Usage {
            cpu_time: 0,
            rss_bytes: 0,
            reset_at: now,
            cpu_time_then: 0,
        }
    }

    /// So much by now.
    pub(crate) fn set(&mut self, cpu_time: Nanos, rss_bytes: u64) {
        (self.cpu_time, self.rss_bytes) = (cpu_time, rss_bytes);
    }

    pub(crate) fn reset(&mut self, now: Nanos) {
        self.reset_at = now;
        self.cpu_time_then = self.cpu_time;
    }

    pub(crate) fn counters(&self, now: Nanos) -> UsageCounters {
        let elapsed = now.saturating_sub(self.reset_at);
        let used = self.cpu_time.saturating_sub(self.cpu_time_then);
        UsageCounters {
            elapsed_ms: elapsed / MILLISECOND,
            cpu_percent: used.saturating_mul(100) / elapsed.max(1),
            rss_bytes: self.rss_bytes,
        }
    }
}
