//! ARP: answers for clients, and resolves their gateways. A gateway is resolved once for all clients
//! of a namespace that have it; the cache says when to ask.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Command, Empty, Error, Example};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_packet::link::ethernet::EtherType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::frame::{Frame, FrameKind};
use crate::iter::{Page, PageParams};
use crate::namespace::Namespace;
use crate::neighbor_cache::NeighborState;
use crate::neighbors::{Neighbors, Task};
use crate::params::Params;
use crate::plugin::{Context, Event, Plugin, PluginError, Timeout};
use crate::read::{Done, Ipv4, Mac};
use crate::shard_message::MessageBody;
use crate::spec::{
    Keys, OfClient, OfNamespace, Scope, Spec, about_client, about_namespace, namespace_counters,
    neighbor_pages,
};
use crate::timers::TimerId;

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "arp",
    frames: &[FrameKind::Arp],
    commands: &[
        Command {
            name: "arp_ns_set_cfg",
            access: Access::Open,
            doc: "Turns ARP on or off in a namespace; as in TRex, that is kept and changes nothing.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "enable": true}"#,
                result: r#"true"#,
            },
            ..about_namespace(&OfNamespace(Arp::configure))
        },
        Command {
            name: "arp_ns_get_cfg",
            access: Access::Open,
            doc: "Says whether ARP is on.",
            example: Example {
                params: r#"{"tun": {"vport": 0}}"#,
                result: r#"{"enable": true}"#,
            },
            ..about_namespace(&OfNamespace(Arp::config))
        },
        namespace_counters::<Arp>("arp_ns_cnt", Access::Open),
        Command {
            name: "arp_ns_iter",
            access: Access::Open,
            doc: "Lists the neighbors that the clients of a namespace know or look for, a page at a time.",
            errors: &["neighbors have come or gone since the page before"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "reset": true, "count": 255}"#,
                result: r#"{"empty": false, "stopped": false, "data": [{"ipv4": [1, 1, 1, 1], "refc": 1, "state": 18, "resolve": true, "mac": [0, 0, 2, 0, 0, 1]}]}"#,
            },
            ..neighbor_pages(&OfNamespace(Arp::neighbors))
        },
        Command {
            name: "arp_c_cmd_query",
            access: Access::Open,
            doc: "Has a client ask for its gateway, or say where it is.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "garp": false}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Arp::ask_now))
        },
    ],
    counters: &[("", ArpCounters::META)],
    keys: Keys::Only(&["timer", "timer_disable", "enable"]),
    scope: Scope::Client,
    create: |context, _| Ok(Box::new(Arp::new(context))),
};

crate::counters! {
    /// Counters of ARP in a namespace.
    pub(crate) struct ArpCounters: u64, "arp" {
        change_source: "eventsChangeSrc", "change src ipv4 events", "ops", Info;
        change_gateway: "eventsChangeDgIPv4", "change dgw ipv4 events", "ops", Info;
        timer_learned: "timerEventLearn", "timer events learn", "ops", Info;
        timer_incomplete: "timerEventIncomplete", "timer events incomplete", "ops", Info;
        timer_complete: "timerEventComplete", "timer events complete", "ops", Info;
        timer_refresh: "timerEventRefresh", "timer events refresh", "ops", Info;
        add_learned: "addLearn", "add learn to table ", "ops", Info;
        add_incomplete: "addIncomplete", "add incomplete to table ", "ops", Info;
        incomplete_after_refresh: "moveIncompleteAfterRefresh", "move incomplete after refresh  ", "ops", Info;
        complete: "moveComplete", "move complete ", "ops", Info;
        learned: "moveLearned", "move learn ", "ops", Info;
        rx_too_short: "pktRxErrTooShort", "rx error packet is too short", "pkts", Error;
        rx_broadcast_reply: "pktRxErrNoBroadcast", "rx error packet is no broadcast", "pkts", Error;
        rx_wrong_operation: "pktRxErrWrongOp", "rx error packet with wrong opcode", "pkts", Error;
        rx_query: "pktRxArpQuery", "rx arp query ", "pkts", Info;
        rx_query_not_for_us: "pktRxArpQueryNotForUs", "rx arp query not for our clients", "pkts", Info;
        rx_reply: "pktRxArpReply", "rx arp reply", "pkts", Info;
        tx_query: "pktTxArpQuery", "tx arp query", "pkts", Info;
        tx_gratuitous: "pktTxGArp", "tx arp garp", "pkts", Info;
        tx_reply: "pktTxReply", "tx arp reply", "pkts", Info;
        active: "tblActive", "arp table active", "entries", Info;
        added: "tblAdd", "arp table add", "ops", Info;
        removed: "tblRemove", "arp table remove", "ops", Info;
        associated: "associateWithClient", "associate with client", "ops", Info;
        dissociated: "disasociateWithClient", "disassociate with client", "ops", Info;
    }
}

/// Time between the questions of a client for its gateway, when nothing else was said.
const INTERVAL_S: u32 = 60;
/// The tag of the timers of clients; those of the cache are behind it.
const CLIENT_TAG: u32 = 0;
/// The timer of telling clients of a gateway.
const TELL_TAG: u32 = u32::MAX;
/// A gateway may have a million clients: so many are told at once, and the next after a while in which
/// other work has its turn.
const TELL_AT_ONCE: usize = 1024;
const TELL_GAP: Nanos = 100 * MICROSECOND;

/// What ARP keeps of a client.
#[derive(Debug)]
struct ArpClient {
    /// The gateway that it asks for, or unspecified.
    gateway: Ipv4Addr,
    /// The address that it asks from.
    address: Ipv4Addr,
    /// Seconds between its questions, whether the gateway is known or not. Zero for none.
    interval_s: u32,
    timer: TimerId,
}

/// ARP in a namespace.
struct Arp {
    counters: ArpCounters,
    neighbors: Neighbors<Ipv4Addr>,
    clients: ClientMap<ArpClient>,
    /// Gateways whose MAC address is news, and the client to tell next.
    telling: VecDeque<(Ipv4Addr, ClientId)>,
    /// Kept for the RPC; like in the reference it changes nothing.
    is_enabled: bool,
}

impl Plugin for Arp {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let params = Params::object(init, "arp.ArpCInit")?;
        let interval_s = params.number_or("timer", INTERVAL_S)?;
        let is_disabled = params.bool_or("timer_disable", false)?;
        let state = ArpClient {
            gateway: Ipv4Addr::UNSPECIFIED,
            address: Ipv4Addr::UNSPECIFIED,
            interval_s: if is_disabled { 0 } else { interval_s },
            timer: TimerId::NONE,
        };
        self.clients.insert(client, state);
        self.begin(context, client);
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        self.end(context, client);
        self.clients.remove(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(header) = ArpHeader::parse(frame.packet()) else {
            self.counters.rx_too_short += u64::from(!frame.is_copy);
            return;
        };
        match header.operation {
            ArpOperation::REQUEST => {
                self.counters.rx_query += u64::from(!frame.is_copy);
                self.learn(context, &header, frame);
                self.answer(context, &header, frame.is_copy);
            }
            ArpOperation::REPLY if frame.destination().is_broadcast() => {
                self.counters.rx_broadcast_reply += 1;
            }
            ArpOperation::REPLY => {
                self.counters.rx_reply += 1;
                self.learn(context, &header, frame);
            }
            _ => self.counters.rx_wrong_operation += u64::from(!frame.is_copy),
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        if let Some(client) = timeout.client {
            self.repeat(context, client);
            return;
        }
        if timeout.tag == TELL_TAG {
            return self.tell(context);
        }
        let wanted = self.neighbors.handle_timeout(context, timeout.tag);
        let Some((gateway, is_lost, client)) = wanted else {
            return;
        };
        if is_lost {
            self.announce(context, gateway);
        }
        if let Some(client) = client {
            self.ask(context, client, gateway);
        }
    }

    fn poll_message(&mut self) -> Option<(u32, MessageBody)> {
        let (shard, message) = self.neighbors.poll_message()?;
        Some((shard, MessageBody::Neighbor(message)))
    }

    fn handle_message(&mut self, context: &mut Context<'_>, from: u32, message: MessageBody) {
        let MessageBody::Neighbor(message) = message else {
            return;
        };
        match self.neighbors.handle_message(context, from, message) {
            Some(Task::Announce(gateway)) => self.announce(context, gateway),
            Some(Task::Ask(client, gateway)) => self.ask(context, client, gateway),
            None => {}
        }
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        match event {
            Event::Ipv4Changed(_) => self.counters.change_source += 1,
            Event::GatewayIpv4Changed(_) => self.counters.change_gateway += 1,
            _ => return,
        }
        // A lease changes both: the second event says nothing new.
        let state = self.clients.get(client);
        let asks = state.map(|state| (state.address, state.gateway));
        let found = context.client(client);
        let has = found.map(|found| (found.ipv4, found.gateway_ipv4));
        if asks != has {
            self.end(context, client);
            self.begin(context, client);
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if client.is_none() {
            show(0, self.refreshed());
        }
    }

    fn counters_cleared(&mut self) {
        *self.neighbors.counts() = Default::default();
    }

    fn table_bytes(&self) -> usize {
        self.clients.table_bytes() + self.neighbors.table_bytes()
    }
}

/// Whether to turn ARP on.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "SetArpConfig")]
struct SetConfig {
    /// Whether to.
    enable: bool,
}

/// Whether ARP is on.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ArpConfig")]
struct Config {
    /// Whether it is.
    enable: bool,
}

/// What a client shall ask.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AskParams {
    /// Whether it shall say where it is (gratuitous ARP), and ask nothing.
    garp: bool,
}

/// A neighbor.
#[derive(Debug, Serialize, JsonSchema)]
struct ArpNeighbor {
    /// Its IPv4 address.
    ipv4: Ipv4,
    /// How many clients need it.
    refc: usize,
    /// How well it is known: 16 heard of, 17 looked for, 18 known, 19 known and silent for long.
    state: u8,
    /// Whether its MAC address is known.
    resolve: bool,
    /// Its MAC address.
    mac: Mac,
}

/// Its commands.
impl Arp {
    fn configure(&mut self, _: &mut Context<'_>, config: SetConfig) -> Result<Done, Error> {
        self.is_enabled = config.enable;
        Ok(Done)
    }

    fn config(&mut self, _: &mut Context<'_>, _: Empty) -> Result<Config, Error> {
        Ok(Config {
            enable: self.is_enabled,
        })
    }

    fn neighbors(
        &mut self,
        _: &mut Context<'_>,
        params: PageParams,
    ) -> Result<Page<ArpNeighbor>, Error> {
        self.neighbors
            .page(params, "ApiArpNsIterParams", |neighbor| ArpNeighbor {
                ipv4: Ipv4(neighbor.address),
                refc: neighbor.users,
                state: neighbor.state as u8,
                resolve: neighbor.state != NeighborState::Incomplete,
                mac: Mac(neighbor.mac.unwrap_or_default()),
            })
    }

    fn ask_now(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: AskParams,
    ) -> Result<Done, Error> {
        self.query(context, client, params.garp);
        Ok(Done)
    }
}

impl Arp {
    fn new(context: &Context<'_>) -> Arp {
        Arp {
            counters: ArpCounters::default(),
            neighbors: Neighbors::new(context, CLIENT_TAG + 1),
            clients: ClientMap::default(),
            telling: VecDeque::new(),
            is_enabled: true,
        }
    }

    /// A client has an address and a gateway: says where it is, and asks where the gateway is.
    fn begin(&mut self, context: &mut Context<'_>, id: ClientId) {
        let Some(client) = context.client(id) else {
            return;
        };
        let (address, gateway) = (client.ipv4, client.gateway_ipv4);
        if address.is_unspecified() || gateway.is_unspecified() || client.is_forced_ipv4 {
            return;
        }
        if let Some(state) = self.clients.get_mut(id) {
            (state.gateway, state.address) = (gateway, address);
        }
        self.neighbors.associate(context, gateway, id);
        let mac = self.neighbors.mac(gateway);
        context.set_gateway_mac_ipv4(id, mac);
        self.announce_client(context, id);
        self.ask(context, id, gateway);
        self.set_timer(context, id);
    }

    /// A client has no gateway any more, or another.
    fn end(&mut self, context: &mut Context<'_>, id: ClientId) {
        let Some(state) = self.clients.get_mut(id) else {
            return;
        };
        let gateway = std::mem::replace(&mut state.gateway, Ipv4Addr::UNSPECIFIED);
        let timer = std::mem::take(&mut state.timer);
        context.cancel_timer(timer);
        if !gateway.is_unspecified() {
            self.neighbors.dissociate(context, gateway, id);
            context.set_gateway_mac_ipv4(id, None);
        }
    }

    fn set_timer(&mut self, context: &mut Context<'_>, id: ClientId) {
        if let Some(state) = self
            .clients
            .get_mut(id)
            .filter(|state| state.interval_s > 0)
        {
            let delay = Nanos::from(state.interval_s) * SECOND;
            state.timer = context.set_timer(delay, Some(id), CLIENT_TAG);
        }
    }

    /// The question that a client repeats.
    fn repeat(&mut self, context: &mut Context<'_>, id: ClientId) {
        if let Some(gateway) = self.clients.get(id).map(|state| state.gateway) {
            self.ask(context, id, gateway);
            self.set_timer(context, id);
        }
    }

    /// What the RPC wants a client to send.
    fn query(&mut self, context: &mut Context<'_>, id: ClientId, is_gratuitous: bool) {
        let Some(client) = context.client(id) else {
            return;
        };
        let gateway = client.gateway_ipv4;
        if is_gratuitous {
            self.announce_client(context, id);
        } else if !gateway.is_unspecified() && !client.is_forced_ipv4 {
            self.ask(context, id, gateway);
        }
    }

    /// Sends what a client says about itself.
    fn announce_client(&mut self, context: &mut Context<'_>, id: ClientId) {
        let Some(address) = context.client(id).map(|client| client.ipv4) else {
            return;
        };
        if !address.is_unspecified() {
            self.counters.tx_gratuitous += 1;
            request(context, id, address);
        }
    }

    /// Asks for a gateway in the name of a client.
    fn ask(&mut self, context: &mut Context<'_>, id: ClientId, gateway: Ipv4Addr) {
        self.counters.tx_query += 1;
        request(context, id, gateway);
    }

    #[inline]
    fn learn(&mut self, context: &mut Context<'_>, header: &ArpHeader, frame: &Frame<'_>) {
        let (gateway, mac) = (header.sender_ip, header.sender_mac);
        let learned = self.neighbors.learn(context, gateway, mac, frame.is_copy);
        if learned.is_some() {
            self.announce(context, gateway);
        }
    }

    /// Tells the clients of a gateway what its MAC address is; all of them, also those that heard of
    /// an earlier one just now.
    fn announce(&mut self, context: &mut Context<'_>, gateway: Ipv4Addr) {
        self.neighbors.tell_shards(context, gateway);
        let is_telling = !self.telling.is_empty();
        self.telling.retain(|(other, _)| *other != gateway);
        self.telling.push_back((gateway, ClientId::FIRST));
        if !is_telling {
            self.tell(context);
        }
    }

    /// Tells the next clients.
    fn tell(&mut self, context: &mut Context<'_>) {
        if let Some((gateway, first)) = self.telling.pop_front() {
            if let Some((users, mac)) = self.neighbors.get(gateway) {
                let mut clients = users.range(first..).copied();
                for client in clients.by_ref().take(TELL_AT_ONCE) {
                    context.set_gateway_mac_ipv4(client, mac);
                }
                let next = clients.next();
                self.telling.extend(next.map(|next| (gateway, next)));
            }
        }
        if !self.telling.is_empty() {
            context.set_timer(TELL_GAP, None, TELL_TAG);
        }
    }

    #[inline]
    fn answer(&mut self, context: &mut Context<'_>, asked: &ArpHeader, is_copy: bool) {
        let client = context.namespace.clients.by_ipv4(asked.target_ip);
        let client = client.filter(|&client| context.has_this(client));
        let Some(client) = client.and_then(|client| context.client(client)) else {
            self.counters.rx_query_not_for_us += u64::from(!is_copy);
            return;
        };
        let mac = client.mac;
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

    /// The counters, with those of the cache.
    fn refreshed(&mut self) -> &mut ArpCounters {
        let counts = self.neighbors.counts();
        let table = &mut self.counters;
        table.timer_learned = counts.timer_learned;
        table.timer_incomplete = counts.timer_incomplete;
        table.timer_complete = counts.timer_complete;
        table.timer_refresh = counts.timer_refresh;
        table.add_learned = counts.add_learned;
        table.add_incomplete = counts.add_incomplete;
        table.incomplete_after_refresh = counts.incomplete_after_refresh;
        table.complete = counts.complete;
        table.learned = counts.learned;
        table.active = counts.active;
        table.added = counts.added;
        table.removed = counts.removed;
        table.associated = counts.associated;
        table.dissociated = counts.dissociated;
        table
    }
}

/// Sends a request for an address to all.
fn request(context: &mut Context<'_>, id: ClientId, target: Ipv4Addr) {
    let Some(client) = context.client(id) else {
        return;
    };
    let request = ArpHeader {
        operation: ArpOperation::REQUEST,
        sender_mac: client.mac,
        sender_ip: client.ipv4,
        target_mac: MacAddress::ZERO,
        target_ip: target,
    };
    let (mac, bytes) = (client.mac, request.buffer_len());
    let payload = context.send(mac, MacAddress::BROADCAST, EtherType::ARP, bytes);
    request.emit(payload);
}
