//! What clients and servers of HTTP are made of, checked: what is sent is a message of HTTP.

use std::fmt;

use allosaur_engine::app::BufferIndex;
use allosaur_engine::time::Nanos;

/// Requests that a client has, and paths that a server knows, at most.
pub(super) const LIST_MAX: usize = 1_000;
/// Bytes of a head that is sent at most.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Why settings cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettingsError {
    /// The field, with its place in lists.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

impl fmt::Display for HttpSettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for HttpSettingsError {}

/// A refusal of a field.
pub(super) fn refused<T>(
    field: impl Into<String>,
    reason: impl Into<String>,
) -> Result<T, HttpSettingsError> {
    Err(HttpSettingsError {
        field: field.into(),
        reason: reason.into(),
    })
}

/// What clients do on each of their connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpClientSettings {
    /// The `Host` of requests; without one it is the address and port of the server.
    pub host: Option<String>,
    /// Requests, one after another, and from the first on again.
    pub requests: Vec<HttpRequest>,
    /// How many requests a connection sends.
    pub requests_per_connection: u32,
    /// How many of them it sends at once; the next follow when all their responses are there.
    pub pipeline: u32,
    /// What requests are made of: `${name}` in a path, the value of a header or a body that is text. Without
    /// any, a `$` is one.
    pub values: Vec<HttpValue>,
    /// How long it waits between a response and the next request.
    pub think: Nanos,
    /// How long the end of a response may take; without, as long as the connection holds.
    pub timeout: Option<Nanos>,
}

impl Default for HttpClientSettings {
    /// One request after another.
    fn default() -> HttpClientSettings {
        HttpClientSettings {
            host: None,
            requests: Vec::new(),
            requests_per_connection: 0,
            pipeline: 1,
            values: Vec::new(),
            think: 0,
            timeout: None,
        }
    }
}

/// A value of which requests are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpValue {
    /// The name that requests use it by.
    pub name: String,
    /// What it may be.
    pub source: HttpValueSource,
    /// All requests of a connection have the same; else each has one of its own.
    pub is_of_connection: bool,
}

/// What a value may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpValueSource {
    /// One of these texts.
    List {
        /// The texts.
        texts: Vec<String>,
        /// At random; else one after another.
        is_random: bool,
    },
    /// One number after another, and from the first on again.
    Counter {
        /// The first.
        first: u64,
        /// None is larger.
        last: u64,
        /// From one to the next.
        step: u64,
        /// It is filled up with zeros to so many digits.
        digits: u16,
    },
    /// A random number.
    Random {
        /// The smallest.
        first: u64,
        /// The largest.
        last: u64,
        /// It is filled up with zeros to so many digits.
        digits: u16,
    },
    /// A random text of so many small letters and digits.
    Token {
        /// How many.
        length: u16,
    },
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Such as `GET`.
    pub method: String,
    /// What is asked for, from its `/` on.
    pub path: String,
    /// More header lines: names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: HttpRequestBody,
    /// What its response must be.
    pub expected: Expected,
}

/// The body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HttpRequestBody {
    /// None.
    #[default]
    None,
    /// Bytes of the profile.
    Buffer(BufferIndex),
    /// Text, with values in it.
    Text(String),
}

/// What a response must be for its request to be a success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// One of these statuses; without any, 200 to 399.
    pub statuses: Vec<u16>,
    /// A body of so many bytes.
    pub body_bytes: Option<u64>,
    /// A body with this SHA-256.
    pub body_sha256: Option<[u8; 32]>,
}

impl Expected {
    pub(super) fn has_status(&self, status: u16) -> bool {
        match &self.statuses[..] {
            [] => (200..400).contains(&status),
            statuses => statuses.contains(&status),
        }
    }
}

/// How servers answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpServerSettings {
    /// The first whose path fits answers; what none fits is answered by 404.
    pub routes: Vec<HttpRoute>,
    /// After so many requests a connection is closed; 0: never.
    pub requests_per_connection: u32,
}

/// How a path is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRoute {
    /// The path, or the beginning of paths with a `*` behind it.
    pub path: String,
    /// The status.
    pub status: u16,
    /// More header lines: names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<BufferIndex>,
    /// The body comes in chunks of so many bytes; 0: with its length.
    pub chunk_bytes: u32,
    /// How long the answer takes.
    pub delay: Nanos,
}

/// Refuses what is no path.
pub(super) fn check_path(field: &str, path: &str) -> Result<(), HttpSettingsError> {
    let is_printable = |byte: u8| byte.is_ascii_graphic();
    if path.starts_with(['/', '*']) && path.bytes().all(is_printable) {
        return Ok(());
    }
    refused(
        field,
        format!(
            "{path:?} must begin with / and have no spaces: write others as in URLs, such as %20"
        ),
    )
}

/// Refuses what is no method.
pub(super) fn check_method(field: &str, method: &str) -> Result<(), HttpSettingsError> {
    if is_token(method) && method != "CONNECT" {
        return Ok(());
    }
    refused(
        field,
        format!("{method:?} is no method, such as GET or POST"),
    )
}

/// Refuses what is no host.
pub(super) fn check_host(host: &str) -> Result<(), HttpSettingsError> {
    let is_right = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'@');
    if !host.is_empty() && host.bytes().all(is_right) {
        return Ok(());
    }
    refused(
        "host",
        format!("{host:?} must be a name or an address, with :port or without"),
    )
}

/// Refuses header lines that would end elsewhere, or that are ours to write.
pub(super) fn check_headers(
    field: &str,
    headers: &[(String, String)],
) -> Result<(), HttpSettingsError> {
    for (name, value) in headers {
        let field = || format!("{field}.headers.{name}");
        if !is_token(name) {
            return refused(
                field(),
                "is no name of a header: letters, digits and - only",
            );
        }
        if !value.bytes().all(is_in_line) {
            return refused(field(), format!("{value:?} must be one line of ASCII"));
        }
        for (ours, instead) in [
            ("content-length", "the length of the body"),
            ("transfer-encoding", "chunk_bytes"),
            ("host", "host"),
        ] {
            if name.eq_ignore_ascii_case(ours) {
                return refused(field(), format!("is written by itself, from {instead}"));
            }
        }
    }
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    if bytes > HEAD_BYTES_MAX {
        return refused(
            format!("{field}.headers"),
            format!("have {bytes} bytes; {HEAD_BYTES_MAX} are the most"),
        );
    }
    Ok(())
}

/// Whether a byte may stand in the value of a header.
pub(super) fn is_in_line(byte: u8) -> bool {
    byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()
}

/// Writes header lines.
pub(super) fn write_headers(headers: &[(String, String)], head: &mut String) {
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
}

/// Whether a header of this name is among them.
pub(super) fn has_header(headers: &[(String, String)], name: &str) -> bool {
    headers
        .iter()
        .any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Refuses a list that is empty or too long.
pub(super) fn check_count(field: &str, count: usize) -> Result<(), HttpSettingsError> {
    if (1..=LIST_MAX).contains(&count) {
        return Ok(());
    }
    refused(field, format!("has {count}; give 1 to {LIST_MAX}"))
}

/// RFC 9110, section 5.6.2.
pub(super) fn is_token(text: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_right)
}
