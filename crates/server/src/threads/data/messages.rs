//! What goes through the mailbox of a data thread.

use allosaur_engine::stateful;
use allosaur_engine::stream::CoreProgram;
use allosaur_engine::transmit::PortIndex;
use allosaur_engine::{ProfileEvent, StatelessCommand};

use super::{FlowRx, FlowState};
use crate::control::worker_command::{FlowCommand, FlowReport};

/// What a data thread shall do.
#[derive(Debug)]
pub enum WorkerCommand {
    /// For its streams.
    Streams(StatelessCommand),
    /// For its flows.
    Flows(FlowCommand),
    /// It has flows from now on.
    StartFlows(Box<FlowState>),
    /// Its flows read a port from now on.
    AttachRx {
        /// The port.
        port: PortIndex,
        /// What they read.
        queue: Box<FlowRx>,
    },
    /// They read it no more; answered by [`Report::Detached`].
    DetachRx {
        /// The port.
        port: PortIndex,
    },
}

/// What a data thread tells control.
#[derive(Debug)]
pub enum Report {
    /// Something happened to its streams.
    Event(ProfileEvent),
    /// A program that the engine is done with, to be freed here.
    Retired(Box<CoreProgram>),
    /// Something about its flows.
    Flows(FlowReport),
    /// Its flows do not read a port.
    Detached {
        /// The port.
        port: PortIndex,
        /// What they read until now.
        queue: Option<Box<FlowRx>>,
    },
}

impl WorkerCommand {
    /// Whether frames will come soon because of it.
    pub fn starts_traffic(&self) -> bool {
        matches!(
            self,
            WorkerCommand::Streams(StatelessCommand::StartProfile { .. })
                | WorkerCommand::Flows(FlowCommand::Command(
                    stateful::StatefulCommand::Start { .. }
                ))
        )
    }
}

impl From<StatelessCommand> for WorkerCommand {
    fn from(command: StatelessCommand) -> WorkerCommand {
        WorkerCommand::Streams(command)
    }
}

impl From<FlowCommand> for WorkerCommand {
    fn from(command: FlowCommand) -> WorkerCommand {
        WorkerCommand::Flows(command)
    }
}

impl From<stateful::StatefulCommand> for WorkerCommand {
    fn from(command: stateful::StatefulCommand) -> WorkerCommand {
        WorkerCommand::Flows(FlowCommand::Command(command))
    }
}
