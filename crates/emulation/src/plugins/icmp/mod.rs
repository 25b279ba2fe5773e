//! ICMP for IPv4: answers to echo and timestamp requests, and pings.

use std::net::Ipv4Addr;

use allosaur_api::{Access, Command, Empty, Error, Example};
use allosaur_engine::time::MILLISECOND;
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::update_u16;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4View};
use serde_json::Value;

use crate::client::ClientId;
use crate::counters::{CounterParams, CounterReport, Counters};
use crate::frame::{Frame, FrameKind};
use crate::namespace::Namespace;
use crate::ping::{EchoRequest, PingParams, Pings, write_payload};
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::read::{Done, Ipv4};
use crate::spec::{Keys, OfClient, Scope, Spec, about_client, namespace_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "icmp",
    frames: &[FrameKind::Icmpv4],
    commands: &[
        namespace_counters::<Icmp>("icmp_ns_cnt", Access::Open),
        Command {
            name: "icmp_c_start_ping",
            access: Access::Open,
            doc: "Has a client ping an address. It has one ping at a time.",
            errors: &[
                "the client is pinging already",
                "there is no address to ping",
                "requests are longer than the client's MTU",
            ],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "amount": 5, "pace": 1, "dst": [1, 1, 1, 1], "timeout": 5, "payloadSize": 16}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Icmp::start_ping))
        },
        Command {
            name: "icmp_c_stop_ping",
            access: Access::Open,
            doc: "Ends a client's ping.",
            errors: &["the client is not pinging"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Icmp::stop_ping))
        },
        Command {
            name: "icmp_c_get_ping_stats",
            access: Access::Open,
            doc: "Gives the counters of a client's ping, or clears those of replies.",
            errors: &["the client is not pinging, or has ended"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"{"icmp_ping_stats": {"requestsSent": 5, "repliesInOrder": 5, "avgLatency": 210, "minLatency": 100, "maxLatency": 320}}"#,
            },
            ..about_client(&OfClient(Icmp::ping_counters))
        },
    ],
    counters: &[("", IcmpCounters::META)],
    keys: Keys::Only(&[]),
    scope: Scope::Client,
    create: |_, _| Ok(Box::new(Icmp::new())),
};

crate::counters! {
    /// Counters of ICMP in a namespace.
    pub(crate) struct IcmpCounters: u64, "icmp" {
        rx_query: "pktRxIcmpQuery", "rx query", "ops", Info;
        tx_response: "pktTxIcmpResponse", "tx response", "ops", Info;
        tx_query: "pktTxIcmpQuery", "tx query", "ops", Info;
        rx_response: "pktRxIcmpResponse", "rx response", "ops", Info;
        rx_too_short: "pktRxErrTooShort", "rx too short", "ops", Info;
        rx_unhandled: "pktRxErrUnhandled", "rx wrong opcode", "ops", Info;
        rx_no_client: "pktRxNoClientUnhandled", "rx no client ", "ops", Info;
        rx_not_unicast: "pktRxErrMulticastB", "src ip is not valid ", "ops", Info;
        rx_unreachable: "pktRxIcmpDstUnreachable", "rx destination unreachable", "ops", Info;
    }
}

const ECHO_REPLY: u8 = 0;
const DESTINATION_UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const TIMESTAMP_REQUEST: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;
/// Bytes of the header of each message, and of a timestamp message.
const HEADER_BYTES: usize = 8;
const TIMESTAMP_BYTES: usize = 20;
/// What the reference writes as the identification of each packet.
const IDENTIFICATION: u16 = 0x00cc;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// ICMP in a namespace.
struct Icmp {
    counters: IcmpCounters,
    /// The destination of each ping.
    pings: Pings<Ipv4Addr>,
}

impl Plugin for Icmp {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        _client: ClientId,
        _init: &Value,
    ) -> Result<(), PluginError> {
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, client: ClientId) {
        self.pings.remove_client(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let segment = frame.segment();
        match segment.first() {
            Some(&ECHO_REQUEST) => self.answer(context, frame),
            Some(&TIMESTAMP_REQUEST) if segment.len() < TIMESTAMP_BYTES => {
                self.counters.rx_too_short += u64::from(!frame.is_copy);
            }
            Some(&TIMESTAMP_REQUEST) => self.answer(context, frame),
            Some(&ECHO_REPLY) => self.receive_reply(context, frame),
            Some(&DESTINATION_UNREACHABLE) => self.receive_unreachable(context, frame),
            _ => self.counters.rx_unhandled += u64::from(!frame.is_copy),
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let Some(client) = timeout.client else {
            return;
        };
        if let Some(request) = self.pings.handle_timeout(context, client) {
            self.send_request(context, client, &request);
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if client.is_none() {
            show(0, &mut self.counters);
        }
    }

    fn table_bytes(&self) -> usize {
        self.pings.table_bytes()
    }
}

impl Icmp {
    fn new() -> Icmp {
        Icmp {
            counters: IcmpCounters::default(),
            pings: Pings::new(0),
        }
    }

    /// Answers a request to a client by the same frame, sent back.
    #[inline]
    fn answer(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let packet = Ipv4View::new_unchecked(frame.packet());
        let (source, destination) = (packet.source(), packet.destination());
        let client = context.namespace.clients.by_ipv4(destination);
        let client = client.filter(|&client| context.has_this(client));
        let Some(client) = client.and_then(|client| context.client(client)) else {
            self.counters.rx_no_client += u64::from(!frame.is_copy);
            return;
        };
        if client.mac != frame.destination() || source.is_multicast() || source.is_broadcast() {
            self.counters.rx_not_unicast += 1;
            return;
        }
        self.counters.rx_query += 1;
        self.counters.tx_response += 1;
        let of_day_ms = context.unix_time() / MILLISECOND % DAY_MS;
        let network = usize::from(frame.layout.network_offset);
        let message = usize::from(frame.layout.transport_offset);
        let end = usize::from(frame.layout.end_offset);
        let reply = context.send_copy(frame.bytes);
        reply.copy_within(6..12, 0);
        reply[6..12].copy_from_slice(&frame.bytes[..6]);
        reply[network + 12..network + 16].copy_from_slice(&destination.octets());
        reply[network + 16..network + 20].copy_from_slice(&source.octets());
        let mut view = Icmpv4View::new_unchecked(&mut reply[message..end]);
        if view.kind() == ECHO_REQUEST {
            let asked = u16::from_be_bytes([ECHO_REQUEST, view.code()]);
            let answered = u16::from_be_bytes([ECHO_REPLY, view.code()]);
            let checksum = update_u16(view.checksum(), asked, answered);
            view.set_kind(ECHO_REPLY, view.code());
            view.set_checksum(checksum);
        } else {
            view.set_kind(TIMESTAMP_REPLY, view.code());
            let time = (of_day_ms as u32).to_be_bytes();
            view.payload_mut()[4..8].copy_from_slice(&time);
            view.payload_mut()[8..12].copy_from_slice(&time);
            view.fill_checksum();
        }
    }

    /// The client of a frame's Ethernet destination.
    fn addressed(&mut self, context: &Context<'_>, frame: &Frame<'_>) -> Option<ClientId> {
        let client = context.namespace.clients.by_mac(frame.destination());
        let client = client.filter(|&client| context.has_this(client));
        self.counters.rx_no_client += u64::from(client.is_none() && !frame.is_copy);
        client
    }

    fn receive_reply(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Some(client) = self.addressed(context, frame) else {
            return;
        };
        self.counters.rx_response += 1;
        if let Ok(Icmpv4Header::EchoReply {
            identifier,
            sequence,
        }) = Icmpv4Header::parse(frame.segment())
        {
            let numbers = (identifier, sequence);
            self.pings
                .handle_reply(context.now, client, numbers, frame.payload());
        }
    }

    /// An error about a packet, of which it quotes the beginning: the request of a ping.
    fn receive_unreachable(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Some(client) = self.addressed(context, frame) else {
            return;
        };
        self.counters.rx_unreachable += 1;
        let quoted = frame.payload();
        let header_bytes = quoted
            .first()
            .map_or(0, |first| 4 * usize::from(first & 0x0f));
        let message = quoted.get(header_bytes..).map(Icmpv4Header::parse);
        if let Some(Ok(Icmpv4Header::EchoRequest { identifier, .. })) = message {
            self.pings.handle_unreachable(client, identifier);
        }
    }

    fn start_ping(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        params: PingParams<Ipv4>,
    ) -> Result<Done, Error> {
        let given = Some(params.dst.0);
        let request = params.check("ApiIcmpClientStartPingHandler")?;
        let client = context.client(id);
        let client = client.ok_or_else(|| Error::execution("There is no such client."))?;
        let known = |address: &Ipv4Addr| !address.is_unspecified();
        let gateway = Some(client.gateway_ipv4).filter(known);
        let target = given.filter(known).or(gateway);
        let target = target.ok_or_else(|| {
            Error::execution("The client has no IPv4 gateway to ping; give 'dst'.")
        })?;
        let bytes = usize::from(request.payload_bytes) + 28;
        if bytes > usize::from(client.mtu_ipv4) {
            return Err(Error::execution(format!(
                "payloadSize {} makes packets of {bytes} bytes; the client's ipv4_mtu is {}",
                request.payload_bytes, client.mtu_ipv4
            )));
        }
        if let Some(request) = self.pings.start(context, id, target, request)? {
            self.send_request(context, id, &request);
        }
        Ok(Done)
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

    /// Sends a request by way of the client's gateway. While that is not known, to the MAC address
    /// of all zeros, as the reference does.
    fn send_request(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        request: &EchoRequest<Ipv4Addr>,
    ) {
        let Some(client) = context.client(id) else {
            return;
        };
        let (mac, source, now) = (client.mac, client.ipv4, context.now);
        let gateway = client.gateway_mac_ipv4.unwrap_or(MacAddress::ZERO);
        let ip = Ipv4Header {
            identification: IDENTIFICATION,
            dont_fragment: false,
            ..Ipv4Header::new(source, request.target, IpProtocol::ICMPV4)
        };
        let header = Icmpv4Header::EchoRequest {
            identifier: request.identifier,
            sequence: request.sequence,
        };
        self.counters.tx_query += 1;
        let bytes = HEADER_BYTES + usize::from(request.payload_bytes);
        let payload = context.send_ipv4(mac, gateway, &ip, bytes);
        header.emit(payload);
        write_payload(now, &mut payload[HEADER_BYTES..]);
        Icmpv4View::new_unchecked(payload).fill_checksum();
    }
}
