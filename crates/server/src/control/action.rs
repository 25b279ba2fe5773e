//! What control wants done.

use allosaur_engine::stateless::StatelessCommand;

use super::core::pending::{JobId, PendingId, QuestionId};
use super::job::Job;
use super::reply::Reply;
use super::worker_command::{FlowCommand, PortMode};
use crate::counters::LatencyTerms;
use crate::rx_taps;

/// What control wants done.
#[derive(Debug)]
pub enum Action {
    /// Tell the receive thread what to expect of a group whose latency is measured. Comes before
    /// the commands that send its packets.
    ExpectLatency {
        /// Its number among them.
        group: u16,
        /// What to expect.
        terms: LatencyTerms,
    },
    /// Tell a data thread.
    Command {
        /// The data thread.
        core: usize,
        /// What it shall do.
        command: StatelessCommand,
    },
    /// Tell a data thread something about flows; only in stateful mode.
    Flows {
        /// The data thread.
        core: usize,
        /// What it shall do.
        command: FlowCommand,
    },
    /// Ask the receive thread, or who has emulated clients, and hand in what it answers ([`super::Control::handle_answer`]).
    Ask {
        /// The question's name.
        question: QuestionId,
        /// What is asked.
        request: rx_taps::Request,
    },
    /// Have a job done, and hand in what comes of it ([`super::Control::handle_job`]).
    Job {
        /// The job's name.
        job: JobId,
        /// What is to be done.
        work: Job,
    },
    /// Answer a request that waited.
    Reply {
        /// The request.
        pending: PendingId,
        /// Its reply.
        reply: Reply,
    },
    /// Publish this text on the asynchronous channel.
    Publish(Vec<u8>),
    /// Choose what a port receives beside the frames that are addressed to it.
    SetReceive {
        /// The port.
        port: u8,
        /// Those to other stations.
        promiscuous: bool,
        /// Those to all multicast addresses.
        multicast: bool,
    },
    /// Have the threads of a mode read what arrives at a port; only where a server has both. Comes
    /// before all commands that need it.
    SetPortMode {
        /// The port.
        port: u8,
        /// Its mode from now on.
        mode: PortMode,
    },
    /// End the server, after the reply.
    Shutdown,
}
