//! Queries that users ask for by the RPC or that auto-play makes.

use allosaur_api::Error;
use allosaur_api::json_schema::JsonSchema;
use serde::Deserialize;

use super::kind::{Class, Kind};
use super::message::{Builder, Name, Question};
use crate::read::{Listable, Listed};

/// A question, and by which network protocol it goes (multicast DNS only).
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) question: Question,
    pub(crate) ipv6: bool,
}

impl Query {
    /// A query of names as users write them.
    ///
    /// # Errors
    /// When a name is not known or cannot be put into a message.
    pub(crate) fn new(name: &str, kind: &str, class: &str, ipv6: bool) -> Result<Query, Error> {
        let unknown =
            |what: &str, name: &str| Error::bad_params(format!("Unknown {what} {name}\n"));
        let question = Question {
            name: Name::new(name).ok_or_else(|| bad_name(name))?,
            kind: Kind::named(kind).ok_or_else(|| unknown("DNS Type", kind))?,
            class: Class::named(class).ok_or_else(|| unknown("DNSClass", class))?,
        };
        Ok(Query { question, ipv6 })
    }
}

/// The reference's names of the parameters of a method, for errors.
pub(crate) struct Naming {
    /// Type of the parameters, such as `ApiDnsQueryParams`.
    pub(crate) params: &'static str,
    /// Where the name is in a query, such as `.DnsQueryParams`, if deeper than the query.
    pub(crate) embedded: &'static str,
}

/// The queries that users wrote, checked.
///
/// # Errors
/// When one is wrong.
pub(crate) fn parse<Q: Into<QueryFields>>(
    queries: Queries<Q>,
    naming: &Naming,
) -> Result<Vec<Query>, Error> {
    let required = |path: String, field: &str| {
        Error::execution(format!(
            "Key: '{}.{path}' Error:Field validation for '{field}' failed on the 'required' tag",
            naming.params
        ))
    };
    let list = queries.queries;
    let list = list.ok_or_else(|| required("Queries".to_owned(), "Queries"))?;
    let list: Vec<QueryFields> = list.0.into_iter().map(Into::into).collect();
    if let Some(index) = list.iter().position(|query| query.name.is_empty()) {
        let path = format!("Queries[{index}]{}.Name", naming.embedded);
        return Err(required(path, "Name"));
    }
    let queries = list
        .iter()
        .map(|query| Query::new(&query.name, &query.dns_type, &query.dns_class, query.ipv6));
    queries.collect()
}

/// Queries to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(bound = "Q: Deserialize<'de> + Listable + Default")]
#[schemars(rename = "{Q}s")]
pub(crate) struct Queries<Q> {
    /// The queries, all in one message.
    #[schemars(required)]
    queries: Option<Listed<Q>>,
}

/// A query as users write it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct QueryFields {
    /// The name.
    #[schemars(required)]
    name: String,
    /// The type, such as `A`, which it is without it.
    dns_type: String,
    /// The class, such as `IN`, which it is without it.
    dns_class: String,
    /// Whether to ask by IPv6; of multicast DNS only.
    ipv6: bool,
}

/// One message with all questions.
///
/// # Errors
/// When they do not fit into one.
pub(crate) fn message<'q>(
    id: u16,
    queries: impl Iterator<Item = &'q Query>,
    limit: usize,
) -> Result<Vec<u8>, Error> {
    let mut message = Builder::new(id, 0, limit);
    for Query { question, .. } in queries {
        if !message.question(&question.name, question.kind, question.class) {
            return Err(Error::bad_params(format!(
                "queries do not fit into {limit} bytes; ask for fewer at once"
            )));
        }
    }
    Ok(message.finish())
}

/// The error of a name that no message can have.
pub(crate) fn bad_name(name: &str) -> Error {
    Error::bad_params(format!(
        "name {name:?}: labels between dots have 1 to 63 bytes, all together at most 253"
    ))
}
