//! The neighbors of the clients of a namespace that stand on another shard than its home: what the
//! [cache](crate::neighbor_cache) there says of them.
//!
//! The mirror tells the home which neighbors its clients need, and what is heard of any. It sets no timer:
//! the home says when to ask.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use rustc_hash::FxHashMap;

use crate::client::ClientId;
use crate::iter::{Cursor, Page, PageParams, page};
use crate::memory;
use crate::neighbor_cache::{CacheCounts, LEARNED_MAX, NeighborRow, NeighborState};
use crate::plugin::Context;
use crate::shard_message::NeighborMessage;

/// A neighbor that says the same again is told of so often at most.
const HEARD_GAP: Nanos = SECOND;
/// Neighbors that were heard of and not told yet. Who is heard of beyond them is told of when it is heard of
/// again.
const HEARD_WAITING_MAX: usize = 1024;

/// A neighbor that clients of the shard need.
#[derive(Debug, Default)]
struct Needed {
    users: BTreeSet<ClientId>,
    mac: Option<MacAddress>,
}

/// What a neighbor said last.
#[derive(Clone, Copy, Debug)]
struct Heard {
    mac: MacAddress,
    /// When the home was told of it. It is told of what is new twice, since the first word of a neighbor makes it
    /// known, and only the next counts as a sign of life.
    told: Option<Nanos>,
}

/// The neighbors of a namespace, away from its home.
#[derive(Debug)]
pub(crate) struct NeighborMirror<A> {
    /// What it counted: clients; the home counts the rest.
    pub(crate) counts: CacheCounts,
    home: u32,
    needed: BTreeMap<A, Needed>,
    heard: FxHashMap<A, Heard>,
    /// Neighbors of which the home does not know yet whether they are needed.
    needs_waiting: BTreeSet<A>,
    /// Neighbors of which the home is to be told what they said.
    heard_waiting: BTreeSet<A>,
    /// Changes with every neighbor that comes or goes.
    changes: u64,
    /// How far the RPC has read.
    cursor: Cursor<A>,
}

impl<A: Copy + Ord + Hash> NeighborMirror<A> {
    /// An empty mirror of a cache on the shard that is the namespace's home.
    pub(crate) fn new(home: u32) -> Self {
        NeighborMirror {
            counts: CacheCounts::default(),
            home,
            needed: BTreeMap::new(),
            heard: FxHashMap::default(),
            needs_waiting: BTreeSet::new(),
            heard_waiting: BTreeSet::new(),
            changes: 0,
            cursor: Cursor::Stopped,
        }
    }

    /// A client needs a neighbor.
    pub(crate) fn associate(&mut self, context: &mut Context<'_>, address: A, client: ClientId) {
        self.counts.associated += 1;
        let needed = self.needed.entry(address).or_default();
        needed.users.insert(client);
        if needed.users.len() == 1 {
            self.changes += 1;
            self.tell_need(context, address);
        }
    }

    /// A client does not need a neighbor any more.
    pub(crate) fn dissociate(&mut self, context: &mut Context<'_>, address: A, client: ClientId) {
        let needed = self.needed.get_mut(&address);
        let Some(needed) = needed.filter(|needed| needed.users.contains(&client)) else {
            return;
        };
        self.counts.dissociated += 1;
        needed.users.remove(&client);
        if needed.users.is_empty() {
            self.needed.remove(&address);
            self.changes += 1;
            self.tell_need(context, address);
        }
    }

    /// A neighbor said what its MAC address is.
    #[inline]
    pub(crate) fn note_heard(&mut self, context: &mut Context<'_>, address: A, mac: MacAddress) {
        let told = match self.heard.get(&address) {
            Some(Heard { mac: known, told }) if *known == mac => {
                if told.is_some_and(|told| context.now < told + HEARD_GAP) {
                    return;
                }
                Some(context.now)
            }
            _ => None,
        };
        if self.heard_waiting.len() < HEARD_WAITING_MAX {
            if self.heard.len() >= LEARNED_MAX {
                // It is there to save messages: without, each word is told of once more.
                self.heard.clear();
                self.heard_waiting.clear();
            }
            self.heard.insert(address, Heard { mac, told });
            self.heard_waiting.insert(address);
            context.note_messages();
        }
    }

    /// The home says what is known of a neighbor. Returns whether clients need it.
    pub(crate) fn set_mac(
        &mut self,
        context: &mut Context<'_>,
        address: A,
        mac: Option<MacAddress>,
    ) -> bool {
        match self.needed.get_mut(&address) {
            Some(needed) => {
                needed.mac = mac;
                true
            }
            None => {
                self.tell_need(context, address);
                false
            }
        }
    }

    /// The home wants a neighbor to be asked for: in the name of this client. What it says then, the home is
    /// told at once.
    pub(crate) fn asker(&mut self, context: &mut Context<'_>, address: A) -> Option<ClientId> {
        self.heard.remove(&address);
        let needed = self.needed.get(&address);
        let first = needed.and_then(|needed| needed.users.first().copied());
        if first.is_none() {
            self.tell_need(context, address);
        }
        first
    }

    /// The clients that need a neighbor, and its MAC address.
    pub(crate) fn get(&self, address: A) -> Option<(&BTreeSet<ClientId>, Option<MacAddress>)> {
        let needed = self.needed.get(&address)?;
        Some((&needed.users, needed.mac))
    }

    /// The next message, and to which shard.
    pub(crate) fn poll_message(&mut self) -> Option<(u32, NeighborMessage<A>)> {
        if let Some(address) = self.needs_waiting.pop_first() {
            let is_needed = self.needed.contains_key(&address);
            let message = NeighborMessage::Needed { address, is_needed };
            return Some((self.home, message));
        }
        while let Some(address) = self.heard_waiting.pop_first() {
            if let Some(Heard { mac, .. }) = self.heard.get(&address) {
                let mac = *mac;
                return Some((self.home, NeighborMessage::Heard { address, mac }));
            }
        }
        None
    }

    /// Answers a `*_iter` request, as the cache does.
    pub(crate) fn page<T>(
        &mut self,
        params: PageParams,
        structure: &str,
        describe: impl Fn(&NeighborRow<A>) -> T,
    ) -> Result<Page<T>, Error> {
        let needed = &self.needed;
        let item = |address| {
            let mut behind = needed.range(address..);
            let (_, neighbor) = behind.next().expect("a cursor of this epoch is at one");
            let row = NeighborRow {
                address,
                mac: neighbor.mac,
                state: match neighbor.mac {
                    Some(_) => NeighborState::Complete,
                    None => NeighborState::Incomplete,
                },
                users: neighbor.users.len(),
            };
            (describe(&row), behind.next().map(|(next, _)| *next))
        };
        let first = needed.keys().next().copied();
        page(
            &mut self.cursor,
            params,
            structure,
            self.changes,
            first,
            item,
        )
    }

    /// Bytes of its tables.
    pub(crate) fn table_bytes(&self) -> usize {
        let users = self
            .needed
            .values()
            .map(|needed| memory::set(&needed.users));
        let entries = memory::block(memory::list::<(A, Needed)>(1)) * self.needed.len();
        memory::table(&self.heard) + entries + users.sum::<usize>()
    }

    fn tell_need(&mut self, context: &mut Context<'_>, address: A) {
        self.needs_waiting.insert(address);
        context.note_messages();
    }
}
