//! What a port may be called in a file: our names, and TRex's.
//!
//! What lives here: names of devices that are kinds of ports later, and TRex's names in our words.
//! What does not: our own names (`allosaur_port::description`).

use allosaur_port::description::PortDescription;

/// What is there, for those whose port is not.
const INSTEAD: &str =
    "Today ports are interfaces of the kernel (af_packet:eth0) and in memory (memory)";

/// A port by our own names.
///
/// # Errors
///
/// What is wrong with the name, and kinds of ports that do not exist yet.
pub fn ours(name: &str) -> Result<PortDescription, String> {
    check_exists(name)?;
    name.parse()
        .map_err(|error: allosaur_port::PortError| match error {
            allosaur_port::PortError::Description {
                problem, remedy, ..
            } => format!("'{name:.60}': {problem}. {remedy}"),
            other => other.to_string(),
        })
}

/// Refuses kinds of ports that do not exist yet.
///
/// # Errors
///
/// Which kind, and what there is instead.
pub fn check_exists(name: &str) -> Result<(), String> {
    later(name).map_or(Ok(()), |kind| {
        Err(format!("'{name:.60}': not yet: {kind}. {INSTEAD}"))
    })
}

/// A port by TRex's names, or by ours.
///
/// # Errors
///
/// As [`ours`].
pub fn trex(name: &str) -> Result<PortDescription, String> {
    let is_ours = |kind: &str| name == kind || name.starts_with(&format!("{kind}:"));
    if ["memory", "dummy", "af_packet", "af_xdp", "pci", "vdev"]
        .iter()
        .any(|kind| is_ours(kind))
    {
        return ours(name);
    }
    if let Some(device) = name.strip_prefix("--vdev=") {
        let mut words = device.split(',');
        let is_packet_socket = words.next().is_some_and(|d| d.starts_with("net_af_packet"));
        return match words.find_map(|word| word.strip_prefix("iface=")) {
            Some(interface) if is_packet_socket => ours(&format!("af_packet:{interface}")),
            _ => ours(&format!("vdev:{device}")),
        };
    }
    match later(name) {
        Some(_) => ours(name),
        None => ours(&format!("af_packet:{name}")),
    }
}

/// The kind of a port that does not exist yet.
fn later(name: &str) -> Option<&'static str> {
    let kind = name.split(':').next().unwrap_or_default();
    match kind {
        "af_xdp" => Some("ports on AF_XDP"),
        "vdev" => Some("DPDK's virtual devices"),
        _ if kind == "pci" || is_pci_address(name) => Some("PCI devices, which need DPDK"),
        _ => None,
    }
}

/// An address such as `03:00.0` or `0000:03:00.0`; TRex counts ports of one function behind `/`.
fn is_pci_address(name: &str) -> bool {
    let is_hex = |word: &str, len| word.len() == len && word.bytes().all(|c| c.is_ascii_hexdigit());
    let address = name.split('/').next().unwrap_or_default();
    let Some((device, function)) = address.rsplit_once('.') else {
        return false;
    };
    let words: Vec<&str> = device.split(':').collect();
    let is_device = match words[..] {
        [bus, device] => is_hex(bus, 2) && is_hex(device, 2),
        [domain, bus, device] => is_hex(domain, 4) && is_hex(bus, 2) && is_hex(device, 2),
        _ => false,
    };
    is_device && is_hex(function, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_later_say_not_yet() {
        for name in [
            "03:00.0",
            "0000:03:00.1",
            "82:00.0/1",
            "pci:0000:03:00.0",
            "af_xdp:eth0",
            "vdev:net_null0",
        ] {
            for read in [ours, trex] {
                let error = read(name).expect_err(name);
                assert!(error.contains("not yet"), "{name}: {error}");
            }
        }
        let error = trex("--vdev=net_null0").expect_err("DPDK");
        assert!(error.contains("not yet"), "{error}");
    }

    #[test]
    fn interfaces_are_not_taken_for_pci_addresses() {
        for name in [
            "eth0",
            "enp3s0",
            "eth0.100",
            "a:b.c",
            "memory",
            "ens1f0np0",
            "",
        ] {
            assert!(!is_pci_address(name), "{name}");
        }
    }
}
