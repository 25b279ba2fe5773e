//! Servers of DHCP for IPv4 and IPv6 that agree to everything, and a link that gives datagrams back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use allosaur_packet::application::dhcpv4::{
    DhcpHeader, DhcpOptions, HEADER_BYTES, MessageType, REPLY,
};
use allosaur_packet::application::dhcpv6::{Dhcpv6Message, Dhcpv6MessageType};
use allosaur_packet::frame::{Network, Transport, parse};
use allosaur_packet::network::checksum::{pseudo_header_v4, pseudo_header_v6};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::transport::udp::{UdpHeader, UdpView};

use super::Peer;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 1);
const DUID: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 1];

/// A server for both families, with T1 and T2 in seconds.
pub(crate) struct Leases {
    pub(crate) renew_s: u32,
    pub(crate) rebind_s: u32,
    pub(crate) lease_s: u32,
}

impl Peer for Leases {
    fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let layout = parse(frame);
        let message = layout.payload(frame);
        let answer = match (layout.network, layout.transport) {
            (Network::Ipv4, Transport::Udp) => self.answer_v4(message),
            (Network::Ipv6, Transport::Udp) => self.answer_v6(frame, message),
            _ => None,
        };
        answer.into_iter().collect()
    }
}

impl Leases {
    fn answer_v4(&self, message: &[u8]) -> Option<Vec<u8>> {
        let asked = DhcpHeader::parse(message).ok()?;
        let answer = match DhcpOptions::parse(message).ok()?.message_type? {
            MessageType::DISCOVER => MessageType::OFFER,
            MessageType::REQUEST => MessageType::ACK,
            _ => return None,
        };
        let mac = asked.chaddr?;
        let address = Ipv4Addr::new(10, 9, 0, 10 + mac.octets()[5]);
        let header = DhcpHeader {
            operation: REPLY,
            yiaddr: address,
            ..asked
        };
        let mut reply = vec![0; HEADER_BYTES];
        header.emit(&mut reply);
        reply.extend([53, 1, answer.0]);
        for (code, field) in [
            (54, SERVER.octets()),
            (51, self.lease_s.to_be_bytes()),
            (58, self.renew_s.to_be_bytes()),
            (59, self.rebind_s.to_be_bytes()),
        ] {
            reply.extend([code, 4]);
            reply.extend(field);
        }
        reply.push(255);
        let from = (SERVER, 67).into();
        Some(datagram(mac.octets(), from, (address, 68).into(), &reply))
    }

    fn answer_v6(&self, frame: &[u8], message: &[u8]) -> Option<Vec<u8>> {
        let asked = Dhcpv6Message::parse(message).ok()?;
        let answer = match asked.message_type {
            Dhcpv6MessageType::SOLICIT => Dhcpv6MessageType::ADVERTISE,
            Dhcpv6MessageType::REQUEST | Dhcpv6MessageType::RENEW | Dhcpv6MessageType::RELEASE => {
                Dhcpv6MessageType::REPLY
            }
            _ => return None,
        };
        let mac: [u8; 6] = frame[6..12].try_into().ok()?;
        let mut address = Ipv6Addr::new(0x2001, 0xdb8, 0x66, 0, 0, 0, 0, 0).octets();
        address[12..].copy_from_slice(&mac[2..]);
        let mut reply = asked.xid.to_be_bytes().to_vec();
        reply[0] = answer.0;
        let lease = self.lease_s.to_be_bytes();
        let address = option(5, &[&address[..], &lease, &lease].concat());
        let [iaid, renew, rebind] =
            [asked.association?.iaid, self.renew_s, self.rebind_s].map(u32::to_be_bytes);
        reply.extend(option(1, asked.client_id?));
        reply.extend(option(2, &DUID));
        reply.extend(option(3, &[&iaid[..], &renew, &rebind, &address].concat()));
        let local: [u8; 16] = frame[22..38].try_into().ok()?;
        let to = (Ipv6Addr::from(local), 546).into();
        Some(datagram(mac, (SERVER_V6, 547).into(), to, &reply))
    }
}

/// A link that gives datagrams back as they are.
pub(crate) struct Loop;

impl Peer for Loop {
    fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let is_udp = parse(frame).transport == Transport::Udp;
        is_udp.then(|| frame.to_vec()).into_iter().collect()
    }
}

fn option(code: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("it is short");
    [&code.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

fn datagram(mac: [u8; 6], source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("it is short");
    let header = UdpHeader {
        source_port: source.port(),
        destination_port: destination.port(),
        length_bytes: length,
    };
    let mut udp = vec![0; usize::from(length)];
    header.emit(&mut udp);
    udp[8..].copy_from_slice(payload);
    let (ether_type, ip, sum) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = Ipv4Header {
                total_bytes: 20 + length,
                ..Ipv4Header::new(from, to, IpProtocol::UDP)
            };
            let mut bytes = vec![0; 20];
            header.emit(&mut bytes);
            let sum = pseudo_header_v4(from, to, IpProtocol::UDP, length);
            ([8, 0], bytes, sum)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = Ipv6Header {
                payload_bytes: length,
                ..Ipv6Header::new(from, to, IpProtocol::UDP)
            };
            let mut bytes = vec![0; 40];
            header.emit(&mut bytes);
            let sum = pseudo_header_v6(from, to, IpProtocol::UDP, u32::from(length));
            ([0x86, 0xdd], bytes, sum)
        }
        _ => unreachable!("both are of one family"),
    };
    UdpView::new_unchecked(&mut udp).fill_checksum(sum);
    [&mac[..], &MAC, &ether_type, &ip, &udp].concat()
}
