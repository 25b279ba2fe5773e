//! DHCP for IPv4, the client (RFC 2131 section 4.4).
//!
//! A client without a lease asks all servers (DISCOVER), takes the first offer, and has its address when
//! that server agrees. It asks its server for more time at T1, any server at T2, and begins anew when the
//! lease is over. What it sends is made of a template that clients with the same init JSON share.

mod messages;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use allosaur_api::Access;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{
    CLIENT_PORT, DhcpHeader, DhcpOptions, HEADER_BYTES, MessageType, REPLY, SERVER_PORT,
};
use allosaur_packet::network::ipv4::Ipv4View;

use self::messages::{Messages, Numbers, Template};
use crate::client::ClientId;
use crate::counters::Counters;
use crate::frame::{Frame, FrameKind};
use crate::plugin::Context;
use crate::plugins::lease::{INFINITE_S, LeaseClient, LeasePlugin, LeaseTimes, State, Step};
use crate::spec::{Keys, Scope, Spec, client_counters};
use crate::timers::TimerId;
use crate::udp::{Macs, Service, TIME_TO_LIVE};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "dhcp",
    frames: &[FrameKind::Dhcp],
    commands: &[client_counters::<LeasePlugin<DhcpClient>>(
        "dhcp_client_cnt",
        Access::Api,
    )],
    counters: &[("", DhcpCounters::META)],
    keys: Keys::Only(&["timerd", "timero", "options"]),
    scope: Scope::Client,
    create: |_, _| Ok(Box::<LeasePlugin<DhcpClient>>::default()),
};

/// So often a REQUEST is sent again before the client looks for servers anew.
const REQUEST_RETRIES: u8 = 5;
/// RFC 2131 section 3.1 item 5: who declined an address waits this long.
const DECLINE_WAIT: Nanos = 10 * SECOND;
/// T1 and T2 when the server says neither them nor the length of the lease.
const RENEWAL_S: u32 = 1811;
const REBINDING_S: u32 = 3200;

crate::counters! {
    /// Counters of a client.
    pub(crate) struct DhcpCounters: u32, "dhcp" {
        rx_broadcast: "pktRxBroadcast", "Rx broadcast L2, should be unicast ", "pkts", Error;
        tx_discover: "pktTxDiscover", "Tx discover ", "pkts", Info;
        rx_offer: "pktRxOffer", "rx offer ", "pkts", Info;
        tx_request: "pktTxRequest", "tx request", "pkts", Info;
        rx_ack: "pktRxAck", "ack from the server", "pkts", Info;
        rx_length_error: "pktRxLenErr", "len error", "pkts", Error;
        rx_parser_error: "pktRxParserErr", "parser error", "pkts", Error;
        rx_unhandled: "pktRxUnhandled", "unhandled dhcp packet", "pkts", Error;
        notify: "pktRxNotify", "notify with new IPv4 addr", "pkts", Info;
        renew: "pktRxRenew", "renew", "pkts", Info;
        rx_nak: "pktRxNack", "nack", "pkts", Error;
        rebind: "pktRxRebind", "Rx rebind", "pkts", Error;
        rx_wrong_xid: "pktRxWrongXid", "wrong xid ignore", "pkts", Error;
        rx_wrong_hardware: "pktRxWrongHwType", "wrong hw type", "pkts", Error;
        rx_wrong_address: "pktRxWrongIP", "rx with wrong dest ip", "pkts", Error;
    }
}

/// A client, small: there may be a million.
#[derive(Debug)]
struct DhcpClient {
    messages: Arc<Messages>,
    times: LeaseTimes,
    timer: TimerId,
    xid: u32,
    /// The address that was offered or leased.
    address: Ipv4Addr,
    server: Ipv4Addr,
    server_mac: MacAddress,
    /// Messages to all servers that were not answered, or repeated ones to the server that was chosen.
    retries: u8,
    state: State,
    counters: DhcpCounters,
}

/// A message of a server.
struct Reply<'r> {
    header: DhcpHeader,
    options: DhcpOptions<'r>,
    source_mac: MacAddress,
    destination: Ipv4Addr,
}

impl LeaseClient for DhcpClient {
    type Messages = Messages;
    type Shared = ();
    const LEASE: &'static str = "a DHCP lease";
    const IS_IPV6: bool = false;

    fn new(context: &mut Context<'_>, messages: Arc<Messages>) -> Self {
        DhcpClient {
            messages,
            times: LeaseTimes::NEVER,
            timer: TimerId::NONE,
            xid: context.draw("dhcp xid"),
            address: Ipv4Addr::UNSPECIFIED,
            server: Ipv4Addr::UNSPECIFIED,
            server_mac: MacAddress::ZERO,
            retries: 0,
            state: State::Selecting,
            counters: DhcpCounters::default(),
        }
    }

    fn start(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.discover(context, id);
    }

    fn release(&mut self, context: &mut Context<'_>, id: ClientId) {
        let messages = Arc::clone(&self.messages);
        self.send_to_server(context, id, &messages.release);
    }

    fn handle_frame(plugin: &mut LeasePlugin<Self>, context: &mut Context<'_>, frame: &Frame<'_>) {
        let message = frame.payload();
        let header = DhcpHeader::parse(message);
        let to = frame.destination();
        let mac = match (&header, to.is_broadcast()) {
            (_, false) => to,
            (Ok(header), true) => match header.chaddr {
                Some(mac) => mac,
                None => return,
            },
            (Err(_), true) => return,
        };
        let id = context.namespace.clients.by_mac(mac);
        let client = id.and_then(|id| Some((id, plugin.clients.get_mut(id)?)));
        let Some((id, client)) = client else {
            return;
        };
        client.counters.rx_broadcast += u32::from(to.is_broadcast());
        if message.len() < HEADER_BYTES {
            client.counters.rx_length_error += 1;
            return;
        }
        let (Ok(header), Ok(options)) = (header, DhcpOptions::parse(message)) else {
            client.counters.rx_parser_error += 1;
            return;
        };
        let reply = Reply {
            header,
            options,
            source_mac: frame.source(),
            destination: Ipv4View::new_unchecked(frame.packet()).destination(),
        };
        client.handle_reply(context, id, mac, &reply);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, id: ClientId) {
        let (retries, now) = (self.retries, context.now);
        match self.state.step(retries, REQUEST_RETRIES, self.times, now) {
            Step::Discover => self.discover(context, id),
            Step::StartOver => self.start_over(context, id),
            Step::Request => {
                self.retries += 1;
                self.request(context, id);
            }
            Step::Renew { is_first } => {
                self.counters.renew += u32::from(is_first);
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

/// What arrives.
impl DhcpClient {
    fn handle_reply(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        mac: MacAddress,
        reply: &Reply<'_>,
    ) {
        let Some(chaddr) = reply.header.chaddr else {
            self.counters.rx_wrong_hardware += 1;
            return;
        };
        if reply.header.xid != self.xid {
            self.counters.rx_wrong_xid += 1;
            return;
        }
        let Some(message_type) = reply.options.message_type else {
            self.counters.rx_parser_error += 1;
            return;
        };
        if chaddr != mac || reply.header.operation != REPLY {
            self.counters.rx_unhandled += 1;
            return;
        }
        match (self.state, message_type) {
            (State::Selecting, MessageType::OFFER) => self.take_offer(context, id, reply),
            (State::Requesting | State::Renewing | State::Rebinding, MessageType::ACK) => {
                self.take_ack(context, id, reply);
            }
            (State::Requesting | State::Renewing | State::Rebinding, MessageType::NAK) => {
                self.take_nak(context, id, reply);
            }
            _ => self.counters.rx_unhandled += 1,
        }
    }

    fn take_offer(&mut self, context: &mut Context<'_>, id: ClientId, offer: &Reply<'_>) {
        let (Some(server), true) = (offer.options.server_id, is_host(offer.header.yiaddr)) else {
            self.counters.rx_unhandled += 1;
            return;
        };
        self.counters.rx_offer += 1;
        self.address = offer.header.yiaddr;
        self.server = server;
        self.server_mac = offer.source_mac;
        self.state = State::Requesting;
        self.retries = 0;
        self.request(context, id);
    }

    fn take_ack(&mut self, context: &mut Context<'_>, id: ClientId, ack: &Reply<'_>) {
        let Some(server) = self.server_of(ack) else {
            self.counters.rx_unhandled += 1;
            return;
        };
        let address = ack.header.yiaddr;
        let to = ack.destination;
        if !is_host(address) || !(to == address || to.is_broadcast()) {
            self.counters.rx_wrong_address += 1;
            return;
        }
        self.counters.rx_ack += 1;
        self.address = address;
        self.server = server;
        self.server_mac = ack.source_mac;
        if !context.set_ipv4(id, address) {
            self.decline(context, id);
            return;
        }
        context.set_gateway_ipv4(id, ack.options.router.unwrap_or(server));
        self.counters.notify += 1;
        self.bind(context, id, &ack.options);
    }

    /// The server of an answer, if it is one to listen to: the one that was chosen, but any one while
    /// the client rebinds (RFC 2131 section 4.4.5).
    fn server_of(&self, reply: &Reply<'_>) -> Option<Ipv4Addr> {
        let server = reply.options.server_id;
        server.filter(|&server| server == self.server || self.state == State::Rebinding)
    }

    fn take_nak(&mut self, context: &mut Context<'_>, id: ClientId, nak: &Reply<'_>) {
        if nak.options.server_id.is_some() && self.server_of(nak).is_none() {
            self.counters.rx_unhandled += 1;
            return;
        }
        self.counters.rx_nak += 1;
        self.lose(context, id);
    }
}

/// What it does by itself.
impl DhcpClient {
    fn set_timer(&mut self, context: &mut Context<'_>, id: ClientId, delay: Nanos) {
        context.cancel_timer(self.timer);
        self.timer = context.set_timer(delay, Some(id), 0);
    }

    /// The lease begins, or begins again.
    fn bind(&mut self, context: &mut Context<'_>, id: ClientId, options: &DhcpOptions<'_>) {
        let lease_s = options.lease_s.unwrap_or(INFINITE_S).max(2);
        let (half, most) = match lease_s {
            INFINITE_S => (RENEWAL_S, REBINDING_S),
            lease_s => (lease_s / 2, lease_s - lease_s / 8),
        };
        let renewal_s = options.renewal_s.unwrap_or(half).max(1);
        let rebinding_s = options.rebinding_s.unwrap_or(most);
        let rebinding_s = rebinding_s.max(renewal_s.saturating_add(1));
        self.times = LeaseTimes {
            rebinds: context.now.saturating_add(u64::from(rebinding_s) * SECOND),
            expires: match lease_s {
                INFINITE_S => Nanos::MAX,
                lease_s => context.now.saturating_add(u64::from(lease_s) * SECOND),
            },
        };
        self.state = State::Bound;
        let left = self.times.expires - context.now;
        self.set_timer(context, id, left.min(u64::from(renewal_s) * SECOND));
    }

    /// The address may not be used any more.
    fn lose(&mut self, context: &mut Context<'_>, id: ClientId) {
        if self.state.has_lease() {
            context.set_ipv4(id, Ipv4Addr::UNSPECIFIED);
            context.set_gateway_ipv4(id, Ipv4Addr::UNSPECIFIED);
        }
        self.start_over(context, id);
    }

    /// Asks all servers, as if it came now.
    fn start_over(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.retries = 0;
        self.discover(context, id);
    }

    fn discover(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.state = State::Selecting;
        self.counters.tx_discover += 1;
        let messages = Arc::clone(&self.messages);
        self.broadcast(context, id, &messages.discover);
        self.set_timer(context, id, messages.intervals.first(self.retries));
        self.retries = self.retries.saturating_add(1);
    }

    fn request(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_request += 1;
        let messages = Arc::clone(&self.messages);
        self.broadcast(context, id, &messages.request);
        self.set_timer(context, id, messages.intervals.request);
    }

    fn renew(&mut self, context: &mut Context<'_>, id: ClientId) {
        let messages = Arc::clone(&self.messages);
        self.send_to_server(context, id, &messages.renew);
        self.set_timer(context, id, self.times.renew_delay(context.now));
    }

    fn rebind(&mut self, context: &mut Context<'_>, id: ClientId) {
        self.counters.tx_request += 1;
        let messages = Arc::clone(&self.messages);
        self.broadcast(context, id, &messages.renew);
        self.set_timer(context, id, self.times.rebind_delay(context.now));
    }

    /// Another client has the address (RFC 2131 section 3.1 item 5).
    fn decline(&mut self, context: &mut Context<'_>, id: ClientId) {
        if self.state.has_lease() {
            context.set_ipv4(id, Ipv4Addr::UNSPECIFIED);
            context.set_gateway_ipv4(id, Ipv4Addr::UNSPECIFIED);
        }
        (self.state, self.retries) = (State::Waiting, 0);
        let messages = Arc::clone(&self.messages);
        self.broadcast(context, id, &messages.decline);
        self.set_timer(context, id, DECLINE_WAIT);
    }

    /// Sends to all servers, from no address. Who rebinds says which one it has.
    fn broadcast(&self, context: &mut Context<'_>, id: ClientId, template: &Template) {
        let to = (MacAddress::BROADCAST, Ipv4Addr::BROADCAST);
        self.send(context, id, template, Ipv4Addr::UNSPECIFIED, to);
    }

    /// Sends to the server of the lease, from its address.
    fn send_to_server(&mut self, context: &mut Context<'_>, id: ClientId, template: &Template) {
        self.counters.tx_request += 1;
        let to = (self.server_mac, self.server);
        self.send(context, id, template, self.address, to);
    }

    fn send(
        &self,
        context: &mut Context<'_>,
        id: ClientId,
        template: &Template,
        source: Ipv4Addr,
        (mac, destination): (MacAddress, Ipv4Addr),
    ) {
        let Some(client) = context.client(id) else {
            return;
        };
        let numbers = Numbers {
            mac: client.mac,
            xid: self.xid,
            ciaddr: if self.state.has_lease() {
                self.address
            } else {
                Ipv4Addr::UNSPECIFIED
            },
            requested: self.address,
            server: self.server,
        };
        let macs = Macs {
            source: client.mac,
            destination: mac,
        };
        let source = SocketAddrV4::new(source, CLIENT_PORT);
        let destination = SocketAddrV4::new(destination, SERVER_PORT);
        let bytes = template.bytes();
        let service = Service::hops(TIME_TO_LIVE);
        context.send_udp_ipv4(macs, service, source, destination, bytes, |message| {
            template.write(message, &numbers);
        });
    }
}

/// Whether a host may have an address.
fn is_host(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

#[cfg(test)]
mod tests;
