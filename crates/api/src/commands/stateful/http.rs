//! `http_client` and `http_server` of a program: in the place of its commands it speaks HTTP/1.1.
//! Allosaur's own.
//!
//! A field that nobody knows is an error here: who misspells `status` would expect nothing.

use serde_json::Value;

use super::values::{duration, number, number32, objects, refuse_unknown, strings, text};
use crate::fields::{FieldError, Fields};

/// What a program speaks in the place of its commands.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpFields {
    /// `http_client`.
    Client(HttpClientFields),
    /// `http_server`.
    Server(HttpServerFields),
}

/// What clients do on each of their connections.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpClientFields {
    /// `host`: the `Host` of requests; the address of the server if it is missing.
    pub host: Option<String>,
    /// `requests`.
    pub requests: Vec<HttpRequestFields>,
    /// `requests_per_connection`; all requests once if it is missing.
    pub requests_per_connection: u32,
    /// `pipeline`: how many are sent at once; 1 if it is missing.
    pub pipeline: u32,
    /// `values`: what requests are made of.
    pub values: Vec<HttpValueFields>,
    /// `think_usec`: between a response and the next request.
    pub think_usec: f64,
    /// `timeout_usec`: for each response.
    pub timeout_usec: Option<f64>,
}

/// A value that requests use as `${name}`.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpValueFields {
    /// `name`.
    pub name: String,
    /// What it may be.
    pub source: HttpSourceFields,
    /// `each` is `connection`: its requests have the same. `request` if it is missing.
    pub is_of_connection: bool,
}

/// What a value may be: one of these fields is there.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpSourceFields {
    /// `list`: texts, by `distribution` (`rand` or `seq`; `rand` if it is missing).
    List(Vec<String>, bool),
    /// `counter`.
    Counter(HttpNumbersFields),
    /// `random`.
    Random(HttpNumbersFields),
    /// `token`: the letters of a random text.
    Token(u16),
}

/// Numbers from `first` (0 if it is missing) to `last`.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpNumbersFields {
    /// `first`.
    pub first: u64,
    /// `last`.
    pub last: u64,
    /// `step` of a counter; 1 if it is missing.
    pub step: u64,
    /// `digits`, at least; 0 if it is missing.
    pub digits: u16,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequestFields {
    /// `method`; `GET` if it is missing.
    pub method: String,
    /// `path`; `/` if it is missing.
    pub path: String,
    /// `headers`: pairs of name and value.
    pub headers: Vec<(String, String)>,
    /// `buf_index`: the body.
    pub body: Option<u32>,
    /// `body`: the same as a text, with values in it.
    pub text: Option<String>,
    /// `status`: what its response may have; 200 to 399 if it is missing.
    pub statuses: Vec<u16>,
    /// `body_bytes`: the length of the body of its response.
    pub body_bytes: Option<u64>,
    /// `body_sha256`: its hash, as 64 hexadecimal digits.
    pub body_sha256: Option<[u8; 32]>,
}

/// How servers answer.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServerFields {
    /// `routes`.
    pub routes: Vec<HttpRouteFields>,
    /// `requests_per_connection`: the connection is closed after so many; 0: never.
    pub requests_per_connection: u32,
}

/// How a path is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRouteFields {
    /// `path`, or the beginning of paths with a `*` behind it.
    pub path: String,
    /// `status`; 200 if it is missing.
    pub status: u16,
    /// `headers`: pairs of name and value.
    pub headers: Vec<(String, String)>,
    /// `buf_index`: the body.
    pub body: Option<u32>,
    /// `chunk_bytes`: the body comes in chunks of so many bytes; 0: with its length.
    pub chunk_bytes: u32,
    /// `delay_usec`: how long the answer takes.
    pub delay_usec: f64,
}

const CLIENT: [&str; 7] = [
    "host",
    "requests",
    "requests_per_connection",
    "pipeline",
    "values",
    "think_usec",
    "timeout_usec",
];
const VALUE: [&str; 7] = [
    "name",
    "each",
    "list",
    "distribution",
    "counter",
    "random",
    "token",
];
const COUNTER: [&str; 4] = ["first", "last", "step", "digits"];
const RANDOM: [&str; 3] = ["first", "last", "digits"];
const REQUEST: [&str; 8] = [
    "method",
    "path",
    "headers",
    "buf_index",
    "body",
    "status",
    "body_bytes",
    "body_sha256",
];
const SERVER: [&str; 2] = ["routes", "requests_per_connection"];
const ROUTE: [&str; 6] = [
    "path",
    "status",
    "headers",
    "buf_index",
    "chunk_bytes",
    "delay_usec",
];

impl HttpFields {
    /// Reads what a program speaks, if not its commands.
    pub(super) fn parse(program: &Fields<'_>) -> Result<Option<HttpFields>, FieldError> {
        let client = program.optional("http_client", client)?;
        let server = program.optional("http_server", server)?;
        match (client, server) {
            (None, None) => Ok(None),
            (Some(client), None) => Ok(Some(HttpFields::Client(client))),
            (None, Some(server)) => Ok(Some(HttpFields::Server(server))),
            (Some(_), Some(_)) => {
                let problem = "stands beside http_client: leave one of the two out";
                Err(program.bad("http_server", problem))
            }
        }
    }
}

fn client(fields: &Fields<'_>, name: &str) -> Result<HttpClientFields, FieldError> {
    let fields = fields.object(name)?;
    refuse_unknown(&fields, &CLIENT)?;
    let requests = objects(&fields, "requests", &fields.full("requests"), request)?;
    let all = requests.len() as u32;
    Ok(HttpClientFields {
        host: fields.optional("host", text)?,
        requests_per_connection: fields
            .optional("requests_per_connection", number32)?
            .unwrap_or(all),
        requests,
        pipeline: fields.optional("pipeline", number32)?.unwrap_or(1),
        values: match fields.is_missing("values") {
            true => Vec::new(),
            false => objects(&fields, "values", &fields.full("values"), value)?,
        },
        think_usec: fields.optional("think_usec", duration)?.unwrap_or(0.0),
        timeout_usec: fields.optional("timeout_usec", duration)?,
    })
}

fn value(fields: &Fields<'_>) -> Result<HttpValueFields, FieldError> {
    refuse_unknown(fields, &VALUE)?;
    let name = text(fields, "name")?;
    let sources = ["list", "counter", "random", "token"];
    let mut given = sources.into_iter().filter(|name| !fields.is_missing(name));
    let source = match (given.next(), given.next()) {
        (None, _) => {
            let problem = format!("is missing; give {name:?} one of {}", sources.join(", "));
            return Err(fields.bad("list", problem));
        }
        (Some(first), Some(second)) => {
            let problem = format!("stands beside {first}: leave one of the two out");
            return Err(fields.bad(second, problem));
        }
        (Some("list"), None) => HttpSourceFields::List(
            strings(fields, "list")?
                .into_iter()
                .map(str::to_owned)
                .collect(),
            one_of(fields, "distribution", ["rand", "seq"])?,
        ),
        (Some("counter"), None) => HttpSourceFields::Counter(numbers(fields, "counter", &COUNTER)?),
        (Some("random"), None) => HttpSourceFields::Random(numbers(fields, "random", &RANDOM)?),
        (Some(_), None) => HttpSourceFields::Token(fields.uint16("token")?),
    };
    Ok(HttpValueFields {
        name,
        source,
        is_of_connection: !one_of(fields, "each", ["request", "connection"])?,
    })
}

fn numbers(
    fields: &Fields<'_>,
    name: &str,
    known: &[&str],
) -> Result<HttpNumbersFields, FieldError> {
    let fields = fields.object(name)?;
    refuse_unknown(&fields, known)?;
    Ok(HttpNumbersFields {
        first: fields.optional("first", number)?.unwrap_or(0),
        last: number(&fields, "last")?,
        step: fields.optional("step", number)?.unwrap_or(1),
        digits: fields.optional("digits", Fields::uint16)?.unwrap_or(0),
    })
}

/// Whether it is the first of two words; it is if it is missing.
fn one_of(fields: &Fields<'_>, name: &str, words: [&str; 2]) -> Result<bool, FieldError> {
    match fields.optional(name, text)? {
        None => Ok(true),
        Some(word) if word == words[0] => Ok(true),
        Some(word) if word == words[1] => Ok(false),
        Some(word) => {
            let problem = format!("is {word:?}; it must be {} or {}", words[0], words[1]);
            Err(fields.bad(name, problem))
        }
    }
}

fn request(fields: &Fields<'_>) -> Result<HttpRequestFields, FieldError> {
    refuse_unknown(fields, &REQUEST)?;
    if !fields.is_missing("body") && !fields.is_missing("buf_index") {
        let problem = "stands beside buf_index: leave one of the two out";
        return Err(fields.bad("body", problem));
    }
    let or = |given: Option<String>, default: &str| given.unwrap_or_else(|| default.to_owned());
    Ok(HttpRequestFields {
        method: or(fields.optional("method", text)?, "GET"),
        path: or(fields.optional("path", text)?, "/"),
        headers: fields.optional("headers", pairs)?.unwrap_or_default(),
        body: fields.optional("buf_index", number32)?,
        text: fields.optional("body", text)?,
        statuses: fields.optional("status", statuses)?.unwrap_or_default(),
        body_bytes: fields.optional("body_bytes", number)?,
        body_sha256: fields.optional("body_sha256", hash)?,
    })
}

fn server(fields: &Fields<'_>, name: &str) -> Result<HttpServerFields, FieldError> {
    let fields = fields.object(name)?;
    refuse_unknown(&fields, &SERVER)?;
    Ok(HttpServerFields {
        routes: objects(&fields, "routes", &fields.full("routes"), route)?,
        requests_per_connection: fields
            .optional("requests_per_connection", number32)?
            .unwrap_or(0),
    })
}

fn route(fields: &Fields<'_>) -> Result<HttpRouteFields, FieldError> {
    refuse_unknown(fields, &ROUTE)?;
    Ok(HttpRouteFields {
        path: text(fields, "path")?,
        status: fields.optional("status", Fields::uint16)?.unwrap_or(200),
        headers: fields.optional("headers", pairs)?.unwrap_or_default(),
        body: fields.optional("buf_index", number32)?,
        chunk_bytes: fields.optional("chunk_bytes", number32)?.unwrap_or(0),
        delay_usec: fields.optional("delay_usec", duration)?.unwrap_or(0.0),
    })
}

fn pairs(fields: &Fields<'_>, name: &str) -> Result<Vec<(String, String)>, FieldError> {
    let pair = |value: &Value| {
        let [name, value] = &value.as_array()?[..] else {
            return None;
        };
        Some((name.as_str()?.to_owned(), value.as_str()?.to_owned()))
    };
    let values = fields.array(name)?.iter().map(pair);
    let problem = "must be a list of pairs: the name of a header, and its value";
    values
        .collect::<Option<_>>()
        .ok_or_else(|| fields.bad(name, problem))
}

fn statuses(fields: &Fields<'_>, name: &str) -> Result<Vec<u16>, FieldError> {
    let given = fields.uint_array(name, 599, "status")?;
    match given.iter().find(|status| **status < 200) {
        Some(status) => Err(fields.bad(name, format!("has {status}; a status is from 200 to 599"))),
        None => Ok(given.into_iter().map(|status| status as u16).collect()),
    }
}

fn hash(fields: &Fields<'_>, name: &str) -> Result<[u8; 32], FieldError> {
    let digits = fields.string(name)?;
    let mut hash = [0; 32];
    let problem = || fields.bad(name, "must be a SHA-256: 64 hexadecimal digits");
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(problem());
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        let pair = &digits[2 * at..2 * at + 2];
        *byte = u8::from_str_radix(pair, 16).map_err(|_| problem())?;
    }
    Ok(hash)
}
