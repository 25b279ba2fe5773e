//! What surrounds the data of a flow in its frames: the prefix of its link, addresses and ports, and the values that headers of all
//! its packets have.

use std::net::Ipv4Addr;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SharedPayload;

use super::context::{FrameTx, HeaderDefaults};
use super::outbox::Outbox;
use super::wire::{Addresses, Envelope};
use crate::app::Buffers;
use crate::encapsulation::LinkPrefix;
use crate::flow::{AddressSpaces, FlowKey};
use crate::tcp::Segment;

/// Data of fewer bytes is copied into its frame, which is no more work than to say where it is, and
/// leaves no frame to be padded.
pub(super) const SHARED_BYTES_MIN: u32 = 128;

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

/// What an [`envelope`] is made of.
type Surroundings<'a> = (
    &'a FlowKey,
    &'a LinkPrefix,
    &'a AddressSpaces,
    HeaderDefaults,
    u16,
);

/// Sends a segment with timestamps and no other option, whatever stands in front of its packet. Its data
/// has this sum; it is apart, or in `shared`.
#[inline(never)]
pub(super) fn send_behind_prefix(
    (key, link, spaces, headers, identification): Surroundings<'_>,
    segment: &Segment,
    (data, sum): (&[u8], Sum),
    shared: Option<SharedPayload<'_>>,
    tx: &mut impl FrameTx,
) -> bool {
    let envelope = envelope(key, link, spaces, headers, identification);
    let places = envelope.timed_places(segment);
    let head_bytes = places.head_bytes();
    match shared {
        Some(payload) => tx.send_sharing(head_bytes, payload, |head| {
            envelope.write_timed_behind(segment, sum, head);
        }),
        None => tx.send(places.frame_bytes(), |frame| {
            envelope.write_timed_behind(segment, sum, frame);
            let (place, padding) = frame[head_bytes..].split_at_mut(data.len());
            place.copy_from_slice(data);
            if !padding.is_empty() {
                padding.fill(0);
            }
        }),
    }
}

/// What surrounds the segments of a flow between addresses of IPv4.
#[inline(always)]
pub(super) fn envelope_of<'a>(
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

/// What surrounds the segments and messages of a flow.
#[inline]
pub(super) fn envelope<'a>(
    key: &FlowKey,
    link: &'a LinkPrefix,
    spaces: &AddressSpaces,
    headers: HeaderDefaults,
    identification: u16,
) -> Envelope<'a> {
    let plain = envelope_of(key, link, headers, identification);
    let long = |number| spaces.addresses(number, key.local, key.remote);
    match key.space.and_then(long) {
        Some((from, to)) => Envelope {
            addresses: Addresses::V6(from, to),
            ..plain
        },
        None => plain,
    }
}
