//! How a user names ports: a list such as `memory,memory:delay=1ms`.
//!
//! What lives here: the list and its kinds. What does not: the settings of a kind, which the
//! kind itself reads.

use std::fmt;
use std::str::FromStr;

use crate::PortError;
use crate::memory::LinkSettings;

/// Most ports of one server; the RPC numbers them with a byte.
pub const PORTS_MAX: usize = 32;

/// One port: a kind, then its settings behind colons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PortDescription {
    /// `memory`: see [`memory`](crate::memory). The settings are those of the direction that
    /// leaves this port; its peer's settings are those of the way back.
    Memory(LinkSettings),
}

impl FromStr for PortDescription {
    type Err = PortError;

    fn from_str(given: &str) -> Result<PortDescription, PortError> {
        let (kind, settings) = given.split_once(':').unwrap_or((given, ""));
        if kind != "memory" {
            return Err(PortError::Description {
                given: given.to_owned(),
                problem: format!("unknown kind of port '{kind}'"),
                remedy: "The kinds are: memory".to_owned(),
            });
        }
        match settings.parse() {
            Ok(settings) => Ok(PortDescription::Memory(settings)),
            Err(PortError::Description {
                problem, remedy, ..
            }) => Err(PortError::Description {
                given: given.to_owned(),
                problem,
                remedy,
            }),
        }
    }
}

impl fmt::Display for PortDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortDescription::Memory(settings) = self;
        let text = settings.to_string();
        let colon = if text.is_empty() { "" } else { ":" };
        write!(f, "memory{colon}{text}")
    }
}

/// Reads a comma-separated list of ports: 1 to [`PORTS_MAX`] of them.
///
/// # Errors
///
/// Names the port that could not be understood and what to write instead. An odd last memory
/// port has no peer and so no link: settings there are refused.
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
    let ports: Vec<PortDescription> = list
        .split(',')
        .map(|port| port.trim().parse())
        .collect::<Result<_, _>>()?;
    if ports.len() > PORTS_MAX {
        let problem = format!("{} ports are too many", ports.len());
        return error(problem, &format!("Name at most {PORTS_MAX}"));
    }
    if let [.., PortDescription::Memory(settings)] = &ports[..] {
        if ports.len() % 2 == 1 && *settings != LinkSettings::default() {
            return error(
                format!("port {} has no peer and so no link", ports.len() - 1),
                "Add another memory port behind it, or leave its settings out",
            );
        }
    }
    Ok(ports)
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
        assert_eq!(ports[1].to_string().parse(), Ok(ports[1]));
        assert_eq!(ports[0].to_string(), "memory");
    }

    #[test]
    fn errors_name_the_port_and_the_remedy() {
        let many = vec!["memory"; PORTS_MAX + 1].join(",");
        for (list, problem, remedy) in [
            ("", "no port", "memory,memory"),
            ("memory,,memory", "unknown kind of port ''", "memory"),
            ("eth0", "'eth0'", "The kinds are: memory"),
            ("memory,memory:delay=x", "'memory:delay=x'", "delay=1ms"),
            ("memory,memory,memory:delay=1ms", "port 2", "Add another"),
            (&many, "33 ports", "at most 32"),
        ] {
            let error = parse_ports(list).expect_err(list).to_string();
            assert!(error.contains(problem) && error.contains(remedy), "{error}");
        }
    }
}
