//! DHCP for IPv6, a client of one address (RFC 8415 section 18.2).
//!
//! A client without a lease asks all servers (SOLICIT), takes the first that advertises, and has its
//! address when that server replies. It asks its server for more time at T1, any server at T2, and
//! begins anew when the address is not valid any more. What it sends is made of a template that clients
//! with the same init JSON share, as they share the name of their server.

mod messages;

use std::net::{Ipv6Addr, SocketAddrV6};
use std::sync::Arc;

use allosaur_api::Access;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv6::{
    ALL_SERVERS, CLIENT_PORT, Dhcpv6Message, Dhcpv6MessageType, HEADER_BYTES, IdentityAssociation,
    LeasedAddress, SERVER_PORT, StatusCode,
};
use allosaur_packet::network::ipv6::Ipv6View;

use self::messages::{Messages, Numbers, Template, duid};
use crate::client::ClientId;
use crate::counters::Counters;
use crate::frame::{Frame, FrameKind};
use crate::plugin::Context;
use crate::plugins::lease::{INFINITE_S, LeaseClient, LeasePlugin, LeaseTimes, State, Step};
use crate::spec::{Keys, Scope, Spec, client_counters};
use crate::timers::TimerId;
use crate::udp::{Macs, Service};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "dhcpv6",
    frames: &[FrameKind::Dhcpv6],
    commands: &[client_counters::<LeasePlugin<Dhcpv6Client>>(
        "dhcpv6_client_cnt",
        Access::Api,
    )],
    counters: &[("", Dhcpv6Counters::META)],
    keys: Keys::Only(&["timerd", "timero", "options"]),
    scope: Scope::Client,
    create: |_, _| Ok(Box::<LeasePlugin<Dhcpv6Client>>::default()),
};

/// So often a REQUEST is sent again before the client looks for servers anew (RFC 8415 section 7.6).
const REQUEST_RETRIES: u8 = 10;
/// The longest name of a server (RFC 8415 section 11.1), its type included.
const DUID_BYTES_MAX: usize = 130;
const HOP_LIMIT: u8 = 1;
/// T1 and T2 when the server leaves them to the client.
const RENEW_S: u32 = 1800;
const REBIND_S: u32 = 3600;
/// T2 when it is before T1: so long after it.
const REBIND_AFTER_RENEW_S: u32 = 60;

crate::counters! {
    /// Counters of a client.
    pub(crate) struct Dhcpv6Counters: u32, "dhcpv6" {
        tx_solicit: "pktTxDiscover", "Tx discover", "pkts", Info;
        rx_advertise: "pktRxOffer", "received offer", "pkts", Info;
        tx_request: "pktTxRequest", "tx request", "pkts", Info;
        rx_reply: "pktRxAck", "reply from the server", "pkts", Info;
        rx_length_error: "pktRxLenErr", "rx len error", "pkts", Error;
        rx_parser_error: "pktRxParserErr", "rx parser error", "pkts", Error;
        rx_unhandled: "pktRxUnhandled", "rx unhandled dhcp packet", "pkts", Error;
        notify: "pktRxNotify", "Notify with new IPv6 addr", "pkts", Info;
        renew: "pktRxRenew", "rx renew", "pkts", Info;
        rebind: "pktRxRebind", "rx Rebind", "pkts", Error;
        rx_no_server_id: "pktRxMissingServerIdOption", "rx missing server id option", "pkts", Error;
        rx_wrong_xid: "pktRxWrongXid", "rx wrong xid", "pkts", Error;
        rx_wrong_server_id: "pktRxWrongServerId", "rx wrong server id", "pkts", Error;
        rx_wrong_server_address: "pktRxWrongServerIP", "rx wrong server dest ip", "pkts", Error;
        rx_wrong_client_id: "pktRxWrongClientId", "rx wrong client id sent from the server", "pkts", Error;
        rx_no_association: "pktRxNoIANA", "rx no IANA server information", "pkts", Error;
        rx_wrong_iaid: "pktRxWrongIANAId", "rx no IANA server id", "pkts", Error;
        rx_no_address: "pktRxNoIAAddr", "rx no IANA new addr", "pkts", Error;
        rx_wrong_destination: "pktRxWrongDstIp", "rx wrong destination ip", "pkts", Error;
        status_unspecified: "pktRxSTATUS_UnspecFail", "rx server status error", "pkts", Error;
        status_no_addresses: "pktRxSTATUS_NoAddrsAvail", "rx server status error", "pkts", Error;
        status_no_binding: "pktRxSTATUS_NoBinding", "rx server status error", "pkts", Error;
        status_not_on_link: "pktRxSTATUS_NotOnLink", "rx server status error", "pkts", Error;
        status_use_multicast: "pktRxSTATUS_UseMulticast", "rx server status error", "pkts", Error;
        status_no_prefixes: "pktRxSTATUS_NoPrefixAvail", "rx server status error", "pkts", Error;
    }
}

/// A client, small: there may be a million.
#[derive(Debug)]
struct Dhcpv6Client {
    messages: Arc<Messages>,
    /// The DUID of the server that was chosen.
    server: Option<Arc<[u8]>>,
    server_address: Ipv6Addr,
    /// The address that was leased.
    address: Ipv6Addr,
    /// When what the client tries now began.
    began: Nanos,
    times: LeaseTimes,
    timer: TimerId,
    xid: u32,
    iaid: u32,
    /// Messages to all servers that were not answered, or repeated ones to the server that was chosen.
    retries: u8,
    state: State,
    counters: Dhcpv6Counters,
}

impl LeaseClient for Dhcpv6Client {
    type Messages = Messages;
    /// The server that answered last: mostly it is that of all clients.
    type Shared = Option<Arc<[u8]>>;
    const LEASE: &'static str = "a DHCPv6 lease";
    const IS_IPV6: bool = true;

    fn new(context: &mut Context<'_>, messages: Arc<Messages>) -> Self {
        Dhcpv6Client {
            messages,
            server: None,
            server_address: Ipv6Addr::UNSPECIFIED,
            address: Ipv6Addr::UNSPECIFIED,
            began: context.now,
            times: LeaseTimes::NEVER,
            timer: TimerId::NONE,
            xid: context.draw("dhcpv6 xid") & 0xff_ffff,
            iaid: context.draw("dhcpv6 iaid"),
            retries: 0,
            state: State::Selecting,
            counters: Dhcpv6Counters::default(),
        }
    }

    fn start(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.state = State::Selecting;
        self.server = None;
        self.began = context.now;
        self.retries = 0;
        self.solicit(context, id);
    }

    fn release(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_request += 1;
        let messages = Arc::clone(&self.messages);
        self.send(context, id, &messages.release);
    }

    fn handle_frame(plugin: &mut LeasePlugin<Self>, context: &mut Context<'_>, frame: &Frame<'_>) {
        let mac = frame.destination();
        let id = context.namespace.clients.by_mac(mac);
        let client = id.and_then(|id| Some((id, plugin.clients.get_mut(id)?)));
        let Some((id, client)) = client else {
            return;
        };
        let bytes = frame.payload();
        if bytes.len() < HEADER_BYTES {
            client.counters.rx_length_error += 1;
            return;
        }
        let Ok(message) = Dhcpv6Message::parse(bytes) else {
            client.counters.rx_parser_error += 1;
            return;
        };
        let packet = Ipv6View::new_unchecked(frame.packet());
        let local = context.client(id).map(|client| client.link_local());
        let Some(association) = client.check(&message, mac, local == Some(packet.destination()))
        else {
            return;
        };
        let reply = Reply {
            message,
            association,
            source: packet.source(),
        };
        client.handle_reply(context, id, &reply, &mut plugin.shared);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, id: ClientId) {
        let (retries, now) = (self.retries, context.now);
        match self.state.step(retries, REQUEST_RETRIES, self.times, now) {
            Step::Discover => self.solicit(context, id),
            Step::StartOver => self.start(context, id),
            Step::Request => {
                self.retries += 1;
                self.request(context, id);
            }
            Step::Renew { is_first } => {
                if is_first {
                    self.began = now;
                    self.counters.renew += 1;
                }
                self.renew(context, id);
            }
            Step::Rebind { is_first } => {
                self.counters.rebind += u32::from(is_first);
                self.rebind(context, id);
            }
            Step::Lose => self.lose(context, id),
        }
    }

    fn state(&self) -> State {
        self.state
    }

    fn timer(&self) -> TimerId {
        self.timer
    }

    fn counters(&mut self) -> &mut dyn Counters {
        &mut self.counters
    }
}

/// A message of a server to a client, about its association.
struct Reply<'r> {
    message: Dhcpv6Message<'r>,
    association: IdentityAssociation,
    source: Ipv6Addr,
}

/// What arrives.
impl Dhcpv6Client {
    /// What every message must have (RFC 8415 section 16); otherwise it is counted what it has not.
    fn check(
        &mut self,
        message: &Dhcpv6Message<'_>,
        mac: MacAddress,
        is_for_us: bool,
    ) -> Option<IdentityAssociation> {
        let counters = &mut self.counters;
        let error = match message.association {
            _ if !is_for_us => &mut counters.rx_wrong_destination,
            _ if message.xid != self.xid => &mut counters.rx_wrong_xid,
            _ if message.client_id != Some(&duid(mac)[..]) => &mut counters.rx_wrong_client_id,
            _ if message.status != StatusCode::SUCCESS => return Some(self.nothing()),
            None => &mut counters.rx_no_association,
            Some(association) if association.iaid != self.iaid => &mut counters.rx_wrong_iaid,
            Some(association) => return Some(association),
        };
        *error += 1;
        None
    }

    /// An association that says nothing: a server that refuses may leave it out.
    fn nothing(&self) -> IdentityAssociation {
        IdentityAssociation {
            iaid: self.iaid,
            renew_s: 0,
            rebind_s: 0,
            address: None,
            status: StatusCode::SUCCESS,
        }
    }

    fn handle_reply(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        reply: &Reply<'_>,
        last_server: &mut Option<Arc<[u8]>>,
    ) {
        let server = reply.message.server_id;
        let Some(server) = server.filter(|server| server.len() <= DUID_BYTES_MAX) else {
            self.counters.rx_no_server_id += 1;
            return;
        };
        match (self.state, reply.message.message_type) {
            (State::Selecting, Dhcpv6MessageType::ADVERTISE) => {
                if self.has_failed(reply) {
                    return;
                }
                self.counters.rx_advertise += 1;
                self.take_server(server, reply.source, last_server);
                self.state = State::Requesting;
                self.retries = 0;
                self.request(context, id);
            }
            (State::Requesting | State::Renewing, Dhcpv6MessageType::REPLY) => {
                if self.server.as_deref() != Some(server) {
                    self.counters.rx_wrong_server_id += 1;
                } else if self.server_address != reply.source {
                    self.counters.rx_wrong_server_address += 1;
                } else {
                    self.take_reply(context, id, reply);
                }
            }
            // Any server may answer who rebinds (RFC 8415 section 18.2.5).
            (State::Rebinding, Dhcpv6MessageType::REPLY) => {
                self.take_server(server, reply.source, last_server);
                self.take_reply(context, id, reply);
            }
            _ => self.counters.rx_unhandled += 1,
        }
    }

    fn take_server(
        &mut self,
        server: &[u8],
        source: Ipv6Addr,
        last_server: &mut Option<Arc<[u8]>>,
    ) {
        self.server_address = source;
        if self.server.as_deref() == Some(server) {
            return;
        }
        if last_server.as_deref() != Some(server) {
            *last_server = Some(server.into());
        }
        self.server.clone_from(last_server);
    }

    fn take_reply(&mut self, context: &mut Context<'_>, id: ClientId, reply: &Reply<'_>) {
        self.counters.rx_reply += 1;
        if self.has_failed(reply) {
            self.lose(context, id);
            return;
        }
        let Some(leased) = reply.association.address.filter(is_for_host) else {
            self.counters.rx_no_address += 1;
            self.lose(context, id);
            return;
        };
        if !context.set_dhcp_ipv6(id, leased.address) {
            // Another client has it.
            self.counters.rx_unhandled += 1;
            self.lose(context, id);
            return;
        }
        self.counters.notify += 1;
        self.address = leased.address;
        self.bind(context, id, &reply.association, &leased);
    }

    /// Whether a server refuses, counted by its reason.
    fn has_failed(&mut self, reply: &Reply<'_>) -> bool {
        let status = match reply.message.status {
            StatusCode::SUCCESS => reply.association.status,
            status => status,
        };
        let counters = &mut self.counters;
        let counter = match status {
            StatusCode::SUCCESS => return false,
            StatusCode::NO_ADDRESSES => &mut counters.status_no_addresses,
            StatusCode::NO_BINDING => &mut counters.status_no_binding,
            StatusCode::NOT_ON_LINK => &mut counters.status_not_on_link,
            StatusCode::USE_MULTICAST => &mut counters.status_use_multicast,
            StatusCode::NO_PREFIXES => &mut counters.status_no_prefixes,
            _ => &mut counters.status_unspecified,
        };
        *counter += 1;
        true
    }
}

/// What it does by itself.
impl Dhcpv6Client {
    fn set_timer(&mut self, context: &mut Context<'_>, id: ClientId, delay: Nanos) {
        context.cancel_timer(self.timer);
        self.timer = context.set_timer(delay, Some(id), 0);
    }

    /// The lease begins, or begins again.
    fn bind(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        association: &IdentityAssociation,
        leased: &LeasedAddress,
    ) {
        // RFC 8415 section 21.4 leaves it to the client when they are 0: not later than it recommends
        // to servers.
        let share = |parts: u32, most: u32| match leased.preferred_s {
            0 | INFINITE_S => most,
            preferred_s => most.min(preferred_s / 10 * parts),
        };
        let renew_s = match association.renew_s {
            0 => share(5, RENEW_S),
            renew_s => renew_s,
        };
        let renew_s = renew_s.max(1);
        let rebind_s = match association.rebind_s {
            0 => share(8, REBIND_S),
            rebind_s => rebind_s,
        };
        let rebind_s = match rebind_s {
            rebind_s if rebind_s < renew_s => renew_s.saturating_add(REBIND_AFTER_RENEW_S),
            rebind_s => rebind_s.max(renew_s.saturating_add(1)),
        };
        let later = |seconds| match seconds {
            INFINITE_S => Nanos::MAX,
            seconds => context.now.saturating_add(u64::from(seconds) * SECOND),
        };
        self.times = LeaseTimes {
            rebinds: later(rebind_s),
            expires: later(leased.valid_s.max(2)),
        };
        self.state = State::Bound;
        let renews = later(renew_s).min(self.times.expires);
        self.set_timer(context, id, renews - context.now);
    }

    /// The address may not be used any more.
    fn lose(&mut self, context: &mut Context<'_>, id: ClientId) {
        if self.state.has_lease() {
            context.set_dhcp_ipv6(id, Ipv6Addr::UNSPECIFIED);
        }
        let must_wait = self.state == State::Requesting;
        self.state = State::Selecting;
        if must_wait {
            // The server refused what it offered: it would do so again at once. The client has been
            // trying since its first message.
            self.server = None;
            self.retries = 0;
            self.set_timer(context, id, self.messages.intervals.first(0));
        } else {
            self.start(context, id);
        }
    }

    fn solicit(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_solicit += 1;
        let messages = Arc::clone(&self.messages);
        self.send(context, id, &messages.solicit);
        self.set_timer(context, id, messages.intervals.first(self.retries));
        self.retries = self.retries.saturating_add(1);
    }

    fn request(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_request += 1;
        let messages = Arc::clone(&self.messages);
        self.send(context, id, &messages.request);
        self.set_timer(context, id, messages.intervals.request);
    }

    fn renew(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_request += 1;
        let messages = Arc::clone(&self.messages);
        self.send(context, id, &messages.renew);
        self.set_timer(context, id, self.times.renew_delay(context.now));
    }

    fn rebind(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_request += 1;
        let messages = Arc::clone(&self.messages);
        self.send(context, id, &messages.rebind);
        self.set_timer(context, id, self.times.rebind_delay(context.now));
    }

    fn send(&self, context: &mut Context<'_>, id: ClientId, template: &Template) {
        let Some(client) = context.client(id) else {
            return;
        };
        let elapsed = (context.now - self.began) / (10 * MILLISECOND);
        let numbers = Numbers {
            mac: client.mac,
            xid: self.xid,
            iaid: self.iaid,
            elapsed: u16::try_from(elapsed).unwrap_or(u16::MAX),
            address: self.address.octets(),
            server: self.server.as_deref(),
        };
        let macs = Macs {
            source: client.mac,
            destination: MacAddress::of_group(ALL_SERVERS),
        };
        let source = SocketAddrV6::new(client.link_local(), CLIENT_PORT, 0, 0);
        let destination = SocketAddrV6::new(ALL_SERVERS, SERVER_PORT, 0, 0);
        let bytes = template.bytes(&numbers);
        let service = Service::hops(HOP_LIMIT);
        context.send_udp_ipv6(macs, service, source, destination, bytes, |message| {
            template.write(message, &numbers);
        });
    }
}

/// Whether a host may have an address.
fn is_for_host(leased: &LeasedAddress) -> bool {
    let address = leased.address;
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

#[cfg(test)]
mod tests;
