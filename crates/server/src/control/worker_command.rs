//! What control tells data threads about flows and the modes of ports, and what they tell of them.

use std::sync::Arc;

use allosaur_engine::stateful::{self, FlowRecord, RunIndex};
use allosaur_engine::stateless::ProfileEvent;
use allosaur_engine::time::Nanos;

use crate::counters::RunBlock;

/// Whose a port is: what reads its frames, and who may send through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortMode {
    /// Receive threads read it, and streams send through it.
    Stateless,
    /// Flows read it and send through it.
    Stateful,
}

/// What a data thread shall do with its flows.
#[derive(Debug)]
pub enum FlowCommand {
    /// What the engine shall do.
    Command(stateful::StatefulCommand),
    /// The counters of that run go there from now on. Comes before the run starts.
    Publish {
        /// Which.
        run: RunIndex,
        /// Where they go.
        block: Arc<RunBlock>,
    },
    /// Tell of the run's flows, one by one: now, and then every `interval`. Without an interval
    /// now and no more.
    Sample {
        /// Which.
        run: RunIndex,
        /// How often.
        interval: Option<Nanos>,
    },
}

/// The modes that the ports of a server can be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// Each port is in the mode of who acquired it last; stateless at first.
    #[default]
    Both,
    /// All are in stateless mode.
    Stateless,
    /// All are in stateful mode.
    Stateful,
}

impl Modes {
    /// Whether ports can be in that mode.
    pub fn has(self, mode: PortMode) -> bool {
        self.only().is_none_or(|only| only == mode)
    }

    /// The mode that all ports are always in.
    pub fn only(self) -> Option<PortMode> {
        match self {
            Modes::Both => None,
            Modes::Stateless => Some(PortMode::Stateless),
            Modes::Stateful => Some(PortMode::Stateful),
        }
    }

    /// The mode that ports are in when the server starts.
    pub fn first(self) -> PortMode {
        self.only().unwrap_or(PortMode::Stateless)
    }
}

/// What a data thread tells of its flows.
#[derive(Debug)]
pub enum FlowReport {
    /// Something happened.
    Event(stateful::Event),
    /// What is to be seen of the flows of a run.
    Samples {
        /// Which.
        run: RunIndex,
        /// When.
        at: Nanos,
        /// Each TCP flow that is not over.
        records: Vec<FlowRecord>,
    },
}

/// What a data thread tells control.
#[derive(Debug)]
pub enum WorkerReport {
    /// Of streams.
    Streams(ProfileEvent),
    /// Of flows.
    Flows(FlowReport),
}

impl From<ProfileEvent> for WorkerReport {
    fn from(event: ProfileEvent) -> WorkerReport {
        WorkerReport::Streams(event)
    }
}

impl From<FlowReport> for WorkerReport {
    fn from(report: FlowReport) -> WorkerReport {
        WorkerReport::Flows(report)
    }
}
