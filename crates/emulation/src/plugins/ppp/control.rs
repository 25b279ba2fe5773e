//! Packets of the control protocols of PPP (RFC 1661 section 5), their options, and what LCP and
//! IPCP answer to the options of a peer.

use std::net::Ipv4Addr;

use super::pppoe::MRU;

/// Bytes of the header: code, identifier, length.
pub(super) const HEADER_BYTES: usize = 4;

/// What a packet says. PAP (RFC 1334) and CHAP (RFC 1994) have the same header and other codes.
pub(super) mod code {
    pub(in super::super) const CONFIGURE_REQUEST: u8 = 1;
    pub(in super::super) const CONFIGURE_ACK: u8 = 2;
    pub(in super::super) const CONFIGURE_NAK: u8 = 3;
    pub(in super::super) const CONFIGURE_REJECT: u8 = 4;
    pub(in super::super) const TERMINATE_REQUEST: u8 = 5;
    pub(in super::super) const TERMINATE_ACK: u8 = 6;
    pub(in super::super) const CODE_REJECT: u8 = 7;
    pub(in super::super) const PROTOCOL_REJECT: u8 = 8;
    pub(in super::super) const ECHO_REQUEST: u8 = 9;
    pub(in super::super) const ECHO_REPLY: u8 = 10;
    pub(in super::super) const DISCARD_REQUEST: u8 = 11;
}

/// Types of options.
mod option {
    pub(super) const MRU: u8 = 1;
    pub(super) const AUTHENTICATION: u8 = 3;
    pub(super) const MAGIC: u8 = 5;
    /// Of IPCP (RFC 1332 section 3.3).
    pub(super) const ADDRESS: u8 = 3;
}

/// A packet of a control protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'f> {
    pub(super) code: u8,
    pub(super) identifier: u8,
    pub(super) data: &'f [u8],
}

impl<'f> Packet<'f> {
    /// Reads what follows the protocol; `None` when the lengths are wrong. Padding is cut.
    pub(super) fn parse(bytes: &'f [u8]) -> Option<Packet<'f>> {
        let [code, identifier, high, low] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        Some(Packet {
            code,
            identifier,
            data: bytes.get(HEADER_BYTES..length)?,
        })
    }

    /// Writes the packet over all of `bytes`.
    ///
    /// # Panics
    /// When there is another number of bytes than the packet has.
    pub(super) fn emit(&self, bytes: &mut [u8]) {
        let [high, low] = (bytes.len() as u16).to_be_bytes();
        bytes[..HEADER_BYTES].copy_from_slice(&[self.code, self.identifier, high, low]);
        bytes[HEADER_BYTES..].copy_from_slice(self.data);
    }
}

/// Options: type, and all bytes of the option with its header. The last is `None` when they do not
/// fill the bytes.
fn options(bytes: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let &kind = rest.first()?;
        let length = rest.get(1).map_or(0, |&length| usize::from(length));
        let whole = rest.get(..length).filter(|_| length >= 2);
        rest = whole.map_or(&[], |whole| &rest[whole.len()..]);
        Some(whole.map(|whole| (kind, whole)))
    })
}

/// The protocol by which a peer wants to be told who we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Authentication {
    /// By none.
    #[default]
    None,
    /// Name and password in the open.
    Pap,
    /// A challenge answered with MD5.
    ChapMd5,
    /// One answered with MS-CHAPv2.
    MsChapV2,
}

impl Authentication {
    /// The option that asks for CHAP with MD5, for a peer that asks for what we do not speak.
    const CHAP_MD5: [u8; 5] = [option::AUTHENTICATION, 5, 0xc2, 0x23, 5];

    fn parse(option: &[u8]) -> Option<Authentication> {
        match option[2..] {
            [0xc0, 0x23] => Some(Authentication::Pap),
            [0xc2, 0x23, 5] => Some(Authentication::ChapMd5),
            [0xc2, 0x23, 0x81] => Some(Authentication::MsChapV2),
            _ => None,
        }
    }
}

/// What to answer to a Configure-Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The code of the answer: Ack, Nak or Reject.
    pub(super) code: u8,
    /// Its options; those of the request for an Ack.
    pub(super) options: Vec<u8>,
}

/// Sorts the options of a request: `judge` says what is better, or that an option is not known.
fn judge_all(request: &[u8], mut judge: impl FnMut(u8, &[u8]) -> Judgement) -> Option<Verdict> {
    let (mut naks, mut rejects) = (Vec::new(), Vec::new());
    for option in options(request) {
        let (kind, bytes) = option?;
        match judge(kind, bytes) {
            Judgement::Fine => {}
            // One of a kind, so that an answer fits in a frame whatever the request repeats.
            Judgement::Better(_) if options(&naks).flatten().any(|(known, _)| known == kind) => {}
            Judgement::Better(better) => naks.extend_from_slice(&better),
            Judgement::Unknown => rejects.extend_from_slice(bytes),
        }
    }
    // RFC 1661 section 5.4: a Reject comes before a Nak.
    let (code, options) = match (rejects.is_empty(), naks.is_empty()) {
        (false, _) => (code::CONFIGURE_REJECT, rejects),
        (true, false) => (code::CONFIGURE_NAK, naks),
        (true, true) => (code::CONFIGURE_ACK, request.to_vec()),
    };
    Some(Verdict { code, options })
}

enum Judgement {
    Fine,
    Better(Vec<u8>),
    Unknown,
}

/// Judges a peer's LCP request. `ours` is our magic number, by which a looped link is seen (section
/// 6.4), `other` one to use instead. Returns the protocol of authentication that it asks for.
pub(super) fn judge_lcp(
    request: &[u8],
    ours: u32,
    other: u32,
) -> Option<(Verdict, Authentication)> {
    let mut authentication = Authentication::None;
    let verdict = judge_all(request, |kind, bytes| match (kind, &bytes[2..]) {
        (option::MRU, &[high, low]) if u16::from_be_bytes([high, low]) > MRU => {
            let [high, low] = MRU.to_be_bytes();
            Judgement::Better(vec![option::MRU, 4, high, low])
        }
        (option::MAGIC, value) if value == ours.to_be_bytes() => {
            Judgement::Better([&[option::MAGIC, 6][..], &other.to_be_bytes()].concat())
        }
        (option::MRU, [_, _]) | (option::MAGIC, [_, _, _, _]) => Judgement::Fine,
        (option::AUTHENTICATION, _) => match Authentication::parse(bytes) {
            Some(wanted) => {
                authentication = wanted;
                Judgement::Fine
            }
            None => Judgement::Better(Authentication::CHAP_MD5.to_vec()),
        },
        _ => Judgement::Unknown,
    })?;
    Some((verdict, authentication))
}

/// Judges a peer's IPCP request: its address may be any; it gets none from us.
pub(super) fn judge_ipcp(request: &[u8]) -> Option<Verdict> {
    judge_all(request, |kind, bytes| match (kind, &bytes[2..]) {
        (option::ADDRESS, value) if value.len() == 4 && value != [0; 4] => Judgement::Fine,
        _ => Judgement::Unknown,
    })
}

/// What we ask of a peer with LCP; `None` once it rejected that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LcpRequest {
    pub(super) mru: Option<u16>,
    pub(super) magic: Option<u32>,
}

impl LcpRequest {
    /// Its options.
    pub(super) fn options(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(mru) = self.mru {
            bytes.extend_from_slice(&[option::MRU, 4]);
            bytes.extend_from_slice(&mru.to_be_bytes());
        }
        if let Some(magic) = self.magic {
            bytes.extend_from_slice(&[option::MAGIC, 6]);
            bytes.extend_from_slice(&magic.to_be_bytes());
        }
        bytes
    }

    /// Takes what a peer likes better; a new magic number is ours to choose.
    pub(super) fn take_nak(&mut self, nak: &[u8], magic: u32) {
        for (kind, bytes) in options(nak).flatten() {
            match (kind, &bytes[2..]) {
                (option::MRU, &[high, low]) if self.mru.is_some() => {
                    self.mru = Some(u16::from_be_bytes([high, low]).min(MRU));
                }
                (option::MAGIC, _) if self.magic.is_some() => self.magic = Some(magic),
                _ => {}
            }
        }
    }

    /// Leaves out what a peer does not know.
    pub(super) fn take_reject(&mut self, reject: &[u8]) {
        for (kind, _) in options(reject).flatten() {
            match kind {
                option::MRU => self.mru = None,
                option::MAGIC => self.magic = None,
                _ => {}
            }
        }
    }
}

/// The option of IPCP that asks for an address.
pub(super) fn address_option(address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [option::ADDRESS, 6, a, b, c, d]
}

/// The address in options of IPCP.
pub(super) fn address_in(bytes: &[u8]) -> Option<Ipv4Addr> {
    options(bytes).flatten().find_map(|(kind, bytes)| {
        let octets: [u8; 4] = bytes[2..].try_into().ok()?;
        (kind == option::ADDRESS).then(|| Ipv4Addr::from(octets))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAGIC: u32 = 0x1122_3344;
    const OTHER: u32 = 0x5566_7788;

    fn lcp(request: &[u8]) -> (u8, Vec<u8>, Authentication) {
        let (verdict, authentication) = judge_lcp(request, MAGIC, OTHER).unwrap();
        (verdict.code, verdict.options, authentication)
    }

    #[test]
    fn what_is_fine_is_acknowledged_as_it_came() {
        let pap = [
            1, 4, 5, 0xd4, 5, 6, 0xaa, 0xbb, 0xcc, 0xdd, 3, 4, 0xc0, 0x23,
        ];
        let expected = (code::CONFIGURE_ACK, pap.to_vec(), Authentication::Pap);
        assert_eq!(lcp(&pap), expected);
        for (algorithm, wanted) in [
            (5, Authentication::ChapMd5),
            (0x81, Authentication::MsChapV2),
        ] {
            let chap = [3, 5, 0xc2, 0x23, algorithm];
            assert_eq!(lcp(&chap), (code::CONFIGURE_ACK, chap.to_vec(), wanted));
        }
        assert_eq!(lcp(&[]).0, code::CONFIGURE_ACK);
    }

    #[test]
    fn what_could_be_better_is_said_and_what_is_unknown_comes_back() {
        let looped = [
            1, 4, 0x10, 0, 5, 6, 0x11, 0x22, 0x33, 0x44, 3, 4, 0xc2, 0x27,
        ];
        let better = [
            1, 4, 5, 0xd4, 5, 6, 0x55, 0x66, 0x77, 0x88, 3, 5, 0xc2, 0x23, 5,
        ];
        let expected = (code::CONFIGURE_NAK, better.to_vec(), Authentication::None);
        assert_eq!(lcp(&looped), expected);
        let (code, options, _) = lcp(&[&looped[..], &[2, 6, 0, 0, 0, 0, 7, 2]].concat());
        assert_eq!(code, code::CONFIGURE_REJECT);
        assert_eq!(options, [2, 6, 0, 0, 0, 0, 7, 2]);
        for request in [&[1][..], &[1, 1], &[1, 4, 0], &[3, 0]] {
            assert_eq!(judge_lcp(request, MAGIC, OTHER), None, "{request:?}");
        }
    }

    #[test]
    fn a_peer_says_its_address_and_nothing_else() {
        let address = address_option(Ipv4Addr::new(10, 0, 0, 254));
        let judge = |request: &[u8]| judge_ipcp(request).unwrap().code;
        assert_eq!(judge(&address), code::CONFIGURE_ACK);
        assert_eq!(
            judge(&address_option(Ipv4Addr::UNSPECIFIED)),
            code::CONFIGURE_REJECT
        );
        assert_eq!(judge(&[2, 6, 0, 0x2d, 15, 0]), code::CONFIGURE_REJECT);
        assert_eq!(address_in(&address), Some(Ipv4Addr::new(10, 0, 0, 254)));
        assert_eq!(address_in(&[3, 5, 1, 2, 3]), None);
    }

    #[test]
    fn a_request_follows_what_the_peer_says() {
        let mut request = LcpRequest {
            mru: Some(MRU),
            magic: Some(MAGIC),
        };
        assert_eq!(
            request.options(),
            [1, 4, 5, 0xd4, 5, 6, 0x11, 0x22, 0x33, 0x44]
        );
        request.take_nak(&[1, 4, 0x05, 0x00, 5, 6, 0, 0, 0, 0], OTHER);
        assert_eq!(
            request.options(),
            [1, 4, 5, 0, 5, 6, 0x55, 0x66, 0x77, 0x88]
        );
        request.take_reject(&[5, 2]);
        assert_eq!(request.options(), [1, 4, 5, 0]);
        request.take_reject(&[1, 2]);
        assert!(request.options().is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe_and_answers_are_no_longer_than_what_they_answer(
            bytes in prop::collection::vec(any::<u8>(), 0..48),
        ) {
            if let Some(packet) = Packet::parse(&bytes) {
                let mut again = vec![0; HEADER_BYTES + packet.data.len()];
                packet.emit(&mut again);
                prop_assert_eq!(Packet::parse(&again), Some(packet));
            }
            let verdicts = [
                judge_lcp(&bytes, MAGIC, OTHER).map(|(verdict, _)| verdict),
                judge_ipcp(&bytes),
            ];
            for verdict in verdicts.into_iter().flatten() {
                prop_assert!(verdict.options.len() <= bytes.len().max(4 + 5 + 6));
            }
            let mut request = LcpRequest { mru: Some(MRU), magic: Some(MAGIC) };
            request.take_nak(&bytes, OTHER);
            request.take_reject(&bytes);
            prop_assert!(request.mru.is_none_or(|mru| mru <= MRU));
        }
    }
}
