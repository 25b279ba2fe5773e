//! How TRex's emulation server reads requests and writes replies: JSON-RPC 2.0 with habits of its own.
//!
//! Keys have no case, a batch of one is answered by a list of one, and a message that begins with
//! `[` is a batch. Whatever the bytes are, there is a reply.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use allosaur_api::dialect::{Reply, Requests, check_batch, range_in};
use allosaur_api::error::{BAD_PARAMS, EXECUTION, INVALID_REQUEST};
use allosaur_api::limits::BATCH_REQUESTS_MAX;
use allosaur_api::{Dialect, Error};
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::RpcCall;

const VERSION: &str = "2.0";

/// The dialect of TRex's emulation server.
#[derive(Clone, Copy, Debug)]
pub struct EmulationDialect;

/// A request in the text of its message.
#[derive(Debug)]
pub struct CallPlace {
    /// Another than 2.0.
    odd_version: Option<String>,
    method: String,
    /// Empty when there is none.
    id: Range<usize>,
    /// The same.
    params: Range<usize>,
}

/// What a reply repeats of its request.
#[derive(Debug, Default)]
pub struct CallId {
    odd_version: Option<String>,
    /// As it was written: it may be a number that no type of ours holds. Empty when there is none.
    text: Vec<u8>,
}

impl Dialect for EmulationDialect {
    type Request = RpcCall;
    type Place = CallPlace;
    type Id = CallId;

    fn split(text: &mut Vec<u8>) -> Result<Requests<CallPlace>, Error> {
        if text.is_empty() {
            return Err(Error::invalid_request("Invalid Request"));
        }
        // What is no UTF-8 is read as what stands for it, as in the reference.
        if let Cow::Owned(valid) = String::from_utf8_lossy(text) {
            *text = valid.into_bytes();
        }
        if let Ok(places) = places(text) {
            return places;
        }
        // As in the reference, a comma may stand behind the last of a list or an object.
        *text = without_last_commas(as_text(text)).into_bytes();
        places(text).unwrap_or_else(|_| Err(parse_error()))
    }

    fn parse(text: &[u8], place: CallPlace) -> (CallId, Result<RpcCall, Error>) {
        let is_call = place.odd_version.is_none() && !place.method.is_empty();
        let call = match is_call {
            true => {
                let params = as_text(&text[place.params]);
                RpcCall::read(place.method, params).map_err(|_| parse_error())
            }
            false => Err(error(BAD_PARAMS, "Invalid params")),
        };
        let id = CallId {
            odd_version: place.odd_version,
            text: text[place.id].to_vec(),
        };
        (id, call)
    }

    fn write(reply: &Reply<CallId>, text: &mut Vec<u8>) {
        text.extend(b"{\"jsonrpc\":");
        let version = reply.id.odd_version.as_deref();
        write_json(version.unwrap_or(VERSION), text);
        match &reply.outcome {
            // Who asks only whether it was done is told that it was.
            Ok(Value::Null) => text.extend(b",\"result\":true"),
            Ok(result) => {
                text.extend(b",\"result\":");
                write_json(result, text);
            }
            Err(error) => {
                text.extend(b",\"error\":");
                write_json(&ErrorObject::of(error), text);
            }
        }
        if !reply.id.text.is_empty() {
            text.extend(b",\"id\":");
            text.extend(&reply.id.text);
        }
        text.push(b'}');
    }

    fn brackets(is_batch: bool, _: usize) -> (&'static str, &'static str) {
        match is_batch {
            true => ("[", "]"),
            false => ("", ""),
        }
    }
}

/// The text that these bytes are.
fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is no UTF-8 was replaced")
}

/// Where the requests of a message are; or that there are too many.
///
/// # Errors
/// When the text is no JSON, or other JSON.
fn places(text: &[u8]) -> serde_json::Result<Result<Requests<CallPlace>, Error>> {
    let is_batch = text.starts_with(b"[");
    let batch = match is_batch {
        true => serde_json::from_str(as_text(text))?,
        false => Batch {
            heads: vec![serde_json::from_str(as_text(text))?],
            count: 1,
        },
    };
    let place = |head: Head<'_>| head.place_in(text);
    Ok(check_batch(batch.count).map(|()| Requests {
        places: batch.heads.into_iter().map(place).collect(),
        is_batch,
    }))
}

fn write_json<T: Serialize + ?Sized>(value: &T, text: &mut Vec<u8>) {
    serde_json::to_writer(text, value).expect("a JSON value can be written");
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

fn parse_error() -> Error {
    error(allosaur_api::error::PARSE, "Parse error")
}

fn error(code: i32, message: &str) -> Error {
    Error {
        code,
        message: message.to_owned(),
        specific: None,
    }
}

/// A batch; what is beyond the most is counted only.
struct Batch<'t> {
    heads: Vec<Head<'t>>,
    count: usize,
}

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Batch<'de>, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Batch<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Batch<'de>, A::Error> {
        let mut heads = Vec::new();
        while heads.len() < BATCH_REQUESTS_MAX {
            let Some(head) = list.next_element()? else {
                let count = heads.len();
                return Ok(Batch { heads, count });
            };
            heads.push(head);
        }
        let mut count = heads.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Batch { heads, count })
    }
}

/// A request, of which parameters and id are not read.
#[derive(Debug, Default)]
struct Head<'t> {
    version: String,
    method: String,
    id: Option<&'t RawValue>,
    params: Option<&'t RawValue>,
}

impl Head<'_> {
    fn place_in(self, text: &[u8]) -> CallPlace {
        let range = |part: Option<&RawValue>| part.map_or(0..0, |part| range_in(text, part.get()));
        CallPlace {
            odd_version: Some(self.version).filter(|version| version != VERSION),
            method: self.method,
            id: range(self.id),
            params: range(self.params),
        }
    }
}

impl<'de> Deserialize<'de> for Head<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Head<'de>, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    /// A key that is there twice has its last value.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head<'de>, A::Error> {
        let mut head = Head::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Version => head.version = text(&mut map)?,
                Key::Method => head.method = text(&mut map)?,
                Key::Id => {
                    let id: &RawValue = map.next_value()?;
                    head.id = Some(id).filter(|id| id.get() != "null");
                }
                Key::Params => head.params = Some(map.next_value()?),
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(head)
    }
}

/// A key of a request.
enum Key {
    Version,
    Method,
    Id,
    Params,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        let keys = [
            ("jsonrpc", Key::Version),
            ("method", Key::Method),
            ("id", Key::Id),
            ("params", Key::Params),
        ];
        let mut keys = keys.into_iter();
        let found = keys.find(|(name, _)| name.eq_ignore_ascii_case(key));
        Ok(found.map_or(Key::Other, |(_, key)| key))
    }
}

/// A text; null is none.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<String, A::Error> {
    Ok(map.next_value::<Option<String>>()?.unwrap_or_default())
}

/// The error of a reply.
#[derive(Serialize)]
struct ErrorObject {
    code: i32,
    message: String,
}

impl ErrorObject {
    /// The reference has no code for what is refused, and one text only.
    fn of(error: &Error) -> ErrorObject {
        ErrorObject {
            code: match error.code {
                EXECUTION => INVALID_REQUEST,
                code => code,
            },
            message: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use allosaur_api::Exchange;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &[u8]) -> Exchange<EmulationDialect> {
        Exchange::read(text.to_vec(), false)
    }

    /// The reply to a text; `no_such` is an error, all else gives its parameters.
    fn reply(text: &[u8]) -> Value {
        let mut exchange = read(text);
        while let Some(call) = exchange.next_request() {
            exchange.answer(match call.method.as_str() {
                "no_such" => Err(error(-32601, "Method not found")),
                _ => Ok(call.params),
            });
        }
        serde_json::from_slice(&exchange.into_text()).expect("a reply is JSON")
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
            let mut exchange = read(text.as_bytes());
            let call = exchange.next_request().expect("a call");
            assert_eq!((call.method.as_str(), &call.params), ("m", &json!(7)));
            exchange.answer(Ok(Value::Null));
            let said = String::from_utf8(exchange.into_text()).expect("text");
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
        let many = format!("[{}{{}}]", "{},".repeat(BATCH_REQUESTS_MAX));
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
