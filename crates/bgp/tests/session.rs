//! Sessions in virtual time: with each other, and with peers that do what they must not.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_bgp::random::SeededRandom;
use allosaur_bgp::replay::RouteReplay;
use allosaur_bgp::routes::generate::internet;
use allosaur_bgp::session::BgpSession;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::session::event::{BgpEvent, BgpState, DownReason};
use allosaur_bgp::stream::RouteStream;
use allosaur_bgp::wire::attributes::{AsSegment, PathAttributes};
use allosaur_bgp::wire::framing::{
    BgpMessageType, HEADER_LEN, MESSAGE_LEN_MAX, emit_header, emit_keepalive,
};
use allosaur_bgp::wire::header::MessageHeader;
use allosaur_bgp::wire::notification::Notification;
use allosaur_bgp::wire::open::{Capability, Open};
use allosaur_bgp::wire::prefix::AddressFamily;
use allosaur_bgp::wire::refresh::RouteRefresh;

const SECOND_NS: u64 = 1_000_000_000;

fn config(local_as: u32, host: u8, passive: bool) -> BgpSessionConfig {
    BgpSessionConfig {
        local_as,
        peer_as: None,
        identifier: Ipv4Addr::new(192, 0, 2, host),
        hold_time_s: 9,
        connect_retry_ns: 5 * SECOND_NS,
        passive,
        families: vec![AddressFamily::Ipv4, AddressFamily::Ipv6],
        extended_messages: false,
        restart_time_s: Some(120),
        next_hop_ipv4: Ipv4Addr::new(192, 0, 2, host),
        next_hop_ipv6: Ipv6Addr::LOCALHOST,
    }
}

fn session(config: BgpSessionConfig) -> BgpSession {
    BgpSession::new(config, 1).expect("a right configuration")
}

fn transmitted(session: &mut BgpSession, now_ns: u64) -> Vec<u8> {
    let mut out = Vec::new();
    session.poll_transmit(now_ns, 8_192, &mut out);
    out
}

/// Both ends of a connection, whose bytes arrive in parts of random sizes.
struct Pair {
    ends: [BgpSession; 2],
    random: SeededRandom,
    now_ns: u64,
}

impl Pair {
    fn new(ends: [BgpSessionConfig; 2], seed: u64) -> Self {
        let mut ends = ends.map(session);
        ends.iter_mut().for_each(|end| {
            end.start(0);
            end.handle_connected(0);
        });
        Self {
            ends,
            random: SeededRandom::new(seed),
            now_ns: 0,
        }
    }

    /// Carries all that is due now.
    fn exchange(&mut self) {
        loop {
            let mut moved = false;
            for from in 0..2 {
                let bytes = transmitted(&mut self.ends[from], self.now_ns);
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    moved = true;
                    let length = 1 + self.random.below(3_000) as usize;
                    let (part, later) = rest.split_at(length.min(rest.len()));
                    self.ends[1 - from].handle_bytes(self.now_ns, part);
                    rest = later;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Goes on to the next instant at which something is due.
    fn step(&mut self) {
        let due = self
            .ends
            .iter()
            .flat_map(|end| [end.poll_timeout(), end.poll_transmit_due()]);
        self.now_ns = due
            .flatten()
            .min()
            .expect("something is due")
            .max(self.now_ns);
        let now_ns = self.now_ns;
        self.ends
            .iter_mut()
            .for_each(|end| end.handle_timeout(now_ns));
        self.exchange();
    }
}

#[test]
fn two_sessions_exchange_a_table_and_stay_up() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut pair = Pair::new([config(65_001, 1, false), config(65_002, 2, true)], seed);
        pair.exchange();
        let negotiated = pair.ends[0].negotiated().expect("established").clone();
        assert_eq!(negotiated.peer_as, 65_002);
        assert_eq!(negotiated.peer_restart_time_s, Some(120));
        for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
            let table = internet(family, 2_000, seed, seed).expect("a right count");
            let stream = RouteStream::announce(&table, negotiated.encoding).expect("it fits");
            assert!(pair.ends[0].announce(RouteReplay::new(Arc::new(stream), None)));
            assert!(pair.ends[0].end_of_rib(family));
            let stream = RouteStream::withdraw(&table, negotiated.encoding);
            assert!(pair.ends[0].withdraw(RouteReplay::new(Arc::new(stream), Some(500))));
        }
        pair.exchange();
        // Longer than several hold times.
        while pair.now_ns < 60 * SECOND_NS {
            pair.step();
        }
        for end in &pair.ends {
            assert_eq!(end.state(), BgpState::Established);
        }
        let (sent, got) = (pair.ends[0].counters(), pair.ends[1].counters());
        assert_eq!((sent.announced, sent.withdrawn), (4_000, 4_000));
        assert_eq!(
            (got.announcements_received, got.withdrawals_received),
            (4_000, 4_000)
        );
        assert_eq!((got.treated_as_withdrawn, got.discarded_attributes), (0, 0));
        let end_of_ribs: Vec<BgpEvent> = std::iter::from_fn(|| pair.ends[1].poll_event())
            .filter(|event| matches!(event, BgpEvent::EndOfRib(_)))
            .collect();
        let expected = [AddressFamily::Ipv4, AddressFamily::Ipv6].map(BgpEvent::EndOfRib);
        assert_eq!(end_of_ribs, expected);
    }
}

#[test]
fn extended_messages_are_used_where_both_can() {
    let extended = |mut config: BgpSessionConfig| {
        config.extended_messages = true;
        config
    };
    let ends = [
        extended(config(65_001, 1, false)),
        extended(config(65_002, 2, true)),
    ];
    let mut pair = Pair::new(ends, 1);
    pair.exchange();
    let encoding = pair.ends[0].negotiated().expect("established").encoding;
    assert_eq!(encoding.message_len_max, 65_535);
    let first = "10.0.0.0/24".parse().expect("a prefix");
    let table = allosaur_bgp::routes::generate::range(first, 20_000, Default::default());
    let stream = RouteStream::announce(&table.expect("room"), encoding).expect("it fits");
    assert_eq!(stream.message_count(), 2);
    assert!(pair.ends[0].announce(RouteReplay::new(Arc::new(stream), None)));
    pair.exchange();
    assert_eq!(pair.ends[1].counters().announcements_received, 20_000);
}

#[test]
fn a_peer_that_is_silent_is_told_that_the_hold_time_is_over() {
    let mut pair = Pair::new([config(65_001, 1, false), config(65_002, 2, true)], 1);
    pair.exchange();
    let end = &mut pair.ends[0];
    while let Some(at) = end
        .poll_timeout()
        .filter(|_| end.state() == BgpState::Established)
    {
        end.handle_timeout(at);
        let _ = transmitted(end, at).len();
    }
    let down = std::iter::from_fn(|| end.poll_event()).last();
    let expected = DownReason::Sent(Notification::new(4, 0));
    assert_eq!(down, Some(BgpEvent::Down(expected)));
    // It tries again.
    let at = end.poll_timeout().expect("a retry");
    end.handle_timeout(at);
    assert_eq!(end.poll_event(), Some(BgpEvent::Connect));
    assert_eq!(end.state(), BgpState::Connect);
}

#[test]
fn a_refresh_is_asked_for_and_told() {
    let mut pair = Pair::new([config(65_001, 1, false), config(65_001, 2, true)], 1);
    assert!(!pair.ends[0].request_refresh(AddressFamily::Ipv4));
    pair.exchange();
    assert!(pair.ends[0].request_refresh(AddressFamily::Ipv6));
    pair.exchange();
    let told = std::iter::from_fn(|| pair.ends[1].poll_event()).last();
    assert_eq!(told, Some(BgpEvent::RefreshRequested(AddressFamily::Ipv6)));
}

#[test]
fn a_stopped_session_ceases_and_stays_down() {
    let mut pair = Pair::new([config(65_001, 1, false), config(65_002, 2, true)], 1);
    pair.exchange();
    pair.ends[0].stop(1);
    pair.exchange();
    let told = std::iter::from_fn(|| pair.ends[1].poll_event()).last();
    let Some(BgpEvent::Down(reason)) = told else {
        panic!("{told:?}");
    };
    let text = reason.to_string();
    assert_eq!(
        text,
        "the peer ended it: Cease, Administrative Shutdown (6/2)"
    );
    assert_eq!(pair.ends[0].state(), BgpState::Idle);
    assert_eq!(pair.ends[0].poll_timeout(), None);
}

/// A peer's messages up to a state of ours.
fn up_to(state: BgpState) -> Vec<u8> {
    let mut bytes = Vec::new();
    if state > BgpState::OpenSent {
        config(65_002, 2, true).open(false).emit(&mut bytes);
    }
    if state > BgpState::OpenConfirm {
        emit_keepalive(&mut bytes);
    }
    bytes
}

const STATES: [BgpState; 3] = [
    BgpState::OpenSent,
    BgpState::OpenConfirm,
    BgpState::Established,
];

/// A session in a state, its own messages taken.
fn session_in(state: BgpState) -> BgpSession {
    let mut session = session(config(65_001, 1, false));
    session.start(0);
    session.handle_connected(0);
    session.handle_bytes(0, &up_to(state));
    assert_eq!(session.state(), state);
    transmitted(&mut session, 0);
    while session.poll_event().is_some() {}
    session
}

/// What a session in `state` answers to bytes that end it: code and subcode.
fn refused(state: BgpState, bytes: &[u8]) -> (u8, u8) {
    let mut session = session_in(state);
    session.handle_bytes(1, bytes);
    assert_eq!(session.state(), BgpState::Idle);
    let out = transmitted(&mut session, 1);
    let header = MessageHeader::parse(&out, MESSAGE_LEN_MAX)
        .expect("right")
        .expect("whole");
    assert_eq!(header.message_type, BgpMessageType::Notification);
    assert_eq!(header.length, out.len());
    let sent = Notification::parse(&out[HEADER_LEN..]).expect("two octets at least");
    assert_eq!(session.poll_event(), Some(BgpEvent::Disconnect));
    let down = BgpEvent::Down(DownReason::Sent(sent.clone()));
    assert_eq!(session.poll_event(), Some(down));
    (sent.code, sent.subcode)
}

#[test]
fn a_peer_that_closes_in_any_state_is_tried_again() {
    for state in STATES {
        let mut session = session_in(state);
        session.handle_bytes(1, &[0xff; 10]);
        session.handle_disconnected(1);
        let down = BgpEvent::Down(DownReason::Disconnected);
        assert_eq!(session.poll_event(), Some(down));
        assert!(transmitted(&mut session, 1).is_empty());
        let at = session.poll_timeout().expect("a retry");
        session.handle_timeout(at);
        assert_eq!(session.poll_event(), Some(BgpEvent::Connect));
        // Nothing of the first connection is left.
        session.handle_connected(at);
        session.handle_bytes(at, &up_to(BgpState::Established));
        assert_eq!(session.state(), BgpState::Established);
    }
}

#[test]
fn headers_that_are_wrong_end_the_session_in_any_state() {
    for state in STATES {
        assert_eq!(refused(state, &[0; 19]), (1, 1));
        let header = |length: u16, kind: u8| {
            let mut bytes = vec![0xff; 16];
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.push(kind);
            bytes
        };
        assert_eq!(refused(state, &header(18, 4)), (1, 2));
        assert_eq!(refused(state, &header(20, 4)), (1, 2));
        assert_eq!(refused(state, &header(4097, 2)), (1, 2));
        assert_eq!(refused(state, &header(22, 2)), (1, 2));
        assert_eq!(refused(state, &header(19, 9)), (1, 3));
    }
}

#[test]
fn messages_that_do_not_belong_into_a_state_end_it() {
    let mut keepalive = Vec::new();
    emit_keepalive(&mut keepalive);
    let open = up_to(BgpState::OpenConfirm);
    let mut refresh = Vec::new();
    RouteRefresh::request(AddressFamily::Ipv4).emit(&mut refresh);
    assert_eq!(refused(BgpState::OpenSent, &keepalive), (5, 1));
    assert_eq!(refused(BgpState::OpenConfirm, &open), (5, 2));
    assert_eq!(refused(BgpState::OpenConfirm, &refresh), (5, 2));
    assert_eq!(refused(BgpState::Established, &open), (5, 3));
    let mut short = Vec::new();
    emit_header(BgpMessageType::RouteRefresh, 3, &mut short);
    short.extend_from_slice(&[0, 1, 0]);
    assert_eq!(refused(BgpState::Established, &short), (7, 1));
}

fn open_with(change: impl Fn(&mut Open)) -> Vec<u8> {
    let mut open = config(65_002, 2, true).open(false);
    change(&mut open);
    let mut bytes = Vec::new();
    open.emit(&mut bytes);
    bytes
}

#[test]
fn an_open_that_cannot_be_is_refused() {
    let refused = |change: &dyn Fn(&mut Open)| refused(BgpState::OpenSent, &open_with(change));
    assert_eq!(refused(&|open| open.hold_time_s = 2), (2, 6));
    assert_eq!(
        refused(&|open| open.identifier = Ipv4Addr::UNSPECIFIED),
        (2, 3)
    );
    assert_eq!(
        refused(&|open| open.capabilities = vec![Capability::FourOctetAs(0)]),
        (2, 2)
    );
    let other_family = Capability::Multiprotocol { afi: 25, safi: 70 };
    assert_eq!(
        refused(&|open| open.capabilities = vec![other_family.clone()]),
        (2, 7)
    );
    // The identifier of ours, in our own autonomous system.
    let ours = config(65_001, 1, true).open(false);
    assert_eq!(refused(&|open| *open = ours.clone()), (2, 3));
}

#[test]
fn a_wrong_version_parameter_or_number_is_refused() {
    let mut version = open_with(|_| {});
    version[HEADER_LEN] = 3;
    assert_eq!(refused(BgpState::OpenSent, &version), (2, 1));
    let mut parameter = open_with(|_| {});
    parameter[HEADER_LEN + 10] = 1;
    assert_eq!(refused(BgpState::OpenSent, &parameter), (2, 4));
    let mut expecting = config(65_001, 1, false);
    expecting.peer_as = Some(65_003);
    let mut session = session(expecting);
    session.start(0);
    session.handle_connected(0);
    session.handle_bytes(0, &up_to(BgpState::Established));
    let down = std::iter::from_fn(|| session.poll_event()).last();
    let expected = DownReason::Sent(Notification::new(2, 2));
    assert_eq!(
        expected.to_string(),
        "we ended it: OPEN Message Error, Bad Peer AS (2/2)"
    );
    assert_eq!(down, Some(BgpEvent::Down(expected)));
}

#[test]
fn configurations_that_cannot_be_name_their_field() {
    type Change = fn(&mut BgpSessionConfig);
    let cases: [(Change, &str); 6] = [
        (|c| c.hold_time_s = 1, "hold_time_s: 1 seconds; take 0"),
        (|c| c.local_as = 0, "local_as: 0 is no AS number"),
        (|c| c.peer_as = Some(0), "peer_as: 0 is no AS number"),
        (
            |c| c.identifier = Ipv4Addr::UNSPECIFIED,
            "identifier: 0.0.0.0",
        ),
        (|c| c.families.clear(), "families: none is given"),
        (|c| c.restart_time_s = Some(4096), "restart_time_s: 4096"),
    ];
    for (change, text) in cases {
        let mut config = config(65_001, 1, false);
        change(&mut config);
        let error = BgpSession::new(config, 1)
            .expect_err("it cannot be")
            .to_string();
        assert!(error.starts_with(text), "{error}");
    }
}

fn update(withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body_len = 4 + withdrawn.len() + attributes.len() + announced.len();
    emit_header(BgpMessageType::Update, body_len, &mut bytes);
    bytes.extend_from_slice(&(withdrawn.len() as u16).to_be_bytes());
    bytes.extend_from_slice(withdrawn);
    bytes.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
    bytes.extend_from_slice(attributes);
    bytes.extend_from_slice(announced);
    bytes
}

const ORIGIN: [u8; 4] = [0x40, 1, 1, 0];
const AS_PATH: [u8; 9] = [0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xea];
const NEXT_HOP: [u8; 7] = [0x40, 3, 4, 192, 0, 2, 2];
const ROUTE: [u8; 4] = [24, 198, 51, 100];

#[test]
fn updates_that_cannot_be_read_end_the_session() {
    let refused = |bytes: Vec<u8>| refused(BgpState::Established, &bytes);
    // A length of attributes that goes past the end.
    let mut past = update(&[], &ORIGIN, &[]);
    past[HEADER_LEN + 3] = 9;
    assert_eq!(refused(past), (3, 1));
    assert_eq!(refused(update(&[], &[], &[33, 1, 2, 3, 4, 5])), (3, 10));
    assert_eq!(refused(update(&[24, 1], &[], &[])), (3, 10));
    assert_eq!(refused(update(&[], &[0x40, 99, 0], &[])), (3, 2));
    // MP_REACH_NLRI that ends in its next hop, and twice MP_UNREACH_NLRI.
    assert_eq!(
        refused(update(&[], &[0x80, 14, 4, 0, 2, 1, 16], &[])),
        (3, 9)
    );
    let unreach = [0x80, 15, 3, 0, 2, 1];
    assert_eq!(
        refused(update(&[], &[unreach, unreach].concat(), &[])),
        (3, 1)
    );
}

#[test]
fn routes_with_wrong_attributes_count_as_withdrawn() {
    let wrong: [&[&[u8]]; 9] = [
        &[&[0x40, 1, 1, 3], &AS_PATH, &NEXT_HOP],
        &[&[0x40, 1, 2, 0, 0], &AS_PATH, &NEXT_HOP],
        &[&[0xc0, 1, 1, 0], &AS_PATH, &NEXT_HOP],
        &[&ORIGIN, &[0x40, 2, 3, 2, 1, 0], &NEXT_HOP],
        &[&ORIGIN, &[0x40, 2, 2, 2, 0], &NEXT_HOP],
        &[&ORIGIN, &AS_PATH, &[0x40, 3, 3, 192, 0, 2]],
        &[&ORIGIN, &AS_PATH],
        &[&ORIGIN, &AS_PATH, &NEXT_HOP, &[0xc0, 8, 3, 1, 2, 3]],
        &[&ORIGIN, &AS_PATH, &NEXT_HOP, &[0xc0, 8, 200, 1]],
    ];
    for attributes in wrong {
        let mut session = session_in(BgpState::Established);
        session.handle_bytes(1, &update(&[], &attributes.concat(), &ROUTE));
        assert_eq!(session.state(), BgpState::Established, "{attributes:?}");
        let counters = session.counters();
        assert_eq!(counters.treated_as_withdrawn, 1, "{attributes:?}");
        assert_eq!(counters.withdrawals_received, 1);
        assert_eq!(counters.announcements_received, 0);
    }
}

#[test]
fn attributes_that_do_no_harm_are_ignored() {
    let ignored: [&[u8]; 3] = [&[0x40, 6, 1, 0], &[0xc0, 7, 2, 0, 1], &ORIGIN];
    for attribute in ignored {
        let mut session = session_in(BgpState::Established);
        let attributes = [&ORIGIN[..], &AS_PATH, &NEXT_HOP, attribute].concat();
        session.handle_bytes(1, &update(&[], &attributes, &ROUTE));
        let counters = session.counters();
        assert_eq!(counters.discarded_attributes, 1, "{attribute:?}");
        assert_eq!(counters.announcements_received, 1);
    }
}

#[test]
fn routes_with_our_own_as_number_are_counted_and_ignored() {
    let mut pair = Pair::new([config(65_001, 1, false), config(65_002, 2, true)], 1);
    pair.exchange();
    let encoding = pair.ends[0].negotiated().expect("established").encoding;
    for (path, count) in [(vec![65_010, 65_002, 65_011], 7), (vec![65_010], 5)] {
        let attributes = PathAttributes {
            as_path: vec![AsSegment::Sequence(path)],
            ..PathAttributes::default()
        };
        let first = "10.0.0.0/24".parse().expect("a prefix");
        let table = allosaur_bgp::routes::generate::range(first, count, attributes);
        let stream = RouteStream::announce(&table.expect("room"), encoding).expect("it fits");
        assert!(pair.ends[0].announce(RouteReplay::new(Arc::new(stream), None)));
    }
    pair.exchange();
    let counters = pair.ends[1].counters();
    let received = (counters.announcements_received, counters.looped_received);
    assert_eq!(received, (5, 7));
}
