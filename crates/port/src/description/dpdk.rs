//! How a user names devices of DPDK's: `vdev:net_tap,iface=tap7` or `pci:0000:03:00.0`.

use std::fmt;

/// A device of DPDK's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkDevice {
    is_pci: bool,
    name: String,
    /// What follows the name, without the comma between.
    arguments: String,
}

impl DpdkDevice {
    /// Reads what follows `vdev:` or `pci:`. The error is the problem and the remedy.
    pub(super) fn parse(kind: &str, text: &str) -> Result<DpdkDevice, (String, String)> {
        let (name, arguments) = text.split_once(',').unwrap_or((text, ""));
        let is_pci = kind == "pci";
        let name = match is_pci {
            true => pci_address(name),
            false => is_driver(name).then(|| name.to_owned()),
        };
        let Some(name) = name else {
            return Err(match is_pci {
                true => (
                    format!("'{text}' is not the address of a PCI device"),
                    "Write it as `lspci -D` shows it: pci:0000:03:00.0".to_owned(),
                ),
                false => (
                    format!("'{text}' does not begin with a driver of DPDK's"),
                    "Write one, as in vdev:net_null or vdev:net_tap,iface=tap7".to_owned(),
                ),
            });
        };
        Ok(DpdkDevice {
            is_pci,
            name,
            arguments: arguments.to_owned(),
        })
    }

    /// The driver, with or without a number, or the PCI address in full.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// DPDK's name of the bus.
    pub fn bus(&self) -> &'static str {
        if self.is_pci { "pci" } else { "vdev" }
    }

    /// The address of a PCI device, with its arguments, as DPDK takes it.
    pub fn pci(&self) -> Option<String> {
        let comma = if self.arguments.is_empty() { "" } else { "," };
        let Self {
            name, arguments, ..
        } = self;
        self.is_pci.then(|| format!("{name}{comma}{arguments}"))
    }

    /// Whether there can be only one of this name.
    pub fn is_named(&self) -> bool {
        self.is_pci || self.name.ends_with(|c: char| c.is_ascii_digit())
    }

    /// The value of an argument for the driver, if it has one.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let arguments = self.arguments.split(',').filter_map(|a| a.split_once('='));
        let mut found = arguments.filter(|(given, _)| *given == name);
        found.next().map(|(_, value)| value)
    }

    /// The arguments for the driver. `net_null` makes up frames to receive as fast as it is asked,
    /// which keeps the receive thread busy with nothing; so it is told not to, unless the user says.
    pub fn arguments_or_default(&self) -> String {
        if !self.name.starts_with("net_null") || self.arguments.contains("no-rx=") {
            return self.arguments.clone();
        }
        let comma = if self.arguments.is_empty() { "" } else { "," };
        format!("{}{comma}no-rx=1", self.arguments)
    }
}

impl fmt::Display for DpdkDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_pci { "pci" } else { "vdev" };
        let comma = if self.arguments.is_empty() { "" } else { "," };
        write!(f, "{kind}:{}{comma}{}", self.name, self.arguments)
    }
}

/// Letters, digits and underscores, as the names of drivers are.
fn is_driver(name: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_right)
}

/// `0000:03:00.0`, also of `03:00.0`.
fn pci_address(text: &str) -> Option<String> {
    let (rest, function) = text.rsplit_once('.')?;
    let parts: Vec<&str> = rest.split(':').collect();
    let (domain, bus, device) = match parts[..] {
        [bus, device] => ("0000", bus, device),
        [domain, bus, device] => (domain, bus, device),
        _ => return None,
    };
    let hex =
        |text: &str, digits| text.len() == digits && text.chars().all(|c| c.is_ascii_hexdigit());
    let is_right = hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1);
    is_right.then(|| format!("{domain}:{bus}:{device}.{function}").to_ascii_lowercase())
}

/// Joins the items of a list that was split at its commas, where they are arguments of a device.
pub(super) fn with_arguments<'a>(items: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for item in items {
        let is_argument = |name: &str| {
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        let is_argument = item
            .split_once('=')
            .is_some_and(|(name, _)| is_argument(name));
        match joined.last_mut() {
            Some(device) if is_argument && is_device(device) => {
                device.push(',');
                device.push_str(item);
            }
            _ => joined.push(item.to_owned()),
        }
    }
    joined
}

fn is_device(text: &str) -> bool {
    text.starts_with("vdev:") || text.starts_with("pci:")
}

#[cfg(test)]
mod tests {
    use super::super::{PortDescription, parse_ports};

    fn devices(list: &str) -> Vec<String> {
        let ports = parse_ports(list).expect("well formed");
        for port in &ports {
            assert_eq!(port.to_string().parse(), Ok(port.clone()));
        }
        ports.iter().map(PortDescription::to_string).collect()
    }

    #[test]
    fn arguments_belong_to_the_device_before_them() {
        let list = "memory,vdev:net_memif,role=client,mac=02:00:00:00:00:01,eth0,vdev:net_null";
        let expected = [
            "memory",
            "vdev:net_memif,role=client,mac=02:00:00:00:00:01",
            "af_packet:eth0",
            "vdev:net_null",
        ];
        assert_eq!(devices(list), expected);
        parse_ports("memory:delay=1ms,a=b c").expect_err("no device to belong to");
    }

    #[test]
    fn a_pci_device_is_known_by_its_address_in_full() {
        let expected = ["pci:0000:03:00.0", "pci:0000:0a:1f.7,mprq_en=1"];
        assert_eq!(devices("pci:03:00.0,pci:0000:0A:1f.7,mprq_en=1"), expected);
        for wrong in [
            "",
            "03",
            "3:00.0",
            "03:00.10",
            "00:00:03:00.0",
            "0000:03:0g.0",
        ] {
            parse_ports(&format!("pci:{wrong}")).expect_err(wrong);
        }
    }

    #[test]
    fn unnamed_devices_may_be_many() {
        assert_eq!(devices("vdev:net_null,vdev:net_null").len(), 2);
        parse_ports("vdev:net_null0,vdev:net_null0").expect_err("one name");
    }

    #[test]
    fn net_null_makes_nothing_up_unless_it_is_told_to() {
        let arguments = |text: &str| match text.parse().expect("well formed") {
            PortDescription::Dpdk(device) => device.arguments_or_default(),
            other => panic!("not a device: {other}"),
        };
        assert_eq!(arguments("vdev:net_null"), "no-rx=1");
        assert_eq!(arguments("vdev:net_null3,size=60"), "size=60,no-rx=1");
        assert_eq!(arguments("vdev:net_null,no-rx=0"), "no-rx=0");
        assert_eq!(arguments("vdev:net_ring"), "");
    }
}
