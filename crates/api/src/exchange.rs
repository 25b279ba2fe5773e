//! One message: from its text to requests, and from their replies to text.
//!
//! A batch is worked off in order. Whatever the text is, there is a reply. How requests and replies are
//! written is said by a [`Dialect`].

use std::vec::IntoIter;

use serde_json::Value;

use crate::dialect::{Dialect, Reply};
use crate::error::Error;
use crate::limits::{REPLIES_BYTES_MAX, REPLY_BYTES_MAX};

/// Texts of more bytes are long.
pub const TEXT_BYTES_SHORT: usize = 64 << 10;

/// A message that is being answered.
///
/// Its requests stay text until it is their turn, and short replies are text at once: what was read
/// takes twenty times the memory.
///
/// Drive it like this: [`next_request`](Exchange::next_request), and [`answer`](Exchange::answer)
/// after each; when there are no more, [`into_text`](Exchange::into_text).
#[derive(Debug)]
pub struct Exchange<D: Dialect> {
    /// Of the whole message.
    text: Vec<u8>,
    /// Where in it the requests are.
    requests: IntoIter<D::Place>,
    is_batch: bool,
    /// Of the request that was given last.
    id: D::Id,
    replies: Vec<Written<D::Id>>,
    /// Short replies behind these, with commas between.
    short: Vec<u8>,
    replies_count: usize,
    reply_bytes: usize,
    /// With what all that is left is answered.
    refusal: Option<Error>,
    is_zipped: bool,
}

/// What there is to do of a message.
#[derive(Debug)]
pub enum Next<R> {
    /// A request.
    Request(R),
    /// So many were none, and were answered, that it is the turn of others.
    Pause,
    /// Nothing.
    Done,
}

/// Replies that stand behind each other.
#[derive(Debug)]
enum Written<I> {
    /// Short ones, with commas between.
    Text(Vec<u8>),
    /// A long one.
    Reply(Reply<I>),
}

impl<D: Dialect> Exchange<D> {
    /// Takes a text apart. Its reply is compressed as the message was.
    pub fn read(mut text: Vec<u8>, is_zipped: bool) -> Exchange<D> {
        let requests = D::split(&mut text);
        let mut exchange = Exchange::new(text, is_zipped);
        match requests {
            Ok(requests) => {
                exchange.is_batch = requests.is_batch;
                exchange.requests = requests.places.into_iter();
            }
            Err(error) => exchange.fail(error),
        }
        exchange
    }

    /// A message that could not even be read: its reply says why.
    pub fn failed(error: Error, is_zipped: bool) -> Exchange<D> {
        let mut exchange = Exchange::new(Vec::new(), is_zipped);
        exchange.fail(error);
        exchange
    }

    fn new(text: Vec<u8>, is_zipped: bool) -> Exchange<D> {
        Exchange {
            text,
            requests: Vec::new().into_iter(),
            is_batch: false,
            id: D::Id::default(),
            replies: Vec::new(),
            short: Vec::new(),
            replies_count: 0,
            reply_bytes: 0,
            refusal: None,
            is_zipped,
        }
    }

    fn fail(&mut self, error: Error) {
        self.text = Vec::new();
        self.push(D::Id::default(), Err(error));
    }

    /// The next request. What is none is answered here.
    pub fn next_request(&mut self) -> Option<D::Request> {
        match self.next_within(usize::MAX) {
            Next::Request(request) => Some(request),
            Next::Pause | Next::Done => None,
        }
    }

    /// The same, of the next so many.
    pub fn next_within(&mut self, requests: usize) -> Next<D::Request> {
        for _ in 0..requests {
            let Some(place) = self.requests.next() else {
                return Next::Done;
            };
            let (id, request) = D::parse(&self.text, place);
            if self.requests.len() == 0 {
                self.text = Vec::new();
            }
            match (request, &self.refusal) {
                (Ok(request), None) => {
                    self.id = id;
                    return Next::Request(request);
                }
                (Ok(_), Some(refusal)) => {
                    let refusal = refusal.clone();
                    self.push(id, Err(refusal));
                }
                (Err(error), _) => self.push(id, Err(error)),
            }
        }
        Next::Pause
    }

    /// Answers the request that was given last.
    pub fn answer(&mut self, outcome: Result<Value, Error>) {
        let id = std::mem::take(&mut self.id);
        self.push(id, outcome);
    }

    fn push(&mut self, id: D::Id, outcome: Result<Value, Error>) {
        self.replies_count += 1;
        let is_short = match &outcome {
            Ok(result) => left_of(TEXT_BYTES_SHORT, result).is_some(),
            Err(_) => true,
        };
        let reply = Reply { id, outcome };
        if is_short {
            if !self.short.is_empty() {
                self.short.push(b',');
            }
            let before = self.short.len();
            D::write(&reply, &mut self.short);
            self.reply_bytes += self.short.len() - before;
        } else {
            self.reply_bytes += reply.outcome.as_ref().map_or(0, text_bytes);
            self.end_short();
            self.replies.push(Written::Reply(reply));
        }
    }

    fn end_short(&mut self) {
        if !self.short.is_empty() {
            let short = std::mem::take(&mut self.short);
            self.replies.push(Written::Text(short));
        }
    }

    /// Whether all requests were given.
    pub fn is_done(&self) -> bool {
        self.requests.len() == 0
    }

    /// Bytes of the replies until now.
    pub fn reply_bytes(&self) -> usize {
        self.reply_bytes
    }

    /// Refuses the requests that are left when there are too many bytes of replies: of this message, or
    /// of all.
    pub fn refuse_beyond_limits(&mut self, all_reply_bytes: usize) {
        let (whose, bytes_max) = if self.reply_bytes > REPLY_BYTES_MAX {
            ("this message has", REPLY_BYTES_MAX)
        } else if all_reply_bytes > REPLIES_BYTES_MAX && self.reply_bytes > 0 {
            ("messages have", REPLIES_BYTES_MAX)
        } else {
            return;
        };
        self.refusal.get_or_insert_with(|| {
            Error::execution(format!(
                "{whose} replies of more than {bytes_max} bytes already, which is the most: send the \
                 requests that were refused again, fewer at a time"
            ))
        });
    }

    /// Answers all requests that are left with the same error.
    pub fn refuse(&mut self, error: &Error) {
        while self.next_request().is_some() {
            self.answer(Err(error.clone()));
        }
    }

    /// Whether the reply to the message will have more bytes than that.
    pub fn is_longer_than(&self, bytes: usize) -> bool {
        self.reply_bytes > bytes
    }

    /// Whether the message was compressed, so that the reply shall be.
    pub fn is_zipped(&self) -> bool {
        self.is_zipped
    }

    /// The text of the reply to the message.
    pub fn into_text(mut self) -> Vec<u8> {
        self.end_short();
        let (before, behind) = D::brackets(self.is_batch, self.replies_count);
        let mut text = Vec::with_capacity(self.reply_bytes + 2 * self.replies.len() + 8);
        text.extend(before.as_bytes());
        for (number, replies) in self.replies.into_iter().enumerate() {
            text.extend((number > 0).then_some(b','));
            match replies {
                Written::Text(replies) => text.extend(replies),
                Written::Reply(reply) => D::write(&reply, &mut text),
            }
        }
        text.extend(behind.as_bytes());
        text
    }
}

/// What is left of so many bytes when this is written; nothing when it is longer. It looks no
/// further than it must.
fn left_of(bytes: usize, value: &Value) -> Option<usize> {
    let bytes = bytes.checked_sub(1)?;
    match value {
        Value::String(text) => bytes.checked_sub(text.len()),
        Value::Array(list) => list.iter().try_fold(bytes, left_of),
        Value::Object(object) => object.iter().try_fold(bytes, |bytes, (name, value)| {
            left_of(bytes.checked_sub(name.len())?, value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(bytes),
    }
}

/// About so many bytes has a value that is written.
fn text_bytes(value: &Value) -> usize {
    usize::MAX - left_of(usize::MAX, value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::MainDialect;
    use crate::limits::BATCH_REQUESTS_MAX;
    use serde_json::json;

    fn read(message: &[u8]) -> Exchange<MainDialect> {
        Exchange::read(message.to_vec(), false)
    }

    fn ask(message: &[u8]) -> Value {
        let mut exchange = read(message);
        while let Some(request) = exchange.next_request() {
            exchange.answer(match request.method.as_str() {
                "ping" => Ok(json!({"ts": 1.0})),
                other => Err(Error::method_not_found(other)),
            });
        }
        serde_json::from_slice(&exchange.into_text()).expect("a reply is JSON")
    }

    #[test]
    fn batches_are_answered_in_order() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        let other = r#"{"jsonrpc":"2.0","id":"x","method":"no_such","params":{}}"#;
        let replies = ask(format!("[{ping},{other},5]").as_bytes());
        assert_eq!(replies[0]["result"]["ts"], 1.0);
        assert_eq!(
            (&replies[1]["id"], &replies[1]["error"]["code"]),
            (&json!("x"), &json!(-32601))
        );
        assert_eq!(replies[2]["error"]["code"], -32600);
        assert_eq!(ask(format!("[{ping}]").as_bytes())["id"], 7);
        assert_eq!(ask(b"[]"), Value::Null);
    }

    #[test]
    fn what_is_not_json_gets_the_error_of_the_protocol() {
        for message in [
            &b"hello"[..],
            b"{\"jsonrpc\":\"2.0\",\"method\":",
            b"",
            &[0xff; 9],
        ] {
            assert_eq!(ask(message)["error"]["code"], -32700);
        }
        let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
        assert_eq!(ask(&deep)["error"]["code"], -32700);
        assert_eq!(
            ask(format!("[5,{}]", "[".repeat(9)).as_bytes())["error"]["code"],
            -32700
        );
        for message in [&b"5"[..], b"\"s\"", b"[1]", b"[[]]", b"null"] {
            assert_eq!(ask(message)["error"]["code"], -32600);
        }
    }

    #[test]
    fn a_refused_message_has_an_error_for_each_request() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        let message = format!("[{ping},5,{ping}]");
        let mut exchange = read(message.as_bytes());
        exchange.refuse(&Error::execution("too much"));
        let reply = exchange.into_text();
        let replies: Value = serde_json::from_slice(&reply).expect("JSON");
        let codes = replies.as_array().expect("a list").iter();
        let codes: Vec<_> = codes.map(|reply| reply["error"]["code"].clone()).collect();
        assert_eq!(codes, [-32000, -32600, -32000]);
    }

    #[test]
    fn how_long_a_reply_will_be_is_known_before_it_is_written() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        for (result, is_long) in [
            (json!("x".repeat(900)), false),
            (json!("x".repeat(1001)), true),
            (
                json!({"name": ["x".repeat(500), {"y": "x".repeat(500)}]}),
                true,
            ),
            (json!(vec![1; 1001]), true),
        ] {
            let mut exchange = read(ping.as_bytes());
            exchange.next_request().expect("a request");
            exchange.answer(Ok(result));
            assert_eq!(exchange.is_longer_than(1000), is_long);
        }
    }

    #[test]
    fn a_batch_of_more_requests_than_may_be_is_refused_as_one() {
        for (requests, code) in [
            (BATCH_REQUESTS_MAX, -32600),
            (BATCH_REQUESTS_MAX + 1, -32000),
        ] {
            let batch = format!("[{}5]", "5,".repeat(requests - 1));
            let reply = ask(batch.as_bytes());
            assert_eq!(
                reply[0]["error"]["code"]
                    .as_i64()
                    .or(reply["error"]["code"].as_i64()),
                Some(code)
            );
        }
    }

    #[test]
    fn replies_beyond_the_limit_are_errors_that_say_what_to_do() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        let batch = format!("[{}]", [ping; 90].join(","));
        let mut exchange = read(batch.as_bytes());
        let mut answered = 0;
        while exchange.next_request().is_some() {
            answered += 1;
            exchange.answer(Ok(json!("x".repeat(1 << 20))));
            exchange.refuse_beyond_limits(0);
        }
        assert_eq!(answered, REPLY_BYTES_MAX >> 20);
        assert!(exchange.reply_bytes() < REPLY_BYTES_MAX + (2 << 20));
        let reply: Value = serde_json::from_slice(&exchange.into_text()).expect("JSON");
        assert_eq!(reply.as_array().map(Vec::len), Some(90));
        let said = reply[89]["error"]["specific_err"].as_str().expect("a text");
        assert!(said.contains("fewer at a time"), "{said}");
    }

    #[test]
    fn what_waits_for_its_turn_is_text() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        let batch = format!("[{}]", [ping; 10_000].join(","));
        let mut exchange = read(batch.as_bytes());
        assert_eq!(exchange.text.len(), batch.len());
        while exchange.next_request().is_some() {
            exchange.answer(Ok(json!({"ts": 1.0})));
        }
        assert!(exchange.text.is_empty());
        assert!(exchange.replies.is_empty());
    }
}
