//! One message: from its text to requests, and from their replies to text.
//!
//! JSON-RPC 2.0 with TRex's habits: a batch is worked off in order and answered by a list, a batch of
//! one by its only reply, an empty one by `null`. Whatever the text is, there is a reply.

use std::vec::IntoIter;

use allosaur_api::request::{failure, success};
use allosaur_api::{Error, Request};
use serde_json::Value;

/// A message that is being answered.
///
/// Drive it like this: [`next_request`](Exchange::next_request), and [`answer`](Exchange::answer)
/// after each; when there are no more, [`into_text`](Exchange::into_text).
#[derive(Clone, Debug)]
pub struct Exchange {
    requests: IntoIter<Value>,
    /// Of the request that was given last.
    id: Value,
    replies: Vec<Value>,
}

impl Exchange {
    /// Takes a message apart.
    pub fn new(text: &Result<Vec<u8>, Error>) -> Exchange {
        let message = text
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|text| serde_json::from_slice::<Value>(text).map_err(|_| Error::parse()));
        let (requests, replies) = match message {
            Ok(Value::Array(batch)) => (batch, Vec::new()),
            Ok(single) => (vec![single], Vec::new()),
            Err(error) => (Vec::new(), vec![failure(Value::Null, &error)]),
        };
        Exchange {
            requests: requests.into_iter(),
            id: Value::Null,
            replies,
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

    /// The reply to the message.
    pub fn into_text(mut self) -> Vec<u8> {
        let reply = match self.replies.len() {
            0 => Value::Null,
            1 => self.replies.remove(0),
            _ => Value::Array(self.replies),
        };
        let mut text = serde_json::to_vec(&reply).expect("a JSON value can be written");
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(message: &[u8]) -> Value {
        let mut exchange = Exchange::new(&Ok(message.to_vec()));
        while let Some(request) = exchange.next_request() {
            exchange.answer(match request.method.as_str() {
                "ping" => Ok(json!({"ts": 1.0})),
                _ => Err(Error::execution("no")),
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
        for message in [&b"5"[..], b"\"s\"", b"[1]", b"[[]]", b"null"] {
            assert_eq!(ask(message)["error"]["code"], -32600);
        }
    }

    #[test]
    fn a_refused_message_has_an_error_for_each_request() {
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;
        let mut exchange = Exchange::new(&Ok(format!("[{ping},5,{ping}]").into_bytes()));
        exchange.refuse(&Error::execution("too much"));
        let replies: Value = serde_json::from_slice(&exchange.into_text()).expect("JSON");
        let codes = replies.as_array().expect("a list").iter();
        let codes: Vec<_> = codes.map(|reply| reply["error"]["code"].clone()).collect();
        assert_eq!(codes, [-32000, -32600, -32000]);
    }
}
