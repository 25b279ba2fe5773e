//! What the kernel counts of an interface, in `/sys/class/net/NAME/statistics`.

use std::path::PathBuf;

/// The counters of an interface, as the kernel names them with `kernel_` in front. There are none
/// while it is away.
pub(super) fn read(interface: &str) -> Vec<(String, u64)> {
    let folder = PathBuf::from("/sys/class/net")
        .join(interface)
        .join("statistics");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let counters = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let text = std::fs::read_to_string(file.path()).ok()?;
        Some((format!("kernel_{name}"), text.trim().parse().ok()?))
    });
    let mut counters: Vec<(String, u64)> = counters.collect();
    counters.sort_unstable();
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_has_counters_and_what_is_away_has_none() {
        let counters = read("lo");
        for name in ["kernel_rx_packets", "kernel_tx_bytes", "kernel_rx_dropped"] {
            assert!(counters.iter().any(|(found, _)| found == name), "{name}");
        }
        assert!(counters.is_sorted());
        assert_eq!(read("no-such-one"), []);
    }
}
