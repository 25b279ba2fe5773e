//! A call on its way through the shards.

use std::collections::{HashSet, VecDeque};

use allosaur_api::Error;
use serde::Deserialize;
use serde_json::Value;

use super::clients::{OfClients, macs_of};
use super::merge::Merge;
use super::neighbors::Neighbors;
use super::page::{List, NamespaceReader, Page};
use crate::namespace::NamespaceKey;
use crate::plugins::PLUGINS;
use crate::read::{self, Listed};
use crate::rpc::call::{Items, Query, RpcCall};
use crate::rpc::commands::{self, Method};
use crate::shard_map::ShardMap;
use crate::spec::{self, Scope, Target};
use crate::target::{Tunnel, TunnelParams};

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
    /// About what one shard has, or the same at all. A long one may be done part after part.
    One { shard: usize, rest: Option<RpcCall> },
    /// Steps of which each waits for the one before.
    Steps(Steps),
    /// About clients of a namespace.
    Clients(Box<OfClients>),
    /// A page of what all shards list.
    Page(Page),
    /// A page of the neighbors of a namespace.
    Neighbors(Neighbors),
}

/// Steps of which each waits for the one before.
#[derive(Debug, Default)]
struct Steps {
    waiting: VecDeque<(usize, RpcCall, Merge)>,
    /// How the reply to the step that is done goes to the others.
    merge: Option<Merge>,
    merged: Option<Value>,
    /// What to do when no shard has anything to say: the same, at the home alone.
    last: Option<(usize, RpcCall)>,
}

impl Steps {
    fn push(&mut self, shard: usize, call: RpcCall, merge: Merge) {
        self.waiting.push_back((shard, call, merge));
    }

    fn next_part(&mut self) -> Option<(usize, RpcCall)> {
        let (shard, call, merge) = self.waiting.pop_front()?;
        self.merge = Some(merge);
        Some((shard, call))
    }

    fn handle_reply(&mut self, reply: Value) -> Option<Value> {
        match (&mut self.merged, self.merge) {
            (Some(merged), Some(merge)) => merge.add(merged, reply),
            _ => self.merged = Some(reply),
        }
        if self.waiting.is_empty() && self.merged == Some(Value::Null) {
            if let Some((shard, call)) = self.last.take() {
                self.push(shard, call, Merge::Same);
            }
        }
        match self.waiting.is_empty() {
            true => self.merged.take(),
            false => None,
        }
    }
}

impl ShardedCall {
    /// A call for shards as `map` has them. `reader` is that of all calls.
    pub fn new(map: &ShardMap, reader: &NamespaceReader, call: RpcCall) -> ShardedCall {
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
            _ if self.under_way > 0 => return None,
            Kind::Steps(steps) => steps.next_part()?,
            Kind::Clients(clients) => clients.next_part(clients_max)?,
            Kind::Page(page) => page.next_part()?,
            Kind::Neighbors(neighbors) => neighbors.next_part()?,
        };
        self.under_way += 1;
        Some(part)
    }

    /// Whether there may be another part, now or after a reply.
    pub fn has_more(&self) -> bool {
        match &self.kind {
            Kind::One { rest, .. } => rest.is_some(),
            Kind::Steps(steps) => !steps.waiting.is_empty(),
            Kind::Clients(clients) => clients.has_more(),
            Kind::Page(page) => page.has_more(),
            Kind::Neighbors(neighbors) => neighbors.has_more(),
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
        match &mut self.kind {
            Kind::One { .. } => (self.under_way == 0 && !self.has_more()).then_some(Ok(reply)),
            Kind::Steps(steps) => steps.handle_reply(reply).map(Ok),
            Kind::Clients(clients) => clients.handle_reply(reply),
            Kind::Page(page) => page.handle_reply(&reply, reader).map(Ok),
            Kind::Neighbors(neighbors) => neighbors.handle_reply(&reply, reader).map(Ok),
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

    fn of(map: &ShardMap, reader: &NamespaceReader, call: RpcCall) -> Kind {
        match call.method.as_str() {
            "ctx_add" => Kind::by_tunnels(map, call, add_parts),
            "ctx_remove" => Kind::by_tunnels(map, call, remove_parts),
            "ctx_get_info" => Kind::by_tunnels(map, call, info_parts),
            "ctx_iter" => {
                let shards = (0..map.shards()).collect();
                Kind::Page(Page::new(List::Namespaces, shards, reader, call))
            }
            "ctx_cnt" | "ctx_resource_monitor_get" => {
                Kind::at_all(0..map.shards(), &call, Merge::Counters)
            }
            "api_sync_v2" | "shutdown" | "ctx_set_def_plugins" | "ctx_resource_monitor_reset" => {
                Kind::at_all(0..map.shards(), &call, Merge::Same)
            }
            _ => Kind::in_namespace(map, reader, call),
        }
    }

    /// A call about a namespace or its clients.
    fn in_namespace(map: &ShardMap, reader: &NamespaceReader, call: RpcCall) -> Kind {
        // What is wrong with `tun`, any shard says; so it does where there is none.
        let params = read::params::<TunnelParams>(&call.params).ok();
        let Some(key) = params.map(|params| params.tun.unwrap_or_default().key()) else {
            return Kind::one(0, call);
        };
        let home = map.home(&key);
        if !map.is_shared(key.port) {
            return Kind::one(home, call);
        }
        let all = || std::iter::once(home).chain(map.away(&key));
        let is_about_clients = |call: &RpcCall| match &call.items {
            Items::None => macs_of(&call.params).is_some(),
            Items::Clients(new) => !new.is_empty(),
            Items::Macs(macs) => !macs.is_empty(),
            Items::Query(_) => false,
        };
        match (call.method.as_str(), plugin_method(&call.method)) {
            ("ctx_client_add" | "ctx_client_remove" | "ctx_client_get_info", _)
            | (_, Some((Target::Client, ..)))
                if is_about_clients(&call) =>
            {
                Kind::Clients(Box::new(OfClients::new(map, key, call)))
            }
            ("ctx_client_iter", _) => {
                Kind::Page(Page::new(List::Clients(key), all().collect(), reader, call))
            }
            ("ctx_client_set_def_plugins", _) => Kind::at_all(all(), &call, Merge::Same),
            (_, Some((Target::Namespace, Scope::Client, how))) => match how {
                spec::Merge::Neighbors => {
                    Kind::Neighbors(Neighbors::new(key, all().collect(), call))
                }
                spec::Merge::Counters => Kind::at_all_parts(all(), home, call, Merge::Counters),
                spec::Merge::Same => Kind::at_all_parts(all(), home, call, Merge::Same),
            },
            _ => Kind::one(home, call),
        }
    }

    /// The same call at some shards.
    fn at_all(shards: impl Iterator<Item = usize>, call: &RpcCall, merge: Merge) -> Kind {
        let mut steps = Steps::default();
        shards.for_each(|shard| steps.push(shard, call.clone(), merge));
        Kind::Steps(steps)
    }

    /// The same call about a plugin of a namespace at its shards, of which some may lack it.
    fn at_all_parts(
        shards: impl Iterator<Item = usize>,
        home: usize,
        call: RpcCall,
        merge: Merge,
    ) -> Kind {
        let part = RpcCall {
            is_part: true,
            ..call.clone()
        };
        let mut kind = Kind::at_all(shards, &part, merge);
        if let Kind::Steps(steps) = &mut kind {
            steps.last = Some((home, call));
        }
        kind
    }

    /// A call about several namespaces, of which `parts` makes steps.
    fn by_tunnels(
        map: &ShardMap,
        call: RpcCall,
        parts: fn(&ShardMap, &RpcCall, &[(NamespaceKey, &Value)]) -> Steps,
    ) -> Kind {
        let read = read::params::<TunnelList>(&call.params).ok();
        let read = read.and_then(|list| list.tunnels).map(|Listed(list)| list);
        let given = call.params.get("tunnels").and_then(Value::as_array);
        let (Some(read), Some(given)) = (read.filter(|list| !list.is_empty()), given) else {
            // A wrong one is an error before any is done, and none at all is, too.
            return Kind::one(0, call);
        };
        let keys = read.iter().map(Tunnel::key);
        let tunnels: Vec<_> = keys.zip(given).collect();
        Kind::Steps(parts(map, &call, &tunnels))
    }
}

/// Whom a method of a plugin is about, what the plugin's state is of, and how replies make one.
fn plugin_method(name: &str) -> Option<(Target, Scope, spec::Merge)> {
    match commands::find(name)?.method {
        Method::Plugin(id, method) => {
            let scope = PLUGINS[usize::from(id.0)].scope;
            Some((method.target, scope, method.merge))
        }
        Method::Core(_) => None,
    }
}

/// A call about some namespaces of those that another is about.
fn about(call: &RpcCall, tunnels: Vec<Value>) -> RpcCall {
    let mut call = call.clone();
    call.params["tunnels"] = Value::Array(tunnels);
    call
}

/// Calls to the homes of namespaces, in their order; neighbors at one shard are done together.
fn at_homes(
    map: &ShardMap,
    call: &RpcCall,
    tunnels: &[(NamespaceKey, &Value)],
    merge: Merge,
) -> Steps {
    let mut steps = Steps::default();
    for run in tunnels.chunk_by(|(a, _), (b, _)| map.home(a) == map.home(b)) {
        let part = run.iter().map(|(_, tunnel)| (*tunnel).clone());
        steps.push(map.home(&run[0].0), about(call, part.collect()), merge);
    }
    steps
}

/// Namespaces come at their homes; other shards have a part of them when they have clients.
fn add_parts(map: &ShardMap, call: &RpcCall, tunnels: &[(NamespaceKey, &Value)]) -> Steps {
    at_homes(map, call, tunnels, Merge::Same)
}

/// What the homes say, and then what others have besides.
fn info_parts(map: &ShardMap, call: &RpcCall, tunnels: &[(NamespaceKey, &Value)]) -> Steps {
    let mut steps = at_homes(map, call, tunnels, Merge::Lists);
    let mut seen = HashSet::new();
    let mut away = vec![Vec::new(); map.shards()];
    for (key, tunnel) in tunnels.iter().filter(|(key, _)| seen.insert(*key)) {
        map.away(key)
            .for_each(|shard| away[shard].push((*tunnel).clone()));
    }
    for (shard, tunnels) in away.into_iter().enumerate() {
        if !tunnels.is_empty() {
            steps.push(shard, about(call, tunnels), Merge::Infos);
        }
    }
    steps
}

/// A namespace goes where no shard has clients of it: from its home, and then from the others.
fn remove_parts(map: &ShardMap, call: &RpcCall, tunnels: &[(NamespaceKey, &Value)]) -> Steps {
    let is_whole = |(key, _): &(NamespaceKey, &Value)| !map.is_shared(key.port);
    if tunnels.iter().all(is_whole) {
        return at_homes(map, call, tunnels, Merge::Same);
    }
    let mut steps = Steps::default();
    for (key, tunnel) in tunnels {
        let mut question = call.with(Items::Query(Query::IsEmpty));
        question.params["tun"] = (*tunnel).clone();
        for shard in map.away(key) {
            steps.push(shard, question.clone(), Merge::Same);
        }
        let part = about(call, vec![(*tunnel).clone()]);
        steps.push(map.home(key), part.clone(), Merge::Same);
        for shard in map.away(key) {
            steps.push(shard, part.clone(), Merge::Same);
        }
    }
    steps
}
