//! Sockets of exporters: each has one of its own, so that a collector tells them apart by their ports.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;

use allosaur_emulation::exports::Udp;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, setsockopt, socket, sockopt,
};

/// Opens the socket of an exporter; gives where it sends to, too. What fails is logged.
///
/// # Errors
/// When the host has no address, or the system refuses: another's address needs `CAP_NET_ADMIN`, an
/// interface `CAP_NET_RAW`.
pub(super) fn open(udp: &Udp) -> Result<(UdpSocket, SocketAddr)> {
    try_open(udp).inspect_err(|error| {
        let from = udp
            .from
            .map(|from| format!(" from {from}"))
            .unwrap_or_default();
        tracing::warn!("an exporter cannot send to {}{from}: {error}", udp.to);
    })
}

fn try_open(udp: &Udp) -> Result<(UdpSocket, SocketAddr)> {
    let none = || Error::other("the host has no address, or none of the client's family");
    let mut found = udp.to.to_socket_addrs()?;
    let to = found
        .find(|to| udp.from.is_none() || to.is_ipv4())
        .ok_or_else(none)?;
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let own = socket(family, SockType::Datagram, flags, None)?;
    if let Some(interface) = &udp.interface {
        setsockopt(&own, sockopt::BindToDevice, &OsString::from(interface))?;
    }
    match (udp.from, to) {
        (Some(from), _) => {
            setsockopt(&own, sockopt::IpTransparent, &true)?;
            bind(
                own.as_raw_fd(),
                &SockaddrIn::from(SocketAddrV4::new(from, 0)),
            )?;
        }
        (None, SocketAddr::V4(_)) => bind(own.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, 0))?,
        (None, SocketAddr::V6(_)) => {
            let any = std::net::SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, 0, 0, 0);
            bind(own.as_raw_fd(), &SockaddrIn6::from(any))?;
        }
    }
    Ok((UdpSocket::from(own), to))
}
