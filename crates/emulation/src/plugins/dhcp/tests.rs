//! The client against a server that the tests play.

use std::net::Ipv4Addr;

use allosaur_engine::time::SECOND;
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{
    CLIENT_PORT, DhcpHeader, DhcpOptions, HEADER_BYTES, MessageType, REPLY, SERVER_PORT, code,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_net::{Net, datagram};

const MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 1]);
const SERVER_MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 2]);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(14, 0, 14, 16);
const XID: u32 = 0x1234_5678;
/// Bytes of the headers in front of a message.
const HEADERS: usize = 14 + 20 + 8;

/// What a server says; a test changes what it wants to be wrong.
struct Reply {
    message_type: MessageType,
    header: DhcpHeader,
    destination: Ipv4Addr,
    to: MacAddress,
    options: Vec<(u8, Vec<u8>)>,
}

impl Reply {
    fn new(message_type: MessageType) -> Reply {
        let mut reply = Reply {
            message_type,
            header: DhcpHeader {
                yiaddr: ADDRESS,
                ..DhcpHeader::new(REPLY, MAC, XID)
            },
            destination: ADDRESS,
            to: MAC,
            options: vec![(code::SERVER_ID, SERVER.octets().to_vec())],
        };
        for (code, seconds) in [
            (code::RENEWAL_TIME, 8),
            (code::REBINDING_TIME, 10),
            (code::LEASE_TIME, 200),
        ] {
            reply.set_seconds(code, seconds);
        }
        reply
    }

    fn set_seconds(&mut self, code: u8, seconds: u32) {
        self.remove(code);
        self.options.push((code, seconds.to_be_bytes().to_vec()));
    }

    fn remove(&mut self, code: u8) {
        self.options.retain(|(old, _)| *old != code);
    }

    fn frame(&self) -> Vec<u8> {
        let mut message = vec![0; HEADER_BYTES];
        self.header.emit(&mut message);
        message.extend([code::MESSAGE_TYPE, 1, self.message_type.0]);
        for (code, data) in &self.options {
            message.extend([*code, data.len() as u8]);
            message.extend(data);
        }
        message.push(code::END);
        self.frame_of(&message)
    }

    fn frame_of(&self, message: &[u8]) -> Vec<u8> {
        let from = (SERVER, SERVER_PORT).into();
        let to = (self.destination, CLIENT_PORT).into();
        datagram([SERVER_MAC, self.to], from, to, message)
    }
}

fn net(init: Value) -> Net {
    let mut net = Net::new(&[], &[("dhcp xid", u64::from(XID))]);
    net.add(MAC, json!({}), json!({"dhcp": init}))
        .expect("the client is new");
    net
}

/// A client that has its address, and what it sent for it taken away.
fn bound() -> Net {
    let mut net = net(json!({}));
    net.receive(&Reply::new(MessageType::OFFER).frame());
    net.receive(&Reply::new(MessageType::ACK).frame());
    net.sent();
    assert_eq!(address(&mut net), ADDRESS);
    net
}

fn address(net: &mut Net) -> Ipv4Addr {
    let octets: [u8; 4] = serde_json::from_value(net.info(MAC)["ipv4"].take()).expect("bytes");
    octets.into()
}

fn counter(net: &mut Net, name: &str) -> u64 {
    net.counters("dhcp_client_cnt", MAC)[name]
        .as_u64()
        .unwrap_or(0)
}

fn message_type(frame: &[u8]) -> MessageType {
    let options = DhcpOptions::parse(&frame[HEADERS..]).expect("options");
    options.message_type.expect("a type")
}

/// Times in seconds since the client came, and types, of what was sent.
fn sent(net: &mut Net) -> Vec<(u64, MessageType)> {
    let sent = net.sent().into_iter();
    sent.map(|(at, frame)| (at / SECOND - 1, message_type(&frame)))
        .collect()
}

#[test]
fn a_client_renews_with_its_server_rebinds_with_any_and_begins_anew_when_the_lease_is_over() {
    let mut net = bound();
    net.wait(300 * SECOND);
    let all = net.sent();
    let times: Vec<_> = all.iter().map(|(at, _)| at / SECOND - 1).collect();
    // T1, T2, half of what is left (95 s), at least 60 s, the end of the lease; then every 5 s.
    assert_eq!(times[..6], [8, 10, 105, 165, 200, 205]);
    let (renew, rebind, discover) = (&all[0].1, &all[1].1, &all[4].1);
    assert_eq!(renew[..6], SERVER_MAC.octets());
    assert_eq!(renew[26..34], [ADDRESS.octets(), SERVER.octets()].concat());
    assert_eq!(rebind[..6], [0xff; 6]);
    assert_eq!(rebind[26..34], [0, 0, 0, 0, 255, 255, 255, 255]);
    let header = DhcpHeader::parse(&rebind[HEADERS..]).expect("a header");
    assert_eq!(header.ciaddr, ADDRESS);
    assert_eq!(message_type(discover), MessageType::DISCOVER);
    assert_eq!(address(&mut net), Ipv4Addr::UNSPECIFIED);
    assert_eq!(
        (
            counter(&mut net, "pktRxRenew"),
            counter(&mut net, "pktRxRebind")
        ),
        (1, 1)
    );
}

#[test]
fn who_is_not_answered_asks_less_and_less_often_unless_it_is_said_how_often() {
    let times = |init| {
        let mut net = net(init);
        net.wait(270 * SECOND);
        let sent = sent(&mut net).into_iter();
        let of = |(at, kind)| (kind == MessageType::DISCOVER).then_some(at);
        sent.map(|sent| of(sent).expect("nothing else"))
            .collect::<Vec<_>>()
    };
    let doubled = [0, 5, 10, 15, 20, 30, 50, 90, 154, 218];
    assert_eq!(times(json!({})), doubled);
    assert_eq!(
        times(json!({"timerd": 5})),
        doubled,
        "as the Python client says"
    );
    assert_eq!(times(json!({"timerd": 60})), [0, 60, 120, 180, 240]);
    assert_eq!(times(json!({"timerd": u32::MAX})), [0]);
}

#[test]
fn an_answer_makes_a_client_ask_soon_again() {
    let mut net = net(json!({}));
    net.wait(20 * SECOND);
    net.receive(&Reply::new(MessageType::OFFER).frame());
    net.sent();
    // Five requests are repeated, then it starts over.
    net.wait(80 * SECOND);
    let sent = sent(&mut net).into_iter();
    let asked = sent.filter(|(_, kind)| *kind == MessageType::DISCOVER);
    assert_eq!(
        asked.map(|(at, _)| at).collect::<Vec<_>>(),
        [80, 85, 90, 95, 100]
    );
}

#[test]
fn any_server_may_answer_who_rebinds_and_only_its_own_who_renews() {
    let other = Ipv4Addr::new(14, 0, 14, 17);
    let mut ack = Reply::new(MessageType::ACK);
    ack.remove(code::SERVER_ID);
    ack.options.push((code::SERVER_ID, other.octets().to_vec()));
    let mut net = bound();
    net.wait(9 * SECOND);
    net.receive(&ack.frame());
    assert_eq!(
        (
            counter(&mut net, "pktRxAck"),
            counter(&mut net, "pktRxUnhandled")
        ),
        (1, 1)
    );
    net.wait(2 * SECOND);
    net.receive(&ack.frame());
    assert_eq!(counter(&mut net, "pktRxAck"), 2);
    net.sent();
    net.wait(8 * SECOND);
    let renew = net.sent_one();
    assert_eq!(renew[30..34], other.octets());
    // The gateway of a lease without option 3 is the server.
    assert_eq!(net.info(MAC)["ipv4_dg"], json!(other.octets()));
}

#[test]
fn times_that_a_server_leaves_out_are_half_and_seven_eighths_of_the_lease() {
    let mut net = net(json!({}));
    net.receive(&Reply::new(MessageType::OFFER).frame());
    let mut ack = Reply::new(MessageType::ACK);
    ack.remove(code::RENEWAL_TIME);
    ack.remove(code::REBINDING_TIME);
    net.receive(&ack.frame());
    net.sent();
    net.wait(180 * SECOND);
    let request = MessageType::REQUEST;
    assert_eq!(
        sent(&mut net),
        [(100, request), (160, request), (175, request)]
    );
    ack.remove(code::LEASE_TIME);
    net.receive(&ack.frame());
    net.wait(1812 * SECOND);
    assert_eq!(sent(&mut net), [(180 + 1811, request)]);
}

#[test]
fn times_of_zero_make_no_flood() {
    let mut net = net(json!({}));
    net.receive(&Reply::new(MessageType::OFFER).frame());
    let mut ack = Reply::new(MessageType::ACK);
    for code in [code::RENEWAL_TIME, code::REBINDING_TIME, code::LEASE_TIME] {
        ack.set_seconds(code, 0);
    }
    net.receive(&ack.frame());
    net.sent();
    net.wait(60 * SECOND);
    assert!(sent(&mut net).len() <= 14);
}

#[test]
fn a_refusal_takes_the_address_away_and_begins_anew() {
    let mut net = bound();
    net.wait(8 * SECOND);
    net.sent();
    let mut nak = Reply::new(MessageType::NAK);
    nak.header.yiaddr = Ipv4Addr::UNSPECIFIED;
    (nak.to, nak.destination) = (MacAddress::BROADCAST, Ipv4Addr::BROADCAST);
    net.receive(&nak.frame());
    assert_eq!(message_type(&net.sent_one()), MessageType::DISCOVER);
    assert_eq!(address(&mut net), Ipv4Addr::UNSPECIFIED);
    assert_eq!(
        (
            counter(&mut net, "pktRxNack"),
            counter(&mut net, "pktRxBroadcast")
        ),
        (1, 1)
    );
}

#[test]
fn an_ack_by_broadcast_is_taken_and_one_to_another_address_is_not() {
    let mut net = net(json!({}));
    net.receive(&Reply::new(MessageType::OFFER).frame());
    let mut ack = Reply::new(MessageType::ACK);
    ack.destination = SERVER;
    net.receive(&ack.frame());
    assert_eq!(counter(&mut net, "pktRxWrongIP"), 1);
    (ack.to, ack.destination) = (MacAddress::BROADCAST, Ipv4Addr::BROADCAST);
    net.receive(&ack.frame());
    assert_eq!(address(&mut net), ADDRESS);
}

#[test]
fn an_address_that_another_client_has_is_declined() {
    let mut net = net(json!({}));
    let other = MacAddress([0, 0, 1, 0, 0, 9]);
    net.add(other, json!({"ipv4": ADDRESS.octets()}), json!({"arp": {}}))
        .expect("it is free");
    net.receive(&Reply::new(MessageType::OFFER).frame());
    net.sent();
    net.receive(&Reply::new(MessageType::ACK).frame());
    let decline = net.sent_one();
    let options = DhcpOptions::parse(&decline[HEADERS..]).expect("options");
    assert_eq!(options.message_type, Some(MessageType::DECLINE));
    assert_eq!(
        (options.requested_address, options.server_id),
        (Some(ADDRESS), Some(SERVER))
    );
    net.wait(10 * SECOND);
    assert_eq!(sent(&mut net), [(10, MessageType::DISCOVER)]);
}

#[test]
fn who_goes_gives_its_address_back_and_only_if_it_has_one() {
    let mut net = bound();
    net.remove(MAC);
    let release = net.sent_one();
    let message = &release[HEADERS..];
    let options = DhcpOptions::parse(message).expect("options");
    assert_eq!(options.message_type, Some(MessageType::RELEASE));
    assert_eq!(options.server_id, Some(SERVER));
    assert_eq!(
        DhcpHeader::parse(message).expect("a header").ciaddr,
        ADDRESS
    );
    let mut net = self::net(json!({}));
    net.sent();
    net.remove(MAC);
    assert_eq!(sent(&mut net), []);
}

#[test]
fn given_options_replace_those_of_their_code_in_order() {
    let options = json!({
        "dis": [[12, 104, 105], [43, 1, 2], [50, 16, 0, 0, 9]],
        "req": [[55, 1]], "ren": [[60, 120]], "discoverDhcpClassIdOption": "MSFT",
    });
    let mut net = net(json!({"timerd": 1, "timero": 2, "options": options}));
    let discover = net.sent_one();
    let expected = [
        &[
            12, 2, 104, 105, 43, 2, 1, 2, 50, 4, 16, 0, 0, 9, 53, 1, 1, 55, 6, 1, 3, 15, 6, 26, 42,
        ][..],
        &[
            60, 4, b'M', b'S', b'F', b'T', 61, 7, 1, 0, 0, 1, 0, 0, 1, 255,
        ],
    ];
    assert_eq!(discover[HEADERS + HEADER_BYTES..], expected.concat());
    net.wait(SECOND);
    assert_eq!(sent(&mut net), [(1, MessageType::DISCOVER)]);
    net.receive(&Reply::new(MessageType::OFFER).frame());
    net.wait(2 * SECOND);
    let requests = net.sent();
    assert_eq!(requests.len(), 2);
    let end = [
        53, 1, 3, 54, 4, 14, 0, 14, 16, 55, 1, 1, 61, 7, 1, 0, 0, 1, 0, 0, 1, 255,
    ];
    assert!(requests[1].1.ends_with(&end));
    net.receive(&Reply::new(MessageType::ACK).frame());
    net.wait(8 * SECOND);
    let end = [53, 1, 3, 60, 1, 120, 61, 7, 1, 0, 0, 1, 0, 0, 1, 255];
    assert!(net.sent_one().ends_with(&end));
}

#[test]
fn wrong_options_are_refused_with_the_field_and_the_remedy() {
    let long = vec![43; 300];
    for (init, expected) in [
        (json!({"options": {"dis": [[]]}}), "options.dis[0] is empty"),
        (
            json!({"options": {"req": [[12, 1], [255, 1]]}}),
            "options.req[1]: code 255",
        ),
        (json!({"options": {"ren": [long]}}), "at most 255 bytes"),
        (
            json!({"options": {"dis": [[1, 300]]}}),
            "number 300 into Go value of type uint8",
        ),
        (json!({"options": 5}), "cannot unmarshal number"),
    ] {
        let mut net = Net::new(&["dhcp"], &[]);
        let error = net.add(MAC, json!({}), json!({"dhcp": init})).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let many: Vec<Vec<u8>> = (100..110).map(|code| vec![code; 200]).collect();
    let mut net = Net::new(&["dhcp"], &[]);
    let error = net.add(MAC, json!({}), json!({"dhcp": {"options": {"dis": many}}}));
    assert!(error.unwrap_err().contains("at most 1024 fit"));
}

#[test]
fn clients_with_the_same_init_share_their_messages() {
    let mut recent = crate::plugins::lease::Recent::<super::Messages>::default();
    let first = recent.messages(&json!({})).expect("it is right");
    let second = recent.messages(&json!({})).expect("it is right");
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    for seconds in 1..100 {
        recent
            .messages(&json!({"timerd": seconds}))
            .expect("it is right");
    }
    drop(second);
    assert_eq!(
        std::sync::Arc::strong_count(&first),
        1,
        "few are remembered"
    );
    assert!(std::mem::size_of::<super::DhcpClient>() <= 144);
}

proptest! {
    #[test]
    fn a_hostile_server_is_outlived(
        steps in prop::collection::vec(
            (0u8..10, any::<[u8; 8]>(), prop::collection::vec(any::<u8>(), 0..40), 0u64..40),
            0..60,
        ),
    ) {
        let mut net = net(json!({}));
        for (message_type, numbers, options, seconds) in steps {
            let mut reply = Reply::new(MessageType(message_type));
            let [xid, operation, a, b, c, d, to, cut] = numbers;
            reply.header.xid ^= u32::from(xid & 7 == 0);
            reply.header.operation ^= u8::from(operation & 7 == 0);
            if a & 3 == 0 {
                reply.header.yiaddr = Ipv4Addr::new(a, b, c, d);
                reply.destination = reply.header.yiaddr;
            }
            if to & 3 == 0 {
                reply.to = MacAddress::BROADCAST;
            }
            for code in [code::LEASE_TIME, code::RENEWAL_TIME, code::REBINDING_TIME] {
                reply.set_seconds(code, u32::from_be_bytes([b & 3, b, c, d]));
            }
            let frame = reply.frame();
            let mut message = frame[HEADERS..].to_vec();
            if cut & 3 == 0 {
                message.truncate(usize::from(cut) * 2);
                message.extend(options);
            }
            net.receive(&reply.frame_of(&message));
            // One message sends at most one; by itself a client sends at most one a second.
            prop_assert!(net.sent().len() <= 2);
            net.wait(seconds * SECOND);
            prop_assert!(net.sent().len() as u64 <= seconds);
        }
    }
}
