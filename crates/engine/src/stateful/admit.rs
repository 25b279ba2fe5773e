//! Whether a frame is for the flow that has its key: not for one in TIME-WAIT or less, which gives way,
//! nor for one whose template its first bytes decide.

use allosaur_packet::transport::tcp::TcpFlags;

use super::StatefulEngine;
use super::entry::{FlowEntry, FlowFlags};
use super::rx::Frame;
use super::time_wait::TimeWaitEntry;
use crate::flow::{FlowIndex, FlowKey};
use crate::session::wire::Arrival;
use crate::template::Side;
use crate::time::Nanos;
use crate::transmit::TxQueues;

impl StatefulEngine {
    /// A frame for a flow in TIME-WAIT.
    pub(super) fn handle_late(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        side: Side,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) {
        let rest = self.time_wait.at(index);
        if !rest.is_some_and(TimeWaitEntry::is_lingering) {
            let index = self.leave_time_wait(index);
            let index = index.expect("what the table has is held");
            let frame = Frame {
                burst: None,
                ..*frame
            };
            self.handle_known(now, index, key, side, &frame, tx_queues);
            return;
        }
        if side == Side::Server && frame.is_new_connection() {
            self.forget(index);
            self.handle_unknown(now, key, side, frame, tx_queues);
        }
    }

    /// Whether a frame is for the flow that was found, and not for one that takes its place, nor for
    /// nobody; else what there was to do for it has been done.
    #[cold]
    pub(super) fn admit(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        side: Side,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> bool {
        let entry = self.flows.at(index).expect("the caller has it");
        if let Arrival::Tcp(segment) = &frame.received.arrival {
            let gives_way = entry.is(FlowFlags::Lingering) && frame.is_new_connection()
                || entry
                    .session
                    .connection()
                    .is_some_and(|c| c.may_be_replaced_by(segment));
            if gives_way && side == Side::Server {
                self.give_way(now, index, tx_queues);
                self.handle_unknown(now, key, side, frame, tx_queues);
                return false;
            }
        }
        if entry.is(FlowFlags::Lingering) {
            return false;
        }
        let decides =
            entry.is(FlowFlags::Deferred) && !frame.data.is_empty() && begins(entry, frame);
        if decides && !self.decide(now, index, key, frame.data) {
            self.with_flow(now, index, tx_queues, |session, cx, tx| {
                session.abort(cx, tx)
            });
            return false;
        }
        true
    }

    /// A flow in TIME-WAIT, or less, makes room for a new one with the same ends.
    fn give_way(&mut self, now: Nanos, index: FlowIndex, tx_queues: &mut impl TxQueues) {
        self.with_flow(now, index, tx_queues, |session, cx, _| session.give_way(cx));
        self.forget(index);
    }
}

/// Whether a frame has the first bytes of its flow, and not others that came before them.
fn begins(entry: &FlowEntry, frame: &Frame<'_>) -> bool {
    match (frame.received.arrival, entry.session.connection()) {
        (Arrival::Tcp(segment), Some(connection)) => {
            connection.is_rcv_nxt(segment.seq) && !segment.has(TcpFlags::RST)
        }
        _ => true,
    }
}
