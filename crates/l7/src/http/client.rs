//! A connection of a client: it sends its requests one after another, and judges each response.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use allosaur_engine::app::{
    AppFlowInfo, AppRow, Application, ApplicationContext, BufferIndex, Buffers, CoreInfo,
    FlowEvent, Output, StatusClass,
};
use allosaur_engine::tcp::End;
use allosaur_engine::time::Nanos;
use ring::digest::{Context, SHA256};

use super::body::Body;
use super::head::{BadHead, ResponseHead};
use super::head_reader::{HeadProgress, HeadReader};
use super::rows::{self, Count, Failure, method_row, status_row};
use super::settings::{
    Expected, HttpClientSettings, HttpRequest, HttpSettingsError, check_count, check_headers,
    check_host, check_method, check_path, refused, write_headers,
};
use crate::protocol::AppProtocol;

/// Ports that a `Host` does not name.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Clients of HTTP.
#[derive(Debug)]
pub struct HttpClients {
    plan: Arc<Plan>,
    buffers: Arc<Buffers>,
}

/// What all clients do.
#[derive(Debug)]
struct Plan {
    requests: Vec<Request>,
    per_connection: u32,
    think: Nanos,
    timeout: Option<Nanos>,
}

/// A request, ready to be sent.
#[derive(Debug)]
struct Request {
    /// The head up to the host.
    begin: Vec<u8>,
    host: Option<Vec<u8>>,
    /// What is behind the host.
    end: Vec<u8>,
    body: Option<BufferIndex>,
    body_bytes: u32,
    is_head: bool,
    row: usize,
    expected: Expected,
}

impl HttpClients {
    /// Those of these settings; their bodies are of these buffers.
    ///
    /// # Errors
    /// When something cannot be; the error names the field.
    pub fn new(
        settings: &HttpClientSettings,
        buffers: Arc<Buffers>,
    ) -> Result<HttpClients, HttpSettingsError> {
        check_count("requests", settings.requests.len())?;
        if settings.requests_per_connection == 0 {
            return refused(
                "requests_per_connection",
                "is 0; a connection sends at least 1",
            );
        }
        if let Some(host) = &settings.host {
            check_host(host)?;
        }
        let mut requests = Vec::new();
        for (i, request) in settings.requests.iter().enumerate() {
            let field = format!("requests[{i}]");
            requests.push(ready(&field, request, settings.host.as_deref(), &buffers)?);
        }
        Ok(HttpClients {
            plan: Arc::new(Plan {
                requests,
                per_connection: settings.requests_per_connection,
                think: settings.think,
                timeout: settings.timeout,
            }),
            buffers,
        })
    }
}

fn ready(
    field: &str,
    request: &HttpRequest,
    host: Option<&str>,
    buffers: &Buffers,
) -> Result<Request, HttpSettingsError> {
    check_method(&format!("{field}.method"), &request.method)?;
    check_path(&format!("{field}.path"), &request.path)?;
    check_headers(field, &request.headers)?;
    let body_bytes = request.body.map_or(0, |body| buffers.len(body));
    let mut end = String::from("\r\n");
    // "A user agent SHOULD send Content-Length ... when the method defines a meaning for enclosed
    // content": RFC 9110, section 8.6.
    if request.body.is_some() || matches!(&request.method[..], "POST" | "PUT" | "PATCH") {
        end.push_str(&format!("Content-Length: {body_bytes}\r\n"));
    }
    write_headers(&request.headers, &mut end);
    Ok(Request {
        begin: format!("{} {} HTTP/1.1\r\nHost: ", request.method, request.path).into_bytes(),
        host: host.map(|host| host.as_bytes().to_vec()),
        end: format!("{end}\r\n").into_bytes(),
        body: request.body.filter(|_| body_bytes > 0),
        body_bytes,
        is_head: request.method == "HEAD",
        row: method_row(&request.method),
        expected: request.expected.clone(),
    })
}

impl AppProtocol for HttpClients {
    type Flow = HttpClientFlow;

    fn rows(&self) -> Vec<&'static [AppRow]> {
        vec![rows::rows()]
    }

    fn shared(&self, _: &CoreInfo) -> HttpClientShared {
        HttpClientShared {
            plan: Arc::clone(&self.plan),
        }
    }

    fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }
}

/// What the connections of a core share.
#[derive(Debug)]
pub struct HttpClientShared {
    plan: Arc<Plan>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not there yet.
    Connecting,
    /// The next request is due then.
    Thinking(Nanos),
    /// The body of a request is to be sent.
    Body,
    /// A response is waited for.
    Waiting,
    /// It is through.
    Closing(Output),
    /// It said so.
    Over,
}

/// A response that has begun.
#[derive(Debug)]
struct Response {
    head: ResponseHead,
    body_bytes: u64,
    hash: Option<Box<BodyHash>>,
}

/// The hash of what came of a body.
struct BodyHash(Context);

impl fmt::Debug for BodyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BodyHash").finish_non_exhaustive()
    }
}

/// A connection of a client.
#[derive(Debug)]
pub struct HttpClientFlow {
    remote: SocketAddr,
    phase: Phase,
    /// Requests that were sent.
    sent: u32,
    sent_at: Nanos,
    /// When its response must be there.
    deadline: Option<Nanos>,
    has_first_byte: bool,
    head: HeadReader,
    response: Option<Response>,
}

impl HttpClientFlow {
    /// The request that was sent last, or the first.
    fn request<'s>(&self, shared: &'s HttpClientShared) -> &'s Request {
        let requests = &shared.plan.requests;
        &requests[self.sent.saturating_sub(1) as usize % requests.len()]
    }

    /// Sends the head of the next request.
    fn send(
        &mut self,
        shared: &HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        out: &mut Vec<u8>,
    ) {
        self.sent += 1;
        let request = self.request(shared);
        out.extend_from_slice(&request.begin);
        match &request.host {
            Some(host) => out.extend_from_slice(host),
            None => write_host(self.remote, out),
        }
        // The last does not ask the server to close: who closes first keeps the TIME-WAIT, and that is better
        // kept here. Over TLS our own close_notify would find a connection that is gone.
        out.extend_from_slice(&request.end);
        let mut count = Count(cx);
        count.message(request.row);
        count.sent_bytes(request.body_bytes.into());
        self.sent_at = cx.now;
        self.deadline = shared.plan.timeout.map(|timeout| cx.now + timeout);
        self.has_first_byte = false;
        self.phase = match request.body {
            Some(_) => Phase::Body,
            None => Phase::Waiting,
        };
    }

    /// The request failed, and the connection is of no use any more.
    fn fail(&mut self, cx: &mut ApplicationContext<'_>, failure: Failure) {
        Count(cx).failure(failure);
        self.response = None;
        self.phase = Phase::Closing(Output::Fail);
    }

    fn begin_response(
        &mut self,
        shared: &HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) {
        let request = self.request(shared);
        let head = ResponseHead::parse(self.head.head(data), request.is_head);
        self.head.clear();
        match head {
            // Another response follows an interim one; nobody asked to switch protocols.
            Ok(head) if head.status < 200 && head.status != 101 => {
                Count(cx).message(status_row(head.status));
            }
            Ok(head) if head.status == 101 => self.fail(cx, Failure::Malformed),
            Ok(head) => {
                cx.measured.status = Some(StatusClass::Of((head.status / 100) as u8));
                let hashes = request.expected.body_sha256.is_some();
                self.response = Some(Response {
                    head,
                    body_bytes: 0,
                    hash: hashes.then(|| Box::new(BodyHash(Context::new(&SHA256)))),
                });
            }
            Err(BadHead::TooLong) => self.fail(cx, Failure::HeadTooLong),
            Err(_) => self.fail(cx, Failure::Malformed),
        }
    }

    /// A response is there as a whole: it is judged, and the next request may follow.
    fn end_response(
        &mut self,
        shared: &HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        response: Response,
    ) {
        let expected = &self.request(shared).expected;
        cx.measured.response = Some(cx.now - self.sent_at);
        let hash = response.hash.map(|hash| hash.0.finish());
        let has_hash = hash.is_none_or(|hash| {
            let wanted = expected.body_sha256.as_ref();
            wanted.is_none_or(|wanted| hash.as_ref() == wanted)
        });
        let mut count = Count(cx);
        count.message(status_row(response.head.status));
        if !expected.has_status(response.head.status) {
            count.failure(Failure::Status);
        } else if expected
            .body_bytes
            .is_some_and(|bytes| bytes != response.body_bytes)
        {
            count.failure(Failure::BodyLength);
        } else if !has_hash {
            count.failure(Failure::BodyHash);
        }
        let left = shared.plan.per_connection - self.sent;
        self.phase = if left == 0 {
            Phase::Closing(Output::Close)
        } else if response.head.keeps_alive {
            Phase::Thinking(cx.now + shared.plan.think)
        } else {
            Count(cx).unsent(left);
            Phase::Closing(Output::Close)
        };
    }

    fn note_first_byte(&mut self, cx: &mut ApplicationContext<'_>) {
        if !std::mem::replace(&mut self.has_first_byte, true) {
            cx.measured.response_begin = Some(cx.now - self.sent_at);
        }
    }

    /// Takes bytes of a body. Returns how many.
    fn read_body(
        &mut self,
        shared: &HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        mut response: Response,
        data: &[u8],
    ) -> usize {
        let (before, hash) = (response.body_bytes, &mut response.hash);
        let mut bytes = 0;
        let taken = response.head.body.read(data, |part| {
            bytes += part.len() as u64;
            if let Some(hash) = hash {
                hash.0.update(part);
            }
        });
        response.body_bytes = before + bytes;
        Count(cx).received_bytes(bytes);
        let Ok(taken) = taken else {
            self.fail(cx, Failure::Malformed);
            return data.len();
        };
        match response.head.body.is_whole() {
            true => self.end_response(shared, cx, response),
            false => self.response = Some(response),
        }
        taken
    }

    fn note_peer_closed(&mut self, shared: &HttpClientShared, cx: &mut ApplicationContext<'_>) {
        match (self.phase, self.response.take()) {
            (Phase::Body | Phase::Waiting, Some(response)) => match response.head.body {
                Body::UntilClose => self.end_response(shared, cx, response),
                _ => self.fail(cx, Failure::Truncated),
            },
            (Phase::Body | Phase::Waiting, None) if self.head.is_within() => {
                self.fail(cx, Failure::Truncated);
            }
            (Phase::Body | Phase::Waiting, None) => self.fail(cx, Failure::Closed),
            (Phase::Connecting | Phase::Thinking(_), _) => {
                Count(cx).unsent(shared.plan.per_connection - self.sent);
                self.phase = Phase::Closing(match self.sent {
                    0 => Output::Fail,
                    _ => Output::Close,
                });
            }
            (Phase::Closing(_) | Phase::Over, _) => {}
        }
    }
}

fn write_host(remote: SocketAddr, out: &mut Vec<u8>) {
    use std::io::Write;
    let ip = remote.ip();
    let written = match (DEFAULT_PORTS.contains(&remote.port()), ip.is_ipv6()) {
        (false, _) => write!(out, "{remote}"),
        (true, false) => write!(out, "{ip}"),
        (true, true) => write!(out, "[{ip}]"),
    };
    written.expect("memory takes all that is written to it");
}

impl Application for HttpClientFlow {
    type Shared = HttpClientShared;

    fn start(
        _: &mut HttpClientShared,
        _: &mut ApplicationContext<'_>,
        flow: &AppFlowInfo,
    ) -> HttpClientFlow {
        HttpClientFlow {
            remote: flow.remote,
            phase: Phase::Connecting,
            sent: 0,
            sent_at: 0,
            deadline: None,
            has_first_byte: false,
            head: HeadReader::default(),
            response: None,
        }
    }

    fn handle_event(
        &mut self,
        shared: &mut HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        match event {
            FlowEvent::Connected => self.phase = Phase::Thinking(cx.now),
            FlowEvent::PeerClosed => self.note_peer_closed(shared, cx),
            FlowEvent::Ended(end) if matches!(self.phase, Phase::Body | Phase::Waiting) => {
                match end {
                    End::Reset => self.fail(cx, Failure::Reset),
                    End::TimedOut => self.fail(cx, Failure::Timeout),
                    End::Closed => self.fail(cx, Failure::Closed),
                    // At the end of the run; its flow is counted as cut off.
                    End::CutOff => {}
                }
            }
            FlowEvent::Acknowledged | FlowEvent::Woken | FlowEvent::Ended(_) => {}
        }
    }

    fn handle_data(
        &mut self,
        shared: &mut HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        let mut rest = data;
        while !rest.is_empty() {
            match self.phase {
                Phase::Body | Phase::Waiting => self.note_first_byte(cx),
                // An answer that nobody asked for.
                Phase::Connecting | Phase::Thinking(_) => {
                    self.fail(cx, Failure::Malformed);
                    return data.len();
                }
                Phase::Closing(_) | Phase::Over => return data.len(),
            }
            if self.response.is_none() {
                match self.head.read(rest) {
                    HeadProgress::More => return data.len(),
                    HeadProgress::TooLong => {
                        self.fail(cx, Failure::HeadTooLong);
                        return data.len();
                    }
                    HeadProgress::Whole(bytes) => {
                        self.begin_response(shared, cx, &rest[..bytes]);
                        rest = &rest[bytes..];
                    }
                }
            }
            if let Some(response) = self.response.take() {
                let taken = self.read_body(shared, cx, response, rest);
                rest = &rest[taken..];
            }
        }
        data.len()
    }

    fn handle_timeout(&mut self, _: &mut HttpClientShared, cx: &mut ApplicationContext<'_>) {
        let waits = matches!(self.phase, Phase::Body | Phase::Waiting);
        if waits && self.deadline.is_some_and(|deadline| deadline <= cx.now) {
            self.fail(cx, Failure::Timeout);
            // An answer that is late may still come.
            self.phase = Phase::Closing(Output::Reset);
        }
    }

    fn poll_output(
        &mut self,
        shared: &mut HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        _: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        match self.phase {
            Phase::Thinking(due) if due <= cx.now => {
                self.send(shared, cx, out);
                Some(Output::Data)
            }
            Phase::Body => {
                self.phase = Phase::Waiting;
                self.request(shared).body.map(Output::Buffer)
            }
            Phase::Closing(output) => {
                self.phase = Phase::Over;
                Some(output)
            }
            Phase::Connecting | Phase::Thinking(_) | Phase::Waiting | Phase::Over => None,
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Thinking(due) => Some(due),
            Phase::Body | Phase::Waiting => self.deadline,
            Phase::Connecting | Phase::Closing(_) | Phase::Over => None,
        }
    }
}
