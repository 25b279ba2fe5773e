//! Flows whose time has come, and those that waited for room in a tx queue.

use super::entry::FlowFlags;
use super::{StatefulEngine, WOKEN_PER_TURN};
use crate::app::YIELD;
use crate::flow::FlowIndex;
use crate::time::Nanos;
use crate::transmit::TxQueues;

impl StatefulEngine {
    /// The time of a flow has come.
    pub(super) fn wake(&mut self, now: Nanos, index: FlowIndex, tx_queues: &mut impl TxQueues) {
        let is_lingering = self
            .flows
            .at(index)
            .is_some_and(|entry| entry.is(FlowFlags::Lingering));
        if is_lingering {
            return self.forget(index);
        }
        self.with_flow(now, index, tx_queues, |session, cx, tx| {
            session.handle_timeout(cx, tx)
        });
    }

    /// Calls flows that others of the core woke. Those that these wake, or that are too many, are called a
    /// little later, however often they are woken.
    #[cold]
    pub(super) fn call_woken(&mut self, now: Nanos, tx_queues: &mut impl TxQueues) {
        if now < self.woken_at {
            return;
        }
        for _ in 0..self.pools.applications.woken().min(WOKEN_PER_TURN) {
            let Some(key) = self.pools.applications.pop_woken() else {
                break;
            };
            if let Some(index) = self.open_flow(key.packed()) {
                self.with_flow(now, index, tx_queues, |session, cx, tx| {
                    session.handle_woken(cx, tx)
                });
            }
        }
        let are_left = self.pools.applications.woken() > 0;
        self.woken_at = if are_left { now + YIELD } else { 0 };
    }

    /// Lets flows go on that waited for room, in their order, until a port is full again.
    pub(super) fn retry_blocked(&mut self, now: Nanos, tx_queues: &mut impl TxQueues) {
        for port in 0..self.blocked.len() {
            for _ in 0..self.blocked[port].len() {
                let Some(index) = self.blocked[port].pop_front() else {
                    break;
                };
                let Some(entry) = self
                    .flows
                    .at_mut(index)
                    .filter(|entry| entry.is(FlowFlags::Blocked))
                else {
                    continue;
                };
                entry.clear_flag(FlowFlags::Blocked);
                if entry.is(FlowFlags::Lingering) {
                    continue;
                }
                self.with_flow(now, index, tx_queues, |session, cx, tx| {
                    session.handle_writable(cx, tx)
                });
                if self
                    .flows
                    .at(index)
                    .is_some_and(|entry| entry.is(FlowFlags::Blocked))
                {
                    break;
                }
            }
        }
    }
}
