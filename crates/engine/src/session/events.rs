//! What else happens to a flow than a segment that arrives for itself: segments that are handled as
//! one, its time has come, the queue has room. And the loop of flows that are no programs over TCP.

use super::application::FlowApplication;
use super::context::{FlowContext, FlowStatus, FrameTx};
use super::flow::{FlowTransport, LATER, ROUNDS_MAX, Session, SessionFlag};
use super::wire::{IcmpError, PacketFate};
use crate::app::FlowEvent;
use crate::tcp::{Progress, Segment};
use crate::time::Tight;

impl Session {
    /// It was just made: it says its first.
    pub fn begin(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.drive(cx, tx)
    }

    /// How many bytes may come with `segment` in segments that are coalesced with it
    /// ([`Segment::coalesced`]); 0 when it is handled alone.
    #[inline]
    pub fn coalesced_bytes_max(&self, segment: &Segment) -> u32 {
        match (&self.application, &self.transport) {
            (FlowApplication::Program(_), FlowTransport::Tcp(connection)) => {
                connection.coalesced_bytes_max(segment)
            }
            _ => 0,
        }
    }

    /// A router or host says what became of a packet of it.
    pub fn handle_icmp_error(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        error: &IcmpError,
    ) -> FlowStatus {
        let is_client = self.is_client();
        match (&mut self.transport, error.fate) {
            (FlowTransport::Tcp(connection), PacketFate::TooBig { segment_bytes_max }) => {
                connection.handle_too_big(&mut cx.tcp(), error.seq, segment_bytes_max);
            }
            (FlowTransport::Tcp(connection), PacketFate::Unreachable) => {
                connection.handle_unreachable(&mut cx.tcp(), error.seq);
            }
            (FlowTransport::Udp(udp), PacketFate::Unreachable) if is_client => {
                udp.refuse(&mut cx.counters.udp);
            }
            // Of datagrams nothing is sent again. And who answers does not mind who has gone.
            (FlowTransport::Udp(_), _) => {}
        }
        self.drive(cx, tx)
    }

    /// The time that was told has come.
    pub fn handle_timeout(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> FlowStatus {
        if self.flags.has(SessionFlag::Aborted) && self.wake_at.get() <= cx.now {
            self.close_silently(cx);
            return FlowStatus::Over;
        }
        if self.wake_at.get() <= cx.now {
            self.wake_at = Tight::MAX;
            match &mut self.application {
                FlowApplication::Program(program) => program.handle_timeout(),
                FlowApplication::Bytes(index) => {
                    let index = *index;
                    cx.with_bytes(index, |cx, it| it.tell_timeout(cx));
                }
            }
        }
        match &mut self.transport {
            FlowTransport::Tcp(connection) => {
                let outcome = connection.handle_timeout(&mut cx.tcp());
                self.note_outcome(cx, &outcome, None);
            }
            FlowTransport::Udp(udp) => udp.handle_timeout(cx.now, &mut cx.counters.udp),
        }
        self.drive(cx, tx)
    }

    /// The flow that its program waits for is over, or could not be; that one's program chose
    /// `next_group` last.
    pub fn handle_executed(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        next_group: u16,
    ) -> FlowStatus {
        if let FlowApplication::Program(program) = &mut self.application {
            program.handle_executed(next_group);
        }
        self.drive(cx, tx)
    }

    /// The group that its program chose last; 0 for none.
    pub fn next_group(&self) -> u16 {
        match &self.application {
            FlowApplication::Program(program) => program.next_group(),
            FlowApplication::Bytes(_) => 0,
        }
    }

    /// Another flow of the core woke it.
    pub fn handle_woken(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        if let FlowApplication::Bytes(index) = self.application {
            cx.with_bytes(index, |cx, it| it.tell(cx, FlowEvent::Woken));
        }
        self.drive(cx, tx)
    }

    /// The tx queue has room again.
    pub fn handle_writable(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> FlowStatus {
        self.drive(cx, tx)
    }

    /// Lets application and transport work until both wait, over UDP.
    #[inline(never)]
    pub(super) fn drive_datagrams(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> FlowStatus {
        for _ in 0..ROUNDS_MAX {
            // A message that waited, and leaves now, lets the program go on.
            let acted = match &self.application {
                FlowApplication::Program(program) => !program.is_waiting() && self.run_program(cx),
                FlowApplication::Bytes(index) => {
                    let index = *index;
                    self.run_bytes(cx, index)
                }
            };
            let acted = acted || self.is_message_waiting();
            let progress = self.transmit_message(cx, tx);
            if self.is_over() {
                return self.over(cx);
            }
            if progress == Progress::Blocked {
                return FlowStatus::Blocked(self.due(cx));
            }
            if !acted || self.is_idle() {
                return FlowStatus::Open(self.due(cx));
            }
        }
        FlowStatus::Open(Some(cx.now + LATER))
    }
}
