//! Answers to challenges: MD5 (RFC 1994 section 4.1, which EAP takes over in RFC 3748 section 5.4)
//! and MS-CHAPv2 (RFC 2759). They prove little today; switches and concentrators still ask for them.
//!
//! Names of functions are those of RFC 2759 section 8.

use des::Des;
use des::cipher::{BlockEncrypt, KeyInit};
use md4::Md4;
use md5::{Digest, Md5};
use sha1::Sha1;

/// Bytes of an MD5 answer.
pub const MD5_BYTES: usize = 16;
/// Bytes of a challenge of MS-CHAPv2, of either side.
pub const CHALLENGE_BYTES: usize = 16;
/// Bytes of the value that answers a challenge of MS-CHAPv2: the peer's challenge, eight reserved
/// bytes, the NT response and flags (RFC 2759 section 4).
pub const RESPONSE_BYTES: usize = 49;

/// Salts of the authenticator's answer (RFC 2759 section 8.7), without the zero that ends a string.
const MAGIC_1: &[u8] = b"Magic server to client signing constant";
const MAGIC_2: &[u8] = b"Pad to make it do more than one iteration";

/// The answer to a challenge of CHAP with MD5.
#[must_use]
pub fn md5_response(identifier: u8, secret: &[u8], challenge: &[u8]) -> [u8; MD5_BYTES] {
    let hash = Md5::new().chain_update([identifier]);
    hash.chain_update(secret)
        .chain_update(challenge)
        .finalize()
        .into()
}

/// What a peer answers to a challenge of MS-CHAPv2, and what the authenticator must answer then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsChapV2 {
    /// The value of the answer.
    pub value: [u8; RESPONSE_BYTES],
    /// What the authenticator proves with its success message that it knows the password too.
    pub authenticator: [u8; 20],
}

impl MsChapV2 {
    /// The answer to a challenge. A domain before the user's name (`DOMAIN\user`) is not part of
    /// the computation (RFC 2759 section 4).
    #[must_use]
    pub fn answer(
        user: &str,
        password: &str,
        authenticator_challenge: &[u8; CHALLENGE_BYTES],
        peer_challenge: &[u8; CHALLENGE_BYTES],
    ) -> MsChapV2 {
        let user = user.rsplit('\\').next().unwrap_or(user);
        let challenge = challenge_hash(peer_challenge, authenticator_challenge, user);
        let password_hash = nt_password_hash(password);
        let nt_response = challenge_response(&challenge, &password_hash);
        let mut value = [0; RESPONSE_BYTES];
        value[..16].copy_from_slice(peer_challenge);
        value[24..48].copy_from_slice(&nt_response);
        let hash_of_hash = Md4::digest(password_hash);
        let digest = Sha1::new().chain_update(hash_of_hash);
        let digest = digest.chain_update(nt_response).chain_update(MAGIC_1);
        let proof = Sha1::new().chain_update(digest.finalize());
        let proof = proof.chain_update(challenge).chain_update(MAGIC_2);
        MsChapV2 {
            value,
            authenticator: proof.finalize().into(),
        }
    }

    /// Whether a success message, `S=` and forty hexadecimal digits, comes from somebody who knows
    /// the password. What follows the digits is for people.
    #[must_use]
    pub fn proves(authenticator: &[u8; 20], message: &[u8]) -> bool {
        let Some(digits) = message.strip_prefix(b"S=").and_then(|rest| rest.get(..40)) else {
            return false;
        };
        digits.chunks(2).zip(authenticator).all(|(pair, &byte)| {
            let digit = |at: usize| (pair[at] as char).to_digit(16);
            digit(0).zip(digit(1)).map(|(high, low)| high << 4 | low) == Some(u32::from(byte))
        })
    }
}

fn challenge_hash(peer: &[u8; 16], authenticator: &[u8; 16], user: &str) -> [u8; 8] {
    let hash = Sha1::new().chain_update(peer).chain_update(authenticator);
    let [a, b, c, d, e, f, g, h, ..]: [u8; 20] = hash.chain_update(user).finalize().into();
    [a, b, c, d, e, f, g, h]
}

fn nt_password_hash(password: &str) -> [u8; 16] {
    let mut hash = Md4::new();
    for unit in password.encode_utf16() {
        hash.update(unit.to_le_bytes());
    }
    hash.finalize().into()
}

fn challenge_response(challenge: &[u8; 8], password_hash: &[u8; 16]) -> [u8; 24] {
    let mut keys = [0; 21];
    keys[..16].copy_from_slice(password_hash);
    let mut response = [0; 24];
    for (key, block) in keys.chunks_exact(7).zip(response.chunks_exact_mut(8)) {
        let cipher = Des::new(&with_parity_bits(key).into());
        cipher.encrypt_block_b2b(challenge.into(), block.into());
    }
    response
}

/// Seven bytes of a key as the eight of DES, whose lowest bits are for parity; nobody checks it.
fn with_parity_bits(key: &[u8]) -> [u8; 8] {
    let bits = key
        .iter()
        .fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    std::array::from_fn(|at| ((bits >> (49 - 7 * at) & 0x7f) as u8) << 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: String = text.split_whitespace().collect();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    fn array<const N: usize>(text: &str) -> [u8; N] {
        hex(text).try_into().unwrap()
    }

    const AUTHENTICATOR_CHALLENGE: &str = "5B5D7C7D7B3F2F3E3C2C602132262628";
    const PEER_CHALLENGE: &str = "21402324255E262A28295F2B3A337C7E";

    /// RFC 2759 section 9.2.
    #[test]
    fn the_published_vectors_of_ms_chap_v2_hold() {
        let (ours, theirs) = (array(PEER_CHALLENGE), array(AUTHENTICATOR_CHALLENGE));
        assert_eq!(
            challenge_hash(&ours, &theirs, "User"),
            array("D02E4386BCE91226")
        );
        let hash = nt_password_hash("clientPass");
        assert_eq!(hash, array("44EBBA8D5312B8D611474411F56989AE"));
        let hash_of_hash: [u8; 16] = Md4::digest(hash).into();
        assert_eq!(hash_of_hash, array("41C00C584BD2D91C4017A2A12FA59F3F"));
        let nt_response = "82309ECD8D708B5EA08FAA3981CD83544233114A3D85D6DF";
        let answer = MsChapV2::answer("User", "clientPass", &theirs, &ours);
        let value = format!("{PEER_CHALLENGE} 0000000000000000 {nt_response} 00");
        assert_eq!(answer.value, array(&value));
        let proof = "S=407A5589115FD0D6209F510FE9C04566932CDA56";
        assert!(MsChapV2::proves(&answer.authenticator, proof.as_bytes()));
        assert_eq!(
            answer,
            MsChapV2::answer("BIG\\User", "clientPass", &theirs, &ours)
        );
    }

    /// RFC 2759 section 9.3: keys of DES with their parity bits.
    #[test]
    fn the_published_keys_of_des_hold_but_for_parity() {
        for (raw, key) in [
            ("FC156AF7EDCD6C", "FD0B5B5E7F6E34D9"),
            ("0EDDE3337D427F", "0E6E796737EA08FE"),
        ] {
            let expected: [u8; 8] = array(key);
            assert_eq!(
                with_parity_bits(&hex(raw)),
                expected.map(|byte| byte & 0xfe)
            );
        }
    }

    #[test]
    fn a_wrong_proof_is_none() {
        let proof = [0x5a; 20];
        let right = format!("S={} M=OK", "5A".repeat(20));
        assert!(MsChapV2::proves(&proof, right.as_bytes()));
        assert!(MsChapV2::proves(
            &proof,
            right.to_lowercase().replacen("s=", "S=", 1).as_bytes()
        ));
        for at in 0..42 {
            let mut wrong = right.clone().into_bytes();
            wrong[at] = b'x';
            assert!(!MsChapV2::proves(&proof, &wrong), "{at}");
            assert!(!MsChapV2::proves(&proof, &right.as_bytes()[..at]), "{at}");
        }
    }

    /// Observed of an authenticator that accepted it.
    #[test]
    fn md5_takes_identifier_secret_and_challenge() {
        let challenge = hex("a1501e8bb2701d3d9b535594993f67a7");
        assert_eq!(
            md5_response(0, b"432768ec1d", &challenge),
            array("201089abdf8683ab52f37ee9eb0ab68e")
        );
    }
}
