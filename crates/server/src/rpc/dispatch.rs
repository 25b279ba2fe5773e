//! From the bytes of a message to requests, and from their replies to bytes.
//!
//! JSON-RPC 2.0 with TRex's habits: a batch is worked off in order and answered by a list, a
//! batch of one by its only reply, an empty one by `null`; a reply is zipped when the request
//! was. Whatever the bytes are, there is a reply.

use allosaur_api::request::{failure, success};
use allosaur_api::{Error, Request};
use serde_json::Value;

use super::framing::{self, Codec};

/// Answers one message: `handle` is called for each request in it, in order.
pub fn dispatch(
    codec: &mut Codec,
    frame: &[u8],
    mut handle: impl FnMut(&Request) -> Result<Value, Error>,
) -> Vec<u8> {
    let zipped = framing::is_zipped(frame);
    let text = match codec.decode(frame) {
        Ok(text) => text,
        Err(error) => return encode(codec, &failure(Value::Null, &error), zipped),
    };
    let zipped = text.zipped;
    let Ok(message) = serde_json::from_slice::<Value>(&text.bytes) else {
        return encode(codec, &failure(Value::Null, &Error::parse()), zipped);
    };
    let reply = match message {
        Value::Array(batch) => {
            let replies: Vec<Value> = batch.into_iter().map(|r| answer(r, &mut handle)).collect();
            reply_of_batch(replies)
        }
        single => answer(single, &mut handle),
    };
    encode(codec, &reply, zipped)
}

fn answer(request: Value, handle: &mut impl FnMut(&Request) -> Result<Value, Error>) -> Value {
    let request = match Request::parse(request) {
        Ok(request) => request,
        Err(refused) => return failure(refused.id, &refused.error),
    };
    match handle(&request) {
        Ok(result) => success(request.id, result),
        Err(error) => failure(request.id, &error),
    }
}

fn reply_of_batch(mut replies: Vec<Value>) -> Value {
    match replies.len() {
        0 => Value::Null,
        1 => replies.remove(0),
        _ => Value::Array(replies),
    }
}

fn encode(codec: &mut Codec, reply: &Value, zipped: bool) -> Vec<u8> {
    let mut text = serde_json::to_vec(reply).expect("a JSON value can be written");
    text.push(b'\n');
    if zipped { codec.zip(&text) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(message: &[u8]) -> Value {
        let reply = dispatch(&mut Codec::default(), message, |request| {
            if request.method == "ping" {
                Ok(json!({"ts": 1.0}))
            } else {
                Err(Error::execution("no"))
            }
        });
        serde_json::from_slice(&reply).expect("a reply is JSON")
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
    fn a_reply_is_zipped_when_the_request_was() {
        let mut codec = Codec::default();
        let asked = codec.zip(b"{}");
        let reply = dispatch(&mut codec, &asked, |_| Ok(json!(null)));
        assert!(framing::is_zipped(&reply));
        let text = codec.decode(&reply).expect("small");
        assert!(text.bytes.ends_with(b"\n"));
    }
}
