//! The data thread of stateful mode: flows on one side, ports on the other, and streams beside.
//!
//! `rx_queue` is what it reads of a port, `publisher` what it tells control, `idle` how it waits.

mod idle;
mod publisher;
mod rx_queue;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use allosaur_engine::StatelessEngine;
use allosaur_engine::stateful::{Command, Config, StatefulEngine};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_port::kind::PortTx;
use allosaur_port::tap::{TapIn, TapSwitch};

use crate::clock::Clock;
use crate::counters::{ArrivalBlock, CoreBlock, ReceiveBlock};
use crate::mailbox::WorkerEnd;
use crate::threads::receive::idle::AwakePolicy;
use crate::threads::receive::secondary::ForwardTx;
use crate::threads::tx_queues::Queues;
use crate::worker_command::{FlowCommand, WorkerCommand};
use idle::Backoff;
use publisher::StatsPublisher;
pub use rx_queue::FlowRx;
use rx_queue::FlowRxQueue;

/// For so long after a stream has ended its packets may still come.
const STRAYS: Nanos = SECOND;

/// One data thread: the flows of a core and the streams beside, its queues of the ports that it
/// serves, the mail from control, and the way to the first receive thread.
#[derive(Debug)]
pub struct Flows {
    engine: StatefulEngine,
    streams: StatelessEngine,
    queues: Queues,
    switch: TapSwitch,
    rx_queues: Vec<FlowRxQueue>,
    end: ForwardTx,
    attention: AwakePolicy,
    mail: WorkerEnd,
    publisher: StatsPublisher,
    backoff: Backoff,
    /// Until then frames may come that streams sent; the end of time while they run.
    strays_until: Nanos,
    clock: Clock,
    started_at: Nanos,
    last_turn_at: Nanos,
    was_busy: bool,
    busy_ns: Nanos,
}

/// The ways of a data thread to all others.
#[derive(Debug)]
pub struct WorkerLinks {
    /// To control.
    pub mail: WorkerEnd,
    /// To the first receive thread.
    pub end: ForwardTx,
    /// Where it publishes what it sent, and what flows did.
    pub core: Arc<CoreBlock>,
    /// Where it publishes what arrived.
    pub arrivals: Arc<ArrivalBlock>,
    /// Where control says what latency to expect.
    pub first: Arc<ReceiveBlock>,
}

/// The calendar's milliseconds; they go round.
fn calendar_ms() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u32)
}

impl Flows {
    /// A thread with flows as `config` says, which sends through `queues` and reads `receivers`, one
    /// of each port that it serves.
    pub fn new(
        config: Config,
        queues: Vec<Option<PortTx>>,
        receivers: Vec<Option<FlowRx>>,
        joints: WorkerLinks,
        clock: Clock,
    ) -> Flows {
        let now = clock.now_ns();
        let sides: Vec<_> = config
            .ports
            .iter()
            .map(|facts| Some(facts.as_ref()?.side))
            .collect();
        let receivers = (0..).zip(receivers);
        let rx_queues = receivers.filter_map(|(port, queue): (PortIndex, _)| {
            let side = sides.get(usize::from(port)).copied().flatten();
            Some(FlowRxQueue::new(port, side, queue?))
        });
        Flows {
            rx_queues: rx_queues.collect(),
            engine: StatefulEngine::new(config, now).with_tcp_clock(calendar_ms()),
            streams: StatelessEngine::new(queues.len(), now),
            publisher: StatsPublisher::new(queues.len(), joints.core, joints.arrivals),
            queues: Queues::new(queues, now),
            switch: TapSwitch::default(),
            end: joints.end,
            attention: AwakePolicy::new(joints.first),
            mail: joints.mail,
            backoff: Backoff::default(),
            strays_until: 0,
            clock,
            started_at: now,
            last_turn_at: now,
            was_busy: false,
            busy_ns: 0,
        }
    }

    /// The same, with copies into `tap` of what those ports send that `switch` says.
    #[must_use]
    pub fn tapped_by(mut self, tap: TapIn, switch: TapSwitch) -> Flows {
        self.queues.tap = Some(tap);
        self.switch = switch;
        self
    }

    /// One turn of the loop: what control says, what arrived, what is due, the flush of each port, and what
    /// control is told. Returns how many frames came and went, and how many orders.
    #[inline]
    pub fn turn(&mut self) -> u64 {
        let now = self.clock.now_ns();
        if self.was_busy {
            self.busy_ns += now - self.last_turn_at;
        }
        self.last_turn_at = now;
        self.queues.now = now;
        self.queues.tapped = self.switch.ports();
        let orders = self.take_orders(now);
        let (arrived, is_more) = self.receive(now);
        let sent = self.streams.poll_transmit(now, &mut self.queues);
        let sent = sent + self.engine.poll_transmit(now, is_more, &mut self.queues);
        self.queues.flush();
        let frames = arrived + sent;
        self.tell(now, frames > 0);
        self.was_busy = frames > 0;
        orders + frames
    }

    /// Does what control says. Returns how many orders.
    fn take_orders(&mut self, now: Nanos) -> u64 {
        let mut orders = 0;
        while let Some(order) = self.mail.receive() {
            orders += 1;
            match order {
                WorkerCommand::Streams(command) => {
                    self.strays_until = Nanos::MAX;
                    self.streams.handle_command(now, command, &mut self.queues);
                }
                WorkerCommand::Flows(order) => self.take_flow_order(now, order),
            }
        }
        orders
    }

    fn take_flow_order(&mut self, now: Nanos, order: FlowCommand) {
        match order {
            FlowCommand::Command(command) => {
                if let Command::Remove { run } | Command::Retire { run } = command {
                    // Nobody can look at its counters afterwards, or they change no more.
                    self.publisher.forget(run, &self.engine);
                }
                self.engine.handle_command(now, command, &mut self.queues);
            }
            FlowCommand::Publish { run, block } => self.publisher.publish_to(run, block),
            FlowCommand::Sample { run, interval } => self.publisher.sample(now, run, interval),
        }
    }

    /// Takes what has arrived. Returns how many frames, and whether more wait.
    #[inline]
    fn receive(&mut self, now: Nanos) -> (u64, bool) {
        while let Ok((port, reception)) = self.end.changes.pop() {
            let mut rx_queues = self.rx_queues.iter_mut();
            if let Some(rx_queue) = rx_queues.find(|rx_queue| rx_queue.port() == port) {
                rx_queue.set(reception);
            }
        }
        let strays = self.strays(now);
        self.engine.let_strays(strays);
        let (mut arrived, mut is_more) = (0, false);
        let (mut is_passed_on, mut is_measured) = (false, false);
        for rx_queue in &mut self.rx_queues {
            let reaped = rx_queue.receive(
                now,
                &self.clock,
                &mut self.engine,
                &mut self.queues,
                &mut self.end,
            );
            arrived += reaped.frames as u64;
            is_more |= reaped.is_more;
            is_passed_on |= reaped.is_passed_on;
            is_measured |= reaped.is_measured;
        }
        if is_passed_on {
            self.end.flush();
        }
        if is_measured {
            self.attention.note(now);
        }
        (arrived, is_more)
    }

    /// The ports whose frames of no flow are somebody else's: in service mode, and all while streams
    /// run beside.
    fn strays(&mut self, now: Nanos) -> u64 {
        if self.strays_until == Nanos::MAX && self.streams.poll_timeout().is_none() {
            self.strays_until = now + STRAYS;
        }
        if now < self.strays_until {
            return u64::MAX;
        }
        let ports = self.rx_queues.iter().map(FlowRxQueue::lets_strays);
        ports.fold(0, |all, port| all | port)
    }

    /// Tells control what happened, and publishes the counters when it is time.
    fn tell(&mut self, now: Nanos, is_news: bool) {
        self.publisher.note(now, is_news);
        if self.publisher.is_due(now) {
            self.publish();
        }
        self.report(now);
    }

    /// The flows.
    pub fn engine(&self) -> &StatefulEngine {
        &self.engine
    }

    /// What arrived at each port that it reads.
    pub fn received(&self) -> impl Iterator<Item = (PortIndex, &DirectionCounters)> {
        let rx_queues = self.rx_queues.iter();
        rx_queues.map(|rx_queue| (rx_queue.port(), rx_queue.arrivals().received()))
    }
}
