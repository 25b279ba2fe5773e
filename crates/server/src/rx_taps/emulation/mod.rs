//! Emulated clients: hosts on the networks of ports, which their own requests set up.

pub mod exports;
pub(super) mod request;

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::capture::Origin;
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_engine::transmit::PortIndex;
use serde_json::Value;

use self::exports::ExportChannel;
use self::request::{EmulationAnswer, EmulationRequest, ProcessUsage};
use super::message::{Answer, Request};
use super::rx_tap::{RxTap, bit};
use crate::counters::EmulationBlock;

/// Frames that are sent before what has arrived is looked at again.
const FRAMES_PER_TURN: usize = 256;
/// What clients count is published so long after it was published, when all are summed up.
const PUBLISH_INTERVAL: Nanos = 500 * MILLISECOND;
/// Clients and namespaces that are summed up in a turn, and when it goes on with the next: a million take
/// four seconds, in which the thread does other things most of the time.
const SUMMED_PER_TURN: usize = 256;
const SUM_INTERVAL: Nanos = MILLISECOND;
/// Who sleeps is woken for timers at most so often: a million clients have one every few microseconds.
const TICK_MIN: Nanos = MILLISECOND;
/// At least so often, however many there are.
const TICK_MAX: Nanos = 10 * MILLISECOND;
/// What each timer that is set adds to a tick, as far as these limits: a million wait 10 ms.
const TICK_PER_TIMER: Nanos = 10;

/// Calls that could not be done and of which other parts may still come.
pub const FAILED_MAX: usize = 8;

/// The emulated clients of all ports.
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
    /// Does what is due. An emulation that was told to end makes room for a new one, as a process
    /// that is started again.
    fn advance(&mut self, now: Nanos) {
        if self.emulation.poll_shutdown().is_some_and(|at| at <= now) {
            self.emulation = Emulation::new(self.settings.clone(), now);
            (self.inhabited, self.changes) = (0, 0);
            if let Some(exports) = &mut self.exports {
                exports.reset();
            }
        }
        self.emulation.handle_timeout(now);
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
        // What is due comes first: requests see the state of now.
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
            self.inhabited = ports.fold(0, |ports, port| ports | bit(port));
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
        }
        *due = match is_through {
            false => now + SUM_INTERVAL,
            true if self.emulation.totals().namespaces > 0 => now + PUBLISH_INTERVAL,
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

impl RxTap for EmulatedClients {
    fn handle_request(&mut self, request: Request, now: Nanos) -> ControlFlow<Answer, Request> {
        let Request::Emulation(request) = request else {
            return ControlFlow::Continue(request);
        };
        let answer = match request {
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
        };
        ControlFlow::Break(answer.into())
    }

    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => self.inhabited,
            Origin::Transmitted => 0,
        }
    }

    fn handle_frame(&mut self, at: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        self.emulation.handle_frame(at, port.into(), frame);
        // Others may have clients of that address too.
        false
    }

    fn prefetch(&self, port: PortIndex, frames: &mut dyn Iterator<Item = &[u8]>) {
        self.emulation.prefetch(port.into(), frames);
    }

    fn poll_transmit(&mut self, now: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
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

    fn poll_timeout(&self) -> Option<Nanos> {
        match self.emulation.has_transmit() {
            true => Some(0),
            false => {
                let timer = self.due();
                let timer = timer.map(|at| at.checked_next_multiple_of(self.tick()).unwrap_or(at));
                let published = self.published.as_ref().map(|(_, due)| *due);
                timer.into_iter().chain(published).min()
            }
        }
    }

    fn is_deferrable(&self) -> bool {
        true
    }

    fn answers(&self) -> bool {
        true
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
