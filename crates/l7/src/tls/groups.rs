//! Groups that keys are exchanged over: those of the library, and the hybrid one with ML-KEM, which its
//! provider lacks.

use ml_kem::kem::{Decapsulate, FromSeed, KeyExport};
use ml_kem::{B32, Ciphertext, EncapsulationKey, Key, MlKem768, Seed};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup,
};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// Bytes of an encapsulation key of ML-KEM-768, and of a ciphertext (FIPS 203 table 3).
const KEY_BYTES: usize = 1184;
const CIPHERTEXT_BYTES: usize = 1088;
/// Bytes of what X25519 says.
const X25519_BYTES: usize = 32;

/// All groups there are, the one that is preferred first, with the names of IANA.
pub(super) const GROUPS: [(&str, &dyn SupportedKxGroup); 4] = [
    ("X25519", X25519),
    ("secp256r1", SECP256R1),
    ("secp384r1", SECP384R1),
    ("X25519MLKEM768", &X25519MlKem768),
];

/// ML-KEM-768 and X25519 together (draft-ietf-tls-ecdhe-mlkem), for TLS 1.3: safe while one of them is.
///
/// In shares and in the secret ML-KEM comes first.
#[derive(Debug)]
struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let x25519 = X25519.start()?;
        let (key, to_peer) = MlKem768::from_seed(&random::<Seed>()?);
        let share = [&to_peer.to_bytes()[..], x25519.pub_key()].concat();
        Ok(Box::new(Exchange { x25519, key, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, x25519) = split(share, KEY_BYTES)?;
        let key = Key::<EncapsulationKey<MlKem768>>::try_from(key).map_err(|_| invalid_share())?;
        let key = EncapsulationKey::<MlKem768>::new(&key).map_err(|_| invalid_share())?;
        let x25519 = X25519.start_and_complete(x25519)?;
        let (ciphertext, secret) = key.encapsulate_deterministic(&random::<B32>()?);
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &x25519.pub_key].concat(),
            secret: together(&secret, &x25519.secret),
        })
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// The client's side of an exchange over both.
struct Exchange {
    x25519: Box<dyn ActiveKeyExchange>,
    key: ml_kem::DecapsulationKey<MlKem768>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, x25519) = split(share, CIPHERTEXT_BYTES)?;
        let ciphertext =
            Ciphertext::<MlKem768>::try_from(ciphertext).map_err(|_| invalid_share())?;
        let x25519 = self.x25519.complete(x25519)?;
        Ok(together(&self.key.decapsulate(&ciphertext), &x25519))
    }

    /// Servers without ML-KEM take X25519 alone, without another round trip.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.x25519.group(), self.x25519.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.x25519.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// Random bytes of the system.
fn random<T: Default + AsMut<[u8]>>() -> Result<T, Error> {
    let mut bytes = T::default();
    let filled = SystemRandom::new().fill(bytes.as_mut());
    filled.map_err(|_| GetRandomFailed)?;
    Ok(bytes)
}

/// The shares of ML-KEM, which has so many bytes, and of X25519.
fn split(share: &[u8], ml_kem_bytes: usize) -> Result<(&[u8], &[u8]), Error> {
    match share.len() == ml_kem_bytes + X25519_BYTES {
        true => Ok(share.split_at(ml_kem_bytes)),
        false => Err(invalid_share()),
    }
}

fn invalid_share() -> Error {
    PeerMisbehaved::InvalidKeyShare.into()
}

fn together(ml_kem: &[u8], x25519: &SharedSecret) -> SharedSecret {
    SharedSecret::from([ml_kem, x25519.secret_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<SharedSecret, Error>) -> bool {
        matches!(result, Err(error) if error == invalid_share())
    }

    #[test]
    fn both_ends_have_the_same_secret_and_the_share_has_its_lengths() {
        let client = X25519MlKem768.start().expect("random numbers");
        assert_eq!(client.pub_key().len(), 1216);
        let server = X25519MlKem768
            .start_and_complete(client.pub_key())
            .expect("a share of ours");
        assert_eq!(server.pub_key.len(), 1120);
        let secret = client.complete(&server.pub_key).expect("an answer of ours");
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(secret.secret_bytes().len(), 64);
    }

    #[test]
    fn shares_of_another_length_are_refused_on_both_sides() {
        for bytes in [0, 1, 32, 1119, 1121, 1215, 1217] {
            let share = vec![9; bytes];
            let server = X25519MlKem768.start_and_complete(&share);
            assert!(refused(server.map(|done| done.secret)), "{bytes} bytes");
            let client = X25519MlKem768.start().expect("random numbers");
            assert!(refused(client.complete(&share)), "{bytes} bytes");
        }
    }

    #[test]
    fn a_key_with_coefficients_out_of_range_is_refused() {
        // FIPS 203 section 7.2: 0xfff is above the modulus.
        let server = X25519MlKem768.start_and_complete(&[0xff; 1216]);
        assert!(refused(server.map(|done| done.secret)));
    }

    #[test]
    fn a_server_without_ml_kem_takes_the_part_of_x25519() {
        let client = X25519MlKem768.start().expect("random numbers");
        let (group, share) = client.hybrid_component().expect("it has two parts");
        assert_eq!(group, NamedGroup::X25519);
        let server = X25519.start_and_complete(share).expect("a share of X25519");
        let secret = client.complete_hybrid_component(&server.pub_key);
        let secret = secret.expect("an answer of X25519");
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }
}
