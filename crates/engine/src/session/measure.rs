//! What is measured of a flow on its way: when it was there, when the first data came, and what an answer
//! over HTTP/1 says.

use allosaur_packet::transport::tcp::TcpFlags;

use super::begin_time::BeginTime;
use super::context::FlowContext;
use crate::app::ProgramRun;
use crate::tcp::{Connection, Outcome, Segment};

/// Whose flow it is. Only those of clients are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) is_client: bool,
    pub(super) begin_time: BeginTime,
}

/// The connection is there.
pub(super) fn note_connected(whose: Whose, cx: &mut FlowContext<'_>) {
    if whose.is_client {
        cx.times.connect.count(whose.begin_time.units_since(cx.now));
    }
}

/// The first byte or message arrived.
pub(super) fn note_first_byte(whose: Whose, cx: &mut FlowContext<'_>) {
    if whose.is_client {
        let units = whose.begin_time.units_since(cx.now);
        cx.times.first_byte.count(units);
    }
}

/// A program looks at data that was delivered, as far as it is at hand.
#[cold]
pub(super) fn look_at(
    program: &mut ProgramRun,
    data: &[u8],
    whose: Whose,
    cx: &mut FlowContext<'_>,
) {
    let looked = program.look(data);
    if looked.is_first {
        note_first_byte(whose, cx);
    }
    if let (Some(class), true) = (looked.status, whose.is_client) {
        cx.counters.outcomes.count_status(class);
    }
}

/// The data of a segment that was delivered with it, and not before.
pub(super) fn delivered<'d>(
    connection: &Connection,
    meaning: &Outcome,
    arrived: Option<(&Segment, &'d [u8])>,
) -> &'d [u8] {
    let Some((segment, data)) = arrived else {
        return &[];
    };
    let end = u32::from(meaning.peer_closed) + meaning.delivered_bytes;
    let first = connection.rcv_nxt().map(|expected| expected - end);
    let start = segment.seq + u32::from(segment.has(TcpFlags::SYN));
    let from = first.map_or(0, |first| start.until(first) as usize);
    let to = data
        .len()
        .min(from.saturating_add(meaning.delivered_bytes as usize));
    data.get(from..to).unwrap_or_default()
}
