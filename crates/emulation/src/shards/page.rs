//! Pages of what all shards list: those of one shard, and when there are no more, of the next.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::namespace::NamespaceKey;
use crate::rpc::call::RpcCall;

/// How far who calls has read what shards list.
#[derive(Clone, Debug, Default)]
pub struct NamespaceReader {
    /// Of the list of namespaces: the place of the shard; none is at the end.
    namespaces: Option<usize>,
    /// Of the list of clients of a namespace.
    clients: FxHashMap<NamespaceKey, usize>,
    /// The neighbors of a namespace that are left.
    pub(super) neighbors: Option<Listing>,
}

/// Neighbors that were not given yet, of a method and a namespace.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    pub(super) of: (String, NamespaceKey),
    pub(super) rows: VecDeque<Value>,
}

/// What is listed.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Namespaces,
    Clients(NamespaceKey),
}

impl NamespaceReader {
    fn place(&self, list: List, last: usize) -> usize {
        let place = match list {
            List::Namespaces => self.namespaces,
            List::Clients(key) => self.clients.get(&key).copied(),
        };
        place.unwrap_or(last).min(last)
    }

    fn note(&mut self, list: List, place: usize, is_last: bool) {
        match list {
            List::Namespaces => self.namespaces = Some(place),
            // Who has not begun is at the end, too.
            List::Clients(key) if is_last => drop(self.clients.remove(&key)),
            List::Clients(key) => drop(self.clients.insert(key, place)),
        }
    }
}

/// A page that is being read.
#[derive(Debug)]
pub(super) struct Page {
    call: RpcCall,
    list: List,
    /// The shards in the order in which they are read.
    shards: Vec<usize>,
    /// The place of the one that is read, from its first item on if `is_first`.
    place: usize,
    is_first: bool,
    /// Items that are still wanted; what the user wrote, where it is no such number.
    left: Option<u64>,
    data: Vec<Value>,
    is_over: bool,
    /// The user wants to begin anew.
    is_reset: bool,
}

impl Page {
    pub(super) fn new(
        list: List,
        shards: Vec<usize>,
        reader: &NamespaceReader,
        call: RpcCall,
    ) -> Page {
        let is_reset = call.params.get("reset") == Some(&Value::Bool(true));
        Page {
            place: match is_reset {
                true => 0,
                false => reader.place(list, shards.len() - 1),
            },
            list,
            shards,
            is_first: is_reset,
            left: call.params.get("count").and_then(Value::as_u64),
            call,
            data: Vec::new(),
            is_over: false,
            is_reset,
        }
    }

    pub(super) fn has_more(&self) -> bool {
        !self.is_over
    }

    pub(super) fn next_part(&mut self) -> Option<(usize, RpcCall)> {
        if self.is_over {
            return None;
        }
        let mut call = self.call.clone();
        if let Value::Object(params) = &mut call.params {
            if self.place > 0 || self.is_first {
                params.insert("reset".to_owned(), json!(self.is_first));
            }
            if let Some(left) = self.left {
                params.insert("count".to_owned(), json!(left));
            }
        }
        Some((self.shards[self.place], call))
    }

    pub(super) fn handle_reply(
        &mut self,
        reply: &Value,
        reader: &mut NamespaceReader,
    ) -> Option<Value> {
        if let Value::Array(items) = &reply["data"] {
            self.left = self
                .left
                .map(|left| left.saturating_sub(items.len() as u64));
            self.data.extend(items.iter().cloned());
        }
        let is_full = self.left.is_none_or(|left| left == 0);
        let is_last = self.place + 1 == self.shards.len();
        reader.note(self.list, self.place, is_last);
        if !is_full && !is_last {
            (self.place, self.is_first) = (self.place + 1, true);
            return None;
        }
        self.is_over = true;
        Some(page_of(std::mem::take(&mut self.data), self.is_reset))
    }
}

/// The reply that is a page of items.
pub(super) fn page_of(data: Vec<Value>, is_reset: bool) -> Value {
    match (data.is_empty(), is_reset) {
        (false, _) => json!({"empty": false, "stopped": false, "data": data}),
        (true, true) => json!({"empty": true, "stopped": false, "data": null}),
        (true, false) => json!({"empty": false, "stopped": true, "data": null}),
    }
}
