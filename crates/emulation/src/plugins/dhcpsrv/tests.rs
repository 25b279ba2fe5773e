//! The server against hosts that the tests play, and against the client of the emulation.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{
    BROADCAST_FLAG, CLIENT_PORT, DhcpHeader, DhcpOptions, HEADER_BYTES, MessageType, REQUEST,
    SERVER_PORT, code,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_net::{Net, datagram};

const SERVER_MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 0]);
const GATEWAY_MAC: MacAddress = MacAddress([0, 0, 2, 0, 0, 0]);
const SERVER: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);
const RELAY: Ipv4Addr = Ipv4Addr::new(48, 0, 0, 1);
const HEADERS: usize = 14 + 20 + 8;

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(16, 0, 0, last)
}

/// What a host says; a test changes what it wants.
#[derive(Clone)]
struct Request {
    message_type: MessageType,
    header: DhcpHeader,
    options: Vec<(u8, Vec<u8>)>,
}

impl Request {
    fn new(host: u16, message_type: MessageType) -> Request {
        let [high, low] = host.to_be_bytes();
        let mac = MacAddress([0, 0, 3, 0, high, low]);
        Request {
            message_type,
            header: DhcpHeader::new(REQUEST, mac, 7),
            options: Vec::new(),
        }
    }

    fn with(mut self, code: u8, data: impl Into<Vec<u8>>) -> Request {
        self.options.push((code, data.into()));
        self
    }

    /// Meant for a server, about an address.
    fn about(self, server: Ipv4Addr, wanted: Ipv4Addr) -> Request {
        self.with(code::SERVER_ID, server.octets())
            .with(code::REQUESTED_ADDRESS, wanted.octets())
    }

    fn at_address(mut self, address: Ipv4Addr) -> Request {
        self.header.ciaddr = address;
        self
    }

    fn by_relay(mut self) -> Request {
        self.header.giaddr = RELAY;
        self
    }

    fn message(&self) -> Vec<u8> {
        let mut message = vec![0; HEADER_BYTES];
        self.header.emit(&mut message);
        message.extend([code::MESSAGE_TYPE, 1, self.message_type.0]);
        for (code, data) in &self.options {
            message.extend([*code, data.len() as u8]);
            message.extend(data);
        }
        message.push(code::END);
        message
    }

    fn frame(&self) -> Vec<u8> {
        frame_of(&self.message())
    }
}

fn frame_of(message: &[u8]) -> Vec<u8> {
    let from = (Ipv4Addr::UNSPECIFIED, CLIENT_PORT).into();
    let to = (Ipv4Addr::BROADCAST, SERVER_PORT).into();
    datagram([GATEWAY_MAC, MacAddress::BROADCAST], from, to, message)
}

/// An answer: where the frame goes, its header, its options.
struct Answer {
    mac: MacAddress,
    destination: Ipv4Addr,
    port: u16,
    header: DhcpHeader,
    options: Vec<u8>,
    message_type: MessageType,
}

impl Answer {
    fn read(frame: &[u8]) -> Answer {
        let message = &frame[HEADERS..];
        let options = DhcpOptions::parse(message).expect("options");
        let octets: [u8; 4] = frame[30..34].try_into().expect("four");
        Answer {
            mac: MacAddress(frame[..6].try_into().expect("six")),
            destination: octets.into(),
            port: u16::from_be_bytes([frame[36], frame[37]]),
            header: DhcpHeader::parse(message).expect("a header"),
            options: message[HEADER_BYTES..].to_vec(),
            message_type: options.message_type.expect("a type"),
        }
    }

    fn lease_s(&self) -> u32 {
        let at = self.options.windows(2).position(|head| head == [51, 4]);
        let at = at.expect("a lease") + 2;
        u32::from_be_bytes(self.options[at..at + 4].try_into().expect("four"))
    }
}

fn init() -> Value {
    json!({
        "pools": [
            {"min": "16.0.0.0", "max": "16.0.0.255", "prefix": 24},
            {"min": "48.0.0.0", "max": "48.0.0.7", "prefix": 29, "exclude": ["48.0.0.1"]},
        ],
        "default_lease": 100,
    })
}

fn net_of(init: Value) -> Net {
    let mut net = Net::new(&[], &[]);
    let fields = json!({
        "ipv4": SERVER.octets(), "ipv4_dg": [16, 0, 0, 2],
        "ipv4_force_dg": true, "ipv4_force_mac": GATEWAY_MAC.octets(),
    });
    net.add(SERVER_MAC, fields, json!({"dhcpsrv": init}))
        .expect("the server is new");
    net
}

fn net() -> Net {
    net_of(init())
}

fn ask(net: &mut Net, request: &Request) -> Option<Answer> {
    net.receive(&request.frame());
    let sent = net.sent();
    assert!(sent.len() <= 1, "one request has one answer");
    sent.first().map(|(_, frame)| Answer::read(frame))
}

fn counter(net: &mut Net, name: &str) -> u64 {
    net.counters("dhcpsrv_c_cnt", SERVER_MAC)[name]
        .as_u64()
        .unwrap_or(0)
}

/// Leases a host an address.
fn lease(net: &mut Net, host: u16) -> Ipv4Addr {
    let offer = ask(net, &Request::new(host, MessageType::DISCOVER)).expect("an offer");
    let address = offer.header.yiaddr;
    let request = Request::new(host, MessageType::REQUEST).about(SERVER, address);
    let ack = ask(net, &request).expect("an ACK");
    assert_eq!(
        (ack.message_type, ack.header.yiaddr),
        (MessageType::ACK, address)
    );
    address
}

#[test]
fn hosts_get_addresses_in_order_and_keep_them() {
    let mut net = net();
    assert_eq!(
        (lease(&mut net, 1), lease(&mut net, 2)),
        (address(2), address(3))
    );
    assert_eq!(counter(&mut net, "activeClients"), 2);
    let wanted =
        Request::new(3, MessageType::DISCOVER).with(code::REQUESTED_ADDRESS, [16, 0, 0, 99]);
    assert_eq!(
        ask(&mut net, &wanted).expect("an offer").header.yiaddr,
        address(99)
    );
    // Who is known gets its address again, for what is left of the lease.
    net.wait(2 * SECOND);
    let offer = ask(&mut net, &Request::new(1, MessageType::DISCOVER)).expect("an offer");
    assert_eq!((offer.header.yiaddr, offer.lease_s()), (address(2), 98));
    // Who does not take an offer loses it after three seconds.
    net.wait(3 * SECOND);
    assert_eq!(counter(&mut net, "activeClients"), 1);
}

#[test]
fn a_lease_is_renewed_from_t1_on_and_ends() {
    let mut net = net();
    let given = lease(&mut net, 1);
    let renew = Request::new(1, MessageType::REQUEST).at_address(given);
    net.wait(49 * SECOND);
    assert!(ask(&mut net, &renew).is_none(), "it is too early");
    net.wait(SECOND);
    let ack = ask(&mut net, &renew).expect("an ACK");
    assert_eq!(
        (ack.mac, ack.destination, ack.port),
        (GATEWAY_MAC, given, CLIENT_PORT)
    );
    assert_eq!(ack.lease_s(), 100);
    let other = Request::new(1, MessageType::REQUEST).at_address(address(77));
    assert!(ask(&mut net, &other).is_none());
    assert_eq!(counter(&mut net, "ciaddrMismatch"), 1);
    net.wait(100 * SECOND);
    assert_eq!(counter(&mut net, "activeClients"), 0);
    assert!(ask(&mut net, &renew).is_none());
    assert_eq!(counter(&mut net, "pktRxNoClientCtx"), 1);
    assert_eq!(
        lease(&mut net, 9),
        given,
        "what was given back is the next to go"
    );
}

#[test]
fn the_length_of_a_lease_is_what_the_host_asks_within_limits() {
    let mut net = net();
    for (wanted, expected) in [(60u32, 60), (600, 600), (59, 100), (601, 100)] {
        let discover = Request::new(1, MessageType::DISCOVER);
        let discover = discover.with(code::LEASE_TIME, wanted.to_be_bytes());
        let offer = ask(&mut net, &discover).expect("an offer");
        assert_eq!(offer.lease_s(), expected);
    }
}

#[test]
fn an_ack_that_was_lost_is_sent_again() {
    let mut net = net();
    let given = lease(&mut net, 1);
    let request = Request::new(1, MessageType::REQUEST).about(SERVER, given);
    assert_eq!(
        ask(&mut net, &request).expect("an ACK").message_type,
        MessageType::ACK
    );
    let foreign = Request::new(1, MessageType::REQUEST).about(address(200), given);
    assert!(ask(&mut net, &foreign).is_none());
    let wrong = Request::new(1, MessageType::REQUEST).about(SERVER, address(200));
    assert!(ask(&mut net, &wrong).is_none());
    assert_eq!(counter(&mut net, "pktRxBadDhcpReq"), 1);
}

#[test]
fn who_reboots_with_the_wrong_address_is_refused_by_broadcast() {
    let mut net = net_of(json!({
        "pools": init()["pools"], "options": {"nak": [{"type": 56, "data": [66]}, {"type": 6, "data": [1]}]},
    }));
    let given = lease(&mut net, 1);
    let reboot = |wanted: Ipv4Addr| {
        Request::new(1, MessageType::REQUEST).with(code::REQUESTED_ADDRESS, wanted.octets())
    };
    let ack = ask(&mut net, &reboot(given)).expect("an ACK");
    assert_eq!(ack.message_type, MessageType::ACK);
    let nak = ask(&mut net, &reboot(address(200))).expect("a NAK");
    assert_eq!(
        (nak.mac, nak.destination),
        (MacAddress::BROADCAST, Ipv4Addr::BROADCAST)
    );
    assert_eq!(nak.options, [53, 1, 6, 54, 4, 16, 0, 0, 1, 56, 1, 66, 255]);
    assert_eq!(nak.header.yiaddr, Ipv4Addr::UNSPECIFIED);
    assert_eq!(
        (
            counter(&mut net, "mustNotNakOpt"),
            counter(&mut net, "pktTxNak")
        ),
        (1, 1)
    );
    let elsewhere = ask(&mut net, &reboot(given).by_relay()).expect("a NAK");
    assert_eq!(elsewhere.message_type, MessageType::NAK);
    assert_eq!(
        (elsewhere.destination, elsewhere.port),
        (RELAY, SERVER_PORT)
    );
}

#[test]
fn a_relay_gets_its_information_back_behind_all_else() {
    let mut net = net();
    let discover = Request::new(1, MessageType::DISCOVER).by_relay();
    let discover = discover.with(code::RELAY_INFORMATION, [1, 2, 9, 9]);
    let offer = ask(&mut net, &discover).expect("an offer");
    assert_eq!(
        (offer.mac, offer.destination, offer.port),
        (GATEWAY_MAC, RELAY, SERVER_PORT)
    );
    assert_eq!(offer.header.giaddr, RELAY);
    assert_eq!(offer.header.yiaddr, Ipv4Addr::new(48, 0, 0, 2));
    let end = [3, 4, 48, 0, 0, 1, 82, 4, 1, 2, 9, 9, 255];
    assert!(offer.options.ends_with(&end), "{:?}", offer.options);
}

#[test]
fn an_answer_goes_to_all_when_the_host_wants_that_and_else_to_the_host() {
    let mut net = net();
    let mut discover = Request::new(1, MessageType::DISCOVER);
    let offer = ask(&mut net, &discover).expect("an offer");
    assert_eq!(
        (offer.mac, offer.destination),
        (MacAddress([0, 0, 3, 0, 0, 1]), address(2))
    );
    discover.header.flags = BROADCAST_FLAG;
    let offer = ask(&mut net, &discover).expect("an offer");
    assert_eq!(
        (offer.mac, offer.destination),
        (MacAddress::BROADCAST, Ipv4Addr::BROADCAST)
    );
}

#[test]
fn a_declined_address_goes_to_nobody_and_a_released_one_to_the_next() {
    let mut net = net();
    let (first, second) = (lease(&mut net, 1), lease(&mut net, 2));
    let decline = |host, address| Request::new(host, MessageType::DECLINE).about(SERVER, address);
    assert!(ask(&mut net, &decline(1, second)).is_none());
    assert_eq!(counter(&mut net, "pktRxBadDhcpDecline"), 1);
    ask(&mut net, &decline(1, first));
    assert_eq!(counter(&mut net, "negatedIp"), 1);
    let release = Request::new(2, MessageType::RELEASE).at_address(second);
    ask(&mut net, &release);
    assert_eq!(counter(&mut net, "activeClients"), 0);
    assert_eq!(
        (lease(&mut net, 3), lease(&mut net, 1)),
        (second, address(4))
    );
}

#[test]
fn a_host_that_moves_gets_an_address_of_its_new_subnet() {
    let mut net = net();
    assert_eq!(lease(&mut net, 1), address(2));
    let offer = ask(&mut net, &Request::new(1, MessageType::DISCOVER).by_relay());
    assert_eq!(
        offer.expect("an offer").header.yiaddr,
        Ipv4Addr::new(48, 0, 0, 2)
    );
    assert_eq!(
        (lease(&mut net, 2), counter(&mut net, "activeClients")),
        (address(2), 2)
    );
}

#[test]
fn an_empty_pool_and_an_unknown_subnet_give_nothing() {
    let mut net = net();
    for host in 0..5 {
        assert!(
            ask(
                &mut net,
                &Request::new(host, MessageType::DISCOVER).by_relay()
            )
            .is_some()
        );
    }
    assert!(ask(&mut net, &Request::new(9, MessageType::DISCOVER).by_relay()).is_none());
    let mut elsewhere = Request::new(10, MessageType::DISCOVER);
    elsewhere.header.giaddr = Ipv4Addr::new(9, 9, 9, 9);
    assert!(ask(&mut net, &elsewhere).is_none());
    assert_eq!(counter(&mut net, "noIpAvailable"), 2);
}

#[test]
fn options_of_offers_and_acks_lie_where_they_should_though_they_differ() {
    let mut net = net_of(json!({
        "pools": init()["pools"],
        "options": {
            "offer": [{"type": 61, "data": [1]}, {"type": 51, "data": [9, 9, 9, 9]}],
            "ack": [{"type": 2, "data": [7, 7]}, {"type": 51, "data": [1]}],
        },
    }));
    let offer = ask(&mut net, &Request::new(1, MessageType::DISCOVER)).expect("an offer");
    let ack = Request::new(1, MessageType::REQUEST).about(SERVER, address(2));
    let ack = ask(&mut net, &ack).expect("an ACK");
    assert_eq!((offer.lease_s(), ack.lease_s()), (300, 300));
    assert_eq!(ack.options[..10], [1, 4, 255, 255, 255, 0, 2, 2, 7, 7]);
    assert_eq!(counter(&mut net, "mustNotOfferOpt"), 1);
    assert_eq!(counter(&mut net, "mustNotAckReqOpt"), 0);
    assert_eq!(counter(&mut net, "mustNotAckInformOpt"), 1);
}

#[test]
fn what_is_not_a_request_is_counted() {
    let mut net = net();
    let mut request = Request::new(1, MessageType(9));
    assert!(ask(&mut net, &request).is_none());
    request.message_type = MessageType::DISCOVER;
    request.header.operation = 2;
    assert!(ask(&mut net, &request).is_none());
    net.receive(&frame_of(&[1, 2, 3]));
    assert_eq!(counter(&mut net, "pktRxBadMsgType"), 3);
    request.header.operation = REQUEST;
    for chaddr in [None, Some(MacAddress::ZERO), Some(MacAddress::BROADCAST)] {
        request.header.chaddr = chaddr;
        assert!(ask(&mut net, &request).is_none());
    }
    assert_eq!(counter(&mut net, "pktRxBadChAddr"), 3);
    assert_eq!(counter(&mut net, "pktRx"), 6);
}

#[test]
fn clients_of_the_emulation_get_addresses_of_its_server() {
    let mut net = net();
    for host in 1..=50 {
        let mac = MacAddress([0, 0, 9, 0, 0, host]);
        net.add(mac, json!({}), json!({"dhcp": {}}))
            .expect("it is new");
    }
    let mut turns = 0;
    loop {
        let sent = net.sent();
        if sent.is_empty() {
            break;
        }
        for (_, frame) in sent {
            net.receive(&frame);
        }
        turns += 1;
    }
    assert_eq!((turns, counter(&mut net, "activeClients")), (4, 50));
    let mut addresses = BTreeSet::new();
    for host in 1..=50 {
        let mac = MacAddress([0, 0, 9, 0, 0, host]);
        let octets: [u8; 4] = serde_json::from_value(net.info(mac)["ipv4"].take()).expect("bytes");
        assert!(addresses.insert(Ipv4Addr::from(octets)));
        net.remove(mac);
    }
    for (_, frame) in net.sent() {
        net.receive(&frame);
    }
    assert_eq!(counter(&mut net, "activeClients"), 0);
}

#[test]
fn wrong_pools_and_options_are_refused_with_the_field() {
    for (init, expected) in [
        (json!({"pools": 5}), "cannot unmarshal number"),
        (json!({"pools": [{}]}), "'DhcpSrvParams.Pools[0].Min'"),
        (
            json!({"pools": [], "options": {"ack": [{"type": 255}]}}),
            "options.ack[0]: type 255",
        ),
        (
            json!({"pools": [], "options": {"nak": [{"type": 1, "data": vec![0; 256]}]}}),
            "at most 255",
        ),
        (json!({"pools": [], "default_lease": -1}), "type uint32"),
    ] {
        let mut net = Net::new(&[], &[]);
        let error = net
            .add(SERVER_MAC, json!({}), json!({"dhcpsrv": init}))
            .unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let many: Vec<Value> = (100..110)
        .map(|code| json!({"type": code, "data": vec![0; 200]}))
        .collect();
    let init = json!({"pools": [], "options": {"offer": many}});
    let mut net = Net::new(&[], &[]);
    let error = net
        .add(SERVER_MAC, json!({}), json!({"dhcpsrv": init}))
        .unwrap_err();
    assert!(error.contains("at most 1024 fit"), "{error}");
}

proptest! {
    /// Whatever hosts say: one message has at most one answer, no address is leased to two, and a
    /// server keeps no more than its pools have.
    #[test]
    fn hostile_hosts_are_outlived(
        steps in prop::collection::vec((1u8..10, any::<[u8; 6]>(), 0u64..20), 0..150),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut net = net();
        let mut leases: BTreeMap<Ipv4Addr, (MacAddress, Nanos)> = BTreeMap::new();
        for (message_type, [host, last, what, a, b, cut], seconds) in steps {
            let mut request = Request::new(u16::from(host % 40), MessageType(message_type));
            let mac = request.header.chaddr.expect("it has one");
            if what & 1 != 0 {
                request = request.with(code::REQUESTED_ADDRESS, address(last % 50).octets());
            }
            if what & 2 != 0 {
                request = request.with(code::SERVER_ID, SERVER.octets());
            }
            if what & 12 == 0 {
                request = request.by_relay();
            }
            if what & 48 == 0 {
                request = request.at_address(address(last % 50));
            }
            let mut message = request.message();
            if cut & 7 == 0 {
                message.truncate(usize::from(a) + usize::from(b));
                message.extend(&bytes);
            }
            if request.message_type != MessageType::REQUEST {
                leases.retain(|_, (holder, _)| *holder != mac);
            }
            net.receive(&frame_of(&message));
            let sent = net.sent();
            prop_assert!(sent.len() <= 1);
            let answer = sent.first().map(|(_, frame)| Answer::read(frame));
            let ack = answer.filter(|answer| answer.message_type == MessageType::ACK);
            if let Some(ack) = ack.filter(|ack| !ack.header.yiaddr.is_unspecified()) {
                let until = net.now + u64::from(ack.lease_s()) * SECOND;
                if let Some((holder, end)) = leases.insert(ack.header.yiaddr, (mac, until)) {
                    prop_assert!(holder == mac || end <= net.now, "it was leased");
                }
            }
            prop_assert!(counter(&mut net, "activeClients") <= 40);
            net.wait(seconds * SECOND);
            prop_assert!(net.sent().is_empty(), "a server says nothing by itself");
        }
    }
}
