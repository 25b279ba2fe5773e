//! A call on its way through the shards.

use std::collections::VecDeque;

use allosaur_api::Error;
use serde::Deserialize;
use serde_json::{Value, json};

use super::map::ShardMap;
use super::merge::Merge;
use crate::read::{self, Listed};
use crate::rpc::call::RpcCall;
use crate::target::{Tunnel, TunnelParams};

/// How far the reader of all namespaces is, of all shards: they are read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceReader {
    shard: usize,
}

impl Default for NamespaceReader {
    /// At the end.
    fn default() -> NamespaceReader {
        NamespaceReader { shard: usize::MAX }
    }
}

/// A call, for one shard after the other. Until it is over: do what [`poll_part`](ShardedCall::poll_part)
/// gives at the shard that it names, and give the replies, in that order, to
/// [`handle_reply`](ShardedCall::handle_reply).
#[derive(Debug)]
pub struct ShardedCall {
    kind: Kind,
    under_way: usize,
}

#[derive(Debug)]
enum Kind {
    /// About one namespace, or the same at all. A long one may be done part after part.
    One { shard: usize, rest: Option<RpcCall> },
    /// Steps of which each waits for the one before.
    Steps {
        waiting: VecDeque<(usize, RpcCall)>,
        merge: Merge,
        merged: Option<Value>,
    },
    /// A page of all namespaces.
    Page(Page),
}

impl ShardedCall {
    /// A call for shards as `map` has them. `reader` is that of all calls.
    pub fn new(map: &ShardMap, reader: NamespaceReader, call: RpcCall) -> ShardedCall {
        let kind = match map.shards() {
            1 => Kind::one(0, call),
            _ => Kind::of(map, reader, call),
        };
        ShardedCall { kind, under_way: 0 }
    }

    /// The next part, and the shard that shall do it: of at most so many clients, if it is long. `None`
    /// while it waits for a reply, and when there are no more.
    pub fn poll_part(&mut self, clients_max: usize) -> Option<(usize, RpcCall)> {
        let part = match &mut self.kind {
            Kind::One { shard, rest } => {
                let first = rest.as_mut()?.split_off(clients_max);
                (*shard, first.or_else(|| rest.take())?)
            }
            Kind::Steps { waiting, .. } if self.under_way == 0 => waiting.pop_front()?,
            Kind::Page(page) if self.under_way == 0 => page.next_part()?,
            Kind::Steps { .. } | Kind::Page(_) => return None,
        };
        self.under_way += 1;
        Some(part)
    }

    /// Whether there may be another part, now or after a reply.
    pub fn has_more(&self) -> bool {
        match &self.kind {
            Kind::One { rest, .. } => rest.is_some(),
            Kind::Steps { waiting, .. } => !waiting.is_empty(),
            Kind::Page(page) => page.has_more(),
        }
    }

    /// Whether the next part waits for the reply to the one before.
    pub fn is_waiting(&self) -> bool {
        self.under_way > 0 && !matches!(self.kind, Kind::One { .. })
    }

    /// The reply to the earliest part that has none. Gives the reply to the call when it is over: what is
    /// behind a part that failed is not done.
    pub fn handle_reply(
        &mut self,
        reply: Result<Value, Error>,
        reader: &mut NamespaceReader,
    ) -> Option<Result<Value, Error>> {
        self.under_way -= 1;
        let reply = match reply {
            Ok(reply) => reply,
            error => return Some(error),
        };
        let reply = match &mut self.kind {
            Kind::One { .. } => reply,
            Kind::Steps { merge, merged, .. } => {
                match merged {
                    Some(merged) => merge.add(merged, reply),
                    None => *merged = Some(reply),
                }
                match self.has_more() {
                    true => return None,
                    false => self.take_merged(),
                }
            }
            Kind::Page(page) => return page.handle_reply(reply, reader).map(Ok),
        };
        (self.under_way == 0 && !self.has_more()).then_some(Ok(reply))
    }

    fn take_merged(&mut self) -> Value {
        match &mut self.kind {
            Kind::Steps { merged, .. } => merged.take().unwrap_or_default(),
            _ => Value::Null,
        }
    }
}

/// The namespaces of a call that is about several.
#[derive(Debug, Default, Deserialize)]
struct TunnelList {
    tunnels: Option<Listed<Tunnel>>,
}

impl Kind {
    fn one(shard: usize, call: RpcCall) -> Kind {
        let rest = Some(call);
        Kind::One { shard, rest }
    }

    fn of(map: &ShardMap, reader: NamespaceReader, call: RpcCall) -> Kind {
        match call.method.as_str() {
            "ctx_add" | "ctx_remove" => Kind::by_tunnels(map, call, Merge::Same),
            "ctx_get_info" => Kind::by_tunnels(map, call, Merge::Lists),
            "ctx_iter" => Kind::Page(Page::new(map, reader, call)),
            "ctx_cnt" | "ctx_resource_monitor_get" => Kind::at_all(map, &call, Merge::Counters),
            "api_sync_v2" | "shutdown" | "ctx_set_def_plugins" | "ctx_resource_monitor_reset" => {
                Kind::at_all(map, &call, Merge::Same)
            }
            // What is wrong with `tun`, any shard says; so it does where there is none.
            _ => {
                let params = read::params::<TunnelParams>(&call.params).ok();
                let tunnel = params.map(|params| params.tun.unwrap_or_default());
                let shard = tunnel.map_or(0, |tunnel| map.owner(&tunnel.key()));
                Kind::one(shard, call)
            }
        }
    }

    /// The same call at each shard.
    fn at_all(map: &ShardMap, call: &RpcCall, merge: Merge) -> Kind {
        let shards = 0..map.shards();
        Kind::Steps {
            waiting: shards.map(|shard| (shard, call.clone())).collect(),
            merge,
            merged: None,
        }
    }

    /// A call about several namespaces, in their order; neighbors at one shard are done together.
    fn by_tunnels(map: &ShardMap, call: RpcCall, merge: Merge) -> Kind {
        let read = read::params::<TunnelList>(&call.params).ok();
        let read = read.and_then(|list| list.tunnels).map(|Listed(list)| list);
        let given = call.params.get("tunnels").and_then(Value::as_array);
        let (Some(read), Some(given)) = (read.filter(|list| !list.is_empty()), given) else {
            // A wrong one is an error before any is done, and none at all is, too.
            return Kind::one(0, call);
        };
        let mut parts: Vec<(usize, Vec<Value>)> = Vec::new();
        for (tunnel, read) in given.iter().zip(read) {
            let owner = map.owner(&read.key());
            match parts.last_mut() {
                Some((shard, part)) if *shard == owner => part.push(tunnel.clone()),
                _ => parts.push((owner, vec![tunnel.clone()])),
            }
        }
        let parts = parts.into_iter().map(|(shard, part)| {
            let mut call = call.clone();
            call.params["tunnels"] = Value::Array(part);
            (shard, call)
        });
        Kind::Steps {
            waiting: parts.collect(),
            merge,
            merged: None,
        }
    }
}

/// A page of the namespaces of all shards: those of one shard, and when there are no more, of the next.
#[derive(Debug)]
struct Page {
    call: RpcCall,
    shards: usize,
    /// The shard that is read, from its first namespace on if `is_first`.
    shard: usize,
    is_first: bool,
    /// Items that are still wanted; what the user wrote, where it is no such number.
    left: Option<u64>,
    data: Vec<Value>,
    is_over: bool,
    /// The user wants to begin anew.
    is_reset: bool,
}

impl Page {
    fn new(map: &ShardMap, reader: NamespaceReader, call: RpcCall) -> Page {
        let is_reset = call.params.get("reset") == Some(&Value::Bool(true));
        Page {
            shards: map.shards(),
            shard: match is_reset {
                true => 0,
                false => reader.shard.min(map.shards() - 1),
            },
            is_first: is_reset,
            left: call.params.get("count").and_then(Value::as_u64),
            call,
            data: Vec::new(),
            is_over: false,
            is_reset,
        }
    }

    fn has_more(&self) -> bool {
        !self.is_over
    }

    fn next_part(&mut self) -> Option<(usize, RpcCall)> {
        if self.is_over {
            return None;
        }
        let mut call = self.call.clone();
        if let Value::Object(params) = &mut call.params {
            if self.shard > 0 || self.is_first {
                params.insert("reset".to_owned(), json!(self.is_first));
            }
            if let Some(left) = self.left {
                params.insert("count".to_owned(), json!(left));
            }
        }
        Some((self.shard, call))
    }

    fn handle_reply(&mut self, reply: Value, reader: &mut NamespaceReader) -> Option<Value> {
        if let Value::Array(items) = &reply["data"] {
            self.left = self
                .left
                .map(|left| left.saturating_sub(items.len() as u64));
            self.data.extend(items.iter().cloned());
        }
        let is_full = self.left.is_none_or(|left| left == 0);
        let is_last = self.shard + 1 == self.shards;
        reader.shard = self.shard;
        if !is_full && !is_last {
            (self.shard, self.is_first) = (self.shard + 1, true);
            return None;
        }
        self.is_over = true;
        Some(match (self.data.is_empty(), self.is_reset) {
            (false, _) => json!({"empty": false, "stopped": false, "data": self.data}),
            (true, true) => json!({"empty": true, "stopped": false, "data": null}),
            (true, false) => json!({"empty": false, "stopped": true, "data": null}),
        })
    }
}
