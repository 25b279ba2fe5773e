//! What a port may be called in a file: our names, and TRex's.

use allosaur_port::description::PortDescription;
use allosaur_port::dpdk;
use allosaur_port::kinds::{self, KINDS, PortKind};

/// What is there, for those whose port is not.
const INSTEAD: &str = "Other ports are interfaces of the kernel (af_packet:eth0) and in memory (memory). \
     Where libdpdk-dev is installed, `make install` builds ports on DPDK";

/// A port by our own names.
///
/// # Errors
///
/// What is wrong with the name, and kinds of ports that do not exist yet.
pub fn ours(name: &str) -> Result<PortDescription, String> {
    check_exists(name)?;
    let in_full = match is_pci_address(name) {
        true => format!("pci:{name}"),
        false => name.to_owned(),
    };
    in_full
        .parse()
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
    let word = name.split(':').next().unwrap_or_default();
    if kinds::kind_of(word).is_some() {
        return ours(name);
    }
    if let Some(device) = name.strip_prefix("--vdev=") {
        let mut words = device.split(',');
        let driver = words.next().unwrap_or_default();
        let is_driven = |kind: &&PortKind| {
            let name = kind.virtual_device;
            name.is_some_and(|name| driver.starts_with(name))
        };
        let kind = KINDS.into_iter().find(is_driven);
        return match (kind, words.find_map(|word| word.strip_prefix("iface="))) {
            (Some(kind), Some(interface)) => ours(&format!("{}:{interface}", kind.name)),
            _ => ours(&format!("vdev:{device}")),
        };
    }
    match is_pci_address(name) {
        true => ours(name),
        false => ours(&format!("af_packet:{name}")),
    }
}

/// The kind of a port that does not exist yet.
fn later(name: &str) -> Option<&'static str> {
    let kind = name.split(':').next().unwrap_or_default();
    match kind {
        _ if dpdk::IS_BUILT => None,
        "vdev" => Some("DPDK's virtual devices, which this server was built without"),
        "ring" if name.contains(':') => {
            Some("rings of DPDK's, which this server was built without")
        }
        _ if kind == "pci" || is_pci_address(name) => {
            Some("PCI devices need DPDK, which this server was built without")
        }
        _ => None,
    }
}

/// An address such as `03:00.0` or `0000:03:00.0`; TRex counts ports of one function behind `/`.
pub(crate) fn is_pci_address(name: &str) -> bool {
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
    fn af_xdp_is_known_by_our_name() {
        for read in [ours, trex] {
            let port = read("af_xdp:eth0:queues=2").map(|port| port.to_string());
            assert_eq!(port, Ok("af_xdp:eth0:queues=2".to_owned()));
            read("af_xdp:eth0:queues=0").expect_err("none to use");
        }
    }

    #[test]
    fn devices_of_dpdk_are_known_where_it_is_built() {
        for (name, in_full) in [
            ("03:00.0", "pci:0000:03:00.0"),
            ("0000:03:00.1", "pci:0000:03:00.1"),
            ("pci:0000:03:00.0", "pci:0000:03:00.0"),
            ("vdev:net_null0", "vdev:net_null0"),
            ("ring:a", "ring:a"),
        ] {
            for read in [ours, trex] {
                match read(name) {
                    Ok(port) => assert_eq!(port.to_string(), in_full),
                    Err(error) => assert!(error.contains("not yet"), "{name}: {error}"),
                }
                assert_eq!(read(name).is_ok(), dpdk::IS_BUILT);
            }
        }
        let memif = trex("--vdev=net_memif0,id=1").map(|port| port.to_string());
        match dpdk::IS_BUILT {
            true => assert_eq!(memif, Ok("vdev:net_memif0,id=1".to_owned())),
            false => assert!(memif.is_err_and(|error| error.contains("not yet"))),
        }
        trex("82:00.0/1").expect_err("the second port of a function");
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
