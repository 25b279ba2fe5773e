//! A flow over UDP: messages, and an end after a silence.

use allosaur_packet::network::checksum::Sum;

use super::app_latency::Stamp;
use super::context::{Context, FlowStatus, FrameTx};
use super::flow::{FlowTransport, Session};
use super::wire::Content;
use crate::app::{BufferIndex, Buffers, UdpCounters};
use crate::tcp::Progress;
use crate::time::{MICROSECOND, MILLISECOND, Nanos, Tight};

/// How long a flow may be silent when its program does not say.
const KEEPALIVE_MS: u32 = 500;

/// The state of a UDP flow.
#[derive(Clone, Debug)]
pub(super) struct Udp {
    /// The message that leaves next.
    message: Option<BufferIndex>,
    keepalive_ms: u32,
    received_only: bool,
    is_over: bool,
    /// Messages that arrived: none, one, or more.
    heard: u8,
    /// When something was last said, or heard.
    active_at: Tight,
    /// What stands in front of each message, where its program wants that.
    pub(super) stamp: Option<Stamp>,
}

impl Udp {
    pub(super) fn new(now: Nanos, stamp: Option<Stamp>) -> Udp {
        Udp {
            message: None,
            keepalive_ms: KEEPALIVE_MS,
            received_only: false,
            is_over: false,
            heard: 0,
            active_at: Tight::new(now),
            stamp,
        }
    }

    /// Something arrived.
    pub(super) fn hear(&mut self, now: Nanos) {
        self.active_at = Tight::new(now);
        self.heard = self.heard.saturating_add(1);
    }

    /// Whether more than one message arrived.
    pub(super) fn has_heard_again(&self) -> bool {
        self.heard > 1
    }

    /// A message leaves as soon as there is room.
    pub(super) fn send(&mut self, buffer: BufferIndex) {
        debug_assert!(self.message.is_none(), "one message at a time");
        self.message = Some(buffer);
    }

    pub(super) fn message(&self) -> Option<BufferIndex> {
        self.message
    }

    pub(super) fn waits_to_send(&self) -> bool {
        self.message.is_some()
    }

    pub(super) fn note_sent(&mut self, now: Nanos) {
        self.message = None;
        if let Some(stamp) = &mut self.stamp {
            stamp.note_sent();
        }
        if !self.received_only {
            self.active_at = Tight::new(now);
        }
    }

    pub(super) fn set_keepalive(&mut self, now: Nanos, timeout_ms: u32, received_only: bool) {
        self.keepalive_ms = timeout_ms;
        self.received_only = received_only;
        self.active_at = Tight::new(now);
    }

    /// Ends the flow if it was silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Nanos, counters: &mut UdpCounters) {
        if self.due().is_some_and(|due| due <= now) {
            counters.keepdrops += 1;
            self.end(counters);
        }
    }

    pub(super) fn end(&mut self, counters: &mut UdpCounters) {
        counters.closed += u64::from(!self.is_over);
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// When the silence is too long.
    pub(super) fn due(&self) -> Option<Nanos> {
        let silence = Nanos::from(self.keepalive_ms) * MILLISECOND;
        (!self.is_over).then(|| self.active_at.get() + silence)
    }
}

impl Session {
    /// A datagram arrived.
    pub fn handle_datagram(
        &mut self,
        cx: &mut Context<'_>,
        tx: &mut impl FrameTx,
        message: &[u8],
    ) -> FlowStatus {
        if let FlowTransport::Udp(udp) = &mut self.transport {
            udp.hear(cx.now);
            cx.counters.udp.rcvpkt += 1;
            cx.counters.udp.rcvbyte += message.len() as u64;
            if let Some(stamp) = &mut udp.stamp {
                let now_us = (cx.now / MICROSECOND) as u32;
                stamp.hear(now_us, message, &mut cx.counters.latency);
            }
            self.application.handle_message();
        }
        self.attend(cx, tx)
    }

    /// Sends the message that waits.
    pub(super) fn transmit_message(
        &mut self,
        cx: &mut Context<'_>,
        tx: &mut impl FrameTx,
    ) -> Progress {
        let envelope = self.envelope(&cx.pools.links, &cx.pools.prefixes, cx.headers);
        let FlowTransport::Udp(udp) = &mut self.transport else {
            return Progress::Done;
        };
        if let Some(buffer) = udp.message() {
            let header = udp.stamp.map(|stamp| {
                let now_us = (cx.now / MICROSECOND) as u32;
                stamp.header(now_us).to_bytes()
            });
            let header = header.as_ref().map_or(&[][..], |header| header);
            let bytes = cx.buffers.len(buffer) + header.len() as u32;
            let content = Content::Udp(bytes.min(0xffff) as u16);
            if bytes > 0xffff || envelope.frame_bytes(&content) > cx.headers.frame_bytes_max {
                cx.counters.udp.pkt_toobig += 1;
                udp.note_sent(cx.now);
                return Progress::Done;
            }
            let sent = tx.send(envelope.frame_bytes(&content), |frame| {
                envelope.write(&content, frame, |data| {
                    copy_message(cx.buffers, header, buffer, data)
                });
            });
            if !sent {
                return Progress::Blocked;
            }
            udp.note_sent(cx.now);
            cx.counters.udp.sndpkt += 1;
            cx.counters.udp.sndbyte += u64::from(bytes);
            self.identification = self.identification.wrapping_add(1);
        }
        if self.is_closing {
            udp.end(&mut cx.counters.udp);
        }
        Progress::Done
    }
}

/// Writes a message, and returns its sum. Headers have whole words, so sums add up.
fn copy_message(buffers: &Buffers, header: &[u8], buffer: BufferIndex, data: &mut [u8]) -> Sum {
    let (front, data) = data.split_at_mut(header.len());
    front.copy_from_slice(header);
    buffers.copy_to(buffer, 0, data);
    let sum = buffers.sum(buffer, 0, data.len() as u32);
    Sum::of(header).and_sum(sum)
}
