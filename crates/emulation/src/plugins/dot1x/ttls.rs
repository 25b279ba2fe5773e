//! What is said inside EAP-TTLS (RFC 5281): AVPs, as RADIUS has them but longer, with the password
//! or with MS-CHAPv2. The client speaks first.

use super::phase2::{Heard, Login};
use crate::chap::MsChapV2;

/// Numbers of AVPs; those of Microsoft are in RFC 2548.
const USER_NAME: u32 = 1;
const USER_PASSWORD: u32 = 2;
const MICROSOFT: u32 = 311;
const MS_CHAP_ERROR: u32 = 2;
const MS_CHAP_CHALLENGE: u32 = 11;
const MS_CHAP2_RESPONSE: u32 = 25;
const MS_CHAP2_SUCCESS: u32 = 26;

const HAS_VENDOR: u8 = 0x80;
const MANDATORY: u8 = 0x40;
/// Bytes to whose multiple a password is filled up (RFC 5281 section 11.2.5).
const PASSWORD_BLOCK: usize = 16;

/// The label and the bytes of the challenge that both ends derive (RFC 5281 section 11.1; RFC 9427
/// section 2.3 for TLS 1.3): sixteen of it, and an identifier.
pub(super) const CHALLENGE_LABEL: &[u8] = b"ttls challenge";
pub(super) const CHALLENGE_BYTES: usize = 17;

/// How the user proves who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Inner {
    /// The password itself.
    Pap,
    /// MS-CHAPv2.
    #[default]
    MsChapV2,
}

/// A run inside the tunnel.
#[derive(Clone, Debug, Default)]
pub(super) struct Ttls {
    /// What the server must prove, with which identifier; `None` before it was named, and for PAP.
    proof: Option<(u8, [u8; 20])>,
}

/// Appends an AVP, filled up to a multiple of four bytes.
fn put_avp(bytes: &mut Vec<u8>, vendor: Option<u32>, code: u32, pieces: &[&[u8]]) {
    let vendor = vendor.map(u32::to_be_bytes);
    let vendor: &[u8] = vendor.as_ref().map_or(&[], |vendor| vendor);
    let data: usize = pieces.iter().map(|piece| piece.len()).sum();
    let length = 8 + vendor.len() + data;
    let flags = if vendor.is_empty() { 0 } else { HAS_VENDOR };
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    bytes.extend_from_slice(&code.to_be_bytes());
    bytes.extend_from_slice(&[flags | MANDATORY, high, middle, low]);
    bytes.extend_from_slice(vendor);
    pieces
        .iter()
        .for_each(|piece| bytes.extend_from_slice(piece));
    bytes.resize(bytes.len() + length.next_multiple_of(4) - length, 0);
}

/// The first AVP: vendor (0 for none), code, data, and what follows it.
fn split_avp(bytes: &[u8]) -> Option<(u32, u32, &[u8], &[u8])> {
    let (code, rest) = bytes.split_first_chunk()?;
    let &[flags, high, middle, low] = rest.first_chunk()?;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    let avp = bytes.get(..length)?;
    let (vendor, data) = match flags & HAS_VENDOR {
        0 => (0, avp.get(8..)?),
        _ => {
            let (vendor, data) = avp.get(8..)?.split_first_chunk()?;
            (u32::from_be_bytes(*vendor), data)
        }
    };
    // The last one of a message may come without filling.
    let next = length.next_multiple_of(4).min(bytes.len());
    Some((vendor, u32::from_be_bytes(*code), data, &bytes[next..]))
}

impl Ttls {
    /// Says who the user is. `challenge` is what both ends derived from the session.
    pub(super) fn name(
        &mut self,
        inner: Inner,
        login: &Login<'_>,
        challenge: &[u8; CHALLENGE_BYTES],
        reply: &mut Vec<u8>,
    ) {
        put_avp(reply, None, USER_NAME, &[login.user.as_bytes()]);
        if inner == Inner::Pap {
            let password = login.password.as_bytes();
            let filled = password.len().next_multiple_of(PASSWORD_BLOCK);
            let zeros = &[0; PASSWORD_BLOCK][..filled - password.len()];
            put_avp(reply, None, USER_PASSWORD, &[password, zeros]);
            return;
        }
        let &[ref challenge @ .., identifier] = challenge;
        let answer = MsChapV2::answer(login.user, login.password, challenge, &login.challenge);
        let microsoft = Some(MICROSOFT);
        put_avp(reply, microsoft, MS_CHAP_CHALLENGE, &[challenge]);
        // Flags are before the value here, and behind it on other wires (RFC 2548 section 2.3.2).
        let value = &answer.value[..48];
        put_avp(
            reply,
            microsoft,
            MS_CHAP2_RESPONSE,
            &[&[identifier, 0], value],
        );
        self.proof = Some((identifier, answer.authenticator));
    }

    /// Takes what the server says.
    pub(super) fn handle_avps(&mut self, mut bytes: &[u8]) -> Heard {
        let mut heard = Heard::Unreadable;
        while !bytes.is_empty() {
            let Some((vendor, code, data, rest)) = split_avp(bytes) else {
                return Heard::Unreadable;
            };
            match (vendor, code) {
                (MICROSOFT, MS_CHAP2_SUCCESS) => heard = self.check(data),
                (MICROSOFT, MS_CHAP_ERROR) => return Heard::Refused,
                _ => {}
            }
            bytes = rest;
        }
        heard
    }

    fn check(&self, data: &[u8]) -> Heard {
        let proven = self.proof.is_some_and(|(ours, proof)| {
            let message = data.split_first().filter(|(theirs, _)| **theirs == ours);
            message.is_some_and(|(_, message)| MsChapV2::proves(&proof, message))
        });
        if proven {
            Heard::Passed
        } else {
            Heard::NotProven
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase2::tests::LOGIN;
    use super::*;
    use proptest::prelude::*;

    const CHALLENGE: &[u8; CHALLENGE_BYTES] = b"0123456789abcdef\x07";

    fn avps(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some((vendor, code, data, rest)) = split_avp(bytes) {
            all.push((vendor, code, data.to_vec()));
            bytes = rest;
        }
        assert_eq!(bytes, b"");
        all
    }

    #[test]
    fn pap_has_the_name_and_the_filled_password() {
        let mut said = Vec::new();
        Ttls::default().name(Inner::Pap, &LOGIN, CHALLENGE, &mut said);
        assert_eq!(said.len() % 4, 0);
        assert_eq!(said[..8], [0, 0, 0, 1, 0x40, 0, 0, 13]);
        let password = b"secret\0\0\0\0\0\0\0\0\0\0".to_vec();
        let expected = [(0, 1, b"alice".to_vec()), (0, 2, password)];
        assert_eq!(avps(&said), expected);
    }

    #[test]
    fn only_who_knows_the_password_passes() {
        let mut ttls = Ttls::default();
        let mut said = Vec::new();
        ttls.name(Inner::MsChapV2, &LOGIN, CHALLENGE, &mut said);
        let named = avps(&said);
        assert_eq!(named[1], (311, 11, CHALLENGE[..16].to_vec()));
        let (_, code, response) = &named[2];
        assert_eq!(
            (*code, response.len(), &response[..2]),
            (25, 50, &[7, 0][..])
        );
        assert_eq!(response[2..18], LOGIN.challenge);
        let challenge: &[u8; 16] = CHALLENGE.first_chunk().unwrap();
        let right = MsChapV2::answer("alice", "secret", challenge, &LOGIN.challenge);
        let proof = right
            .authenticator
            .map(|byte| format!("{byte:02X}"))
            .concat();
        let success = |identifier: u8, proof: &str| {
            let mut bytes = Vec::new();
            put_avp(&mut bytes, None, 18, &[b"Welcome"]);
            let text = format!("S={proof}");
            let pieces: [&[u8]; 2] = [&[identifier], text.as_bytes()];
            put_avp(&mut bytes, Some(311), 26, &pieces);
            bytes
        };
        assert_eq!(ttls.handle_avps(&success(7, &proof)), Heard::Passed);
        assert_eq!(ttls.handle_avps(&success(8, &proof)), Heard::NotProven);
        let wrong = "0".repeat(40);
        assert_eq!(ttls.handle_avps(&success(7, &wrong)), Heard::NotProven);
        let mut refusal = Vec::new();
        put_avp(&mut refusal, Some(311), 2, &[b"\x07E=691 R=0"]);
        assert_eq!(ttls.handle_avps(&refusal), Heard::Refused);
        let early = Ttls::default().handle_avps(&success(7, &proof));
        assert_eq!(early, Heard::NotProven);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_none_pass(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            prop_assert_ne!(Ttls::default().handle_avps(&bytes), Heard::Passed);
        }
    }
}
