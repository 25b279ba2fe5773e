//! Clients that ask by themselves: at a rate, one client after the other, one name after the other.

use std::collections::BTreeMap;

use allosaur_api::Error;
use allosaur_engine::time::Nanos;
use allosaur_packet::MacAddress;
use serde_json::Value;

use super::query::Query;
use crate::client::ClientId;
use crate::params::{Params, mismatch};
use crate::plugin::Context;

/// Most queries a second.
const RATE_MAX: f64 = 1e6;

/// What `auto_play_params` may have.
const KEYS: [&str; 14] = [
    "rate",
    "query_amount",
    "min_client",
    "max_client",
    "client_step",
    "hostname_template",
    "min_hostname",
    "max_hostname",
    "init_hostname",
    "hostname_step",
    "type",
    "class",
    "ipv6",
    "program",
];

/// Numbers from `min` to `max` in steps, round and round; the wrap itself counts one.
#[derive(Clone, Copy, Debug)]
struct Counter {
    min: u64,
    count: u64,
    step: u64,
    at: u64,
}

impl Counter {
    fn new(min: u64, max: u64, step: u64, init: u64) -> Counter {
        let count = max - min + 1;
        Counter {
            min,
            count,
            step: step.max(1) % count,
            at: init - min,
        }
    }

    fn next(&mut self) -> u64 {
        let value = self.min + self.at;
        self.at = (self.at + self.step) % self.count;
        value
    }
}

/// What became of a query that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Played {
    /// It was sent.
    Sent,
    /// There is no client with the MAC address.
    NoClient,
    /// The client does not have the plugin: no more queries are sent.
    WithoutPlugin,
    /// The client could not send it.
    Refused,
}

/// The queries that a namespace sends by itself, if it does, and when.
#[derive(Debug)]
pub(crate) struct Player {
    play: Option<AutoPlay>,
    /// When the next query is due.
    next: Nanos,
}

impl Player {
    /// By the namespace's init JSON; sets the timer of the first query.
    ///
    /// # Errors
    /// When a parameter is missing, has the wrong type or makes no sense.
    pub(crate) fn start(
        context: &mut Context<'_>,
        init: &Value,
        naming: &Naming,
    ) -> Result<Player, Error> {
        let mut player = Player {
            play: AutoPlay::parse(init, naming)?,
            next: context.now,
        };
        player.schedule(context);
        Ok(player)
    }

    /// The timer is over: has the client whose turn it is send its queries by `ask`, which gives `None`
    /// when the client does not have the plugin. `None` when nothing was to be sent.
    pub(crate) fn handle_timeout(
        &mut self,
        context: &mut Context<'_>,
        ask: impl FnOnce(&mut Context<'_>, ClientId, &[Query]) -> Option<Result<(), Error>>,
    ) -> Option<Played> {
        let (mac, queries) = self.play.as_mut()?.next()?;
        let client = context.namespace.clients.by_mac(mac);
        let played = match client.map(|client| ask(context, client, &queries)) {
            None => Played::NoClient,
            Some(None) => {
                self.play = None;
                Played::WithoutPlugin
            }
            Some(Some(Ok(()))) => {
                self.play.as_mut().map(AutoPlay::sent);
                Played::Sent
            }
            Some(Some(Err(_))) => Played::Refused,
        };
        self.schedule(context);
        Some(played)
    }

    /// Sets the timer; each query is due a period after the last one was.
    fn schedule(&mut self, context: &mut Context<'_>) {
        if let Some(play) = self.play.as_ref().filter(|play| !play.is_over()) {
            self.next = self.next.saturating_add(context.period(play.rate));
            let delay = self.next.saturating_sub(context.now);
            context.set_timer(delay, None, 0);
        }
    }
}

/// Which clients ask for what, and how often.
#[derive(Debug)]
struct AutoPlay {
    /// Queries a second.
    rate: f64,
    /// How many are left to send; endless without.
    left: Option<u64>,
    clients: Counter,
    hosts: Counter,
    /// What stands before and behind the number in a host name.
    template: (String, Option<String>),
    kind: String,
    class: String,
    ipv6: bool,
    /// What single clients ask for instead.
    program: BTreeMap<MacAddress, Vec<Query>>,
}

/// The reference's names for errors.
pub(crate) struct Naming {
    /// Type of the parameters, such as `DnsAutoPlayParams`.
    pub(crate) params: &'static str,
    /// What is created, such as `DNS`.
    pub(crate) what: &'static str,
}

impl AutoPlay {
    /// Reads `auto_play` and `auto_play_params` of a namespace's init JSON.
    ///
    /// # Errors
    /// When a parameter is missing, has the wrong type or makes no sense.
    fn parse(init: &Value, naming: &Naming) -> Result<Option<AutoPlay>, Error> {
        let init = Params::new(init);
        if !init.bool_or("auto_play", false)? {
            return Ok(None);
        }
        let params = Params::new(init.get("auto_play_params").unwrap_or(&Value::Null));
        params.only_in("auto_play_params", &KEYS)?;
        check_required(params, naming)?;
        let parsed = AutoPlay::read(params).map_err(|error| {
            Error::execution(format!(
                "could not create {} autoplay, error: {}",
                naming.what, error
            ))
        });
        parsed.map(Some)
    }

    fn read(params: Params<'_>) -> Result<AutoPlay, Error> {
        let mac = |field: &str, name: &str| {
            let text = params.string_or(field, "")?;
            let mac: Result<MacAddress, _> = text.parse();
            mac.map_err(|_| Error::execution(format!("Couldn't parse {name}!")))
        };
        let (first, last) = (
            mac("min_client", "MinClient")?,
            mac("max_client", "MaxClient")?,
        );
        let in_order = |holds: bool, what: &str| match holds {
            true => Ok(()),
            false => Err(Error::execution(format!("{what} doesn't hold"))),
        };
        let (first, last) = (number_of(first), number_of(last));
        in_order(first <= last, "MinClient <= MaxClient")?;
        let min = u64::from(params.number_or("min_hostname", 0_u32)?);
        let max = u64::from(params.number_or("max_hostname", 0_u32)?);
        in_order(min <= max, "MinHostname <= MaxHostname")?;
        let init = params.number_or("init_hostname", min)?;
        let holds = min <= init && init <= max;
        in_order(holds, "MinHostname <= InitHostname <= MaxHostname")?;
        let rate = match params.get("rate") {
            None => 1.0,
            Some(value) => value.as_f64().ok_or_else(|| mismatch(value, "float32"))?,
        };
        in_order(rate > 0.0 && rate <= RATE_MAX, "0 < Rate <= 1000000")?;
        let host_step = params.number_or("hostname_step", 1_u32)?;
        let client_step = params.number_or("client_step", 1_u32)?;
        let template = params.string_or("hostname_template", "")?;
        let play = AutoPlay {
            rate,
            left: Some(params.number_or("query_amount", 0_u64)?).filter(|amount| *amount != 0),
            clients: Counter::new(first, last, u64::from(client_step), first),
            hosts: Counter::new(min, max, u64::from(host_step), init),
            template: match template.split_once("%v") {
                Some((before, behind)) => (before.to_owned(), Some(behind.to_owned())),
                None => (template.to_owned(), None),
            },
            kind: params.string_or("type", "")?.to_owned(),
            class: params.string_or("class", "")?.to_owned(),
            ipv6: params.bool_or("ipv6", false)?,
            program: program(params.get("program"))?,
        };
        // Wrong types, classes and names are better known now than when the first query is due.
        Query::new(&play.host_name(max), &play.kind, &play.class, false)?;
        Ok(play)
    }

    /// The next client and its queries; `None` when all were sent.
    fn next(&mut self) -> Option<(MacAddress, Vec<Query>)> {
        if self.is_over() {
            return None;
        }
        let mac = mac_of(self.clients.next());
        let host = self.hosts.next();
        if let Some(queries) = self.program.get(&mac) {
            return Some((mac, queries.clone()));
        }
        let name = self.host_name(host);
        let query = Query::new(&name, &self.kind, &self.class, self.ipv6);
        Some((mac, query.into_iter().collect()))
    }

    /// Counts a query that was sent.
    fn sent(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    /// Whether there is nothing more to send.
    fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    fn host_name(&self, number: u64) -> String {
        match &self.template {
            (before, Some(behind)) => format!("{before}{number}{behind}"),
            (name, None) => name.clone(),
        }
    }
}

fn check_required(params: Params<'_>, naming: &Naming) -> Result<(), Error> {
    let fields = [
        ("min_client", "MinClient"),
        ("max_client", "MaxClient"),
        ("hostname_template", "HostnameTemplate"),
    ];
    let mut missing = Vec::new();
    for (field, name) in fields {
        if params.string_or(field, "")?.is_empty() {
            missing.push(format!(
                "Key: '{}.CommonDnsAutoPlayParams.{name}' Error:Field validation for '{name}' \
                 failed on the 'required' tag",
                naming.params
            ));
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::execution(missing.join("\n"))),
    }
}

/// Reads `{mac: {hostnames, type, class, ipv6}}`.
fn program(value: Option<&Value>) -> Result<BTreeMap<MacAddress, Vec<Query>>, Error> {
    let mut program = BTreeMap::new();
    let Some(value) = value else {
        return Ok(program);
    };
    let entries = value.as_object();
    let entries = entries.ok_or_else(|| mismatch(value, "map[string]interface {}"))?;
    for (mac, entry) in entries {
        let parsed: Result<MacAddress, _> = mac.parse();
        let parsed = parsed.map_err(|_| Error::execution(format!("Couldn't parse MAC {mac}!")))?;
        let entry = Params::new(entry);
        let place = format!("program of {mac}");
        entry.only_in(&place, &["hostnames", "type", "class", "ipv6"])?;
        let (kind, class) = (entry.string_or("type", "")?, entry.string_or("class", "")?);
        let ipv6 = entry.bool_or("ipv6", false)?;
        let names = entry.strings("hostnames")?.into_iter();
        let queries: Result<_, _> = names
            .map(|name| Query::new(name, kind, class, ipv6))
            .collect();
        program.insert(parsed, queries?);
    }
    Ok(program)
}

fn number_of(mac: MacAddress) -> u64 {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&mac.octets());
    u64::from_be_bytes(bytes)
}

fn mac_of(number: u64) -> MacAddress {
    let [_, _, octets @ ..] = number.to_be_bytes();
    MacAddress(octets)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMING: Naming = Naming {
        params: "DnsAutoPlayParams",
        what: "DNS",
    };

    fn params(more: Value) -> Value {
        let mut params = json!({
            "min_client": "00:00:00:00:00:01", "max_client": "00:00:00:00:00:03",
            "hostname_template": "host-%v.local", "min_hostname": 1, "max_hostname": 3,
        });
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        json!({"auto_play": true, "auto_play_params": params})
    }

    fn played(more: Value, count: usize) -> Vec<(u8, String)> {
        let mut play = AutoPlay::parse(&params(more), &NAMING).unwrap().unwrap();
        let mut all = Vec::new();
        while let Some((mac, queries)) = play.next().filter(|_| all.len() < count) {
            let names: Vec<String> = queries
                .iter()
                .map(|q| q.question.name.to_string())
                .collect();
            all.push((mac.octets()[5], names.join(" ")));
            play.sent();
        }
        all
    }

    #[test]
    fn clients_and_names_go_round_in_steps() {
        let two = json!({"client_step": 2, "hostname_step": 2});
        let clients: Vec<u8> = played(two, 4).iter().map(|(mac, _)| *mac).collect();
        assert_eq!(clients, [1, 3, 2, 1]);
        let names = played(json!({"init_hostname": 3, "query_amount": 2}), 9);
        assert_eq!(
            names,
            [(1, "host-3.local".into()), (2, "host-1.local".into())]
        );
    }

    #[test]
    fn a_client_with_a_program_asks_its_own_names() {
        let program = json!({"00:00:00:00:00:02": {"hostnames": ["x", "y"], "type": "TXT"}});
        let names = played(json!({ "program": program }), 3);
        let names: Vec<&str> = names.iter().map(|(_, names)| names.as_str()).collect();
        assert_eq!(names, ["host-1.local", "x y", "host-3.local"]);
    }

    #[test]
    fn errors_name_the_parameter() {
        let refused = |init: Value, text: &str| {
            let error = AutoPlay::parse(&init, &NAMING).expect_err(text);
            assert!(error.to_string().contains(text), "{error}");
        };
        assert!(AutoPlay::parse(&Value::Null, &NAMING).unwrap().is_none());
        refused(
            json!({"auto_play": true}),
            "'DnsAutoPlayParams.CommonDnsAutoPlayParams.MinClient'",
        );
        refused(
            params(json!({"min_client": "x"})),
            "error: Couldn't parse MinClient!",
        );
        refused(
            params(json!({"min_hostname": 4})),
            "MinHostname <= MaxHostname doesn't hold",
        );
        refused(
            params(json!({"init_hostname": 9})),
            "MinHostname <= InitHostname <= MaxHostname",
        );
        refused(params(json!({"type": "NOPE"})), "Unknown DNS Type NOPE");
        refused(
            params(json!({"rate": 0})),
            "0 < Rate <= 1000000 doesn't hold",
        );
        refused(
            params(json!({"qery_amount": 5})),
            "\"qery_amount\" in auto_play_params: is it \"query_amount\"?",
        );
        let program = json!({"00:00:00:00:00:02": {"hostname": ["x"]}});
        refused(
            params(json!({ "program": program })),
            "\"hostname\" in program of 00:00:00:00:00:02: is it \"hostnames\"?",
        );
        refused(
            params(json!({"hostname_template": "a..b"})),
            "labels between dots",
        );
    }
}
