//! Ports change hands when their mode changes: their rx queues go from the receive threads to the
//! data threads whose flows read them, and back.
//!
//! Queues travel through the mailboxes. Who gives one away has published what it counted; what
//! waits in the queue is counted by who reads it next, so no frame is counted twice or not at all.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use allosaur_engine::stateful;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::kind::PortRx;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use thiserror::Error;

use super::Threads;
use super::data::{FlowLinks, FlowRx, FlowState, Report, WorkerCommand};
use super::queues::{are_in_memory, flow_queues};
use super::receive::{RxCommand, RxReport};
use crate::control::worker_command::PortMode;
use crate::threads::clock::Clock;

/// How long threads have to give a queue away.
const HANDOVER_MAX: Duration = Duration::from_millis(500);

/// Why a port did not change its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandoverError {
    /// There is no such port.
    #[error("there is no port {0}")]
    UnknownPort(PortIndex),
    /// Ports of this server have one mode.
    #[error("the ports of this server are always in the same mode")]
    OneMode,
    /// A thread stands still; the port has no mode until it goes on and this is tried again.
    #[error("a thread did not give away the receive queue of port {0} in time")]
    Timeout(PortIndex),
}

/// A port, as far as its rx queues go.
#[derive(Debug)]
pub(super) struct PortOwner {
    /// None while they are on their way.
    mode: Option<PortMode>,
    /// The data threads that serve it.
    cores: Vec<usize>,
    /// How many queues its flows read, if it can have so many.
    flow_queues: usize,
    /// Queues that nobody reads.
    unread: Vec<PortRx>,
}

impl PortOwner {
    pub(super) fn new(mode: PortMode, cores: Vec<usize>, flow_queues: usize) -> PortOwner {
        PortOwner {
            mode: Some(mode),
            cores,
            flow_queues,
            unread: Vec::new(),
        }
    }
}

/// What the flows of a data thread are made of when it needs them.
#[derive(Debug)]
pub(super) struct FlowParts {
    pub(super) config: stateful::Config,
    pub(super) links: FlowLinks,
    pub(super) clock: Clock,
}

impl FlowParts {
    fn assemble(self) -> Box<FlowState> {
        let now = self.clock.now_ns();
        Box::new(FlowState::new(self.config, Vec::new(), self.links, now))
    }
}

impl Threads {
    /// Has the threads of another mode read what arrives at a port. Waits until all have given
    /// away its queues, at most half a second for each kind of thread.
    ///
    /// # Errors
    ///
    /// When there is no such port, the server has one mode only, or a thread stands still.
    pub fn set_port_mode(&mut self, port: PortIndex, mode: PortMode) -> Result<(), HandoverError> {
        let owner = self.ports.get_mut(usize::from(port));
        let owner = owner.ok_or(HandoverError::UnknownPort(port))?;
        if owner.mode == Some(mode) {
            return Ok(());
        }
        if self.receive_mail.is_empty() {
            return Err(HandoverError::OneMode);
        }
        let before = owner.mode.take();
        if before != Some(PortMode::Stateful) {
            self.detach_receive(port)?;
        }
        if before != Some(PortMode::Stateless) {
            self.detach_data(port)?;
        }
        let owner = &mut self.ports[usize::from(port)];
        owner.mode = Some(mode);
        let queues = std::mem::take(&mut owner.unread);
        match mode {
            PortMode::Stateful => self.attach_data(port, queues),
            PortMode::Stateless => self.attach_receive(port, queues),
        }
        Ok(())
    }

    /// A thread has given away queues of a port after nobody waited any more.
    pub fn note_detached(&mut self, port: PortIndex, queue: Option<Box<FlowRx>>) {
        let queues = queue.map_or_else(Vec::new, |queue| queue.into_real());
        self.ports[usize::from(port)].unread.extend(queues);
    }

    fn detach_receive(&mut self, port: PortIndex) -> Result<(), HandoverError> {
        for mail in &mut self.receive_mail {
            mail.send(RxCommand::Detach(port));
        }
        self.wait_detached(port, self.receive_mail.len())
    }

    /// Who reads a queue first, then those who have shares of it: they read what is left there.
    fn detach_data(&mut self, port: PortIndex) -> Result<(), HandoverError> {
        let cores = self.ports[usize::from(port)].cores.clone();
        let (first, others) = cores.split_at(cores.len().min(1));
        for cores in [first, others] {
            let alive = cores.iter().filter(|core| !self.mail[**core].is_closed());
            let alive: Vec<usize> = alive.copied().collect();
            for core in &alive {
                self.mail[*core].send(WorkerCommand::DetachRx { port });
            }
            self.wait_detached(port, alive.len())?;
        }
        Ok(())
    }

    /// Waits until so many threads have given away what they read of a port.
    fn wait_detached(&mut self, port: PortIndex, threads: usize) -> Result<(), HandoverError> {
        let until = Instant::now() + HANDOVER_MAX;
        let mut waiting = threads;
        loop {
            self.control_notify.drain();
            waiting = waiting.saturating_sub(self.take_detached(port));
            if waiting == 0 {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let mut notify = [PollFd::new(
                self.control_notify.file().as_fd(),
                PollFlags::POLLIN,
            )];
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            if let Err(error) = poll(&mut notify, timeout) {
                tracing::debug!("waiting was interrupted: {error}");
            }
        }
        // Control looks at all else that came when it waits the next time.
        self.control_notify.notify();
        match waiting {
            0 => Ok(()),
            _ => Err(HandoverError::Timeout(port)),
        }
    }

    /// Takes the queues that threads have given away; keeps for control all else that they tell.
    /// Returns how many threads spoke of this port.
    fn take_detached(&mut self, wanted: PortIndex) -> usize {
        let mut threads = 0;
        for mail in &mut self.receive_mail {
            mail.flush();
            while let Some(RxReport(port, queue)) = mail.receive() {
                let queue = queue.map(|queue| *queue);
                self.ports[usize::from(port)].unread.extend(queue);
                threads += usize::from(port == wanted);
            }
        }
        for core in 0..self.mail.len() {
            self.mail[core].flush();
            while let Some(report) = self.mail[core].receive() {
                match report {
                    Report::Detached { port, queue } => {
                        self.note_detached(port, queue);
                        threads += usize::from(port == wanted);
                    }
                    report => self.unheard.push_back((core, report)),
                }
            }
        }
        threads
    }

    fn attach_receive(&mut self, port: PortIndex, queues: Vec<PortRx>) {
        let queues = PortRx::reshare(queues, self.receive_mail.len());
        for (mail, queue) in self.receive_mail.iter_mut().zip(queues) {
            mail.send(RxCommand::Attach(port, Box::new(queue)));
        }
    }

    fn attach_data(&mut self, port: PortIndex, queues: Vec<PortRx>) {
        let owner = &self.ports[usize::from(port)];
        let queues = PortRx::reshare(queues, owner.flow_queues);
        let wakers: Vec<_> = self.mail.iter().map(|mail| mail.waker().clone()).collect();
        // Other ports were opened for receive threads, whose queues are not by clients' ports.
        let has_own = are_in_memory(&queues);
        let queues = flow_queues(queues, has_own, usize::from(port), &owner.cores, &wakers);
        for (&core, queue) in owner.cores.iter().zip(queues) {
            if let Some(parts) = self.flow_parts[core].take() {
                self.mail[core].send(WorkerCommand::StartFlows(parts.assemble()));
            }
            let queue = Box::new(queue);
            self.mail[core].send(WorkerCommand::AttachRx { port, queue });
        }
    }
}
