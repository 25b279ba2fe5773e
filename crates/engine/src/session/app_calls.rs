//! Calls of applications over bytes, with what each is given.

use std::sync::Arc;

use super::application::{AppPlace, ApplicationIndex, ByteApplication, FlowApplication, SPARE_MAX};
use super::context::{FlowContext, Pools};
use super::flow_times::FlowTimes;
use super::outcome::OutcomeCounters;
use super::receive_buffer::ReceiveBuffer;
use crate::app::{
    AppCore, AppFlow, AppMeasures, AppRowCounts, ApplicationContext, ApplicationFactory, FlowEvent,
    FlowId, ProgramRun, StatusClass,
};
use crate::flow::FlowKey;
use crate::tcp::End;
use crate::time::{MICROSECOND, Nanos};

/// Counts what an application measures on one flow.
#[derive(Debug)]
struct FlowMeasures<'a> {
    is_client: bool,
    outcomes: &'a mut OutcomeCounters,
    times: &'a mut FlowTimes,
}

impl AppMeasures for FlowMeasures<'_> {
    fn count_status(&mut self, status: StatusClass) {
        if self.is_client {
            self.outcomes.count_status(status);
        }
    }

    fn count_handshake(&mut self, took: Nanos) {
        if self.is_client {
            self.times.handshake.count(took / MICROSECOND);
        }
    }

    fn count_response_begin(&mut self, took: Nanos) {
        if self.is_client {
            self.times.response_begin.count(took / MICROSECOND);
        }
    }

    fn count_response(&mut self, took: Nanos) {
        if self.is_client {
            self.times.response.count(took / MICROSECOND);
        }
    }
}

impl ByteApplication {
    /// Tells it what happened.
    pub(super) fn tell(&mut self, cx: &mut FlowContext<'_>, event: FlowEvent) {
        self.is_idle = false;
        cx.call(self.place, |core, flow, inner| {
            core.handle_event(flow, inner, event);
        });
    }

    /// Tells it that its time has come, unless it only goes on where it was stopped.
    pub(super) fn tell_timeout(&mut self, cx: &mut FlowContext<'_>) {
        self.is_idle = false;
        cx.call(self.place, |core, flow, inner| {
            if core.poll_timeout(flow).is_some_and(|due| due <= inner.now) {
                core.handle_timeout(flow, inner);
            }
        });
    }

    /// Tells it the end, once: a connection has ended before TIME-WAIT, and is over after it.
    pub(super) fn tell_end(&mut self, cx: &mut FlowContext<'_>, end: End) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.tell(cx, FlowEvent::Ended(end));
        }
    }

    /// Offers it bytes that need not wait; what it does not consume does.
    pub(super) fn offer_directly(&mut self, cx: &mut FlowContext<'_>, data: &[u8]) {
        self.is_idle = false;
        let consumed = cx.call(self.place, |core, flow, inner| {
            core.handle_data(flow, inner, data)
        });
        let rest = data.get(consumed..).unwrap_or_default();
        if !rest.is_empty() {
            self.received.write(0, rest);
            self.received.advance(rest.len());
        }
    }

    /// Offers it what waits, and then the end of it. Returns whether it consumed anything, or was
    /// told the end.
    pub(super) fn offer(&mut self, cx: &mut FlowContext<'_>) -> bool {
        let mut has_moved = false;
        while self.received.unread() > 0 {
            let front = self.received.front();
            let consumed = cx.call(self.place, |core, flow, inner| {
                core.handle_data(flow, inner, front)
            });
            let (consumed, is_all) = (consumed.min(front.len()), consumed >= front.len());
            self.is_idle &= consumed == 0;
            self.received.consume(consumed);
            self.has_read |= consumed > 0;
            has_moved |= consumed > 0;
            if !is_all {
                return has_moved;
            }
        }
        if std::mem::take(&mut self.is_peer_closed) {
            self.tell(cx, FlowEvent::PeerClosed);
            has_moved = true;
        }
        has_moved
    }
}

impl Pools {
    /// The flow of an application over bytes is over.
    pub(super) fn release_bytes(&mut self, index: ApplicationIndex) {
        let pool = &mut self.applications;
        let place = &mut pool.places[index.0 as usize];
        let it = place.as_mut().expect("it has done its work");
        let at = it.place;
        if pool.free.len() < SPARE_MAX {
            it.received = ReceiveBuffer::default();
            it.is_free = true;
        } else {
            *place = None;
        }
        pool.free.push(index.0);
        if let Some(held) = &mut pool.cores[at.core] {
            held.core.release(at.flow, &mut self.variables);
        }
    }
}

impl FlowContext<'_> {
    /// Calls `act` on an application over bytes, which may use all else that is here.
    pub(super) fn with_bytes<R>(
        &mut self,
        index: ApplicationIndex,
        act: impl FnOnce(&mut FlowContext<'_>, &mut ByteApplication) -> R,
    ) -> R {
        let mut it = self.pools.applications.take(index);
        let result = act(self, &mut it);
        self.pools.applications.put_back(index, it);
        result
    }

    /// Calls the core of an application over bytes.
    pub(super) fn call<R>(
        &mut self,
        place: AppPlace,
        act: impl FnOnce(&mut dyn AppCore, AppFlow, &mut ApplicationContext<'_>) -> R,
    ) -> R {
        self.call_core(place.core, place.is_client, |core, inner| {
            act(core, place.flow, inner)
        })
    }

    pub(super) fn call_core<R>(
        &mut self,
        core: usize,
        is_client: bool,
        act: impl FnOnce(&mut dyn AppCore, &mut ApplicationContext<'_>) -> R,
    ) -> R {
        let pools = &mut *self.pools;
        let pool = &mut pools.applications;
        let held = pool.cores[core].as_mut();
        let core = &mut *held.expect("a core is there as long as its runs").core;
        let counters = &mut *self.counters;
        let mut measures = FlowMeasures {
            is_client,
            outcomes: &mut counters.outcomes,
            times: self.times,
        };
        let rows = AppRowCounts::new(&mut counters.rows, self.program.first_rows());
        act(
            core,
            &mut ApplicationContext {
                now: self.now,
                rng: &mut pools.rng,
                counters: &mut counters.application,
                rows,
                variables: &mut pools.variables,
                measures: &mut measures,
                wakes: &mut pool.wakes,
            },
        )
    }

    /// What runs on a flow that begins: its program, or the application in its place.
    #[inline]
    pub(super) fn start_application(&mut self, key: &FlowKey, is_client: bool) -> FlowApplication {
        let program = self.program;
        match program.application() {
            None => FlowApplication::Program(ProgramRun::start(program)),
            Some(factory) => self.start_bytes(factory, key, is_client),
        }
    }

    /// The application over bytes of a flow that begins, in the place of its program.
    #[inline(never)]
    fn start_bytes(
        &mut self,
        factory: &Arc<dyn ApplicationFactory>,
        key: &FlowKey,
        is_client: bool,
    ) -> FlowApplication {
        let pool = &mut self.pools.applications;
        let core = pool.core_of(factory);
        let core = core.expect("a run has its cores before its flows");
        let index = pool.next_place();
        let info = self.flow_info(FlowId(index.0), key, is_client);
        let flow = self.call_core(core, is_client, |core, inner| core.start(inner, &info));
        let held = self.pools.applications.cores[core].as_mut();
        let held = held.expect("a core is there as long as its runs");
        let place = AppPlace {
            core,
            flow,
            is_client,
            wants_acknowledged: held.core.wants_acknowledged(),
            demultiplexes: held.core.demultiplexer().is_some(),
        };
        match &mut self.pools.applications.places[index.0 as usize] {
            Some(it) => it.renew(place, *key),
            empty => *empty = Some(Box::new(ByteApplication::new(place, *key))),
        }
        FlowApplication::Bytes(index)
    }
}
