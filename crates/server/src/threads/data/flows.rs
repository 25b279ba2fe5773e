//! The flows of a data thread: their engine, the rx queues that they read, and the way to the
//! first receive thread for all that is no flow's.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use allosaur_engine::StatelessEngine;
use allosaur_engine::stateful::{Config, StatefulCommand, StatefulEngine};
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;

use super::Queues;
use super::publisher::FlowPublisher;
use super::rx_port::{FlowRx, FlowRxPort, RxResult};
use crate::control::worker_command::{FlowCommand, FlowReport};
use crate::counters::{ArrivalBlock, CoreBlock, ReceiveBlock};
use crate::threads::awake::AwakePolicy;
use crate::threads::clock::Clock;
use crate::threads::forward::ForwardTx;
use crate::threads::idle::{SLEEP_EXPECTING, SLEEP_IDLE};

/// For so long after a stream has ended its packets may still come.
const UNMATCHED_FOR: Nanos = SECOND;

/// The flows of a data thread.
#[derive(Debug)]
pub struct FlowState {
    pub(super) engine: StatefulEngine,
    pub(super) rx_ports: Vec<FlowRxPort>,
    pub(super) forward: ForwardTx,
    awake: AwakePolicy,
    publisher: FlowPublisher,
    /// Until then frames may come that streams sent; the end of time while they run.
    unmatched_until: Nanos,
    /// More frames wait than were taken in this turn.
    is_more: bool,
    /// Of each port, what flows and streams sent.
    sent: Vec<TransmitCounters>,
}

/// The ways of a thread's flows to others.
#[derive(Debug)]
pub struct FlowLinks {
    /// To the first receive thread.
    pub forward: ForwardTx,
    /// Where they publish what arrived.
    pub arrivals: Arc<ArrivalBlock>,
    /// Where control says what latency to expect.
    pub receive: Arc<ReceiveBlock>,
}

/// The time since 1970.
fn since_1970() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

impl FlowState {
    /// No flows yet, of the ports that `config` says; they read `rx_queues`, one of each port that
    /// the thread serves.
    pub fn new(
        config: Config,
        rx_queues: Vec<Option<FlowRx>>,
        links: FlowLinks,
        now: Nanos,
    ) -> FlowState {
        let mut rx_ports = Vec::with_capacity(config.ports.len());
        let mut rx_queues = rx_queues.into_iter();
        for (number, port) in (0..).zip(&config.ports) {
            let queue = rx_queues.next().flatten();
            if port.is_some() || queue.is_some() {
                let side = port.as_ref().map(|port| port.side);
                rx_ports.push(FlowRxPort::new(number, side, queue));
            }
        }
        let since_1970 = since_1970();
        let unix_offset = (since_1970.as_nanos() as Nanos).saturating_sub(now);
        FlowState {
            rx_ports,
            sent: vec![TransmitCounters::default(); config.ports.len()],
            engine: StatefulEngine::new(config, now)
                // Milliseconds that go round.
                .with_tcp_clock(since_1970.as_millis() as u32)
                .with_unix_offset(unix_offset),
            forward: links.forward,
            awake: AwakePolicy::new(links.receive),
            publisher: FlowPublisher::new(links.arrivals),
            unmatched_until: 0,
            is_more: false,
        }
    }

    /// Streams begin or end at a port: beside flows, if there are any.
    pub(super) fn expect_unmatched(&mut self, port: PortIndex) {
        if self.rx_port(port).is_some_and(|port| port.is_attached()) {
            self.unmatched_until = Nanos::MAX;
        }
    }

    fn rx_port(&mut self, number: PortIndex) -> Option<&mut FlowRxPort> {
        let mut ports = self.rx_ports.iter_mut();
        ports.find(|port| port.port() == number)
    }

    /// A port is in stateful mode from now on.
    pub(super) fn attach(&mut self, number: PortIndex, queue: FlowRx) {
        if self.rx_port(number).is_none() {
            self.rx_ports.push(FlowRxPort::new(number, None, None));
        }
        if let Some(port) = self.rx_port(number) {
            port.attach(queue);
        }
    }

    /// A port is in stateful mode no more. What waits in its queue is for the next owner; what
    /// waits in a share of it nobody else could read.
    pub(super) fn detach(
        &mut self,
        clock: &Clock,
        number: PortIndex,
        tx_queues: &mut Queues,
    ) -> Option<FlowRx> {
        let mut ports = self.rx_ports.iter_mut();
        let port = ports.find(|port| port.port() == number)?;
        // What the reader passed on while this turn lasted, too.
        let now = clock.now_ns();
        while port.is_share() {
            let (engine, forward) = (&mut self.engine, &mut self.forward);
            if port.receive(now, clock, engine, tx_queues, forward).frames == 0 {
                break;
            }
        }
        self.forward.flush();
        port.detach()
    }

    pub(super) fn handle_command(
        &mut self,
        now: Nanos,
        command: FlowCommand,
        tx_queues: &mut Queues,
    ) {
        match command {
            FlowCommand::Command(command) => {
                if let StatefulCommand::Remove { run } | StatefulCommand::Retire { run } = command {
                    // Nobody can look at its counters afterwards, or they change no more.
                    self.publisher.forget(run, &mut self.engine);
                }
                self.engine.handle_command(now, command, tx_queues);
            }
            FlowCommand::Publish { run, block } => self.publisher.publish_to(run, block),
            FlowCommand::Sample { run, interval } => self.publisher.sample(now, run, interval),
        }
    }

    /// Takes how ports shall receive from now on.
    #[inline]
    pub(super) fn take_changes(&mut self) {
        while let Ok((port, reception)) = self.forward.changes.pop() {
            if let Some(rx_port) = self.rx_port(port) {
                rx_port.set(reception);
            }
        }
    }

    /// The ports whose frames of no flow are somebody else's: in service mode, and all while streams
    /// run beside.
    pub(super) fn unmatched_ports(&mut self, now: Nanos, streams: &StatelessEngine) -> u64 {
        if self.unmatched_until == Nanos::MAX && streams.poll_timeout().is_none() {
            self.unmatched_until = now + UNMATCHED_FOR;
        }
        if now < self.unmatched_until {
            return u64::MAX;
        }
        let ports = self.rx_ports.iter().map(FlowRxPort::passes_unmatched);
        ports.fold(0, |all, port| all | port)
    }

    /// So much was received in this turn.
    #[inline]
    pub(super) fn note_received(&mut self, now: Nanos, all: &RxResult) {
        self.is_more = all.is_more;
        if all.is_forwarded {
            self.forward.flush();
        }
        if all.is_measured {
            self.awake.note(now);
        }
    }

    /// Sends what is due. Returns how many frames.
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Nanos, tx_queues: &mut Queues) -> u64 {
        self.engine.poll_transmit(now, self.is_more, tx_queues)
    }

    /// What happened, or what was asked about flows.
    pub(super) fn poll_report(&mut self, now: Nanos) -> Option<FlowReport> {
        let event = self.engine.poll_event().map(FlowReport::Event);
        event.or_else(|| self.publisher.poll_sample(now, &self.engine))
    }

    /// Whether it is time to publish; in this turn something was counted if `is_news`.
    #[inline]
    pub(super) fn is_to_publish(&mut self, now: Nanos, is_news: bool) -> bool {
        self.publisher.note(now, is_news);
        self.publisher.is_due(now)
    }

    pub(super) fn publish(&mut self, now: Nanos, block: &CoreBlock) {
        self.publisher
            .publish(now, &mut self.engine, &mut self.rx_ports, block);
    }

    /// Of each port, what flows sent and `streams` too.
    pub(super) fn add_sent(&mut self, streams: &[TransmitCounters]) -> &[TransmitCounters] {
        let parts = self.engine.transmitted().iter().zip(streams);
        for (sum, (flows, streams)) in self.sent.iter_mut().zip(parts) {
            *sum = *flows;
            sum.add(streams);
        }
        &self.sent
    }

    pub(super) fn engine(&self) -> &StatefulEngine {
        &self.engine
    }

    pub(super) fn next_due(&mut self) -> Option<Nanos> {
        let arrivals = self.rx_ports.iter_mut();
        let arrivals = arrivals.filter_map(FlowRxPort::next_arrival_ns);
        let due = self.engine.poll_timeout().into_iter();
        due.chain(arrivals).chain(self.publisher.next_due()).min()
    }

    /// Whether all frames that may come wake the thread.
    pub(super) fn is_woken_by_frames(&self) -> bool {
        self.rx_ports.iter().all(FlowRxPort::wakes)
    }

    /// The longest sleep; `is_woken` if each frame wakes the thread.
    pub(super) fn sleep_max(&self, is_woken: bool) -> Nanos {
        match is_woken || self.engine.flows() == 0 {
            true => SLEEP_IDLE,
            false => SLEEP_EXPECTING,
        }
    }

    /// Whether a sleep would be measured.
    pub(super) fn must_stay_awake(&mut self, now: Nanos) -> bool {
        let measures = self.awake.expect_more(now) || self.forward.watched.timed() != 0;
        measures && self.rx_ports.iter().any(FlowRxPort::is_timed_here)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rx_ports.iter().flat_map(FlowRxPort::files)
    }
}
