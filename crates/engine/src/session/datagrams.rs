//! A UDP flow whose application tells its flows apart itself: every datagram is handed to its core, with the
//! addresses that it came by, and what it says goes out in batches.

use std::net::IpAddr;

use allosaur_packet::network::checksum::Sum;

use super::application::{ApplicationIndex, ByteApplication, FlowApplication};
use super::context::{FlowContext, FlowStatus, FrameTx};
use super::flow::{FlowTransport, Session, SessionFlag};
use super::measure::note_first_byte;
use super::surroundings::Surroundings;
use super::wire::{Addresses, Content, Envelope};
use crate::app::{Datagram, DatagramBatch, DatagramRoute, EcnCodepoint, FlowId};
use crate::tcp::Progress;

impl FlowContext<'_> {
    /// Asks a core, by its place, whose a datagram is; a reply is in `out` then. The core must tell its
    /// flows apart itself.
    pub fn route_datagram(
        &mut self,
        core: usize,
        is_client: bool,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> DatagramRoute {
        self.call_core(core, is_client, |core, inner| {
            let demultiplexer = core.demultiplexer();
            let demultiplexer = demultiplexer.expect("its answer is always the same");
            demultiplexer.handle_datagram(inner, datagram, out)
        })
    }
}

impl Session {
    /// A datagram came by the addresses and ports of this flow: the core of its application says whose it
    /// is.
    #[inline(never)]
    pub(super) fn demultiplex(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        index: ApplicationIndex,
        (message, ecn): (&[u8], Option<EcnCodepoint>),
    ) {
        let it = cx.pools.applications.look(index);
        let place = it.expect("it has done its work").place;
        if cx.pools.applications.take_begun(place.core) {
            return self.note_routed(cx, index);
        }
        let (local, remote) = self.key.endpoints(&cx.pools.spaces);
        let datagram = Datagram {
            local,
            remote,
            ecn,
            data: message,
        };
        let mut out = cx.pools.outboxes.take_spare();
        match cx.route_datagram(place.core, place.is_client, &datagram, &mut out) {
            DatagramRoute::Flow(FlowId(id)) if id == index.0 => self.note_routed(cx, index),
            DatagramRoute::Flow(other) => cx.pools.applications.wake(other),
            // There cannot be two flows with these addresses and ports.
            DatagramRoute::Start => {
                cx.pools.applications.begin(place.core);
                cx.pools.applications.discard_begun(place.core);
            }
            DatagramRoute::Reply => {
                let (link, spaces) = (cx.pools.links.at(self.link), &cx.pools.spaces);
                let surroundings = Surroundings::new(&self.key, link, spaces, cx.headers);
                let envelope = surroundings.envelope(self.identification);
                // Without room it is lost, as any datagram may be.
                send_datagram(&envelope, &out, cx.headers.frame_bytes_max, tx);
                self.identification = self.identification.wrapping_add(1);
            }
            DatagramRoute::Unknown => {}
        }
        cx.pools.outboxes.put_spare(out);
    }

    /// Its application was handed a datagram of it, of so many bytes, which came by other addresses.
    pub fn handle_routed(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        bytes: usize,
    ) -> FlowStatus {
        if let FlowTransport::Udp(udp) = &mut self.transport {
            udp.note_message(cx.now, bytes, &mut cx.counters.udp);
        }
        if let FlowApplication::Bytes(index) = self.application {
            self.note_routed(cx, index);
        }
        self.drive(cx, tx)
    }

    /// Its application was handed something of it.
    fn note_routed(&mut self, cx: &mut FlowContext<'_>, index: ApplicationIndex) {
        let is_first = cx.with_bytes(index, |_, it| {
            it.is_idle = false;
            !std::mem::replace(&mut it.has_received, true)
        });
        if is_first {
            note_first_byte(self.whose(), cx);
        }
    }

    /// Sends what waits of a batch.
    #[inline(never)]
    pub(super) fn transmit_batch(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        index: ApplicationIndex,
    ) -> Progress {
        let progress = cx.with_bytes(index, |cx, it| self.send_batch(cx, tx, it));
        if let (Progress::Done, FlowTransport::Udp(udp)) = (progress, &mut self.transport) {
            if self.flags.has(SessionFlag::Closing) {
                udp.end(&mut cx.counters.udp);
            }
        }
        progress
    }

    fn send_batch(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        it: &mut ByteApplication,
    ) -> Progress {
        let FlowTransport::Udp(udp) = &mut self.transport else {
            return Progress::Done;
        };
        let (Some(buffer), Some(waiting)) = (udp.message(), &mut it.batch) else {
            return Progress::Done;
        };
        let (link, spaces) = (cx.pools.links.at(self.link), &cx.pools.spaces);
        let surroundings = Surroundings::new(&self.key, link, spaces, cx.headers);
        let bytes = cx.pools.outboxes.bytes(buffer);
        // Those that have no length are one.
        let segment_bytes = match waiting.batch.segment_bytes {
            0 => bytes.len(),
            bytes => bytes,
        };
        while let Some(rest) = bytes
            .get(waiting.sent_bytes..)
            .filter(|rest| !rest.is_empty())
        {
            let datagram = &rest[..segment_bytes.min(rest.len())];
            let envelope = surroundings.envelope(self.identification);
            let sent = match addressed(envelope, &waiting.batch) {
                Some(envelope) => {
                    send_datagram(&envelope, datagram, cx.headers.frame_bytes_max, tx)
                }
                None => Sent::Never,
            };
            match sent {
                Sent::Yes => {
                    cx.counters.udp.sndpkt += 1;
                    cx.counters.udp.sndbyte += datagram.len() as u64;
                    self.identification = self.identification.wrapping_add(1);
                }
                Sent::Never => cx.counters.udp.pkt_toobig += 1,
                Sent::NoRoom => return Progress::Blocked,
            }
            waiting.sent_bytes += datagram.len();
        }
        it.batch = None;
        udp.note_sent(cx.now);
        cx.pools.outboxes.free(buffer);
        Progress::Done
    }
}

/// The envelope of the datagrams of a batch; `None` where they are to go to another version of IP.
fn addressed<'a>(envelope: Envelope<'a>, batch: &DatagramBatch) -> Option<Envelope<'a>> {
    let mut envelope = envelope;
    if let Some(ecn) = batch.ecn {
        envelope.type_of_service = envelope.type_of_service & !EcnCodepoint::MASK | ecn as u8;
    }
    if let Some(remote) = batch.remote {
        envelope.addresses = match (envelope.addresses, remote.ip()) {
            (Addresses::V4(from, _), IpAddr::V4(to)) => Addresses::V4(from, to),
            (Addresses::V6(from, _), IpAddr::V6(to)) => Addresses::V6(from, to),
            _ => return None,
        };
        envelope.ports.1 = remote.port();
    }
    Some(envelope)
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Yes,
    NoRoom,
    /// No frame of the port can carry it.
    Never,
}

/// Sends a datagram of an application.
fn send_datagram(
    envelope: &Envelope<'_>,
    data: &[u8],
    frame_bytes_max: usize,
    tx: &mut impl FrameTx,
) -> Sent {
    let Ok(bytes) = u16::try_from(data.len()) else {
        return Sent::Never;
    };
    let content = Content::Udp(bytes);
    let places = envelope.places(&content);
    if places.frame_bytes() > frame_bytes_max {
        return Sent::Never;
    }
    let sent = tx.send(places.frame_bytes(), |frame| {
        envelope.write_at(places, &content, frame, |place| {
            place.copy_from_slice(data);
            Sum::of(data)
        });
    });
    match sent {
        true => Sent::Yes,
        false => Sent::NoRoom,
    }
}
