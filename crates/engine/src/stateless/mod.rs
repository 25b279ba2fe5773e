//! The engine of one core: verbs in, verbs out.
//!
//! [`StatelessCommand`] and [`ProfileEvent`] pass between control and a data thread. [`StatelessEngine`] shares its
//! turns out among the ports of its group: `sender` is one port and what runs there, `burst` the packets
//! of a burst. `change` is for profiles that control changes while they run, `replay` for captures.

mod burst;
mod change;
mod messages;
mod replay;
mod sender;

use std::collections::VecDeque;

use crate::flow_stats::GroupTable;
use crate::stats::{StreamCounters, TransmitCounters};
use crate::stream::{CoreProgram, ProfileKey, StreamId};
use crate::time::{MILLISECOND, Nanos};
use crate::transmit::{PortIndex, TxQueues};
use crate::vm;

pub use messages::{Change, ProfileEvent, StatelessCommand};
use sender::Sender;

/// How far a stream without end may fall behind before it gives up packets, and so how much it
/// catches up after the thread was held up.
pub const LATE_MAX: Nanos = 100 * MILLISECOND;
/// How long after the end of a run what was due before it may still leave.
pub const DRAIN_MAX: Nanos = 30 * MILLISECOND;
/// Most bursts of one turn of a port, so that a core that is behind still hears its commands.
pub const BURSTS_PER_TURN: u32 = 32;

/// The engine of one core. Drive it like this, once a turn: any commands by
/// [`handle_command`](StatelessEngine::handle_command), one [`poll_transmit`](StatelessEngine::poll_transmit), then
/// [`poll_event`](StatelessEngine::poll_event) and [`poll_retired`](StatelessEngine::poll_retired) until they are
/// empty; [`poll_timeout`](StatelessEngine::poll_timeout) says when the next turn has something to do.
#[derive(Debug)]
pub struct StatelessEngine {
    senders: Vec<Sender>,
    counters: Vec<TransmitCounters>,
    stage: vm::Stage,
    outbox: Outbox,
}

/// What the engine has to say.
#[derive(Debug, Default)]
struct Outbox {
    events: VecDeque<ProfileEvent>,
    retired: VecDeque<Box<CoreProgram>>,
}

impl StatelessEngine {
    /// An engine for ports `0..ports`, at time `now`.
    pub fn new(ports: usize, now: Nanos) -> StatelessEngine {
        StatelessEngine {
            senders: (0..ports)
                .map(|port| Sender::new(port as PortIndex, now))
                .collect(),
            counters: vec![TransmitCounters::default(); ports],
            stage: vm::Stage::default(),
            outbox: Outbox::default(),
        }
    }

    /// Does what control asks for.
    pub fn handle_command(
        &mut self,
        now: Nanos,
        command: StatelessCommand,
        tx_queues: &mut impl TxQueues,
    ) {
        match command {
            StatelessCommand::StartProfile {
                port,
                profile,
                program,
                start_at,
                duration,
            } => {
                let end = duration.map_or(Nanos::MAX, |length| start_at.saturating_add(length));
                let sender = &mut self.senders[usize::from(port)];
                sender.start(
                    profile,
                    program,
                    start_at,
                    end,
                    now,
                    tx_queues,
                    &mut self.outbox,
                );
            }
            StatelessCommand::StopProfile { port, profile } => {
                self.senders[usize::from(port)].stop(profile, tx_queues, &mut self.outbox);
                self.outbox.events.push_back(ProfileEvent::ProfileStopped {
                    port,
                    profile,
                    at: now,
                });
            }
            StatelessCommand::ChangeProfile {
                port,
                profile,
                at,
                change,
            } => {
                let sender = &mut self.senders[usize::from(port)];
                sender.change(profile, at, change, &mut self.outbox);
            }
        }
    }

    /// Sends all that is due by `now`, a bounded number of bursts of each port. Returns the
    /// packets sent.
    pub fn poll_transmit(&mut self, now: Nanos, tx_queues: &mut impl TxQueues) -> u64 {
        let mut sent = 0;
        for (sender, counters) in self.senders.iter_mut().zip(&mut self.counters) {
            sent += sender.turn(now, &mut self.stage, counters, tx_queues, &mut self.outbox);
        }
        sent
    }

    /// When something is due next: never later than that. `None` when nothing runs.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.senders.iter().filter_map(Sender::next_due).min()
    }

    /// The next thing that control should know.
    pub fn poll_event(&mut self) -> Option<ProfileEvent> {
        self.outbox.events.pop_front()
    }

    /// A program that is no longer in use, to be freed where freeing does not hurt.
    pub fn poll_retired(&mut self) -> Option<Box<CoreProgram>> {
        self.outbox.retired.pop_front()
    }

    /// What was counted of each port since the engine was made.
    pub fn counters(&self) -> &[TransmitCounters] {
        &self.counters
    }

    /// What was sent of each group, port by port, to be published.
    pub fn groups_mut(&mut self) -> impl Iterator<Item = &mut GroupTable> {
        self.senders.iter_mut().map(Sender::groups_mut)
    }

    /// What was counted of each stream of a profile that runs, on this core.
    pub fn stream_counters(
        &self,
        port: PortIndex,
        profile: ProfileKey,
    ) -> impl Iterator<Item = (StreamId, StreamCounters)> + '_ {
        self.senders[usize::from(port)].stream_counters(profile)
    }

    /// Whether no profile runs.
    pub fn is_idle(&self) -> bool {
        self.senders.iter().all(Sender::is_idle)
    }
}
