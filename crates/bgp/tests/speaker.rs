//! A speaker with many sessions, in virtual time, before peers that count.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_bgp::routes::generate::{internet, range};
use allosaur_bgp::session::BgpSession;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::session::event::{BgpEvent, BgpState};
use allosaur_bgp::speaker::{BgpSessionId, BgpSpeaker};
use allosaur_bgp::wire::attributes::PathAttributes;
use allosaur_bgp::wire::prefix::AddressFamily;

const SESSIONS: u32 = 50;

fn config(local_as: u32, passive: bool) -> BgpSessionConfig {
    BgpSessionConfig {
        local_as,
        peer_as: None,
        identifier: Ipv4Addr::from_bits(0x0b00_0000 + local_as),
        hold_time_s: 0,
        connect_retry_ns: 1_000_000_000,
        passive,
        families: vec![AddressFamily::Ipv4, AddressFamily::Ipv6],
        extended_messages: false,
        restart_time_s: None,
        next_hop_ipv4: Ipv4Addr::from_bits(0x0b00_0000 + local_as),
        next_hop_ipv6: Ipv6Addr::LOCALHOST,
    }
}

/// A speaker, and the peer of each of its sessions.
struct Bench {
    speaker: BgpSpeaker,
    peers: Vec<BgpSession>,
    now_ns: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            speaker: BgpSpeaker::default(),
            peers: Vec::new(),
            now_ns: 0,
        };
        for number in 0..SESSIONS {
            let added = bench
                .speaker
                .add_session(config(65_001 + number, false), number.into());
            let id = added.expect("a right configuration");
            let session = bench.speaker.session_mut(id);
            session.start(0);
            session.handle_connected(0);
            let mut peer = BgpSession::new(config(64_999, true), 1).expect("a right configuration");
            peer.start(0);
            peer.handle_connected(0);
            bench.peers.push(peer);
        }
        bench
    }

    /// Carries bytes until nothing waits, going on in time where a rate wants it.
    fn exchange(&mut self) {
        loop {
            let mut moved = false;
            let mut due_ns = None;
            for (index, peer) in self.peers.iter_mut().enumerate() {
                let id = BgpSessionId(index);
                let mut out = Vec::new();
                self.speaker
                    .session_mut(id)
                    .poll_transmit(self.now_ns, 65_536, &mut out);
                moved |= !out.is_empty();
                peer.handle_bytes(self.now_ns, &out);
                out.clear();
                peer.poll_transmit(self.now_ns, 65_536, &mut out);
                moved |= !out.is_empty();
                self.speaker.session_mut(id).handle_bytes(self.now_ns, &out);
                while self.speaker.poll_event(id).is_some() {}
                let due = self.speaker.session_mut(id).poll_transmit_due();
                due_ns = due_ns.into_iter().chain(due).min();
            }
            match due_ns {
                Some(due_ns) => self.now_ns = self.now_ns.max(due_ns),
                None if !moved => return,
                None => {}
            }
        }
    }

    fn received(&self) -> Vec<(u64, u64)> {
        let counters = self.peers.iter().map(BgpSession::counters);
        counters
            .map(|c| (c.announcements_received, c.withdrawals_received))
            .collect()
    }
}

#[test]
fn all_sessions_share_one_encoding() {
    let mut bench = Bench::new();
    bench.exchange();
    let table = internet(AddressFamily::Ipv4, 1_000, 1, 1).expect("a right count");
    bench
        .speaker
        .announce("full", Arc::new(table), None)
        .expect("it fits");
    let memory = bench.speaker.shared_memory();
    assert!(memory < 60_000, "{memory} octets for all sessions");
    bench.exchange();
    assert_eq!(bench.received(), vec![(1_000, 0); SESSIONS as usize]);
    bench
        .speaker
        .withdraw("full", None)
        .expect("it is announced");
    assert_eq!(bench.speaker.shared_memory(), 0);
    bench.exchange();
    assert_eq!(bench.received(), vec![(1_000, 1_000); SESSIONS as usize]);
}

#[test]
fn sessions_that_come_up_later_or_ask_get_all_tables() {
    let mut bench = Bench::new();
    for (name, family) in [("four", AddressFamily::Ipv4), ("six", AddressFamily::Ipv6)] {
        let table = internet(family, 100, 1, 1).expect("a right count");
        bench
            .speaker
            .announce(name, Arc::new(table), None)
            .expect("nobody is there yet");
    }
    bench.exchange();
    assert_eq!(bench.received(), vec![(200, 0); SESSIONS as usize]);
    let end_of_ribs: Vec<BgpEvent> = std::iter::from_fn(|| bench.peers[0].poll_event())
        .filter(|event| matches!(event, BgpEvent::EndOfRib(_)))
        .collect();
    assert_eq!(end_of_ribs.len(), 2);
    assert!(bench.peers[3].request_refresh(AddressFamily::Ipv6));
    bench.exchange();
    assert_eq!(bench.received()[3], (300, 0));
    assert_eq!(bench.received()[4], (200, 0));
}

#[test]
fn routes_flap_at_their_rate_and_change_their_attributes() {
    let mut bench = Bench::new();
    bench.exchange();
    let table =
        |seed| Arc::new(internet(AddressFamily::Ipv4, 1_000, 1, seed).expect("a right count"));
    bench
        .speaker
        .announce("full", table(1), None)
        .expect("it fits");
    bench.exchange();
    let before_ns = bench.now_ns;
    bench
        .speaker
        .flap("full", 3, 2_000, 1.0)
        .expect("it is announced");
    bench.exchange();
    assert_eq!(bench.received(), vec![(4_000, 3_000); SESSIONS as usize]);
    // Three times a thousand withdrawals and announcements, each half a second.
    assert_eq!((bench.now_ns - before_ns) / 1_000_000, 3_000);
    bench
        .speaker
        .replace("full", table(2))
        .expect("it is announced");
    bench.exchange();
    assert_eq!(bench.received(), vec![(5_000, 3_000); SESSIONS as usize]);
}

#[test]
fn names_that_are_taken_or_unknown_are_told() {
    let mut bench = Bench::new();
    let error = bench
        .speaker
        .withdraw("x", None)
        .expect_err("none is there");
    assert_eq!(
        error.to_string(),
        "routes: no table 'x' is announced; announced are: none"
    );
    let table = || Arc::new(internet(AddressFamily::Ipv4, 10, 1, 1).expect("a right count"));
    bench.speaker.announce("a", table(), None).expect("free");
    let error = bench
        .speaker
        .announce("a", table(), None)
        .expect_err("taken");
    assert!(error.to_string().contains("withdraw it first"));
    for error in [
        bench
            .speaker
            .flap("x", 1, 1, 1.0)
            .expect_err("none is there"),
        bench
            .speaker
            .replace("x", table())
            .expect_err("none is there"),
    ] {
        assert!(error.to_string().ends_with("announced are: a"), "{error}");
    }
}

#[test]
fn routes_that_a_session_cannot_carry_are_told() {
    let attributes = PathAttributes {
        communities: vec![1; 1_100],
        ..PathAttributes::default()
    };
    let first = "198.51.100.0/24".parse().expect("a prefix");
    let table = Arc::new(range(first, 1, attributes).expect("one"));
    let mut bench = Bench::new();
    bench
        .speaker
        .announce("long", Arc::clone(&table), None)
        .expect("nobody is there yet");
    bench.exchange();
    assert!(bench.speaker.poll_fault().is_some());
    assert!(
        bench
            .peers
            .iter()
            .all(|peer| peer.state() == BgpState::Established)
    );
    bench
        .speaker
        .withdraw("long", None)
        .expect("it is announced");
    let error = bench
        .speaker
        .announce("long", table, None)
        .expect_err("too long");
    assert!(error.to_string().contains("shorten its AS path"));
}

#[test]
fn a_removed_session_is_not_served_and_others_are() {
    let mut bench = Bench::new();
    bench.exchange();
    let removed = bench.speaker.remove_session(BgpSessionId(3));
    assert!(removed.is_some_and(|session| session.state() == BgpState::Established));
    assert!(bench.speaker.session(BgpSessionId(3)).is_none());
    assert!(bench.speaker.remove_session(BgpSessionId(3)).is_none());
    assert_eq!(bench.speaker.poll_event(BgpSessionId(3)), None);
    let table = internet(AddressFamily::Ipv4, 10, 1, 1).expect("a right count");
    let announced = bench.speaker.announce("x", Arc::new(table), None);
    announced.expect("it fits");
    let queued = bench.speaker.sessions().map(|(_, one)| one.queued());
    assert_eq!(queued.filter(|queued| *queued > 0).count(), 49);
    // The number is not given again.
    let added = bench.speaker.add_session(config(65_500, false), 1);
    assert_eq!(added, Ok(BgpSessionId(50)));
}

#[test]
fn what_waits_on_a_session_is_bounded() {
    let mut bench = Bench::new();
    bench.exchange();
    let table = internet(AddressFamily::Ipv4, 10, 1, 1).expect("a right count");
    let announced = bench.speaker.announce("x", Arc::new(table), None);
    announced.expect("it fits");
    let refused = bench.speaker.flap("x", 3_000, 10, 1.0);
    let refused = refused.expect_err("too many").to_string();
    assert!(refused.contains("flap fewer times"), "{refused}");
    // A refused one queues nothing, and the rest may be queued.
    bench
        .speaker
        .flap("x", 2_000, 10, 0.5)
        .expect("there is room");
    let queued = bench
        .speaker
        .session(BgpSessionId(0))
        .map(BgpSession::queued);
    assert_eq!(queued, Some(1 + 4_000));
    let refused = bench.speaker.flap("x", 2_000, 10, 1.0);
    assert!(refused.is_err());
}
