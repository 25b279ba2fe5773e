//! Flows that are ended from outside, and what each gives back when it is over.

use super::application::FlowApplication;
use super::context::{FlowContext, FlowStatus, FrameTx, Pools};
use super::flow::{FlowTransport, Session, SessionFlag};
use crate::tcp::Connection;
use crate::time::{MILLISECOND, Nanos, Tight};

/// How long a reset waits for room on its way out.
const RESET_WAITS: Nanos = 500 * MILLISECOND;

impl Session {
    /// It is over at once, as at the end of TIME-WAIT.
    pub fn finish(&mut self, cx: &mut FlowContext<'_>) -> FlowStatus {
        if let FlowTransport::Tcp(connection) = &mut self.transport {
            connection.finish(&mut cx.tcp());
        }
        FlowStatus::Over
    }

    /// The test is over: it ends as soon as its reset has left.
    pub fn cut_off(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.flags.set(SessionFlag::CutOff);
        self.end_at_once(cx, tx, Connection::cut_off)
    }

    /// Nobody wants it: the same, as a fault of the flow.
    pub fn abort(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.flags.set(SessionFlag::GivenUp);
        self.end_at_once(cx, tx, Connection::abort)
    }

    fn end_at_once(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        end: impl FnOnce(&mut Connection),
    ) -> FlowStatus {
        match &mut self.application {
            FlowApplication::Program(program) => program.stop(),
            FlowApplication::Bytes(index) => {
                let index = *index;
                cx.with_bytes(index, |_, it| it.is_stopped = true);
            }
        }
        match &mut self.transport {
            FlowTransport::Tcp(connection) => {
                end(connection);
                self.note_abort(cx.now);
            }
            FlowTransport::Udp(udp) => udp.end(&mut cx.counters.udp),
        }
        self.drive(cx, tx)
    }

    /// Its application wants it reset.
    pub(super) fn reset(&mut self, now: Nanos) {
        match &mut self.transport {
            FlowTransport::Tcp(connection) => {
                connection.abort();
                self.note_abort(now);
            }
            FlowTransport::Udp(_) => self.flags.set(SessionFlag::Closing),
        }
    }

    /// It was reset: from now on it only waits for room to say so, and not for long.
    pub(super) fn note_abort(&mut self, now: Nanos) {
        self.flags.set(SessionFlag::Aborted);
        self.wake_at = Tight::new(now + RESET_WAITS);
    }

    /// Others need its place: it is over, without a word.
    pub fn give_way(&mut self, cx: &mut FlowContext<'_>) -> FlowStatus {
        if !self.is_over() {
            self.flags.set(SessionFlag::GivenUp);
            self.close_silently(cx);
        }
        FlowStatus::Over
    }

    pub(super) fn close_silently(&mut self, cx: &mut FlowContext<'_>) {
        match &mut self.transport {
            FlowTransport::Tcp(connection) => connection.close_silently(&mut cx.tcp()),
            FlowTransport::Udp(udp) => udp.end(&mut cx.counters.udp),
        }
    }

    /// Whether it ended because we reset it.
    pub fn was_reset_by_us(&self) -> bool {
        self.flags.has(SessionFlag::Aborted)
    }

    /// Gives back what it holds in pools. The last thing before it is forgotten.
    pub fn release(&mut self, pools: &mut Pools) {
        self.release_all_but_link(pools);
        pools.links.release(self.link);
    }

    /// The same, but what is left of it in TIME-WAIT holds where its frames go.
    pub fn release_all_but_link(&mut self, pools: &mut Pools) {
        self.release_application(pools);
        self.outbox.release(&mut pools.outboxes);
        if let FlowTransport::Tcp(connection) = &mut self.transport {
            connection.release(&mut pools.recovery);
        }
        if let FlowTransport::Udp(udp) = &self.transport {
            if let Some(message) = udp.message() {
                pools.outboxes.free(message);
            }
        }
    }

    pub(super) fn release_application(&mut self, pools: &mut Pools) {
        match &mut self.application {
            FlowApplication::Program(program) => program.release(&mut pools.variables),
            FlowApplication::Bytes(index) => pools.release_bytes(*index),
        }
    }
}
