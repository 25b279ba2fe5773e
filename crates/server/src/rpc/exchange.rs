//! One message: from its text to requests, and from their replies to text.
//!
//! JSON-RPC 2.0 with TRex's habits: a batch is worked off in order and answered by a list, a batch of
//! one by its only reply, an empty one by `null`. Whatever the text is, there is a reply.

use std::ops::Range;
use std::vec::IntoIter;

use allosaur_api::limits::{
    BATCH_REQUESTS_MAX, REPLIES_BYTES_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX,
};
use allosaur_api::request::{failure, success};
use allosaur_api::{Error, Request};
use serde_json::Value;
use serde_json::value::RawValue;

use super::conversion::TEXT_BYTES_SHORT;
use crate::transport::Codec;
use crate::transport::framing::is_zipped;

/// A message that is being answered.
///
/// Its requests stay text until it is their turn, and short replies are text at once: what was read
/// takes twenty times the memory.
///
/// Drive it like this: [`next_request`](Exchange::next_request), and [`answer`](Exchange::answer)
/// after each; when there are no more, [`into_frame`](Exchange::into_frame).
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Of the whole message.
    text: Vec<u8>,
    /// Where in it the requests are.
    requests: IntoIter<Range<usize>>,
    /// The first request, when it is long: it was read with the message.
    first: Option<Value>,
    /// Of the request that was given last.
    id: Value,
    replies: Vec<Written>,
    replies_count: usize,
    reply_bytes: usize,
    /// With what all that is left is answered.
    refusal: Option<Error>,
    zipped: bool,
}

/// What there is to do of a message.
#[derive(Debug)]
pub(super) enum Next {
    /// A request.
    Request(Request),
    /// So many were none, and were answered, that it is the turn of others.
    Pause,
    /// Nothing.
    Done,
}

/// Replies that stand behind each other.
#[derive(Clone, Debug)]
enum Written {
    /// Short ones, with commas between.
    Text(Vec<u8>),
    /// A long one.
    Value(Value),
}

impl Exchange {
    /// Takes a message apart.
    pub fn read(codec: &mut Codec, frame: &[u8]) -> Exchange {
        Exchange::read_received(codec, frame.to_vec(), 0)
    }

    /// The same, of which the transport has left out bytes at its end.
    pub(super) fn read_received(codec: &mut Codec, frame: Vec<u8>, left_out: usize) -> Exchange {
        let mut exchange = Exchange {
            zipped: is_zipped(&frame),
            text: Vec::new(),
            requests: Vec::new().into_iter(),
            first: None,
            id: Value::Null,
            replies: Vec::new(),
            replies_count: 0,
            reply_bytes: 0,
            refusal: None,
        };
        if let Err(error) = exchange.take_apart(codec, frame, left_out) {
            exchange.push(failure(Value::Null, &error));
        }
        exchange
    }

    fn take_apart(
        &mut self,
        codec: &mut Codec,
        frame: Vec<u8>,
        left_out: usize,
    ) -> Result<(), Error> {
        if left_out > 0 {
            let bytes = frame.len() + left_out;
            return Err(Error::too_large(bytes, REQUEST_BYTES_MAX));
        }
        let text = codec.decode(&frame)?;
        self.zipped = text.zipped;
        let text = match text.zipped {
            true => text.bytes.into_owned(),
            false => frame,
        };
        let requests = match text.trim_ascii_start().first() {
            Some(b'[') => split(&text)?,
            _ => std::iter::once(0..text.len()).collect(),
        };
        if let [request] = &requests[..] {
            // What is no JSON is the fault of the whole message.
            self.first = Some(value(&text[request.clone()])?);
        }
        self.text = text;
        self.requests = requests.into_iter();
        Ok(())
    }

    /// The next request. What is none is answered here.
    pub fn next_request(&mut self) -> Option<Request> {
        match self.next_within(usize::MAX) {
            Next::Request(request) => Some(request),
            Next::Pause | Next::Done => None,
        }
    }

    /// The same, of the next so many.
    pub(super) fn next_within(&mut self, requests: usize) -> Next {
        for _ in 0..requests {
            let Some(request) = self.requests.next() else {
                return Next::Done;
            };
            let read = match self.first.take() {
                Some(first) => Ok(first),
                None => value(&self.text[request]),
            };
            if self.requests.len() == 0 {
                self.text = Vec::new();
            }
            match read.map(Request::parse) {
                Ok(Ok(mut request)) => {
                    self.id = request.id.take();
                    let Some(refusal) = self.refusal.clone() else {
                        return Next::Request(request);
                    };
                    self.answer(Err(refusal));
                }
                Ok(Err(refused)) => self.push(failure(refused.id, &refused.error)),
                Err(error) => self.push(failure(Value::Null, &error)),
            }
        }
        Next::Pause
    }

    /// Answers the request that was given last.
    pub fn answer(&mut self, reply: Result<Value, Error>) {
        let id = self.id.take();
        self.push(match reply {
            Ok(result) => success(id, result),
            Err(error) => failure(id, &error),
        });
    }

    fn push(&mut self, reply: Value) {
        self.replies_count += 1;
        if left_of(TEXT_BYTES_SHORT, &reply).is_none() {
            self.reply_bytes += text_bytes(&reply);
            self.replies.push(Written::Value(reply));
            return;
        }
        let reply = serde_json::to_vec(&reply).expect("a JSON value can be written");
        self.reply_bytes += reply.len();
        match self.replies.last_mut() {
            Some(Written::Text(text)) => {
                text.push(b',');
                text.extend(reply);
            }
            _ => self.replies.push(Written::Text(reply)),
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
    pub(super) fn refuse_beyond_limits(&mut self, all_reply_bytes: usize) {
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

    /// The reply to the message, compressed if the message was.
    pub fn into_frame(self, codec: &mut Codec) -> Vec<u8> {
        let is_list = self.replies_count > 1;
        let mut text = Vec::with_capacity(self.reply_bytes + 2 * self.replies.len() + 3);
        text.extend(is_list.then_some(b'['));
        for (number, replies) in self.replies.into_iter().enumerate() {
            text.extend((number > 0).then_some(b','));
            match replies {
                Written::Text(replies) => text.extend(replies),
                Written::Value(reply) => {
                    serde_json::to_writer(&mut text, &reply).expect("a JSON value can be written")
                }
            }
        }
        if self.replies_count == 0 {
            text.extend(b"null");
        }
        text.extend(is_list.then_some(b']'));
        text.push(b'\n');
        codec.encode(text, self.zipped)
    }
}

fn value(text: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(|_| Error::parse())
}

/// Where the requests of a batch are in its text.
fn split(text: &[u8]) -> Result<Vec<Range<usize>>, Error> {
    let batch: Vec<&RawValue> = serde_json::from_slice(text).map_err(|_| Error::parse())?;
    if batch.len() > BATCH_REQUESTS_MAX {
        return Err(Error::execution(format!(
            "the batch has {} requests, and the most is {BATCH_REQUESTS_MAX}: send several batches",
            batch.len()
        )));
    }
    let begin = text.as_ptr() as usize;
    let range = |request: &&RawValue| {
        let request = request.get();
        let at = request.as_ptr() as usize - begin;
        at..at + request.len()
    };
    Ok(batch.iter().map(range).collect())
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
    use serde_json::json;

    fn ask(message: &[u8]) -> Value {
        let mut codec = Codec::default();
        let mut exchange = Exchange::read(&mut codec, message);
        while let Some(request) = exchange.next_request() {
            exchange.answer(match request.method.as_str() {
                "ping" => Ok(json!({"ts": 1.0})),
                _ => Err(Error::execution("no")),
            });
        }
        serde_json::from_slice(&exchange.into_frame(&mut codec)).expect("a reply is JSON")
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
        let mut codec = Codec::default();
        let message = format!("[{ping},5,{ping}]");
        let mut exchange = Exchange::read(&mut codec, message.as_bytes());
        exchange.refuse(&Error::execution("too much"));
        let reply = exchange.into_frame(&mut codec);
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
            let mut exchange = Exchange::read(&mut Codec::default(), ping.as_bytes());
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
        let mut codec = Codec::default();
        let mut exchange = Exchange::read(&mut codec, batch.as_bytes());
        let mut answered = 0;
        while exchange.next_request().is_some() {
            answered += 1;
            exchange.answer(Ok(json!("x".repeat(1 << 20))));
            exchange.refuse_beyond_limits(0);
        }
        assert_eq!(answered, REPLY_BYTES_MAX >> 20);
        assert!(exchange.reply_bytes() < REPLY_BYTES_MAX + (2 << 20));
        let reply: Value = serde_json::from_slice(&exchange.into_frame(&mut codec)).expect("JSON");
        assert_eq!(reply.as_array().map(Vec::len), Some(90));
        let said = reply[89]["error"]["specific_err"].as_str().expect("a text");
        assert!(said.contains("fewer at a time"), "{said}");
    }

    #[test]
    fn what_waits_for_its_turn_is_text() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        let batch = format!("[{}]", [ping; 10_000].join(","));
        let mut exchange = Exchange::read(&mut Codec::default(), batch.as_bytes());
        assert_eq!(exchange.text.len(), batch.len());
        while exchange.next_request().is_some() {
            exchange.answer(Ok(json!({"ts": 1.0})));
        }
        assert!(exchange.text.is_empty());
        assert!(matches!(&exchange.replies[..], [Written::Text(_)]));
    }
}
