//! Emulated clients: hosts on the networks of ports, which their own requests set up.
//!
//! A data thread drives its [`EmulatedClients`], a state machine without I/O, like this:
//! [`handle_request`](EmulatedClients::handle_request) and [`handle_frame`](EmulatedClients::handle_frame)
//! in; then [`poll_transmit`](EmulatedClients::poll_transmit), and again at the time that
//! [`poll_timeout`](EmulatedClients::poll_timeout) says.

pub mod exports;
mod request;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_emulation::placements::Placement;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::shard_message::ShardMessage;
use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use allosaur_engine::transmit::PortIndex;
use serde_json::Value;

use self::exports::ExportChannel;
pub use self::request::{EmulationAnswer, EmulationRequest, PART_CLIENTS, ProcessUsage};
use crate::counters::EmulationBlock;

/// Frames that are sent before what has arrived is looked at again.
const FRAMES_PER_TURN: usize = 64;
/// What clients count is summed up again so long after it was published; later where there are many, so
/// that it takes a small part of the time: a million wait for ten seconds.
const PUBLISH_INTERVAL: Nanos = 500 * MILLISECOND;
const PUBLISH_INTERVAL_PER_CLIENT: Nanos = 10 * MICROSECOND;
/// Clients and namespaces that are summed up before other work has its turn.
const SUMMED_PER_TURN: usize = 64;
/// Those that are summed up one turn after the other, and when it goes on with the next, which wakes the
/// thread no more often than timers of many clients do. A million take ten seconds.
const SUMMED_PER_INTERVAL: usize = 1024;
const SUM_INTERVAL: Nanos = 10 * MILLISECOND;
/// Who sleeps is woken for timers at most so often: a million clients have one every few microseconds.
const TICK_MIN: Nanos = MILLISECOND;
/// At least so often, however many there are.
const TICK_MAX: Nanos = 10 * MILLISECOND;
/// What each timer that is set adds to a tick, as far as these limits: a million wait 10 ms.
const TICK_PER_TIMER: Nanos = 10;

/// Calls that could not be done and of which other parts may still come.
pub const FAILED_MAX: usize = 8;

/// The emulated clients of a data thread: all, where there is one.
pub struct EmulatedClients {
    emulation: Emulation,
    /// What another begins with, after this one was told to end.
    settings: Settings,
    /// How many ports the server has; namespaces may be on others, which lead nowhere.
    ports: usize,
    /// The ports that have clients, as bits.
    inhabited: u64,
    /// The way to who writes files, sends and posts for clients, where that is allowed.
    exports: Option<ExportChannel>,
    /// How often namespaces had changed when that was found out.
    changes: u64,
    /// The numbers of the last calls that could not be done: then their other parts are not.
    failed: VecDeque<u64>,
    /// Where their counters are published, and when that is due.
    published: Option<(Arc<EmulationBlock>, Nanos)>,
    /// What is left to be summed up in this interval.
    to_sum: usize,
}

impl EmulatedClients {
    /// None yet, on so many ports.
    pub fn new(settings: Settings, ports: usize, now: Nanos) -> EmulatedClients {
        EmulatedClients {
            emulation: Emulation::new(settings.clone(), now),
            settings,
            ports,
            inhabited: 0,
            exports: None,
            changes: 0,
            failed: VecDeque::with_capacity(FAILED_MAX),
            published: None,
            to_sum: SUMMED_PER_INTERVAL,
        }
    }

    /// The same; what they count is published there.
    #[must_use]
    pub fn publishing(mut self, block: Arc<EmulationBlock>) -> EmulatedClients {
        self.published = Some((block, 0));
        self
    }

    /// The same, with a way out of the emulation.
    #[must_use]
    pub fn exporting(mut self, exports: Option<ExportChannel>) -> EmulatedClients {
        self.exports = exports;
        self
    }
}

impl EmulatedClients {
    /// Does what is due, or the earliest of much: what streams send does not wait for all of it. An
    /// emulation that was told to end makes room for a new one, as a process that is started again.
    fn advance(&mut self, now: Nanos) {
        if self.emulation.poll_shutdown().is_some_and(|at| at <= now) {
            self.emulation.restart(self.settings.clone(), now);
            (self.inhabited, self.changes) = (0, 0);
            if let Some(exports) = &mut self.exports {
                exports.reset();
            }
        }
        self.emulation.handle_some_timeouts(now);
        self.exchange_exports(now);
    }

    /// Does a call of the clients' own RPC, or a part of one, by the number of the call.
    fn call(
        &mut self,
        call: RpcCall,
        number: u64,
        usage: Option<ProcessUsage>,
        now: Nanos,
    ) -> Result<Value, Error> {
        if let Some(usage) = usage {
            self.emulation.set_usage(usage.cpu_time, usage.rss_bytes);
        }
        self.advance(now);
        if self.failed.contains(&number) {
            return Ok(Value::Null);
        }
        let reply = self.emulation.handle_call(now, call);
        if let Some((_, due)) = &mut self.published {
            *due = (*due).min(now + PUBLISH_INTERVAL);
        }
        if reply.is_err() {
            self.failed.truncate(FAILED_MAX - 1);
            self.failed.push_front(number);
        }
        self.exchange_exports(now);
        if self.changes != self.emulation.changes() {
            self.changes = self.emulation.changes();
            let ports = self.emulation.ports().into_iter().map(usize::from);
            let ports = ports.filter(|port| *port < self.ports);
            self.inhabited = ports.fold(0, |ports, port| ports | 1 << port);
        }
        reply
    }

    /// Hands on what clients want done outside, and what came of it.
    fn exchange_exports(&mut self, now: Nanos) {
        if let Some(exports) = &mut self.exports {
            exports.exchange(&mut self.emulation, now);
        }
    }

    /// Sums up the counters of some more clients, and publishes the sums when all are in them.
    fn publish(&mut self, now: Nanos) {
        let Some((block, due)) = &mut self.published else {
            return;
        };
        if *due > now {
            return;
        }
        let is_through = self.emulation.sum_up(SUMMED_PER_TURN);
        if is_through {
            block.publish(self.emulation.totals());
        } else if self.to_sum > SUMMED_PER_TURN {
            self.to_sum -= SUMMED_PER_TURN;
            return;
        }
        self.to_sum = SUMMED_PER_INTERVAL;
        *due = match is_through {
            false => now + SUM_INTERVAL,
            true if self.emulation.totals().namespaces > 0 => {
                let clients = self.emulation.totals().clients;
                now + PUBLISH_INTERVAL.max(clients.saturating_mul(PUBLISH_INTERVAL_PER_CLIENT))
            }
            // Until a request comes.
            true => Nanos::MAX,
        };
    }

    /// How long timers wait for others at most.
    fn tick(&self) -> Nanos {
        tick_of(self.emulation.timers())
    }

    /// When something is due.
    fn due(&self) -> Option<Nanos> {
        let (timer, end) = (
            self.emulation.poll_timeout(),
            self.emulation.poll_shutdown(),
        );
        timer.into_iter().chain(end).min()
    }
}

impl EmulatedClients {
    /// Whether timers are due by `now`. A request of then waits until none is: it sees the state of its
    /// time.
    #[inline]
    pub fn has_due_timers(&self, now: Nanos) -> bool {
        self.emulation.has_due_timers(now)
    }

    /// Does what is asked.
    pub fn handle_request(&mut self, request: EmulationRequest, now: Nanos) -> EmulationAnswer {
        match request {
            EmulationRequest::Call {
                call,
                number,
                usage,
            } => EmulationAnswer::Called(self.call(call, number, usage, now)),
            EmulationRequest::ReadyClients { namespace, is_ipv6 } => {
                self.advance(now);
                let found = self.emulation.ready_clients(&namespace, is_ipv6);
                EmulationAnswer::ReadyClients(found)
            }
        }
    }

    /// The ports that have clients, as bits: frames that arrive there are for
    /// [`handle_frame`](EmulatedClients::handle_frame).
    #[inline]
    pub fn inhabited(&self) -> u64 {
        self.inhabited
    }

    /// Asks the cache for the clients of frames that come next.
    #[inline]
    pub fn prefetch<'f>(&self, port: PortIndex, frames: impl IntoIterator<Item = &'f [u8]>) {
        self.emulation.prefetch(port.into(), frames);
    }

    /// Gives a frame that arrived at a port to the clients there.
    #[inline]
    pub fn handle_frame(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        self.emulation.handle_frame(at, port.into(), frame);
    }

    /// The same of a frame for all clients of a namespace, which another thread counts.
    #[inline]
    pub fn handle_copy(&mut self, at: Nanos, port: PortIndex, frame: &[u8]) {
        self.emulation.handle_copy(at, port.into(), frame);
    }

    /// The next thing to tell who shares frames out: where a client is.
    #[inline]
    pub fn poll_placement(&mut self) -> Option<Placement> {
        self.emulation.poll_placement()
    }

    /// The next thing to tell the clients of another data thread.
    #[inline]
    pub fn poll_shard_message(&mut self) -> Option<ShardMessage> {
        self.emulation.poll_shard_message()
    }

    /// What clients of another data thread tell these.
    pub fn handle_shard_message(&mut self, now: Nanos, message: ShardMessage) {
        self.emulation.handle_shard_message(now, message);
    }

    /// So many frames were lost on the way here from who received them.
    pub fn note_lost(&mut self, frames: u64) {
        self.emulation.note_rx_lost(frames);
    }

    /// Does what is due, and hands frames to `send`: some of those that clients send.
    pub fn poll_transmit(&mut self, now: Nanos, mut send: impl FnMut(PortIndex, &[u8])) {
        if self.due().is_some_and(|at| at <= now) {
            self.advance(now);
        }
        self.publish(now);
        for _ in 0..FRAMES_PER_TURN {
            let Some(transmit) = self.emulation.poll_transmit() else {
                return;
            };
            if usize::from(transmit.port) < self.ports {
                send(transmit.port as PortIndex, transmit.frame);
            }
        }
    }

    /// When to call [`poll_transmit`](EmulatedClients::poll_transmit). It may be a little late: no thread
    /// stays awake shortly before.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        match self.emulation.has_transmit() {
            true => Some(0),
            false => {
                let published = self.published.as_ref().map(|(_, due)| *due);
                let due = self.due().into_iter().chain(published).min()?;
                due.checked_next_multiple_of(self.tick()).or(Some(due))
            }
        }
    }
}

/// How long one of so many timers waits for others at most.
fn tick_of(timers: usize) -> Nanos {
    let tick = TICK_PER_TIMER.saturating_mul(timers as Nanos);
    tick.clamp(TICK_MIN, TICK_MAX)
}

impl fmt::Debug for EmulatedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmulatedClients")
            .field("inhabited", &self.inhabited)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_timers_there_are_the_longer_they_wait_within_limits() {
        let ms = |timers| tick_of(timers) as f64 / MILLISECOND as f64;
        assert_eq!([ms(0), ms(100_000), ms(450_000)], [1.0, 1.0, 4.5]);
        assert_eq!([ms(1_000_000), ms(usize::MAX)], [10.0, 10.0]);
    }
}
