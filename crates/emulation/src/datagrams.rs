//! Datagrams of clients (RFC 768), sent on flows of [`sockets`](crate::sockets) or without.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use allosaur_packet::MacAddress;
use allosaur_packet::transport::udp::HEADER_BYTES;

use crate::client::{Client, ClientId};
use crate::namespace::Namespace;
use crate::plugin::Context;
use crate::udp::{Macs, Service, TIME_TO_LIVE};

/// Hop limit of IPv6 on flows.
const HOP_LIMIT: u8 = 64;
/// Hops to multicast addresses, of both families.
const MULTICAST_HOPS: u8 = 1;
/// Bytes of the headers in front of the payload.
const IPV4_HEADERS: usize = 28;
const IPV6_HEADERS: usize = 48;
/// MTU of IPv6 links whose router said nothing (Ethernet).
const IPV6_MTU: u16 = 1500;

/// Why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// It does not fit into one packet.
    TooLong,
    /// The MAC address of the gateway is not known.
    Unresolved,
    /// The client has no address of that family.
    NoAddress,
}

/// The address that a client sends from to others of a family.
pub(crate) fn source(context: &Context<'_>, client: ClientId, to: IpAddr) -> Option<IpAddr> {
    source_of(context.namespace, context.client(client)?, to.is_ipv6())
}

/// The address that a client of a namespace sends from: of IPv6 the leased one, else the given one,
/// else that of the router's prefix.
pub(crate) fn source_of(namespace: &Namespace, client: &Client, is_ipv6: bool) -> Option<IpAddr> {
    if !is_ipv6 {
        return (!client.ipv4.is_unspecified()).then_some(IpAddr::V4(client.ipv4));
    }
    let prefix = namespace.router.and_then(|router| router.prefix);
    let slaac = prefix.filter(|(_, length)| *length == 64);
    let slaac = slaac.map_or(Ipv6Addr::UNSPECIFIED, |(prefix, _)| client.eui64(prefix));
    let addresses = [client.dhcp_ipv6, client.ipv6, slaac];
    let address = addresses
        .into_iter()
        .find(|address| !address.is_unspecified());
    address.map(IpAddr::V6)
}

/// The longest payload that a client sends in one packet.
pub(crate) fn payload_bytes_max(context: &Context<'_>, client: ClientId, ipv6: bool) -> usize {
    let headers = if ipv6 { IPV6_HEADERS } else { IPV4_HEADERS };
    usize::from(packet_bytes_max(context, client, ipv6)).saturating_sub(headers)
}

/// The longest packet that a client sends.
pub(crate) fn packet_bytes_max(context: &Context<'_>, client: ClientId, ipv6: bool) -> u16 {
    if ipv6 {
        let mtu = context.namespace.router.map_or(0, |router| router.mtu);
        return if mtu == 0 { IPV6_MTU } else { mtu };
    }
    context.client(client).map_or(0, |client| client.mtu_ipv4)
}

/// The MAC addresses of a packet of a client to others: its own, and the gateway's if that is known.
pub(crate) fn way(context: &Context<'_>, client: ClientId, to: IpAddr) -> Option<[MacAddress; 2]> {
    let found = context.client(client)?;
    let gateway = gateway_of(context.namespace, found, to.is_ipv6());
    Some([found.mac, gateway?])
}

/// The MAC address of a client's gateway, if it is known.
pub(crate) fn gateway_of(
    namespace: &Namespace,
    client: &Client,
    is_ipv6: bool,
) -> Option<MacAddress> {
    if !is_ipv6 {
        return client.gateway_mac_ipv4;
    }
    let learned = namespace.router.and_then(|router| router.mac);
    client.gateway_mac_ipv6.or(learned)
}

/// What a user wants of the network header of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Type of service, or traffic class.
    pub(crate) type_of_service: u8,
    /// Time to live, or hop limit, if it shall not be the usual one.
    pub(crate) hops: Option<u8>,
}

/// Sends a datagram of a client from a port of its own, by way of its gateway or to a multicast
/// address, and counts it.
pub(crate) fn send(
    context: &mut Context<'_>,
    client: ClientId,
    port: u16,
    remote: SocketAddr,
    payload: &[u8],
) -> Result<(), SendError> {
    send_as(context, Wanted::default(), client, port, remote, payload)
}

/// The same, with a network header as a user wants it.
pub(crate) fn send_as(
    context: &mut Context<'_>,
    wanted: Wanted,
    client: ClientId,
    port: u16,
    remote: SocketAddr,
    payload: &[u8],
) -> Result<(), SendError> {
    let sent = try_send(context, wanted, client, port, remote, payload);
    let counters = &mut context.namespace.sockets.of(client).udp;
    match sent {
        Ok(()) => {
            counters.tx_packets += 1;
            counters.tx_bytes += payload.len() as u32;
        }
        Err(SendError::TooLong) => counters.too_long += 1,
        Err(SendError::Unresolved | SendError::NoAddress) => counters.unresolved += 1,
    }
    sent
}

fn try_send(
    context: &mut Context<'_>,
    wanted: Wanted,
    client: ClientId,
    port: u16,
    remote: SocketAddr,
    payload: &[u8],
) -> Result<(), SendError> {
    if payload.len() > payload_bytes_max(context, client, remote.is_ipv6()) {
        return Err(SendError::TooLong);
    }
    let from = source(context, client, remote.ip()).ok_or(SendError::NoAddress)?;
    let found = context.client(client).ok_or(SendError::NoAddress)?;
    let (macs, hops) = match multicast_mac(remote.ip()) {
        Some(mac) => ([found.mac, mac], MULTICAST_HOPS),
        None => {
            let macs = way(context, client, remote.ip()).ok_or(SendError::Unresolved)?;
            let hops = if remote.is_ipv6() {
                HOP_LIMIT
            } else {
                TIME_TO_LIVE
            };
            (macs, hops)
        }
    };
    let service = Service {
        type_of_service: wanted.type_of_service,
        hops: wanted.hops.unwrap_or(hops),
    };
    let from = SocketAddr::new(from, port);
    send_packet(context, macs, from, remote, service, payload);
    Ok(())
}

/// The Ethernet address of a multicast group (RFC 1112, section 6.4, and RFC 2464, section 7).
pub(crate) fn multicast_mac(address: IpAddr) -> Option<MacAddress> {
    match address {
        IpAddr::V4(address) if address.is_multicast() => {
            let [_, a, b, c] = address.octets();
            Some(MacAddress([0x01, 0x00, 0x5e, a & 0x7f, b, c]))
        }
        IpAddr::V6(address) if address.is_multicast() => {
            let [.., a, b, c, d] = address.octets();
            Some(MacAddress([0x33, 0x33, a, b, c, d]))
        }
        _ => None,
    }
}

/// Sends a datagram with all its addresses given, from the first MAC address to the second.
/// Addresses of different families send nothing, nor does a payload that no packet holds.
pub(crate) fn send_packet(
    context: &mut Context<'_>,
    [source, destination]: [MacAddress; 2],
    from: SocketAddr,
    to: SocketAddr,
    service: Service,
    payload: &[u8],
) {
    let bytes = payload.len();
    if HEADER_BYTES + bytes > usize::from(u16::MAX) {
        return;
    }
    let macs = Macs {
        source,
        destination,
    };
    let write = |datagram: &mut [u8]| datagram.copy_from_slice(payload);
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            context.send_udp_ipv4(macs, service, from, to, bytes, write);
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            context.send_udp_ipv6(macs, service, from, to, bytes, write);
        }
        _ => {}
    }
}
