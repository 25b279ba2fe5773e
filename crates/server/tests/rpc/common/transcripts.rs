//! Conversations between TRex's client and a real TRex server, and how replies are compared.

use std::collections::{BTreeMap, BTreeSet};

use allosaur_testkit::data;
use serde_json::Value;

/// Objects whose keys are data, and lists whose elements are.
const FREE_KEYS: [&str; 7] = [
    "profiles",
    "streams",
    "state_profile",
    "stream",
    "cpu-socket-0",
    // Counters by their number, of which those that are zero are left out.
    "client",
    "server",
];

/// What the names of files end in.
const SUFFIX: &str = ".jsonl.gz";

/// The conversations of one kind of traffic, by name.
pub(crate) fn names(prefix: &str) -> Vec<String> {
    let paths = data::files("rpc-transcripts", SUFFIX);
    let names = paths.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        name.starts_with(prefix).then(|| name.to_owned())
    });
    names.collect()
}

/// The lines of a conversation, messages and remarks.
pub(crate) fn lines(name: &str) -> Vec<Value> {
    let file = format!("{name}{SUFFIX}");
    let text = data::text(&data::folder("rpc-transcripts").join(file));
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("JSON lines")).collect()
}

/// One request and TRex's reply.
pub(crate) struct Exchange {
    pub(crate) request: Value,
    pub(crate) reply: Value,
}

/// The requests of a conversation in order, each with its reply. Raw messages that are no requests
/// are left out (`rpc_bad_input` has its own).
pub(crate) fn read(name: &str) -> Vec<Exchange> {
    let mut open: Vec<(usize, Value)> = Vec::new();
    let mut exchanges: BTreeMap<usize, Exchange> = BTreeMap::new();
    for (n, line) in lines(name).into_iter().enumerate() {
        let to_server = line["dir"] == "C>S";
        for (i, message) in messages(&line["msg"]).into_iter().enumerate() {
            if to_server && message["id"] != Value::Null && message["method"].is_string() {
                open.push((n * 10_000 + i, message));
            } else if let Some(at) = open.iter().position(|(_, r)| r["id"] == message["id"]) {
                let (n, request) = open.remove(at);
                let reply = message;
                exchanges.insert(n, Exchange { request, reply });
            }
        }
    }
    exchanges.into_values().collect()
}

fn messages(message: &Value) -> Vec<Value> {
    match message {
        Value::Array(batch) => batch.clone(),
        Value::Object(_) => vec![message.clone()],
        _ => Vec::new(),
    }
}

/// What differs between TRex's value and ours, by path. Ours may have more keys.
pub(crate) fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut BTreeSet<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in theirs {
                let path = format!("{path}.{name}");
                match ours.get(name) {
                    _ if FREE_KEYS
                        .iter()
                        .any(|free| path.contains(&format!(".{free}."))) => {}
                    Some(own) => differences(&path, value, own, found),
                    None => _ = found.insert(format!("{path} is missing")),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if let (Some(first), Some(own)) = (theirs.first(), ours.first()) {
                differences(&format!("{path}[]"), first, own, found);
            }
        }
        _ if kind(theirs) == kind(ours) => {}
        _ => {
            found.insert(format!("{path} is {}, TRex's {}", kind(ours), kind(theirs)));
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "double",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A reply's events; those of an error are none.
pub(crate) fn events(reply: &Value) -> Vec<Value> {
    let list = reply["result"]["data"].as_array();
    list.cloned().unwrap_or_default()
}
