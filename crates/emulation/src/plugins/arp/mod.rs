//! ARP: answers for clients, and resolves their gateways.

use std::any::Any;

use allosaur_packet::MacAddress;
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_packet::link::ethernet::EtherType;
use serde_json::Value;

use crate::client::ClientId;
use crate::counters;
use crate::frame::{Frame, FrameKind};
use crate::params::RpcError;
use crate::plugin::{Call, Context, Method, Plugin, PluginError, Spec, Target};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "arp",
    frames: &[FrameKind::Arp],
    methods: &[Method {
        name: "arp_ns_cnt",
        target: Target::Namespace,
        needs_api: false,
    }],
    create: |_, _| Ok(Box::<Arp>::default()),
};

crate::counters! {
    /// Counters of ARP in a namespace.
    pub(crate) struct ArpCounters: u64, "arp" {
        rx_query: "pktRxArpQuery", "rx arp query ", "pkts", Info;
        rx_query_not_for_us: "pktRxArpQueryNotForUs", "rx arp query not for our clients", "pkts", Info;
        tx_reply: "pktTxReply", "tx arp reply", "pkts", Info;
    }
}

/// ARP in a namespace.
#[derive(Default)]
struct Arp {
    counters: ArpCounters,
}

impl Plugin for Arp {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        _client: ClientId,
        _init: &Value,
    ) -> Result<(), PluginError> {
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, _client: ClientId) {}

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(asked) = ArpHeader::parse(frame.packet()) else {
            return;
        };
        if asked.operation == ArpOperation::REQUEST {
            self.counters.rx_query += 1;
            self.answer(context, &asked);
        }
    }

    fn call(&mut self, _context: &mut Context<'_>, call: &Call<'_>) -> Result<Value, RpcError> {
        counters::report(call.params, &mut [&mut self.counters])
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Arp {
    fn answer(&mut self, context: &mut Context<'_>, asked: &ArpHeader) {
        let client = context.namespace.clients.by_ipv4(asked.target_ip);
        let Some(client) = client.filter(|&client| context.has_this(client)) else {
            self.counters.rx_query_not_for_us += 1;
            return;
        };
        let mac = context
            .client(client)
            .map_or(MacAddress::ZERO, |client| client.mac);
        self.counters.tx_reply += 1;
        let reply = ArpHeader {
            operation: ArpOperation::REPLY,
            sender_mac: mac,
            sender_ip: asked.target_ip,
            target_mac: asked.sender_mac,
            target_ip: asked.sender_ip,
        };
        let payload = context.send(mac, asked.sender_mac, EtherType::ARP, reply.buffer_len());
        reply.emit(payload);
    }
}
