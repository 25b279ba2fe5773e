//! What a core keeps of each flow, in as little memory as may be: the flow, and whose it is.

use super::{RunIndex, StatefulEngine};
use crate::flow::FlowIndex;
use crate::session::Session;
use crate::template::{Side, TemplateIndex};

/// The flags of a flow: one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowFlags {
    /// A command of another flow's program opened it.
    Executed = 1,
    /// Its program waits for the flow that it opened.
    Executing = 1 << 1,
    /// It waits for room in the tx queue of its port.
    Blocked = 1 << 2,
    /// It was counted as established.
    Counted = 1 << 3,
    /// The peer opened it and has not answered us yet, see `half_open`.
    HalfOpen = 1 << 4,
    /// It is over; only its key is still needed.
    Lingering = 1 << 5,
    /// Its first bytes decide about its template.
    Deferred = 1 << 6,
    /// It is a server's.
    Server = 1 << 7,
}

/// A flow, and whose it is.
#[derive(Debug)]
pub(super) struct FlowEntry {
    pub(super) session: Session,
    pub(super) run: RunIndex,
    flags: u8,
    /// The clients that it belongs to, in its run: 24 bits.
    clients: [u8; 3],
    pub(super) template: TemplateIndex,
}

impl FlowEntry {
    /// A flow that begins.
    pub(super) fn new(
        session: Session,
        run: RunIndex,
        (template, side): (TemplateIndex, Side),
        clients: u32,
    ) -> FlowEntry {
        let mut entry = FlowEntry {
            session,
            run,
            flags: 0,
            template,
            clients: pack(clients),
        };
        entry.set(FlowFlags::Server, side == Side::Server);
        entry
    }

    /// Which side of it is ours.
    #[inline]
    pub(super) fn side(&self) -> Side {
        if self.is(FlowFlags::Server) {
            Side::Server
        } else {
            Side::Client
        }
    }

    /// The clients that it belongs to, in its run.
    #[inline]
    pub(super) fn clients(&self) -> u32 {
        let [low, middle, high] = self.clients;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// Whether this is true of it.
    #[inline]
    pub(super) fn is(&self, flag: FlowFlags) -> bool {
        self.flags & flag as u8 != 0
    }

    /// From now on it is true. Returns whether that is new.
    #[inline]
    pub(super) fn set_flag(&mut self, flag: FlowFlags) -> bool {
        let is_new = !self.is(flag);
        self.flags |= flag as u8;
        is_new
    }

    /// From now on it is not. Returns whether it was.
    #[inline]
    pub(super) fn clear_flag(&mut self, flag: FlowFlags) -> bool {
        let was = self.is(flag);
        self.flags &= !(flag as u8);
        was
    }

    /// Whether it is over but for its key, or its template is not certain.
    #[inline]
    pub(super) fn is_lingering_or_deferred(&self) -> bool {
        self.flags & (FlowFlags::Lingering as u8 | FlowFlags::Deferred as u8) != 0
    }

    /// Whether nobody waits for it, nor it for anything but its connection, which was there.
    #[inline]
    pub(super) fn only_waits(&self) -> bool {
        self.flags & !(FlowFlags::Server as u8) == FlowFlags::Counted as u8
    }

    pub(super) fn set(&mut self, flag: FlowFlags, is_true: bool) {
        if is_true {
            self.set_flag(flag);
        } else {
            self.clear_flag(flag);
        }
    }
}

/// A run has clients of each template on each of its ports: 20,000 times 16, far below 24 bits.
fn pack(clients: u32) -> [u8; 3] {
    let [low, middle, high, rest] = clients.to_le_bytes();
    debug_assert_eq!(rest, 0, "a run has fewer clients");
    [low, middle, high]
}

/// Millions of them are held at once: with 12 bytes in the table and 12 of a timer, 220 in all.
const _: () = assert!(std::mem::size_of::<Option<FlowEntry>>() == 196);

impl StatefulEngine {
    /// Whose a flow is: its run, its template, and which side of it is ours.
    pub(super) fn owner_of(&self, index: FlowIndex) -> Option<(RunIndex, TemplateIndex, Side)> {
        if index.is_in_fifo() {
            let rest = self.time_wait.at(index)?;
            let run = self.run(rest.run())?;
            return Some((rest.run(), rest.template(run), rest.side()));
        }
        let entry = self.flows.at(index)?;
        Some((entry.run, entry.template, entry.side()))
    }
}
