//! Answers to echo requests, whatever stands in front of them.

use std::net::Ipv6Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv6::Icmpv6View;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::Ipv6Header;
use serde_json::json;

use crate::test_net::Net;

const MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 1]);
const PEER_MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 2]);
const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// A frame with an echo message behind extension headers, the first of a kind.
fn echo(
    macs: [MacAddress; 2],
    [source, destination]: [Ipv6Addr; 2],
    kind: u8,
    (first, extensions): (IpProtocol, &[u8]),
) -> Vec<u8> {
    let mut message = [&[kind, 0, 0, 0, 0x12, 0x34, 0, 7], &b"some data"[..]].concat();
    let length = message.len() as u32;
    let sum = pseudo_header_v6(source, destination, IpProtocol::ICMPV6, length);
    Icmpv6View::new_unchecked(&mut message[..]).fill_checksum(sum);
    let header = Ipv6Header {
        payload_bytes: (extensions.len() + message.len()) as u16,
        ..Ipv6Header::new(source, destination, first)
    };
    let mut ip = vec![0; 40];
    header.emit(&mut ip);
    let link = [macs[1].octets(), macs[0].octets()].concat();
    [&link, &[0x86, 0xdd][..], &ip, extensions, &message].concat()
}

#[test]
fn extension_headers_are_not_copied_into_an_answer() {
    let mut net = Net::new(&["ipv6"], &[]);
    let fields = json!({"ipv6": ADDRESS.octets()});
    net.add(MAC, fields, json!({"ipv6": {}}))
        .expect("the client is new");
    net.sent();
    let icmp = IpProtocol::ICMPV6.0;
    let router_alert = [icmp, 0, 5, 2, 0, 0, 1, 0];
    // Hop-by-hop options, and behind them options for the destination.
    let both = [[60, 0, 5, 2, 0, 0, 1, 0], [icmp, 0, 1, 4, 0, 0, 0, 0]].concat();
    let none = (IpProtocol::ICMPV6, &[][..]);
    let expected = echo([MAC, PEER_MAC], [ADDRESS, PEER], 129, none);
    for extensions in [
        none,
        (IpProtocol::HOP_BY_HOP, &router_alert),
        (IpProtocol::HOP_BY_HOP, &both),
    ] {
        net.receive(&echo([PEER_MAC, MAC], [PEER, ADDRESS], 128, extensions));
        assert_eq!(net.sent_one(), expected, "{extensions:02x?}");
    }
}
