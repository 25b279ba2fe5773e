//! How the requests and replies of one server are written. TRex has two servers that take JSON-RPC 2.0, each in
//! its own way; what is the same in both is in [`exchange`](crate::exchange).

use std::fmt::Debug;
use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::commands::bird;
use crate::error::Error;
use crate::limits::BATCH_REQUESTS_MAX;
use crate::request::{Refused, Request};

/// How requests are read and replies are written. Whatever the bytes are, each message has a reply.
pub trait Dialect: Debug {
    /// A request, read.
    type Request;
    /// A request in the text of its message: what is known of it before its turn.
    type Place: Debug;
    /// What the reply to a request repeats of it.
    type Id: Debug + Default;

    /// Finds the requests of a message. The text may be replaced by what is meant by it.
    ///
    /// # Errors
    /// What is wrong with the message as a whole: it is its only reply.
    fn split(text: &mut Vec<u8>) -> Result<Requests<Self::Place>, Error>;

    /// Reads a request when it is its turn, or says what is wrong with it; and what its reply repeats.
    fn parse(text: &[u8], place: Self::Place) -> (Self::Id, Result<Self::Request, Error>);

    /// Writes a reply behind `text`.
    fn write(reply: &Reply<Self::Id>, text: &mut Vec<u8>);

    /// What stands before and behind so many replies with commas between.
    fn brackets(is_batch: bool, replies: usize) -> (&'static str, &'static str);
}

/// The requests of a message.
#[derive(Debug)]
pub struct Requests<P> {
    /// In their order.
    pub places: Vec<P>,
    /// Whether the message is a list of them.
    pub is_batch: bool,
}

/// A reply that is not written yet.
#[derive(Debug)]
pub struct Reply<I> {
    /// What it repeats of its request.
    pub id: I,
    /// The result, or why there is none.
    pub outcome: Result<Value, Error>,
}

/// The error of a batch with so many requests, when these are too many.
///
/// # Errors
/// As said.
pub fn check_batch(requests: usize) -> Result<(), Error> {
    if requests <= BATCH_REQUESTS_MAX {
        return Ok(());
    }
    Err(Error::execution(format!(
        "the batch has {requests} requests, and the most is {BATCH_REQUESTS_MAX}: send several batches"
    )))
}

/// Where a part of a text stands in it.
pub fn range_in(text: &[u8], part: &str) -> Range<usize> {
    let at = part.as_ptr() as usize - text.as_ptr() as usize;
    at..at + part.len()
}

/// TRex's main server: a batch of one is answered by its only reply, an empty one by `null`, and a line
/// ends each message.
#[derive(Clone, Copy, Debug)]
pub struct MainDialect;

/// A request of the main server.
#[derive(Debug)]
pub enum MainPlace {
    /// The only one of its message, read with it: what is no JSON is the fault of the whole message.
    Read(Value),
    /// One of a batch.
    At(Range<usize>),
}

impl Dialect for MainDialect {
    type Request = Request;
    type Place = MainPlace;
    type Id = Value;

    fn split(text: &mut Vec<u8>) -> Result<Requests<MainPlace>, Error> {
        let is_batch = text.trim_ascii_start().first() == Some(&b'[');
        let mut ranges = match is_batch {
            true => ranges(text)?,
            false => std::iter::once(0..text.len()).collect(),
        };
        let places = match (ranges.pop(), ranges.is_empty()) {
            (Some(only), true) => vec![MainPlace::Read(value(&text[only])?)],
            (last, _) => ranges.into_iter().chain(last).map(MainPlace::At).collect(),
        };
        Ok(Requests { places, is_batch })
    }

    fn parse(text: &[u8], place: MainPlace) -> (Value, Result<Request, Error>) {
        let read = match place {
            MainPlace::Read(value) => Ok(value),
            MainPlace::At(range) => value(&text[range]),
        };
        match read.map(Request::parse) {
            Ok(Ok(mut request)) => (request.id.take(), Ok(request)),
            Ok(Err(Refused { id, error })) => (id, Err(error)),
            Err(error) => (Value::Null, Err(error)),
        }
    }

    fn write(reply: &Reply<Value>, text: &mut Vec<u8>) {
        let written = MainReply {
            error: reply.outcome.as_ref().err().map(Error::to_json),
            id: &reply.id,
            jsonrpc: "2.0",
            result: reply.outcome.as_ref().ok(),
        };
        serde_json::to_writer(text, &written).expect("a JSON value can be written");
    }

    fn brackets(_: bool, replies: usize) -> (&'static str, &'static str) {
        match replies {
            0 => ("null", "\n"),
            1 => ("", "\n"),
            _ => ("[", "]\n"),
        }
    }
}

/// TRex's server of BIRD (PyBird): as its main server, but parameters may be a list, or missing.
#[derive(Clone, Copy, Debug)]
pub struct BirdDialect;

impl Dialect for BirdDialect {
    type Request = Request;
    type Place = MainPlace;
    type Id = Value;

    fn split(text: &mut Vec<u8>) -> Result<Requests<MainPlace>, Error> {
        MainDialect::split(text)
    }

    fn parse(text: &[u8], place: MainPlace) -> (Value, Result<Request, Error>) {
        let read = match place {
            MainPlace::Read(value) => Ok(value),
            MainPlace::At(range) => value(&text[range]),
        };
        match read {
            Ok(value) => MainDialect::parse(text, MainPlace::Read(with_names(value))),
            Err(error) => (Value::Null, Err(error)),
        }
    }

    fn write(reply: &Reply<Value>, text: &mut Vec<u8>) {
        MainDialect::write(reply, text);
    }

    fn brackets(is_batch: bool, replies: usize) -> (&'static str, &'static str) {
        MainDialect::brackets(is_batch, replies)
    }
}

/// A request whose parameters have names.
fn with_names(mut request: Value) -> Value {
    let method = request["method"].as_str().unwrap_or_default().to_owned();
    let Some(fields) = request.as_object_mut() else {
        return request;
    };
    let list = match fields.get_mut("params") {
        None => Vec::new(),
        Some(Value::Array(list)) => std::mem::take(list),
        Some(_) => return request,
    };
    let named = Value::Object(bird::by_name(&method, list));
    fields.insert("params".to_owned(), named);
    request
}

/// A reply of the main server.
#[derive(Serialize)]
struct MainReply<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    id: &'r Value,
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'r Value>,
}

fn value(text: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(|_| Error::parse())
}

/// Where the requests of a batch are in its text.
fn ranges(text: &[u8]) -> Result<Vec<Range<usize>>, Error> {
    let batch: Vec<&RawValue> = serde_json::from_slice(text).map_err(|_| Error::parse())?;
    check_batch(batch.len())?;
    let range = |request: &&RawValue| range_in(text, request.get());
    Ok(batch.iter().map(range).collect())
}
