//! The key of a flow: its two ends in 16 bytes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::spaces::{AddressSpaces, SpaceIndex};

/// The protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The protocol of a flow and the version of IP, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowScope(u8);

impl FlowScope {
    const UDP: u8 = 1;
    const IPV6: u8 = 1 << 1;

    /// A protocol over IPv4 or IPv6.
    #[inline]
    pub fn new(protocol: Protocol, is_v6: bool) -> FlowScope {
        let protocol = if protocol == Protocol::Udp {
            FlowScope::UDP
        } else {
            0
        };
        let version = if is_v6 { FlowScope::IPV6 } else { 0 };
        FlowScope(protocol | version)
    }

    /// TCP or UDP.
    #[inline]
    pub fn protocol(self) -> Protocol {
        match self.0 & FlowScope::UDP {
            0 => Protocol::Tcp,
            _ => Protocol::Udp,
        }
    }

    /// Whether it is IPv6.
    #[inline]
    pub fn is_v6(self) -> bool {
        self.0 & FlowScope::IPV6 != 0
    }
}

impl From<Protocol> for FlowScope {
    /// Over IPv4.
    fn from(protocol: Protocol) -> FlowScope {
        FlowScope::new(protocol, false)
    }
}

/// The two ends of a flow, seen from ours. In memory its parts stand as in
/// [`packed`](FlowKey::packed), which then is two loads.
#[derive(Clone, Copy, Debug, Eq)]
#[repr(C)]
pub struct FlowKey {
    /// What the addresses belong to, see [`AddressSpaces`](super::AddressSpaces); `None` for IPv4
    /// without a tunnel.
    pub space: Option<SpaceIndex>,
    /// The interface that it is on.
    pub port: u8,
    /// TCP or UDP, over IPv4 or IPv6.
    pub scope: FlowScope,
    /// The other port.
    pub remote_port: u16,
    /// Our port.
    pub local_port: u16,
    /// The other address, or its last 32 bits.
    pub remote: u32,
    /// Our address, or its last 32 bits.
    pub local: u32,
}

/// Millions of them are held at once.
const _: () = assert!(std::mem::size_of::<FlowKey>() == 16);

impl PartialEq for FlowKey {
    /// All parts at once: those that are compared are nearly always the same.
    #[inline]
    fn eq(&self, other: &FlowKey) -> bool {
        self.packed() == other.packed()
    }
}

impl FlowKey {
    /// The same in one number.
    #[inline]
    pub fn packed(&self) -> u128 {
        let space = self.space.map_or(0, SpaceIndex::number);
        let kind = u32::from(self.scope.0) << 24 | u32::from(self.port) << 16 | u32::from(space);
        u128::from(self.local) << 96
            | u128::from(self.remote) << 64
            | u128::from(self.local_port) << 48
            | u128::from(self.remote_port) << 32
            | u128::from(kind)
    }

    /// The addresses and ports: ours, and the others.
    pub fn endpoints(&self, spaces: &AddressSpaces) -> (SocketAddr, SocketAddr) {
        let long = self.space;
        let long = long.and_then(|space| spaces.addresses(space, self.local, self.remote));
        let (local, remote) = match long {
            Some((local, remote)) => (IpAddr::V6(local), IpAddr::V6(remote)),
            None => (
                IpAddr::V4(Ipv4Addr::from(self.local)),
                IpAddr::V4(Ipv4Addr::from(self.remote)),
            ),
        };
        (
            SocketAddr::new(local, self.local_port),
            SocketAddr::new(remote, self.remote_port),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::SPACES_MAX;

    #[test]
    fn keys_that_differ_differ_in_one_number() {
        let key = FlowKey {
            local: 1,
            remote: 2,
            local_port: 3,
            remote_port: 4,
            space: None,
            scope: Protocol::Tcp.into(),
            port: 0,
        };
        let others = [
            FlowKey { local: 2, ..key },
            FlowKey { remote: 1, ..key },
            FlowKey {
                local_port: 4,
                ..key
            },
            FlowKey {
                remote_port: 3,
                ..key
            },
            FlowKey {
                space: Some(SpaceIndex::of(0)),
                ..key
            },
            FlowKey {
                space: Some(SpaceIndex::of(SPACES_MAX - 1)),
                ..key
            },
            FlowKey {
                scope: Protocol::Udp.into(),
                ..key
            },
            FlowKey {
                scope: FlowScope::new(Protocol::Tcp, true),
                ..key
            },
            FlowKey {
                scope: FlowScope::new(Protocol::Udp, true),
                ..key
            },
            FlowKey { port: 255, ..key },
        ];
        for (number, other) in others.iter().enumerate() {
            assert_ne!(other.packed(), key.packed());
            let after = &others[number + 1..];
            assert!(after.iter().all(|one| one.packed() != other.packed()));
        }
    }
}
