//! Hugepages: how many there are, and how many are missing.

use super::tree::Tree;

/// What DPDK needs of them at least for network cards, in MiB.
pub const MEMORY_MIB_MIN: u64 = 256;

/// The hugepages of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HugePages {
    /// KiB of a page of the default size; 0 where there are none.
    pub page_kib: u64,
    /// Pages of the default size.
    pub total: u64,
    /// Pages of the default size that nobody uses.
    pub free: u64,
    /// Memory in pages of all sizes that nobody uses, in MiB.
    pub free_mib: u64,
}

impl HugePages {
    pub(super) fn read(tree: Tree<'_>) -> HugePages {
        let text = tree.text("proc/meminfo");
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let sizes = tree.names("sys/kernel/mm/hugepages");
        let free_kib = sizes.iter().filter_map(|name| {
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let free = format!("sys/kernel/mm/hugepages/{name}/free_hugepages");
            Some(kib.parse::<u64>().ok()? * tree.number::<u64>(&free)?)
        });
        HugePages {
            page_kib: value("Hugepagesize:").unwrap_or(0),
            total: value("HugePages_Total:").unwrap_or(0),
            free: value("HugePages_Free:").unwrap_or(0),
            free_mib: free_kib.sum::<u64>() / 1024,
        }
    }

    /// Whether there are enough for network cards.
    pub fn suffice(&self) -> bool {
        self.free_mib >= MEMORY_MIB_MIN
    }

    /// Pages of the default size that make [`MEMORY_MIB_MIN`].
    pub fn needed(&self) -> u64 {
        (MEMORY_MIB_MIN * 1024).div_ceil(self.page_kib.max(1))
    }

    /// How many pages there must be for enough of them to be free: what `vm.nr_hugepages` is to be.
    pub fn wanted_total(&self) -> u64 {
        (self.total - self.free.min(self.total)) + self.needed()
    }

    /// What is missing, in words; `None` when there are enough.
    pub fn shortage(&self) -> Option<String> {
        if self.suffice() {
            return None;
        }
        if self.page_kib == 0 {
            return Some("this system has no hugepages, and network cards need them".to_owned());
        }
        let (free_mib, kib) = (self.free_mib, self.page_kib);
        Some(format!(
            "too few hugepages: {free_mib} MiB of them are free, and {MEMORY_MIB_MIN} MiB are needed \
             ({} of {kib} kB each)",
            self.needed()
        ))
    }

    /// The command that makes enough of them.
    pub fn command(&self) -> String {
        format!("sysctl -w vm.nr_hugepages={}", self.wanted_total())
    }
}
