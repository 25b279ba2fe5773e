//! Echo streams between two memory ports, by a receive thread that really runs.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::asking::Asking;
use allosaur_engine::capture::{CaptureSettings, Overflow};
use allosaur_engine::echo::{EchoCounters, EchoPort, EchoReadout, EchoRole, EchoTerms};
use allosaur_engine::time::MICROSECOND;
use allosaur_packet::MacAddress;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::{self, LinkSettings};
use allosaur_port::tap::TapSwitch;
use allosaur_server::config::polling::Poll;
use allosaur_server::counters::{Counters, EchoBlock, Snapshot};
use allosaur_server::rx_taps::filter::Filter;
use allosaur_server::rx_taps::{CaptureAnswer, CaptureRequest, EchoAnswer, EchoRequest};
use allosaur_server::threads::clock::Clock;
use allosaur_server::threads::receive::Receiver;
use allosaur_server::threads::receive::watch::Watch;
use allosaur_server::threads::waker::Waker;

fn terms(run: u32, rate_pps: f64) -> EchoTerms {
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    let addresses = [Ipv4Addr::new(16, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 1)];
    let port = |port: u8, role| EchoPort {
        port,
        partner: 1 - port,
        role,
        own_mac: mac(port),
        vlans: vec![7],
        own_address: addresses[usize::from(port)].into(),
        other_address: addresses[usize::from(1 - port)].into(),
    };
    let asks = EchoRole::Asks { peer_mac: mac(1) };
    EchoTerms {
        run,
        rate_pps,
        duration: None,
        ports: vec![port(0, asks), port(1, EchoRole::Answers)],
    }
}

fn start(terms: EchoTerms, block: &Arc<EchoBlock>) -> EchoRequest {
    EchoRequest::Start {
        terms,
        block: Arc::clone(block),
    }
}

fn readout(asking: &Asking) -> Vec<EchoReadout> {
    match asking.ask(EchoRequest::Read) {
        Some(EchoAnswer::Measured(ports)) => ports,
        other => panic!("{other:?}"),
    }
}

/// Waits until both ports have measured so many.
fn measured(asking: &Asking, packets: u64) -> [EchoReadout; 2] {
    loop {
        let ports = readout(asking);
        if ports.iter().all(|port| port.counters.received >= packets) {
            return ports.try_into().expect("two ports");
        }
        thread::yield_now();
    }
}

/// Who reads beside sees the same, as soon as the turn is over.
fn read_beside(block: &EchoBlock, counted: &[EchoCounters; 2]) {
    while !block
        .ports()
        .map(|port| port.counters)
        .eq(counted.iter().cloned())
    {
        thread::yield_now();
    }
    for port in block.ports() {
        assert_eq!(port.times.packets(), port.latency.packets);
        assert_eq!(port.latency.packets, port.counters.received);
    }
}

fn received(asking: &Asking, capture: u32) -> u64 {
    match asking.ask(CaptureRequest::List) {
        Some(CaptureAnswer::Captures(captures)) => captures[capture as usize - 1].matched,
        other => panic!("{other:?}"),
    }
}

/// A receive thread that runs on two memory ports, a link between them.
struct Running {
    asking: Asking,
    counters: Counters,
    waker: Waker,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Running {
    fn new(link: &LinkSettings) -> Running {
        let (a, b) = memory::pair(1, 1, link);
        let (clock, counters) = (Clock::start(), Counters::new(2, 1));
        let waker = Waker::new().expect("a file descriptor");
        let (asking, answering) = crate::asking::asking(waker.clone());
        let queues: Vec<PortTx> = a.tx.into_iter().chain(b.tx).map(Into::into).collect();
        let watch = Watch::new(queues, Vec::new(), TapSwitch::default(), answering);
        let receiver = Receiver::new(
            [a.rx, b.rx].map(|rx| Some(rx.into())),
            Arc::clone(&counters.receive),
            clock,
        );
        let receiver = receiver.watched_by(watch);
        let stop = Arc::new(AtomicBool::new(false));
        let (told, own) = (Arc::clone(&stop), waker.clone());
        let thread = thread::spawn(move || receiver.run(Poll::Adaptive, &told, &own));
        Running {
            asking,
            counters,
            waker,
            stop,
            thread,
        }
    }

    /// Ends the thread; gives what was counted.
    fn end(self) -> Snapshot {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        self.thread.join().expect("the receive thread ends");
        let mut snapshot = Snapshot::default();
        self.counters.read(&mut snapshot);
        snapshot
    }
}

#[test]
fn both_ports_measure_and_captures_see_all() {
    let link = LinkSettings {
        delay_ns: 300 * MICROSECOND,
        ..LinkSettings::default()
    };
    let running = Running::new(&link);
    let asking = &running.asking;
    assert_eq!(readout(asking), []);
    let settings = CaptureSettings {
        transmit_ports: 0b11,
        receive_ports: 0b11,
        packets_max: 100,
        overflow: Overflow::KeepLast,
        snap_bytes: 0,
        memory_max: 1 << 20,
    };
    let capture = CaptureRequest::Start {
        settings,
        filter: Filter::compile("vlan 7 and icmp").expect("a filter"),
        endpoint: None,
    };
    let started = asking.ask(capture);
    assert_eq!(started, Some(CaptureAnswer::Started { capture: 1 }));
    let block = Arc::new(EchoBlock::new([0, 1]));
    assert_eq!(
        asking.ask(start(terms(1, 500.0), &block)),
        Some(EchoAnswer::Done)
    );
    measured(asking, 20);
    assert_eq!(
        asking.ask(EchoRequest::SetRate(5000.0)),
        Some(EchoAnswer::Done)
    );
    for port in measured(asking, 500) {
        let latency = &port.latency;
        assert!(latency.min_ns >= link.delay_ns, "{}", latency.min_ns);
        assert_eq!((latency.dropped, latency.duplicates), (0, 0));
        assert_eq!(port.times.packets(), latency.packets);
        let median_ns = port.times.percentile_ns(50.0);
        assert!((latency.min_ns..=latency.max_ns).contains(&median_ns));
    }
    assert_eq!(asking.ask(EchoRequest::Stop), Some(EchoAnswer::Done));
    // What was under way arrives.
    let [client, server] = loop {
        let ports: [EchoReadout; 2] = readout(asking).try_into().expect("two ports");
        if ports[0].counters.received == ports[0].counters.sent {
            break ports;
        }
        thread::yield_now();
    };
    assert_eq!(server.counters.received, server.counters.sent);
    // Each message once as it was sent, once as it arrived.
    assert_eq!(received(asking, 1), 4 * client.counters.sent);

    let counted = [client.counters, server.counters];
    read_beside(&block, &counted);

    // A new start forgets what was.
    assert_eq!(
        asking.ask(start(terms(2, 0.001), &Arc::new(EchoBlock::new([0, 1])))),
        Some(EchoAnswer::Done)
    );
    let [client, _] = measured(asking, 1);
    assert_eq!((client.counters.sent, client.counters.foreign), (1, 0));
    assert!(block.ports().map(|port| port.counters).eq(counted));

    let snapshot = running.end();
    assert!(snapshot.ports[0].transmit.sent.packets >= 501);
}
