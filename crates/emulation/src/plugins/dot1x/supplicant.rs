//! The states of a supplicant: what it answers to an authenticator, and when it asks to begin.
//!
//! States and their numbers are the reference's, which are coarser than those of IEEE 802.1X
//! section 8. What it hears of later versions of EAPOL changes the version it speaks.

use allosaur_engine::time::Nanos;

use super::Dot1xCounters;
use super::eap::{self, Answer, Message, Methods, Packet, Unreadable, method};
use super::mschapv2::{self, Step};
use super::phase2::Login;
use super::tunnel::{LoginContext, Tunnels, Verdict};
use crate::chap::{self, CHALLENGE_BYTES};

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
    /// The methods that it accepts.
    pub(super) methods: Methods,
    /// Time after which it asks to begin once more.
    pub(super) idle: Nanos,
    /// How often it asks at most.
    pub(super) starts_max: u32,
}

/// A supplicant. After [`Supplicant::handle_frame`] and [`Supplicant::handle_timeout`] the message
/// is to be sent, and [`Supplicant::timeout`] says when to call next.
pub(super) struct Supplicant {
    pub(super) identity: Identity,
    pub(super) counters: Dot1xCounters,
    /// What methods over TLS need, if it has any.
    pub(super) tunnels: Option<Box<Tunnels>>,
    state: State,
    /// The method that was last carried out; 0 for none.
    method: u8,
    version: u8,
    starts: u32,
    /// When to ask again; `None` for never.
    timeout: Option<Nanos>,
    /// Identifier and method of the request that brought it to [`State::WaitResult`].
    last: (u8, u8),
    mschapv2: mschapv2::Peer,
}

impl Supplicant {
    /// A supplicant that asks to begin as soon as its timeout is handled.
    pub(super) fn new(now: Nanos, identity: Identity, tunnels: Option<Box<Tunnels>>) -> Supplicant {
        Supplicant {
            identity,
            counters: Dot1xCounters::default(),
            tunnels,
            state: State::WaitIdentity,
            method: 0,
            version: *eap::VERSIONS.end(),
            starts: 0,
            timeout: Some(now),
            last: (0, 0),
            mschapv2: mschapv2::Peer::default(),
        }
    }

    /// The name in a message: outside a tunnel it may be another than the user's.
    pub(super) fn name(&self, message: &Message) -> &str {
        let tunnels = self.tunnels.as_ref();
        let anonymous = tunnels.map_or("", |tunnels| &tunnels.anonymous);
        match message {
            Message::Response {
                answer: Answer::Identity,
                ..
            } if !anonymous.is_empty() => anonymous,
            _ => &self.identity.user,
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

    /// Takes what follows the Ethernet header. `unix_time` is the time since 1970, `peer_challenge`
    /// gives random bytes.
    pub(super) fn handle_frame(
        &mut self,
        (now, unix_time): (Nanos, Nanos),
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
                    _ => {
                        let request = (identifier, method);
                        self.answer(request, data, (now, unix_time), peer_challenge)
                    }
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
        self.mschapv2 = mschapv2::Peer::default();
        if let Some(tunnels) = &mut self.tunnels {
            tunnels.end();
        }
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
        times: (Nanos, Nanos),
        peer_challenge: impl FnOnce() -> [u8; CHALLENGE_BYTES],
    ) -> Option<Answer> {
        let (identifier, method) = request;
        // RFC 3748 section 4.1: a request that comes again, because the answer was lost, has the
        // same answer. Over TLS, the end of a method may take several more.
        let is_over_tls = [method::TLS, method::TTLS, method::PEAP].contains(&method);
        let is_result = self.state == State::WaitResult;
        let again = is_result && (request == self.last || is_over_tls && method == self.method);
        if self.state != State::WaitMethod && !again {
            self.counters.method_wrong_state += 1;
            return None;
        }
        let wanted = self.identity.methods;
        if !wanted.as_slice().contains(&method) {
            self.counters.tx_nak += 1;
            return Some(Answer::Nak(self.alternatives()));
        }
        let needs_password = method != method::TLS;
        if needs_password && self.identity.password.is_empty() {
            self.counters.method_no_password += 1;
            return None;
        }
        self.method = method;
        let answer = match method {
            method::MD5 => self.answer_md5(identifier, data),
            method::MSCHAPV2 => self.answer_mschapv2(data, peer_challenge),
            _ => self.answer_over_tls(request, data, times, peer_challenge()),
        }?;
        self.last = request;
        Some(answer)
    }

    /// Methods that a refusal names: as in the reference only the first, unless some are over TLS.
    fn alternatives(&self) -> Methods {
        let all = self.identity.methods;
        let count = match self.tunnels {
            Some(_) => all.as_slice().len(),
            None => 1,
        };
        all.as_slice().iter().copied().take(count).collect()
    }

    fn answer_over_tls(
        &mut self,
        request: (u8, u8),
        data: &[u8],
        (now, unix_time): (Nanos, Nanos),
        challenge: [u8; CHALLENGE_BYTES],
    ) -> Option<Answer> {
        let tunnels = self.tunnels.as_mut()?;
        let login = Login {
            user: &self.identity.user,
            password: &self.identity.password,
            challenge,
        };
        let context = LoginContext { login, unix_time };
        let answer = tunnels.handle_request(request, data, &context);
        self.state = match tunnels.verdict() {
            Some(Verdict::Passed | Verdict::Failed) => State::WaitResult,
            Some(Verdict::Open) | None => State::WaitMethod,
        };
        if answer.is_some() {
            // Such a login takes many packets: as long as they come, it need not begin anew.
            self.timeout = Some(now.saturating_add(self.identity.idle));
        }
        answer
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
        let names = (&*self.identity.user, &*self.identity.password);
        let step = self.mschapv2.handle_request(data, names, peer_challenge);
        match step {
            Step::Answered(..) => {}
            // The failure of EAP follows the confirmation.
            Step::Accepted | Step::Refused => self.state = State::WaitResult,
            Step::NotProven => self.counters.method_failed += 1,
            Step::WrongLength => self.counters.method_wrong_length += 1,
            Step::UnknownOperation => self.counters.rx_parser_error += 1,
        }
        step.answer()
    }

    /// Ends the authentication, if a method was carried out (RFC 3748 section 4.2: a success that
    /// nobody worked for may be forged). Failure in the wrong state counts as success does there,
    /// as in the reference. A method over TLS may fail at any time, and succeeds only when it is
    /// through.
    fn end(&mut self, result: State) {
        let tunnels = self.tunnels.as_mut();
        let verdict = tunnels.as_ref().and_then(|tunnels| tunnels.verdict());
        let may_end = match verdict {
            Some(Verdict::Passed) => true,
            Some(Verdict::Open | Verdict::Failed) => result == State::Failed,
            None => self.state == State::WaitResult,
        };
        if !may_end {
            self.counters.success_wrong_state += 1;
            return;
        }
        if let Some(tunnels) = tunnels {
            if result == State::Failed && tunnels.reason.is_none() {
                tunnels.reason = Some("the authenticator refuses".into());
            }
            tunnels.end();
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
            methods: [method::MD5, method::MSCHAPV2]
                .into_iter()
                .filter(|&method| flags & if method == method::MD5 { 1 } else { 2 } == 0)
                .collect(),
            idle: 10 * SECOND,
            starts_max: 3,
        };
        let mut supplicant = Supplicant::new(0, identity, None);
        assert_eq!(supplicant.handle_timeout(0), Some(Message::Start));
        supplicant
    }

    impl Supplicant {
        /// What it answers, as hexadecimal text; empty for nothing.
        fn answer_to(&mut self, frame: &str) -> String {
            let message = self.handle_frame((0, 0), &hex(frame), || PEER_CHALLENGE);
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
                    supplicant.handle_frame((now, now), &data, || PEER_CHALLENGE);
                    continue;
                }
                if method == method::MSCHAPV2 && data.len() > 5 {
                    let length = data.len() as u8;
                    data[..5].copy_from_slice(&[1 + identifier % 4, 0, 0, length, 16]);
                }
                let [high, low] = (5 + data.len() as u16).to_be_bytes();
                let header = [2, 0, high, low, kind, identifier, high, low, method];
                let frame = [&header[..], &data].concat();
                let message = supplicant.handle_frame((now, now), &frame, || PEER_CHALLENGE);
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
