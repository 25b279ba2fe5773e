//! Time that the host of a virtual machine took away from its CPUs: who stands still for the time of a
//! retransmission timeout retransmits, on the best of links.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The kernel counts in hundredths of a second (proc(5), USER_HZ).
const TICK: Duration = Duration::from_millis(10);

/// What was taken from each CPU until now.
pub(crate) struct Stolen(Vec<Duration>);

impl Stolen {
    /// Reads the counters of `/proc/stat`.
    pub(crate) fn now() -> Stolen {
        let text = fs::read_to_string("/proc/stat").expect("Linux counts the time of its CPUs");
        let cpus = text.lines().filter(|line| {
            let name = line.strip_prefix("cpu");
            name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        });
        Stolen(cpus.map(of_cpu).collect())
    }

    /// What was taken since then, from the CPU that lost the most.
    pub(crate) fn since(&self) -> Duration {
        let now = Stolen::now();
        let taken = now.0.iter().zip(&self.0).map(|(now, then)| *now - *then);
        taken.max().unwrap_or_default()
    }
}

/// Waits until the host takes less than this from a CPU in a second, or patience is over.
pub(crate) fn wait_for_calm(taken_max: Duration, patience: Duration) {
    let began = Instant::now();
    loop {
        let stolen = Stolen::now();
        let probed = Instant::now();
        // Only what is wanted can be stolen: an idle machine does not know what its host would take.
        while probed.elapsed() < Duration::from_secs(1) {
            std::hint::spin_loop();
        }
        if stolen.since() < taken_max || began.elapsed() >= patience {
            return;
        }
        thread::sleep(Duration::from_secs(3));
    }
}

/// The eighth counter of a line, `steal`.
fn of_cpu(line: &str) -> Duration {
    let ticks = line.split_whitespace().nth(8);
    TICK * ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
