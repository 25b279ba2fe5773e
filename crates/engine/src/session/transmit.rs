//! Segments of a flow on their way into frames: several, those of any encapsulation, SYNs and resets.
//! The one that says all there is to say leaves in `flow`.

use std::net::Ipv4Addr;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SharedPayload;

use super::application::FlowApplication;
use super::context::{FlowContext, FrameTx, HeaderDefaults};
use super::flow::{
    FlowTransport, SHARED_BYTES_MIN, Session, envelope_of, plain_envelope, shared_data,
};
use super::links::{LinkAddresses, segment_bytes_max};
use super::outbox::{Outbox, OutboxPool};
use super::wire::{
    Addresses, Content, Encapsulation, Envelope, HeaderTemplate, SYN_BYTES, TIMED_BYTES,
};
use crate::app::Buffers;
use crate::flow::{FlowKey, Prefixes};
use crate::tcp::{Outcome, Progress, Segment, SegmentTx};

impl Session {
    /// Sends what TCP may send, of what was handed over.
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
        let link = pools.links.at(self.link);
        let is_plain = matches!(link.encapsulation, Encapsulation::Ethernet);
        let mut leaving = LeavingSegments {
            key: &self.key,
            link,
            prefixes: &pools.prefixes,
            headers: cx.headers,
            outbox: &self.outbox,
            buffers: cx.buffers,
            outboxes: &pools.outboxes,
            is_plain: is_plain && self.key.prefixes.is_none(),
            identification: self.identification,
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
    /// due. Its addresses are of IPv4, its link has no tags.
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
        let link = pools.links.at(self.link);
        let most = segment_bytes_max(&self.key, link, cx.headers.frame_bytes_max);
        if !connection.is_syn_due() {
            return None;
        }
        let segment = connection.syn(&tcp).clamped(most);
        let places = Envelope::syn_places(&segment)?;
        self.identification = self.identification.wrapping_add(1);
        let envelope = plain_envelope(&self.key, link, cx.headers, self.identification);
        let mut head = [0; SYN_BYTES];
        envelope.write_head_at(places, &Content::Tcp(&segment), &mut head, Sum::default());
        let head = &head;
        if !tx.send(SYN_BYTES, |frame| frame.copy_from_slice(head)) {
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

/// The segments of a flow on their way into frames.
struct LeavingSegments<'a, T> {
    key: &'a FlowKey,
    link: &'a LinkAddresses,
    prefixes: &'a Prefixes,
    headers: HeaderDefaults,
    outbox: &'a Outbox,
    buffers: &'a Buffers,
    outboxes: &'a OutboxPool,
    /// They go over IPv4, without tags or tunnel.
    is_plain: bool,
    /// Of the last one.
    identification: u16,
    tx: &'a mut T,
}

impl<T: FrameTx> SegmentTx for LeavingSegments<'_, T> {
    #[inline]
    fn send(&mut self, segment: &Segment) -> bool {
        self.identification = self.identification.wrapping_add(1);
        let Some(places) = Envelope::fast_places(self.is_plain, segment) else {
            return self.send_slow(segment);
        };
        let envelope = self.plain_envelope();
        if let Some(payload) = shared_data(self.outbox, segment, self.buffers) {
            return send_shared(&envelope, segment, payload, self.tx);
        }
        let (outbox, buffers, outboxes) = (self.outbox, self.buffers, self.outboxes);
        self.tx.send(places.frame_bytes(), |frame| {
            envelope.write_at(places, &Content::Tcp(segment), frame, |data| {
                outbox.copy_to(segment.offset, data, buffers, outboxes)
            });
        })
    }

    fn send_run(&mut self, first: &Segment, count: u32) -> u32 {
        let is_fast = Envelope::fast_places(self.is_plain, first).is_some();
        let is_shared = is_fast && first.len >= SHARED_BYTES_MIN;
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
    /// What surrounds a segment over IPv4 without tags.
    #[inline(always)]
    fn plain_envelope(&self) -> Envelope<'static> {
        plain_envelope(self.key, self.link, self.headers, self.identification)
    }

    /// Sends segments like `first` whose headers are as most are, as long as their data is constant
    /// and in one piece. Returns how many.
    fn send_shared_run(&mut self, first: &Segment, count: u32) -> u32 {
        let (outbox, buffers) = (self.outbox, self.buffers);
        let Some(payloads) = outbox.shared_run(first.offset, first.len, count, buffers) else {
            return 0;
        };
        let template = HeaderTemplate::new(&self.plain_envelope(), first);
        let (mut seq, mut identification) = (first.seq, self.identification);
        let sent = self.tx.send_run(TIMED_BYTES, payloads, |payload, head| {
            identification = identification.wrapping_add(1);
            template.write(identification, seq, payload.sum, head);
            seq += first.len;
        });
        self.identification = identification;
        sent
    }

    /// Sends a segment in any frame. A SYN tells how much the port takes.
    #[inline(never)]
    fn send_slow(&mut self, segment: &Segment) -> bool {
        let (key, link) = (self.key, self.link);
        let (prefixes, headers) = (self.prefixes, self.headers);
        let envelope = envelope(key, link, prefixes, headers, self.identification);
        let asking;
        let segment = if segment.mss.is_some() {
            let most = segment_bytes_max(key, link, headers.frame_bytes_max);
            asking = segment.clamped(most);
            &asking
        } else {
            segment
        };
        if let Some(payload) = shared_data(self.outbox, segment, self.buffers) {
            return send_shared(&envelope, segment, payload, self.tx);
        }
        let content = Content::Tcp(segment);
        let (outbox, buffers, outboxes) = (self.outbox, self.buffers, self.outboxes);
        let places = envelope.places(&content);
        self.tx.send(places.frame_bytes(), |frame| {
            envelope.write_at(places, &content, frame, |data| {
                outbox.copy_to(segment.offset, data, buffers, outboxes)
            });
        })
    }
}

/// Sends a segment whose data is constant.
#[inline]
fn send_shared(
    envelope: &Envelope<'_>,
    segment: &Segment,
    payload: SharedPayload<'_>,
    tx: &mut impl FrameTx,
) -> bool {
    let content = Content::Tcp(segment);
    let places = envelope.places(&content);
    tx.send_sharing(places.head_bytes(), payload, |head| {
        let sum = Sum::default().and_u16(payload.sum);
        envelope.write_head_at(places, &content, head, sum);
    })
}

/// What surrounds the segments and messages of a flow.
#[inline]
pub(super) fn envelope<'a>(
    key: &FlowKey,
    link: &'a LinkAddresses,
    prefixes: &Prefixes,
    headers: HeaderDefaults,
    identification: u16,
) -> Envelope<'a> {
    let pair = key.prefixes;
    let long = pair.and_then(|n| prefixes.addresses(n, key.local, key.remote));
    let addresses = match long {
        Some((from, to)) => Addresses::V6(from, to),
        None => Addresses::V4(Ipv4Addr::from(key.local), Ipv4Addr::from(key.remote)),
    };
    let macs = (link.peer, link.own);
    Envelope {
        addresses,
        ..envelope_of(key, macs, &link.encapsulation, headers, identification)
    }
}
