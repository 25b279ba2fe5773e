//! What an end of a flow takes of memory, part by part: the table of `docs/concepts/memory-of-flows.md`.

use super::entry::FlowEntry;
use super::time_wait::TimeWaitEntry;
use crate::app::ProgramRun;
use crate::flow::{FlowKey, Table, Timers};
use crate::session::Outbox;
use crate::tcp::{Connection, TimeWait};

/// A part of an end, and its bytes.
type Part = (&'static str, usize);

/// What an end takes while it is open.
pub fn open_end() -> [Part; 7] {
    let parts = [
        ("key", size_of::<FlowKey>()),
        ("connection", size_of::<Connection>()),
        ("program", size_of::<ProgramRun>()),
        ("what it sends", size_of::<Outbox>()),
    ];
    let entry = size_of::<Option<FlowEntry>>();
    let [key, connection, program, outbox] = parts;
    let rest = rest_of(entry, &parts);
    let timer = ("timer", Timers::FLOW_BYTES);
    [key, connection, program, outbox, rest, timer, table()]
}

/// What it takes in TIME-WAIT.
pub fn end_in_time_wait() -> [Part; 4] {
    let parts = [
        ("key", size_of::<FlowKey>()),
        ("connection", size_of::<TimeWait>()),
    ];
    let [key, connection] = parts;
    let rest = rest_of(size_of::<Option<TimeWaitEntry>>(), &parts);
    [key, connection, rest, table()]
}

fn rest_of(entry: usize, parts: &[Part]) -> Part {
    let known: usize = parts.iter().map(|(_, bytes)| bytes).sum();
    ("whose it is, and the rest", entry - known)
}

fn table() -> Part {
    ("place in the table", Table::FLOW_BYTES)
}
