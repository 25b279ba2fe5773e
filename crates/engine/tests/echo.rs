//! Echo streams between two ports, over a link that does what a test says, in virtual time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use allosaur_engine::echo::{EchoArrival, EchoPort, EchoReadout, EchoRole, EchoTerms, Echoes};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::MacAddress;
use allosaur_packet::frame;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::ipv4::Ipv4View;
use proptest::prelude::*;

const START: Nanos = 3 * SECOND;
const RUN: u32 = 5;

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn terms(rate_pps: f64, addresses: [&str; 2], vlans: &[u16]) -> EchoTerms {
    let [client, server] = addresses.map(address);
    let port = |port: PortIndex, role, own_address, other_address| EchoPort {
        port,
        partner: 1 - port,
        role,
        own_mac: mac(port),
        vlans: vlans.to_vec(),
        own_address,
        other_address,
    };
    let asks = EchoRole::Asks { peer_mac: mac(1) };
    EchoTerms {
        run: RUN,
        rate_pps,
        duration: None,
        ports: vec![
            port(0, asks, client, server),
            port(1, EchoRole::Answers, server, client),
        ],
    }
}

const V4: [&str; 2] = ["16.0.0.1", "48.0.0.1"];

/// What a link does with a frame: its copies, each with its delay.
type Link = Box<dyn FnMut(PortIndex, Vec<u8>) -> Vec<(Nanos, Vec<u8>)>>;

struct World {
    now: Nanos,
    echoes: Echoes,
    link: Link,
    /// By arrival and order: to which port, and what.
    under_way: BTreeMap<(Nanos, u64), (PortIndex, Vec<u8>)>,
    carried: u64,
    has_room: bool,
    others: u64,
}

fn straight(delay: Nanos) -> Link {
    Box::new(move |_, frame| vec![(delay, frame)])
}

impl World {
    fn new(terms: EchoTerms, link: Link) -> World {
        World {
            now: START,
            echoes: Echoes::new(terms, START),
            link,
            under_way: BTreeMap::new(),
            carried: 0,
            has_room: true,
            others: 0,
        }
    }

    fn turn(&mut self) {
        while let Some(first) = self.under_way.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let (port, frame) = first.remove();
            let arrival = self.echoes.handle_frame(self.now, port, &frame);
            self.others += u64::from(arrival == EchoArrival::Other);
        }
        let (now, link, has_room) = (self.now, &mut self.link, self.has_room);
        let (under_way, carried) = (&mut self.under_way, &mut self.carried);
        self.echoes.poll_transmit(now, |port, frame| {
            if has_room {
                for (delay, copy) in link(port, frame.to_vec()) {
                    *carried += 1;
                    under_way.insert((now + delay, *carried), (1 - port, copy));
                }
            }
            has_room
        });
    }

    fn run_for(&mut self, span: Nanos) {
        let until = self.now + span;
        loop {
            self.turn();
            let arrival = self.under_way.keys().next().map(|key| key.0);
            let due = self.echoes.poll_timeout().into_iter().chain(arrival);
            let Some(next) = due.min().filter(|next| *next < until) else {
                break;
            };
            self.now = next.max(self.now);
        }
        self.now = until;
    }

    fn readout(&self) -> [EchoReadout; 2] {
        let ports = self.echoes.readout();
        ports.try_into().expect("two ports take part")
    }
}

#[test]
fn both_ways_are_measured_at_the_rate_that_was_asked() {
    let v6 = ["2001:db8::1", "2001:db8:1::1"];
    for (addresses, vlans) in [(V4, &[][..]), (v6, &[]), (V4, &[100]), (v6, &[100, 200])] {
        let link: Link = Box::new(|port, frame| {
            let delay = if port == 0 { 40 } else { 90 };
            vec![(delay * MICROSECOND, frame)]
        });
        let mut world = World::new(terms(1000.0, addresses, vlans), link);
        world.run_for(SECOND);
        world.echoes.stop(world.now);
        world.run_for(MILLISECOND);
        let [client, server] = world.readout();
        for (side, delay) in [(&client, 90), (&server, 40)] {
            let counters = &side.counters;
            assert_eq!(
                (counters.sent, counters.received),
                (1000, 1000),
                "{addresses:?}"
            );
            assert_eq!(counters.values().iter().sum::<u64>(), 2000);
            let latency = &side.latency;
            assert_eq!(latency.min_ns, delay * MICROSECOND);
            assert_eq!((latency.max_ns, latency.jitter_ns), (latency.min_ns, 0));
            assert_eq!(side.times.packets(), 1000);
            assert_eq!(side.times.percentile_ns(99.0), latency.min_ns);
            assert_eq!(
                (latency.dropped, latency.out_of_order, latency.duplicates),
                (0, 0, 0)
            );
        }
        assert_eq!(world.others, 0);
    }
}

#[test]
fn what_the_link_does_is_seen_by_the_port_behind_it() {
    let mut number = 0;
    let link: Link = Box::new(move |port, frame| {
        if port == 1 {
            return vec![(MICROSECOND, frame)];
        }
        number += 1;
        match number % 100 {
            10 | 11 => vec![],
            20 => vec![(MICROSECOND, frame.clone()), (2 * MICROSECOND, frame)],
            30 => vec![(15 * MILLISECOND, frame)],
            _ => vec![(MICROSECOND, frame)],
        }
    });
    let mut world = World::new(terms(100.0, V4, &[]), link);
    world.run_for(10 * SECOND);
    let [client, server] = world.readout();
    let order = |side: &EchoReadout| {
        let latency = &side.latency;
        (latency.dropped, latency.duplicates, latency.out_of_order)
    };
    assert_eq!(order(&server), (20, 10, 10));
    assert_eq!(order(&client), (0, 0, 0));
    assert_eq!(
        (client.counters.sent, client.counters.received),
        (1000, 990)
    );
    assert_eq!(server.latency.max_ns, 15 * MILLISECOND);
}

/// Makes a reply of a request, its data as it was: what hosts do.
fn as_host(frame: &mut [u8]) {
    let (to, from) = frame[..12].split_at_mut(6);
    to.swap_with_slice(from);
    let mut ip = Ipv4View::new_unchecked(&mut frame[14..]);
    let (source, destination) = (ip.source(), ip.destination());
    ip.set_source(destination);
    ip.set_destination(source);
    let end = 14 + usize::from(ip.total_bytes());
    let mut message = Icmpv4View::new_unchecked(&mut frame[34..end]);
    message.set_kind(0, 0);
    message.fill_checksum();
}

#[test]
fn a_real_host_is_measured_there_and_back() {
    let mut terms = terms(100.0, V4, &[]);
    terms.ports.pop();
    let mut echoes = Echoes::new(terms, START);
    let mut sent = Vec::new();
    echoes.poll_transmit(START, |_, frame| {
        sent.push(frame.to_vec());
        true
    });
    let [request] = &mut sent[..] else {
        panic!("one request is due: {sent:?}");
    };
    as_host(request);
    let arrival = echoes.handle_frame(START + 250 * MICROSECOND, 0, request);
    assert_eq!(arrival, EchoArrival::Measured(250 * MICROSECOND));
    let [client] = &echoes.readout()[..] else {
        panic!("one port takes part");
    };
    assert_eq!(client.counters.received, 1);
    assert_eq!(client.latency.max_ns, 250 * MICROSECOND);
}

/// A request with other data, from somebody else.
fn ping(to: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 34 + 8 + data.len()];
    frame[..6].copy_from_slice(&mac(1).0);
    frame[6..12].copy_from_slice(&mac(9).0);
    frame[12..14].copy_from_slice(&[8, 0]);
    let total_bytes = (28 + data.len()) as u16;
    frame[14] = 0x45;
    let mut ip = Ipv4View::new_unchecked(&mut frame[14..]);
    ip.set_total_bytes(total_bytes);
    ip.set_time_to_live(3);
    ip.set_protocol(allosaur_packet::network::ip_protocol::IpProtocol::ICMPV4);
    ip.set_source([9, 9, 9, 9].into());
    ip.set_destination(to.into());
    ip.fill_checksum();
    let echo = Icmpv4Header::EchoRequest {
        identifier: 7,
        sequence: 8,
    };
    echo.emit(&mut frame[34..]);
    frame[42..].copy_from_slice(data);
    Icmpv4View::new_unchecked(&mut frame[34..]).fill_checksum();
    frame
}

fn answers(echoes: &mut Echoes) -> Vec<(PortIndex, Vec<u8>)> {
    echoes.stop(START);
    let mut answers = Vec::new();
    echoes.poll_transmit(START, |port, frame| {
        answers.push((port, frame.to_vec()));
        true
    });
    answers
}

#[test]
fn a_server_port_answers_others_as_any_host() {
    let data: Vec<u8> = (0..56).collect();
    let mut echoes = Echoes::new(terms(1.0, V4, &[]), START);
    let request = ping([48, 0, 0, 1], &data);
    assert_eq!(echoes.handle_frame(START, 1, &request), EchoArrival::Echo);
    // Who asks somebody else, or at another port, is not answered here.
    for (port, to) in [(1, [48, 0, 0, 2]), (0, [16, 0, 0, 1]), (2, [48, 0, 0, 1])] {
        let other = ping(to, &data);
        assert_eq!(echoes.handle_frame(START, port, &other), EchoArrival::Other);
    }
    let answers = answers(&mut echoes);
    let [(1, answer)] = &answers[..] else {
        panic!("one answer: {answers:?}");
    };
    let layout = frame::parse(answer);
    assert_eq!(layout.payload(answer), data);
    let message = Icmpv4Header::parse(layout.segment(answer)).expect("a message");
    let expected = Icmpv4Header::EchoReply {
        identifier: 7,
        sequence: 8,
    };
    assert_eq!(message, expected);
    let counters = &echoes.readout()[1].counters;
    assert_eq!(
        (counters.no_stamp, counters.received, counters.sent),
        (1, 0, 1)
    );
}

#[test]
fn translated_addresses_do_not_matter() {
    let link: Link = Box::new(|port, mut frame| {
        // As a router with source NAT: other addresses and another identifier.
        let from = if port == 0 {
            [100, 64, 0, 1]
        } else {
            [48, 0, 0, 1]
        };
        let to = if port == 0 {
            [48, 0, 0, 1]
        } else {
            [16, 0, 0, 1]
        };
        let mut ip = Ipv4View::new_unchecked(&mut frame[14..]);
        ip.set_source(from.into());
        ip.set_destination(to.into());
        ip.fill_checksum();
        let end = 14 + usize::from(ip.total_bytes());
        frame[38] ^= 0x55;
        Icmpv4View::new_unchecked(&mut frame[34..end]).fill_checksum();
        vec![(MICROSECOND, frame)]
    });
    let mut world = World::new(terms(100.0, V4, &[]), link);
    world.run_for(SECOND - MILLISECOND);
    for side in world.readout() {
        assert_eq!((side.counters.sent, side.counters.received), (100, 100));
    }
}

#[test]
fn what_is_wrong_with_a_message_is_counted() {
    let mut sent = Vec::new();
    let mut others = terms(1.0, V4, &[]);
    others.run = RUN + 1;
    for terms in [terms(1.0, V4, &[]), others] {
        Echoes::new(terms, START).poll_transmit(START, |_, frame| {
            sent.push(frame.to_vec());
            true
        });
    }
    let (own, foreign) = (&sent[0], &sent[1]);
    let broken = |at: usize| {
        let mut frame = own.clone();
        frame[at] ^= 0x80;
        frame
    };
    let mut echoes = Echoes::new(terms(1.0, V4, &[]), START);
    let wrong = [
        foreign.clone(),
        // Time to live, the last byte of data, and a frame that was cut off.
        broken(22),
        broken(61),
        own[..60].to_vec(),
    ];
    for frame in &wrong {
        assert_eq!(echoes.handle_frame(START, 1, frame), EchoArrival::Echo);
    }
    assert_eq!(echoes.handle_frame(START, 1, own), EchoArrival::Measured(0));
    // To the port that asks, a request means nothing.
    assert_eq!(echoes.handle_frame(START, 0, own), EchoArrival::Other);
    let counters = echoes.readout()[1].counters.clone();
    assert_eq!(counters.values(), [0, 0, 1, 0, 1, 1, 1, 1]);
    // What arrived whole is answered, also to others.
    assert_eq!(answers(&mut echoes).len(), 2);
}

#[test]
fn a_message_that_arrives_before_it_was_sent_is_counted_and_has_no_time() {
    let mut sent = Vec::new();
    Echoes::new(terms(1.0, V4, &[]), START).poll_transmit(START, |_, frame| {
        sent.push(frame.to_vec());
        true
    });
    let mut echoes = Echoes::new(terms(1.0, V4, &[]), START - 1);
    let arrival = echoes.handle_frame(START - 1, 1, &sent[0]);
    assert_eq!(arrival, EchoArrival::Echo);
    let side = echoes.readout()[1].clone();
    assert_eq!((side.counters.received, side.times.packets()), (1, 0));
    let latency = side.latency;
    assert_eq!((latency.packets, latency.impossible_times), (0, 1));
}

#[test]
fn what_is_late_or_finds_no_room_is_told_and_is_no_loss() {
    let mut world = World::new(terms(100.0, V4, &[]), straight(MICROSECOND));
    world.run_for(100 * MILLISECOND);
    world.has_room = false;
    world.run_for(100 * MILLISECOND);
    world.has_room = true;
    world.run_for(100 * MILLISECOND);
    // Nobody asks for 300 ms: 20 are given up, the others follow at once.
    world.now += 300 * MILLISECOND;
    world.run_for(100 * MILLISECOND);
    let [client, server] = world.readout();
    assert_eq!((client.counters.sent, client.counters.not_sent), (40, 30));
    assert_eq!((server.counters.received, server.latency.dropped), (40, 0));
}

#[test]
fn the_rate_changes_and_ends_when_told() {
    let mut world = World::new(terms(0.1, V4, &[]), straight(MILLISECOND));
    world.run_for(SECOND);
    world.echoes.set_rate(world.now, 100.0);
    world.run_for(SECOND);
    assert!((100..=101).contains(&world.readout()[0].counters.sent));
    let sent = world.readout()[0].counters.sent;
    world.echoes.stop(world.now);
    assert_eq!(world.echoes.poll_timeout(), None);
    assert!(world.echoes.is_alive(world.now + SECOND - 1));
    assert!(!world.echoes.is_alive(world.now + SECOND));
    world.run_for(SECOND);
    let [client, server] = world.readout();
    assert_eq!(
        (client.counters.sent, client.counters.received),
        (sent, sent)
    );
    assert_eq!(
        (server.counters.sent, server.counters.received),
        (sent, sent)
    );
}

#[test]
fn a_duration_is_kept() {
    for (duration_ms, expected) in [(95, 10), (100, 10), (101, 11)] {
        let mut terms = terms(100.0, V4, &[]);
        terms.duration = Some(duration_ms * MILLISECOND);
        let mut world = World::new(terms, straight(MICROSECOND));
        world.run_for(SECOND);
        world.turn();
        let [client, server] = world.readout();
        assert_eq!(
            (client.counters.sent, client.counters.not_sent),
            (expected, 0)
        );
        assert_eq!(server.counters.received, expected);
        assert_eq!(world.echoes.poll_timeout(), None);
    }
}

#[test]
fn what_was_due_before_the_end_is_sent_or_told() {
    let mut world = World::new(terms(100.0, V4, &[]), straight(MICROSECOND));
    world.run_for(100 * MILLISECOND);
    // Nobody asks for 300 ms, and then it is stopped.
    world.now += 300 * MILLISECOND;
    world.echoes.stop(world.now);
    world.now += 50 * MILLISECOND;
    world.run_for(SECOND);
    world.turn();
    let [client, server] = world.readout();
    assert_eq!(client.counters.sent + client.counters.not_sent, 40);
    assert!(
        (14..=16).contains(&client.counters.sent),
        "ten at once, and those that were not too late"
    );
    assert_eq!(
        (server.counters.received, server.latency.dropped),
        (client.counters.sent, 0)
    );
}

/// A request and its answer, over IPv4 or IPv6.
fn both_messages(addresses: [&str; 2]) -> Vec<Vec<u8>> {
    let (mut echoes, mut sent) = (Echoes::new(terms(1.0, addresses, &[5]), START), Vec::new());
    for _ in 0..2 {
        echoes.poll_transmit(START, |_, frame| {
            sent.push(frame.to_vec());
            true
        });
        let last: &Vec<u8> = sent.last().expect("one was sent");
        echoes.handle_frame(START, 1, last);
    }
    sent
}

proptest! {
    #[test]
    fn whatever_arrives_is_taken_or_left_and_all_is_counted(
        is_long in any::<bool>(),
        frames in prop::collection::vec(
            (any::<u8>(), any::<bool>(), prop::collection::vec(any::<(u16, u8)>(), 0..4), any::<u16>()),
            1..40,
        ),
    ) {
        let addresses = if is_long { ["2001:db8::1", "2001:db8:1::1"] } else { V4 };
        let messages = both_messages(addresses);
        let mut echoes = Echoes::new(terms(1.0, addresses, &[5]), START);
        let mut taken = 0;
        for (port, which, changes, cut) in frames {
            let mut frame = messages[usize::from(which)].clone();
            for (place, value) in changes {
                let place = usize::from(place) % frame.len();
                frame[place] = value;
            }
            frame.truncate(frame.len().saturating_sub(usize::from(cut % 3 * (cut % 40))));
            let arrival = echoes.handle_frame(START, port % 3, &frame);
            taken += u64::from(arrival != EchoArrival::Other);
            echoes.poll_transmit(START, |_, _| true);
        }
        let counted = echoes.readout().into_iter().map(|port| {
            let counters = port.counters;
            counters.values().iter().sum::<u64>() - counters.sent - counters.not_sent
        });
        prop_assert_eq!(counted.sum::<u64>(), taken);
    }
}
