//! Neighbor discovery of a namespace (RFC 4861, RFC 4862): answers for clients, says where they
//! are, finds their gateways and the router of the link.
//!
//! As in the reference, clients use an address at once, and do not give it up when another host
//! has it (RFC 4862 section 5.4.5); the last router that announced itself is kept for ever.

use std::net::Ipv6Addr;

use allosaur_api::Error;
use allosaur_api::json_schema::JsonSchema;
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::network::icmpv6::Icmpv6Header;
use allosaur_packet::network::ipv6::{ALL_NODES, Ipv6Header};
use serde::Serialize;
use serde_json::Value;

use super::messages::{
    HOP_LIMIT, LIFETIME_MAX_S, PREFIX_BITS, advertise, advertise_to_all, prefix, solicit,
    solicit_routers, solicited_node,
};
use super::mld::Ipv6;
use crate::client::{Client, ClientId, ClientMap};
use crate::frame::Frame;
use crate::iter::{Page, PageParams};
use crate::multicast::membership::Membership;
use crate::namespace::{Namespace, Router};
use crate::neighbor_cache::{NeighborCache, Wanted};
use crate::params::Params;
use crate::plugin::{Context, Event, PluginError};
use crate::read::{self, Mac};

/// How often each client asks for its gateways, unless its init JSON says otherwise.
const PERIOD_S: u32 = 29;
/// Router solicitations, and the time between two.
const SOLICITATIONS: u8 = 19;
const SOLICITATION_GAP: Nanos = SECOND;
/// The MTU of a link whose router says nothing of it.
const MTU: u16 = 1500;
/// The least MTU of IPv6 (RFC 8200 section 5).
const MTU_MIN: u32 = 1280;
/// What many clients must know is told to them at most this often, whatever routers send.
const TELL_GAP: Nanos = 100 * MILLISECOND;
/// So many clients are told at once; more than that one after the other, so many a step.
const TELL_AT_ONCE: usize = 64;
const TELL_STEP: u32 = 1024;
/// Time between two steps, in which other work has its turn.
const STEP_GAP: Nanos = 100 * MICROSECOND;

/// Timers of the namespace: router solicitations, telling clients, and all of the cache.
pub(super) const TAG_SOLICIT: u32 = 1;
const TAG_TELL: u32 = 2;
const TAG_TELL_STEP: u32 = 3;
const TAG_CACHE: u32 = 16;
/// The timer of a client.
pub(super) const TAG_PERIOD: u32 = 0;

crate::counters! {
    /// Counters of neighbor discovery in a namespace.
    pub(super) struct NdCounters: u64, "ipv6nd" {
        dhcp_changed: "eventsChangeDHCPSrc", "change dhcp src ipv6 events", "ops", Info;
        source_changed: "eventsChangeSrc", "change src ipv6 events", "ops", Info;
        gateway_changed: "eventsChangeDgIPv6", "change dgw ipv6 events", "ops", Info;
        timer_learned: "timerEventLearn", "timer events learn", "ops", Info;
        timer_incomplete: "timerEventIncomplete", "timer events incomplete", "ops", Info;
        timer_complete: "timerEventComplete", "timer events complete", "ops", Info;
        timer_refresh: "timerEventRefresh", "timer events refresh", "ops", Info;
        add_learned: "addLearn", "add learn to table ", "ops", Info;
        add_incomplete: "addIncomplete", "add incomplete to table ", "ops", Info;
        incomplete_after_refresh: "moveIncompleteAfterRefresh", "move incomplete after refresh  ", "ops", Info;
        complete: "moveComplete", "move complete ", "ops", Info;
        learned: "moveLearned", "move learn ", "ops", Info;
        too_short: "pktRxErrTooShort", "rx error packet is too short", "pkts", Error;
        no_broadcast: "pktRxErrNoBroadcast", "rx error packet is no broadcast", "pkts", Error;
        wrong_operation: "pktRxErrWrongOp", "rx error packet with wrong opcode", "pkts", Error;
        active: "tblActive", "ipv6 nd table active", "entries", Info;
        added: "tblAdd", "ipv6 nd table add", "ops", Info;
        removed: "tblRemove", "ipv6 nd table remove", "ops", Info;
        associated: "associateWithClient", "associate with client", "ops", Info;
        dissociated: "disasociateWithClient", "disassociate with client", "ops", Info;
        rx_solicitation: "pktRxNeighborSolicitation", "rx neighbor solicitation", "pkts", Info;
        rx_advertisement: "pktRxNeighborAdvertisement", "Rx neighbor advertisement", "pkts", Info;
        rx_router_advertisement: "pktRxRouterAdvertisement", "Rx router advertisement", "pkts", Info;
        rx_router_solicitation: "pktRxRouterSolicitation", "Rx router solicitation", "pkts", Info;
        router_not_link_local: "pktRxErrRouternotLinklocal", "router advertisement not from local link", "pkts", Error;
        lifetime_too_big: "pktRxErrRouterLifetimeTooBig", "router advertisement lifetime is too big", "pkts", Error;
        lifetime_zero: "pktRxRouterLifetimeZero", "router advertisement lifetime is zero not selected router", "pkts", Info;
        wrong_hop_limit: "pktRxErrWrongHopLimit", "ipv6 hop limit should be 255", "pkts", Error;
        solicitation_unparsed: "pktRxNeighborSolicitationParserErr", "ipv6 neighbor solicitation parse error", "pkts", Error;
        solicitation_option: "pktRxNeighborSolicitationWrongOption", "ipv6 neighbor solicitation wrong option", "pkts", Error;
        solicitation_source_link: "pktRxNeighborSolicitationWrongSourceLink", "ipv6 neighbor solicitation wrong source link", "pkts", Error;
        solicitation_destination: "pktRxNeighborSolicitationWrongDestination", "ipv6 neighbor solicitation wrong destination addr", "pkts", Error;
        solicitation_target: "pktRxNeighborSolicitationWrongTarget", "ipv6 neighbor solicitation wrong target addr", "pkts", Error;
        solicitation_not_ours: "pktRxNeighborSolicitationLocalIpNotFound", "ipv6 neighbor solicitation not found ip", "pkts", Info;
        tx_answer: "pktTxNeighborAdvUnicast", "ipv6 tx neighbor solicitation answer", "pkts", Info;
        tx_answer_to_probe: "pktTxNeighborDADError", "ipv6 tx neighbor solicitation DAD answer", "pkts", Error;
        advertisement_unparsed: "pktRxNeighborAdvParserErr", "ipv6 rx neighbor advertisements parse", "pkts", Error;
        advertisement_option: "pktRxNeighborAdvWrongOption", "ipv6 rx neighbor advertisements wrong option", "pkts", Error;
        advertisement_ours: "pktRxNeighborAdvWithOwnAddr", "ipv6 rx neighbor advertisements own addr", "pkts", Error;
        advertisement_learned: "pktRxNeighborAdvLearn", "ipv6 rx neighbor advertisements learn", "pkts", Info;
        tx_advertisement: "pktTxNeighborUnsolicitedNA", "ipv6 rx neighbor unsolicited ", "pkts", Info;
        tx_probe: "pktTxNeighborUnsolicitedDAD", "ipv6 rx neighbor DAD ", "pkts", Info;
        tx_query: "pktTxNeighborUnsolicitedQuery", "ipv6 rx neighbor solicited query ", "pkts", Info;
    }
}

/// A neighbor, in the RPC.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NdNeighbor {
    /// Its IPv6 address.
    ipv6: read::Ipv6,
    /// How many clients need it.
    refc: usize,
    /// How well it is known: 16 heard of, 17 looked for, 18 known, 19 known and silent for long.
    state: u8,
    /// Whether its MAC address is known.
    resolve: bool,
    /// Its MAC address.
    mac: Mac,
}

/// What is kept of a client.
#[derive(Clone, Copy, Debug)]
struct NdClient {
    /// How often it asks for its gateways; zero for never.
    period_s: u32,
}

/// Neighbor discovery of a namespace.
#[derive(Debug)]
pub(super) struct NeighborDiscovery {
    counters: NdCounters,
    cache: NeighborCache<Ipv6Addr>,
    clients: ClientMap<NdClient>,
    count: usize,
    /// Router solicitations that are still to be sent.
    solicitations: u8,
    /// Clients are not all told before this time.
    told: Nanos,
    is_telling: bool,
    /// The client to tell next, while all are told.
    telling: Option<ClientId>,
}

/// The address that a client makes of the router's prefix.
pub(super) fn slaac(namespace: &Namespace, client: &Client) -> Option<Ipv6Addr> {
    let (prefix, bits) = namespace.router?.prefix?;
    (bits == PREFIX_BITS).then(|| client.eui64(prefix))
}

/// The addresses of a client but its link-local one: by DHCPv6, static, by the router's prefix.
pub(super) fn global_addresses(
    namespace: &Namespace,
    client: &Client,
) -> impl Iterator<Item = Ipv6Addr> {
    let given = [client.dhcp_ipv6, client.ipv6];
    let given = given.into_iter().filter(|given| !given.is_unspecified());
    given.chain(slaac(namespace, client))
}

/// The client of an address, if it has this plugin.
pub(super) fn owner(context: &Context<'_>, address: Ipv6Addr) -> Option<ClientId> {
    let clients = &context.namespace.clients;
    let by_mac = || {
        let id = clients.by_eui64(address)?;
        let client = clients.get(id)?;
        let is_own =
            client.link_local() == address || slaac(context.namespace, client) == Some(address);
        is_own.then_some(id)
    };
    let found = clients.by_ipv6(address).or_else(by_mac);
    found.filter(|&id| context.has_this(id))
}

impl NeighborDiscovery {
    pub(super) fn new() -> Self {
        NeighborDiscovery {
            counters: NdCounters::default(),
            cache: NeighborCache::new(TAG_CACHE),
            clients: ClientMap::default(),
            count: 0,
            solicitations: 0,
            told: 0,
            is_telling: false,
            telling: None,
        }
    }

    /// A client comes: it joins its groups, says where it is, and asks for its gateways.
    ///
    /// # Errors
    /// When the init JSON is wrong.
    pub(super) fn add_client(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        init: &Value,
        mld: &mut Membership<Ipv6>,
    ) -> Result<(), PluginError> {
        let params = Params::new(init);
        let period_s = params.number_or("nd_timer", PERIOD_S)?;
        let is_disabled = params.bool_or("nd_timer_disable", false)?;
        let period_s = if is_disabled { 0 } else { period_s };
        let Some(client) = context.client(id).cloned() else {
            return Ok(());
        };
        self.clients.insert(id, NdClient { period_s });
        self.count += 1;
        for group in groups(&client) {
            mld.join(context, group.octets());
        }
        if self.count == 1 && context.namespace.router.is_none() && self.solicitations == 0 {
            self.solicitations = SOLICITATIONS;
            context.set_timer(SOLICITATION_GAP, None, TAG_SOLICIT);
        }
        self.announce(context, &client);
        self.find_gateway(context, id, &client);
        if let Some(router) = context.namespace.router {
            self.query(context, &client, router.address);
        }
        self.set_period(context, id, period_s);
        Ok(())
    }

    /// A client goes.
    pub(super) fn remove_client(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        mld: &mut Membership<Ipv6>,
    ) {
        let Some(client) = context.client(id).cloned() else {
            return;
        };
        if self.clients.remove(id).is_some() {
            self.count -= 1;
            self.cache.dissociate(context, client.gateway_ipv6, id);
            for group in groups(&client) {
                mld.leave(context, group.octets());
            }
        }
    }

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self) -> usize {
        self.clients.table_bytes() + self.cache.table_bytes()
    }

    /// Another plugin, or the user, changed an address of a client.
    pub(super) fn handle_event(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        event: &Event,
        mld: &mut Membership<Ipv6>,
    ) {
        let Some(client) = context.client(id).cloned() else {
            return;
        };
        let (old, new, source) = match *event {
            // As in the reference, a leased address is told of from the one that is there already.
            Event::DhcpIpv6Changed(old) => {
                self.counters.dhcp_changed += 1;
                (old, client.dhcp_ipv6, client.link_local())
            }
            Event::Ipv6Changed(old) => {
                self.counters.source_changed += 1;
                (old, client.ipv6, client.ipv6)
            }
            _ => return,
        };
        if !old.is_unspecified() {
            mld.leave(context, solicited_node(old).octets());
        }
        if !new.is_unspecified() {
            mld.join(context, solicited_node(new).octets());
            self.announce_one(context, client.mac, source, new);
        }
    }

    /// A timer of the namespace is over.
    pub(super) fn handle_timeout(&mut self, context: &mut Context<'_>, tag: u32) {
        match tag {
            TAG_SOLICIT => self.solicit_routers(context),
            TAG_TELL => {
                self.is_telling = false;
                self.tell_all(context);
            }
            TAG_TELL_STEP => {
                self.tell_step(context);
            }
            _ => self.handle_cache_timeout(context, tag),
        }
    }

    /// The timer of a client is over: it asks for the router and its gateway, as far as they are
    /// known, so that they know it too.
    pub(super) fn handle_period(&mut self, context: &mut Context<'_>, id: ClientId) {
        let Some(NdClient { period_s }) = self.clients.get(id).copied() else {
            return;
        };
        let Some(client) = context.client(id).cloned() else {
            return;
        };
        if let Some(router) = context.namespace.router {
            self.query(context, &client, router.address);
        }
        if self.cache.mac(client.gateway_ipv6).is_some() {
            self.query(context, &client, client.gateway_ipv6);
        }
        self.set_period(context, id, period_s);
    }

    /// A neighbor asks for an address (RFC 4861 section 7.2.3).
    pub(super) fn handle_solicitation(
        &mut self,
        context: &mut Context<'_>,
        frame: &Frame<'_>,
        ip: &Ipv6Header,
    ) {
        self.counters.rx_solicitation += 1;
        if ip.hop_limit != HOP_LIMIT {
            self.counters.wrong_hop_limit += 1;
            return;
        }
        let message = Icmpv6Header::parse(frame.segment());
        let Ok(Icmpv6Header::NeighborSolicitation { target, options }) = message else {
            self.counters.solicitation_unparsed += 1;
            return;
        };
        let is_probe = ip.source.is_unspecified();
        let has_others = options.target_link.is_some()
            || options.prefix.is_some()
            || options.mtu_bytes.is_some();
        let is_wrong_link = |mac: MacAddress| is_probe || !mac.is_unicast();
        let counter = if has_others {
            &mut self.counters.solicitation_option
        } else if options.source_link.is_some_and(is_wrong_link) {
            &mut self.counters.solicitation_source_link
        } else if target.is_multicast() {
            &mut self.counters.solicitation_target
        } else if is_probe && !ip.destination.is_multicast() {
            &mut self.counters.solicitation_destination
        } else {
            let asker = options.source_link.unwrap_or_else(|| frame.source());
            let is_foreign = is_global(ip.source) && owner(context, ip.source).is_none();
            if let Some(mac) = options.source_link.filter(|_| is_foreign) {
                self.learn(context, ip.source, mac);
            }
            return self.answer(context, target, (asker, ip.source));
        };
        *counter += 1;
    }

    /// A neighbor says where an address is (RFC 4861 section 7.2.5).
    pub(super) fn handle_advertisement(
        &mut self,
        context: &mut Context<'_>,
        frame: &Frame<'_>,
        ip: &Ipv6Header,
    ) {
        self.counters.rx_advertisement += 1;
        if ip.hop_limit != HOP_LIMIT {
            self.counters.wrong_hop_limit += 1;
            return;
        }
        let Ok(Icmpv6Header::NeighborAdvertisement {
            override_known,
            target,
            options,
            ..
        }) = Icmpv6Header::parse(frame.segment())
        else {
            self.counters.advertisement_unparsed += 1;
            return;
        };
        let mac = options.target_link.filter(|mac| mac.is_unicast());
        match mac {
            _ if target.is_multicast() => self.counters.advertisement_unparsed += 1,
            _ if owner(context, target).is_some() => self.counters.advertisement_ours += 1,
            None => self.counters.advertisement_option += 1,
            Some(mac) if override_known => {
                self.counters.advertisement_learned += 1;
                self.learn(context, target, mac);
            }
            Some(_) => {}
        }
    }

    /// A router announces itself (RFC 4861 section 6.3.4).
    pub(super) fn handle_router(
        &mut self,
        context: &mut Context<'_>,
        frame: &Frame<'_>,
        ip: &Ipv6Header,
    ) {
        self.counters.rx_router_advertisement += 1;
        let message = Icmpv6Header::parse(frame.segment());
        let (lifetime_s, options) = match message {
            Ok(Icmpv6Header::RouterAdvertisement {
                lifetime_s,
                options,
                ..
            }) => (lifetime_s, options),
            _ => {
                self.counters.too_short += 1;
                return;
            }
        };
        let counter = match lifetime_s {
            _ if ip.hop_limit != HOP_LIMIT => &mut self.counters.wrong_hop_limit,
            _ if !ip.source.is_unicast_link_local() => &mut self.counters.router_not_link_local,
            0 => &mut self.counters.lifetime_zero,
            1..=LIFETIME_MAX_S => {
                let before = context.namespace.router;
                let same = before.filter(|router| router.address == ip.source);
                let mac = options.source_link.or(options.target_link);
                let mac = mac.filter(|mac| mac.is_unicast());
                let known = || same.and_then(|router| router.mac);
                let mtu = options.mtu_bytes.filter(|mtu| *mtu >= MTU_MIN);
                let mtu = mtu.and_then(|mtu| u16::try_from(mtu).ok());
                let router = Router {
                    address: ip.source,
                    mac: mac.or_else(known).or_else(|| self.cache.mac(ip.source)),
                    mtu: mtu.or(same.map(|router| router.mtu)).unwrap_or(MTU),
                    prefix: prefix(frame.segment()).or(same.and_then(|router| router.prefix)),
                };
                self.solicitations = 0;
                context.namespace.router = Some(router);
                if before.and_then(|before| before.mac) != router.mac {
                    self.tell_soon(context);
                }
                return;
            }
            _ => &mut self.counters.lifetime_too_big,
        };
        *counter += 1;
    }

    /// Another host asks for routers.
    pub(super) fn handle_router_solicitation(&mut self) {
        self.counters.rx_router_solicitation += 1;
    }

    /// Answers `ipv6_nd_ns_iter`.
    ///
    /// # Errors
    /// When a parameter is wrong, or the table changed.
    pub(super) fn page(&mut self, params: PageParams) -> Result<Page<NdNeighbor>, Error> {
        self.cache
            .page(params, "ApiNdNsIterParams", |neighbor| NdNeighbor {
                ipv6: read::Ipv6(neighbor.address),
                refc: neighbor.users,
                state: neighbor.state as u8,
                resolve: neighbor.mac.is_some(),
                mac: Mac(neighbor.mac.unwrap_or_default()),
            })
    }

    /// The counters, with those of the cache.
    pub(super) fn counters(&mut self) -> &mut NdCounters {
        let (own, cache) = (&mut self.counters, &self.cache.counts);
        own.timer_learned = cache.timer_learned;
        own.timer_incomplete = cache.timer_incomplete;
        own.timer_complete = cache.timer_complete;
        own.timer_refresh = cache.timer_refresh;
        own.add_learned = cache.add_learned;
        own.add_incomplete = cache.add_incomplete;
        own.incomplete_after_refresh = cache.incomplete_after_refresh;
        own.complete = cache.complete;
        own.learned = cache.learned;
        own.active = cache.active;
        own.added = cache.added;
        own.removed = cache.removed;
        own.associated = cache.associated;
        own.dissociated = cache.dissociated;
        own
    }

    /// The counters were set to zero: those of the cache too.
    pub(super) fn clear_cache_counts(&mut self) {
        self.cache.counts = Default::default();
    }

    /// Says where the addresses of a client are.
    fn announce(&mut self, context: &mut Context<'_>, client: &Client) {
        let local = client.link_local();
        self.announce_one(context, client.mac, local, local);
        let slaac = slaac(context.namespace, client);
        let given = [client.ipv6, client.dhcp_ipv6];
        let given = given.into_iter().filter(|given| !given.is_unspecified());
        for address in slaac.into_iter().chain(given) {
            self.announce_one(context, client.mac, address, address);
        }
    }

    /// Asks whether an address is taken, and says where it is.
    fn announce_one(
        &mut self,
        context: &mut Context<'_>,
        mac: MacAddress,
        source: Ipv6Addr,
        address: Ipv6Addr,
    ) {
        self.counters.tx_probe += 1;
        solicit(context, mac, Ipv6Addr::UNSPECIFIED, address);
        self.counters.tx_advertisement += 1;
        advertise_to_all(context, mac, source, address, true);
    }

    /// Begins to look for the gateway of a client.
    fn find_gateway(&mut self, context: &mut Context<'_>, id: ClientId, client: &Client) {
        let gateway = client.gateway_ipv6;
        if client.forced_mac_ipv6().is_none()
            && !gateway.is_unspecified()
            && self.cache.associate(context, gateway, id)
        {
            self.announce(context, client);
            self.ask(context, client.mac, client.link_local(), gateway);
        }
        self.tell(context, id);
    }

    /// Asks for a neighbor from each address of a client.
    fn query(&mut self, context: &mut Context<'_>, client: &Client, target: Ipv6Addr) {
        let sources: [Option<Ipv6Addr>; 4] = {
            let mut globals = global_addresses(context.namespace, client);
            [
                globals.next(),
                globals.next(),
                globals.next(),
                Some(client.link_local()),
            ]
        };
        for source in sources.into_iter().flatten() {
            self.ask(context, client.mac, source, target);
        }
    }

    fn ask(
        &mut self,
        context: &mut Context<'_>,
        mac: MacAddress,
        source: Ipv6Addr,
        target: Ipv6Addr,
    ) {
        self.counters.tx_query += 1;
        solicit(context, mac, source, target);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_>,
        target: Ipv6Addr,
        asker: (MacAddress, Ipv6Addr),
    ) {
        let id = owner(context, target);
        let Some(client) = id.and_then(|id| context.client(id)) else {
            self.counters.solicitation_not_ours += 1;
            return;
        };
        let (mac, local) = (client.mac, client.link_local());
        if asker.1.is_unspecified() {
            self.counters.tx_answer_to_probe += 1;
            advertise_to_all(context, mac, local, target, false);
        } else {
            self.counters.tx_answer += 1;
            advertise(context, mac, target, asker);
        }
    }

    fn learn(&mut self, context: &mut Context<'_>, address: Ipv6Addr, mac: MacAddress) {
        // A router that did not say its own MAC address.
        if let Some(router) = &mut context.namespace.router {
            let is_news = router.address == address && router.mac.is_none();
            if is_news {
                router.mac = Some(mac);
                self.tell_soon(context);
            }
        }
        let Some(neighbor) = self.cache.learn(context, address, mac) else {
            return;
        };
        if neighbor.users().len() > TELL_AT_ONCE {
            return self.tell_soon(context);
        }
        let users: Vec<_> = neighbor.users().iter().copied().collect();
        for id in users {
            self.tell(context, id);
        }
    }

    fn handle_cache_timeout(&mut self, context: &mut Context<'_>, tag: u32) {
        let Some((neighbor, wanted)) = self.cache.handle_timeout(context, tag) else {
            return;
        };
        let target = neighbor.address;
        let (Wanted::Ask(id) | Wanted::AskAgain(id)) = wanted;
        if let Some(client) = id.and_then(|id| context.client(id)) {
            let (mac, source) = (client.mac, client.link_local());
            self.ask(context, mac, source, target);
        }
        if matches!(wanted, Wanted::AskAgain(_)) {
            self.tell_soon(context);
        }
    }

    fn solicit_routers(&mut self, context: &mut Context<'_>) {
        let clients = &context.namespace.clients;
        let first = clients.ids().find(|&id| context.has_this(id));
        let client = first.and_then(|id| context.client(id));
        let Some(mac) = client.map(|client| client.mac) else {
            self.solicitations = 0;
            return;
        };
        if self.solicitations != 0 {
            self.solicitations -= 1;
            solicit_routers(context, mac);
            if self.solicitations != 0 {
                context.set_timer(SOLICITATION_GAP, None, TAG_SOLICIT);
            }
        }
    }

    fn set_period(&self, context: &mut Context<'_>, id: ClientId, period_s: u32) {
        if period_s != 0 {
            context.set_timer(Nanos::from(period_s) * SECOND, Some(id), TAG_PERIOD);
        }
    }

    /// Says to one client what the MAC address of its gateway is.
    fn tell(&self, context: &mut Context<'_>, id: ClientId) {
        if let Some(client) = context.client(id) {
            let gateway = client.gateway_ipv6;
            let mac = if gateway.is_unspecified() {
                context.namespace.router.and_then(|router| router.mac)
            } else {
                self.cache.mac(gateway)
            };
            context.set_gateway_mac_ipv6(id, mac);
        }
    }

    /// Tells all clients, now or as soon as [`TELL_GAP`] allows.
    fn tell_soon(&mut self, context: &mut Context<'_>) {
        if self.is_telling {
            return;
        }
        if context.now >= self.told {
            return self.tell_all(context);
        }
        self.is_telling = true;
        context.set_timer(self.told - context.now, None, TAG_TELL);
    }

    /// Tells all clients from the first on, also when others are told already.
    fn tell_all(&mut self, context: &mut Context<'_>) {
        self.told = context.now + TELL_GAP;
        if self.telling.replace(ClientId::FIRST).is_none() {
            self.tell_step(context);
        }
    }

    fn tell_step(&mut self, context: &mut Context<'_>) {
        let Some(ClientId(first)) = self.telling.take() else {
            return;
        };
        let end = first.saturating_add(TELL_STEP);
        for id in (first..end).map(ClientId) {
            if self.clients.get(id).is_some() {
                self.tell(context, id);
            }
        }
        if self.clients.has_behind(ClientId(end)) {
            self.telling = Some(ClientId(end));
            context.set_timer(STEP_GAP, None, TAG_TELL_STEP);
        }
    }
}

/// The groups in which a client must be.
fn groups(client: &Client) -> impl Iterator<Item = Ipv6Addr> {
    let addresses = [client.link_local(), client.ipv6, client.dhcp_ipv6];
    let given = addresses
        .into_iter()
        .filter(|address| !address.is_unspecified());
    std::iter::once(ALL_NODES).chain(given.map(solicited_node))
}

/// Whether an address is one that neighbors keep.
fn is_global(address: Ipv6Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && !address.is_unicast_link_local()
}
