//! The connections of SSH that the user may have come by: of this process, of those that started it
//! (`sudo` forgets the variable), and all that are open to port 22. Rather one too many: who loses
//! this connection may lose the machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::tree::Tree;

/// The port of SSH.
const SSH_PORT: u16 = 22;
/// `TCP_ESTABLISHED` of the kernel, as `/proc/net/tcp` shows it.
const ESTABLISHED: &str = "01";
/// Processes that started one another, at most.
const ANCESTORS_MAX: usize = 64;

/// A connection that a user came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The machine's address.
    pub local: IpAddr,
    /// The user's address.
    pub remote: IpAddr,
    /// The interface, where the addresses themselves name it.
    pub interface: Option<String>,
}

/// All that there are, each once.
pub(super) fn all(tree: Tree<'_>, ssh_connection: Option<&str>) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    let own = ssh_connection.and_then(from_variable);
    let inherited = ancestors(tree).filter_map(|process| {
        let variables = tree.text(&format!("proc/{process}/environ"));
        let mut variables = variables.split('\0');
        from_variable(variables.find_map(|text| text.strip_prefix("SSH_CONNECTION="))?)
    });
    let files = [tree.text("proc/net/tcp"), tree.text("proc/net/tcp6")];
    let open = files
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(from_table);
    for session in own.into_iter().chain(inherited).chain(open) {
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    sessions
}

/// What SSH_CONNECTION says: the user's address and port, then the machine's.
fn from_variable(text: &str) -> Option<Session> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [remote, _, local, _] = words[..] else {
        return None;
    };
    let parsed = |text: &str| {
        let (address, interface) = text.split_once('%').unwrap_or((text, ""));
        let interface = Some(interface.to_owned()).filter(|name| !name.is_empty());
        Some((plain(address.parse().ok()?), interface))
    };
    let ((remote, behind), (local, on)) = (parsed(remote)?, parsed(local)?);
    Some(Session {
        local,
        remote,
        interface: on.or(behind),
    })
}

/// A line of `/proc/net/tcp` or `/proc/net/tcp6`, if it is an open connection to SSH.
fn from_table(line: &str) -> Option<Session> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [local, remote] = [words.get(1)?, words.get(2)?].map(|word| word.split_once(':'));
    let ((local, port), (remote, _)) = (local?, remote?);
    let is_ssh = u16::from_str_radix(port, 16).ok()? == SSH_PORT;
    if !is_ssh || *words.get(3)? != ESTABLISHED {
        return None;
    }
    Some(Session {
        local: address(local)?,
        remote: address(remote)?,
        interface: None,
    })
}

/// An address as the kernel's tables show it: numbers of this machine, of four bytes each.
fn address(hex: &str) -> Option<IpAddr> {
    let numbers = hex.as_bytes().chunks(8).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    });
    let bytes = numbers.collect::<Option<Vec<[u8; 4]>>>()?.concat();
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(plain(
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        )),
        _ => None,
    }
}

/// IPv4 addresses within IPv6 as what they are.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(ipv6) => ipv6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// This process and those that started it.
fn ancestors(tree: Tree<'_>) -> impl Iterator<Item = u32> + '_ {
    let parent = move |process: &u32| {
        let text = tree.text(&format!("proc/{process}/stat"));
        // The name stands in parentheses, and may have any characters in it.
        let behind = text.rsplit_once(')')?.1;
        behind
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
            .filter(|&parent| parent > 0)
    };
    let own = std::process::id();
    std::iter::successors(Some(own), parent).take(ANCESTORS_MAX)
}
