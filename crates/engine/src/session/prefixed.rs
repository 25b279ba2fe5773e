//! Segments on their way into frames that have more than the header of Ethernet in front of IPv4.

use allosaur_packet::link::{ethernet, vlan};
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::network::{ipv4, ipv6};
use allosaur_packet::shared_payload::SharedPayload;

use super::context::FrameTx;
use super::surroundings::{Surroundings, send_head};
use super::wire::{Addresses, Envelope, TIMED_BYTES};
use crate::tcp::Segment;

/// The header of Ethernet, and the same with tags.
const UNTAGGED: usize = ethernet::HEADER_BYTES;
const TAGGED: usize = UNTAGGED + vlan::HEADER_BYTES;
const TAGGED_TWICE: usize = UNTAGGED + 2 * vlan::HEADER_BYTES;
/// What stands between it and the data of a segment with timestamps and nothing else, over IPv4; over
/// IPv6 it is longer.
const V4_BYTES: usize = TIMED_BYTES - UNTAGGED;
const IPV6_LONGER_BYTES: usize = ipv6::HEADER_BYTES - ipv4::HEADER_BYTES_MIN;

/// The same as [`send_plain`](super::surroundings::send_plain) behind a prefix of `PREFIX` bytes; up to the
/// data there are `HEAD`.
#[inline(always)]
fn send_behind<const PREFIX: usize, const HEAD: usize>(
    envelope: &Envelope<'_>,
    segment: &Segment,
    (data, sum): (&[u8], Sum),
    shared: Option<SharedPayload<'_>>,
    tx: &mut impl FrameTx,
) -> bool {
    let mut head = [0; HEAD];
    envelope.write_timed_at::<PREFIX>(segment, sum, &mut head);
    send_head(&head, data, shared, tx)
}

/// The same, whatever stands in front of the packet. What it takes is taken by value: of a segment whose
/// address no call has, the caller keeps the parts in registers.
#[inline(never)]
pub(super) fn send_behind_prefix(
    surroundings: Surroundings<'_>,
    identification: u16,
    segment: Segment,
    data: (&[u8], Sum),
    shared: Option<SharedPayload<'_>>,
    tx: &mut impl FrameTx,
) -> bool {
    let envelope = surroundings.envelope(identification);
    // As most have it: a tag, two, or none in front of IPv6.
    match (envelope.link.bytes(), envelope.addresses) {
        (TAGGED, Addresses::V4(..)) => {
            const HEAD: usize = TAGGED + V4_BYTES;
            return send_behind::<TAGGED, HEAD>(&envelope, &segment, data, shared, tx);
        }
        (TAGGED_TWICE, Addresses::V4(..)) => {
            const HEAD: usize = TAGGED_TWICE + V4_BYTES;
            return send_behind::<TAGGED_TWICE, HEAD>(&envelope, &segment, data, shared, tx);
        }
        (UNTAGGED, Addresses::V6(..)) => {
            const HEAD: usize = UNTAGGED + V4_BYTES + IPV6_LONGER_BYTES;
            return send_behind::<UNTAGGED, HEAD>(&envelope, &segment, data, shared, tx);
        }
        _ => {}
    }
    let (data, sum) = data;
    let places = envelope.timed_places(&segment);
    let head_bytes = places.head_bytes();
    match shared {
        Some(payload) => tx.send_sharing(head_bytes, payload, |head| {
            envelope.write_timed_behind(&segment, sum, head);
        }),
        None => tx.send(places.frame_bytes(), |frame| {
            envelope.write_timed_behind(&segment, sum, frame);
            let (place, padding) = frame[head_bytes..].split_at_mut(data.len());
            place.copy_from_slice(data);
            if !padding.is_empty() {
                padding.fill(0);
            }
        }),
    }
}
