//! The states of a supplicant: what it answers to an authenticator, and when it asks to begin.
//!
//! States and their numbers are the reference's, which are coarser than those of IEEE 802.1X
//! section 8. What it hears of later versions of EAPOL changes the version it speaks.

use allosaur_engine::time::Nanos;

use super::Dot1xCounters;
use super::eap::{self, Answer, Message, Packet, Unreadable, method, operation};
use crate::chap::{self, CHALLENGE_BYTES, MsChapV2};

/// Where an authentication stands. The numbers are those of the RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody asked for a name yet.
    WaitIdentity = 1,
    /// The name is said; the method is being agreed on or carried out.
    WaitMethod = 2,
    /// The method is through; in or out comes next.
    WaitResult = 3,
    /// In.
    Authenticated = 4,
    /// Out, until the authenticator asks again.
    Failed = 5,
}

/// Who a supplicant is, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The name; empty for none.
    pub(super) user: Box<str>,
    /// The password; empty for none.
    pub(super) password: Box<str>,
    /// Whether EAP-MD5 is accepted.
    pub(super) md5: bool,
    /// Whether MS-CHAPv2 is.
    pub(super) mschapv2: bool,
    /// Time after which it asks to begin once more.
    pub(super) idle: Nanos,
    /// How often it asks at most.
    pub(super) starts_max: u32,
}

/// A supplicant. After [`Supplicant::handle_frame`] and [`Supplicant::handle_timeout`] the message
/// is to be sent, and [`Supplicant::timeout`] says when to call next.
#[derive(Clone, Debug)]
pub(super) struct Supplicant {
    pub(super) identity: Identity,
    pub(super) counters: Dot1xCounters,
    state: State,
    /// The method that was last carried out; 0 for none.
    method: u8,
    version: u8,
    starts: u32,
    /// When to ask again; `None` for never.
    timeout: Option<Nanos>,
    /// Identifier and method of the request that brought it to [`State::WaitResult`].
    last: (u8, u8),
    /// What the authenticator of MS-CHAPv2 must prove; `None` before its challenge.
    proof: Option<[u8; 20]>,
}

impl Supplicant {
    /// A supplicant that asks to begin as soon as its timeout is handled.
    pub(super) fn new(now: Nanos, identity: Identity) -> Supplicant {
        Supplicant {
            identity,
            counters: Dot1xCounters::default(),
            state: State::WaitIdentity,
            method: 0,
            version: *eap::VERSIONS.end(),
            starts: 0,
            timeout: Some(now),
            last: (0, 0),
            proof: None,
        }
    }

    /// Where the authentication stands.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// The method that was last carried out; 0 for none.
    pub(super) fn method(&self) -> u8 {
        self.method
    }

    /// The version of EAPOL that it speaks.
    pub(super) fn version(&self) -> u8 {
        self.version
    }

    /// When to call [`Supplicant::handle_timeout`].
    pub(super) fn timeout(&self) -> Option<Nanos> {
        self.timeout
    }

    /// Asks to begin when it waited long enough, and not too often.
    pub(super) fn handle_timeout(&mut self, now: Nanos) -> Option<Message> {
        self.timeout.take_if(|timeout| *timeout <= now)?;
        if matches!(self.state, State::Authenticated | State::Failed) {
            return None;
        }
        self.await_identity();
        if self.starts >= self.identity.starts_max {
            return None;
        }
        self.starts += 1;
        self.timeout = Some(now.saturating_add(self.identity.idle));
        Some(Message::Start)
    }

    /// Takes what follows the Ethernet header. `peer_challenge` gives random bytes.
    pub(super) fn handle_frame(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        peer_challenge: impl FnOnce() -> [u8; CHALLENGE_BYTES],
    ) -> Option<Message> {
        let packet = match eap::parse(bytes) {
            Ok((version, packet)) => {
                self.version = version;
                packet
            }
            Err(unreadable) => {
                self.count(unreadable);
                return None;
            }
        };
        match packet {
            Packet::Request {
                identifier,
                method,
                data,
            } => {
                let answer = match method {
                    method::IDENTITY => self.tell_identity(now),
                    method::NOTIFICATION => Some(Answer::Notification),
                    _ => self.answer((identifier, method), data, peer_challenge),
                }?;
                Some(Message::Response { identifier, answer })
            }
            Packet::Success => {
                self.end(State::Authenticated);
                None
            }
            Packet::Failure => {
                self.end(State::Failed);
                None
            }
        }
    }

    /// Forgets a method that was not finished.
    fn await_identity(&mut self) {
        self.state = State::WaitIdentity;
        self.method = 0;
        self.proof = None;
    }

    /// Says the name, in any state: an authenticator may begin anew whenever it likes.
    fn tell_identity(&mut self, now: Nanos) -> Option<Answer> {
        if self.identity.user.is_empty() {
            self.counters.no_user_name += 1;
            return None;
        }
        if matches!(self.state, State::Authenticated | State::Failed) {
            self.starts = 0;
            self.timeout = Some(now.saturating_add(self.identity.idle));
        }
        self.await_identity();
        self.state = State::WaitMethod;
        self.counters.tx_identity += 1;
        Some(Answer::Identity)
    }

    /// Carries out a method, or says that another is wanted.
    fn answer(
        &mut self,
        request: (u8, u8),
        data: &[u8],
        peer_challenge: impl FnOnce() -> [u8; CHALLENGE_BYTES],
    ) -> Option<Answer> {
        // RFC 3748 section 4.1: a request that comes again, because the answer was lost, has the
        // same answer.
        let again = self.state == State::WaitResult && request == self.last;
        if self.state != State::WaitMethod && !again {
            self.counters.method_wrong_state += 1;
            return None;
        }
        let (identifier, method) = request;
        let wanted = match method {
            method::MD5 => self.identity.md5,
            method::MSCHAPV2 => self.identity.mschapv2,
            _ => false,
        };
        if !wanted {
            self.counters.tx_nak += 1;
            return Some(Answer::Nak(self.alternative()));
        }
        if self.identity.password.is_empty() {
            self.counters.method_no_password += 1;
            return None;
        }
        self.method = method;
        let answer = match method {
            method::MD5 => self.answer_md5(identifier, data),
            _ => self.answer_mschapv2(data, peer_challenge),
        }?;
        self.last = request;
        Some(answer)
    }

    fn alternative(&self) -> u8 {
        match (self.identity.md5, self.identity.mschapv2) {
            (true, _) => method::MD5,
            (false, true) => method::MSCHAPV2,
            (false, false) => 0,
        }
    }

    fn answer_md5(&mut self, identifier: u8, data: &[u8]) -> Option<Answer> {
        let Some(challenge) = eap::md5_challenge(data) else {
            self.counters.method_wrong_length += 1;
            return None;
        };
        self.state = State::WaitResult;
        let password = self.identity.password.as_bytes();
        Some(Answer::Md5(chap::md5_response(
            identifier, password, challenge,
        )))
    }

    fn answer_mschapv2(
        &mut self,
        data: &[u8],
        peer_challenge: impl FnOnce() -> [u8; CHALLENGE_BYTES],
    ) -> Option<Answer> {
        let Some((operation, identifier, rest)) = eap::mschapv2(data) else {
            self.counters.method_wrong_length += 1;
            return None;
        };
        match operation {
            operation::CHALLENGE => {
                let Some(challenge) = eap::mschapv2_challenge(rest) else {
                    self.counters.method_wrong_length += 1;
                    return None;
                };
                let Identity { user, password, .. } = &self.identity;
                let answer = MsChapV2::answer(user, password, challenge, &peer_challenge());
                self.proof = Some(answer.authenticator);
                Some(Answer::MsChapV2(identifier, answer.value))
            }
            operation::SUCCESS => {
                let proven = self
                    .proof
                    .is_some_and(|proof| MsChapV2::proves(&proof, rest));
                if !proven {
                    self.counters.method_failed += 1;
                    return None;
                }
                self.state = State::WaitResult;
                Some(Answer::MsChapV2End(operation::SUCCESS))
            }
            // The reason is in a text for people; the failure of EAP follows the confirmation.
            operation::FAILURE => {
                self.state = State::WaitResult;
                Some(Answer::MsChapV2End(operation::FAILURE))
            }
            _ => {
                self.counters.rx_parser_error += 1;
                None
            }
        }
    }

    /// Ends the authentication, if a method was carried out (RFC 3748 section 4.2: a success that
    /// nobody worked for may be forged). Failure in the wrong state counts as success does there,
    /// as in the reference.
    fn end(&mut self, result: State) {
        if self.state != State::WaitResult {
            self.counters.success_wrong_state += 1;
            return;
        }
        self.state = result;
        self.timeout = None;
        if result == State::Authenticated {
            self.starts = 0;
        }
    }

    fn count(&mut self, unreadable: Unreadable) {
        let counter = match unreadable {
            Unreadable::Length => &mut self.counters.rx_parser_error,
            Unreadable::Version => &mut self.counters.rx_invalid_version,
            Unreadable::NotEap => &mut self.counters.rx_ignored,
            Unreadable::Short => &mut self.counters.rx_eap_too_short,
            Unreadable::Code => &mut self.counters.rx_invalid_code,
        };
        *counter += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allosaur_engine::time::SECOND;
    use proptest::prelude::*;

    const PEER_CHALLENGE: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8];

    fn hex(text: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    }

    fn supplicant(flags: u32) -> Supplicant {
        let identity = Identity {
            user: "hhaim".into(),
            password: "432768ec1d".into(),
            md5: flags & 1 == 0,
            mschapv2: flags & 2 == 0,
            idle: 10 * SECOND,
            starts_max: 3,
        };
        let mut supplicant = Supplicant::new(0, identity);
        assert_eq!(supplicant.handle_timeout(0), Some(Message::Start));
        supplicant
    }

    impl Supplicant {
        /// What it answers, as hexadecimal text; empty for nothing.
        fn answer_to(&mut self, frame: &str) -> String {
            let message = self.handle_frame(0, &hex(frame), || PEER_CHALLENGE);
            let Some(message) = message else {
                return String::new();
            };
            let user = self.identity.user.clone();
            let mut bytes = vec![0; message.buffer_len(&user)];
            message.emit(self.version(), &user, &mut bytes);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }

    const ASK_IDENTITY: &str = "010000050100000501";
    const ASK_MD5: &str = "01000016010000160410a1501e8bb2701d3d9b535594993f67a7";
    const ASK_MSCHAPV2: &str = "0100001a0100001a1a0107001510a1501e8bb2701d3d9b535594993f67a7";
    const SUCCESS: &str = "0100000403000004";
    const FAILURE: &str = "0100000404000004";

    /// The bytes are those of a recording.
    #[test]
    fn md5_lets_it_in() {
        let mut supplicant = supplicant(0);
        assert_eq!(
            supplicant.answer_to(ASK_IDENTITY),
            "0100000a0200000a01686861696d"
        );
        let answer = "01000016020000160410201089abdf8683ab52f37ee9eb0ab68e";
        assert_eq!(supplicant.answer_to(ASK_MD5), answer);
        assert_eq!(supplicant.answer_to(ASK_MD5), answer, "it was lost");
        assert_eq!(supplicant.answer_to(SUCCESS), "");
        assert_eq!(supplicant.state(), State::Authenticated);
        assert_eq!(
            (supplicant.method(), supplicant.timeout()),
            (method::MD5, None)
        );
        assert_eq!(supplicant.answer_to(ASK_MD5), "");
        assert_eq!(supplicant.counters.method_wrong_state, 1);
    }

    /// The challenge and its answer are those of a recording; the proof was computed apart.
    #[test]
    fn mschapv2_lets_it_in_once_the_authenticator_has_proven_itself() {
        let mut supplicant = supplicant(0);
        supplicant.answer_to(ASK_IDENTITY);
        let answer = "01000040020000401a0207003b310102030405060708010203040506070800000000000000002377602adc6047e02f14b4250c028c79a703ed847f132a3300686861696d";
        assert_eq!(supplicant.answer_to(ASK_MSCHAPV2), answer);
        assert_eq!(supplicant.answer_to(SUCCESS), "");
        assert_eq!(supplicant.counters.success_wrong_state, 1);
        let proof =
            "533d35353534463434444335433746434145363444354135433138324143374639313332313530444235";
        let message = format!("01000033010000331a0307002e{proof}");
        assert_eq!(
            supplicant.answer_to(&message.replace("3d3535", "3d3536")),
            ""
        );
        assert_eq!(supplicant.counters.method_failed, 1);
        assert_eq!(supplicant.state(), State::WaitMethod);
        assert_eq!(supplicant.answer_to(&message), "01000006020000061a03");
        supplicant.answer_to(SUCCESS);
        assert_eq!(supplicant.state(), State::Authenticated);
        assert_eq!(supplicant.method(), method::MSCHAPV2);
    }

    #[test]
    fn a_wrong_password_leaves_it_out_until_it_is_asked_again() {
        let mut supplicant = supplicant(0);
        supplicant.answer_to(ASK_IDENTITY);
        supplicant.answer_to(ASK_MSCHAPV2);
        let refusal = "0100000f0100000f1a0407000a453d36393120";
        assert_eq!(supplicant.answer_to(refusal), "01000006020000061a04");
        supplicant.answer_to(FAILURE);
        assert_eq!(
            (supplicant.state(), supplicant.timeout()),
            (State::Failed, None)
        );
        supplicant.answer_to(ASK_IDENTITY);
        assert_eq!(supplicant.state(), State::WaitMethod);
        assert_eq!(supplicant.timeout(), Some(10 * SECOND));
    }

    #[test]
    fn what_it_does_not_do_is_refused_with_what_it_does() {
        for (flags, request, wanted) in [
            (0, "010000060105000619ff", "04"),
            (1, ASK_MD5, "1a"),
            (2, ASK_MSCHAPV2, "04"),
            (3, ASK_MD5, "00"),
        ] {
            let mut supplicant = supplicant(flags);
            supplicant.answer_to(ASK_IDENTITY);
            let identifier = &request[10..12];
            let nak = format!("0100000602{identifier}000603{wanted}");
            assert_eq!(supplicant.answer_to(request), nak, "{flags}");
            assert_eq!(supplicant.counters.tx_nak, 1);
            supplicant.answer_to(FAILURE);
            assert_eq!(supplicant.counters.success_wrong_state, 1);
            assert_eq!((supplicant.state() as u8, supplicant.method()), (2, 0));
        }
    }

    #[test]
    fn a_notification_is_answered_and_changes_nothing() {
        let mut supplicant = supplicant(0);
        assert_eq!(
            supplicant.answer_to("0200000701090007024869"),
            "020000050209000502"
        );
        assert_eq!(supplicant.state(), State::WaitIdentity);
    }

    #[test]
    fn it_asks_to_begin_a_limited_number_of_times() {
        let mut supplicant = supplicant(0);
        supplicant.answer_to(ASK_IDENTITY);
        for time in [10, 20] {
            assert_eq!(supplicant.timeout(), Some(time * SECOND));
            assert_eq!(supplicant.handle_timeout(time * SECOND - 1), None);
            let message = supplicant.handle_timeout(time * SECOND);
            assert_eq!(message, Some(Message::Start));
            assert_eq!((supplicant.state() as u8, supplicant.version()), (1, 1));
        }
        assert_eq!(supplicant.handle_timeout(30 * SECOND), None);
        assert_eq!(supplicant.timeout(), None);
        assert_ne!(supplicant.answer_to(ASK_IDENTITY), "");
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let mut supplicant = supplicant(0);
        for frame in [
            "01",
            "040000050100000501",
            "01010000",
            "0100000401000004",
            "0100000501000006ff",
            "01000003010000",
            "0100000405000004",
        ] {
            assert_eq!(supplicant.answer_to(frame), "", "{frame}");
        }
        let counters = &supplicant.counters;
        assert_eq!(
            (counters.rx_parser_error, counters.rx_invalid_version),
            (2, 1)
        );
        assert_eq!((counters.rx_ignored, counters.rx_eap_too_short), (1, 2));
        assert_eq!(counters.rx_invalid_code, 1);
        supplicant.answer_to(ASK_IDENTITY);
        for data in [
            "04",
            "0400",
            "0402aa",
            "1a01",
            "1a01070015",
            "1a0107000510",
            "1a0107000603ff",
            "1a09070004",
        ] {
            let length = format!("{:04x}", 4 + data.len() / 2);
            assert_eq!(
                supplicant.answer_to(&format!("0100{length}0100{length}{data}")),
                "",
                "{data}"
            );
        }
        assert_eq!(supplicant.counters.method_wrong_length, 7);
        assert_eq!(supplicant.counters.rx_parser_error, 3);
        supplicant.identity.password = "".into();
        assert_eq!(supplicant.answer_to(ASK_MD5), "");
        assert_eq!(supplicant.counters.method_no_password, 1);
        supplicant.identity.user = "".into();
        assert_eq!(supplicant.answer_to(ASK_IDENTITY), "");
        assert_eq!(supplicant.counters.no_user_name, 1);
    }

    /// Requests of plausible shape, any bytes, and time.
    fn stimulus() -> impl Strategy<Value = (u8, u8, u8, Vec<u8>)> {
        let method = prop::sample::select(vec![1u8, 2, 3, 4, 26, 254]);
        let data = prop::collection::vec(any::<u8>(), 0..70);
        (0..6u8, any::<u8>(), method, data)
    }

    proptest! {
        #[test]
        fn whatever_an_authenticator_does_it_stays_within_its_limits(
            stimuli in prop::collection::vec(stimulus(), 0..60),
        ) {
            let mut supplicant = supplicant(0);
            let mut now = 0;
            let mut starts = 1;
            for (kind, identifier, method, mut data) in stimuli {
                now += SECOND;
                if kind == 5 {
                    starts += u32::from(supplicant.handle_timeout(now).is_some());
                    prop_assert!(starts <= 3 || supplicant.starts <= 3);
                    continue;
                }
                if kind == 0 {
                    supplicant.handle_frame(now, &data, || PEER_CHALLENGE);
                    continue;
                }
                if method == method::MSCHAPV2 && data.len() > 5 {
                    let length = data.len() as u8;
                    data[..5].copy_from_slice(&[1 + identifier % 4, 0, 0, length, 16]);
                }
                let [high, low] = (5 + data.len() as u16).to_be_bytes();
                let header = [2, 0, high, low, kind, identifier, high, low, method];
                let frame = [&header[..], &data].concat();
                let message = supplicant.handle_frame(now, &frame, || PEER_CHALLENGE);
                if let Some(message) = message {
                    prop_assert_eq!(kind, 1);
                    let mut bytes = vec![0; message.buffer_len("hhaim")];
                    prop_assert!(bytes.len() < 100);
                    message.emit(2, "hhaim", &mut bytes);
                }
                prop_assert!(supplicant.timeout().is_none_or(|timeout| timeout <= now + 10 * SECOND));
            }
        }
    }
}
