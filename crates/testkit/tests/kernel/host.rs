//! An end that is the kernel: a namespace with an address on a tap device.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::Duration;

use allosaur_netdev::tuntap::TapDevice;
use allosaur_packet::MacAddress;

use crate::namespace::Namespace;

/// Which of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Client,
    Server,
}

impl Place {
    pub(crate) fn other(self) -> Place {
        match self {
            Place::Client => Place::Server,
            Place::Server => Place::Client,
        }
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Place::Client => 1,
            Place::Server => 2,
        }
    }

    pub(crate) fn mac(self) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, self.number()])
    }

    /// The client's port is fixed too, so that both may connect at the same time.
    pub(crate) fn address(self, ipv6: bool) -> SocketAddr {
        let number = self.number();
        let ip: IpAddr = match ipv6 {
            false => Ipv4Addr::new(10, 9, 0, number).into(),
            true => Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, u16::from(number)).into(),
        };
        SocketAddr::new(ip, 4000 + u16::from(number))
    }
}

/// How the kernel behaves in a script. Settings are paths below /proc/sys/net, with what is written there.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) settings: Vec<(&'static str, &'static str)>,
    pub(crate) mtu: u16,
    /// SO_RCVBUF of its sockets.
    pub(crate) receive_buffer_bytes: Option<usize>,
    /// Asks after so many seconds of silence whether the peer is still there, and each second again.
    pub(crate) keepalive_s: Option<u32>,
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel {
            settings: Vec::new(),
            mtu: 1500,
            receive_buffer_bytes: None,
            keepalive_s: None,
        }
    }
}

/// The least that IPv6 needs (RFC 8200, section 5).
const IPV6_MTU_MIN: u16 = 1280;

/// The kernel at one end.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) tap: TapDevice,
}

impl Host {
    pub(crate) fn make(place: Place, kernel: &Kernel) -> Result<Host, String> {
        let namespace = Namespace::make()?;
        let tap = namespace.within(|| TapDevice::make("tap0"));
        let tap = tap.map_err(|error| format!("no tap device: {error}"))?;
        let host = Host { namespace, tap };
        host.address(place, kernel);
        Ok(host)
    }

    fn address(&self, place: Place, kernel: &Kernel) {
        let (own, other) = (place.address(false).ip(), place.other().address(false).ip());
        let (own6, other6) = (place.address(true).ip(), place.other().address(true).ip());
        let (mac, other_mac) = (place.mac(), place.other().mac());
        let ip = |arguments: &str| self.namespace.ip(arguments);
        // Nothing of its own: no router is looked for, no address is asked for.
        for name in [
            "accept_ra",
            "router_solicitations",
            "autoconf",
            "accept_dad",
        ] {
            self.namespace.set(&format!("ipv6/conf/tap0/{name}"), "0");
        }
        // It sends nothing again after two milliseconds of silence (a tail loss probe): so long this machine may
        // have no time for the link.
        self.namespace.set("ipv4/tcp_early_retrans", "0");
        for (path, value) in &kernel.settings {
            self.namespace.set(path, value);
        }
        ip(&format!(
            "link set tap0 address {mac} mtu {} up",
            kernel.mtu
        ));
        ip(&format!("address add {own}/24 dev tap0"));
        ip(&format!("neighbor add {other} lladdr {other_mac} dev tap0"));
        if kernel.mtu >= IPV6_MTU_MIN {
            ip(&format!("address add {own6}/64 dev tap0 nodad"));
            ip(&format!(
                "neighbor add {other6} lladdr {other_mac} dev tap0"
            ));
            self.wait_for_route(own6);
        }
    }

    /// Waits until the kernel takes what comes to its address of IPv6: that is a little after it says that it has it,
    /// also where it need not ask whether somebody else has.
    fn wait_for_route(&self, own: IpAddr) {
        loop {
            let routes = self.namespace.read("/proc/thread-self/net/ipv6_route");
            let IpAddr::V6(address) = own else { return };
            let digits: String = address
                .octets()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let mut lines = routes.lines().filter(|line| line.starts_with(&digits));
            if lines.any(|line| line.contains(" 80 ")) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// What the kernel's TCP counted, by its names.
    pub(crate) fn counters(&self) -> Vec<(String, u64)> {
        let text = self.namespace.read("/proc/thread-self/net/snmp");
        let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (
            lines.next().unwrap_or_default(),
            lines.next().unwrap_or_default(),
        );
        let values = values
            .split_whitespace()
            .skip(1)
            .map(|value| value.parse().unwrap_or(0));
        let names = names.split_whitespace().skip(1).map(str::to_owned);
        names.zip(values).collect()
    }

    /// The states of the kernel's connections that are not over, as /proc/net/tcp numbers them.
    pub(crate) fn connections(&self) -> Vec<String> {
        const TIME_WAIT: &str = "06";
        const LISTEN: &str = "0A";
        let mut states = Vec::new();
        for path in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
            for line in self.namespace.read(path).lines().skip(1) {
                let state = line.split_whitespace().nth(3).unwrap_or_default();
                if ![TIME_WAIT, LISTEN].contains(&state) {
                    states.push(state.to_owned());
                }
            }
        }
        states
    }
}

/// What is missing on this machine for taps in namespaces, or nothing.
pub(crate) fn why_not() -> Option<String> {
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    if std::process::Command::new("ip").arg("-V").output().is_err() {
        return Some("there is no `ip`: install iproute2".to_owned());
    }
    let namespace = match Namespace::make() {
        Ok(namespace) => namespace,
        Err(why) => return Some(format!("{why}; run the tests as root")),
    };
    let tap = namespace.within(|| TapDevice::make("tap0"));
    tap.err().map(|error| format!("no tap device: {error}"))
}
