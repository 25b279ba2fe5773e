//! The neighbors of a namespace, for a plugin that resolves them: the [cache](NeighborCache) at the namespace's
//! home, which alone decides when to ask, and a [mirror](NeighborMirror) of it on each other shard.

use std::collections::BTreeSet;
use std::hash::Hash;

use allosaur_api::Error;
use allosaur_packet::MacAddress;

use crate::client::ClientId;
use crate::iter::{Page, PageParams};
use crate::neighbor_cache::{CacheCounts, NeighborCache, NeighborRow, Wanted};
use crate::neighbor_mirror::NeighborMirror;
use crate::plugin::Context;
use crate::shard_message::NeighborMessage;

/// The neighbors of a namespace, here or away from its home.
#[derive(Debug)]
pub(crate) enum Neighbors<A> {
    /// At the home.
    Cache(NeighborCache<A>),
    /// On another shard.
    Mirror(NeighborMirror<A>),
}

/// What the plugin is to do for a neighbor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task<A> {
    /// Tell the clients that need it what its MAC address is.
    Announce(A),
    /// Ask for it, in the name of a client.
    Ask(ClientId, A),
}

impl<A: Copy + Ord + Hash> Neighbors<A> {
    /// None yet, of the namespace of a context; the timers of a cache have tags from this one on.
    pub(crate) fn new(context: &Context<'_>, first_tag: u32) -> Self {
        match context.namespace.home_elsewhere() {
            Some(home) => Neighbors::Mirror(NeighborMirror::new(home)),
            None => Neighbors::Cache(NeighborCache::new(first_tag)),
        }
    }

    /// A client needs a neighbor.
    pub(crate) fn associate(&mut self, context: &mut Context<'_>, address: A, client: ClientId) {
        match self {
            Neighbors::Cache(cache) => drop(cache.associate(context, address, client)),
            Neighbors::Mirror(mirror) => mirror.associate(context, address, client),
        }
    }

    /// A client does not need a neighbor any more.
    pub(crate) fn dissociate(&mut self, context: &mut Context<'_>, address: A, client: ClientId) {
        match self {
            Neighbors::Cache(cache) => cache.dissociate(context, address, client),
            Neighbors::Mirror(mirror) => mirror.dissociate(context, address, client),
        }
    }

    /// A frame says what the MAC address of a neighbor is. A frame that all shards get tells the home itself.
    #[inline]
    pub(crate) fn learn(
        &mut self,
        context: &mut Context<'_>,
        address: A,
        mac: MacAddress,
        is_for_all: bool,
    ) -> Option<Task<A>> {
        match self {
            Neighbors::Cache(cache) => {
                let learned = cache.learn(context, address, mac);
                learned.map(|_| Task::Announce(address))
            }
            Neighbors::Mirror(mirror) => {
                if !is_for_all {
                    mirror.note_heard(context, address, mac);
                }
                None
            }
        }
    }

    /// A timer of the cache is over: the neighbor, whether its MAC address is not known any more, and who
    /// asks if it is a client of this shard.
    pub(crate) fn handle_timeout(
        &mut self,
        context: &mut Context<'_>,
        tag: u32,
    ) -> Option<(A, bool, Option<ClientId>)> {
        let Neighbors::Cache(cache) = self else {
            return None;
        };
        let (neighbor, wanted) = cache.handle_timeout(context, tag)?;
        let address = neighbor.address;
        let (is_lost, client) = match wanted {
            Wanted::Ask(client) => (false, client),
            Wanted::AskAgain(client) => (true, client),
        };
        Some((address, is_lost, client))
    }

    /// Tells the other shards whose clients need a neighbor what its MAC address is.
    pub(crate) fn tell_shards(&mut self, context: &mut Context<'_>, address: A) {
        if let Neighbors::Cache(cache) = self {
            cache.tell_shards(context, address);
        }
    }

    /// The next message, and to which shard.
    pub(crate) fn poll_message(&mut self) -> Option<(u32, NeighborMessage<A>)> {
        match self {
            Neighbors::Cache(cache) => cache.poll_message(),
            Neighbors::Mirror(mirror) => mirror.poll_message(),
        }
    }

    /// A message of another shard.
    pub(crate) fn handle_message(
        &mut self,
        context: &mut Context<'_>,
        from: u32,
        message: NeighborMessage<A>,
    ) -> Option<Task<A>> {
        match (self, message) {
            (Neighbors::Cache(cache), NeighborMessage::Needed { address, is_needed }) => {
                match is_needed {
                    true => cache.associate_shard(context, address, from),
                    false => cache.dissociate_shard(context, address, from),
                }
                None
            }
            (cache @ Neighbors::Cache(_), NeighborMessage::Heard { address, mac }) => {
                cache.learn(context, address, mac, false)
            }
            (Neighbors::Mirror(mirror), NeighborMessage::Known { address, mac }) => {
                let is_needed = mirror.set_mac(context, address, mac);
                is_needed.then_some(Task::Announce(address))
            }
            (Neighbors::Mirror(mirror), NeighborMessage::Ask { address }) => {
                let client = mirror.asker(context, address)?;
                Some(Task::Ask(client, address))
            }
            // Two shards that do not agree which is the home: no such table is made.
            _ => None,
        }
    }

    /// The clients here that need a neighbor, and its MAC address.
    pub(crate) fn get(&self, address: A) -> Option<(&BTreeSet<ClientId>, Option<MacAddress>)> {
        match self {
            Neighbors::Cache(cache) => {
                let neighbor = cache.get(address)?;
                Some((neighbor.users(), neighbor.mac))
            }
            Neighbors::Mirror(mirror) => mirror.get(address),
        }
    }

    /// The MAC address of a neighbor.
    pub(crate) fn mac(&self, address: A) -> Option<MacAddress> {
        self.get(address)?.1
    }

    /// Answers a `*_iter` request.
    ///
    /// # Errors
    /// When the parameters are wrong, or neighbors went since the iteration began.
    pub(crate) fn page<T>(
        &mut self,
        params: PageParams,
        structure: &str,
        describe: impl Fn(&NeighborRow<A>) -> T,
    ) -> Result<Page<T>, Error> {
        match self {
            Neighbors::Cache(cache) => cache.page(params, structure, describe),
            Neighbors::Mirror(mirror) => mirror.page(params, structure, describe),
        }
    }

    /// What was counted.
    pub(crate) fn counts(&mut self) -> &mut CacheCounts {
        match self {
            Neighbors::Cache(cache) => &mut cache.counts,
            Neighbors::Mirror(mirror) => &mut mirror.counts,
        }
    }

    /// Bytes of its tables.
    pub(crate) fn table_bytes(&self) -> usize {
        match self {
            Neighbors::Cache(cache) => cache.table_bytes(),
            Neighbors::Mirror(mirror) => mirror.table_bytes(),
        }
    }
}
