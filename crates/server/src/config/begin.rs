//! A first file for a machine: what `config init` writes.

use std::fmt::Write;

/// An interface of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The driver, if it is a device.
    pub driver: Option<String>,
    /// Its speed, if it says so.
    pub speed_mbps: Option<u64>,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Why it should be left alone, if so.
    pub used: Option<String>,
}

impl Interface {
    /// Why it is no port in the first file, if so.
    fn obstacle(&self) -> Option<&str> {
        let is_off = "switched off: `ip link set IF up` switches it on";
        let off = (!self.is_up).then_some(is_off);
        self.used.as_deref().or(off)
    }

    fn in_words(&self) -> String {
        let mut words = self.name.clone();
        if let Some(driver) = &self.driver {
            let _ = write!(words, ", driver {driver}");
        }
        match self.speed_mbps {
            Some(speed) if speed >= 1000 => {
                let _ = write!(words, ", {} Gbit/s", speed as f64 / 1000.0);
            }
            Some(speed) => {
                let _ = write!(words, ", {speed} Mbit/s");
            }
            None => {}
        }
        words
    }
}

/// The text of a file for a machine with these interfaces.
pub fn text(interfaces: &[Interface], ports_max: usize) -> String {
    let (free, others): (Vec<_>, Vec<_>) = interfaces.iter().partition(|i| i.obstacle().is_none());
    let mut text = String::from(HEAD);
    if free.is_empty() {
        text +=
            "  - memory # two ports in memory, joined to each other: no network card is needed\n";
        text += "  - memory\n";
    }
    for interface in free.iter().take(ports_max) {
        let _ = writeln!(
            text,
            "  - af_packet:{} # {}",
            interface.name,
            interface.in_words()
        );
    }
    for interface in free.iter().skip(ports_max) {
        let _ = writeln!(
            text,
            "  # - af_packet:{} # {}",
            interface.name,
            interface.in_words()
        );
    }
    for interface in others {
        let (name, words) = (&interface.name, interface.in_words());
        let why = interface.obstacle().unwrap_or_default();
        let _ = writeln!(text, "  # - af_packet:{name} # {words}; {why}");
    }
    text += TAIL;
    text
}

const HEAD: &str = "\
# Allosaur's configuration. Start a server with it:  allosaur server --config THIS_FILE
# After a change, check it:                          allosaur config check THIS_FILE
version: 1

# The ports, in order. A port may have addresses of its own:
#   - port: memory
#     ip: 10.0.0.1
#     default_gateway: 10.0.0.2
#     vlan: 100
ports:
";

const TAIL: &str = "
# Threads that send; a list such as [2, 3] binds each to a CPU. Ports may have threads of their own:
# groups:
#   - ports: [0, 1]
#     cores: [2, 3]
cores: 1

# true binds each thread that sends to a CPU of its own, near its ports.
pin: false

# Threads that receive.
receive_threads: 1

# adaptive: threads sleep when idle. busy: each takes a CPU whole, and is never late.
poll: adaptive

# true for stateful mode only: TCP and UDP flows on a stack of the server's own, with streams beside.
# Without it, each port is in the mode of who acquires it.
stateful: false

# \"*\" listens on all addresses. Beyond this machine it needs rpc_auth: FILE, or open: true.
listen: 127.0.0.1
rpc_port: 4501
pub_port: 4500

# Metrics for Prometheus are at http://127.0.0.1:4502/metrics with this:
# http: 4502
";

#[cfg(test)]
mod tests {
    use super::super::{Surroundings, load};
    use super::*;

    fn interface(name: &str) -> Interface {
        Interface {
            name: name.to_owned(),
            is_up: true,
            ..Interface::default()
        }
    }

    fn ports(interfaces: &[Interface]) -> Vec<String> {
        let text = text(interfaces, 32);
        let loaded = load(&text, &Surroundings::default());
        let loaded = loaded.unwrap_or_else(|findings| panic!("{findings:?}\n{text}"));
        let ports = loaded.settings.ports.iter();
        ports.map(|port| port.description.to_string()).collect()
    }

    #[test]
    fn without_a_free_interface_ports_are_in_memory() {
        assert_eq!(ports(&[]), ["memory", "memory"]);
        let own = [
            Interface {
                used: Some("leave it alone".to_owned()),
                ..interface("eth0")
            },
            Interface {
                used: Some("has an address".to_owned()),
                ..interface("eth1")
            },
            Interface {
                is_up: false,
                ..interface("eth2")
            },
        ];
        assert_eq!(ports(&own), ["memory", "memory"]);
        let text = text(&own, 32);
        for words in ["# - af_packet:eth0", "leave it alone", "ip link set"] {
            assert!(text.contains(words), "{text}");
        }
    }
}
