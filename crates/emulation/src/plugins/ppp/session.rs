//! One PPPoE session of a host: discovery, LCP, authentication, IPCP, and its end.
//!
//! A phase begins as soon as the one before is through. What is not answered is sent again, a
//! limited number of times; then discovery starts anew. Who ends the session, or refuses the
//! password, is believed: nothing is sent any more.

use std::net::Ipv4Addr;

use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;

use super::control::{self, Authentication, LcpRequest, Packet, Verdict, code};
use super::pppoe::{self, Code, MRU, tag};
use crate::chap::{self, CHALLENGE_BYTES, MsChapV2};

/// Bytes of a user's name or password at most: PAP has one byte for their length.
pub(super) const SECRET_BYTES_MAX: usize = 255;
/// Time during which further offers could come, before the first is taken.
const OFFER_WAIT: Nanos = SECOND;
/// Time after which a Configure-Request is sent again. (RFC 1661 section 4.6 has three seconds.)
const CONFIGURE_INTERVAL: Nanos = SECOND;
/// How often a request is sent in a phase (RFC 1661 section 4.6, Max-Configure).
const REQUESTS_MAX: u32 = 10;

/// Protocols of PPP (RFC 1661 section 2).
mod protocol {
    pub(super) const IPV4: u16 = 0x0021;
    pub(super) const IPCP: u16 = 0x8021;
    pub(super) const LCP: u16 = 0xc021;
    pub(super) const PAP: u16 = 0xc023;
    pub(super) const CHAP: u16 = 0xc223;
}

/// Codes of CHAP (RFC 1994 section 4); PAP has the first three (RFC 1334 section 2.2), as request,
/// acknowledgement and refusal.
mod chap_code {
    pub(super) const CHALLENGE: u8 = 1;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const SUCCESS: u8 = 3;
    pub(super) const FAILURE: u8 = 4;
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It looks for concentrators.
    Discovery,
    /// It asks one for a session.
    Request,
    /// LCP.
    Link,
    /// PAP or CHAP.
    Authentication,
    /// IPCP.
    Network,
    /// It has its address.
    Up,
    /// It is over.
    Closed,
}

/// Where a session sends its frames, and has random numbers from.
pub(super) trait Sink {
    /// Room for what follows the Ethernet header of a frame.
    fn frame(&mut self, to: MacAddress, ether_type: EtherType, bytes: usize) -> &mut [u8];
    /// A random number.
    fn random(&mut self) -> u32;
}

/// Who the host is.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) user: Box<str>,
    pub(super) password: Box<str>,
    /// Time after which discovery and PAP ask again.
    pub(super) interval: Nanos,
}

/// What was agreed on with a peer in one protocol.
#[derive(Clone, Copy, Debug, Default)]
struct Agreement {
    /// It acknowledged our request.
    ours: bool,
    /// We acknowledged its request.
    theirs: bool,
}

impl Agreement {
    fn is_whole(self) -> bool {
        self.ours && self.theirs
    }
}

/// A session. After each call [`Session::timeout`] says when to call [`Session::handle_timeout`].
#[derive(Clone, Debug)]
pub(super) struct Session {
    credentials: Credentials,
    phase: Phase,
    timeout: Option<Nanos>,
    /// Requests that were sent in this phase.
    requests: u32,
    peer: MacAddress,
    number: u16,
    /// Tags of the request for a session; kept while it is asked for.
    tags: Box<[u8]>,
    lcp: Agreement,
    lcp_request: LcpRequest,
    ipcp: Agreement,
    authentication: Authentication,
    proof: Option<[u8; 20]>,
    address: Ipv4Addr,
    /// Of our last request in the running protocol.
    identifier: u8,
}

impl Session {
    /// A session that begins when its timeout is handled.
    pub(super) fn new(now: Nanos, credentials: Credentials) -> Session {
        Session {
            credentials,
            phase: Phase::Discovery,
            timeout: Some(now),
            requests: 0,
            peer: MacAddress::ZERO,
            number: 0,
            tags: Box::default(),
            lcp: Agreement::default(),
            lcp_request: LcpRequest {
                mru: None,
                magic: None,
            },
            ipcp: Agreement::default(),
            authentication: Authentication::None,
            proof: None,
            address: Ipv4Addr::UNSPECIFIED,
            identifier: 0,
        }
    }

    /// The concentrator; all zeros before an offer.
    pub(super) fn peer(&self) -> MacAddress {
        self.peer
    }

    /// The number that the concentrator gave it; 0 for none.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// The address that the peer gave it.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// When to call [`Session::handle_timeout`].
    pub(super) fn timeout(&self) -> Option<Nanos> {
        self.timeout
    }

    /// Sends again what was not answered.
    pub(super) fn handle_timeout(&mut self, now: Nanos, out: &mut impl Sink) {
        if self.timeout.take_if(|timeout| *timeout <= now).is_none() {
            return;
        }
        let is_last = self.requests >= REQUESTS_MAX;
        match self.phase {
            Phase::Discovery => self.look_for_peers(now, out),
            Phase::Request if is_last => self.start_again(now),
            Phase::Request => self.ask_for_session(now, out),
            Phase::Link | Phase::Authentication | Phase::Network if is_last => {
                self.terminate("no answer", out);
                self.start_again(now);
            }
            Phase::Link => self.configure_link(now, out),
            Phase::Authentication => self.authenticate(now, out),
            Phase::Network => self.configure_network(now, out),
            Phase::Up | Phase::Closed => {}
        }
    }

    /// Takes what follows the Ethernet header of a discovery frame.
    pub(super) fn handle_discovery(
        &mut self,
        now: Nanos,
        from: MacAddress,
        bytes: &[u8],
        out: &mut impl Sink,
    ) {
        let Some(packet) = pppoe::Packet::parse(bytes) else {
            return;
        };
        match (packet.code, self.phase) {
            (Code::PADO, Phase::Discovery)
                if packet.session == 0 && !pppoe::has_error(packet.payload) =>
            {
                self.peer = from;
                self.tags = pppoe::request_tags(packet.payload);
                self.enter(Phase::Request, now.saturating_add(OFFER_WAIT));
            }
            (Code::PADS, Phase::Request) if from == self.peer && self.requests > 0 => {
                if packet.session == 0 || pppoe::has_error(packet.payload) {
                    self.start_again(now.saturating_add(self.credentials.interval));
                    return;
                }
                self.number = packet.session;
                self.tags = Box::default();
                self.lcp_request = LcpRequest {
                    mru: Some(MRU),
                    magic: Some(out.random()),
                };
                self.begin_link(now, out);
            }
            (Code::PADT, phase)
                if (Phase::Link..Phase::Closed).contains(&phase)
                    && from == self.peer
                    && packet.session == self.number =>
            {
                self.close();
            }
            _ => {}
        }
    }

    /// Takes what follows the Ethernet header of a session's frame.
    pub(super) fn handle_session(
        &mut self,
        now: Nanos,
        from: MacAddress,
        bytes: &[u8],
        out: &mut impl Sink,
    ) {
        let Some(frame) = pppoe::Packet::parse(bytes) else {
            return;
        };
        let is_ours = frame.code == Code::SESSION && frame.session == self.number;
        if !is_ours || from != self.peer || !(Phase::Link..Phase::Closed).contains(&self.phase) {
            return;
        }
        let Some((&[high, low], rest)) = frame.payload.split_first_chunk() else {
            return;
        };
        let protocol = u16::from_be_bytes([high, low]);
        let is_known = matches!(
            protocol,
            protocol::LCP | protocol::PAP | protocol::CHAP | protocol::IPCP | protocol::IPV4
        );
        // RFC 1661 section 5.7: only where LCP is open; before, it is discarded.
        if !is_known && self.phase > Phase::Link {
            self.reject_protocol(frame.payload, out);
        }
        let Some(packet) = Packet::parse(rest) else {
            return;
        };
        match protocol {
            protocol::LCP => self.handle_lcp(now, &packet, out),
            protocol::PAP => self.handle_pap(now, &packet, out),
            protocol::CHAP => self.handle_chap(now, &packet, out),
            protocol::IPCP => self.handle_ipcp(now, &packet, out),
            _ => {}
        }
    }

    /// Ends the session, if there is one, and says so.
    pub(super) fn terminate(&mut self, reason: &str, out: &mut impl Sink) {
        if (Phase::Link..Phase::Closed).contains(&self.phase) {
            let bytes = pppoe::HEADER_BYTES + 4 + reason.len();
            let frame = out.frame(self.peer, pppoe::DISCOVERY, bytes);
            let payload = pppoe::emit(Code::PADT, self.number, &mut frame[..bytes]);
            payload[..2].copy_from_slice(&tag::GENERIC_ERROR.to_be_bytes());
            payload[2..4].copy_from_slice(&(reason.len() as u16).to_be_bytes());
            payload[4..].copy_from_slice(reason.as_bytes());
        }
        self.close();
    }
}

/// Phases.
impl Session {
    fn enter(&mut self, phase: Phase, timeout: Nanos) {
        self.phase = phase;
        self.requests = 0;
        self.timeout = Some(timeout);
    }

    fn close(&mut self) {
        self.phase = Phase::Closed;
        self.timeout = None;
        self.number = 0;
        self.tags = Box::default();
        self.address = Ipv4Addr::UNSPECIFIED;
    }

    /// Looks for concentrators once more, at that time.
    fn start_again(&mut self, at: Nanos) {
        self.close();
        self.enter(Phase::Discovery, at);
    }

    fn look_for_peers(&mut self, now: Nanos, out: &mut impl Sink) {
        self.send_discovery(Code::PADI, MacAddress::BROADCAST, &pppoe::ANY_SERVICE, out);
        self.timeout = Some(now.saturating_add(self.credentials.interval));
    }

    fn ask_for_session(&mut self, now: Nanos, out: &mut impl Sink) {
        self.requests += 1;
        self.send_discovery(Code::PADR, self.peer, &self.tags, out);
        self.timeout = Some(now.saturating_add(self.credentials.interval));
    }

    fn begin_link(&mut self, now: Nanos, out: &mut impl Sink) {
        self.enter(Phase::Link, now);
        self.lcp = Agreement::default();
        self.identifier = 1;
        self.configure_link(now, out);
    }

    fn configure_link(&mut self, now: Nanos, out: &mut impl Sink) {
        self.requests += 1;
        self.timeout = Some(now.saturating_add(CONFIGURE_INTERVAL));
        if !self.lcp.ours {
            let options = self.lcp_request.options();
            self.send_request(protocol::LCP, &options, out);
        }
    }

    fn link_agreed(&mut self, now: Nanos, out: &mut impl Sink) {
        if !self.lcp.is_whole() {
            return;
        }
        self.identifier = 1;
        if self.authentication == Authentication::None {
            self.begin_network(now, out);
        } else {
            self.enter(Phase::Authentication, now);
            self.authenticate(now, out);
        }
    }

    /// Says who we are, with PAP; with CHAP the peer asks.
    fn authenticate(&mut self, now: Nanos, out: &mut impl Sink) {
        self.requests += 1;
        self.timeout = Some(now.saturating_add(self.credentials.interval));
        if self.authentication != Authentication::Pap {
            return;
        }
        let Credentials { user, password, .. } = &self.credentials;
        let mut data = Vec::with_capacity(2 + user.len() + password.len());
        for text in [user, password] {
            data.push(text.len() as u8);
            data.extend_from_slice(text.as_bytes());
        }
        self.send_request(protocol::PAP, &data, out);
    }

    fn begin_network(&mut self, now: Nanos, out: &mut impl Sink) {
        self.enter(Phase::Network, now);
        self.ipcp = Agreement::default();
        self.identifier = 1;
        self.configure_network(now, out);
    }

    fn configure_network(&mut self, now: Nanos, out: &mut impl Sink) {
        self.requests += 1;
        self.timeout = Some(now.saturating_add(CONFIGURE_INTERVAL));
        if !self.ipcp.ours {
            let option = control::address_option(self.address);
            self.send_request(protocol::IPCP, &option, out);
        }
    }

    fn network_agreed(&mut self) {
        if self.ipcp.is_whole() {
            self.phase = Phase::Up;
            self.timeout = None;
        }
    }

    /// Sends a changed request at once, unless there were many: a peer that likes nothing ends with
    /// the next timeout.
    fn configure_again(&mut self, now: Nanos, out: &mut impl Sink) {
        self.identifier = self.identifier.wrapping_add(1);
        if self.requests >= REQUESTS_MAX {
            return;
        }
        match self.phase {
            Phase::Link => self.configure_link(now, out),
            _ => self.configure_network(now, out),
        }
    }
}

/// Protocols.
impl Session {
    fn handle_lcp(&mut self, now: Nanos, packet: &Packet<'_>, out: &mut impl Sink) {
        let is_answer = self.phase == Phase::Link && packet.identifier == self.identifier;
        match packet.code {
            code::CONFIGURE_REQUEST => self.answer_lcp(now, packet, out),
            code::CONFIGURE_ACK if is_answer && !self.lcp.ours => {
                if packet.data == self.lcp_request.options() {
                    self.lcp.ours = true;
                    self.link_agreed(now, out);
                }
            }
            code::CONFIGURE_NAK if is_answer && !self.lcp.ours => {
                let magic = out.random();
                self.lcp_request.take_nak(packet.data, magic);
                self.configure_again(now, out);
            }
            code::CONFIGURE_REJECT if is_answer && !self.lcp.ours => {
                self.lcp_request.take_reject(packet.data);
                self.configure_again(now, out);
            }
            code::TERMINATE_REQUEST => {
                self.send_control(
                    protocol::LCP,
                    code::TERMINATE_ACK,
                    packet.identifier,
                    &[],
                    out,
                );
                self.terminate("session closed", out);
            }
            // RFC 1661 section 5.8: echoes are answered where LCP is open.
            code::ECHO_REQUEST if self.phase > Phase::Link => self.echo(packet, out),
            code::CONFIGURE_ACK
            | code::CONFIGURE_NAK
            | code::CONFIGURE_REJECT
            | code::TERMINATE_ACK
            | code::CODE_REJECT
            | code::PROTOCOL_REJECT
            | code::ECHO_REQUEST
            | code::ECHO_REPLY
            | code::DISCARD_REQUEST => {}
            _ => self.reject_code(protocol::LCP, packet, out),
        }
    }

    fn answer_lcp(&mut self, now: Nanos, packet: &Packet<'_>, out: &mut impl Sink) {
        let magic = self.lcp_request.magic.unwrap_or_default();
        // A magic number of zero says that there is none (RFC 1661 section 6.4).
        let other = out.random() | 1;
        let judged = control::judge_lcp(packet.data, magic, other);
        let Some((verdict, authentication)) = judged else {
            return;
        };
        // RFC 1661 section 4.3: in the opened state, a request starts the negotiation anew.
        if self.phase > Phase::Link {
            self.begin_link(now, out);
        }
        self.lcp.theirs = verdict.code == code::CONFIGURE_ACK;
        if self.lcp.theirs {
            self.authentication = authentication;
        }
        self.send_verdict(protocol::LCP, packet.identifier, &verdict, out);
        self.link_agreed(now, out);
    }

    fn echo(&mut self, packet: &Packet<'_>, out: &mut impl Sink) {
        let Some((_, text)) = packet.data.split_first_chunk::<4>() else {
            return;
        };
        let magic = self.lcp_request.magic.unwrap_or_default().to_be_bytes();
        let data = [&magic[..], text].concat();
        self.send_control(
            protocol::LCP,
            code::ECHO_REPLY,
            packet.identifier,
            &data,
            out,
        );
    }

    fn handle_pap(&mut self, now: Nanos, packet: &Packet<'_>, out: &mut impl Sink) {
        let is_answer = self.phase == Phase::Authentication
            && self.authentication == Authentication::Pap
            && packet.identifier == self.identifier;
        match packet.code {
            code::CONFIGURE_ACK if is_answer => self.begin_network(now, out),
            code::CONFIGURE_NAK if is_answer => self.terminate("authentication refused", out),
            _ => {}
        }
    }

    /// CHAP may challenge again at any time (RFC 1994 section 2).
    fn handle_chap(&mut self, now: Nanos, packet: &Packet<'_>, out: &mut impl Sink) {
        let is_md5 = match self.authentication {
            Authentication::ChapMd5 => true,
            Authentication::MsChapV2 => false,
            Authentication::None | Authentication::Pap => return,
        };
        let waits = self.phase == Phase::Authentication;
        if self.phase == Phase::Link {
            return;
        }
        match packet.code {
            chap_code::CHALLENGE => self.answer_challenge(packet, is_md5, out),
            chap_code::SUCCESS if waits => {
                let proves = |proof| MsChapV2::proves(&proof, packet.data);
                if is_md5 || self.proof.is_some_and(proves) {
                    self.begin_network(now, out);
                } else {
                    self.terminate("authentication failed", out);
                }
            }
            chap_code::FAILURE => self.terminate("authentication refused", out),
            _ => {}
        }
    }

    fn answer_challenge(&mut self, packet: &Packet<'_>, is_md5: bool, out: &mut impl Sink) {
        let Some((&size, rest)) = packet.data.split_first() else {
            return;
        };
        let Some(challenge) = rest
            .get(..usize::from(size))
            .filter(|value| !value.is_empty())
        else {
            return;
        };
        let user = self.credentials.user.as_bytes();
        let data = if is_md5 {
            let secret = self.credentials.password.as_bytes();
            let value = chap::md5_response(packet.identifier, secret, challenge);
            [&[value.len() as u8][..], &value, user].concat()
        } else {
            let Ok(challenge) = challenge.try_into() else {
                return;
            };
            let ours = peer_challenge(out);
            let Credentials { user, password, .. } = &self.credentials;
            let answer = MsChapV2::answer(user, password, challenge, &ours);
            self.proof = Some(answer.authenticator);
            [
                &[answer.value.len() as u8][..],
                &answer.value,
                user.as_bytes(),
            ]
            .concat()
        };
        self.send_control(
            protocol::CHAP,
            chap_code::RESPONSE,
            packet.identifier,
            &data,
            out,
        );
    }

    fn handle_ipcp(&mut self, now: Nanos, packet: &Packet<'_>, out: &mut impl Sink) {
        if self.phase < Phase::Network {
            return;
        }
        let is_answer =
            self.phase == Phase::Network && packet.identifier == self.identifier && !self.ipcp.ours;
        match packet.code {
            code::CONFIGURE_REQUEST => {
                let Some(verdict) = control::judge_ipcp(packet.data) else {
                    return;
                };
                if self.phase == Phase::Up {
                    self.begin_network(now, out);
                }
                self.ipcp.theirs = verdict.code == code::CONFIGURE_ACK;
                self.send_verdict(protocol::IPCP, packet.identifier, &verdict, out);
                self.network_agreed();
            }
            code::CONFIGURE_ACK if is_answer => {
                if packet.data == control::address_option(self.address) {
                    self.ipcp.ours = true;
                    self.network_agreed();
                }
            }
            code::CONFIGURE_NAK if is_answer => {
                if let Some(address) = control::address_in(packet.data) {
                    self.address = address;
                    self.configure_again(now, out);
                }
            }
            // Without an address there is nothing to agree on.
            code::CONFIGURE_REJECT if is_answer => self.terminate("no address", out),
            code::TERMINATE_REQUEST => {
                let identifier = packet.identifier;
                self.send_control(protocol::IPCP, code::TERMINATE_ACK, identifier, &[], out);
                self.terminate("session closed", out);
            }
            code::CONFIGURE_ACK
            | code::CONFIGURE_NAK
            | code::CONFIGURE_REJECT
            | code::TERMINATE_ACK
            | code::CODE_REJECT => {}
            _ => self.reject_code(protocol::IPCP, packet, out),
        }
    }
}

/// Frames.
impl Session {
    fn send_discovery(&self, code: Code, to: MacAddress, tags: &[u8], out: &mut impl Sink) {
        let bytes = pppoe::HEADER_BYTES + tags.len();
        let frame = out.frame(to, pppoe::DISCOVERY, bytes);
        pppoe::emit(code, 0, &mut frame[..bytes]).copy_from_slice(tags);
    }

    fn send_request(&self, protocol: u16, data: &[u8], out: &mut impl Sink) {
        self.send_control(
            protocol,
            code::CONFIGURE_REQUEST,
            self.identifier,
            data,
            out,
        );
    }

    fn send_verdict(&self, protocol: u16, identifier: u8, verdict: &Verdict, out: &mut impl Sink) {
        self.send_control(protocol, verdict.code, identifier, &verdict.options, out);
    }

    /// Sends back a packet of a code that is not known (RFC 1661 section 5.6).
    fn reject_code(&self, protocol: u16, packet: &Packet<'_>, out: &mut impl Sink) {
        let mut rejected = vec![0; control::HEADER_BYTES + packet.data.len()];
        packet.emit(&mut rejected);
        self.send_control(
            protocol,
            code::CODE_REJECT,
            packet.identifier,
            &rejected,
            out,
        );
    }

    /// Sends back a frame of a protocol that is not spoken (RFC 1661 section 5.7).
    fn reject_protocol(&self, payload: &[u8], out: &mut impl Sink) {
        self.send_control(protocol::LCP, code::PROTOCOL_REJECT, 0, payload, out);
    }

    fn send_control(
        &self,
        protocol: u16,
        code: u8,
        identifier: u8,
        data: &[u8],
        out: &mut impl Sink,
    ) {
        let data = &data[..data.len().min(usize::from(MRU) - control::HEADER_BYTES)];
        let bytes = pppoe::HEADER_BYTES + 2 + control::HEADER_BYTES + data.len();
        let frame = out.frame(self.peer, pppoe::SESSION, bytes);
        let payload = pppoe::emit(Code::SESSION, self.number, &mut frame[..bytes]);
        let (protocol_bytes, packet) = payload.split_at_mut(2);
        protocol_bytes.copy_from_slice(&protocol.to_be_bytes());
        Packet {
            code,
            identifier,
            data,
        }
        .emit(packet);
    }
}

/// Random bytes for a challenge of our own.
fn peer_challenge(out: &mut impl Sink) -> [u8; CHALLENGE_BYTES] {
    let mut challenge = [0; CHALLENGE_BYTES];
    for word in challenge.chunks_exact_mut(4) {
        word.copy_from_slice(&out.random().to_be_bytes());
    }
    challenge
}
