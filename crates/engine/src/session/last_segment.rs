//! One segment that says all that a program has to say, in the frame that most have: it is written from
//! what is at hand, and nothing is asked twice. All others leave by way of `flow`.

use allosaur_packet::network::checksum::Sum;

use super::context::{FlowContext, FrameTx};
use super::flow::{FlowTransport, Session, plain_envelope, shared_data};
use super::links::segment_bytes_max;
use super::wire::{Content, Encapsulation, Envelope, SYN_BYTES, TIMED_BYTES};
use crate::tcp::{self, Progress};

impl Session {
    /// Sends such a segment; `None` where there is none, or nothing is known of it.
    #[inline(always)]
    pub(super) fn transmit_last(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Option<Progress> {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return None;
        };
        let link = cx.pools.links.at(self.link);
        let is_plain =
            self.key.prefixes.is_none() && matches!(link.encapsulation, Encapsulation::Ethernet);
        let mut inner = tcp::TcpContext {
            now_ms: cx.pools.clock.tcp_ms,
            now_us: cx.pools.clock.us,
            tunables: cx.tunables,
            unread_bytes: 0,
            counters: &mut cx.counters.tcp,
            sides: &mut cx.pools.sides,
        };
        if !is_plain {
            return None;
        }
        if !connection.is_synchronized() {
            return self.transmit_syn(cx, tx);
        }
        let rest = connection.rest_to_send(&mut inner)?;
        let segment = connection.last_segment(&inner, rest);
        let places = Envelope::usual_places(true, &segment)?;
        let outbox = &self.outbox;
        let shared = shared_data(outbox, &segment, cx.buffers);
        let (data, sum): (&[u8], Sum) = match (segment.len, &shared) {
            (0, _) => (&[], Sum::default()),
            (_, Some(payload)) => (&[], Sum::default().and_u16(payload.sum)),
            (len, None) => outbox.whole(segment.offset, len, cx.buffers)?,
        };
        self.identification = self.identification.wrapping_add(1);
        let envelope = plain_envelope(&self.key, link, cx.headers, self.identification);
        let mut head = [0; TIMED_BYTES];
        envelope.write_head_at(places, &Content::Tcp(&segment), &mut head, sum);
        // What a queue is told is little: it is told by a call.
        let head = &head;
        let is_sent = match shared {
            Some(payload) => {
                tx.send_sharing(TIMED_BYTES, payload, |place| place.copy_from_slice(head))
            }
            None => tx.send(TIMED_BYTES + data.len(), |frame| {
                let (front, place) = frame.split_at_mut(TIMED_BYTES);
                front.copy_from_slice(head);
                place.copy_from_slice(data);
            }),
        };
        if !is_sent {
            return Some(Progress::Blocked);
        }
        connection.note_last_sent(&mut inner, &segment);
        Some(Progress::Done)
    }

    /// Sends a SYN, or the answer to one, that offers all that we know; `None` where another segment is
    /// due. Its addresses are of IPv4, its link has no tags.
    fn transmit_syn(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Option<Progress> {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return None;
        };
        let link = cx.pools.links.at(self.link);
        let most = segment_bytes_max(&self.key, link, cx.headers.frame_bytes_max);
        let mut inner = tcp::TcpContext {
            now_ms: cx.pools.clock.tcp_ms,
            now_us: cx.pools.clock.us,
            tunables: cx.tunables,
            unread_bytes: 0,
            counters: &mut cx.counters.tcp,
            sides: &mut cx.pools.sides,
        };
        if !connection.is_syn_due() {
            return None;
        }
        let segment = connection.syn(&inner).clamped(most);
        let places = Envelope::syn_places(&segment)?;
        self.identification = self.identification.wrapping_add(1);
        let envelope = plain_envelope(&self.key, link, cx.headers, self.identification);
        let mut head = [0; SYN_BYTES];
        envelope.write_head_at(places, &Content::Tcp(&segment), &mut head, Sum::default());
        let head = &head;
        if !tx.send(SYN_BYTES, |frame| frame.copy_from_slice(head)) {
            return Some(Progress::Blocked);
        }
        connection.note_syn_sent(&mut inner);
        Some(Progress::Done)
    }
}
