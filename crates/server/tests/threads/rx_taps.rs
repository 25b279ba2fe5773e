//! A tap that nobody knew when the others were written: what `docs/how-to-add/protocol.md` builds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_engine::capture::Origin;
use allosaur_engine::host::HostSettings;
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_engine::transmit::PortIndex;
use allosaur_server::rx_taps::{
    HostAnswer, HostRequest, PortAnswer, PortRequest, RxQueueAnswer, RxQueueRequest, RxTap, RxTaps,
    ServiceMask, ServiceMode,
};

/// LLDP's EtherType (IEEE 802.1AB).
const LLDP: [u8; 2] = [0x88, 0xcc];
const ADVERTISE_EVERY: Nanos = 30 * MILLISECOND;

/// Counts the LLDP frames of port 1, and advertises the port every 30 ms.
#[derive(Debug)]
struct Lldp {
    seen: Arc<Seen>,
    next_at: Nanos,
}

#[derive(Debug, Default)]
struct Seen {
    frames: AtomicU64,
    neighbors: AtomicU64,
}

impl Seen {
    fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.frames), count(&self.neighbors))
    }
}

fn advertisement() -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1];
    frame.extend(LLDP);
    frame.resize(60, 0);
    frame
}

impl RxTap for Lldp {
    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => 1 << 1,
            Origin::Transmitted => 0,
        }
    }

    fn handle_frame(&mut self, _: Nanos, _: PortIndex, _: Origin, frame: &[u8]) -> bool {
        let is_own = frame[12..14] == LLDP;
        self.seen.frames.fetch_add(1, Ordering::Relaxed);
        let neighbors = &self.seen.neighbors;
        neighbors.fetch_add(u64::from(is_own), Ordering::Relaxed);
        is_own
    }

    fn poll_transmit(&mut self, now: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        if self.next_at <= now {
            self.next_at = now + ADVERTISE_EVERY;
            send(1, &advertisement());
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        Some(self.next_at)
    }

    fn answers(&self) -> bool {
        true
    }
}

fn with_lldp() -> (RxTaps, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let lldp = Lldp {
        seen: Arc::clone(&seen),
        next_at: 0,
    };
    (RxTaps::new(2).with(Box::new(lldp)), seen)
}

fn arp_request() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend([2, 0, 0, 0, 0, 9, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
    frame.resize(60, 0);
    frame
}

fn sent(taps: &mut RxTaps, now: Nanos) -> Vec<(PortIndex, Vec<u8>)> {
    let mut sent = Vec::new();
    taps.poll_transmit(now, |port, frame| {
        sent.push((port, frame.to_vec()));
        true
    });
    sent
}

#[test]
fn another_tap_gets_the_frames_that_it_wants() {
    let (mut taps, seen) = with_lldp();
    assert!(taps.watches(1) && !taps.watches(0));
    // It answers, so nobody waits for all that the port receives.
    assert_eq!(taps.capturing_ports(), 0);
    taps.handle_received(5, 1, &advertisement());
    taps.handle_received(6, 1, &arp_request());
    taps.handle_received(7, 0, &advertisement());
    assert_eq!(seen.counts(), (2, 1));
}

#[test]
fn service_mode_hides_frames_from_watchers_and_not_from_who_answers() {
    let (mut taps, seen) = with_lldp();
    let set = RxQueueRequest::Set {
        port: 1,
        packets_max: 10,
    };
    assert_eq!(taps.handle(set, 0), RxQueueAnswer::Done.into());
    let mode = ServiceMode::Filtered(ServiceMask(ServiceMask::BGP));
    taps.handle(PortRequest::SetService { port: 1, mode }, 0);
    taps.handle_received(5, 1, &advertisement());
    assert_eq!(seen.counts(), (1, 1));
    let answer = taps.handle(PortRequest::State(1), 5);
    let Ok(PortAnswer::State(state)) = PortAnswer::try_from(answer) else {
        panic!("a port's state");
    };
    assert_eq!(state.queue, Some((10, 0)));
}

#[test]
fn it_sends_when_it_is_due_and_others_see_that() {
    let (mut taps, _) = with_lldp();
    assert_eq!(taps.poll_timeout(), Some(0));
    assert_eq!(sent(&mut taps, 0), [(1, advertisement())]);
    assert_eq!(taps.poll_timeout(), Some(ADVERTISE_EVERY));
    assert_eq!(sent(&mut taps, 1), []);
}

#[test]
fn a_frame_that_a_host_answers_is_no_other_taps() {
    let (mut taps, seen) = with_lldp();
    let settings = HostSettings {
        mac: [2, 0, 0, 0, 0, 1],
        ipv4: Some([10, 0, 0, 1].into()),
        ..HostSettings::default()
    };
    assert_eq!(
        taps.handle(HostRequest::Set { port: 1, settings }, 0),
        HostAnswer::Done.into()
    );
    taps.handle_received(5, 1, &arp_request());
    let answers = sent(&mut taps, MILLISECOND);
    let is_reply = |frame: &[u8]| frame[12..14] == [0x08, 0x06] && frame[21] == 2;
    assert!(
        answers
            .iter()
            .any(|(port, frame)| *port == 1 && is_reply(frame))
    );
    assert_eq!(seen.counts(), (0, 0));
}
