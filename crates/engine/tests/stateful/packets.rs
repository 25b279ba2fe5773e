//! How many packets a connection takes, where nothing is lost: what firewalls and NATs see, and what
//! testers divide by.

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_packet::transport::tcp::TcpFlags;

use crate::world::{MS, World, flags_of, profile, receive, send};

const BYTES: u64 = 100;

/// The flags of what clients and servers send in one connection, in their order.
fn packets(programs: [Vec<Step>; 2]) -> [Vec<TcpFlags>; 2] {
    let mut world = World::new(10);
    world.heard = Some(Vec::new());
    let one = profile(Transport::Stream, programs, BYTES, 1.0);
    world.start(&one, 1.0, Some(500 * MS));
    world.run_for(10_000 * MS);
    assert_eq!(world.engine.flows(), 0);
    assert_eq!(world.sides()[0].flows.tcp.closed, 1);
    assert_eq!(world.sides()[1].flows.tcp.closed, 1);
    let heard = world.heard.expect("it listens");
    [0, 1].map(|side| {
        let its = heard.iter().filter(|(port, _)| *port == side);
        its.map(|(_, frame)| flags_of(frame)).collect()
    })
}

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
const FIN_ACK: TcpFlags = TcpFlags(TcpFlags::FIN.0 | TcpFlags::ACK.0);
const DATA: TcpFlags = TcpFlags(TcpFlags::PSH.0 | TcpFlags::ACK.0);

#[test]
fn a_connection_without_data_has_seven() {
    let client = vec![Step::Connect, receive(0)];
    let server = vec![Step::Connect, Step::WaitForPeerClose];
    let [client, server] = packets([client, server]);
    assert_eq!(client, [SYN, ACK, FIN_ACK, ACK]);
    // The acknowledgment of the client's FIN is one of its own.
    assert_eq!(server, [SYN_ACK, ACK, FIN_ACK]);
}

#[test]
fn questions_and_answers_have_two_each_and_six_more() {
    let rounds = 5;
    let client = [send(0), receive(BYTES)].repeat(rounds);
    let server = [receive(BYTES), send(1)].repeat(rounds);
    let connect = |steps: Vec<Step>| [vec![Step::Connect], steps].concat();
    let [client, server] = packets([connect(client), connect(server)]);
    assert_eq!(client[..2], [SYN, ACK]);
    assert_eq!(client[2..7], [DATA; 5]);
    assert_eq!(client[7..], [FIN_ACK, ACK]);
    assert_eq!(server[0], SYN_ACK);
    assert_eq!(server[1..6], [DATA; 5]);
    assert_eq!(server[6..], [FIN_ACK]);
}

#[test]
fn without_connect_the_first_data_acknowledges() {
    let client = vec![send(0), receive(BYTES)];
    let server = vec![receive(BYTES), send(1)];
    let [client, _] = packets([client, server]);
    assert_eq!(client[..2], [SYN, DATA]);
}

#[test]
fn a_reset_after_connect_follows_the_acknowledgment() {
    let client = vec![Step::Connect, Step::Reset];
    let mut world = World::new(10);
    world.heard = Some(Vec::new());
    let one = profile(Transport::Stream, [client, vec![receive(1)]], BYTES, 1.0);
    world.start(&one, 1.0, Some(500 * MS));
    world.run_for(10_000 * MS);
    let heard = world.heard.expect("it listens");
    let client = heard.iter().filter(|(port, _)| *port == 0);
    let flags: Vec<_> = client.map(|(_, frame)| flags_of(frame)).collect();
    assert_eq!(
        flags,
        [SYN, ACK, TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0)]
    );
}
