//! Multicast DNS (RFC 6762): clients answer for their host names, ask for others, and share a cache.
//!
//! As in the reference, answers come at once, without probing, announcing or suppression of known
//! answers.

mod client;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Command, Empty, Error, Example};
use allosaur_packet::frame::Network;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::client::MdnsClient;
use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::datagrams;
use crate::dns::auto_play::{self, Played, Player};
use crate::dns::cache::{Cache, CachedAnswer};
use crate::dns::message::{AUTHORITATIVE, Builder, Message, Question, RESPONSE};
use crate::dns::query::{self, Queries, Query, QueryFields};
use crate::frame::{Frame, FrameKind};
use crate::iter::{Page, PageParams};
use crate::namespace::Namespace;
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::read::{Done, Listable, Listed};
use crate::spec::{
    Keys, OfClient, OfNamespace, Scope, Spec, about_client, about_namespace, client_counters,
    namespace_counters,
};
use crate::udp::Service;

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "mdns",
    frames: &[FrameKind::Mdns],
    commands: &[
        client_counters::<Mdns>("mdns_c_cnt", Access::Open),
        Command {
            name: "mdns_c_add_remove_hosts",
            doc: "Gives host names to a client, or takes them from it.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "op": false, "hosts": ["printer.local"]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Mdns::change_hosts))
        },
        Command {
            name: "mdns_c_get_hosts",
            doc: "Lists the host names of a client.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"["printer.local"]"#,
            },
            ..about_client(&OfClient(Mdns::hosts))
        },
        Command {
            name: "mdns_c_query",
            doc: "Has a client ask all for names.",
            errors: &[
                "a name, a type or a class is none",
                "the client has no address to ask from",
            ],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "queries": [{"name": "printer.local", "dns_type": "A", "ipv6": false}]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Mdns::query))
        },
        namespace_counters::<Mdns>("mdns_ns_cnt", Access::Open),
        Command {
            name: "mdns_ns_cache_iter",
            doc: "Lists the answers that a namespace keeps, a page at a time.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "reset": true, "count": 255}"#,
                result: r#"{"empty": false, "stopped": false, "data": [{"name": "printer.local", "dns_type": "A", "dns_class": "IN", "ttl": 240, "answer": "1.1.1.3", "time_left": 100}]}"#,
            },
            ..about_namespace(&OfNamespace(Mdns::cached))
        },
        Command {
            name: "mdns_ns_cache_flush",
            doc: "Has a namespace forget all answers.",
            example: Example {
                params: r#"{"tun": {"vport": 0}}"#,
                result: r#"true"#,
            },
            ..about_namespace(&OfNamespace(Mdns::flush))
        },
    ],
    counters: &[
        ("", MdnsCounters::META),
        ("client", client::MdnsClientCounters::META),
    ],
    keys: Keys::Only(&[
        "hosts",
        "domain_name",
        "txt",
        "ttl",
        "auto_play",
        "auto_play_params",
    ]),
    scope: Scope::Namespace,
    create: |context, init| Ok(Box::new(Mdns::new(context, init)?)),
};

/// Where all messages go (RFC 6762, section 3).
const PORT: u16 = 5353;
const GROUP_IPV4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_IPV6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
/// Hops of all messages (RFC 6762, section 11).
const HOPS: u8 = 255;

/// Most answers that a namespace remembers.
const ANSWERS_MAX: usize = 16_384;

const QUERIES: query::Naming = query::Naming {
    params: "ApiMDnsQueryParams",
    embedded: ".DnsQueryParams",
};
const AUTO_PLAY: auto_play::Naming = auto_play::Naming {
    params: "MDnsAutoPlayParams",
    what: "mDNS",
};

crate::counters! {
    /// Counters of mDNS in a namespace.
    pub(crate) struct MdnsCounters: u64, "mdns" {
        invalid_init_json: "invalidInitJson", "Error while decoding init Json", "ops", Error;
        rx_too_short: "pktRxErrTooShort", "Rx packet too short", "ops", Error;
        rx_bad_mac: "pktRxBadDstMac", "mDns packet received with invalid Dst Mac", "ops", Error;
        rx_bad_ip: "pktRxBadDstIp", "mDns packet received with invalid Dst Ip", "ops", Error;
        rx_bad_ether_type: "pktRxBadEthType", "mDns packet received with invalid Ethernet Type", "ops", Error;
        rx_bad_ttl: "pktRxBadTTL", "mDns packet received with invalid TTL", "ops", Error;
        rx_packets: "rxPkts", "Num of mDNS pkts received", "pkts", Info, zero;
        rx_questions: "rxQuestions", "Num of mDNS questions received in namespace", "query", Info, zero;
        rx_answers: "rxAnswers", "Numb of mDNS answers received in namespace", "reply", Info, zero;
        rx_authorities: "rxAuthoritiesUnhandled", "Num of authorities unhandled in Rx packets", "ops", Info;
        rx_additional: "rxAddRecordsUnhandled", "Num of additional records unhandled in Rx packets", "ops", Info;
        auto_play_client_not_found: "autoPlayClientNotFound", "AutoPlay client was not found", "ops", Info;
        auto_play_client_without: "clientNoMDns", "AutoPlay client doesn't have mDns plugin", "ops", Error;
        auto_play_queries: "autoPlayQueries", "Number of queries sent by Auto Play", "query", Info;
        auto_play_bad_query: "autoPlayBadQuery", "Number of bad queries created by Auto Play", "ops", Error;
    }
}

/// mDNS in a namespace.
struct Mdns {
    counters: MdnsCounters,
    clients: ClientMap<Box<MdnsClient>>,
    /// Whose a host name is, by the name in lower case.
    owners: BTreeMap<String, ClientId>,
    cache: Cache,
    auto_play: Player,
}

impl Plugin for Mdns {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let (state, hosts) = MdnsClient::parse(init)?;
        self.clients.insert(client, Box::new(state));
        self.add_hosts(client, &hosts);
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, client: ClientId) {
        let state = self.clients.remove(client);
        for host in state.map(|state| state.hosts).unwrap_or_default() {
            self.owners.remove(&host.to_ascii_lowercase());
        }
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Some(group) = self.check(frame) else {
            return;
        };
        let Some(message) = Message::parse(frame.payload()) else {
            self.counters.rx_too_short += 1;
            return;
        };
        self.counters.rx_packets += 1;
        self.counters.rx_authorities += u64::from(message.others[0]);
        self.counters.rx_additional += u64::from(message.others[1]);
        if message.flags & RESPONSE == 0 {
            self.counters.rx_questions += message.questions.len() as u64;
            self.answer(context, &message.questions, group);
        } else {
            self.counters.rx_answers += message.answers.len() as u64;
            for answer in &message.answers {
                self.cache.insert(context.now, answer);
            }
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, _timeout: Timeout) {
        let clients = &mut self.clients;
        let played = self
            .auto_play
            .handle_timeout(context, |context, client, queries| {
                let state = clients.get_mut(client)?;
                Some(state.ask(context, client, queries))
            });
        let counters = &mut self.counters;
        match played {
            None => {}
            Some(Played::Sent) => counters.auto_play_queries += 1,
            Some(Played::NoClient) => counters.auto_play_client_not_found += 1,
            Some(Played::WithoutPlugin) => counters.auto_play_client_without += 1,
            Some(Played::Refused) => counters.auto_play_bad_query += 1,
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        match client {
            None => show(0, &mut self.counters),
            Some(client) => {
                if let Some(client) = self.clients.get_mut(client) {
                    show(1, &mut client.counters);
                }
            }
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }
}

/// Which host names to give to a client, or to take from it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangeHosts {
    /// Whether to take them; else they are given.
    op: bool,
    /// The names.
    hosts: Listed<String>,
}

/// The host names that were not given, since another client has them, or not taken, since the client does
/// not have them; `true` when there are none.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Refused {
    /// There are none.
    None(Done),
    /// These.
    Hosts(Vec<String>),
}

/// A query.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
struct MdnsQuery(QueryFields);

impl Listable for MdnsQuery {
    const LIST: &'static str = "[]mdns.MDnsQueryParams";
}

impl From<MdnsQuery> for QueryFields {
    fn from(MdnsQuery(fields): MdnsQuery) -> QueryFields {
        fields
    }
}

/// Its commands.
impl Mdns {
    fn client(&mut self, client: ClientId) -> Result<&mut MdnsClient, Error> {
        let client = self.clients.get_mut(client);
        let client = client.ok_or_else(|| Error::execution("the client has no mDNS"))?;
        Ok(client)
    }

    fn change_hosts(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        params: ChangeHosts,
    ) -> Result<Refused, Error> {
        self.client(client)?;
        let refused = match params.op {
            true => self.remove_hosts(client, params.hosts.0),
            false => self.add_hosts(client, &params.hosts.0),
        };
        Ok(match refused.is_empty() {
            true => Refused::None(Done),
            false => Refused::Hosts(refused),
        })
    }

    fn hosts(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        _: Empty,
    ) -> Result<Vec<String>, Error> {
        Ok(self.client(client)?.hosts.clone())
    }

    fn query(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        queries: Queries<MdnsQuery>,
    ) -> Result<Done, Error> {
        let queries = query::parse(queries, &QUERIES)?;
        self.client(client)?.ask(context, client, &queries)?;
        Ok(Done)
    }

    fn cached(
        &mut self,
        context: &mut Context<'_>,
        params: PageParams,
    ) -> Result<Page<CachedAnswer>, Error> {
        let count = params.count("ApiMDnsCacheIterParams")?;
        Ok(self.cache.page(context.now, params.reset, count))
    }

    fn flush(&mut self, _: &mut Context<'_>, _: Empty) -> Result<Done, Error> {
        self.cache.flush();
        Ok(Done)
    }
}

impl Mdns {
    fn new(context: &mut Context<'_>, init: &Value) -> Result<Mdns, PluginError> {
        Ok(Mdns {
            counters: MdnsCounters::default(),
            clients: ClientMap::default(),
            owners: BTreeMap::new(),
            cache: Cache::new(ANSWERS_MAX),
            auto_play: Player::start(context, init, &AUTO_PLAY)?,
        })
    }

    /// Gives host names to a client; returns those that somebody has.
    fn add_hosts(&mut self, client: ClientId, hosts: &[String]) -> Vec<String> {
        let mut taken = Vec::new();
        for host in hosts {
            let key = host.to_ascii_lowercase();
            match self.clients.get_mut(client) {
                Some(state) if !self.owners.contains_key(&key) => {
                    self.owners.insert(key, client);
                    state.hosts.push(host.clone());
                }
                _ => taken.push(host.clone()),
            }
        }
        taken
    }

    /// Takes host names from a client; returns those that it does not have.
    fn remove_hosts(&mut self, client: ClientId, hosts: Vec<String>) -> Vec<String> {
        let mut missing = Vec::new();
        for host in hosts {
            let state = self.clients.get_mut(client);
            let place = state.and_then(|state| {
                let mut names = state.hosts.iter();
                let place = names.position(|name| name.eq_ignore_ascii_case(&host))?;
                Some(state.hosts.remove(place))
            });
            match place {
                Some(name) => {
                    self.owners.remove(&name.to_ascii_lowercase());
                }
                None => missing.push(host),
            }
        }
        missing
    }

    /// Checks a frame's addresses and hops (RFC 6762, section 11), and says which group it is for.
    fn check(&mut self, frame: &Frame<'_>) -> Option<IpAddr> {
        let packet = frame.packet();
        let (destination, hops, group) = match frame.layout.network {
            Network::Ipv4 => {
                let view = Ipv4View::new_checked(packet).ok()?;
                let destination = IpAddr::V4(view.destination());
                (destination, view.time_to_live(), IpAddr::V4(GROUP_IPV4))
            }
            Network::Ipv6 => {
                let view = Ipv6View::new_checked(packet).ok()?;
                let destination = IpAddr::V6(view.destination());
                (destination, view.hop_limit(), IpAddr::V6(GROUP_IPV6))
            }
            _ => {
                self.counters.rx_bad_ether_type += 1;
                return None;
            }
        };
        let wrong = if Some(frame.destination()) != datagrams::multicast_mac(group) {
            &mut self.counters.rx_bad_mac
        } else if destination != group {
            &mut self.counters.rx_bad_ip
        } else if hops != HOPS {
            &mut self.counters.rx_bad_ttl
        } else {
            return Some(group);
        };
        *wrong += 1;
        None
    }

    /// Answers questions: each client that owns a name that is asked for, in one message.
    fn answer(&mut self, context: &mut Context<'_>, questions: &[Question], group: IpAddr) {
        let mut by_client: BTreeMap<ClientId, Vec<&Question>> = BTreeMap::new();
        for question in questions {
            if let Some(client) = self.owners.get(&question.name.key()) {
                by_client.entry(*client).or_default().push(question);
            }
        }
        for (client, questions) in by_client {
            let Some(state) = self.clients.get_mut(client) else {
                continue;
            };
            state.counters.rx_queries += 1;
            let Some(source) = datagrams::source(context, client, group) else {
                state.counters.no_ipv6_to_answer += u32::from(group.is_ipv6());
                continue;
            };
            let limit = datagrams::payload_bytes_max(context, client, group.is_ipv6());
            let mut message = Builder::new(0, AUTHORITATIVE, limit);
            for question in questions {
                // What does not fit into the packet is left out.
                if let Ok(data) = state.data(context, client, question.kind) {
                    message.answer(question, state.ttl_s, &data);
                }
            }
            if message.answers() > 0 {
                state.counters.tx_responses += 1;
                multicast(context, client, source, group, &message.finish());
            }
        }
    }
}

impl MdnsClient {
    /// Sends queries: a message by IPv4, one by IPv6.
    fn ask(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        queries: &[Query],
    ) -> Result<(), Error> {
        let mut messages = Vec::new();
        for group in [IpAddr::V4(GROUP_IPV4), IpAddr::V6(GROUP_IPV6)] {
            let ipv6 = group.is_ipv6();
            let mut asked = queries.iter().filter(|query| query.ipv6 == ipv6).peekable();
            if asked.peek().is_none() {
                continue;
            }
            let Some(source) = datagrams::source(context, client, group) else {
                if !ipv6 {
                    self.counters.socket_write_error += 1;
                    return Err(Error::bad_params(
                        "IPv4 query but the client has no IPv4 address.",
                    ));
                }
                self.counters.no_ipv6_to_ask += 1;
                return Err(Error::bad_params(
                    "Ipv6 query but no Ipv6 plugin enabled for client.",
                ));
            };
            let limit = datagrams::payload_bytes_max(context, client, ipv6);
            messages.push((source, group, query::message(0, asked, limit)?));
        }
        for (source, group, message) in messages {
            self.counters.tx_queries += 1;
            multicast(context, client, source, group, &message);
        }
        Ok(())
    }
}

/// Sends a message of a client to all.
fn multicast(
    context: &mut Context<'_>,
    client: ClientId,
    source: IpAddr,
    group: IpAddr,
    message: &[u8],
) {
    let macs = context.client(client).map(|client| client.mac);
    if let (Some(from), Some(to)) = (macs, datagrams::multicast_mac(group)) {
        let source = SocketAddr::new(source, PORT);
        let group = SocketAddr::new(group, PORT);
        datagrams::send_packet(
            context,
            [from, to],
            source,
            group,
            Service::hops(HOPS),
            message,
        );
    }
}
