//! Segments of a flow on their way into frames: several, those with other options, SYNs and resets.
//! The one that says all there is to say leaves in `flow`.

use allosaur_packet::network::checksum::Sum;

use super::application::FlowApplication;
use super::context::{FlowContext, FrameTx};
use super::flow::{FlowTransport, Session};
use super::links::segment_bytes_max;
use super::outbox::{Outbox, OutboxPool};
use super::prefixed::send_behind_prefix;
use super::surroundings::{
    SHARED_BYTES_MIN, Surroundings, data_of, is_plain, plain_envelope, send_plain, shared_data,
};
use super::wire::{self, Content, Envelope, HeaderTemplate, SYN_BYTES};
use crate::app::Buffers;
use crate::tcp::{Outcome, Progress, Segment, SegmentTx};

impl Session {
    /// Sends what TCP may send, of what was handed over.
    #[inline(never)]
    pub(super) fn transmit_segments(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Progress {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return Progress::Done;
        };
        let unread_bytes = match self.application {
            FlowApplication::Program(_) => 0,
            FlowApplication::Bytes(index) => cx.pools.applications.unread_bytes(index),
        };
        let pools = &mut *cx.pools;
        let mut tcp = pools
            .clock
            .tcp(cx.tunables, cx.counters, &mut pools.recovery);
        tcp.unread_bytes = unread_bytes;
        let mut leaving = LeavingSegments {
            surroundings: Surroundings::new(
                &self.key,
                pools.links.at(self.link),
                &pools.spaces,
                cx.headers,
            ),
            identification: self.identification,
            outbox: &self.outbox,
            buffers: cx.buffers,
            outboxes: &pools.outboxes,
            tx,
        };
        let mut outcome = Outcome::default();
        let progress = connection.poll_transmit(&mut tcp, &mut outcome, &mut leaving);
        self.identification = leaving.identification;
        if outcome.ended.is_some() {
            self.note_outcome(cx, &outcome, None);
        }
        progress
    }

    /// Sends a SYN, or the answer to one, that offers all that we know; `None` where another segment is
    /// due.
    pub(super) fn transmit_syn(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Option<Progress> {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return None;
        };
        let pools = &mut *cx.pools;
        let mut tcp = pools
            .clock
            .tcp(cx.tunables, cx.counters, &mut pools.recovery);
        if !connection.is_syn_due() {
            return None;
        }
        let link = pools.links.at(self.link);
        let most = segment_bytes_max(&self.key, link, cx.headers.frame_bytes_max);
        let segment = connection.syn(&tcp).clamped(most);
        if !wire::is_full_syn(&segment) {
            return None;
        }
        self.identification = self.identification.wrapping_add(1);
        let identification = self.identification;
        let is_sent = if is_plain(&self.key, link) {
            let envelope = plain_envelope(&self.key, link, cx.headers, identification);
            let mut head = [0; SYN_BYTES];
            envelope.write_syn(&segment, &mut head);
            let head = &head;
            tx.send(SYN_BYTES, |frame| frame.copy_from_slice(head))
        } else {
            let surroundings = Surroundings::new(&self.key, link, &pools.spaces, cx.headers);
            send_syn_behind_prefix(&surroundings.envelope(identification), segment, tx)
        };
        if !is_sent {
            return Some(Progress::Blocked);
        }
        connection.note_syn_sent(&mut tcp);
        Some(Progress::Done)
    }

    /// The reset that a segment gets which belongs to another connection.
    pub(super) fn refuse(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        segment: &Segment,
    ) {
        let surroundings = Surroundings::new(
            &self.key,
            cx.pools.links.at(self.link),
            &cx.pools.spaces,
            cx.headers,
        );
        let envelope = surroundings.envelope(self.identification);
        if let Some(reset) = segment.reset_in_reply() {
            let sent = send_in_any_frame(&envelope, reset, tx);
            // Without room, the other end asks again.
            cx.counters.tcp.nombuf += u64::from(!sent);
        }
    }
}

/// The segments of a flow on their way into frames.
struct LeavingSegments<'a, T> {
    surroundings: Surroundings<'a>,
    /// Of the last one.
    identification: u16,
    outbox: &'a Outbox,
    buffers: &'a Buffers,
    outboxes: &'a OutboxPool,
    tx: &'a mut T,
}

impl<T: FrameTx> SegmentTx for LeavingSegments<'_, T> {
    #[inline]
    fn send(&mut self, segment: &Segment) -> bool {
        self.identification = self.identification.wrapping_add(1);
        if !wire::is_timed(segment) {
            return self.send_slow(segment);
        }
        let (outbox, buffers) = (self.outbox, self.buffers);
        let shared = shared_data(outbox, segment, buffers);
        let Some(data) = data_of(outbox, segment, &shared, buffers, self.outboxes) else {
            return self.send_slow(segment);
        };
        let (surroundings, identification) = (self.surroundings, self.identification);
        if surroundings.is_plain() {
            let envelope = surroundings.plain_envelope(identification);
            return send_plain(&envelope, segment, data, shared, self.tx);
        }
        send_behind_prefix(
            surroundings,
            identification,
            *segment,
            data,
            shared,
            self.tx,
        )
    }

    fn send_run(&mut self, first: &Segment, count: u32) -> u32 {
        let is_shared = wire::is_timed(first) && first.len >= SHARED_BYTES_MIN;
        let mut segment = *first;
        let mut sent = 0;
        while sent < count {
            if is_shared && count - sent > 1 {
                let shared = self.send_shared_run(&segment, count - sent);
                segment.advance(shared);
                sent += shared;
            }
            // One whose data is not in one piece, or that found no room.
            if sent < count {
                if !self.send(&segment) {
                    break;
                }
                segment.advance(1);
                sent += 1;
            }
        }
        sent
    }
}

impl<T: FrameTx> LeavingSegments<'_, T> {
    /// Sends a segment with any options and any data. A SYN tells how much the port takes.
    #[inline(never)]
    fn send_slow(&mut self, segment: &Segment) -> bool {
        let clamped;
        let segment = if segment.mss.is_some() {
            clamped = segment.clamped(self.surroundings.segment_bytes_max());
            &clamped
        } else {
            segment
        };
        let envelope = self.surroundings.envelope(self.identification);
        let content = Content::Tcp(segment);
        let places = envelope.places(&content);
        if let Some(payload) = shared_data(self.outbox, segment, self.buffers) {
            return self.tx.send_sharing(places.head_bytes(), payload, |head| {
                let sum = Sum::default().and_u16(payload.sum);
                envelope.write_head_at(places, &content, head, sum);
            });
        }
        let (outbox, buffers, outboxes) = (self.outbox, self.buffers, self.outboxes);
        self.tx.send(places.frame_bytes(), |frame| {
            envelope.write_at(places, &content, frame, |data| {
                outbox.copy_to(segment.offset, data, buffers, outboxes)
            });
        })
    }

    /// Sends segments like `first`, which has timestamps and no other option, as long as their data is
    /// constant and in one piece. Returns how many.
    fn send_shared_run(&mut self, first: &Segment, count: u32) -> u32 {
        let (outbox, buffers) = (self.outbox, self.buffers);
        let Some(payloads) = outbox.shared_run(first.offset, first.len, count, buffers) else {
            return 0;
        };
        let mut identification = self.identification;
        let template = HeaderTemplate::new(&self.surroundings.envelope(identification), first);
        let mut seq = first.seq;
        let sent = self
            .tx
            .send_run(template.bytes(), payloads, |payload, head| {
                identification = identification.wrapping_add(1);
                template.write(identification, seq, payload.sum, head);
                seq += first.len;
            });
        self.identification = identification;
        sent
    }
}

/// Sends a SYN that offers all that we know, or the answer to one, whatever stands in front of its packet.
#[inline(never)]
fn send_syn_behind_prefix(
    envelope: &Envelope<'_>,
    segment: Segment,
    tx: &mut impl FrameTx,
) -> bool {
    // It is longer than any frame that is padded.
    let bytes = envelope.syn_places().head_bytes();
    tx.send(bytes, |frame| envelope.write_syn_behind(&segment, frame))
}

/// Sends a segment without data, with any options behind any prefix.
#[inline(never)]
fn send_in_any_frame(envelope: &Envelope<'_>, segment: Segment, tx: &mut impl FrameTx) -> bool {
    let content = Content::Tcp(&segment);
    let places = envelope.places(&content);
    tx.send(places.frame_bytes(), |frame| {
        envelope.write_at(places, &content, frame, |_| Sum::default());
    })
}
