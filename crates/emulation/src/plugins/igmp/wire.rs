//! Messages of IGMP on the wire.

use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_packet::network::checksum::checksum;

use crate::multicast::Query;
use crate::multicast::report::Message;

/// Bytes of the shortest message.
pub(super) const MESSAGE_BYTES_MIN: usize = 8;
/// Bytes of a query of version 3 before its sources (RFC 3376 section 4.1).
const QUERY3_BYTES_MIN: usize = 12;

const QUERY: u8 = 0x11;
const REPORT1: u8 = 0x12;
const REPORT2: u8 = 0x16;
const LEAVE: u8 = 0x17;
const REPORT3: u8 = 0x22;

/// The unit of response times.
const TENTH: Nanos = 100 * MILLISECOND;

/// Whether it is a report of another host, or its leaving.
pub(super) fn is_report(segment: &[u8]) -> bool {
    matches!(
        segment.first(),
        Some(&(REPORT1 | REPORT2 | LEAVE | REPORT3))
    )
}

/// Reads a query; its length says its version (RFC 3376 section 7.1).
pub(super) fn query(segment: &[u8]) -> Option<Query<[u8; 4]>> {
    let &[kind, code, _, _, a, b, c, d] = segment.first_chunk()?;
    let group = [a, b, c, d];
    if kind != QUERY || (group != [0; 4] && group[0] & 0xf0 != 0xe0) {
        return None;
    }
    let group = Some(group).filter(|group| *group != [0; 4]);
    if segment.len() < QUERY3_BYTES_MIN {
        return Some(Query {
            version: if code == 0 { 1 } else { 2 },
            group,
            has_sources: false,
            max_response: Nanos::from(code) * TENTH,
        });
    }
    let sources = usize::from(u16::from_be_bytes([segment[10], segment[11]]));
    let is_general = group.is_none() && sources != 0;
    if is_general || segment.len() < QUERY3_BYTES_MIN + 4 * sources {
        return None;
    }
    Some(Query {
        version: 3,
        group,
        has_sources: sources != 0,
        max_response: response_time(code) * TENTH,
    })
}

/// A response code (RFC 3376 section 4.1.1): above 127 a small floating point number.
fn response_time(code: u8) -> Nanos {
    let (exponent, mantissa) = (code >> 4 & 7, code & 0xf);
    match code {
        128.. => (Nanos::from(mantissa) | 0x10) << (exponent + 3),
        _ => code.into(),
    }
}

/// Bytes of a message.
pub(super) fn length(message: &Message<'_, [u8; 4]>) -> usize {
    match message {
        Message::Records { bytes, .. } => MESSAGE_BYTES_MIN + bytes.len(),
        _ => MESSAGE_BYTES_MIN,
    }
}

/// Writes a message of a version over zeros, with its checksum.
pub(super) fn write(message: &Message<'_, [u8; 4]>, version: u8, out: &mut [u8]) {
    match *message {
        Message::Records { count, bytes } => {
            out[0] = REPORT3;
            out[6..8].copy_from_slice(&count.to_be_bytes());
            out[MESSAGE_BYTES_MIN..].copy_from_slice(bytes);
        }
        Message::Report(group) => {
            out[0] = if version == 1 { REPORT1 } else { REPORT2 };
            out[4..8].copy_from_slice(&group);
        }
        Message::Leave(group) => {
            out[0] = LEAVE;
            out[4..8].copy_from_slice(&group);
        }
    }
    let sum = checksum(out);
    out[2..4].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_length_of_a_query_is_its_version() {
        let general = |bytes: &[u8]| query(bytes).expect("a query");
        let old = general(&[0x11, 0, 0xee, 0xff, 0, 0, 0, 0]);
        assert_eq!((old.version, old.max_response), (1, 0));
        let second = general(&[0x11, 0xc8, 0, 0, 239, 1, 2, 3]);
        assert_eq!((second.version, second.group), (2, Some([239, 1, 2, 3])));
        // Version 2 counts on up to 25.5 s, version 3 has exponents from 12.8 s on.
        assert_eq!(second.max_response, 200 * TENTH);
        let third = general(&[0x11, 0xc8, 0, 0, 239, 1, 2, 3, 2, 125, 0, 0]);
        assert_eq!((third.version, third.has_sources), (3, false));
        assert_eq!(third.max_response, 24 * 128 * TENTH);
    }

    #[test]
    fn sources_must_be_there_and_have_a_group() {
        let mut bytes = vec![0x11, 20, 0, 0, 239, 1, 2, 3, 2, 125, 0, 2];
        assert_eq!(query(&bytes), None);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        assert!(query(&bytes).is_some_and(|query| query.has_sources));
        bytes[4..8].fill(0);
        assert_eq!(query(&bytes), None);
        bytes[4..8].copy_from_slice(&[10, 0, 0, 1]);
        assert_eq!(query(&bytes), None, "no group");
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (query(&bytes), is_report(&bytes));
        }
    }
}
