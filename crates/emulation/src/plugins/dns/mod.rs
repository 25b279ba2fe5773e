//! DNS (RFC 1035): clients that ask a server and remember its answers, and clients that are servers.

mod database;
mod resolver;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Command, Empty, Error, Example};
use serde::Deserialize;
use serde_json::Value;

use self::database::{Database, DnsRecord, Entry};
use self::resolver::Resolver;
use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::datagrams;
use crate::dns::auto_play::{self, Played, Player};
use crate::dns::cache::CachedAnswer;
use crate::dns::message::{AUTHORITATIVE, Builder, FORMAT_ERROR, Message, NAME_ERROR, RESPONSE};
use crate::dns::query::{self, Queries, Query, QueryFields};
use crate::iter::{Page, PageParams};
use crate::namespace::Namespace;
use crate::params::{Params, mismatch};
use crate::plugin::{Context, Event, Plugin, PluginError, Timeout};
use crate::read::{Done, Listable, Listed};
use crate::sockets::Datagram;
use crate::spec::{Keys, OfClient, Scope, Spec, about_client, client_counters, namespace_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "dns",
    frames: &[],
    commands: &[
        client_counters::<Dns>("dns_c_cnt", Access::Open),
        Command {
            name: "dns_c_add_remove_domain_entries",
            doc: "Adds entries to a domain of a name server, or removes them.",
            errors: &[
                "the client is no name server",
                "there would be too many entries",
            ],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "op": false, "domain": "example.org", "entries": [{"type": "A", "class": "IN", "answer": "1.1.1.3"}]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Dns::change_domain))
        },
        Command {
            name: "dns_c_get_domain_entries",
            doc: "Lists the entries of a domain of a name server.",
            errors: &["the client is no name server", "it has no such domain"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "domain": "example.org"}"#,
                result: r#"[{"type": "A", "class": "IN", "answer": "1.1.1.3"}]"#,
            },
            ..about_client(&OfClient(Dns::domain))
        },
        Command {
            name: "dns_c_get_domains",
            doc: "Lists the domains of a name server.",
            errors: &["the client is no name server"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"["example.org"]"#,
            },
            ..about_client(&OfClient(Dns::domains))
        },
        Command {
            name: "dns_c_query",
            doc: "Has a client ask its name server.",
            errors: &[
                "the client is a name server",
                "a name, a type or a class is none",
                "the gateway is not known yet",
            ],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "queries": [{"name": "example.org", "dns_type": "A", "dns_class": "IN"}]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Dns::query))
        },
        Command {
            name: "dns_c_cache_iter",
            doc: "Lists the answers that a client keeps, a page at a time.",
            errors: &["the client is a name server"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "reset": true, "count": 255}"#,
                result: r#"{"empty": false, "stopped": false, "data": [{"name": "example.org", "dns_type": "A", "dns_class": "IN", "ttl": 240, "answer": "1.1.1.3", "time_left": 100}]}"#,
            },
            ..about_client(&OfClient(Dns::cached))
        },
        Command {
            name: "dns_c_cache_flush",
            doc: "Has a client forget all answers.",
            errors: &["the client is a name server"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Dns::flush))
        },
        namespace_counters::<Dns>("dns_ns_cnt", Access::Open),
    ],
    counters: &[("", DnsCounters::META), ("client", DnsClientCounters::META)],
    keys: Keys::Only(&[
        "dns_server_ip",
        "name_server",
        "database",
        "auto_play",
        "auto_play_params",
    ]),
    scope: Scope::Namespace,
    create: |context, init| Ok(Box::new(Dns::new(context, init)?)),
};

/// Where servers listen.
const PORT: u16 = 53;
/// Seconds that the answers of a server are good for.
const TTL_S: u32 = 240;

const QUERIES: query::Naming = query::Naming {
    params: "ApiDnsQueryParams",
    embedded: "",
};
const AUTO_PLAY: auto_play::Naming = auto_play::Naming {
    params: "DnsAutoPlayParams",
    what: "DNS",
};

crate::counters! {
    /// Counters of DNS in a namespace.
    pub(crate) struct DnsCounters: u64, "dns" {
        invalid_init_json: "invalidInitJson", "Error while decoding init Json", "ops", Error;
        auto_play_client_not_found: "autoPlayClientNotFound", "AutoPlay client was not found", "ops", Info;
        auto_play_client_without: "clientNoDns", "AutoPlay client doesn't have Dns plugin", "ops", Error;
        auto_play_queries: "autoPlayQueries", "Number of queries sent by Auto Play", "query", Info;
        auto_play_bad_query: "autoPlayBadQuery", "Number of bad queries created by Auto Play", "ops", Error;
    }
}

crate::counters! {
    /// Counters of DNS of a client.
    pub(crate) struct DnsClientCounters: u32, "dns" {
        invalid_init_json: "invalidInitJson", "Error while decoding init Json", "ops", Error;
        invalid_socket: "invalidSocket", "Error creating socket", "ops", Error;
        socket_write_error: "socketWriteError", "Error writing in socket", "ops", Error;
        socket_close_error: "socketCloseError", "Error closing socket", "ops", Error;
        rx_undecodable: "pktRxDecodeError", "Num of invalid Dns packets received", "ops", Error;
        invalid_ip: "invalidIpInDb", "Invalid Ip found in Name Server Database.", "ops", Error;
        tx_bytes: "txBytes", "Number of bytes transmitted", "bytes", Info, zero;
        rx_bytes: "rxBytes", "Number of bytes received", "bytes", Info, zero;
        rx_questions: "rxQuestions", "Number of questions received", "ops", Info, zero;
        rx_unknown: "rxQuestionsNxDomain", "Number of questions received with non existant domains", "ops", Info, zero;
        accepted: "dnsFlowAccept", "Number of Dns flows accepted. Each request is a new flow.", "ops", Info, zero;
        tx_queries: "pktTxDnsQuery", "Num of Dns queries transmitted", "pkts", Info, zero;
        rx_queries: "pktRxDnsQuery", "Num of Dns queries received", "pkts", Info, zero;
        tx_responses: "pktTxDnsResponse", "Num of Dns responses transmitted", "pkts", Info, zero;
        rx_responses: "pktRxDnsResponse", "Num of Dns responses received", "pkts", Info, zero;
        unsupported: "unsupportedDnsType", "Num of queries received with an unsupported type", "query", Info;
    }
}

/// What a client is.
#[derive(Debug)]
enum Role {
    /// It asks a server.
    Resolver(Resolver),
    /// It is one.
    Server(Database),
}

/// One client.
#[derive(Debug)]
struct DnsClient {
    counters: DnsClientCounters,
    role: Role,
}

/// DNS in a namespace.
struct Dns {
    counters: DnsCounters,
    clients: ClientMap<Box<DnsClient>>,
    auto_play: Player,
}

impl Plugin for Dns {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        if !init.is_null() && !init.is_object() {
            return Err(mismatch(init, "dns.DnsClientParams").into());
        }
        let params = Params::new(init);
        let role = if params.bool_or("name_server", false)? {
            let database = Database::parse(init)?;
            let owner = context.this().0;
            context.namespace.sockets.of(client).listen(PORT, owner);
            Role::Server(database)
        } else {
            Role::Resolver(Resolver::open(context, client, params)?)
        };
        let counters = DnsClientCounters::default();
        self.clients
            .insert(client, Box::new(DnsClient { counters, role }));
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        self.clients.remove(client);
        context.namespace.sockets.remove(client);
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

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        let Event::Message { data, .. } = event else {
            return;
        };
        if let (Some(state), Some(datagram)) =
            (self.clients.get_mut(client), Datagram::decode(data))
        {
            state.receive(context, client, &datagram);
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

impl Dns {
    fn new(context: &mut Context<'_>, init: &Value) -> Result<Dns, PluginError> {
        Ok(Dns {
            counters: DnsCounters::default(),
            clients: ClientMap::default(),
            auto_play: Player::start(context, init, &AUTO_PLAY)?,
        })
    }
}

/// What to change of a domain.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangeDomain {
    /// Whether to remove entries; else they are added.
    op: bool,
    /// The domain.
    domain: String,
    /// The entries.
    entries: Listed<Entry>,
}

/// Which domain.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DomainParams {
    /// The domain.
    domain: String,
}

/// A query.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
struct DnsQuery(QueryFields);

impl Listable for DnsQuery {
    const LIST: &'static str = "[]dns_utils.DnsQueryParams";
}

impl From<DnsQuery> for QueryFields {
    fn from(DnsQuery(fields): DnsQuery) -> QueryFields {
        fields
    }
}

/// Its commands.
impl Dns {
    fn client(&mut self, client: ClientId) -> Result<&mut DnsClient, Error> {
        let client = self.clients.get_mut(client);
        let client = client.ok_or_else(|| Error::execution("the client has no DNS"))?;
        Ok(client)
    }

    fn change_domain(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        params: ChangeDomain,
    ) -> Result<Done, Error> {
        let database = self.client(client)?.database()?;
        match params.op {
            true => database.remove(&params.domain, &params.entries.0),
            false => database.insert(&params.domain, params.entries.0)?,
        }
        Ok(Done)
    }

    fn domain(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        DomainParams { domain }: DomainParams,
    ) -> Result<Vec<DnsRecord>, Error> {
        let found = self.client(client)?.database()?.report(&domain);
        found.ok_or_else(|| Error::execution(format!("Domain {domain} not in database!")))
    }

    fn domains(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        _: Empty,
    ) -> Result<Vec<String>, Error> {
        Ok(self.client(client)?.database()?.domains())
    }

    fn query(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        queries: Queries<DnsQuery>,
    ) -> Result<Done, Error> {
        let queries = query::parse(queries, &QUERIES)?;
        self.client(client)?.ask(context, client, &queries)?;
        Ok(Done)
    }

    fn cached(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: PageParams,
    ) -> Result<Page<CachedAnswer>, Error> {
        let count = params.count("ApiDnsCacheIterParams")?;
        let cache = &mut self.client(client)?.resolver()?.cache;
        Ok(cache.page(context.now, params.reset, count))
    }

    fn flush(&mut self, _: &mut Context<'_>, client: ClientId, _: Empty) -> Result<Done, Error> {
        self.client(client)?.resolver()?.cache.flush();
        Ok(Done)
    }
}

impl DnsClient {
    fn resolver(&mut self) -> Result<&mut Resolver, Error> {
        match &mut self.role {
            Role::Resolver(resolver) => Ok(resolver),
            Role::Server(_) => Err(Error::execution(
                "This operation is permitted only in non Name Servers.",
            )),
        }
    }

    fn database(&mut self) -> Result<&mut Database, Error> {
        match &mut self.role {
            Role::Server(database) => Ok(database),
            Role::Resolver(_) => Err(Error::execution(
                "This operation is permitted for Dns Name Servers only!",
            )),
        }
    }

    /// Sends one message with all queries.
    fn ask(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        queries: &[Query],
    ) -> Result<(), Error> {
        let Role::Resolver(resolver) = &self.role else {
            return Err(Error::bad_params(
                "Querying is not permitted for Dns Name Servers!",
            ));
        };
        if queries.is_empty() {
            return Ok(());
        }
        let (port, server) = (resolver.port, resolver.server);
        let id = context.draw("dns_id") as u16;
        let limit = datagrams::payload_bytes_max(context, client, server.is_ipv6());
        let message = query::message(id, queries.iter(), limit)?;
        if datagrams::send(context, client, port, server, &message).is_err() {
            self.counters.socket_write_error += 1;
            return Err(Error::execution(
                "the query was not sent: the MAC address of the gateway is not known yet",
            ));
        }
        self.counters.tx_queries += 1;
        self.counters.tx_bytes += message.len() as u32;
        Ok(())
    }

    fn receive(&mut self, context: &mut Context<'_>, client: ClientId, datagram: &Datagram<'_>) {
        self.counters.rx_bytes += datagram.payload.len() as u32;
        let message = Message::parse(datagram.payload);
        if message.is_none() {
            self.counters.rx_undecodable += 1;
        }
        match (&mut self.role, message) {
            (Role::Resolver(resolver), Some(message)) if message.flags & RESPONSE != 0 => {
                self.counters.rx_responses += 1;
                resolver.remember(context.now, &message);
            }
            (Role::Resolver(_), _) => {}
            (Role::Server(_), message) => {
                self.counters.accepted += 1;
                // A response to a response would go to and fro for ever.
                if message
                    .as_ref()
                    .is_none_or(|message| message.flags & RESPONSE == 0)
                {
                    self.respond(context, client, datagram, message);
                }
                // Each query is a flow of its own.
                let sockets = context.namespace.sockets.of(client);
                sockets.close(datagram.port, datagram.remote);
            }
        }
    }

    fn respond(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        datagram: &Datagram<'_>,
        query: Option<Message>,
    ) {
        let limit = datagrams::payload_bytes_max(context, client, datagram.remote.is_ipv6());
        let response = match query {
            None => {
                let mut response = Builder::new(0, AUTHORITATIVE, limit);
                response.set_code(FORMAT_ERROR);
                response
            }
            Some(query) => self.answer(&query, limit),
        };
        let response = response.finish();
        match datagrams::send(context, client, datagram.port, datagram.remote, &response) {
            Ok(()) => {
                self.counters.tx_responses += 1;
                self.counters.tx_bytes += response.len() as u32;
            }
            Err(_) => self.counters.socket_write_error += 1,
        }
    }

    fn answer(&mut self, query: &Message, limit: usize) -> Builder {
        self.counters.rx_queries += 1;
        self.counters.rx_questions += query.questions.len() as u32;
        let mut response = Builder::new(query.id, AUTHORITATIVE, limit);
        let Role::Server(database) = &self.role else {
            return response;
        };
        for question in &query.questions {
            if !response.question(&question.name, question.kind, question.class) {
                response.set_truncated();
                return response;
            }
        }
        for question in &query.questions {
            let answers = database.answers(question, &mut self.counters);
            self.counters.rx_unknown += u32::from(answers.is_empty());
            for (record, data) in answers {
                if !response.answer(&record, TTL_S, &data) {
                    response.set_truncated();
                }
            }
        }
        if response.answers() == 0 {
            response.set_code(NAME_ERROR);
        }
        response
    }
}
