//! Messages: JSON-RPC 2.0 with the habits of TRex's emulation server. Reads and writes texts, and
//! knows nothing of what is asked in them.
//!
//! Keys have no case, a batch of one is answered by a list of one, and a message that begins with
//! `[` is a batch. Whatever the bytes are, there is a reply.

use std::fmt;
use std::vec::IntoIter;

use serde::de::{
    self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::RpcCall;
use crate::params::{INVALID_PARAMS, INVALID_REQUEST, RpcError};

/// Code of a text that is no JSON.
const PARSE_ERROR: i32 = -32700;
/// Most requests of a batch.
const BATCH_MAX: usize = 1 << 16;
const VERSION: &str = "2.0";

/// A message that is being answered.
///
/// Drive it like this: [`next_call`](Message::next_call), and [`answer`](Message::answer) after each;
/// when there are no more, [`into_text`](Message::into_text).
#[derive(Debug)]
pub struct Message {
    requests: IntoIter<Request>,
    /// Of the request that was given last.
    id: Option<Box<RawValue>>,
    /// The replies as text, with commas between: as values they would take many times the memory.
    replies: Vec<u8>,
    is_batch: bool,
}

impl Message {
    /// Takes a text apart.
    pub fn read(text: &[u8]) -> Message {
        // What is no UTF-8 is read as what stands for it, as in the reference.
        let text = String::from_utf8_lossy(text);
        let read = match text.as_bytes() {
            [] => Err(error(INVALID_REQUEST, "Invalid Request")),
            [b'[', ..] => read_batch(&text),
            _ => parse(&text).map(|request| vec![request]),
        };
        let is_batch = text.starts_with('[');
        match read {
            Ok(requests) => Message {
                is_batch,
                ..Message::of(requests)
            },
            Err(error) => Message::failed(error),
        }
    }

    /// A message that was not even read: its reply says why.
    pub fn refused(why: impl Into<String>) -> Message {
        Message::failed(error(INVALID_REQUEST, why))
    }

    fn failed(error: RpcError) -> Message {
        let reply = Reply {
            version: VERSION.to_owned(),
            outcome: Err(error),
            id: None,
        };
        let mut message = Message::of(Vec::new());
        message.push(&reply);
        message
    }

    fn of(requests: Vec<Request>) -> Message {
        Message {
            requests: requests.into_iter(),
            id: None,
            replies: Vec::new(),
            is_batch: false,
        }
    }

    fn push(&mut self, reply: &Reply) {
        if !self.replies.is_empty() {
            self.replies.push(b',');
        }
        serde_json::to_writer(&mut self.replies, reply).expect("a JSON value can be written");
    }

    /// The next method to call, with its parameters. A request that asks nothing is answered here.
    pub fn next_call(&mut self) -> Option<RpcCall> {
        while let Some(request) = self.requests.next() {
            if request.version == VERSION && !request.call.method.is_empty() {
                self.id = request.id;
                return Some(request.call);
            }
            self.push(&Reply {
                version: request.version,
                outcome: Err(error(INVALID_PARAMS, "Invalid params")),
                id: request.id,
            });
        }
        None
    }

    /// Answers the call that was given last.
    pub fn answer(&mut self, outcome: Result<Value, RpcError>) {
        let id = self.id.take();
        self.push(&Reply {
            version: VERSION.to_owned(),
            outcome,
            id,
        });
    }

    /// Bytes of the replies until now.
    pub fn reply_bytes(&self) -> usize {
        self.replies.len()
    }

    /// The text of the reply.
    pub fn into_text(self) -> Vec<u8> {
        match self.is_batch {
            true => [b"[", &self.replies[..], b"]"].concat(),
            false => self.replies,
        }
    }
}

fn read_batch(text: &str) -> Result<Vec<Request>, RpcError> {
    let batch: Batch = parse(text)?;
    if batch.count > BATCH_MAX {
        let text = format!(
            "the batch has {} requests, the most is {BATCH_MAX}: send several",
            batch.count
        );
        return Err(error(INVALID_REQUEST, text));
    }
    Ok(batch.requests)
}

/// A batch; what is beyond the most is counted only.
struct Batch {
    requests: Vec<Request>,
    count: usize,
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Batch, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Batch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Batch, A::Error> {
        let mut requests = Vec::new();
        while requests.len() < BATCH_MAX {
            let Some(request) = list.next_element()? else {
                let count = requests.len();
                return Ok(Batch { requests, count });
            };
            requests.push(request);
        }
        let mut count = requests.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Batch { requests, count })
    }
}

/// Reads JSON; as in the reference, a comma may stand behind the last of a list or an object.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, RpcError> {
    let read = serde_json::from_str(text);
    let read = read.or_else(|_| serde_json::from_str(&without_last_commas(text)));
    read.map_err(|_| parse_error())
}

/// The text without commas in front of a closing bracket.
fn without_last_commas(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    // Where a comma stands that nothing but spaces follows yet.
    let mut comma = None;
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in text.chars() {
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            '}' | ']' if !is_quoted => {
                if let Some(at) = comma {
                    kept.remove(at);
                }
            }
            _ => {}
        }
        is_escaped = is_quoted && character == '\\' && !is_escaped;
        if character == ',' && !is_quoted {
            comma = Some(kept.len());
        } else if !character.is_ascii_whitespace() {
            comma = None;
        }
        kept.push(character);
    }
    kept
}

fn parse_error() -> RpcError {
    error(PARSE_ERROR, "Parse error")
}

fn error(code: i32, message: impl Into<String>) -> RpcError {
    RpcError {
        code,
        message: message.into(),
    }
}

#[derive(Debug, Default)]
struct Request {
    version: String,
    /// As it was written: it may be a number that no type of ours holds.
    id: Option<Box<RawValue>>,
    call: RpcCall,
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Request, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = Request;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    /// A key that is there twice has its last value.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Request, A::Error> {
        let mut request = Request::default();
        let (mut method, mut params) = (String::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            match key.to_ascii_lowercase().as_str() {
                "jsonrpc" => request.version = text(&mut map)?,
                "method" => method = text(&mut map)?,
                "id" => {
                    let id: Box<RawValue> = map.next_value()?;
                    request.id = Some(id).filter(|id| id.get() != "null");
                }
                "params" => params = Some(map.next_value::<Box<RawValue>>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        request.call = RpcCall::read(method, params.as_deref()).map_err(de::Error::custom)?;
        Ok(request)
    }
}

/// A text; null is none.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<String, A::Error> {
    match map.next_value::<Value>()? {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        _ => Err(de::Error::custom("a text is missing")),
    }
}

#[derive(Debug)]
struct Reply {
    version: String,
    outcome: Result<Value, RpcError>,
    id: Option<Box<RawValue>>,
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", &self.version)?;
        match &self.outcome {
            // Who asks only whether it was done is told that it was.
            Ok(Value::Null) => map.serialize_entry("result", &true)?,
            Ok(result) => map.serialize_entry("result", result)?,
            Err(error) => map.serialize_entry("error", &ErrorObject(error))?,
        }
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.end()
    }
}

struct ErrorObject<'e>(&'e RpcError);

impl Serialize for ErrorObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("code", &self.0.code)?;
        map.serialize_entry("message", &self.0.message)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The reply to a text; `no_such` is an error, all else gives its parameters.
    fn reply(text: &[u8]) -> Value {
        let mut message = Message::read(text);
        while let Some(call) = message.next_call() {
            message.answer(match call.method.as_str() {
                "no_such" => Err(error(-32601, "Method not found")),
                _ => Ok(call.params),
            });
        }
        serde_json::from_slice(&message.into_text()).expect("a reply is JSON")
    }

    fn failure(code: i32, message: &str) -> Value {
        json!({"jsonrpc": "2.0", "error": {"code": code, "message": message}})
    }

    #[test]
    fn what_is_no_request_gets_the_reference_s_error() {
        let parse = failure(-32700, "Parse error");
        assert_eq!(reply(b""), failure(-32600, "Invalid Request"));
        for text in [
            " ",
            "{",
            "}",
            "true",
            "5",
            "\"x\"",
            "null",
            "[null]",
            "[1]",
            "[1,2",
            "[[]]",
            "not json",
            "\n[{}]",
            "{\"jsonrpc\":2.0,\"id\":1}",
            "{}x",
            "{\"method\":5}",
            "\u{feff}{}",
            "\0\u{1}",
            // An init JSON whose text does not end.
            "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"dst\":\"48, 0, 0, 0\n\"domain_id\":7}}",
        ] {
            assert_eq!(reply(text.as_bytes()), parse, "{text}");
        }
        let invalid = |version: &str| json!({"jsonrpc": version, "error": {"code": -32602, "message": "Invalid params"}});
        assert_eq!(reply(b"{}"), invalid(""));
        assert_eq!(reply(b"[{}]"), json!([invalid("")]));
        assert_eq!(
            reply(b"{\"jsonrpc\":\"1.0\",\"method\":\"x\"}"),
            invalid("1.0")
        );
        assert_eq!(
            reply(b"{\"jsonrpc\":\"2.0\",\"method\":\"\"}"),
            invalid("2.0")
        );
        let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
        assert_eq!(reply(&deep), parse);
    }

    #[test]
    fn a_comma_behind_the_last_is_read_over() {
        let text = b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[\"a,}\\\"\",] ,\"id\":1,}";
        let expected = json!({"jsonrpc": "2.0", "result": ["a,}\""], "id": 1});
        assert_eq!(reply(text), expected);
        for text in [&b"{,}"[..], b"[,]", b"{\"id\":1,,}"] {
            assert_ne!(reply(text)["error"]["code"], 0, "{text:?}");
        }
    }

    #[test]
    fn ids_come_back_as_they_were_written() {
        for id in [
            "1",
            "-3",
            "1.50",
            "\"abc\"",
            "true",
            "{\"a\":[1]}",
            "123456789012345678901234567890",
        ] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":7,\"id\":{id}}}");
            let mut message = Message::read(text.as_bytes());
            assert_eq!(message.next_call(), Some(RpcCall::new("m", json!(7))));
            message.answer(Ok(Value::Null));
            let said = String::from_utf8(message.into_text()).expect("text");
            assert_eq!(
                said,
                format!("{{\"jsonrpc\":\"2.0\",\"result\":true,\"id\":{id}}}")
            );
        }
        for absent in ["", ",\"id\":null"] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\"{absent}}}");
            assert_eq!(
                reply(text.as_bytes()),
                json!({"jsonrpc": "2.0", "result": true})
            );
        }
    }

    #[test]
    fn keys_have_no_case_and_the_last_of_two_counts() {
        let text =
            br#"{"JSONRPC":"2.0","Method":"m","ID":9,"id":2,"foo":{"bar":1},"params":{"a":1}}"#;
        assert_eq!(
            reply(text),
            json!({"jsonrpc": "2.0", "result": {"a": 1}, "id": 2})
        );
    }

    #[test]
    fn batches_are_answered_in_order() {
        let one = |method: &str, id: u8| json!({"jsonrpc": "2.0", "method": method, "id": id, "params": id});
        let replies = reply(
            json!([one("a", 1), one("no_such", 2), {}, one("b", 3)])
                .to_string()
                .as_bytes(),
        );
        let ids: Vec<_> = replies
            .as_array()
            .expect("a list")
            .iter()
            .map(|r| r["id"].clone())
            .collect();
        assert_eq!(ids, [json!(1), json!(2), Value::Null, json!(3)]);
        assert_eq!(replies[1]["error"]["code"], -32601);
        assert_eq!(reply(b"[]"), json!([]));
        let one = json!([one("a", 1)]).to_string();
        assert_eq!(reply(one.as_bytes()).as_array().map(Vec::len), Some(1));
        let many = format!("[{}{{}}]", "{},".repeat(BATCH_MAX));
        assert_eq!(reply(many.as_bytes())["error"]["code"], INVALID_REQUEST);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_reply(text in prop::collection::vec(any::<u8>(), 0..200)) {
            reply(&text);
        }

        #[test]
        fn what_is_nearly_a_request_has_a_reply(text in "[\\[{]?\"?(jsonrpc|method|id|params)?\"?:?[\"0-9a-z.,:{}\\[\\]]{0,40}") {
            reply(text.as_bytes());
        }
    }
}
