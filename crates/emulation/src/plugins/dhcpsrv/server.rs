//! One server: its records of hosts, and what it does with each message.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{
    BROADCAST_FLAG, CLIENT_PORT, DhcpHeader, DhcpOptions, MessageType, REQUEST, SERVER_PORT,
};
use serde_json::Value;

use super::init::Init;
use super::pool::Pools;
use super::replies::{Answer, Template, renewal_s};
use crate::client::ClientId;
use crate::frame::Frame;
use crate::plugin::{Context, Timeout};
use crate::timers::TimerId;
use crate::udp::{Macs, Service, TIME_TO_LIVE};

/// An offer stands this long.
const OFFER_TIME: Nanos = 3 * SECOND;
/// The most hosts of a server; others get nothing.
pub(super) const RECORDS_MAX: usize = 1 << 21;

crate::counters! {
    /// Counters of a server.
    pub(crate) struct DhcpServerCounters: u64, "dhcpsrv" {
        invalid_init: "invalidInitJson", "Error while decoding init Json", "ops", Error;
        bad_offer_option: "mustNotOfferOpt", "Must NOT Offer option in Init Json", "ops", Error;
        bad_inform_option: "mustNotAckInformOpt", "Must NOT Ack option to DHCPINFORM in Init Json", "ops", Error;
        bad_ack_option: "mustNotAckReqOpt", "Must NOT Ack option to DHCPREQUEST in Init Json", "ops", Error;
        bad_nak_option: "mustNotNakOpt", "Must NOT NAK option in Init Json", "ops", Error;
        active: "activeClients", "Num clients that are Offered/Bound/Renewing/Rebinding.", "clients", Info, zero;
        rx: "pktRx", "Rx packets", "pkts", Info;
        rx_broadcast: "pktRxBroadcast", "Rx broadcast L2", "pkts", Info;
        rx_broadcast_flag: "pktRxDhcpBroadcast", "Rx DHCP pkt with Broadcast Flag", "pkts", Info;
        rx_bad_type: "pktRxBadMsgType", "Rx invalid DHCP message type", "pkts", Error;
        rx_bad_chaddr: "pktRxBadChAddr", "Rx invalid Hardware Address type", "pkts", Error;
        rx_bad_request: "pktRxBadDhcpReq", "Rx invalid DHCPREQUEST", "pkts", Error;
        rx_bad_inform: "pktRxBadDhcpInform", "Rx invalid DHCPINFORM", "pkts", Error;
        rx_bad_decline: "pktRxBadDhcpDecline", "Rx invalid DHCPDECLINE", "pkts", Error;
        rx_unknown: "pktRxNoClientCtx", "Client Identifier not found in database.", "pkts", Error;
        rx_discover: "pktRxDiscover", "DHCPDISCOVER packets received", "pkts", Info;
        rx_request: "pktRxRequest", "DHCPREQUEST packets received", "pkts", Info;
        rx_decline: "pktRxDecline", "DHCPDECLINE packets received", "pkts", Info;
        rx_release: "pktRxRelease", "DHCPRELEASE packets received", "pkts", Info;
        rx_inform: "pktRxInform", "DHCPINFORM packets received", "pkts", Info;
        tx: "pktTx", "Tx packets", "pkts", Info;
        tx_offer: "pktTxOffer", "DHCPOFFER packets sent", "pkts", Info;
        tx_ack: "pktTxAck", "DHCPACK packets sent", "pkts", Info;
        tx_nak: "pktTxNak", "DHCPNAK packets sent", "pkts", Info;
        no_address: "noIpAvailable", "No IP available for client", "ops", Info;
        excluded: "negatedIp", "Negated IP as a result of DHCPDECLINE", "ops", Info;
        address_mismatch: "ciaddrMismatch", "Client Ip Addr database mismatch", "ops", Error;
    }
}

/// What a server knows of a host.
#[derive(Clone, Copy, Debug)]
struct Record {
    chaddr: MacAddress,
    /// Whether the host took the offer.
    is_bound: bool,
    address: Ipv4Addr,
    lease_s: u32,
    /// When the lease began.
    since: Nanos,
    /// Ends the offer or the lease.
    timer: TimerId,
    pool: u32,
}

/// A message of a host, and where it came from.
struct Request<'r> {
    header: DhcpHeader,
    options: DhcpOptions<'r>,
    chaddr: MacAddress,
    source_mac: MacAddress,
    /// The server's own addresses.
    server_mac: MacAddress,
    own: Ipv4Addr,
}

impl Request<'_> {
    /// What the host asks for, if it asks for an address.
    fn requested(&self) -> Option<Ipv4Addr> {
        let requested = self.options.requested_address;
        requested.filter(|address| !address.is_unspecified())
    }

    fn is_relayed(&self) -> bool {
        !self.header.giaddr.is_unspecified()
    }

    fn is_broadcast_wanted(&self) -> bool {
        self.header.flags & BROADCAST_FLAG != 0
    }

    /// An answer about nothing.
    fn answer(&self) -> Answer<'_> {
        Answer {
            request: &self.header,
            chaddr: self.chaddr,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            server: self.own,
            mask: Ipv4Addr::UNSPECIFIED,
            lease_s: 0,
            router: None,
            relay_information: self.options.relay_information,
        }
    }

    /// To an address by way of the gateway; back where the request came from when there is none.
    fn by_gateway(
        &self,
        context: &Context<'_>,
        id: ClientId,
        address: Ipv4Addr,
        port: u16,
    ) -> (MacAddress, SocketAddrV4) {
        let gateway = context
            .client(id)
            .and_then(|client| client.gateway_mac_ipv4);
        let mac = gateway.unwrap_or(self.source_mac);
        (mac, SocketAddrV4::new(address, port))
    }
}

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) counters: DhcpServerCounters,
    default_lease_s: u32,
    min_lease_s: u32,
    max_lease_s: u32,
    next_server: Ipv4Addr,
    offer: Template,
    ack: Template,
    inform: Template,
    nak: Template,
    pools: Pools,
    records: Vec<Record>,
    /// Free places among the records.
    free: Vec<u32>,
    /// Ordered, for hosts choose their numbers: they could make a hash table slow.
    by_mac: BTreeMap<[u8; 6], u32>,
}

impl Server {
    /// A server by its init JSON.
    pub(super) fn new(init: &Value) -> Result<Server, Error> {
        let init = Init::parse(init)?;
        let counters = DhcpServerCounters {
            bad_offer_option: init.offer.refused,
            bad_ack_option: init.ack.refused,
            bad_inform_option: init.inform.refused,
            bad_nak_option: init.nak.refused,
            ..DhcpServerCounters::default()
        };
        Ok(Server {
            counters,
            default_lease_s: init.default_lease_s,
            min_lease_s: init.min_lease_s,
            max_lease_s: init.max_lease_s,
            next_server: init.next_server,
            offer: Template::new(MessageType::OFFER, &init.offer.options, true),
            ack: Template::new(MessageType::ACK, &init.ack.options, true),
            inform: Template::new(MessageType::ACK, &init.inform.options, false),
            nak: Template::new(MessageType::NAK, &init.nak.options, false),
            pools: Pools::new(init.pools, &init.excluded),
            records: Vec::new(),
            free: Vec::new(),
            by_mac: BTreeMap::new(),
        })
    }

    /// Takes a message of a host or a relay.
    pub(super) fn handle_frame(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        frame: &Frame<'_>,
    ) {
        let message = frame.payload();
        self.counters.rx += 1;
        self.counters.rx_broadcast += u64::from(frame.destination().is_broadcast());
        let own = context.client(id).map(|client| (client.mac, client.ipv4));
        let header = DhcpHeader::parse(message);
        let parsed = header.and_then(|header| Ok((header, DhcpOptions::parse(message)?)));
        let (Ok((header, options)), Some((server_mac, own))) = (parsed, own) else {
            self.counters.rx_bad_type += 1;
            return;
        };
        let chaddr = header.chaddr.filter(|chaddr| chaddr.is_unicast());
        let Some(chaddr) = chaddr.filter(|&chaddr| chaddr != MacAddress::ZERO) else {
            self.counters.rx_bad_chaddr += 1;
            return;
        };
        let request = Request {
            header,
            options,
            chaddr,
            source_mac: frame.source(),
            server_mac,
            own,
        };
        self.counters.rx_broadcast_flag += u64::from(request.is_broadcast_wanted());
        self.handle_request(context, id, &request);
    }

    fn handle_request(&mut self, context: &mut Context<'_>, id: ClientId, request: &Request<'_>) {
        let message_type = request.options.message_type;
        let message_type = message_type.filter(|_| request.header.operation == REQUEST);
        match message_type {
            Some(MessageType::DISCOVER) => self.handle_discover(context, id, request),
            Some(MessageType::REQUEST) => {
                self.counters.rx_request += 1;
                match self.by_mac.get(&request.chaddr.octets()).copied() {
                    Some(place) => self.handle_lease_request(context, id, request, place),
                    None => self.counters.rx_unknown += 1,
                }
            }
            Some(MessageType::DECLINE) => self.handle_decline(context, request),
            Some(MessageType::RELEASE) => self.handle_release(context, request),
            Some(MessageType::INFORM) => self.handle_inform(context, id, request),
            _ => self.counters.rx_bad_type += 1,
        }
    }

    /// An offer was not taken, or a lease is over.
    pub(super) fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let record = self.records.get(timeout.tag as usize).copied();
        if let Some(record) = record.filter(|record| record.timer == timeout.timer) {
            self.remove(context, timeout.tag);
            self.pools.give_back(record.pool as usize, record.address);
        }
    }
}

/// What a host may ask (RFC 2131 section 4.3).
impl Server {
    /// Section 4.3.1.
    fn handle_discover(&mut self, context: &mut Context<'_>, id: ClientId, request: &Request<'_>) {
        self.counters.rx_discover += 1;
        let pool = self.pool_of(request);
        let known = self.by_mac.get(&request.chaddr.octets()).copied();
        let place = match (pool, known) {
            (None, _) => None,
            (Some(pool), Some(place)) if self.records[place as usize].pool == pool => Some(place),
            (Some(pool), known) => {
                if let Some(place) = known {
                    let old = self.records[place as usize];
                    self.remove(context, place);
                    self.pools.give_back(old.pool as usize, old.address);
                }
                self.add(pool, request)
            }
        };
        let Some(place) = place else {
            self.counters.no_address += 1;
            return;
        };
        let wanted_s = self.wanted_lease_s(request);
        let record = &mut self.records[place as usize];
        let left_s = (context.now - record.since) / SECOND;
        let left_s = u64::from(record.lease_s).saturating_sub(left_s);
        record.lease_s = match wanted_s {
            Some(wanted_s) => wanted_s,
            None if record.is_bound => (left_s as u32).max(1),
            None => self.default_lease_s,
        };
        record.is_bound = false;
        self.set_timer(context, id, place, OFFER_TIME);
        self.counters.tx_offer += 1;
        self.answer_lease(context, id, request, place);
    }

    /// Section 4.3.2.
    fn handle_lease_request(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        request: &Request<'_>,
        place: u32,
    ) {
        let record = self.records[place as usize];
        let ciaddr = request.header.ciaddr;
        let has_ciaddr = !ciaddr.is_unspecified();
        match (request.options.server_id, request.requested()) {
            // Another server was chosen.
            (Some(server), _) if server != request.own => {}
            // SELECTING; again when the ACK was lost.
            (Some(_), Some(wanted)) if wanted == record.address && !has_ciaddr => {
                self.bind(context, id, request, place, record.lease_s);
            }
            // INIT-REBOOT.
            (None, Some(wanted)) if !has_ciaddr => {
                if wanted == record.address && self.pool_of(request) == Some(record.pool) {
                    self.bind(context, id, request, place, self.default_lease_s);
                } else {
                    self.refuse(context, id, request);
                }
            }
            // RENEWING and REBINDING.
            (None, None) if has_ciaddr && ciaddr != record.address => {
                self.counters.address_mismatch += 1;
            }
            (None, None) if has_ciaddr => {
                let renews = u64::from(renewal_s(record.lease_s)) * SECOND;
                if record.is_bound && context.now >= record.since.saturating_add(renews) {
                    self.bind(context, id, request, place, self.default_lease_s);
                }
            }
            _ => self.counters.rx_bad_request += 1,
        }
    }

    /// Section 4.3.3.
    fn handle_decline(&mut self, context: &mut Context<'_>, request: &Request<'_>) {
        self.counters.rx_decline += 1;
        let Some(&place) = self.by_mac.get(&request.chaddr.octets()) else {
            self.counters.rx_unknown += 1;
            return;
        };
        let record = self.records[place as usize];
        let is_ours = request.options.server_id == Some(request.own);
        if !is_ours || request.requested() != Some(record.address) {
            self.counters.rx_bad_decline += 1;
            return;
        }
        self.remove(context, place);
        self.pools.exclude(record.pool as usize, record.address);
        self.counters.excluded += 1;
    }

    /// Section 4.3.4. Hosts that forget to say which server they mean are heard.
    fn handle_release(&mut self, context: &mut Context<'_>, request: &Request<'_>) {
        self.counters.rx_release += 1;
        let server = request.options.server_id;
        let Some(&place) = self.by_mac.get(&request.chaddr.octets()) else {
            self.counters.rx_unknown += 1;
            return;
        };
        let record = self.records[place as usize];
        if request.header.ciaddr != record.address {
            self.counters.address_mismatch += 1;
        } else if server.is_none_or(|server| server == request.own) {
            self.remove(context, place);
            self.pools.give_back(record.pool as usize, record.address);
        }
    }

    /// Section 4.3.5.
    fn handle_inform(&mut self, context: &mut Context<'_>, id: ClientId, request: &Request<'_>) {
        self.counters.rx_inform += 1;
        if request.header.ciaddr.is_unspecified() || request.is_broadcast_wanted() {
            self.counters.rx_bad_inform += 1;
            return;
        }
        self.counters.tx_ack += 1;
        let answer = Answer {
            ciaddr: request.header.ciaddr,
            siaddr: self.next_server,
            ..request.answer()
        };
        let to = request.by_gateway(context, id, request.header.ciaddr, CLIENT_PORT);
        self.counters.tx += 1;
        send(context, request, to, &self.inform, &answer);
    }
}

/// Records.
impl Server {
    /// The pool for the subnet that a request comes from.
    fn pool_of(&self, request: &Request<'_>) -> Option<u32> {
        let subnet = if request.is_relayed() {
            request.header.giaddr
        } else {
            request.own
        };
        self.pools.of_subnet(subnet).map(|pool| pool as u32)
    }

    fn wanted_lease_s(&self, request: &Request<'_>) -> Option<u32> {
        let wanted = request.options.lease_s;
        wanted.filter(|wanted| (self.min_lease_s..=self.max_lease_s).contains(wanted))
    }

    /// Makes a record of a host with an address.
    fn add(&mut self, pool: u32, request: &Request<'_>) -> Option<u32> {
        if self.by_mac.len() >= RECORDS_MAX {
            return None;
        }
        let wanted = request.requested();
        let address = self.pools.take(pool as usize, wanted, request.own)?;
        let record = Record {
            chaddr: request.chaddr,
            is_bound: false,
            address,
            lease_s: self.default_lease_s,
            since: 0,
            timer: TimerId::NONE,
            pool,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.records[place as usize] = record;
                place
            }
            None => {
                self.records.push(record);
                self.records.len() as u32 - 1
            }
        };
        self.by_mac.insert(request.chaddr.octets(), place);
        self.counters.active += 1;
        Some(place)
    }

    fn remove(&mut self, context: &mut Context<'_>, place: u32) {
        let record = &mut self.records[place as usize];
        context.cancel_timer(record.timer);
        record.timer = TimerId::NONE;
        self.by_mac.remove(&record.chaddr.octets());
        self.free.push(place);
        self.counters.active = self.counters.active.saturating_sub(1);
    }

    fn set_timer(&mut self, context: &mut Context<'_>, id: ClientId, place: u32, delay: Nanos) {
        let record = &mut self.records[place as usize];
        context.cancel_timer(record.timer);
        record.timer = context.set_timer(delay, Some(id), place);
    }

    /// A lease begins, or begins again; the host is told.
    fn bind(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        request: &Request<'_>,
        place: u32,
        lease_s: u32,
    ) {
        let lease_s = self.wanted_lease_s(request).unwrap_or(lease_s);
        let record = &mut self.records[place as usize];
        record.is_bound = true;
        record.lease_s = lease_s;
        record.since = context.now;
        self.set_timer(context, id, place, u64::from(lease_s) * SECOND);
        self.counters.tx_ack += 1;
        self.answer_lease(context, id, request, place);
    }
}

/// What it answers.
impl Server {
    /// An offer, or the ACK of a lease (RFC 2131 table 3).
    fn answer_lease(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        request: &Request<'_>,
        place: u32,
    ) {
        let record = &self.records[place as usize];
        let header = &request.header;
        let (template, ciaddr) = match record.is_bound {
            true => (&self.ack, header.ciaddr),
            false => (&self.offer, Ipv4Addr::UNSPECIFIED),
        };
        let answer = Answer {
            ciaddr,
            yiaddr: record.address,
            siaddr: self.next_server,
            mask: self.pools.mask(record.pool as usize),
            lease_s: record.lease_s,
            router: request.is_relayed().then_some(header.giaddr),
            ..request.answer()
        };
        // Section 4.1.
        let to = if request.is_relayed() {
            request.by_gateway(context, id, header.giaddr, SERVER_PORT)
        } else if !ciaddr.is_unspecified() {
            request.by_gateway(context, id, ciaddr, CLIENT_PORT)
        } else if request.is_broadcast_wanted() {
            TO_ALL
        } else {
            let address = SocketAddrV4::new(record.address, CLIENT_PORT);
            (request.chaddr, address)
        };
        self.counters.tx += 1;
        send(context, request, to, template, &answer);
    }

    fn refuse(&mut self, context: &mut Context<'_>, id: ClientId, request: &Request<'_>) {
        self.counters.tx_nak += 1;
        self.counters.tx += 1;
        let to = match request.is_relayed() {
            true => request.by_gateway(context, id, request.header.giaddr, SERVER_PORT),
            false => TO_ALL,
        };
        send(context, request, to, &self.nak, &request.answer());
    }
}

/// All hosts of the link.
const TO_ALL: (MacAddress, SocketAddrV4) = (
    MacAddress::BROADCAST,
    SocketAddrV4::new(Ipv4Addr::BROADCAST, CLIENT_PORT),
);

fn send(
    context: &mut Context<'_>,
    request: &Request<'_>,
    (mac, to): (MacAddress, SocketAddrV4),
    template: &Template,
    answer: &Answer<'_>,
) {
    let macs = Macs {
        source: request.server_mac,
        destination: mac,
    };
    let from = SocketAddrV4::new(request.own, SERVER_PORT);
    let bytes = template.bytes(answer);
    let service = Service::hops(TIME_TO_LIVE);
    context.send_udp_ipv4(macs, service, from, to, bytes, |message| {
        template.write(message, answer);
    });
}
