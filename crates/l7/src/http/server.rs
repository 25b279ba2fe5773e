//! A connection of a server: requests are read in their order, and answered by path.

use std::io::Write;
use std::sync::Arc;

use allosaur_engine::app::{
    AppFlowInfo, AppRow, Application, ApplicationContext, Buffers, CoreInfo, FlowEvent, Output,
};
use allosaur_engine::time::Nanos;

use super::answers::{Answers, Refusal};
use super::body::Body;
use super::head::RequestHead;
use super::head_reader::{HeadProgress, HeadReader};
use super::rows::{self, Count, Failure, method_row};
use super::settings::{HttpServerSettings, HttpSettingsError};
use crate::protocol::AppProtocol;

/// Requests of a connection that may wait for their answers: what follows them is not read before.
const WAITING_MAX: usize = 8;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Servers of HTTP.
#[derive(Debug)]
pub struct HttpServers {
    answers: Arc<Answers>,
    requests_per_connection: u32,
    buffers: Arc<Buffers>,
}

impl HttpServers {
    /// Those of these settings; their bodies are of these buffers.
    ///
    /// # Errors
    /// When something cannot be; the error names the field.
    pub fn new(
        settings: &HttpServerSettings,
        buffers: Arc<Buffers>,
    ) -> Result<HttpServers, HttpSettingsError> {
        Ok(HttpServers {
            answers: Arc::new(Answers::new(settings, &buffers)?),
            requests_per_connection: settings.requests_per_connection,
            buffers,
        })
    }
}

impl AppProtocol for HttpServers {
    type Flow = HttpServerFlow;

    fn rows(&self) -> Vec<&'static [AppRow]> {
        vec![rows::rows()]
    }

    fn shared(&self, _: &CoreInfo) -> HttpServerShared {
        HttpServerShared {
            answers: Arc::clone(&self.answers),
            requests_per_connection: self.requests_per_connection,
            buffers: Arc::clone(&self.buffers),
        }
    }

    fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }
}

/// What the connections of a core share.
#[derive(Debug)]
pub struct HttpServerShared {
    answers: Arc<Answers>,
    requests_per_connection: u32,
    buffers: Arc<Buffers>,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// When it is answered.
    due: Nanos,
    answer: u16,
    is_head: bool,
    /// Nothing follows the answer.
    is_last: bool,
}

/// What is left of an answer to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saying {
    Nothing,
    Body,
    /// The chunk from this byte of the body on.
    Chunk(u32),
    /// The connection closes.
    Close,
}

/// A request of which the head was read, and not all of the body.
#[derive(Clone, Copy, Debug)]
struct Reading {
    body: Body,
    answer: u16,
    is_head: bool,
    is_last: bool,
}

/// A connection of a server.
#[derive(Debug)]
pub struct HttpServerFlow {
    head: HeadReader,
    reading: Option<Reading>,
    waiting: [Waiting; WAITING_MAX],
    /// The first of those that wait, and how many there are.
    first: u8,
    count: u8,
    saying: Saying,
    /// When the answer that waits is due.
    wake_at: Option<Nanos>,
    requests: u32,
    /// 100 (Continue) is to be said.
    continues: bool,
    /// Nothing that comes is read any more.
    is_deaf: bool,
    is_over: bool,
}

impl HttpServerFlow {
    fn is_full(&self) -> bool {
        usize::from(self.count) == WAITING_MAX
    }

    fn push(&mut self, waiting: Waiting) {
        let place = (usize::from(self.first) + usize::from(self.count)) % WAITING_MAX;
        self.waiting[place] = waiting;
        self.count += 1;
        self.is_deaf |= waiting.is_last;
    }

    fn front(&self) -> Option<Waiting> {
        (self.count > 0).then(|| self.waiting[usize::from(self.first)])
    }

    fn pop(&mut self) {
        self.first = (self.first + 1) % WAITING_MAX as u8;
        self.count -= 1;
    }

    /// What came makes no sense: it is answered, and nothing that follows is read.
    fn refuse(
        &mut self,
        shared: &HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        refusal: Refusal,
    ) {
        Count(cx).failure(match refusal {
            Refusal::TooLong => Failure::HeadTooLong,
            _ => Failure::Malformed,
        });
        self.push(Waiting {
            due: cx.now,
            answer: shared.answers.refusal(refusal),
            is_head: false,
            is_last: true,
        });
    }

    /// A whole head arrived.
    fn handle_head(
        &mut self,
        shared: &HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) {
        let parsed = RequestHead::parse(self.head.head(data)).map(|head| {
            let reading = Reading {
                body: head.body,
                answer: shared.answers.find(head.path),
                is_head: head.method == "HEAD",
                is_last: !head.keeps_alive,
            };
            (reading, method_row(head.method), head.expects_continue)
        });
        self.head.clear();
        match parsed {
            Err(problem) => self.refuse(shared, cx, problem.into()),
            Ok((mut reading, row, expects_continue)) => {
                Count(cx).message(row);
                self.requests += 1;
                reading.is_last |= self.requests == shared.requests_per_connection;
                self.continues |= expects_continue;
                self.reading = Some(reading);
            }
        }
    }

    /// The body of a request is whole: it waits for its answer.
    fn note_whole(
        &mut self,
        shared: &HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        reading: Reading,
    ) {
        self.continues = false;
        self.push(Waiting {
            due: cx.now + shared.answers.at(reading.answer).delay,
            answer: reading.answer,
            is_head: reading.is_head,
            is_last: reading.is_last,
        });
    }

    /// Says the head of the answer that is due, and what is left of it.
    fn answer(
        &mut self,
        shared: &HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        waiting: Waiting,
        out: &mut Vec<u8>,
    ) {
        let answer = shared.answers.at(waiting.answer);
        out.extend_from_slice(match waiting.is_last {
            true => &answer.last_head,
            false => &answer.head,
        });
        Count(cx).message(answer.row);
        self.saying = if waiting.is_head {
            Saying::Nothing
        } else if answer.chunk_bytes > 0 {
            Saying::Chunk(0)
        } else if answer.body.is_some() {
            Saying::Body
        } else {
            Saying::Nothing
        };
        if self.saying == Saying::Nothing {
            self.note_said(waiting);
        } else {
            Count(cx).sent_bytes(answer.body_bytes.into());
        }
    }

    fn note_said(&mut self, waiting: Waiting) {
        self.pop();
        self.saying = match waiting.is_last {
            true => Saying::Close,
            false => Saying::Nothing,
        };
    }

    /// Says the next chunk, and after the last that nothing follows.
    fn write_chunk(
        &mut self,
        shared: &HttpServerShared,
        waiting: Waiting,
        from: u32,
        out: &mut Vec<u8>,
    ) {
        let answer = shared.answers.at(waiting.answer);
        let bytes = (answer.body_bytes - from).min(answer.chunk_bytes);
        if let Some(body) = answer.body.filter(|_| bytes > 0) {
            write!(out, "{bytes:x}\r\n").expect("memory takes all that is written to it");
            let begin = out.len();
            out.resize(begin + bytes as usize, 0);
            shared.buffers.copy_to(body, from, &mut out[begin..]);
            out.extend_from_slice(b"\r\n");
        }
        self.saying = Saying::Chunk(from + bytes);
        if from + bytes == answer.body_bytes {
            out.extend_from_slice(b"0\r\n\r\n");
            self.note_said(waiting);
        }
    }
}

impl Application for HttpServerFlow {
    type Shared = HttpServerShared;

    fn start(
        _: &mut HttpServerShared,
        _: &mut ApplicationContext<'_>,
        _: &AppFlowInfo,
    ) -> HttpServerFlow {
        HttpServerFlow {
            head: HeadReader::default(),
            reading: None,
            waiting: [Waiting::default(); WAITING_MAX],
            first: 0,
            count: 0,
            saying: Saying::Nothing,
            wake_at: None,
            requests: 0,
            continues: false,
            is_deaf: false,
            is_over: false,
        }
    }

    fn handle_event(
        &mut self,
        _: &mut HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        if event != FlowEvent::PeerClosed {
            return;
        }
        let is_within = self.head.is_within() || self.reading.is_some();
        if is_within && !self.is_deaf {
            Count(cx).failure(Failure::Truncated);
        }
        self.is_deaf = true;
        // The answers that are owed are said before it closes, too.
        match self.count {
            0 => self.saying = Saying::Close,
            count => {
                let last = (usize::from(self.first) + usize::from(count) - 1) % WAITING_MAX;
                self.waiting[last].is_last = true;
            }
        }
    }

    fn handle_data(
        &mut self,
        shared: &mut HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        let mut rest = data;
        while !rest.is_empty() {
            if self.is_deaf {
                return data.len();
            }
            if self.is_full() {
                break;
            }
            if self.reading.is_none() {
                match self.head.read(rest) {
                    HeadProgress::More => return data.len(),
                    HeadProgress::TooLong => self.refuse(shared, cx, Refusal::TooLong),
                    HeadProgress::Whole(bytes) => {
                        self.handle_head(shared, cx, &rest[..bytes]);
                        rest = &rest[bytes..];
                    }
                }
            }
            let Some(mut reading) = self.reading.take() else {
                continue;
            };
            let mut received = 0;
            let taken = reading
                .body
                .read(rest, |part| received += part.len() as u64);
            Count(cx).received_bytes(received);
            match taken {
                Ok(bytes) => rest = &rest[bytes..],
                Err(_) => {
                    self.refuse(shared, cx, Refusal::Malformed);
                    continue;
                }
            }
            match reading.body.is_whole() {
                true => self.note_whole(shared, cx, reading),
                false => self.reading = Some(reading),
            }
        }
        data.len() - rest.len()
    }

    fn poll_output(
        &mut self,
        shared: &mut HttpServerShared,
        cx: &mut ApplicationContext<'_>,
        _: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if self.saying == Saying::Close {
            let closes = !std::mem::replace(&mut self.is_over, true);
            return closes.then_some(Output::Close);
        }
        let Some(waiting) = self.front() else {
            if std::mem::take(&mut self.continues) {
                out.extend_from_slice(CONTINUE);
                return Some(Output::Data);
            }
            return None;
        };
        match self.saying {
            Saying::Nothing if waiting.due > cx.now => {
                self.wake_at = Some(waiting.due);
                return None;
            }
            Saying::Nothing => self.answer(shared, cx, waiting, out),
            Saying::Body => {
                let body = shared.answers.at(waiting.answer).body;
                self.note_said(waiting);
                return body.map(Output::Buffer);
            }
            Saying::Chunk(from) => self.write_chunk(shared, waiting, from, out),
            Saying::Close => return None,
        }
        Some(Output::Data)
    }

    fn handle_timeout(&mut self, _: &mut HttpServerShared, _: &mut ApplicationContext<'_>) {
        self.wake_at = None;
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.wake_at
    }
}
