//! What surrounds the data of a flow in its frames: the prefix of its link, addresses and ports, and the values that headers of all
//! its packets have.

use std::net::Ipv4Addr;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SharedPayload;

use super::context::{FrameTx, HeaderDefaults};
use super::links::segment_bytes_max;
use super::outbox::{Outbox, OutboxPool};
use super::wire::{Addresses, Envelope, TIMED_BYTES};
use crate::app::Buffers;
use crate::encapsulation::LinkPrefix;
use crate::flow::{AddressSpaces, FlowKey};
use crate::tcp::Segment;

/// Data of fewer bytes is copied into its frame, which is no more work than to say where it is, and
/// leaves no frame to be padded.
pub(super) const SHARED_BYTES_MIN: u32 = 128;

/// The data of a segment that is not shared, with the sum of either; `None` where it is in several
/// pieces.
#[inline(always)]
pub(super) fn data_of<'b>(
    outbox: &Outbox,
    segment: &Segment,
    shared: &Option<SharedPayload<'b>>,
    buffers: &'b Buffers,
    pool: &'b OutboxPool,
) -> Option<(&'b [u8], Sum)> {
    match (segment.len, shared) {
        (0, _) => Some((&[], Sum::default())),
        (_, Some(payload)) => Some((&[], Sum::default().and_u16(payload.sum))),
        (len, None) => outbox.whole(segment.offset, len, buffers, pool),
    }
}

/// The data of a segment, where it is constant and worth sharing.
#[inline]
pub(super) fn shared_data<'b>(
    outbox: &Outbox,
    segment: &Segment,
    buffers: &'b Buffers,
) -> Option<SharedPayload<'b>> {
    if segment.len < SHARED_BYTES_MIN {
        return None;
    }
    outbox.shared(segment.offset, segment.len, buffers)
}

/// Whether packets are of IPv4, with nothing but the header of Ethernet in front.
#[inline(always)]
pub(super) fn is_plain(key: &FlowKey, link: &LinkPrefix) -> bool {
    !key.scope.is_v6() && link.is_ethernet()
}

/// The envelope of a packet of a flow, where it [is plain](is_plain).
#[inline(always)]
pub(super) fn plain_envelope<'a>(
    key: &FlowKey,
    link: &'a LinkPrefix,
    headers: HeaderDefaults,
    identification: u16,
) -> Envelope<'a> {
    Envelope {
        link,
        addresses: Addresses::V4(Ipv4Addr::from(key.local), Ipv4Addr::from(key.remote)),
        ports: (key.local_port, key.remote_port),
        type_of_service: headers.type_of_service,
        time_to_live: headers.time_to_live,
        identification,
    }
}

/// What the envelopes of all packets of a flow are made of.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    key: &'a FlowKey,
    link: &'a LinkPrefix,
    spaces: &'a AddressSpaces,
    headers: HeaderDefaults,
}

impl<'a> Surroundings<'a> {
    /// Those of a flow with this key, on this link.
    #[inline(always)]
    pub(super) fn new(
        key: &'a FlowKey,
        link: &'a LinkPrefix,
        spaces: &'a AddressSpaces,
        headers: HeaderDefaults,
    ) -> Surroundings<'a> {
        Surroundings {
            key,
            link,
            spaces,
            headers,
        }
    }

    /// The same as [`plain_envelope`].
    #[inline(always)]
    pub(super) fn plain_envelope(&self, identification: u16) -> Envelope<'a> {
        plain_envelope(self.key, self.link, self.headers, identification)
    }

    /// The same as [`is_plain`].
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        is_plain(self.key, self.link)
    }

    /// Bytes of a segment for which the port has room.
    pub(super) fn segment_bytes_max(&self) -> u16 {
        segment_bytes_max(self.key, self.link, self.headers.frame_bytes_max)
    }

    /// The envelope of any packet of the flow.
    #[inline]
    pub(super) fn envelope(&self, identification: u16) -> Envelope<'a> {
        let plain = self.plain_envelope(identification);
        let (spaces, local, remote) = (self.spaces, self.key.local, self.key.remote);
        let long = |number| spaces.addresses(number, local, remote);
        match self.key.space.and_then(long) {
            Some((from, to)) => Envelope {
                addresses: Addresses::V6(from, to),
                ..plain
            },
            None => plain,
        }
    }
}

/// Sends a segment with timestamps and no other option in a plain frame, which is written from what is at
/// hand. Its data has this sum, and is apart or shared.
#[inline(always)]
pub(super) fn send_plain(
    envelope: &Envelope<'_>,
    segment: &Segment,
    (data, sum): (&[u8], Sum),
    shared: Option<SharedPayload<'_>>,
    tx: &mut impl FrameTx,
) -> bool {
    let mut head = [0; TIMED_BYTES];
    envelope.write_timed(segment, sum, &mut head);
    send_head(&head, data, shared, tx)
}

/// Sends what was written of a frame, which is longer than any that is padded, and its data.
#[inline(always)]
pub(super) fn send_head<const HEAD: usize>(
    head: &[u8; HEAD],
    data: &[u8],
    shared: Option<SharedPayload<'_>>,
    tx: &mut impl FrameTx,
) -> bool {
    // What a queue is told is little: it is told by a call.
    match shared {
        Some(payload) => tx.send_sharing(HEAD, payload, |place| place.copy_from_slice(head)),
        None => tx.send(HEAD + data.len(), |frame| {
            let (front, place) = frame.split_at_mut(HEAD);
            front.copy_from_slice(head);
            place.copy_from_slice(data);
        }),
    }
}
