//! How a user names ports: a list such as `memory,memory:delay=1ms`.

mod dpdk;

use std::fmt;
use std::str::FromStr;

use crate::PortError;
use crate::af_xdp::settings::XdpSettings;
use crate::kinds::{self, PortBase, PortKind, kind_like, kinds_in_words};
use crate::memory::LinkSettings;

pub use dpdk::DpdkDevice;

/// Most ports of one server; the RPC numbers them with a byte.
pub const PORTS_MAX: usize = 32;

/// One port: a kind, then its settings behind colons.
#[derive(Clone, Debug, PartialEq)]
pub enum PortDescription {
    /// `memory`: see [`memory`](crate::memory). The settings are those of the direction that
    /// leaves this port; its peer's settings are those of the way back.
    Memory(LinkSettings),
    /// `af_packet:NAME`, or just `NAME`: an interface of the kernel, see
    /// [`af_packet`](crate::af_packet).
    AfPacket(String),
    /// `af_xdp:NAME`: the same past the kernel's network stack, see [`af_xdp`](crate::af_xdp).
    AfXdp(String, XdpSettings),
    /// `dummy`: what it sends is counted and forgotten, and it receives nothing.
    Dummy,
    /// `vdev:DRIVER,...` or `pci:ADDRESS`: a device of DPDK's, see [`dpdk`](crate::dpdk).
    Dpdk(DpdkDevice),
    /// `ring:NAME`: one of two ports of DPDK's net_ring that are joined, the other has the same name,
    /// see [`dpdk`](crate::dpdk).
    Ring(String),
}

impl PortDescription {
    /// Its kind.
    pub fn kind(&self) -> &'static PortKind {
        match self {
            PortDescription::Memory(_) => &kinds::MEMORY,
            PortDescription::AfPacket(_) => &kinds::AF_PACKET,
            PortDescription::AfXdp(..) => &kinds::AF_XDP,
            PortDescription::Dummy => &kinds::DUMMY,
            PortDescription::Dpdk(_) | PortDescription::Ring(_) => &kinds::DPDK,
        }
    }

    /// What it is, for people.
    pub fn in_words(&self) -> String {
        match self {
            PortDescription::Memory(_) => format!("in-memory port ({self})"),
            PortDescription::AfPacket(name) | PortDescription::AfXdp(name, _) => {
                format!("interface {name} ({self})")
            }
            PortDescription::Dummy => "sink (dummy)".to_owned(),
            PortDescription::Dpdk(device) => format!("DPDK device {} ({self})", device.name()),
            PortDescription::Ring(name) => format!("end of DPDK rings {name} ({self})"),
        }
    }

    /// Whether no hardware and no interface is behind it.
    pub fn is_in_memory(&self) -> bool {
        self.kind().base == PortBase::Memory
    }

    /// The link of a memory port.
    pub fn link(&self) -> Option<&LinkSettings> {
        match self {
            PortDescription::Memory(link) => Some(link),
            _ => None,
        }
    }

    /// The interface of the kernel that it is on, by its name.
    pub fn interface(&self) -> Option<&str> {
        match self {
            PortDescription::AfPacket(name) | PortDescription::AfXdp(name, _) => Some(name),
            _ => None,
        }
    }

    /// The name of the rings that join it with another port.
    pub fn ring(&self) -> Option<&str> {
        match self {
            PortDescription::Ring(name) => Some(name),
            _ => None,
        }
    }

    /// Whether its peer is a port of the same server, and each transmit queue ends in a receive queue.
    pub fn is_joined(&self) -> bool {
        self.link().is_some() || self.ring().is_some()
    }

    /// The device of a DPDK port.
    pub fn device(&self) -> Option<&DpdkDevice> {
        match self {
            PortDescription::Dpdk(device) => Some(device),
            _ => None,
        }
    }
}

/// The longest name of an interface, in bytes.
const INTERFACE_NAME_BYTES_MAX: usize = 15;

impl FromStr for PortDescription {
    type Err = PortError;

    fn from_str(given: &str) -> Result<PortDescription, PortError> {
        let (kind, settings) = given.split_once(':').unwrap_or((given, ""));
        let error = |problem: String, remedy: String| PortError::Description {
            given: given.to_owned(),
            problem,
            remedy,
        };
        match kind {
            "memory" => match settings.parse() {
                Ok(settings) => Ok(PortDescription::Memory(settings)),
                Err(PortError::Description {
                    problem, remedy, ..
                }) => Err(error(problem, remedy)),
                Err(other) => Err(other),
            },
            "dummy" if given == "dummy" => Ok(PortDescription::Dummy),
            "af_packet" | "af_xdp" => match parse_interface(kind, settings) {
                Ok(port) => Ok(port),
                Err((problem, remedy)) => Err(error(problem, remedy)),
            },
            "vdev" | "pci" => match DpdkDevice::parse(kind, settings) {
                Ok(device) => Ok(PortDescription::Dpdk(device)),
                Err((problem, remedy)) => Err(error(problem, remedy)),
            },
            "ring" if given.contains(':') => match is_ring_name(settings) {
                true => Ok(PortDescription::Ring(settings.to_owned())),
                false => Err(error(
                    format!("'{settings}' cannot be the name of rings"),
                    format!(
                        "Give both ports the same, of 1 to {RING_NAME_BYTES_MAX} letters, digits and \
                         underscores: ring:a,ring:a"
                    ),
                )),
            },
            _ if is_interface_name(given) => Ok(PortDescription::AfPacket(given.to_owned())),
            _ => Err(error(
                match kind_like(kind) {
                    Some(near) => format!("unknown kind of port '{kind}' (did you mean {near}?)"),
                    None => format!("unknown kind of port '{kind}'"),
                },
                kinds_in_words(),
            )),
        }
    }
}

/// Reads what follows `af_packet:` or `af_xdp:`. The error is the problem and the remedy.
fn parse_interface(kind: &str, text: &str) -> Result<PortDescription, (String, String)> {
    let is_packet = kind == "af_packet";
    let (name, settings) = match is_packet {
        true => (text, ""),
        false => text.split_once(':').unwrap_or((text, "")),
    };
    if !is_interface_name(name) {
        return Err((
            format!("'{name}' cannot be the name of an interface"),
            format!("Write a name that `ip link` shows, as in {kind}:eth0"),
        ));
    }
    if is_packet {
        return Ok(PortDescription::AfPacket(name.to_owned()));
    }
    match settings.parse() {
        Ok(settings) => Ok(PortDescription::AfXdp(name.to_owned(), settings)),
        Err(PortError::Description {
            problem, remedy, ..
        }) => Err((problem, remedy)),
        Err(other) => Err((other.to_string(), String::new())),
    }
}

/// The longest name of the rings between two ports, in bytes: DPDK's names have it in them.
const RING_NAME_BYTES_MAX: usize = 12;

fn is_ring_name(name: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=RING_NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_right)
}

/// What the kernel takes as a name.
fn is_interface_name(name: &str) -> bool {
    let length_is_right = (1..=INTERFACE_NAME_BYTES_MAX).contains(&name.len());
    let is_forbidden = |c: char| c.is_whitespace() || c.is_control() || "/:,".contains(c);
    length_is_right && !name.contains(is_forbidden) && name != "." && name != ".."
}

impl fmt::Display for PortDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortDescription::Memory(settings) => {
                let text = settings.to_string();
                let colon = if text.is_empty() { "" } else { ":" };
                write!(f, "memory{colon}{text}")
            }
            PortDescription::AfPacket(name) => write!(f, "af_packet:{name}"),
            PortDescription::AfXdp(name, settings) => {
                let text = settings.to_string();
                let colon = if text.is_empty() { "" } else { ":" };
                write!(f, "af_xdp:{name}{colon}{text}")
            }
            PortDescription::Dummy => f.write_str("dummy"),
            PortDescription::Dpdk(device) => write!(f, "{device}"),
            PortDescription::Ring(name) => write!(f, "ring:{name}"),
        }
    }
}

/// Reads a comma-separated list of ports: 1 to [`PORTS_MAX`] of them. What follows a device of
/// DPDK's and looks like `name=value` is an argument of the device.
///
/// # Errors
///
/// Names the port that could not be understood and what to write instead. An odd last memory
/// port has no peer and so no link: settings there are refused. Rings join two ports, no more and no
/// fewer.
pub fn parse_ports(list: &str) -> Result<Vec<PortDescription>, PortError> {
    let error = |problem: String, remedy: &str| {
        Err(PortError::Description {
            given: list.to_owned(),
            problem,
            remedy: remedy.to_owned(),
        })
    };
    if list.trim().is_empty() {
        return error(
            "no port is named".to_owned(),
            "Name at least one, as in memory,memory",
        );
    }
    let texts = dpdk::with_arguments(list.split(',').map(str::trim));
    let ports = texts.iter().map(|port| port.parse());
    let ports: Vec<PortDescription> = ports.collect::<Result<_, _>>()?;
    if ports.len() > PORTS_MAX {
        let problem = format!("{} ports are too many", ports.len());
        return error(problem, &format!("Name at most {PORTS_MAX}"));
    }
    if let Some((first, second)) = same_interface(&ports) {
        return error(
            format!("ports {first} and {second} are the same interface or device"),
            "Name each interface once, and each device",
        );
    }
    for (number, port) in ports.iter().enumerate() {
        let Some(name) = port.ring() else { continue };
        match ring_ends(&ports, name)[..] {
            [_, _] => {}
            [_] => {
                let remedy = format!("Name two ports that they join: {port},{port}");
                return error(format!("port {number} is alone on rings {name}"), &remedy);
            }
            [.., last] => {
                return error(
                    format!("port {last} is one too many on rings {name}, which join two"),
                    "Give it and its peer a name of their own",
                );
            }
            [] => unreachable!("the port itself is one"),
        }
    }
    let links = ports.iter().enumerate();
    let links = links.filter_map(|(number, port)| Some((number, port.link()?)));
    let links: Vec<_> = links.collect();
    if let [.., (number, settings)] = links[..] {
        if links.len() % 2 == 1 && *settings != LinkSettings::default() {
            return error(
                format!("port {number} has no peer and so no link"),
                "Add another memory port behind it, or leave its settings out",
            );
        }
    }
    Ok(ports)
}

/// The ports that rings join.
pub(crate) fn ring_ends(ports: &[PortDescription], name: &str) -> Vec<usize> {
    let numbered = ports.iter().enumerate();
    let ends = numbered.filter(|(_, port)| port.ring() == Some(name));
    ends.map(|(number, _)| number).collect()
}

/// Two ports on one interface or device.
fn same_interface(ports: &[PortDescription]) -> Option<(usize, usize)> {
    let is_same = |one: &PortDescription, other: &PortDescription| match (one, other) {
        (PortDescription::Dpdk(one), PortDescription::Dpdk(other)) => {
            one.is_named() && one.name() == other.name()
        }
        _ => one.interface().is_some() && one.interface() == other.interface(),
    };
    ports.iter().enumerate().find_map(|(second, port)| {
        let mut before = ports[..second].iter();
        let first = before.position(|other| is_same(port, other));
        first.map(|first| (first, second))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_order() {
        let ports = parse_ports("memory, memory:delay=1ms:loss=1% ,memory").expect("well formed");
        let delayed = LinkSettings {
            delay_ns: 1_000_000,
            loss: 0.01,
            ..LinkSettings::default()
        };
        let expected = [LinkSettings::default(), delayed, LinkSettings::default()];
        assert_eq!(ports, expected.map(PortDescription::Memory));
        assert_eq!(ports[1].to_string().parse(), Ok(ports[1].clone()));
        assert_eq!(ports[0].to_string(), "memory");
    }

    #[test]
    fn an_interface_is_named_with_its_kind_or_without() {
        let ports = parse_ports("af_packet:veth0,eth1.100,memory").expect("well formed");
        let interface = |name: &str| PortDescription::AfPacket(name.to_owned());
        assert_eq!(ports[..2], [interface("veth0"), interface("eth1.100")]);
        let xdp = parse_ports("af_xdp:veth0,af_xdp:eth1:zero_copy=no:queues=2");
        let xdp = xdp.expect("well formed");
        assert_eq!(xdp[0].to_string(), "af_xdp:veth0");
        assert_eq!(xdp[1].to_string(), "af_xdp:eth1:queues=2:zero_copy=no");
        assert_eq!(xdp[1].to_string().parse(), Ok(xdp[1].clone()));
        assert_eq!(xdp[1].interface(), Some("eth1"));
        let sinks = parse_ports("dummy,dummy").expect("well formed");
        assert_eq!(sinks, [PortDescription::Dummy, PortDescription::Dummy]);
        assert_eq!(sinks[0].to_string(), "dummy");
        assert_eq!(ports[1].to_string(), "af_packet:eth1.100");
        assert_eq!(ports[1].to_string().parse(), Ok(ports[1].clone()));
    }

    #[test]
    fn rings_join_two_ports_wherever_they_stand() {
        let ports = parse_ports("ring:a,memory,ring:b_2,ring:a,ring:b_2").expect("well formed");
        assert_eq!(ring_ends(&ports, "a"), [0, 3]);
        assert_eq!(ring_ends(&ports, "b_2"), [2, 4]);
        assert_eq!(ports[4].to_string(), "ring:b_2");
        assert_eq!(ports[4].to_string().parse(), Ok(ports[4].clone()));
        assert!(ports.iter().all(PortDescription::is_joined));
    }

    #[test]
    fn errors_name_the_port_and_the_remedy() {
        let many = vec!["memory"; PORTS_MAX + 1].join(",");
        for (list, problem, remedy) in [
            ("", "no port", "memory,memory"),
            ("memory,,memory", "unknown kind of port ''", "memory"),
            ("dummy:rate=1gbps", "unknown kind", "dummy"),
            ("memroy:delay=1ms", "did you mean memory?", "The kinds are"),
            ("memory,eth 0", "unknown kind", "af_packet:eth0"),
            ("isa:0000:03:00.0", "'isa'", "The kinds are: memory"),
            ("pci:03:00", "'03:00'", "pci:0000:03:00.0"),
            ("memory,vdev:", "'vdev:'", "vdev:net_null"),
            ("ring:a,memory", "port 0 is alone", "ring:a,ring:a"),
            ("ring:a,ring:b", "port 0 is alone", "ring:a,ring:a"),
            ("ring:a,ring:a,memory,ring:a", "port 3 is one too", "own"),
            ("ring:,ring:", "''", "ring:a,ring:a"),
            ("ring:a-b,ring:a-b", "'a-b'", "letters"),
            ("ring:thirteen_char,memory", "'thirteen_char'", "1 to 12"),
            (
                "vdev:net_tap0,vdev:net_tap0,iface=x",
                "ports 0 and 1",
                "once",
            ),
            ("af_packet:", "''", "`ip link`"),
            (
                "af_packet:sixteen_letters_",
                "'sixteen_letters_'",
                "`ip link`",
            ),
            ("eth0,memory,af_packet:eth0", "ports 0 and 2", "once"),
            ("eth0,af_xdp:eth0:mode=native", "ports 0 and 1", "once"),
            ("af_xdp:", "''", "af_xdp:eth0"),
            ("af_xdp:a b:queues=1", "'a b'", "`ip link`"),
            ("af_xdp:eth0:queues=x", "'x'", "queues=2"),
            ("eth0,memory:delay=1ms", "port 1", "Add another"),
            ("memory,memory:delay=x", "'memory:delay=x'", "delay=1ms"),
            ("memory,memory,memory:delay=1ms", "port 2", "Add another"),
            (&many, "33 ports", "at most 32"),
        ] {
            let error = parse_ports(list).expect_err(list).to_string();
            assert!(error.contains(problem) && error.contains(remedy), "{error}");
        }
    }
}
