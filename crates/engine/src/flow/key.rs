//! The key of a flow: its two ends in 16 bytes.

use super::prefixes::PrefixIndex;

/// The protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Addresses that mean something among each other only: those in a tunnel, or of a customer, may be
/// the same as those outside. The default is the one of frames without a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressSpace(u8);

impl AddressSpace {
    /// The highest number.
    pub const MAX: u8 = 0x7f;

    /// The space of this number; `None` above [`MAX`](AddressSpace::MAX).
    pub fn new(number: u8) -> Option<AddressSpace> {
        (number <= AddressSpace::MAX).then_some(AddressSpace(number))
    }
}

/// The protocol of a flow and the address space that its addresses belong to, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowScope(u8);

impl FlowScope {
    /// A protocol in an address space.
    #[inline]
    pub fn new(protocol: Protocol, space: AddressSpace) -> FlowScope {
        FlowScope(space.0 << 1 | u8::from(protocol == Protocol::Udp))
    }

    /// TCP or UDP.
    #[inline]
    pub fn protocol(self) -> Protocol {
        match self.0 & 1 {
            0 => Protocol::Tcp,
            _ => Protocol::Udp,
        }
    }

    /// The address space.
    pub fn space(self) -> AddressSpace {
        AddressSpace(self.0 >> 1)
    }
}

impl From<Protocol> for FlowScope {
    /// In the space of frames without a tunnel.
    fn from(protocol: Protocol) -> FlowScope {
        FlowScope::new(protocol, AddressSpace::default())
    }
}

/// The two ends of a flow, seen from ours. In memory its parts stand as in
/// [`packed`](FlowKey::packed), which then is two loads.
#[derive(Clone, Copy, Debug, Eq)]
#[repr(C)]
pub struct FlowKey {
    /// The pair of IPv6 prefixes, see [`Prefixes`](super::Prefixes); `None` for IPv4.
    pub prefixes: Option<PrefixIndex>,
    /// The interface that it is on.
    pub port: u8,
    /// TCP or UDP, and in which address space.
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
        let network = self.prefixes.map_or(0, PrefixIndex::number);
        let kind = u32::from(self.scope.0) << 24 | u32::from(self.port) << 16 | u32::from(network);
        u128::from(self.local) << 96
            | u128::from(self.remote) << 64
            | u128::from(self.local_port) << 48
            | u128::from(self.remote_port) << 32
            | u128::from(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::PREFIXES_MAX;

    #[test]
    fn keys_that_differ_differ_in_one_number() {
        let key = FlowKey {
            local: 1,
            remote: 2,
            local_port: 3,
            remote_port: 4,
            prefixes: None,
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
                prefixes: Some(PrefixIndex::of(0)),
                ..key
            },
            FlowKey {
                prefixes: Some(PrefixIndex::of(PREFIXES_MAX)),
                ..key
            },
            FlowKey {
                scope: Protocol::Udp.into(),
                ..key
            },
            FlowKey {
                scope: FlowScope::new(Protocol::Tcp, AddressSpace(1)),
                ..key
            },
            FlowKey {
                scope: FlowScope::new(Protocol::Udp, AddressSpace(AddressSpace::MAX)),
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
