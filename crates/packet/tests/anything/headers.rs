//! Any bytes as each header in turn: what can be parsed is emitted and parsed to the same.

use allosaur_packet::link::arp::ArpHeader;
use allosaur_packet::link::ethernet::EthernetHeader;
use allosaur_packet::link::vlan::VlanHeader;
use allosaur_packet::network::icmpv4::Icmpv4Header;
use allosaur_packet::network::icmpv6::Icmpv6Header;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4View};
use allosaur_packet::network::ipv6::{Ipv6Header, Ipv6View};
use allosaur_packet::network::ipv6_fragment::Ipv6FragmentHeader;
use allosaur_packet::network::ipv6_options::{Ipv6OptionsHeader, Ipv6OptionsView};
use allosaur_packet::network::ipv6_routing::{Ipv6RoutingHeader, Ipv6RoutingView};
use allosaur_packet::transport::tcp::{TcpHeader, TcpView};
use allosaur_packet::transport::udp::{UdpHeader, UdpView};

/// Parses, emits, parses again; the pretty printer must not mind either.
macro_rules! both_ways {
    ($header:ident, $bytes:expr) => {
        if let Ok(header) = $header::parse($bytes) {
            let mut emitted = vec![0xa5; header.buffer_len()];
            header.emit(&mut emitted);
            assert_eq!($header::parse(&emitted), Ok(header));
            let _ = header.to_string();
        }
    };
}

pub(crate) fn check(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 12 {
        0 => both_ways!(EthernetHeader, bytes),
        1 => both_ways!(VlanHeader, bytes),
        2 => both_ways!(ArpHeader, bytes),
        3 => both_ways!(Ipv4Header, bytes),
        4 => both_ways!(Ipv6Header, bytes),
        5 => both_ways!(Ipv6FragmentHeader, bytes),
        6 => both_ways!(Ipv6OptionsHeader, bytes),
        7 => both_ways!(Ipv6RoutingHeader, bytes),
        8 => both_ways!(Icmpv4Header, bytes),
        9 => both_ways!(Icmpv6Header, bytes),
        10 => both_ways!(TcpHeader, bytes),
        _ => both_ways!(UdpHeader, bytes),
    }
    views(kind % 12, bytes);
}

/// The accessors that cut something out, of every view that passes its check.
fn views(kind: u8, bytes: &[u8]) {
    match kind {
        3 => {
            if let Ok(view) = Ipv4View::new_checked(bytes) {
                let _ = (
                    view.payload(),
                    view.options().count(),
                    view.has_right_checksum(),
                );
            }
        }
        4 => {
            if let Ok(view) = Ipv6View::new_checked(bytes) {
                let _ = view.payload();
            }
        }
        6 => {
            if let Ok(view) = Ipv6OptionsView::new_checked(bytes) {
                let _ = (view.payload(), view.options().count());
            }
        }
        7 => {
            if let Ok(view) = Ipv6RoutingView::new_checked(bytes) {
                let _ = (view.payload(), view.data());
            }
        }
        10 => {
            if let Ok(view) = TcpView::new_checked(bytes) {
                let _ = (view.payload(), view.options().count());
            }
        }
        11 => {
            if let Ok(view) = UdpView::new_checked(bytes) {
                let _ = view.payload();
            }
        }
        _ => {}
    }
}
