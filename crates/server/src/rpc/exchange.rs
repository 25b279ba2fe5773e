//! One message: from its text to requests, and from their replies to text.
//!
//! JSON-RPC 2.0 with TRex's habits: a batch is worked off in order and answered by a list, a batch of
//! one by its only reply, an empty one by `null`. Whatever the text is, there is a reply.

use std::vec::IntoIter;

use allosaur_api::request::{failure, success};
use allosaur_api::{Error, Request};
use serde_json::Value;

use crate::transport::Codec;
use crate::transport::framing::is_zipped;

/// A message that is being answered.
///
/// Drive it like this: [`next_request`](Exchange::next_request), and [`answer`](Exchange::answer)
/// after each; when there are no more, [`into_frame`](Exchange::into_frame).
#[derive(Clone, Debug)]
pub struct Exchange {
    requests: IntoIter<Value>,
    /// Of the request that was given last.
    id: Value,
    replies: Vec<Value>,
    zipped: bool,
}

impl Exchange {
    /// Takes a message apart.
    pub fn read(codec: &mut Codec, frame: &[u8]) -> Exchange {
        let mut zipped = is_zipped(frame);
        let message = codec.decode(frame).and_then(|text| {
            zipped = text.zipped;
            serde_json::from_slice::<Value>(&text.bytes).map_err(|_| Error::parse())
        });
        let (requests, replies) = match message {
            Ok(Value::Array(batch)) => (batch, Vec::new()),
            Ok(single) => (vec![single], Vec::new()),
            Err(error) => (Vec::new(), vec![failure(Value::Null, &error)]),
        };
        Exchange {
            requests: requests.into_iter(),
            id: Value::Null,
            replies,
            zipped,
        }
    }

    /// The next request. What is none is answered here.
    pub fn next_request(&mut self) -> Option<Request> {
        for request in self.requests.by_ref() {
            match Request::parse(request) {
                Ok(mut request) => {
                    self.id = request.id.take();
                    return Some(request);
                }
                Err(refused) => self.replies.push(failure(refused.id, &refused.error)),
            }
        }
        None
    }

    /// Answers the request that was given last.
    pub fn answer(&mut self, reply: Result<Value, Error>) {
        let id = self.id.take();
        self.replies.push(match reply {
            Ok(result) => success(id, result),
            Err(error) => failure(id, &error),
        });
    }

    /// Whether all requests were given.
    pub fn is_done(&self) -> bool {
        self.requests.len() == 0
    }

    /// Answers all requests that are left with the same error.
    pub fn refuse(&mut self, error: &Error) {
        while self.next_request().is_some() {
            self.answer(Err(error.clone()));
        }
    }

    /// Whether the reply to the message will have more bytes than that.
    pub fn is_longer_than(&self, bytes: usize) -> bool {
        let mut left = Some(bytes);
        for reply in &self.replies {
            left = left.and_then(|left| left_of(left, reply));
        }
        left.is_none()
    }

    /// The reply to the message, compressed if the message was.
    pub fn into_frame(mut self, codec: &mut Codec) -> Vec<u8> {
        let reply = match self.replies.len() {
            0 => Value::Null,
            1 => self.replies.remove(0),
            _ => Value::Array(self.replies),
        };
        let mut text = serde_json::to_vec(&reply).expect("a JSON value can be written");
        text.push(b'\n');
        codec.encode(text, self.zipped)
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
}
