//! Any bytes as messages of a peer, and as a file of MRT: no panic, and what was read is written and read to
//! the same.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_bgp::routes::mrt;
use allosaur_bgp::session::BgpSession;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::session::event::BgpState;
use allosaur_bgp::wire::framing::{EXTENDED_MESSAGE_LEN_MAX, HEADER_LEN, emit_keepalive};
use allosaur_bgp::wire::header::MessageHeader;
use allosaur_bgp::wire::notification::Notification;
use allosaur_bgp::wire::open::Open;
use allosaur_bgp::wire::prefix::AddressFamily;
use allosaur_bgp::wire::refresh::RouteRefresh;
use allosaur_bgp::wire::update::{Update, UpdateFaults};

fn config() -> BgpSessionConfig {
    BgpSessionConfig {
        local_as: 65_001,
        peer_as: None,
        identifier: Ipv4Addr::new(192, 0, 2, 1),
        hold_time_s: 9,
        connect_retry_ns: 1_000_000_000,
        passive: false,
        families: vec![AddressFamily::Ipv4, AddressFamily::Ipv6],
        extended_messages: true,
        restart_time_s: Some(120),
        next_hop_ipv4: Ipv4Addr::new(192, 0, 2, 1),
        next_hop_ipv6: Ipv6Addr::LOCALHOST,
    }
}

/// What is right for any bytes.
pub(crate) fn check(bytes: &[u8]) {
    check_bodies(bytes);
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        let _ = mrt::read(bytes, family, usize::MAX).map_err(|error| error.to_string());
    }
    for is_established in [false, true] {
        check_session(bytes, is_established);
    }
}

fn check_bodies(bytes: &[u8]) {
    let mut out = Vec::new();
    if let Ok(open) = Open::parse(bytes) {
        // A long form may hold more than the one parameter that is written has room for.
        if bytes.len() < 3000 {
            open.emit(&mut out);
            assert_eq!(Open::parse(&out[HEADER_LEN..]), Ok(open));
        }
    }
    if let Some(notification) = Notification::parse(bytes) {
        let _ = notification.to_string();
        out.clear();
        notification.emit(&mut out);
        assert!(Notification::parse(&out[HEADER_LEN..]).is_some());
    }
    if let Ok(refresh) = RouteRefresh::parse(bytes) {
        out.clear();
        refresh.emit(&mut out);
        assert_eq!(RouteRefresh::parse(&out[HEADER_LEN..]), Ok(refresh));
    }
    for four_octet_as in [false, true] {
        let Ok((mut update, faults)) = Update::parse(bytes, four_octet_as) else {
            continue;
        };
        let is_routes = !update.announced_ipv4.is_empty() || !update.announced_ipv6.is_empty();
        if faults != UpdateFaults::default() || !is_routes || bytes.len() > 30_000 {
            continue;
        }
        // What is written always has it.
        update.attributes.local_pref.get_or_insert(100);
        if update.announced_ipv4.is_empty() {
            update.next_hop_ipv4 = None;
        }
        out.clear();
        update.emit(true, &mut out);
        let again = Update::parse(&out[HEADER_LEN..], true);
        assert_eq!(again, Ok((update, UpdateFaults::default())));
    }
}

fn check_session(bytes: &[u8], is_established: bool) {
    let mut session = BgpSession::new(config(), 1).expect("a right configuration");
    session.start(0);
    session.handle_connected(0);
    if is_established {
        let mut peer = config();
        peer.local_as = 65_002;
        let mut given = Vec::new();
        peer.open(false).emit(&mut given);
        emit_keepalive(&mut given);
        session.handle_bytes(0, &given);
        assert_eq!(session.state(), BgpState::Established);
    }
    // Cut anywhere: a message comes in parts.
    let cut = bytes
        .first()
        .map_or(0, |b| usize::from(*b).min(bytes.len()));
    session.handle_bytes(1, &bytes[..cut]);
    session.handle_bytes(2, &bytes[cut..]);
    let mut out = Vec::new();
    session.poll_transmit(3, 1 << 16, &mut out);
    let mut rest = out.as_slice();
    while !rest.is_empty() {
        let header = MessageHeader::parse(rest, EXTENDED_MESSAGE_LEN_MAX);
        let header = header.expect("ours is right").expect("ours is whole");
        rest = &rest[header.length..];
    }
    while session.poll_event().is_some() {}
}
