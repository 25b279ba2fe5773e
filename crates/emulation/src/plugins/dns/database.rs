//! What a name server knows: entries by domain.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_api::Error;
use allosaur_api::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DnsClientCounters;
use crate::dns::kind::{Class, Kind};
use crate::dns::message::{Name, Question, txt_data};
use crate::read::{self, Listable, Listed};

/// Most entries of one server.
const ENTRIES_MAX: usize = 65_536;

/// An entry, as users write it. What it says is checked when it is asked for, as in the reference.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DnsEntry")]
pub(super) struct Entry {
    /// The type, such as `A`.
    #[serde(rename = "type")]
    kind: String,
    /// The class, such as `IN`.
    class: String,
    /// The answer.
    answer: String,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry {
            kind: "A".to_owned(),
            class: "IN".to_owned(),
            answer: String::new(),
        }
    }
}

/// An entry of a domain, in the RPC.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DnsRecord {
    /// The type, such as `A`.
    #[serde(rename = "type")]
    kind: String,
    /// The class, such as `IN`.
    class: String,
    /// The answer.
    answer: String,
}

/// What the init JSON of a name server has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DatabaseInit {
    database: Option<Domains>,
}

/// The entries of domains by their names.
#[derive(Default, Deserialize)]
#[serde(rename = "dns.DnsDatabase")]
struct Domains(BTreeMap<String, Listed<Entry>>);

impl Listable for Entry {
    const LIST: &'static str = "[]dns.DnsEntry";
}

impl Entry {
    /// The data of the record; `None` when the answer is none of the type.
    fn data(&self, kind: Kind) -> Option<Vec<u8>> {
        match kind {
            Kind::A => {
                let address: Ipv4Addr = self.answer.parse().ok()?;
                Some(address.octets().to_vec())
            }
            Kind::AAAA => {
                let address: Ipv6Addr = self.answer.parse().ok()?;
                Some(address.octets().to_vec())
            }
            Kind::PTR => Some(Name::new(&self.answer)?.bytes().to_vec()),
            _ => Some(txt_data(self.answer.split(',').map(str::trim))),
        }
    }
}

/// A domain: its name as users write it, and its entries.
type Domain = (String, Vec<Entry>);

/// The entries of a server, by the domain in lower case (RFC 1035, section 2.3.3).
#[derive(Debug, Default)]
pub(super) struct Database {
    domains: BTreeMap<String, Domain>,
    entries: usize,
}

impl Database {
    /// Reads the `database` of the init JSON.
    pub(super) fn parse(init: &Value) -> Result<Database, Error> {
        let mut database = Database::default();
        let given: DatabaseInit = read::params(init)?;
        for (domain, Listed(entries)) in given.database.unwrap_or_default().0 {
            database.insert(&domain, entries)?;
        }
        Ok(database)
    }

    /// The names of all domains.
    pub(super) fn domains(&self) -> Vec<String> {
        let domains = self.domains.values();
        domains.map(|(name, _)| name.clone()).collect()
    }

    /// The entries of a domain, as the RPC has them.
    pub(super) fn report(&self, domain: &str) -> Option<Vec<DnsRecord>> {
        let (_, entries) = self.domains.get(&domain.to_ascii_lowercase())?;
        let records = entries.iter().map(|entry| DnsRecord {
            kind: entry.kind.clone(),
            class: entry.class.clone(),
            answer: entry.answer.clone(),
        });
        Some(records.collect())
    }

    /// Adds entries to a domain, but for those that it has.
    pub(super) fn insert(&mut self, domain: &str, entries: Vec<Entry>) -> Result<(), Error> {
        if self.entries + entries.len() > ENTRIES_MAX {
            return Err(Error::execution(format!(
                "domain {domain}: a name server has at most {ENTRIES_MAX} entries"
            )));
        }
        if entries.is_empty() {
            return Ok(());
        }
        let key = domain.to_ascii_lowercase();
        let place = self.domains.entry(key);
        let (_, known) = place.or_insert_with(|| (domain.to_owned(), Vec::new()));
        for entry in entries {
            if !known.contains(&entry) {
                known.push(entry);
                self.entries += 1;
            }
        }
        Ok(())
    }

    /// Removes entries of a domain, and the domain with the last one.
    pub(super) fn remove(&mut self, domain: &str, entries: &[Entry]) {
        let key = domain.to_ascii_lowercase();
        let Some((_, known)) = self.domains.get_mut(&key) else {
            return;
        };
        let before = known.len();
        known.retain(|entry| !entries.contains(entry));
        self.entries -= before - known.len();
        if known.is_empty() {
            self.domains.remove(&key);
        }
    }

    /// The records that answer a question, in the order of the entries.
    pub(super) fn answers(
        &self,
        question: &Question,
        counters: &mut DnsClientCounters,
    ) -> Vec<(Question, Vec<u8>)> {
        let kind = question.kind;
        if ![Kind::A, Kind::AAAA, Kind::PTR, Kind::TXT].contains(&kind) {
            counters.unsupported += 1;
            return Vec::new();
        }
        let Some((_, entries)) = self.domains.get(&question.name.key()) else {
            return Vec::new();
        };
        let mut answers = Vec::new();
        for entry in entries
            .iter()
            .filter(|entry| Kind::named(&entry.kind) == Some(kind))
        {
            let Some(class) = Class::named(&entry.class) else {
                continue;
            };
            if question.class != class && question.class != Class::ANY {
                continue;
            }
            let Some(data) = entry.data(kind) else {
                counters.invalid_ip += 1;
                continue;
            };
            let name = question.name.clone();
            answers.push((Question { name, kind, class }, data));
        }
        answers
    }
}
