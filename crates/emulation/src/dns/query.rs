//! Queries that users ask for by the RPC or that auto-play makes.

use allosaur_api::Error;
use serde_json::Value;

use super::kind::{Class, Kind};
use super::message::{Builder, Name, Question};
use crate::params::{Params, mismatch};

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
    /// Type of the list.
    pub(crate) list: &'static str,
}

/// Reads the `queries` of a request.
///
/// # Errors
/// When they are missing, have wrong types or unknown names.
pub(crate) fn parse(params: &Value, naming: &Naming) -> Result<Vec<Query>, Error> {
    let required = |path: String, field: &str| {
        Error::execution(format!(
            "Key: '{}.{path}' Error:Field validation for '{field}' failed on the 'required' tag",
            naming.params
        ))
    };
    let list = Params::new(params).get("queries");
    let list = list.ok_or_else(|| required("Queries".to_owned(), "Queries"))?;
    let list = list.as_array().ok_or_else(|| mismatch(list, naming.list))?;
    let mut fields = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let item = Params::new(item);
        let name = item.string_or("name", "")?;
        if name.is_empty() {
            return Err(required(
                format!("Queries[{index}]{}.Name", naming.embedded),
                "Name",
            ));
        }
        let kind = item.string_or("dns_type", "")?;
        let class = item.string_or("dns_class", "")?;
        fields.push((name, kind, class, item.bool_or("ipv6", false)?));
    }
    let queries = fields.into_iter();
    queries
        .map(|(name, kind, class, ipv6)| Query::new(name, kind, class, ipv6))
        .collect()
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
