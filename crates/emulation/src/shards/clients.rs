//! A call about clients of one namespace that stand on several shards.
//!
//! Clients are done in their order, as many at once as follow each other at one shard. The home is asked
//! before which of them it has, since clients with plugins of [`Scope::Namespace`](crate::spec::Scope) are
//! there, wherever their MAC addresses say; new ones are looked for at all shards, since no two clients of a
//! namespace have an address in common.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use serde::Deserialize;
use serde_json::Value;

use super::merge::Merge;
use crate::emulation::are_of_clients;
use crate::namespace::NamespaceKey;
use crate::read;
use crate::rpc::address_conflict::{ipv4_taken, ipv6_taken, mac_taken};
use crate::rpc::call::{Items, NewClient, Query, RpcCall};

use crate::rpc::query::Conflict;
use crate::shard_map::ShardMap;
use crate::target::{ClientParams, MacParams};

/// A call about clients, part after part.
#[derive(Debug)]
pub(super) struct OfClients {
    map: ShardMap,
    key: NamespaceKey,
    /// What no part was made of yet.
    rest: Option<RpcCall>,
    /// The part that the shards are asked about, and how the rest of it is given.
    asking: Option<Asking>,
    /// What shards are to do, or to answer.
    steps: VecDeque<(usize, RpcCall)>,
    merged: Option<Value>,
    /// Why the clients behind those that are done are not added.
    refusal: Option<Error>,
}

#[derive(Debug)]
struct Asking {
    part: RpcCall,
    about: About,
    /// Of the home.
    defaults_of_clients: Option<bool>,
    /// The first new client that cannot be added, and why.
    first: Option<(usize, String)>,
    /// Clients that are at the home.
    are_at_home: Vec<bool>,
}

/// The clients of a part.
#[derive(Debug)]
enum About {
    New(Vec<NewClient>),
    Known(Vec<MacAddress>),
}

impl OfClients {
    /// A call about clients, by its items or by addresses of its parameters.
    pub(super) fn new(map: &ShardMap, key: NamespaceKey, call: RpcCall) -> OfClients {
        OfClients {
            map: map.clone(),
            key,
            rest: Some(call),
            asking: None,
            steps: VecDeque::new(),
            merged: None,
            refusal: None,
        }
    }

    pub(super) fn has_more(&self) -> bool {
        self.rest.is_some() || self.asking.is_some() || !self.steps.is_empty()
    }

    pub(super) fn next_part(&mut self, clients_max: usize) -> Option<(usize, RpcCall)> {
        if self.steps.is_empty() {
            let rest = self.rest.as_mut()?;
            let part = rest.split_off(clients_max);
            let part = part.or_else(|| self.rest.take())?;
            self.ask(part);
        }
        self.steps.pop_front()
    }

    /// Asks about a part: the home first.
    fn ask(&mut self, part: RpcCall) {
        let home = self.map.home(&self.key);
        let (about, query) = match &part.items {
            Items::Clients(new) => (About::New(new.clone()), Query::Conflict(new.clone())),
            Items::Macs(macs) => (About::Known(macs.clone()), Query::Located(macs.clone())),
            _ => {
                let macs = macs_of(&part.params).unwrap_or_default();
                (About::Known(macs.clone()), Query::Located(macs))
            }
        };
        let query = part.with(Items::Query(query));
        if let About::New(_) = &about {
            let away = self.map.away(&self.key);
            self.steps.extend(away.map(|shard| (shard, query.clone())));
        }
        self.steps.push_front((home, query));
        self.asking = Some(Asking {
            part,
            about,
            defaults_of_clients: None,
            first: None,
            are_at_home: Vec::new(),
        });
    }

    pub(super) fn handle_reply(&mut self, reply: Value) -> Option<Result<Value, Error>> {
        if let Some(asking) = &mut self.asking {
            asking.note(&reply);
            if self.steps.is_empty() {
                let asking = self.asking.take()?;
                self.share_out(asking);
            }
        } else {
            match &mut self.merged {
                Some(merged) => Merge::Lists.add(merged, reply),
                None => self.merged = Some(reply),
            }
        }
        if self.has_more() {
            return None;
        }
        Some(match self.refusal.take() {
            Some(refusal) => Err(refusal),
            None => Ok(self.merged.take().unwrap_or_default()),
        })
    }

    /// Gives each run of clients to their shard.
    fn share_out(&mut self, mut asking: Asking) {
        let home = self.map.home(&self.key);
        let owner = |mac| self.map.client_owner(&self.key, mac);
        let owners: Vec<usize> = match &asking.about {
            About::New(new) => {
                let refused = [asking.first.take(), first_twice(new)];
                let refused = refused.into_iter().flatten().min();
                let most = refused.as_ref().map_or(new.len(), |(place, _)| *place);
                if let Some((_, message)) = refused {
                    self.refusal = Some(Error::execution(message));
                    self.rest = None;
                }
                let is_spread = |new: &NewClient| match &new.plugins {
                    Some(plugins) => are_of_clients(plugins.keys().map(String::as_str)),
                    None => asking.defaults_of_clients == Some(true),
                };
                let owner_of = |new: &NewClient| match is_spread(new) {
                    true => owner(new.client.mac),
                    false => home,
                };
                new[..most].iter().map(owner_of).collect()
            }
            About::Known(macs) => {
                let are_at_home = &asking.are_at_home;
                let owner_of = |(place, mac): (usize, &MacAddress)| match are_at_home.get(place) {
                    Some(true) => home,
                    _ => owner(*mac),
                };
                macs.iter().enumerate().map(owner_of).collect()
            }
        };
        let mut begin = 0;
        for run in owners.chunk_by(|a, b| a == b) {
            let end = begin + run.len();
            self.steps.push_back((run[0], asking.part_of(begin..end)));
            begin = end;
        }
    }
}

impl Asking {
    /// An answer: the first is that of the home.
    fn note(&mut self, reply: &Value) {
        match &self.about {
            About::New(_) => {
                let conflict = Conflict::deserialize(reply).unwrap_or_default();
                self.defaults_of_clients
                    .get_or_insert(conflict.defaults_of_clients);
                let both = [self.first.take(), conflict.first];
                self.first = both.into_iter().flatten().min();
            }
            About::Known(_) => self.are_at_home = Vec::deserialize(reply).unwrap_or_default(),
        }
    }

    /// The same call about some of its clients.
    fn part_of(&self, places: Range<usize>) -> RpcCall {
        match &self.part.items {
            Items::Clients(new) => self.part.with(Items::Clients(new[places].to_vec())),
            Items::Macs(macs) => self.part.with(Items::Macs(macs[places].to_vec())),
            _ => {
                let mut call = self.part.clone();
                if let Some(macs) = call.params.get_mut("macs").and_then(Value::as_array_mut) {
                    *macs = macs.drain(places).collect();
                }
                call
            }
        }
    }
}

/// The addresses of the clients that parameters name. `None` when there is something wrong with them.
pub(super) fn macs_of(params: &Value) -> Option<Vec<MacAddress>> {
    let macs = match params.get("macs") {
        Some(_) => read::params::<MacParams>(params).ok()?.macs().ok()?,
        None => vec![read::params::<ClientParams>(params).ok()?.mac().ok()?.0],
    };
    Some(macs).filter(|macs| !macs.is_empty())
}

/// The first of new clients that has an address of one in front of it, and what is said of it.
fn first_twice(new: &[NewClient]) -> Option<(usize, String)> {
    let (mut macs, mut ipv4, mut ipv6) = (HashSet::new(), HashSet::new(), HashSet::new());
    new.iter()
        .enumerate()
        .find_map(|(place, NewClient { client, .. })| {
            let error = if !macs.insert(client.mac) {
                mac_taken(client.mac)
            } else if !client.ipv4.is_unspecified() && !ipv4.insert(client.ipv4) {
                ipv4_taken(client.ipv4)
            } else if !client.ipv6.is_unspecified() && !ipv6.insert(client.ipv6) {
                ipv6_taken(client.ipv6)
            } else {
                return None;
            };
            Some((place, error.to_string()))
        })
}
