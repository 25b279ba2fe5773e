//! On which CPUs threads run, and what is known of them.

use allosaur_port::description::{DpdkDevice, PortDescription};
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

/// A CPU that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: usize,
    /// The NUMA node that it is on, if the system says so.
    pub node: Option<usize>,
    /// Its place among the CPUs that are one physical core: 0 is the first.
    pub sibling: usize,
}

/// The CPUs that this process may use, and what is known of them.
pub fn cpus() -> Vec<Cpu> {
    let nodes = nodes();
    let cpu = |number: usize| {
        let siblings = format!("/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list");
        let siblings = read_list(&siblings);
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(&number));
        Cpu {
            number,
            node: node.map(|(node, _)| *node),
            sibling: siblings.iter().position(|cpu| *cpu == number).unwrap_or(0),
        }
    };
    available().into_iter().map(cpu).collect()
}

/// The NUMA nodes of the machine with their CPUs.
fn nodes() -> Vec<(usize, Vec<usize>)> {
    let directory = "/sys/devices/system/node";
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    };
    let nodes = entries.flatten().filter_map(number);
    let cpus = |node| read_list(&format!("{directory}/node{node}/cpulist"));
    nodes.map(|node: usize| (node, cpus(node))).collect()
}

/// The NUMA node of the device behind a port, if it has one.
pub fn node_of_port(port: &PortDescription) -> Option<usize> {
    let of_interface = port.interface().map(|name| format!("net/{name}/device"));
    let of_device = port.device().and_then(DpdkDevice::pci);
    let device = of_interface.or(of_device.map(|pci| format!("../bus/pci/devices/{pci}")))?;
    let node = std::fs::read_to_string(format!("/sys/class/{device}/numa_node")).ok()?;
    // It is -1 where there is none.
    node.trim().parse().ok()
}

/// Numbers as the kernel lists them; none of a file that is not there.
fn read_list(path: &str) -> Vec<usize> {
    numbers(&std::fs::read_to_string(path).unwrap_or_default())
}

/// The numbers of a list such as `0-3,8`.
fn numbers(list: &str) -> Vec<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
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
    fn ports_without_a_device_are_on_no_node() {
        for port in ["memory", "dummy", "af_packet:lo", "no-such-one"] {
            let port = port.parse().expect("a right name");
            assert_eq!(node_of_port(&port), None);
        }
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        assert_eq!(numbers("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(numbers("5"), [5]);
        assert_eq!(numbers("\n"), [0; 0]);
        assert_eq!(numbers("x,1-,2"), [2]);
    }

    #[test]
    fn each_cpu_that_may_be_used_is_known() {
        let known: Vec<usize> = cpus().iter().map(|cpu| cpu.number).collect();
        assert_eq!(known, available());
    }

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
