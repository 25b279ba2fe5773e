//! A flow over TCP: segments that arrive, and segments around what the application says.

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use super::application::FlowApplication;
use super::context::{FlowContext, FlowStatus, FrameTx};
use super::flow::{FlowTransport, Session, SessionFlag, envelope};
use super::links::segment_bytes_max;
use super::wire::Content;
use crate::tcp::{self, Outcome, Progress, Segment};
use crate::time::MICROSECOND;

impl Session {
    /// A segment arrived. `data` gives its bytes, and is asked only where the application reads
    /// them.
    pub fn handle_segment<'a>(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        segment: &Segment,
        data: impl FnOnce() -> &'a [u8],
    ) -> FlowStatus {
        if let FlowApplication::Bytes(index) = self.application {
            let outcome = self.read_segment(cx, index, segment, data());
            if outcome.refused {
                self.refuse(cx, tx, segment);
            }
        } else if let FlowTransport::Tcp(connection) = &mut self.transport {
            let outcome = if segment.has(TcpFlags::SYN) {
                let link = cx.pools.links.at(self.link);
                let frame_bytes_max = cx.headers.frame_bytes_max;
                let most = segment_bytes_max(&self.key, link, frame_bytes_max);
                connection.handle_segment(&mut cx.tcp(), &segment.clamped(most))
            } else {
                connection.handle_segment(&mut cx.tcp(), segment)
            };
            self.note_outcome(cx, outcome);
            if outcome.refused {
                self.refuse(cx, tx, segment);
            }
        }
        self.attend(cx, tx)
    }

    /// What happened to the connection, told to the program.
    pub(super) fn note_outcome(&mut self, cx: &mut FlowContext<'_>, outcome: Outcome) {
        let program = match &mut self.application {
            FlowApplication::Program(program) => program,
            FlowApplication::Bytes(index) => {
                let index = *index;
                return self.note_outcome_of_bytes(cx, index, outcome, &[]);
            }
        };
        if outcome.connected {
            self.flags.set(SessionFlag::Connected);
            program.handle_connected();
        }
        if outcome.acknowledged_bytes > 0 {
            let bytes = outcome.acknowledged_bytes;
            self.outbox
                .acknowledge(bytes, cx.buffers, &mut cx.pools.outboxes);
            if self.outbox.is_empty() {
                program.handle_acknowledged();
            }
        }
        if outcome.delivered_bytes > 0 {
            let bytes = outcome.delivered_bytes;
            if !program.take_part(cx.program, bytes) {
                program.handle_delivered(bytes);
            }
        }
        if outcome.peer_closed {
            program.handle_peer_closed();
        }
    }

    /// Sends what TCP may send.
    pub(super) fn transmit_segments(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Progress {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return Progress::Done;
        };
        let bytes = self.outbox.write(connection.room_bytes(cx.tunables));
        if bytes > 0 {
            connection.write(bytes, &mut cx.counters.tcp);
        }
        if self.outbox.is_written() {
            if let FlowApplication::Program(program) = &mut self.application {
                program.handle_room();
            }
            if self.flags.has(SessionFlag::Closing) {
                connection.close();
            }
        }
        if connection.has_nothing_to_say() {
            return Progress::Done;
        }
        let (links, prefixes) = (&cx.pools.links, &cx.pools.prefixes);
        let (link, headers) = (links.at(self.link), cx.headers);
        let mut envelope = envelope(&self.key, link, prefixes, headers, self.identification);
        let (key, outbox, buffers) = (&self.key, &self.outbox, cx.buffers);
        let outboxes = &cx.pools.outboxes;
        let mut inner = tcp::TcpContext {
            now_ms: cx.pools.tcp_ms(cx.now),
            now_us: (cx.now / MICROSECOND) as u32,
            tunables: cx.tunables,
            unread_bytes: match self.application {
                FlowApplication::Program(_) => 0,
                FlowApplication::Bytes(index) => cx.pools.applications.unread_bytes(index),
            },
            counters: &mut cx.counters.tcp,
            sides: &mut cx.pools.sides,
        };
        let mut outcome = Outcome::default();
        let progress = connection.poll_transmit(&mut inner, &mut outcome, |segment| {
            envelope.identification = envelope.identification.wrapping_add(1);
            let asking;
            let segment = if segment.mss.is_some() {
                let most = segment_bytes_max(key, link, headers.frame_bytes_max);
                asking = segment.clamped(most);
                &asking
            } else {
                segment
            };
            let content = Content::Tcp(segment);
            let places = envelope.places(&content);
            tx.send(places.frame_bytes(), |frame| {
                envelope.write_at(places, &content, frame, |data| {
                    outbox.copy_to(segment.offset, data, buffers, outboxes)
                });
            })
        });
        self.identification = envelope.identification;
        if outcome.ended.is_some() {
            self.note_outcome(cx, outcome);
        }
        progress
    }

    /// The reset that a segment gets which belongs to another connection.
    fn refuse(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx, segment: &Segment) {
        let link = cx.pools.links.at(self.link);
        let (prefixes, identification) = (&cx.pools.prefixes, self.identification);
        let envelope = envelope(&self.key, link, prefixes, cx.headers, identification);
        if let Some(reset) = segment.reset_in_reply() {
            let content = Content::Tcp(&reset);
            let sent = tx.send(envelope.frame_bytes(&content), |frame| {
                envelope.write(&content, frame, |_| Sum::default());
            });
            // Without room, the other end asks again.
            cx.counters.tcp.nombuf += u64::from(!sent);
        }
    }
}
