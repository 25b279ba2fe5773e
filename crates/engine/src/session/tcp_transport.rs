//! A flow over TCP: segments that arrive, and segments around what the application says.

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use super::context::{Context, FlowStatus, FrameTx};
use super::flow::{FlowTransport, Session};
use super::wire::{self, Content, Encapsulation};
use crate::flow::FlowKey;
use crate::tcp::{self, Outcome, Progress, Segment};
use crate::time::MICROSECOND;

impl Session {
    /// A segment arrived.
    pub fn handle_segment(
        &mut self,
        cx: &mut Context<'_>,
        tx: &mut impl FrameTx,
        segment: &Segment,
    ) -> FlowStatus {
        if let FlowTransport::Tcp(connection) = &mut self.transport {
            let outcome = if segment.has(TcpFlags::SYN) {
                let link = cx.pools.links.at(self.link);
                let frame_bytes_max = cx.headers.frame_bytes_max;
                let most = segment_bytes_max(&self.key, &link.encapsulation, frame_bytes_max);
                connection.handle_segment(&mut cx.tcp(), &clamped(segment, most))
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

    /// What happened to the connection, told to the application.
    pub(super) fn note_outcome(&mut self, cx: &mut Context<'_>, outcome: Outcome) {
        if outcome.connected {
            self.has_connected = true;
            self.application.handle_connected();
        }
        if outcome.acknowledged_bytes > 0 {
            let bytes = outcome.acknowledged_bytes;
            self.outbox
                .acknowledge(bytes, cx.buffers, &mut cx.pools.outboxes);
            if self.outbox.is_empty() {
                self.application.handle_acknowledged();
            }
        }
        if outcome.delivered_bytes > 0 {
            let bytes = outcome.delivered_bytes;
            if !self.application.take_part(cx.program, bytes) {
                self.application.handle_delivered(bytes);
            }
        }
        if outcome.peer_closed {
            self.application.handle_peer_closed();
        }
    }

    /// Sends what TCP may send.
    pub(super) fn transmit_segments(
        &mut self,
        cx: &mut Context<'_>,
        tx: &mut impl FrameTx,
    ) -> Progress {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return Progress::Done;
        };
        let bytes = self.outbox.write(connection.room_bytes(cx.tunables));
        if bytes > 0 {
            connection.write(bytes);
        }
        if self.outbox.is_written() {
            self.application.handle_room();
            if self.is_closing {
                connection.close();
            }
        }
        if connection.has_nothing_to_say() {
            return Progress::Done;
        }
        let mut envelope = self.envelope(&cx.pools.links, &cx.pools.prefixes, cx.headers);
        let frame_bytes_max = cx.headers.frame_bytes_max;
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return Progress::Done;
        };
        let (key, outbox, buffers) = (&self.key, &self.outbox, cx.buffers);
        let outboxes = &cx.pools.outboxes;
        let mut inner = tcp::Context {
            now_ms: cx.pools.tcp_ms(cx.now),
            now_us: (cx.now / MICROSECOND) as u32,
            tunables: cx.tunables,
            counters: &mut cx.counters.tcp,
            sides: &mut cx.pools.sides,
        };
        let mut outcome = Outcome::default();
        let progress = connection.poll_transmit(&mut inner, &mut outcome, |segment| {
            envelope.identification = envelope.identification.wrapping_add(1);
            let asking;
            let segment = if segment.mss.is_some() {
                let most = segment_bytes_max(key, envelope.encapsulation, frame_bytes_max);
                asking = clamped(segment, most);
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
        progress
    }

    /// The reset that a segment gets which belongs to another connection.
    fn refuse(&mut self, cx: &mut Context<'_>, tx: &mut impl FrameTx, segment: &Segment) {
        let envelope = self.envelope(&cx.pools.links, &cx.pools.prefixes, cx.headers);
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

/// Bytes of a segment for which a port has room: what its headers leave of the longest frame.
pub(super) fn segment_bytes_max(
    key: &FlowKey,
    encapsulation: &Encapsulation,
    frame_bytes_max: usize,
) -> u16 {
    let headers = wire::header_bytes(key.prefixes.is_some(), encapsulation);
    frame_bytes_max.saturating_sub(headers).clamp(1, 0xffff) as u16
}

/// The same SYN, with segments that are no longer than the port takes: what we ask for, and what
/// the other side asks us for (RFC 6691: without any options).
pub(super) fn clamped(syn: &Segment, most: u16) -> Segment {
    Segment {
        mss: Some(syn.mss.unwrap_or(tcp::MSS_BYTES_DEFAULT).min(most)),
        ..*syn
    }
}
