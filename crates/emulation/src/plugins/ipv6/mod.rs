//! IPv6 of clients: neighbor discovery ([`nd`]), multicast listener discovery ([`mld`]), echo and
//! pings (ICMPv6, RFC 4443).

mod messages;
mod mld;
mod nd;

use std::net::Ipv6Addr;

use allosaur_api::{Access, Command, Empty, Error, Example};
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::{pseudo_header_v6, update_u16};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::{self, Ipv6Header};
use serde_json::Value;

use crate::client::ClientId;
use crate::counters::{CounterParams, CounterReport, Counters};
use crate::frame::{Frame, FrameKind};
use crate::iter::{Page, PageParams};
use crate::multicast::Family;
use crate::multicast::count::Count;
use crate::multicast::membership::{self, HasGroups, Membership};
use crate::namespace::Namespace;
use crate::ping::{EchoRequest, PingParams, Pings, write_payload};
use crate::plugin::{Context, Event, Plugin, PluginError, Timeout};
use crate::read::{self, Done};
use crate::spec::{
    Keys, OfClient, OfNamespace, Scope, Spec, about_client, about_namespace, namespace_counters,
};
use mld::Ipv6;
use nd::{NdNeighbor, NeighborDiscovery};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "ipv6",
    frames: &[FrameKind::Icmpv6],
    commands: &[
        namespace_counters::<Ipv6Plugin>("ipv6_ns_cnt", Access::Api),
        membership::join_row::<Ipv6Plugin>(
            "ipv6_mld_ns_add",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [[255, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]]}"#,
                result: r#"true"#,
            },
        ),
        membership::leave_row::<Ipv6Plugin>(
            "ipv6_mld_ns_remove",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [[255, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]]}"#,
                result: r#"true"#,
            },
        ),
        membership::add_sources_row::<Ipv6Plugin>(
            "ipv6_mld_ns_sg_add",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [{"g": [255, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], "s": [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]}]}"#,
                result: r#"true"#,
            },
        ),
        membership::remove_sources_row::<Ipv6Plugin>(
            "ipv6_mld_ns_sg_remove",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [{"g": [255, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], "s": [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]}]}"#,
                result: r#"true"#,
            },
        ),
        membership::page_row::<Ipv6Plugin>(
            "ipv6_mld_ns_iter",
            Example {
                params: r#"{"tun": {"vport": 0}, "reset": true, "count": 255}"#,
                result: r#"{"empty": false, "stopped": false, "data": [{"ipv6": [255, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], "management": true, "refc": 0, "mode": 1}]}"#,
            },
        ),
        membership::settings_row::<Ipv6Plugin>("ipv6_mld_ns_get_cfg"),
        membership::configure_row::<Ipv6Plugin>("ipv6_mld_ns_set_cfg"),
        Command {
            name: "ipv6_nd_ns_iter",
            doc: "Lists the neighbors that the clients of a namespace know or look for, a page at a time.",
            errors: &["neighbors have come or gone since the page before"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "reset": true, "count": 255}"#,
                result: r#"{"empty": false, "stopped": false, "data": [{"ipv6": [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "refc": 1, "state": 18, "resolve": true, "mac": [0, 0, 2, 0, 0, 1]}]}"#,
            },
            ..about_namespace(&OfNamespace(Ipv6Plugin::neighbors))
        },
        Command {
            name: "ipv6_start_ping",
            access: Access::Open,
            doc: "Has a client ping an address. It has one ping at a time.",
            errors: &[
                "the client is pinging already",
                "there is no address to ping",
                "the client has not the address to ping from",
            ],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "amount": 5, "pace": 1, "dst": [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "timeout": 5, "payloadSize": 16}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Ipv6Plugin::start_ping))
        },
        Command {
            name: "ipv6_stop_ping",
            access: Access::Open,
            doc: "Ends a client's ping.",
            errors: &["the client is not pinging"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Ipv6Plugin::stop_ping))
        },
        Command {
            name: "ipv6_get_ping_stats",
            access: Access::Open,
            doc: "Gives the counters of a client's ping, or clears those of replies.",
            errors: &["the client is not pinging, or has ended"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"{"icmp_ping_stats": {"requestsSent": 5, "repliesInOrder": 5, "avgLatency": 210, "minLatency": 100, "maxLatency": 320}}"#,
            },
            ..about_client(&OfClient(Ipv6Plugin::ping_counters))
        },
    ],
    counters: &[
        ("nd", nd::NdCounters::META),
        ("mld", <Ipv6 as Family>::META),
        ("", PingCounters::META),
    ],
    keys: Keys::Only(&[
        "mtu",
        "dmac",
        "vec",
        "version",
        "nd_timer",
        "nd_timer_disable",
    ]),
    scope: Scope::Namespace,
    create: |_, init| {
        Ok(Box::new(Ipv6Plugin {
            counters: PingCounters::default(),
            discovery: NeighborDiscovery::new(),
            membership: Membership::new(init, TAG_MLD)?,
            pings: Pings::new(TAG_PING),
        }))
    },
};

/// The timer of the namespace for MLD, beside those of [`nd`].
const TAG_MLD: u32 = 0;
/// The timer of a client for its ping, beside that of [`nd`].
const TAG_PING: u32 = 1;

const DESTINATION_UNREACHABLE: u8 = 1;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;

/// Bytes of an ICMPv6 header, and of an IPv6 header.
const ICMP_BYTES: usize = 8;
const IP_BYTES: usize = ipv6::HEADER_BYTES;

crate::counters! {
    /// Counters of echo and pings in a namespace.
    struct PingCounters: u64, "pingv6" {
        rx_query: "pktRxIcmpQuery", "rx query", "ops", Info;
        tx_response: "pktTxIcmpResponse", "tx response", "ops", Info;
        tx_query: "pktTxIcmpQuery", "tx query", "ops", Info;
        rx_response: "pktRxIcmpResponse", "rx response", "ops", Info;
        too_short: "pktRxErrTooShort", "rx too short", "ops", Info;
        unhandled: "pktRxErrUnhandled", "rx wrong opcode", "ops", Info;
        no_client: "pktRxNoClientUnhandled", "rx no client ", "ops", Info;
        bad_source: "pktRxErrMulticastB", "src ip is not valid ", "ops", Info;
        rx_unreachable: "pktRxIcmpDstUnreachable", "rx destination unreachable", "ops", Info;
    }
}

/// IPv6 of a namespace.
#[derive(Debug)]
struct Ipv6Plugin {
    counters: PingCounters,
    discovery: NeighborDiscovery,
    membership: Membership<Ipv6>,
    /// Source and destination of each ping.
    pings: Pings<(Ipv6Addr, Ipv6Addr)>,
}

impl Plugin for Ipv6Plugin {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let mld = &mut self.membership;
        self.discovery.add_client(context, client, init, mld)?;
        self.membership.add_client(context, client);
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        let mld = &mut self.membership;
        self.discovery.remove_client(context, client, mld);
        self.pings.remove_client(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let segment = frame.segment();
        let (Ok(ip), Some(&kind)) = (Ipv6Header::parse(frame.packet()), segment.first()) else {
            return;
        };
        match kind {
            ECHO_REQUEST => self.answer_echo(context, frame, &ip),
            ECHO_REPLY => self.handle_reply(context, frame),
            DESTINATION_UNREACHABLE => self.handle_unreachable(context, frame),
            NEIGHBOR_SOLICITATION => self.discovery.handle_solicitation(context, frame, &ip),
            NEIGHBOR_ADVERTISEMENT => self.discovery.handle_advertisement(context, frame, &ip),
            ROUTER_ADVERTISEMENT => self.discovery.handle_router(context, frame, &ip),
            ROUTER_SOLICITATION => self.discovery.handle_router_solicitation(),
            mld::QUERY => {
                let counts = &mut self.membership.host.counts;
                if let Some(query) = mld::query(frame.packet(), &ip, segment, counts) {
                    self.membership.handle_query(context, &query);
                }
            }
            mld::REPORT1 | mld::DONE => {
                self.membership.host.counts.count(Count::ReportsReceived);
            }
            _ => self.counters.unhandled += 1,
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        match (timeout.client, timeout.tag) {
            (None, TAG_MLD) => self.membership.handle_timeout(context),
            (None, tag) => self.discovery.handle_timeout(context, tag),
            (Some(client), TAG_PING) => {
                if let Some(request) = self.pings.handle_timeout(context, client) {
                    self.send_request(context, client, &request);
                }
            }
            (Some(client), _) => self.discovery.handle_period(context, client),
        }
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        let mld = &mut self.membership;
        self.discovery.handle_event(context, client, event, mld);
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if client.is_none() {
            show(0, self.discovery.counters());
            show(1, &mut self.membership.host.counts);
            show(2, &mut self.counters);
        }
    }

    fn counters_cleared(&mut self) {
        self.discovery.clear_cache_counts();
    }

    fn table_bytes(&self) -> usize {
        self.discovery.table_bytes()
            + self.membership.host.groups().table_bytes()
            + self.pings.table_bytes()
    }
}

impl HasGroups for Ipv6Plugin {
    type Family = Ipv6;

    fn membership(&mut self) -> &mut Membership<Ipv6> {
        &mut self.membership
    }
}

impl Ipv6Plugin {
    fn neighbors(
        &mut self,
        _: &mut Context<'_>,
        params: PageParams,
    ) -> Result<Page<NdNeighbor>, Error> {
        self.discovery.page(params)
    }

    fn stop_ping(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        _: Empty,
    ) -> Result<Done, Error> {
        self.pings.stop(context, id)
    }

    fn ping_counters(
        &mut self,
        _: &mut Context<'_>,
        id: ClientId,
        params: CounterParams,
    ) -> Result<CounterReport, Error> {
        self.pings.report(id, &params)
    }

    /// Answers an echo request with its own frame, turned around (RFC 4443 section 4.2): the data
    /// is the same, while extension headers are the asker's own, and not copied.
    fn answer_echo(&mut self, context: &mut Context<'_>, frame: &Frame<'_>, ip: &Ipv6Header) {
        self.counters.rx_query += 1;
        if ip.source.is_multicast() || ip.source.is_unspecified() {
            self.counters.bad_source += 1;
            return;
        }
        let owner = nd::owner(context, ip.destination);
        let client = owner.and_then(|id| context.client(id));
        if client.is_none_or(|client| client.mac != frame.destination()) {
            self.counters.no_client += 1;
            return;
        }
        self.counters.tx_response += 1;
        let network = usize::from(frame.layout.network_offset);
        let transport = usize::from(frame.layout.transport_offset);
        let header_end = network + IP_BYTES;
        let extensions = (transport - header_end) as u16;
        let head = &frame.bytes[..header_end];
        let reply = context.send_joined(head, &frame.bytes[transport..]);
        let (destination, rest) = reply.split_at_mut(6);
        destination.swap_with_slice(&mut rest[..6]);
        let payload_bytes = ip.payload_bytes.saturating_sub(extensions);
        reply[network + 4..network + 6].copy_from_slice(&payload_bytes.to_be_bytes());
        reply[network + 6] = IpProtocol::ICMPV6.0;
        let addresses = &mut reply[network + 8..header_end];
        let (source, destination) = addresses.split_at_mut(16);
        source.swap_with_slice(destination);
        let mut view = Icmpv6View::new_unchecked(&mut reply[header_end..]);
        let (old, code) = (view.checksum(), view.code());
        let word = |kind| u16::from_be_bytes([kind, code]);
        let sum = update_u16(old, word(ECHO_REQUEST), word(ECHO_REPLY));
        view.set_kind(ECHO_REPLY, code);
        view.set_checksum(sum);
    }

    fn handle_reply(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(Icmpv6Header::EchoReply {
            identifier,
            sequence,
        }) = Icmpv6Header::parse(frame.segment())
        else {
            self.counters.unhandled += 1;
            return;
        };
        let client = context.namespace.clients.by_mac(frame.destination());
        let Some(client) = client.filter(|&client| context.has_this(client)) else {
            self.counters.no_client += 1;
            return;
        };
        self.counters.rx_response += 1;
        let numbers = (identifier, sequence);
        self.pings
            .handle_reply(context.now, client, numbers, frame.payload());
    }

    /// An error about a packet, of which it quotes the beginning: the request of a ping.
    fn handle_unreachable(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        self.counters.rx_unreachable += 1;
        let quoted = frame.payload();
        let Some(request) = quoted.get(IP_BYTES..IP_BYTES + ICMP_BYTES) else {
            self.counters.too_short += 1;
            return;
        };
        let client = context.namespace.clients.by_mac(frame.destination());
        let is_request = quoted[6] == IpProtocol::ICMPV6.0 && request[0] == ECHO_REQUEST;
        if let Some(client) = client.filter(|_| is_request) {
            let identifier = u16::from_be_bytes([request[4], request[5]]);
            self.pings.handle_unreachable(client, identifier);
        }
    }

    fn start_ping(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        params: PingParams<read::Ipv6>,
    ) -> Result<Done, Error> {
        let request = params.check("ApiIpv6StartPingHandler")?;
        let (source, destination) = (Some(params.src.0), Some(params.dst.0));
        let Some(client) = context.client(id) else {
            return Err(Error::execution("There is no such client."));
        };
        let namespace = &*context.namespace;
        let local = client.link_local();
        let source = match source.filter(|source| !source.is_unspecified()) {
            None => nd::global_addresses(namespace, client)
                .next()
                .unwrap_or(local),
            Some(source) => {
                let mut own = nd::global_addresses(namespace, client).chain([local]);
                let found = own.find(|own| *own == source);
                found.ok_or_else(|| {
                    Error::execution("Can't use this source IPv6 for this client.")
                })?
            }
        };
        let gateway = Some(client.gateway_ipv6).filter(|gateway| !gateway.is_unspecified());
        let router = || namespace.router.map(|router| router.address);
        let destination = destination.filter(|given| !given.is_unspecified());
        let destination = destination.or(gateway).or_else(router);
        let destination = destination.ok_or_else(|| {
            Error::execution("The client has no IPv6 gateway to ping; give 'dst'.")
        })?;
        let target = (source, destination);
        if let Some(request) = self.pings.start(context, id, target, request)? {
            self.send_request(context, id, &request);
        }
        Ok(Done)
    }

    /// Sends a request by way of the client's gateway. While that is not known, to the MAC address
    /// of all zeros, as the reference does.
    fn send_request(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        request: &EchoRequest<(Ipv6Addr, Ipv6Addr)>,
    ) {
        let Some(client) = context.client(id) else {
            return;
        };
        let gateway = client.gateway_mac_ipv6.unwrap_or(MacAddress::ZERO);
        let (mac, now) = (client.mac, context.now);
        let (source, destination) = request.target;
        let header = Icmpv6Header::EchoRequest {
            identifier: request.identifier,
            sequence: request.sequence,
        };
        let bytes = ICMP_BYTES + usize::from(request.payload_bytes);
        // A payload of almost 64 KiB has no room for the header; nothing that long passes a link.
        let bytes = bytes.min(usize::from(u16::MAX));
        let ip = Ipv6Header::new(source, destination, IpProtocol::ICMPV6);
        self.counters.tx_query += 1;
        let payload = context.send_ipv6(mac, gateway, &ip, bytes);
        header.emit(payload);
        write_payload(now, &mut payload[ICMP_BYTES..]);
        let sum = pseudo_header_v6(source, destination, IpProtocol::ICMPV6, bytes as u32);
        Icmpv6View::new_unchecked(payload).fill_checksum(sum);
    }
}

#[cfg(test)]
mod tests;
