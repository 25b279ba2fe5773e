//! Methods of EAP over TLS: EAP-TLS (RFC 5216, RFC 9190), PEAP of version 0 and EAP-TTLS (RFC 5281),
//! the latter two in TLS 1.3 as RFC 9427 says.
//!
//! A server that sends without end, or nonsense, ends a run: messages, fragments and requests of one
//! are limited. A session is dropped as soon as the run is over, and so is all that it had in memory.

use std::sync::Arc;

use allosaur_engine::time::Nanos;
use allosaur_l7::tls::{TlsClient, TlsError, TlsSession, TlsVersion};

use super::eap::{Answer, method};
use super::fragments::{self, Fragment, Incoming, Outgoing};
use super::peap::Peap;
use super::phase2::{Heard, Login};
use super::ttls::{self, Inner, Ttls};

/// Requests of a run at most. A long chain of certificates in small fragments takes a hundred.
const REQUESTS_MAX: u16 = 1_000;

crate::counters! {
    /// Counters of the methods over TLS of a client.
    pub(crate) struct TlsCounters: u32, "dot1xTls" {
        started: "tlsStart", "TLS sessions that the server began", "ops", Info;
        established: "tlsEstablished", "TLS handshakes that succeeded", "ops", Info;
        tx_fragments: "tlsTxFragments", "packets of TLS sent, acknowledgments too", "pkts", Info;
        rx_again: "tlsRxAgain", "requests that came again, and were answered as before", "pkts", Info;
        certificate_refused: "tlsErrCertificate", "certificates of servers that were refused", "ops", Error;
        alerted: "tlsErrAlert", "sessions that the server ended with an alert", "ops", Error;
        protocol_broken: "tlsErrProtocol", "sessions with bytes that are no TLS, or nothing in common", "ops", Error;
        misfits: "tlsErrFragment", "requests without flags, or that fit no message", "pkts", Error;
        endless: "tlsErrEndless", "runs with more requests than a login needs", "ops", Error;
        wrong_state: "tlsErrState", "requests of no run, or of one that is over", "pkts", Error;
        unreadable: "tlsErrInner", "messages inside the tunnel of no known form", "pkts", Error;
        refused: "tlsInnerRefused", "logins that were refused inside the tunnel", "ops", Error;
        not_proven: "tlsErrProof", "servers that did not prove that they know the password", "ops", Error;
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is decided; only a failure may come.
    Open,
    /// The authenticator may let it in.
    Passed,
    /// It may not, whatever it says.
    Failed,
}

/// Whom and when a request is for.
pub(super) struct LoginContext<'a> {
    pub(super) login: Login<'a>,
    /// The time since 1970.
    pub(super) unix_time: Nanos,
}

/// The methods over TLS of a client.
pub(super) struct Tunnels {
    client: Arc<TlsClient>,
    /// The name that is said outside the tunnel; the user's if it is empty.
    pub(super) anonymous: Box<str>,
    inner: Inner,
    /// Bytes of a message in a packet at most.
    fragment_bytes: usize,
    pub(super) counters: TlsCounters,
    /// The version of the last session that was established.
    pub(super) version: Option<TlsVersion>,
    /// Why the last run failed.
    pub(super) reason: Option<Box<str>>,
    run: Option<Box<Run>>,
}

/// A login.
struct Run {
    method: u8,
    verdict: Verdict,
    requests: u16,
    /// The identifier of the request that was answered last.
    answered: Option<u8>,
    /// None when it is over.
    session: Option<Box<TlsSession>>,
    incoming: Incoming,
    outgoing: Outgoing,
    phase2: Phase2,
}

/// What is said inside the tunnel.
enum Phase2 {
    /// Nothing: certificates say it all.
    Tls,
    Peap(Peap),
    /// With whether the user was named.
    Ttls(Ttls, bool),
}

impl Tunnels {
    pub(super) fn new(
        client: Arc<TlsClient>,
        anonymous: Box<str>,
        inner: Inner,
        fragment_bytes: usize,
    ) -> Tunnels {
        Tunnels {
            client,
            anonymous,
            inner,
            fragment_bytes,
            counters: TlsCounters::default(),
            version: None,
            reason: None,
            run: None,
        }
    }

    /// How far the run is; `None` when there is none.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.run.as_ref().map(|run| run.verdict)
    }

    /// Ends the run, and frees what it had.
    pub(super) fn end(&mut self) {
        self.run = None;
    }

    /// Takes a request of a method over TLS: what follows its type.
    pub(super) fn handle_request(
        &mut self,
        (identifier, method): (u8, u8),
        data: &[u8],
        context: &LoginContext<'_>,
    ) -> Option<Answer> {
        let Some(fragment) = fragments::parse(data) else {
            self.counters.misfits += 1;
            return None;
        };
        let run = self.run.as_deref().filter(|run| run.method == method);
        if run.is_some_and(|run| run.answered == Some(identifier)) {
            self.counters.rx_again += 1;
            return self.answer();
        }
        if fragment.is_start {
            self.start(method);
        } else if run.is_none() {
            self.counters.wrong_state += 1;
            return None;
        }
        let is_answered = self.take(&fragment, context).is_some();
        self.run.as_mut()?.answered = is_answered.then_some(identifier);
        is_answered.then(|| self.answer()).flatten()
    }

    /// Begins a run.
    fn start(&mut self, method: u8) {
        self.counters.started += 1;
        self.reason = None;
        let phase2 = match method {
            method::PEAP => Phase2::Peap(Peap::default()),
            method::TTLS => Phase2::Ttls(Ttls::default(), false),
            _ => Phase2::Tls,
        };
        let mut run = Box::new(Run {
            method,
            verdict: Verdict::Open,
            requests: 0,
            answered: None,
            session: None,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            phase2,
        });
        let begun = self.client.session();
        let failed = match begun {
            Ok(session) => {
                run.session = Some(session);
                None
            }
            Err(error) => Some(error),
        };
        self.run = Some(run);
        if let Some(error) = failed {
            self.fail_by(&error);
        }
    }

    /// Takes a fragment. `None` when nothing answers it.
    fn take(&mut self, fragment: &Fragment<'_>, context: &LoginContext<'_>) -> Option<()> {
        let run = self.run.as_mut()?;
        run.requests = run.requests.saturating_add(1);
        if run.requests > REQUESTS_MAX {
            match run.session {
                Some(_) => self.counters.endless += 1,
                None => self.counters.wrong_state += 1,
            }
            self.fail("more requests than a login needs");
            return None;
        }
        if run.outgoing.is_open() && run.outgoing.advance(self.fragment_bytes) {
            // The rest of what we say comes first; the request only acknowledges.
            return match fragment.data {
                [] => Some(()),
                _ => self.misfit(),
            };
        }
        if fragment.is_start {
            return self.process(&[], context);
        }
        match run.incoming.push(fragment) {
            Ok(None) => Some(()),
            Ok(Some(message)) => self.process(&message, context),
            Err(fragments::Misfit) => self.misfit(),
        }
    }

    fn misfit(&mut self) -> Option<()> {
        self.counters.misfits += 1;
        self.fail("fragments that fit no message");
        None
    }

    /// Takes a whole message.
    fn process(&mut self, message: &[u8], context: &LoginContext<'_>) -> Option<()> {
        let run = self.run.as_mut()?;
        let Some(session) = &mut run.session else {
            self.counters.wrong_state += 1;
            return None;
        };
        let was_established = session.is_established();
        let mut plaintext = Vec::new();
        let result = session.handle_bytes(context.unix_time, message, &mut plaintext);
        session.poll_transmit(&mut run.outgoing.message);
        let is_established = session.is_established();
        if is_established && !was_established {
            self.counters.established += 1;
            self.version = session.version();
        }
        let heard = match result {
            Ok(()) if is_established => run.converse(&plaintext, self.inner, &context.login),
            other => other.map(|()| Heard::Open),
        };
        // A server that proves nothing is told nothing: an answer could let us in.
        let is_silent = heard == Ok(Heard::NotProven) && !run.outgoing.is_open();
        match heard {
            Ok(heard) => self.judge(heard),
            Err(error) => self.fail_by(&error),
        }
        (!is_silent).then_some(())
    }

    fn judge(&mut self, heard: Heard) {
        match heard {
            Heard::Open => {}
            Heard::Passed => {
                if let Some(run) = &mut self.run {
                    run.verdict = Verdict::Passed;
                }
            }
            Heard::Unreadable => self.counters.unreadable += 1,
            Heard::Refused => {
                self.counters.refused += 1;
                self.fail("the server refuses user or password");
            }
            Heard::NotProven => {
                self.counters.not_proven += 1;
                self.fail("the server does not prove that it knows the password");
            }
        }
    }
}

impl Tunnels {
    /// Ends the session of the run, which cannot succeed any more.
    fn fail(&mut self, reason: &str) {
        self.reason = Some(reason.into());
        if let Some(run) = &mut self.run {
            run.verdict = Verdict::Failed;
            run.session = None;
        }
    }

    fn fail_by(&mut self, error: &TlsError) {
        let counter = match error {
            TlsError::Certificate(_) => &mut self.counters.certificate_refused,
            TlsError::Alert(_) => &mut self.counters.alerted,
            TlsError::Protocol(_) => &mut self.counters.protocol_broken,
        };
        *counter += 1;
        self.fail(&error.to_string());
    }

    /// The answer to the last request.
    fn answer(&mut self) -> Option<Answer> {
        let run = self.run.as_ref()?;
        self.counters.tx_fragments += 1;
        let (flags, total, data) = run.outgoing.fragment(self.fragment_bytes);
        Some(Answer::Tls {
            method: run.method,
            flags,
            total,
            data: data.into(),
        })
    }
}

impl Run {
    /// Goes on inside the established tunnel.
    fn converse(
        &mut self,
        plaintext: &[u8],
        inner: Inner,
        login: &Login<'_>,
    ) -> Result<Heard, TlsError> {
        let session = self.session.as_mut();
        let session = session.expect("a session that was established just now");
        let mut reply = Vec::new();
        let heard = match &mut self.phase2 {
            // RFC 9190 section 2.5: with TLS 1.3, a byte of zero says that the server is through.
            Phase2::Tls if session.version() == Some(TlsVersion::V1_3) => match plaintext {
                [] => Heard::Open,
                [0] => Heard::Passed,
                _ => Heard::Unreadable,
            },
            Phase2::Tls => Heard::Passed,
            Phase2::Peap(_) if plaintext.is_empty() => Heard::Open,
            Phase2::Peap(peap) => peap.handle_request(plaintext, login, &mut reply),
            // Our end of the handshake goes first, by itself.
            Phase2::Ttls(_, false) if self.outgoing.is_open() => Heard::Open,
            Phase2::Ttls(ttls, named @ false) => {
                *named = true;
                let mut challenge = [0; ttls::CHALLENGE_BYTES];
                session.export_keying_material(ttls::CHALLENGE_LABEL, &mut challenge)?;
                ttls.name(inner, login, &challenge, &mut reply);
                match inner {
                    Inner::Pap => Heard::Passed,
                    Inner::MsChapV2 => Heard::Open,
                }
            }
            Phase2::Ttls(..) if plaintext.is_empty() || inner == Inner::Pap => Heard::Open,
            Phase2::Ttls(ttls, _) => ttls.handle_avps(plaintext),
        };
        if !reply.is_empty() {
            session.send(&reply)?;
            session.poll_transmit(&mut self.outgoing.message);
        }
        Ok(heard)
    }
}
