//! A flow over UDP: messages, and an end after a silence.

use allosaur_packet::network::checksum::Sum;

use super::app_latency::Stamp;
use super::application::FlowApplication;
use super::context::{FlowContext, FlowStatus, FrameTx};
use super::flow::{FlowTransport, Session, SessionFlag};
use super::measure::{look_at, note_first_byte};
use super::surroundings::Surroundings;
use super::wire::Content;
use crate::app::EcnCodepoint;
use crate::tcp::Progress;
use crate::time::MICROSECOND;

impl Session {
    /// A datagram arrived; `ecn` tells its bits of ECN, where somebody asks. A call, so that segments of
    /// TCP save no registers for it.
    #[inline(never)]
    pub fn handle_datagram(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        message: &[u8],
        ecn: impl FnOnce() -> Option<EcnCodepoint>,
    ) -> FlowStatus {
        let whose = self.whose();
        if let FlowTransport::Udp(udp) = &mut self.transport {
            udp.note_message(cx.now, message.len(), &mut cx.counters.udp);
            if let Some(stamp) = &mut udp.stamp {
                let now_us = (cx.now / MICROSECOND) as u32;
                stamp.receive(now_us, message, &mut cx.counters.latency);
            }
            match &mut self.application {
                FlowApplication::Program(program) => {
                    program.handle_message();
                    if program.looks() {
                        look_at(program, &[], whose, cx);
                    }
                }
                FlowApplication::Bytes(index) => {
                    let index = *index;
                    if cx.pools.applications.is_demultiplexed(index) {
                        self.demultiplex(cx, tx, index, (message, ecn()));
                        return self.drive(cx, tx);
                    }
                    let is_first = cx.with_bytes(index, |cx, it| {
                        it.is_idle = false;
                        cx.call(it.place, |core, flow, inner| {
                            core.handle_message(flow, inner, message);
                        });
                        !std::mem::replace(&mut it.has_received, true)
                    });
                    if is_first {
                        note_first_byte(whose, cx);
                    }
                }
            }
        }
        self.drive(cx, tx)
    }

    /// The number by which its messages say whose they are: a client's, with the add-on "latency".
    pub fn connection_number(&self) -> Option<u32> {
        match &self.transport {
            FlowTransport::Tcp(_) => None,
            FlowTransport::Udp(udp) => udp.stamp.as_ref().and_then(Stamp::connection),
        }
    }

    /// Bytes of the longest message that its port takes.
    pub(super) fn message_bytes_max(&self, cx: &FlowContext<'_>) -> usize {
        let (link, spaces) = (cx.pools.links.at(self.link), &cx.pools.spaces);
        let surroundings = Surroundings::new(&self.key, link, spaces, cx.headers);
        let header_bytes = surroundings.envelope(0).header_bytes(&Content::Udp(0));
        cx.headers.frame_bytes_max.saturating_sub(header_bytes)
    }

    /// Sends the message or the batch of datagrams that waits.
    pub(super) fn transmit_message(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Progress {
        let FlowTransport::Udp(udp) = &mut self.transport else {
            return Progress::Done;
        };
        if let Some(buffer) = udp.message() {
            if let FlowApplication::Bytes(index) = self.application {
                if cx.pools.applications.has_batch(index) {
                    return self.transmit_batch(cx, tx, index);
                }
            }
            let (link, spaces) = (cx.pools.links.at(self.link), &cx.pools.spaces);
            let surroundings = Surroundings::new(&self.key, link, spaces, cx.headers);
            let envelope = surroundings.envelope(self.identification);
            let header = udp.stamp.map(|stamp| {
                let now_us = (cx.now / MICROSECOND) as u32;
                stamp.header(now_us).to_bytes()
            });
            let header = header.as_ref().map_or(&[][..], |header| header);
            let outboxes = &cx.pools.outboxes;
            let bytes = outboxes
                .len(buffer, cx.buffers)
                .saturating_add(header.len() as u32);
            let content = Content::Udp(bytes.min(0xffff) as u16);
            let places = envelope.places(&content);
            if bytes > 0xffff || places.frame_bytes() > cx.headers.frame_bytes_max {
                cx.counters.udp.pkt_toobig += 1;
                udp.note_sent(cx.now);
                cx.pools.outboxes.free(buffer);
                return Progress::Done;
            }
            let sent = tx.send(places.frame_bytes(), |frame| {
                envelope.write_at(places, &content, frame, |data| {
                    let (front, data) = data.split_at_mut(header.len());
                    front.copy_from_slice(header);
                    // Headers have whole words, so sums add up.
                    let sum = outboxes.copy_to(buffer, 0, data, cx.buffers);
                    Sum::of(header).and_sum(sum)
                });
            });
            if !sent {
                return Progress::Blocked;
            }
            udp.note_sent(cx.now);
            cx.pools.outboxes.free(buffer);
            cx.counters.udp.sndpkt += 1;
            cx.counters.udp.sndbyte += u64::from(bytes);
            self.identification = self.identification.wrapping_add(1);
        }
        if self.flags.has(SessionFlag::Closing) {
            udp.end(&mut cx.counters.udp);
        }
        Progress::Done
    }
}
