//! A connection of a client: it sends its requests, and judges each response in their order.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use allosaur_engine::app::{
    AppFlowInfo, AppRow, Application, ApplicationContext, Buffers, CoreInfo, FlowEvent, Output,
    StatusClass,
};
use allosaur_engine::tcp::End;
use allosaur_engine::time::Nanos;
use ring::digest::{Context, SHA256};

use super::body::Body;
use super::head::{BadHead, ResponseHead};
use super::head_reader::{HeadProgress, HeadReader};
use super::requests::{Plan, Request, Writer};
use super::rows::{self, Count, Failure, status_row};
use super::settings::{HttpClientSettings, HttpSettingsError};
use super::values::Draws;
use crate::protocol::AppProtocol;

/// Clients of HTTP.
#[derive(Debug)]
pub struct HttpClients {
    plan: Arc<Plan>,
    buffers: Arc<Buffers>,
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
        Ok(HttpClients {
            plan: Arc::new(Plan::new(settings, &buffers)?),
            buffers,
        })
    }
}

impl AppProtocol for HttpClients {
    type Flow = HttpClientFlow;

    fn rows(&self) -> Vec<&'static [AppRow]> {
        vec![rows::rows()]
    }

    fn shared(&self, core: &CoreInfo) -> HttpClientShared {
        HttpClientShared {
            plan: Arc::clone(&self.plan),
            writer: Writer::new(Draws::new(&self.plan.values, core)),
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
    writer: Writer,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not there yet.
    Connecting,
    /// The next requests are due then.
    Thinking(Nanos),
    /// Not all requests that are sent at once are.
    Sending,
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
    /// Its number among those of its clients, for what requests are made of.
    number: u64,
    phase: Phase,
    /// Requests that were sent.
    sent: u32,
    /// Those that are sent at once: so many will have been then.
    sent_end: u32,
    /// Requests that were answered.
    answered: u32,
    sent_at: Nanos,
    /// When the responses must be there.
    deadline: Option<Nanos>,
    has_first_byte: bool,
    head: HeadReader,
    response: Option<Response>,
}

impl HttpClientFlow {
    /// A request by its place on the connection.
    fn request<'s>(&self, plan: &'s Plan, place: u32) -> &'s Request {
        &plan.requests[place as usize % plan.requests.len()]
    }

    /// Whether a request was sent, or is being sent, and not answered.
    fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Sending | Phase::Body | Phase::Waiting)
    }

    /// Begins the requests that are sent at once.
    fn begin_requests(&mut self, shared: &HttpClientShared, cx: &ApplicationContext<'_>) {
        let plan = &shared.plan;
        self.sent_end = self.sent + plan.pipeline.min(plan.per_connection - self.sent);
        self.sent_at = cx.now;
        self.deadline = plan.timeout.map(|timeout| cx.now + timeout);
        self.has_first_byte = false;
        self.phase = Phase::Sending;
    }

    /// Sends the heads of those that are left, up to the first with a body, and no more than fit.
    fn send(
        &mut self,
        shared: &mut HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) {
        let HttpClientShared { plan, writer } = shared;
        while self.phase == Phase::Sending {
            let request = self.request(plan, self.sent);
            let bytes = request.write(&plan.values, writer, self.number, self.remote, out);
            self.sent += 1;
            let mut count = Count(cx);
            count.message(request.row);
            count.sent_bytes(bytes);
            if request.body().is_some() {
                self.phase = Phase::Body;
            } else if self.sent == self.sent_end {
                self.phase = Phase::Waiting;
            } else if out.len() >= room {
                break;
            }
        }
    }

    /// The request failed, and the connection is of no use any more: so did those that were sent with it.
    fn fail(&mut self, cx: &mut ApplicationContext<'_>, failure: Failure) {
        Count(cx).failures(failure, (self.sent - self.answered).max(1));
        self.response = None;
        self.phase = Phase::Closing(Output::Fail);
    }

    fn begin_response(
        &mut self,
        shared: &HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) {
        let request = self.request(&shared.plan, self.answered);
        let head = ResponseHead::parse(self.head.head(data), request.is_head);
        self.head.clear();
        match head {
            // Another response follows an interim one; nobody asked to switch protocols.
            Ok(head) if head.status < 200 && head.status != 101 => {
                Count(cx).message(status_row(head.status));
            }
            Ok(head) if head.status == 101 => self.fail(cx, Failure::Malformed),
            Ok(head) => {
                cx.measures
                    .count_status(StatusClass::Of((head.status / 100) as u8));
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
        let expected = &self.request(&shared.plan, self.answered).expected;
        cx.measures.count_response(cx.now - self.sent_at);
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
        self.answered += 1;
        self.has_first_byte = false;
        let keeps_alive = response.head.keeps_alive;
        self.note_answered(shared, cx, keeps_alive);
    }

    /// A request was answered: others of those that were sent with it, or the next follow.
    fn note_answered(
        &mut self,
        shared: &HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        keeps_alive: bool,
    ) {
        let unsent = shared.plan.per_connection - self.sent;
        // An answer before the end of its request leaves the connection with half a body.
        let is_early = self.phase == Phase::Body && self.answered == self.sent;
        let keeps_alive = keeps_alive && !is_early;
        if keeps_alive && self.answered < self.sent_end {
            return;
        }
        if keeps_alive && unsent > 0 {
            self.phase = Phase::Thinking(cx.now + shared.plan.think);
            return;
        }
        Count(cx).unsent(unsent);
        if self.answered < self.sent {
            self.fail(cx, Failure::Closed);
        } else {
            self.phase = Phase::Closing(Output::Close);
        }
    }

    fn note_first_byte(&mut self, cx: &mut ApplicationContext<'_>) {
        if !std::mem::replace(&mut self.has_first_byte, true) {
            cx.measures.count_response_begin(cx.now - self.sent_at);
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
            (Phase::Sending | Phase::Body | Phase::Waiting, Some(response)) => {
                match response.head.body {
                    Body::UntilClose => self.end_response(shared, cx, response),
                    _ => self.fail(cx, Failure::Truncated),
                }
            }
            (Phase::Sending | Phase::Body | Phase::Waiting, None) => {
                self.fail(
                    cx,
                    match self.head.is_within() {
                        true => Failure::Truncated,
                        false => Failure::Closed,
                    },
                );
            }
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

impl Application for HttpClientFlow {
    type Shared = HttpClientShared;

    fn start(
        shared: &mut HttpClientShared,
        _: &mut ApplicationContext<'_>,
        flow: &AppFlowInfo,
    ) -> HttpClientFlow {
        HttpClientFlow {
            remote: flow.remote,
            number: shared.writer.draws.connection(),
            phase: Phase::Connecting,
            sent: 0,
            sent_end: 0,
            answered: 0,
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
            FlowEvent::Ended(end) if self.is_waiting() => match end {
                End::Reset => self.fail(cx, Failure::Reset),
                End::TimedOut => self.fail(cx, Failure::Timeout),
                End::Closed => self.fail(cx, Failure::Closed),
                // At the end of the run; its flow is counted as cut off.
                End::CutOff => {}
            },
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
                Phase::Closing(_) | Phase::Over => return data.len(),
                _ if self.answered < self.sent => self.note_first_byte(cx),
                // An answer that nobody asked for.
                _ => {
                    self.fail(cx, Failure::Malformed);
                    return data.len();
                }
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
        if self.is_waiting() && self.deadline.is_some_and(|deadline| deadline <= cx.now) {
            self.fail(cx, Failure::Timeout);
            // An answer that is late may still come.
            self.phase = Phase::Closing(Output::Reset);
        }
    }

    fn poll_output(
        &mut self,
        shared: &mut HttpClientShared,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if matches!(self.phase, Phase::Thinking(due) if due <= cx.now) {
            self.begin_requests(shared, cx);
        }
        match self.phase {
            Phase::Sending => {
                self.send(shared, cx, room, out);
                Some(Output::Data)
            }
            Phase::Body => {
                self.phase = match self.sent < self.sent_end {
                    true => Phase::Sending,
                    false => Phase::Waiting,
                };
                let request = self.request(&shared.plan, self.sent - 1);
                request.body().map(Output::Buffer)
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
            Phase::Sending | Phase::Body | Phase::Waiting => self.deadline,
            Phase::Connecting | Phase::Closing(_) | Phase::Over => None,
        }
    }
}
