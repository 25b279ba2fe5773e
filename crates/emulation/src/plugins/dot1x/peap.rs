//! What is said inside PEAP of version 0 (draft-kamath-pppext-peapv0): EAP with MS-CHAPv2, whose
//! packets have no header but the type, and at the end what came of it, whose packet has one.

use super::eap::{Answer, Message, method};
use super::mschapv2::{self, Step};
use super::phase2::{Heard, Login};

/// The type of EAP that has the result, and other TLVs (draft-kamath-pppext-peapv0 section 2.3).
const EXTENSIONS: u8 = 33;
const RESULT_TLV: u16 = 3;
/// The bits of a TLV's type that are its number; the others are flags.
const TLV_TYPE: u16 = 0x3fff;
const SUCCESS: u16 = 1;
const FAILURE: u16 = 2;

const CODE_REQUEST: u8 = 1;
const CODE_RESPONSE: u8 = 2;
/// Bytes of a header of EAP, and of those of EAPOL and EAP that [`Message::emit`] writes.
const HEADER_BYTES: usize = 4;
const OUTER_BYTES: usize = 8;

/// A run inside the tunnel.
#[derive(Clone, Debug, Default)]
pub(super) struct Peap {
    mschapv2: mschapv2::Peer,
    is_accepted: bool,
}

/// A request without its header, and the identifier of the one that it had.
fn without_header(bytes: &[u8]) -> (&[u8], u8) {
    // Servers send the header with a request of the name too.
    if let [CODE_REQUEST, identifier, high, low, kind, ..] = *bytes {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let has_one = [EXTENSIONS, method::IDENTITY].contains(&kind) && length == bytes.len();
        if has_one {
            return (&bytes[HEADER_BYTES..], identifier);
        }
    }
    (bytes, 0)
}

/// The value of the result among TLVs; others are passed over.
fn result(mut tlvs: &[u8]) -> Option<u16> {
    while let Some((header, rest)) = tlvs.split_first_chunk::<4>() {
        let [kind_high, kind_low, high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let value = rest.get(..length)?;
        if u16::from_be_bytes([kind_high, kind_low]) & TLV_TYPE == RESULT_TLV {
            return Some(u16::from_be_bytes(value.try_into().ok()?));
        }
        tlvs = &rest[length..];
    }
    None
}

impl Peap {
    /// Takes a request, and puts what answers it behind `reply`.
    pub(super) fn handle_request(
        &mut self,
        bytes: &[u8],
        login: &Login<'_>,
        reply: &mut Vec<u8>,
    ) -> Heard {
        let (request, identifier) = without_header(bytes);
        let Some((&kind, data)) = request.split_first() else {
            return Heard::Unreadable;
        };
        let (answer, heard) = match kind {
            method::IDENTITY => (Answer::Identity, Heard::Open),
            method::NOTIFICATION => (Answer::Notification, Heard::Open),
            method::MSCHAPV2 => {
                let names = (login.user, login.password);
                let step = self
                    .mschapv2
                    .handle_request(data, names, || login.challenge);
                self.is_accepted |= step == Step::Accepted;
                let heard = match step {
                    Step::NotProven => Heard::NotProven,
                    Step::WrongLength | Step::UnknownOperation => Heard::Unreadable,
                    // What came of it is said once more, with the result.
                    Step::Answered(..) | Step::Accepted | Step::Refused => Heard::Open,
                };
                match step.answer() {
                    Some(answer) => (answer, heard),
                    None => return heard,
                }
            }
            EXTENSIONS => return self.end(data, identifier, reply),
            _ => (
                Answer::Nak([method::MSCHAPV2].into_iter().collect()),
                Heard::Open,
            ),
        };
        let message = Message::Response { identifier, answer };
        let mut packet = vec![0; message.buffer_len(login.user)];
        message.emit(0, login.user, &mut packet);
        reply.extend_from_slice(&packet[OUTER_BYTES..]);
        heard
    }

    /// Confirms the result: only what was proven is a success.
    fn end(&mut self, tlvs: &[u8], identifier: u8, reply: &mut Vec<u8>) -> Heard {
        let Some(result) = result(tlvs) else {
            return Heard::Unreadable;
        };
        let passed = result == SUCCESS && self.is_accepted;
        let [high, low] = if passed { SUCCESS } else { FAILURE }.to_be_bytes();
        let [kind_high, kind_low] = (0x8000 | RESULT_TLV).to_be_bytes();
        let header = [CODE_RESPONSE, identifier, 0, 11, EXTENSIONS];
        reply.extend_from_slice(&header);
        reply.extend_from_slice(&[kind_high, kind_low, 0, 2, high, low]);
        match (passed, result) {
            (true, _) => Heard::Passed,
            (false, SUCCESS) => Heard::NotProven,
            (false, _) => Heard::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase2::tests::LOGIN;
    use super::*;

    fn ask(peap: &mut Peap, bytes: &[u8]) -> (Heard, Vec<u8>) {
        let mut reply = Vec::new();
        let heard = peap.handle_request(bytes, &LOGIN, &mut reply);
        (heard, reply)
    }

    const SUCCEEDED: &[u8] = &[1, 9, 0, 11, 33, 0x80, 3, 0, 2, 0, 1];
    const REFUSED: &[u8] = &[2, 9, 0, 11, 33, 0x80, 3, 0, 2, 0, 2];

    #[test]
    fn the_name_is_said_with_and_without_header() {
        let expected = (Heard::Open, b"\x01alice".to_vec());
        assert_eq!(ask(&mut Peap::default(), &[1]), expected);
        assert_eq!(ask(&mut Peap::default(), &[1, 7, 0, 5, 1]), expected);
    }

    #[test]
    fn a_success_that_nobody_worked_for_is_none() {
        let mut peap = Peap::default();
        let refused = (Heard::NotProven, REFUSED.to_vec());
        assert_eq!(ask(&mut peap, SUCCEEDED), refused);
        // A proof before the challenge is none either.
        let success = [&[26, 3, 0, 0, 46][..], b"S=", &[b'0'; 40]].concat();
        let (heard, reply) = ask(&mut peap, &success);
        assert_eq!((heard, reply.len()), (Heard::NotProven, 0));
        assert_eq!(ask(&mut peap, SUCCEEDED), refused);
    }

    #[test]
    fn a_refusal_is_confirmed_and_other_methods_are_not_wanted() {
        let mut peap = Peap::default();
        let tlvs = [1, 9, 0, 16, 33, 0, 7, 0, 1, 5, 0x80, 3, 0, 2, 0, 2];
        let refused = (Heard::Refused, REFUSED.to_vec());
        assert_eq!(ask(&mut peap, &tlvs), refused);
        assert_eq!(ask(&mut peap, &[4, 16]), (Heard::Open, vec![3, 26]));
    }

    #[test]
    fn what_cannot_be_read_has_no_answer() {
        for bytes in [
            &[][..],
            &[33],
            &[1, 9, 0, 10, 33, 0x80, 3, 0, 9, 0],
            &[1, 9, 0, 10, 33, 0x80, 3, 0, 1, 0],
            &[26, 1, 0],
            &[26, 9, 0, 0, 4],
        ] {
            let (heard, reply) = ask(&mut Peap::default(), bytes);
            assert_eq!((heard, reply), (Heard::Unreadable, vec![]), "{bytes:?}");
        }
    }
}
