//! Where clients' frames come from and go to, by their address: virtual interfaces and gateways.

use allosaur_packet::MacAddress;
use thiserror::Error;

use crate::encapsulation::Encapsulation;
use crate::session::LinkAddresses;
use crate::template::AddressRange;
use crate::transmit::PortIndex;

/// Most ranges of clients, and most virtual interfaces.
pub const RANGES_MAX: usize = 100_000;

/// A virtual interface on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its MAC address.
    pub mac: MacAddress,
    /// What its frames carry packets in.
    pub encapsulation: Encapsulation,
}

/// Clients in a row that share an interface and a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Their port.
    pub port: PortIndex,
    /// The first of them; of IPv6, the last 32 bits.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// Where their frames come from; `None` is the port itself, with its MAC address and VLAN.
    pub interface: Option<Interface>,
    /// Where their frames go; `None` is where those of the port go.
    pub gateway: Option<MacAddress>,
}

/// A topology that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// There are more than [`RANGES_MAX`].
    #[error("{count} ranges of clients; the most is {RANGES_MAX}. Join some")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A range whose last is before its first.
    #[error("range {range}: src_end is before src_start. Exchange them")]
    Empty {
        /// Its place in the list.
        range: usize,
    },
    /// Two ranges of one port have clients in common.
    #[error("ranges {first} and {second} of port {port} overlap. A client has one gateway")]
    Overlap {
        /// Of which port.
        port: PortIndex,
        /// The place of one in the list.
        first: usize,
        /// The place of the other.
        second: usize,
    },
}

/// All routes of a server.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// By port and first client.
    routes: Vec<Route>,
}

impl Topology {
    /// Checks routes as a whole.
    ///
    /// # Errors
    /// Which of them cannot be.
    pub fn new(routes: &[Route]) -> Result<Topology, TopologyError> {
        let count = routes.len();
        if count > RANGES_MAX {
            return Err(TopologyError::TooMany { count });
        }
        if let Some(range) = routes.iter().position(|route| route.last < route.first) {
            return Err(TopologyError::Empty { range });
        }
        let mut numbered: Vec<_> = routes.iter().cloned().zip(0..).collect();
        numbered.sort_by_key(|(route, _)| (route.port, route.first));
        for two in numbered.windows(2) {
            let [(one, first), (next, second)] = two else {
                continue;
            };
            if one.port == next.port && next.first <= one.last {
                return Err(TopologyError::Overlap {
                    port: one.port,
                    first: *first,
                    second: *second,
                });
            }
        }
        let routes = numbered.into_iter().map(|(route, _)| route);
        Ok(Topology {
            routes: routes.collect(),
        })
    }

    /// Where the frames of a client come from and go to; `link` is what its port has.
    pub fn link(&self, port: PortIndex, client: u32, link: LinkAddresses) -> LinkAddresses {
        let Some(route) = self.route(port, client) else {
            return link;
        };
        let (own, encapsulation) = match &route.interface {
            Some(interface) => (interface.mac, interface.encapsulation),
            None => (link.own, link.encapsulation),
        };
        LinkAddresses {
            own,
            peer: route.gateway.unwrap_or(link.peer),
            encapsulation,
        }
    }

    fn route(&self, port: PortIndex, client: u32) -> Option<&Route> {
        let after = self
            .routes
            .partition_point(|route| (route.port, route.first) <= (port, client));
        let route = self.routes.get(after.checked_sub(1)?)?;
        let range = AddressRange {
            first: route.first,
            last: route.last,
        };
        (route.port == port && range.contains(client)).then_some(route)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkAddresses = LinkAddresses {
        own: mac(1),
        peer: mac(2),
        encapsulation: Encapsulation::Vlan(7),
    };

    const fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    fn route(port: PortIndex, first: u32, last: u32, gateway: u8) -> Route {
        Route {
            port,
            first,
            last,
            interface: Some(Interface {
                mac: mac(gateway + 100),
                encapsulation: Encapsulation::Ethernet,
            }),
            gateway: Some(mac(gateway)),
        }
    }

    #[test]
    fn clients_go_their_own_ways() {
        let routes = [
            route(2, 10, 19, 3),
            route(0, 20, u32::MAX, 5),
            route(0, 10, 19, 4),
            Route {
                interface: None,
                ..route(4, 0, 0, 6)
            },
            Route {
                gateway: None,
                ..route(4, 1, 1, 7)
            },
        ];
        let topology = Topology::new(&routes).expect("nothing overlaps");
        let peer = |port, client| topology.link(port, client, LINK).peer;
        assert_eq!([peer(0, 10), peer(0, 19)], [mac(4), mac(4)]);
        assert_eq!([peer(0, 20), peer(0, u32::MAX)], [mac(5), mac(5)]);
        assert_eq!(
            [peer(2, 15), peer(2, 20), peer(0, 9)],
            [mac(3), mac(2), mac(2)]
        );
        let of_port = topology.link(4, 0, LINK);
        assert_eq!(
            (of_port.own, of_port.peer, of_port.encapsulation),
            (mac(1), mac(6), Encapsulation::Vlan(7))
        );
        let to_port = topology.link(4, 1, LINK);
        assert_eq!(
            (to_port.own, to_port.peer, to_port.encapsulation),
            (mac(107), mac(2), Encapsulation::Ethernet)
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let overlap = Topology::new(&[route(0, 10, 19, 3), route(2, 0, 5, 3), route(0, 5, 10, 3)]);
        let expected = TopologyError::Overlap {
            port: 0,
            first: 2,
            second: 0,
        };
        assert_eq!(overlap.err(), Some(expected));
        let empty = Topology::new(&[route(0, 10, 9, 3)]);
        assert_eq!(empty.err(), Some(TopologyError::Empty { range: 0 }));
        let many: Vec<_> = (0..=RANGES_MAX as u32).map(|n| route(0, n, n, 3)).collect();
        assert!(Topology::new(&many).is_err());
        assert!(Topology::new(&many[1..]).is_ok());
    }
}
