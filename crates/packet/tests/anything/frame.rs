//! Any frame: offsets stay in it and in order, and a header that the layout names can be viewed.

use allosaur_packet::frame::{self, Network, Transport};
use allosaur_packet::network::icmpv4::Icmpv4View;
use allosaur_packet::network::icmpv6::Icmpv6View;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_packet::transport::tcp::TcpView;
use allosaur_packet::transport::udp::UdpView;

pub(crate) fn check(bytes: &[u8]) {
    let layout = frame::parse(bytes);
    let offsets = [
        layout.network_offset,
        layout.transport_offset,
        layout.payload_offset,
        layout.end_offset,
    ];
    assert!(offsets.is_sorted(), "{layout:?}");
    assert!(usize::from(layout.end_offset) <= bytes.len(), "{layout:?}");

    let network = &bytes[usize::from(layout.network_offset)..];
    match layout.network {
        Network::Ipv4 => drop(Ipv4View::new_checked(network).expect("the layout names IPv4")),
        Network::Ipv6 => drop(Ipv6View::new_checked(network).expect("the layout names IPv6")),
        Network::Arp | Network::None => {}
    }
    let segment = layout.segment(bytes);
    match layout.transport {
        Transport::Tcp => {
            let view = TcpView::new_checked(segment).expect("the layout names TCP");
            assert_eq!(view.payload(), layout.payload(bytes));
        }
        Transport::Udp => drop(UdpView::new_checked(segment).expect("the layout names UDP")),
        Transport::Icmpv4 => drop(Icmpv4View::new_checked(segment).expect("the layout names it")),
        Transport::Icmpv6 => drop(Icmpv6View::new_checked(segment).expect("the layout names it")),
        Transport::None => {}
    }
    let _ = layout.to_string();
}
