//! What clients send, made once for all of their connections: requests as bytes, with values between
//! them where the profile has some.

use std::net::SocketAddr;

use allosaur_engine::app::{BufferIndex, Buffers};
use allosaur_engine::time::Nanos;

use super::rows::method_row;
use super::settings::{
    Expected, HttpClientSettings, HttpRequest, HttpRequestBody, HttpSettingsError, check_count,
    check_headers, check_host, check_method, check_path, is_in_line, refused,
};
use super::values::{Draws, Values, write_number};

/// Ports that a `Host` does not name.
const DEFAULT_PORTS: [u16; 2] = [80, 443];
/// Values in a request at most.
const PLACES_MAX: usize = 100;
/// Bytes of a body with values at most, the values apart.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Requests that are sent at once at most.
const PIPELINE_MAX: u32 = 128;

/// What all clients do.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) requests: Vec<Request>,
    pub(super) values: Values,
    pub(super) per_connection: u32,
    pub(super) pipeline: u32,
    pub(super) think: Nanos,
    pub(super) timeout: Option<Nanos>,
}

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Request {
    head: Vec<Part>,
    body: Body,
    /// The values in it, each once.
    used: Vec<u16>,
    pub(super) is_head: bool,
    pub(super) row: usize,
    pub(super) expected: Expected,
}

/// The body of a request.
#[derive(Debug)]
enum Body {
    None,
    /// Bytes of the profile, and how many.
    Constant(BufferIndex, u32),
    /// Text with values.
    Parts(Vec<Part>),
}

/// A part of a request.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    /// A value, by its place.
    Value(u16),
    /// The address of the server.
    Address,
    /// The bytes of the body.
    Length,
}

/// What of a core a request is made with.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) draws: Draws,
    /// A body, until its length is written; empty between calls.
    body: Vec<u8>,
}

impl Writer {
    /// That of a core.
    pub(super) fn new(draws: Draws) -> Writer {
        Writer {
            draws,
            body: Vec::new(),
        }
    }
}

impl Plan {
    /// That of these settings; bodies are of these buffers.
    pub(super) fn new(
        settings: &HttpClientSettings,
        buffers: &Buffers,
    ) -> Result<Plan, HttpSettingsError> {
        check_count("requests", settings.requests.len())?;
        let per_connection = settings.requests_per_connection;
        if per_connection == 0 {
            return refused(
                "requests_per_connection",
                "is 0; a connection sends at least 1",
            );
        }
        let pipeline = settings.pipeline;
        if !(1..=PIPELINE_MAX).contains(&pipeline) {
            return refused(
                "pipeline",
                format!("is {pipeline}; give 1 to {PIPELINE_MAX} requests at once"),
            );
        }
        if let Some(host) = &settings.host {
            check_host(host)?;
        }
        let values = Values::new(&settings.values)?;
        let mut requests = Vec::new();
        for (i, request) in settings.requests.iter().enumerate() {
            let field = format!("requests[{i}]");
            let host = settings.host.as_deref();
            let maker = Maker::new(&field, &values, settings.values.is_empty());
            requests.push(maker.make(request, host, buffers)?);
        }
        Ok(Plan {
            requests,
            values,
            per_connection,
            pipeline,
            think: settings.think,
            timeout: settings.timeout,
        })
    }
}

impl Request {
    /// Writes the head, and the body where it has values in it. Returns the bytes of the body; where they
    /// are constant they follow as [`body`](Request::body).
    pub(super) fn write(
        &self,
        values: &Values,
        writer: &mut Writer,
        connection: u64,
        remote: SocketAddr,
        out: &mut Vec<u8>,
    ) -> u64 {
        if let [Part::Bytes(head)] = &self.head[..] {
            out.extend_from_slice(head);
            return self.constant_bytes();
        }
        writer.draws.begin(values, &self.used, connection);
        let bytes = match &self.body {
            Body::Parts(parts) => {
                write_parts(parts, (values, &writer.draws), remote, 0, &mut writer.body);
                writer.body.len() as u64
            }
            _ => self.constant_bytes(),
        };
        write_parts(&self.head, (values, &writer.draws), remote, bytes, out);
        out.append(&mut writer.body);
        bytes
    }

    /// The constant body that is to be sent behind the head.
    pub(super) fn body(&self) -> Option<BufferIndex> {
        match self.body {
            Body::Constant(buffer, bytes) if bytes > 0 => Some(buffer),
            _ => None,
        }
    }

    fn constant_bytes(&self) -> u64 {
        match self.body {
            Body::Constant(_, bytes) => bytes.into(),
            Body::None | Body::Parts(_) => 0,
        }
    }
}

fn write_parts(
    parts: &[Part],
    drawn: (&Values, &Draws),
    remote: SocketAddr,
    body_bytes: u64,
    out: &mut Vec<u8>,
) {
    for part in parts {
        match part {
            Part::Bytes(bytes) => out.extend_from_slice(bytes),
            Part::Value(place) => drawn.0.write(*place, drawn.1, out),
            Part::Address => write_address(remote, out),
            Part::Length => write_number(body_bytes, 0, out),
        }
    }
}

fn write_address(remote: SocketAddr, out: &mut Vec<u8>) {
    use std::io::Write;
    let ip = remote.ip();
    let written = match (DEFAULT_PORTS.contains(&remote.port()), ip.is_ipv6()) {
        (false, _) => write!(out, "{remote}"),
        (true, false) => write!(out, "{ip}"),
        (true, true) => write!(out, "[{ip}]"),
    };
    written.expect("memory takes all that is written to it");
}

/// Makes a request of its settings.
struct Maker<'a> {
    field: &'a str,
    values: &'a Values,
    /// There are no values: a `$` is one.
    is_constant: bool,
    used: Vec<u16>,
    places: usize,
}

impl<'a> Maker<'a> {
    fn new(field: &'a str, values: &'a Values, is_constant: bool) -> Maker<'a> {
        Maker {
            field,
            values,
            is_constant,
            used: Vec::new(),
            places: 0,
        }
    }

    fn make(
        mut self,
        request: &HttpRequest,
        host: Option<&str>,
        buffers: &Buffers,
    ) -> Result<Request, HttpSettingsError> {
        check_method(&format!("{}.method", self.field), &request.method)?;
        check_path(&format!("{}.path", self.field), &request.path)?;
        check_headers(self.field, &request.headers)?;
        let body = self.body(request, buffers)?;
        let mut head = vec![bytes(&request.method), bytes(" ")];
        head.extend(self.path(&request.path)?);
        head.push(bytes(" HTTP/1.1\r\nHost: "));
        head.push(host.map_or(Part::Address, bytes));
        // "A user agent SHOULD send Content-Length ... when the method defines a meaning for enclosed
        // content": RFC 9110, section 8.6.
        let has_meaning = matches!(&request.method[..], "POST" | "PUT" | "PATCH");
        match body {
            Body::None if !has_meaning => head.push(bytes("\r\n")),
            Body::Parts(_) => {
                head.extend([bytes("\r\nContent-Length: "), Part::Length, bytes("\r\n")])
            }
            Body::None => head.push(bytes("\r\nContent-Length: 0\r\n")),
            Body::Constant(_, length) => {
                head.push(bytes(&format!("\r\nContent-Length: {length}\r\n")));
            }
        }
        for (name, value) in &request.headers {
            head.push(bytes(&format!("{name}: ")));
            head.extend(self.header(name, value)?);
            head.push(bytes("\r\n"));
        }
        // The last does not ask the server to close: who closes first keeps the TIME-WAIT, and that is better
        // kept here. Over TLS our own close_notify would find a connection that is gone.
        head.push(bytes("\r\n"));
        if self.places > PLACES_MAX {
            let reason = format!("uses {} values; {PLACES_MAX} are the most", self.places);
            return refused(self.field, reason);
        }
        Ok(Request {
            head: joined(head),
            body,
            used: self.used,
            is_head: request.method == "HEAD",
            row: method_row(&request.method),
            expected: request.expected.clone(),
        })
    }

    fn path(&mut self, path: &str) -> Result<Vec<Part>, HttpSettingsError> {
        let field = format!("{}.path", self.field);
        let parts = self.parts(&field, path)?;
        let must = "a path has no spaces: write others as in URLs, such as %20";
        self.check(&field, &parts, |byte| byte.is_ascii_graphic(), must)?;
        Ok(parts)
    }

    fn header(&mut self, name: &str, value: &str) -> Result<Vec<Part>, HttpSettingsError> {
        let field = format!("{}.headers.{name}", self.field);
        let parts = self.parts(&field, value)?;
        self.check(&field, &parts, is_in_line, "it must be one line of ASCII")?;
        Ok(parts)
    }

    fn body(
        &mut self,
        request: &HttpRequest,
        buffers: &Buffers,
    ) -> Result<Body, HttpSettingsError> {
        let field = format!("{}.body", self.field);
        Ok(match &request.body {
            HttpRequestBody::None => Body::None,
            HttpRequestBody::Buffer(buffer) => Body::Constant(*buffer, buffers.len(*buffer)),
            HttpRequestBody::Text(text) if text.len() > BODY_BYTES_MAX => {
                let problem = format!("has {} bytes; {BODY_BYTES_MAX} are the most", text.len());
                return refused(field, problem);
            }
            HttpRequestBody::Text(text) => Body::Parts(self.parts(&field, text)?),
        })
    }

    fn check(
        &self,
        field: &str,
        parts: &[Part],
        is_right: impl Fn(u8) -> bool,
        must: &str,
    ) -> Result<(), HttpSettingsError> {
        for part in parts {
            if let Part::Value(place) = part {
                self.values.check_texts(field, *place, &is_right, must)?;
            }
        }
        Ok(())
    }

    /// The parts of a text in which `${name}` is a value and `$$` a `$`.
    fn parts(&mut self, field: &str, text: &str) -> Result<Vec<Part>, HttpSettingsError> {
        if self.is_constant {
            return Ok(vec![bytes(text)]);
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once('$') {
            parts.push(bytes(before));
            if let Some(behind) = behind.strip_prefix('$') {
                parts.push(bytes("$"));
                rest = behind;
                continue;
            }
            let name = behind
                .strip_prefix('{')
                .and_then(|name| name.split_once('}'));
            let Some((name, behind)) = name else {
                return refused(
                    field,
                    format!("{text:?} has a $ that begins no ${{name}}: write $$ for a $"),
                );
            };
            let Some(place) = self.values.find(name) else {
                let known = self.values.names();
                return refused(
                    field,
                    format!("${{{name}}} is not known; values has {known}"),
                );
            };
            parts.push(Part::Value(place));
            self.places += 1;
            if !self.used.contains(&place) {
                self.used.push(place);
            }
            rest = behind;
        }
        parts.push(bytes(rest));
        Ok(parts)
    }
}

fn bytes(text: &str) -> Part {
    Part::Bytes(text.as_bytes().to_vec())
}

/// The same with bytes that follow each other in one.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part::Bytes(before)), Part::Bytes(bytes)) => before.extend(bytes),
            (_, part) => joined.push(part),
        }
    }
    joined
}
