//! The client against a server that the tests play.

use std::net::Ipv6Addr;

use allosaur_engine::time::SECOND;
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv6::{
    CLIENT_PORT, Dhcpv6Message, Dhcpv6MessageType, SERVER_PORT, code,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_net::{Net, datagram};

const MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 1]);
const SERVER_MAC: MacAddress = MacAddress([0, 0, 1, 0, 0, 2]);
const LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x200, 0x1ff, 0xfe00, 1);
const SERVER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x30);
const XID: u32 = 0x34_5678;
const IAID: u32 = 0x1234_5678;
const HEADERS: usize = 14 + 40 + 8;

/// What a server says; a test changes what it wants to be wrong.
struct Reply {
    message_type: Dhcpv6MessageType,
    xid: u32,
    iaid: u32,
    /// T1, T2, how long preferred, how long valid.
    times: [u32; 4],
    address: Option<Ipv6Addr>,
    status: Option<u16>,
    association_status: Option<u16>,
    server: Vec<u8>,
    client: Vec<u8>,
    source: Ipv6Addr,
    destination: Ipv6Addr,
}

fn option(code: u16, data: &[u8]) -> Vec<u8> {
    [
        &code.to_be_bytes()[..],
        &(data.len() as u16).to_be_bytes(),
        data,
    ]
    .concat()
}

impl Reply {
    fn new(message_type: Dhcpv6MessageType) -> Reply {
        Reply {
            message_type,
            xid: XID,
            iaid: IAID,
            times: [6, 8, 100, 200],
            address: Some(ADDRESS),
            status: None,
            association_status: None,
            server: b"\0\x03\0\x01server".to_vec(),
            client: super::duid(MAC).to_vec(),
            source: SERVER,
            destination: LOCAL,
        }
    }

    fn message(&self) -> Vec<u8> {
        let [renew, rebind, preferred, valid] = self.times.map(u32::to_be_bytes);
        let mut message = self.xid.to_be_bytes().to_vec();
        message[0] = self.message_type.0;
        message.extend(option(code::CLIENT_ID, &self.client));
        message.extend(option(code::SERVER_ID, &self.server));
        let mut association = [self.iaid.to_be_bytes(), renew, rebind].concat();
        if let Some(address) = self.address {
            let data = [&address.octets()[..], &preferred, &valid].concat();
            association.extend(option(code::IA_ADDRESS, &data));
        }
        if let Some(status) = self.association_status {
            association.extend(option(code::STATUS, &status.to_be_bytes()));
        }
        message.extend(option(code::IA_NA, &association));
        if let Some(status) = self.status {
            message.extend(option(code::STATUS, &status.to_be_bytes()));
        }
        message
    }

    fn frame(&self) -> Vec<u8> {
        self.frame_of(&self.message())
    }

    fn frame_of(&self, message: &[u8]) -> Vec<u8> {
        let from = (self.source, SERVER_PORT).into();
        let to = (self.destination, CLIENT_PORT).into();
        datagram([SERVER_MAC, MAC], from, to, message)
    }
}

fn net(init: Value) -> Net {
    let pinned = [
        ("dhcpv6 xid", u64::from(XID)),
        ("dhcpv6 iaid", u64::from(IAID)),
    ];
    let mut net = Net::new(&[], &pinned);
    net.add(MAC, json!({}), json!({"dhcpv6": init}))
        .expect("the client is new");
    net
}

/// A client that has its address, and what it sent for it taken away.
fn bound() -> Net {
    let mut net = net(json!({}));
    net.receive(&Reply::new(Dhcpv6MessageType::ADVERTISE).frame());
    net.receive(&Reply::new(Dhcpv6MessageType::REPLY).frame());
    net.sent();
    assert_eq!(address(&mut net), ADDRESS);
    net
}

fn address(net: &mut Net) -> Ipv6Addr {
    let octets: [u8; 16] =
        serde_json::from_value(net.info(MAC)["dhcp_ipv6"].take()).expect("bytes");
    octets.into()
}

fn counter(net: &mut Net, name: &str) -> u64 {
    net.counters("dhcpv6_client_cnt", MAC)[name]
        .as_u64()
        .unwrap_or(0)
}

/// Times in seconds since the client came, and types, of what was sent.
fn sent(net: &mut Net) -> Vec<(u64, Dhcpv6MessageType)> {
    let sent = net.sent().into_iter();
    sent.map(|(at, frame)| (at / SECOND - 1, Dhcpv6MessageType(frame[HEADERS])))
        .collect()
}

/// How long a client has been trying, as a message says, in hundredths of a second.
fn elapsed(frame: &[u8]) -> u16 {
    let at = frame.windows(4).position(|head| head == [0, 8, 0, 2]);
    let at = at.expect("the option") + 4;
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

#[test]
fn a_client_renews_rebinds_and_begins_anew_when_the_address_is_not_valid() {
    let mut net = bound();
    net.wait(206 * SECOND);
    let all = net.sent();
    let sent: Vec<_> = all
        .iter()
        .map(|(at, f)| (at / SECOND - 1, Dhcpv6MessageType(f[HEADERS])))
        .collect();
    let rebind = Dhcpv6MessageType::REBIND;
    let expected = [
        (6, Dhcpv6MessageType::RENEW),
        (8, rebind),
        // Half of what is left, at least a minute, but not past the end.
        (104, rebind),
        (164, rebind),
        (200, Dhcpv6MessageType::SOLICIT),
        (205, Dhcpv6MessageType::SOLICIT),
    ];
    assert_eq!(sent, expected);
    assert_eq!(
        [elapsed(&all[0].1), elapsed(&all[1].1), elapsed(&all[5].1)],
        [0, 200, 500]
    );
    assert_eq!(address(&mut net), Ipv6Addr::UNSPECIFIED);
}

#[test]
fn who_is_not_answered_asks_less_and_less_often() {
    let mut net = net(json!({}));
    net.wait(270 * SECOND);
    let times: Vec<_> = sent(&mut net).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 5, 10, 15, 20, 30, 50, 90, 154, 218]);
}

#[test]
fn requests_end_after_ten_retries_and_the_next_server_is_a_new_one() {
    let mut net = net(json!({"timerd": 2, "timero": 3}));
    net.wait(2 * SECOND);
    assert_eq!(
        sent(&mut net),
        [
            (0, Dhcpv6MessageType::SOLICIT),
            (2, Dhcpv6MessageType::SOLICIT)
        ]
    );
    net.receive(&Reply::new(Dhcpv6MessageType::ADVERTISE).frame());
    net.wait(33 * SECOND);
    let mut all = net.sent();
    assert_eq!(all.len(), 12);
    let (_, solicit) = all.pop().expect("it is there");
    assert!(
        all.iter()
            .all(|(_, frame)| frame[HEADERS] == Dhcpv6MessageType::REQUEST.0)
    );
    assert_eq!(
        (solicit[HEADERS], elapsed(&solicit)),
        (Dhcpv6MessageType::SOLICIT.0, 0)
    );
    let mut other = Reply::new(Dhcpv6MessageType::ADVERTISE);
    other.server = b"\0\x03\0\x01another".to_vec();
    net.receive(&other.frame());
    let request = net.sent_one();
    let message = Dhcpv6Message::parse(&request[HEADERS..]).expect("a message");
    assert_eq!(message.server_id, Some(&other.server[..]));
}

#[test]
fn a_client_says_how_long_it_has_been_trying_since_its_first_message() {
    let mut net = net(json!({}));
    net.wait(800 * SECOND);
    let told: Vec<u16> = net.sent().iter().map(|(_, frame)| elapsed(frame)).collect();
    let late = (0_u32..12).map(|number| 90 + 64 * number);
    // RFC 8415 section 21.9: more than the field holds is its largest value.
    let expected: Vec<u16> = [0, 5, 10, 15, 20, 30, 50]
        .into_iter()
        .chain(late)
        .map(|seconds| u16::try_from(100 * seconds).unwrap_or(u16::MAX))
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn a_refusal_is_part_of_the_trying() {
    let mut net = net(json!({}));
    net.wait(7 * SECOND);
    net.receive(&Reply::new(Dhcpv6MessageType::ADVERTISE).frame());
    let refusal = Reply {
        status: Some(2),
        ..Reply::new(Dhcpv6MessageType::REPLY)
    };
    net.receive(&refusal.frame());
    net.sent();
    net.wait(10 * SECOND);
    let told: Vec<(u8, u16)> = net
        .sent()
        .iter()
        .map(|(_, frame)| (frame[HEADERS], elapsed(frame)))
        .collect();
    let solicit = Dhcpv6MessageType::SOLICIT.0;
    assert_eq!(told, [(solicit, 1200), (solicit, 1700)]);
}

#[test]
fn what_is_wrong_is_counted_and_changes_nothing() {
    let mut net = net(json!({}));
    let advertise = || Reply::new(Dhcpv6MessageType::ADVERTISE);
    let wrong: [(&str, Reply); 6] = [
        (
            "pktRxWrongXid",
            Reply {
                xid: XID + 1,
                ..advertise()
            },
        ),
        (
            "pktRxWrongClientId",
            Reply {
                client: b"me".to_vec(),
                ..advertise()
            },
        ),
        (
            "pktRxWrongIANAId",
            Reply {
                iaid: 5,
                ..advertise()
            },
        ),
        (
            "pktRxWrongDstIp",
            Reply {
                destination: SERVER,
                ..advertise()
            },
        ),
        (
            "pktRxMissingServerIdOption",
            Reply {
                server: vec![0; 131],
                ..advertise()
            },
        ),
        (
            "pktRxSTATUS_NoAddrsAvail",
            Reply {
                association_status: Some(2),
                ..advertise()
            },
        ),
    ];
    for (name, reply) in wrong {
        net.receive(&reply.frame());
        assert_eq!(counter(&mut net, name), 1, "{name}");
    }
    net.receive(&advertise().frame_of(&[2, 0]));
    net.receive(&advertise().frame_of(&[2, 0, 0, 0, 9, 9, 9, 9]));
    assert_eq!(
        (
            counter(&mut net, "pktRxLenErr"),
            counter(&mut net, "pktRxParserErr")
        ),
        (1, 1)
    );
}

#[test]
fn a_reply_of_another_server_is_counted_and_changes_nothing() {
    let mut net = net(json!({}));
    let advertise = || Reply::new(Dhcpv6MessageType::ADVERTISE);
    net.receive(&advertise().frame());
    let wrong = [
        (
            "pktRxWrongServerId",
            Reply {
                server: b"you".to_vec(),
                ..Reply::new(Dhcpv6MessageType::REPLY)
            },
        ),
        (
            "pktRxWrongServerIP",
            Reply {
                source: LOCAL,
                ..Reply::new(Dhcpv6MessageType::REPLY)
            },
        ),
        ("pktRxUnhandled", advertise()),
    ];
    for (name, reply) in wrong {
        net.receive(&reply.frame());
        assert_eq!(counter(&mut net, name), 1, "{name}");
    }
    assert_eq!(address(&mut net), Ipv6Addr::UNSPECIFIED);
    net.receive(&Reply::new(Dhcpv6MessageType::REPLY).frame());
    assert_eq!(address(&mut net), ADDRESS);
}

#[test]
fn a_refusal_is_counted_by_its_reason_and_begins_anew_later() {
    let names = [
        "UnspecFail",
        "NoAddrsAvail",
        "NoBinding",
        "NotOnLink",
        "UseMulticast",
        "NoPrefixAvail",
    ];
    for (status, name) in (1..).zip(names) {
        let mut net = net(json!({}));
        net.receive(&Reply::new(Dhcpv6MessageType::ADVERTISE).frame());
        net.sent();
        net.receive(
            &Reply {
                status: Some(status),
                ..Reply::new(Dhcpv6MessageType::REPLY)
            }
            .frame(),
        );
        assert_eq!(
            counter(&mut net, &format!("pktRxSTATUS_{name}")),
            1,
            "{name}"
        );
        assert_eq!(
            sent(&mut net),
            [],
            "a server that refuses is not asked again at once"
        );
        net.wait(5 * SECOND);
        assert_eq!(sent(&mut net), [(5, Dhcpv6MessageType::SOLICIT)]);
    }
    let mut net = bound();
    net.wait(6 * SECOND);
    net.sent();
    net.receive(
        &Reply {
            association_status: Some(3),
            ..Reply::new(Dhcpv6MessageType::REPLY)
        }
        .frame(),
    );
    assert_eq!(sent(&mut net), [(6, Dhcpv6MessageType::SOLICIT)]);
    assert_eq!(address(&mut net), Ipv6Addr::UNSPECIFIED);
}

#[test]
fn times_that_a_server_leaves_to_the_client_are_before_the_address_ends() {
    for (times, renew, rebind) in [
        ([0, 0, 1000, 2000], 500, 800),
        ([0, 0, u32::MAX, u32::MAX], 1800, 3600),
        ([100, 50, 1000, 2000], 100, 160),
        ([0, 0, 0, 2], 2, 2),
    ] {
        let mut net = net(json!({}));
        net.receive(&Reply::new(Dhcpv6MessageType::ADVERTISE).frame());
        net.receive(
            &Reply {
                times,
                ..Reply::new(Dhcpv6MessageType::REPLY)
            }
            .frame(),
        );
        net.sent();
        net.wait(rebind * SECOND);
        let sent = sent(&mut net);
        assert_eq!(sent[0].0, renew, "{times:?}");
        assert!(
            sent.iter().any(|&(at, _)| at == rebind),
            "{times:?} {sent:?}"
        );
    }
}

#[test]
fn who_goes_gives_its_address_back_by_name() {
    let mut net = bound();
    net.remove(MAC);
    let release = net.sent_one();
    let message = Dhcpv6Message::parse(&release[HEADERS..]).expect("a message");
    assert_eq!(message.message_type, Dhcpv6MessageType::RELEASE);
    assert!(message.server_id.is_some());
    // An address that is given back is valid for no time, which is what the parser says too.
    assert!(
        release
            .windows(24)
            .any(|bytes| bytes[..16] == ADDRESS.octets() && bytes[16..] == [0; 8])
    );
    let mut net = self::net(json!({}));
    net.sent();
    net.remove(MAC);
    assert_eq!(sent(&mut net), []);
}

#[test]
fn an_address_that_another_client_has_is_not_taken() {
    let mut net = net(json!({}));
    let other = MacAddress([0, 0, 1, 0, 0, 9]);
    net.add(other, json!({"ipv6": ADDRESS.octets()}), json!({"arp": {}}))
        .expect("it is free");
    net.receive(&Reply::new(Dhcpv6MessageType::ADVERTISE).frame());
    net.receive(&Reply::new(Dhcpv6MessageType::REPLY).frame());
    assert_eq!(address(&mut net), Ipv6Addr::UNSPECIFIED);
    assert_eq!(counter(&mut net, "pktRxUnhandled"), 1);
}

#[test]
fn wrong_options_are_refused_with_the_field_and_the_remedy() {
    let many: Vec<Vec<u8>> = (100..110).map(|code| vec![code; 200]).collect();
    for (init, expected) in [
        (
            json!({"options": {"sol": [[0, 6], [5]]}}),
            "options.sol[1] has 1 bytes",
        ),
        (json!({"options": {"rel": many}}), "at most 1024 fit"),
        (json!({"options": {"rm_or": 1}}), "type bool"),
        (json!({"options": []}), "cannot unmarshal array"),
        (json!({"timerd": "x"}), "type uint32"),
    ] {
        let mut net = Net::new(&[], &[]);
        let error = net
            .add(MAC, json!({}), json!({"dhcpv6": init}))
            .unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_million_clients_are_small() {
    assert!(std::mem::size_of::<super::Dhcpv6Client>() <= 240);
}

proptest! {
    #[test]
    fn a_hostile_server_is_outlived(
        steps in prop::collection::vec(
            (0u8..9, any::<[u8; 8]>(), prop::collection::vec(any::<u8>(), 0..60), 0u64..40),
            0..60,
        ),
    ) {
        let mut net = net(json!({}));
        for (message_type, [a, b, c, d, e, f, g, cut], bytes, seconds) in steps {
            let mut reply = Reply::new(Dhcpv6MessageType(message_type));
            reply.times = [a, b, c, d].map(|byte| match byte {
                255 => u32::MAX,
                byte => u32::from(byte) / 8,
            });
            reply.status = (e & 3 == 0).then_some(u16::from(e >> 4));
            reply.association_status = (f & 3 == 0).then_some(u16::from(f >> 4));
            if g & 3 == 0 {
                reply.server.clone_from(&bytes);
                reply.address = None;
            }
            let mut message = reply.message();
            if cut & 3 == 0 {
                message.truncate(usize::from(cut));
                message.extend(bytes);
            }
            net.receive(&reply.frame_of(&message));
            // One message sends at most one; by itself a client sends at most one a second.
            prop_assert!(net.sent().len() <= 2);
            net.wait(seconds * SECOND);
            prop_assert!(net.sent().len() as u64 <= seconds);
        }
    }
}
