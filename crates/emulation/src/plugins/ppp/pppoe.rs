//! PPPoE as a host reads and writes it (RFC 2516): discovery packets with their tags, and the header
//! of a session.

use allosaur_packet::link::ethernet::EtherType;

/// Discovery.
pub(super) const DISCOVERY: EtherType = EtherType(0x8863);
/// Session.
pub(super) const SESSION: EtherType = EtherType(0x8864);

/// Bytes of the header: version and type, code, session, length.
pub(super) const HEADER_BYTES: usize = 6;
/// The longest PPP payload without its protocol (RFC 2516 section 7: the MRU is at most this).
pub(super) const MRU: u16 = 1492;

/// Version 1 and type 1 (section 4).
const VERSION_TYPE: u8 = 0x11;

/// What a packet is for (section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) u8);

impl Code {
    /// A packet of a session.
    pub(super) const SESSION: Code = Code(0x00);
    /// A concentrator offers itself.
    pub(super) const PADO: Code = Code(0x07);
    /// A host looks for concentrators.
    pub(super) const PADI: Code = Code(0x09);
    /// A host asks one for a session.
    pub(super) const PADR: Code = Code(0x19);
    /// A concentrator confirms a session.
    pub(super) const PADS: Code = Code(0x65);
    /// A session ends.
    pub(super) const PADT: Code = Code(0xa7);
}

/// Types of tags (appendix A).
pub(super) mod tag {
    pub(in super::super) const END_OF_LIST: u16 = 0x0000;
    pub(in super::super) const SERVICE_NAME: u16 = 0x0101;
    pub(in super::super) const HOST_UNIQ: u16 = 0x0103;
    pub(in super::super) const SERVICE_NAME_ERROR: u16 = 0x0201;
    pub(in super::super) const AC_SYSTEM_ERROR: u16 = 0x0202;
    pub(in super::super) const GENERIC_ERROR: u16 = 0x0203;
}

/// A packet: its code, its session, and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'f> {
    pub(super) code: Code,
    pub(super) session: u16,
    pub(super) payload: &'f [u8],
}

impl<'f> Packet<'f> {
    /// Reads what follows the Ethernet header; padding behind its length is no part of it. `None`
    /// for another version, or when it ends too early.
    pub(super) fn parse(bytes: &'f [u8]) -> Option<Packet<'f>> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [version_type, code, session_high, session_low, high, low] = *header;
        let payload = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
        (version_type == VERSION_TYPE).then_some(Packet {
            code: Code(code),
            session: u16::from_be_bytes([session_high, session_low]),
            payload,
        })
    }
}

/// Writes a header with the code, the session, and the length of what follows it.
pub(super) fn emit(code: Code, session: u16, bytes: &mut [u8]) -> &mut [u8] {
    let (header, payload) = bytes.split_at_mut(HEADER_BYTES);
    let [session_high, session_low] = session.to_be_bytes();
    let [high, low] = (payload.len() as u16).to_be_bytes();
    header.copy_from_slice(&[VERSION_TYPE, code.0, session_high, session_low, high, low]);
    payload
}

/// The tags of a discovery packet: type, and all bytes of the tag with its header.
pub(super) fn tags(payload: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        let [type_high, type_low, high, low] = *rest.first_chunk()?;
        let tag = u16::from_be_bytes([type_high, type_low]);
        let length = 4 + usize::from(u16::from_be_bytes([high, low]));
        let bytes = rest.get(..length)?;
        rest = &rest[length..];
        (tag != tag::END_OF_LIST).then_some((tag, bytes))
    })
}

/// Whether a concentrator says with its tags that something is wrong.
pub(super) fn has_error(payload: &[u8]) -> bool {
    tags(payload).any(|(tag, _)| {
        matches!(
            tag,
            tag::SERVICE_NAME_ERROR | tag::AC_SYSTEM_ERROR | tag::GENERIC_ERROR
        )
    })
}

/// The tags of a request for what an offer offers: the offer's own, of which a cookie and a relay's
/// identifier must come back (section 5.2), and of services exactly one, the first. A tag of the
/// host's own was not sent.
pub(super) fn request_tags(offer: &[u8]) -> Box<[u8]> {
    let mut request = Vec::new();
    let mut is_named = false;
    for (tag, bytes) in tags(offer) {
        let is_wanted = match tag {
            tag::SERVICE_NAME => !std::mem::replace(&mut is_named, true),
            tag::HOST_UNIQ => false,
            _ => true,
        };
        if is_wanted {
            request.extend_from_slice(bytes);
        }
    }
    if !is_named {
        request.extend_from_slice(&ANY_SERVICE);
    }
    request.into_boxed_slice()
}

/// The tag that asks for any service.
pub(super) const ANY_SERVICE: [u8; 4] = [0x01, 0x01, 0, 0];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_is_read_as_it_is_written_without_its_padding() {
        let mut bytes = [0xa5; 12];
        emit(Code::PADS, 0x1234, &mut bytes[..10]).copy_from_slice(&[1, 2, 3, 4]);
        let packet = Packet {
            code: Code::PADS,
            session: 0x1234,
            payload: &[1, 2, 3, 4],
        };
        assert_eq!(Packet::parse(&bytes), Some(packet));
        assert_eq!(Packet::parse(&bytes[..9]), None);
        bytes[0] = 0x12;
        assert_eq!(Packet::parse(&bytes), None);
    }

    #[test]
    fn a_request_brings_back_the_cookie_and_one_service() {
        let offer = [
            &[1, 1, 0, 1, b'a'][..],
            &[1, 3, 0, 1, 9],
            &[1, 1, 0, 0],
            &[1, 4, 0, 2, 7, 8],
            &[0, 0, 0, 0],
            &[1, 5, 0, 0],
        ];
        let request = request_tags(&offer.concat());
        assert_eq!(*request, [1, 1, 0, 1, b'a', 1, 4, 0, 2, 7, 8]);
        assert_eq!(*request_tags(&[1, 4, 0, 0]), [1, 4, 0, 0, 1, 1, 0, 0]);
        assert!(has_error(&[1, 1, 0, 0, 2, 2, 0, 0]));
        assert!(!has_error(&[1, 1, 0, 0, 2, 2, 0, 1]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe_and_a_request_is_no_longer_than_its_offer(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let _ = Packet::parse(&bytes);
            prop_assert!(request_tags(&bytes).len() <= bytes.len() + ANY_SERVICE.len());
        }
    }
}
