//! MS-CHAPv2 in EAP (draft-kamath-pppext-eap-mschapv2), on a wire of its own or inside PEAP.

use super::eap::{self, Answer, operation};
use crate::chap::{CHALLENGE_BYTES, MsChapV2};

/// The peer's side of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// What the authenticator must prove; `None` before its challenge.
    proof: Option<[u8; 20]>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The challenge was answered.
    Answered([u8; 49], u8),
    /// The authenticator accepts, and has proven that it knows the password too.
    Accepted,
    /// It refuses; the reason is in a text for people.
    Refused,
    /// It accepts, but its proof is wrong.
    NotProven,
    /// Lengths do not fit one another.
    WrongLength,
    /// An operation that no authenticator asks for.
    UnknownOperation,
}

impl Step {
    /// The answer, if there is one.
    pub(super) fn answer(self) -> Option<Answer> {
        match self {
            Step::Answered(value, identifier) => Some(Answer::MsChapV2(identifier, value)),
            Step::Accepted => Some(Answer::MsChapV2End(operation::SUCCESS)),
            Step::Refused => Some(Answer::MsChapV2End(operation::FAILURE)),
            Step::NotProven | Step::WrongLength | Step::UnknownOperation => None,
        }
    }
}

impl Peer {
    /// Takes what follows the type of a request. `peer_challenge` gives random bytes.
    pub(super) fn handle_request(
        &mut self,
        data: &[u8],
        (user, password): (&str, &str),
        peer_challenge: impl FnOnce() -> [u8; CHALLENGE_BYTES],
    ) -> Step {
        let Some((operation, identifier, rest)) = eap::mschapv2(data) else {
            return Step::WrongLength;
        };
        match operation {
            operation::CHALLENGE => {
                let Some(challenge) = eap::mschapv2_challenge(rest) else {
                    return Step::WrongLength;
                };
                let answer = MsChapV2::answer(user, password, challenge, &peer_challenge());
                self.proof = Some(answer.authenticator);
                Step::Answered(answer.value, identifier)
            }
            operation::SUCCESS => {
                let proof = self.proof;
                match proof.is_some_and(|proof| MsChapV2::proves(&proof, rest)) {
                    true => Step::Accepted,
                    false => Step::NotProven,
                }
            }
            operation::FAILURE => Step::Refused,
            _ => Step::UnknownOperation,
        }
    }
}
