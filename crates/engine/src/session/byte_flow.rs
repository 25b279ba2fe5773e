//! A flow that runs an application over bytes: what arrives is given to it in order, and what it says
//! is kept until it is acknowledged.

use allosaur_packet::transport::tcp::TcpFlags;

use super::application::{ApplicationIndex, ByteApplication, FlowApplication};
use super::batch::BatchProgress;
use super::context::{FlowContext, FlowStatus};
use super::flow::{FlowTransport, Session, SessionFlag};
use super::links::segment_bytes_max;
use super::measure::{note_connected, note_first_byte};
use crate::app::{Action, FlowEvent, Output, ProgramEnd, TURN_COMMANDS_MAX, YIELD};
use crate::tcp::{Connection, End, Outcome, Segment};
use crate::time::{Nanos, Tight};

impl Session {
    /// A segment arrived, with its bytes.
    #[inline(never)]
    pub(super) fn read_segment(
        &mut self,
        cx: &mut FlowContext<'_>,
        index: ApplicationIndex,
        segment: &Segment,
        data: &[u8],
    ) -> Outcome {
        let link = cx.pools.links.at(self.link);
        let most = segment_bytes_max(&self.key, link, cx.headers.frame_bytes_max);
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return Outcome::default();
        };
        let deliver = |cx: &mut FlowContext<'_>, it: &mut ByteApplication| {
            handle_segment(connection, cx, it, segment, most, data)
        };
        let (outcome, direct) = cx.with_bytes(index, deliver);
        self.note_outcome_of_bytes(cx, index, outcome, direct);
        outcome
    }

    /// What happened to the connection, told to the application. `direct` are the bytes that were
    /// delivered, as far as they are not in the receive buffer.
    #[inline(never)]
    pub(super) fn note_outcome_of_bytes(
        &mut self,
        cx: &mut FlowContext<'_>,
        index: ApplicationIndex,
        outcome: Outcome,
        direct: &[u8],
    ) {
        let mut is_acknowledged = false;
        if outcome.acknowledged_bytes > 0 {
            let bytes = outcome.acknowledged_bytes;
            self.outbox
                .acknowledge(bytes, cx.buffers, &mut cx.pools.outboxes);
            is_acknowledged = self.outbox.is_empty();
        }
        if outcome.connected {
            self.flags.set(SessionFlag::Connected);
            note_connected(self.whose(), cx);
        }
        let is_first = cx.with_bytes(index, |cx, it| {
            if outcome.connected {
                it.tell(cx, FlowEvent::Connected);
            }
            if is_acknowledged && it.place.wants_acknowledged {
                it.tell(cx, FlowEvent::Acknowledged);
            }
            it.is_peer_closed |= outcome.peer_closed;
            it.was_peer_closed |= outcome.peer_closed;
            let is_first = outcome.delivered_bytes > 0 && !it.has_received;
            it.has_received |= is_first;
            if !direct.is_empty() {
                it.offer_directly(cx, direct);
            }
            if outcome.delivered_bytes > 0 || outcome.peer_closed {
                it.offer(cx);
            }
            if let Some(end) = outcome.ended {
                it.tell_end(cx, end);
            }
            is_first
        });
        if is_first {
            note_first_byte(self.whose(), cx);
        }
    }

    /// It is over, whatever carried it.
    #[inline(always)]
    pub(super) fn over(&mut self, cx: &mut FlowContext<'_>) -> FlowStatus {
        if let FlowApplication::Bytes(index) = self.application {
            self.note_over(cx, index);
        }
        FlowStatus::Over
    }

    /// The same for an application over bytes, which is told.
    #[inline(never)]
    fn note_over(&mut self, cx: &mut FlowContext<'_>, index: ApplicationIndex) {
        let is_closing = self.flags.has(SessionFlag::Closing);
        cx.with_bytes(index, |cx, it| {
            let end = match (it.is_stopped, is_closing) {
                (true, _) => End::CutOff,
                (false, true) => End::Closed,
                (false, false) => End::TimedOut,
            };
            it.tell_end(cx, end);
        });
    }

    /// Lets the application read what waits, and say what it has to say. Returns whether it did
    /// anything and may go on.
    #[inline(never)]
    pub(super) fn run_bytes(&mut self, cx: &mut FlowContext<'_>, index: ApplicationIndex) -> bool {
        let it = cx.pools.applications.look(index);
        let it = it.expect("it has done its work");
        let (has_end, is_idle) = (it.end != ProgramEnd::None, it.is_idle);
        // Who is through is not asked any more; bytes that wait are offered whenever the flow is called.
        let says_nothing = is_idle || self.flags.has(SessionFlag::Closing);
        let rests = says_nothing && it.received.unread() == 0;
        let acted = !rests
            && cx.with_bytes(index, |cx, it| {
                !it.is_stopped && self.run_application_over(cx, it)
            });
        if (acted || has_end) && !self.is_judged() {
            self.note_program_end(cx);
        }
        acted
    }

    fn run_application_over(&mut self, cx: &mut FlowContext<'_>, it: &mut ByteApplication) -> bool {
        let mut acted = it.received.unread() > 0 && it.offer(cx);
        if std::mem::take(&mut it.has_read) {
            if let FlowTransport::Tcp(connection) = &mut self.transport {
                let mut inner = cx.tcp();
                inner.unread_bytes = it.received.unread() as u32;
                connection.note_read(&inner);
            }
        }
        let (mut taken, mut rests) = (0, false);
        while let Some(room) = self.output_room(cx) {
            // What is empty, or nothing to send, leaves the room as it is.
            rests = taken == TURN_COMMANDS_MAX;
            if rests {
                break;
            }
            taken += 1;
            let mut bytes = cx.pools.outboxes.take_spare();
            let output = cx.call(it.place, |core, flow, inner| {
                core.poll_output(flow, inner, room, &mut bytes)
            });
            let Some(output) = output else {
                cx.pools.outboxes.put_spare(bytes);
                it.is_idle = true;
                break;
            };
            acted = true;
            it.end = match output {
                Output::Close | Output::Reset => ProgramEnd::Done,
                Output::Fail => ProgramEnd::Failed,
                Output::EndProgram(end) | Output::Ended(end) => end,
                _ => it.end,
            };
            it.batch = match output {
                Output::Datagrams(batch) => Some(BatchProgress::new(batch)),
                // A batch without bytes was no message, so it is not how this one goes out.
                Output::Data | Output::Buffer(_) => None,
                _ => it.batch,
            };
            self.say(cx, output, bytes);
            if matches!(output, Output::Ended(_)) {
                // It is judged before anything else is said.
                break;
            }
        }
        if !self.flags.has(SessionFlag::Aborted) {
            let due = cx.call(it.place, |core, flow, _| core.poll_timeout(flow));
            self.wake_at = self.next_wake(cx.now, due.unwrap_or(Nanos::MAX), rests);
        }
        acted && !rests
    }

    /// When the application is called again that says that it is due then. A time that is over, or to
    /// go on at once, is a little later: else one flow kept the core from all others.
    fn next_wake(&self, now: Nanos, due: Nanos, rests: bool) -> Tight {
        let soon = now + YIELD;
        let at = match due > now {
            true => due,
            // As it was, if it is over since then: calls in between do not put it off.
            false => self.wake_at.get().min(soon),
        };
        Tight::new(if rests { at.min(soon) } else { at })
    }

    /// How many bytes the application may say now, if any.
    fn output_room(&self, cx: &FlowContext<'_>) -> Option<usize> {
        if self.flags.has(SessionFlag::Closing) || self.flags.has(SessionFlag::Aborted) {
            return None;
        }
        let room = match &self.transport {
            FlowTransport::Tcp(connection) => {
                let room = connection.writable_bytes(cx.tunables);
                room.saturating_sub(self.outbox.unwritten_bytes()) as usize
            }
            FlowTransport::Udp(udp) if udp.waits_to_send() => 0,
            FlowTransport::Udp(_) => self.message_bytes_max(cx),
        };
        (room > 0).then_some(room)
    }

    /// Does what an application wants; `bytes` are what it wrote.
    fn say(&mut self, cx: &mut FlowContext<'_>, output: Output, bytes: Vec<u8>) {
        let is_written = matches!(output, Output::Data | Output::Datagrams(_));
        let buffer = if is_written {
            cx.pools.outboxes.keep(bytes)
        } else {
            cx.pools.outboxes.put_spare(bytes);
            match output {
                Output::Buffer(buffer) => buffer,
                other => return self.do_other(cx, other),
            }
        };
        match &mut self.transport {
            FlowTransport::Tcp(_) => {
                self.outbox.push(buffer, cx.buffers, &mut cx.pools.outboxes);
            }
            FlowTransport::Udp(udp) => udp.send(buffer),
        }
    }

    /// The same where it is nothing to send.
    fn do_other(&mut self, cx: &mut FlowContext<'_>, output: Output) {
        match output {
            Output::Keepalive(timeout_ms) => {
                let received_only = false;
                let action = Action::Keepalive {
                    timeout_ms,
                    received_only,
                };
                self.act(cx, action);
            }
            Output::Close | Output::Fail | Output::EndProgram(_) => {
                self.flags.set(SessionFlag::Closing);
            }
            Output::Reset => self.reset(cx.now),
            Output::Data | Output::Datagrams(_) | Output::Buffer(_) | Output::Ended(_) => {}
        }
    }
}

/// Gives a segment to the connection. Returns the bytes that the application can have at once; where
/// others wait or are missing, the new ones go to the receive buffer.
fn handle_segment<'a>(
    connection: &mut Connection,
    cx: &mut FlowContext<'_>,
    it: &mut ByteApplication,
    segment: &Segment,
    segment_bytes_max: u16,
    data: &'a [u8],
) -> (Outcome, &'a [u8]) {
    let is_syn = segment.has(TcpFlags::SYN);
    let start = segment.seq + u32::from(is_syn);
    let end = start + data.len() as u32;
    let expected = connection.rcv_nxt();
    if expected == Some(start) && !is_syn && it.received.is_empty() {
        // As most are: what is delivered is the beginning of it.
        let outcome = connection.handle_segment(&mut cx.tcp(), segment);
        return (outcome, &data[..outcome.delivered_bytes as usize]);
    }
    match expected {
        Some(_) => connection.missing(&cx.pools.recovery, start, end, &mut it.missing),
        None => it.missing = vec![(start, end)],
    }
    let expected = expected.unwrap_or(start);
    let outcome = if is_syn {
        connection.handle_segment(&mut cx.tcp(), &segment.received_within(segment_bytes_max))
    } else {
        connection.handle_segment(&mut cx.tcp(), segment)
    };
    let delivered = outcome.delivered_bytes as usize;
    if it.received.is_empty() && delivered > 0 {
        let at = start.until(expected) as usize;
        return (outcome, &data[at..at + delivered]);
    }
    let in_order = expected + outcome.delivered_bytes;
    for (from, to) in it.missing.drain(..) {
        // What was not there before and is there now came with this segment.
        let arrived = if in_order.is_after(from) {
            Some(in_order)
        } else {
            connection.queued_until(&cx.pools.recovery, from)
        };
        if let Some(arrived) = arrived {
            let to = to.min(arrived);
            let bytes = &data[start.until(from) as usize..start.until(to) as usize];
            it.received.write(expected.until(from) as usize, bytes);
        }
    }
    it.received.advance(delivered);
    (outcome, &[])
}
