//! What the process has used of CPUs and memory, by its clock and `/proc`.

use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::SysconfVar;

use crate::emulation::ProcessUsage;

/// What all of the server has used, which is what TRex's users see of the emulation's process.
pub(super) fn process_usage() -> ProcessUsage {
    let clock = nix::time::clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let page_bytes = nix::unistd::sysconf(SysconfVar::PAGE_SIZE);
    let page_bytes = page_bytes.ok().flatten().unwrap_or(4096) as u64;
    ProcessUsage {
        cpu_time: clock.map_or(0, |time| Duration::from(time).as_nanos() as u64),
        rss_bytes: pages.unwrap_or(0u64) * page_bytes,
    }
}
