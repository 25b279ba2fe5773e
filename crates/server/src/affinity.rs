//! On which CPUs threads run.
//!
//! What lives here: asking for them and binding to one. What does not: choosing (`settings`).

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// This thread.
const SELF: Pid = Pid::from_raw(0);

/// The CPUs that this thread may use; none when the system does not say.
pub fn available() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(SELF) else {
        return Vec::new();
    };
    let cpus = 0..CpuSet::count();
    cpus.filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect()
}

/// Binds this thread to one CPU.
pub fn bind(cpu: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(SELF, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_bound() {
        let cpus = available();
        let last = *cpus.last().expect("this test runs on a CPU");
        let bound = std::thread::spawn(move || bind(last).map(|()| available()));
        let bound = bound.join().expect("no panic").expect("the CPU is there");
        assert_eq!(bound, [last]);
        assert_eq!(available(), cpus, "other threads stay as they are");
        assert!(bind(CpuSet::count()).is_err());
    }
}
