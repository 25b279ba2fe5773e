//! One flow of a client that runs a program.

use std::net::SocketAddr;

use allosaur_engine::app::{
    Action, ApplicationCounters, Program, ProgramContext, ProgramRun, VariablePool,
};
use allosaur_engine::time::{MILLISECOND, Nanos};

use super::program::{Programs, Runnable};
use super::{AppsimCounters, SILENCE, WAKE};
use crate::client::ClientId;
use crate::datagrams::{self, Wanted};
use crate::plugin::{Context, SocketId};
use crate::plugins::transport::with_connections;
use crate::timers::TimerId;

/// What carries a flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carrier {
    Stream(SocketId),
    Datagrams {
        port: u16,
        remote: SocketAddr,
        wanted: Wanted,
    },
}

/// A flow over UDP that ends after a silence.
#[derive(Clone, Copy, Debug)]
struct Keepalive {
    period: Nanos,
    timer: TimerId,
    /// Something was sent or arrived since the last look.
    is_active: bool,
}

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) client: ClientId,
    pub(super) carrier: Carrier,
    is_client: bool,
    program: usize,
    run: ProgramRun,
    wake: TimerId,
    keepalive: Option<Keepalive>,
    is_peer_closed: bool,
}

/// What flows run with.
pub(super) struct World<'w> {
    pub(super) programs: &'w Programs,
    pub(super) variables: &'w mut VariablePool,
    pub(super) counters: &'w mut AppsimCounters,
}

/// Whether a flow goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Open,
    /// It can be forgotten.
    Over,
}

impl Flow {
    pub(super) fn new(
        client: ClientId,
        carrier: Carrier,
        is_client: bool,
        program: usize,
        programs: &Programs,
    ) -> Flow {
        let runnable = &programs.programs[program];
        Flow {
            client,
            carrier,
            is_client,
            program,
            run: ProgramRun::start(program_of(runnable, &carrier)),
            wake: TimerId::NONE,
            keepalive: None,
            is_peer_closed: false,
        }
    }

    /// The connection is there; flows over UDP begin so too.
    pub(super) fn handle_connected(
        &mut self,
        context: &mut Context<'_>,
        world: &mut World<'_>,
        slot: u32,
    ) -> Status {
        self.run.handle_connected();
        self.go_on(context, world, slot)
    }

    /// Bytes or a message arrived.
    pub(super) fn handle_received(
        &mut self,
        context: &mut Context<'_>,
        world: &mut World<'_>,
        slot: u32,
        bytes: u32,
    ) -> Status {
        world.counters.rx_events += 1;
        world.counters.rx_bytes += u64::from(bytes);
        match self.carrier {
            Carrier::Stream(_) => self.run.handle_delivered(bytes),
            Carrier::Datagrams { .. } => self.run.handle_message(),
        }
        self.stir();
        self.go_on(context, world, slot)
    }

    /// There is room to send more.
    pub(super) fn handle_room(
        &mut self,
        context: &mut Context<'_>,
        world: &mut World<'_>,
        slot: u32,
    ) -> Status {
        self.run.handle_room();
        self.go_on(context, world, slot)
    }

    /// The peer has no more to say.
    pub(super) fn handle_peer_closed(
        &mut self,
        context: &mut Context<'_>,
        world: &mut World<'_>,
        slot: u32,
    ) -> Status {
        self.is_peer_closed = true;
        if self.run.is_over() {
            self.close(context);
        }
        self.run.handle_peer_closed();
        self.go_on(context, world, slot)
    }

    /// A delay is over.
    pub(super) fn handle_wake(
        &mut self,
        context: &mut Context<'_>,
        world: &mut World<'_>,
        slot: u32,
    ) -> Status {
        self.run.handle_timeout();
        self.go_on(context, world, slot)
    }

    /// A look whether the flow is silent.
    pub(super) fn handle_silence(
        &mut self,
        context: &mut Context<'_>,
        world: &mut World<'_>,
        slot: u32,
    ) -> Status {
        let Some(keepalive) = &mut self.keepalive else {
            return Status::Open;
        };
        if keepalive.is_active {
            keepalive.is_active = false;
            let period = keepalive.period;
            keepalive.timer = context.set_timer(period, Some(self.client), SILENCE | slot);
            return Status::Open;
        }
        world.counters.silences += 1;
        Status::Over
    }

    /// Does what the program asks for, until it waits.
    fn go_on(&mut self, context: &mut Context<'_>, world: &mut World<'_>, slot: u32) -> Status {
        let runnable = &world.programs.programs[self.program];
        let mut counters = ApplicationCounters::default();
        loop {
            let action = self.run.poll_action(&mut ProgramContext {
                program: program_of(runnable, &self.carrier),
                now: context.now,
                rng: &mut context.shared.rng,
                variables: world.variables,
                counters: &mut counters,
            });
            match action {
                None => return Status::Open,
                Some(Action::Send { buffer } | Action::SendMessage { buffer }) => {
                    self.send(context, world, buffer.0);
                }
                Some(Action::WakeAt(at)) => {
                    let delay = at.saturating_sub(context.now);
                    self.wake = context.set_timer(delay, Some(self.client), WAKE | slot);
                }
                Some(Action::Keepalive { timeout_ms, .. }) => {
                    let period = Nanos::from(timeout_ms) * MILLISECOND;
                    self.watch(context, slot, period);
                }
                Some(Action::Close) => return self.end(context, runnable),
                Some(Action::Reset) => {
                    if let Carrier::Stream(socket) = self.carrier {
                        with_connections(context, |connections, context| {
                            connections.abort(context, socket);
                        });
                    }
                }
                // The commands of these are not among those of emulated clients.
                Some(Action::Acknowledge | Action::Execute { .. }) => {}
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_>, world: &mut World<'_>, buffer: u32) {
        let bytes = &world.programs.buffers[buffer as usize];
        let length = bytes.len() as u64;
        match self.carrier {
            Carrier::Stream(socket) => {
                let bytes = bytes.clone();
                let fits = with_connections(context, |connections, context| {
                    connections.write(context, socket, bytes)
                });
                if fits == Some(true) {
                    self.run.handle_room();
                }
            }
            Carrier::Datagrams {
                port,
                remote,
                wanted,
            } => {
                let client = self.client;
                let sent = datagrams::send_as(context, wanted, client, port, remote, bytes);
                if sent.is_err() {
                    // It is lost; `transport` counted why.
                    return;
                }
                self.stir();
            }
        }
        world.counters.tx_events += 1;
        world.counters.tx_bytes += length;
    }

    /// From now on, the flow ends after a silence.
    fn watch(&mut self, context: &mut Context<'_>, slot: u32, period: Nanos) {
        if let Some(keepalive) = self.keepalive.take() {
            context.cancel_timer(keepalive.timer);
        }
        self.keepalive = Some(Keepalive {
            period,
            timer: context.set_timer(period, Some(self.client), SILENCE | slot),
            is_active: false,
        });
    }

    fn stir(&mut self) {
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.is_active = true;
        }
    }

    /// The program is at its end: a server closes, a client leaves that to its server. Flows over UDP
    /// end only by silence, or when the program says so.
    fn end(&mut self, context: &mut Context<'_>, runnable: &Runnable) -> Status {
        match self.carrier {
            Carrier::Datagrams { .. } if runnable.closes => Status::Over,
            Carrier::Datagrams { .. } => Status::Open,
            Carrier::Stream(_) => {
                let waits = self.is_client || runnable.leaves_open;
                if !waits || runnable.closes || self.is_peer_closed {
                    self.close(context);
                }
                Status::Open
            }
        }
    }

    fn close(&self, context: &mut Context<'_>) {
        if let Carrier::Stream(socket) = self.carrier {
            with_connections(context, |connections, context| {
                connections.close(context, socket);
            });
        }
    }

    /// Gives back what it holds. The last thing before it is forgotten.
    pub(super) fn release(&mut self, context: &mut Context<'_>, variables: &mut VariablePool) {
        self.run.release(variables);
        context.cancel_timer(self.wake);
        if let Some(keepalive) = self.keepalive {
            context.cancel_timer(keepalive.timer);
        }
        if let Carrier::Datagrams { port, remote, .. } = self.carrier {
            let sockets = context.namespace.sockets.get_mut(self.client);
            if let Some(sockets) = sockets {
                sockets.close(port, remote);
            }
        }
    }
}

fn program_of<'r>(runnable: &'r Runnable, carrier: &Carrier) -> &'r Program {
    match carrier {
        Carrier::Stream(_) => &runnable.stream,
        Carrier::Datagrams { .. } => &runnable.datagram,
    }
}
