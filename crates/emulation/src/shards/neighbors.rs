//! The neighbors of a namespace: the home has them all, and other shards those that their clients need.
//!
//! All shards are read when the user begins anew; what is left after a page waits in the reader.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::page::{Listing, NamespaceReader, page_of};
use crate::namespace::NamespaceKey;
use crate::rpc::call::RpcCall;

/// The most that a page of a shard has.
const PAGE: u64 = 255;

/// What a shard is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// What the user wrote: the first that has the plugin says what is wrong with it.
    Check,
    /// All neighbors, from the first on or behind the page before.
    Read { is_first: bool },
    /// No shard has the plugin: the home says so.
    Refuse,
}

/// A page of neighbors that is being read.
#[derive(Debug)]
pub(super) struct Neighbors {
    call: RpcCall,
    of: (String, NamespaceKey),
    /// All shards, the home first.
    shards: Vec<usize>,
    /// The place of the one that is asked, and for what.
    place: usize,
    step: Step,
    rows: Vec<Value>,
    /// Places in `rows` by address.
    places: HashMap<String, usize>,
    is_over: bool,
}

impl Neighbors {
    pub(super) fn new(key: NamespaceKey, shards: Vec<usize>, call: RpcCall) -> Neighbors {
        Neighbors {
            of: (call.method.clone(), key),
            call,
            shards,
            place: 0,
            step: Step::Check,
            rows: Vec::new(),
            places: HashMap::new(),
            is_over: false,
        }
    }

    pub(super) fn has_more(&self) -> bool {
        !self.is_over
    }

    pub(super) fn next_part(&mut self) -> Option<(usize, RpcCall)> {
        let shard = *self.shards.get(self.place).filter(|_| !self.is_over)?;
        let mut call = self.call.clone();
        call.is_part = self.step != Step::Refuse;
        if let Step::Read { is_first } = self.step {
            call.params["reset"] = json!(is_first);
            call.params["count"] = json!(PAGE);
        }
        Some((shard, call))
    }

    pub(super) fn handle_reply(
        &mut self,
        reply: &Value,
        reader: &mut NamespaceReader,
    ) -> Option<Value> {
        let is_reset = self.call.params.get("reset") == Some(&Value::Bool(true));
        match (self.step, &reply["data"]) {
            (Step::Check, _) if reply.is_null() => {
                self.place += 1;
                if self.place == self.shards.len() {
                    (self.place, self.step) = (0, Step::Refuse);
                }
                None
            }
            (Step::Check, _) if is_reset => {
                (self.place, self.step) = (0, Step::Read { is_first: true });
                None
            }
            (Step::Read { .. }, Value::Array(items)) => {
                items.iter().for_each(|row| self.add(row));
                self.step = Step::Read { is_first: false };
                None
            }
            (Step::Read { .. }, _) if self.place + 1 < self.shards.len() => {
                self.place += 1;
                self.step = Step::Read { is_first: true };
                None
            }
            (Step::Read { .. }, _) => {
                reader.neighbors = Some(Listing {
                    of: self.of.clone(),
                    rows: std::mem::take(&mut self.rows).into(),
                });
                Some(self.give(reader, true))
            }
            (Step::Check | Step::Refuse, _) => Some(self.give(reader, false)),
        }
    }

    /// A neighbor of one shard, which the home has listed mostly. The clients of all shards need it.
    fn add(&mut self, row: &Value) {
        let address = row["ipv4"].to_string();
        let Some(place) = self.places.get(&address) else {
            self.places.insert(address, self.rows.len());
            return self.rows.push(row.clone());
        };
        let known = &mut self.rows[*place];
        let users = |row: &Value| row["refc"].as_u64().unwrap_or(0);
        let all = users(known) + users(row);
        known["refc"] = json!(all);
    }

    /// The next page of what the reader has.
    fn give(&mut self, reader: &mut NamespaceReader, is_reset: bool) -> Value {
        self.is_over = true;
        let count = self.call.params.get("count").and_then(Value::as_u64);
        let listing = reader.neighbors.as_mut();
        let rows = listing.filter(|listing| listing.of == self.of);
        let page = rows.map(|listing| {
            let count = listing.rows.len().min(count.unwrap_or(0) as usize);
            listing.rows.drain(..count).collect()
        });
        page_of(page.unwrap_or_default(), is_reset)
    }
}
