//! Who on the link has which MAC address, for all clients of a namespace: the cache behind ARP and
//! neighbor discovery, in the states of the reference.
//!
//! | state | how it begins | what happens |
//! |---|---|---|
//! | learned | a neighbor said so, and no client needs it | forgotten after a minute without a word of it |
//! | incomplete | a client needs it | asked for after 1, 1, 1, 3, 5, 7, then every 17 s |
//! | complete | the neighbor answered | after 10 minutes without a word of it: refresh |
//! | refresh | | asked for at once and after 1 and 2 s; then the MAC address is forgotten: incomplete |
//!
//! The cache sets timers, but sends nothing: it says for which client to ask. It is at the home of the namespace;
//! another shard of it has a mirror, and is told for which neighbors to ask.

use std::collections::BTreeSet;
use std::hash::Hash;

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use rustc_hash::FxHashMap;

use crate::client::ClientId;
use crate::iter::{Cursor, Page, PageParams, page};
use crate::memory;
use crate::plugin::Context;
use crate::shard_message::NeighborMessage;
use crate::slab::Slab;
use crate::timers::TimerId;

/// Neighbors that no client needs, at most: nobody on the link can fill the memory.
pub const LEARNED_MAX: usize = 65_536;

const LEARNED_TIME: Nanos = 60 * SECOND;
const COMPLETE_TIME: Nanos = 600 * SECOND;
/// Time between one question and the next; the last one is repeated.
const RETRIES_S: [u64; 7] = [1, 1, 1, 3, 5, 7, 17];
/// Questions after which a neighbor that does not answer any more is given up.
const REFRESH_QUESTIONS: u8 = 3;

/// How well a neighbor is known. The numbers are those of the RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborState {
    /// Heard of, and not needed.
    Learned = 16,
    /// Needed, and not known.
    Incomplete = 17,
    /// Needed and known.
    Complete = 18,
    /// Needed and known, but silent for long.
    Refresh = 19,
}

/// One neighbor.
#[derive(Debug)]
pub struct Neighbor<A> {
    /// Its address.
    pub address: A,
    /// Its MAC address, while it is known.
    pub mac: Option<MacAddress>,
    /// How well it is known.
    pub state: NeighborState,
    /// Clients of this shard that need it.
    users: BTreeSet<ClientId>,
    /// Other shards whose clients need it, in the order in which they began to.
    shards: Vec<ShardLink>,
    /// How many of them began to before this shard's clients did.
    shards_before: usize,
    /// It was heard of since the last timer.
    is_heard: bool,
    /// Questions since it became incomplete or refresh, without the first.
    questions: u8,
    timer: TimerId,
}

impl<A> Neighbor<A> {
    /// The clients of this shard that need it.
    pub fn users(&self) -> &BTreeSet<ClientId> {
        &self.users
    }

    fn is_needed(&self) -> bool {
        !self.users.is_empty() || !self.shards.is_empty()
    }

    /// The other shard that asks for it: one whose clients have needed it for longer than those here.
    fn asking_shard(&mut self) -> Option<&mut ShardLink> {
        match self.shards_before > 0 || self.users.is_empty() {
            true => self.shards.first_mut(),
            false => None,
        }
    }
}

/// Another shard whose clients need a neighbor, and what it is to be told.
#[derive(Clone, Copy, Debug)]
struct ShardLink {
    shard: u32,
    /// What is known of the neighbor.
    is_news: bool,
    /// To ask for it.
    asks: bool,
}

/// A neighbor as the RPC lists it.
#[derive(Clone, Copy, Debug)]
pub struct NeighborRow<A> {
    /// Its address.
    pub address: A,
    /// Its MAC address, while it is known.
    pub mac: Option<MacAddress>,
    /// How well it is known.
    pub state: NeighborState,
    /// Clients of this shard that need it.
    pub users: usize,
}

/// What the cache counted.
#[derive(Clone, Debug, Default)]
pub struct CacheCounts {
    /// Timers of learned neighbors.
    pub timer_learned: u64,
    /// Timers of incomplete ones.
    pub timer_incomplete: u64,
    /// Timers of complete ones.
    pub timer_complete: u64,
    /// Timers of refreshes.
    pub timer_refresh: u64,
    /// Neighbors that came as learned.
    pub add_learned: u64,
    /// Neighbors that came as incomplete.
    pub add_incomplete: u64,
    /// Refreshes without an answer.
    pub incomplete_after_refresh: u64,
    /// Neighbors that became complete.
    pub complete: u64,
    /// Neighbors that are not needed any more.
    pub learned: u64,
    /// Neighbors that are there.
    pub active: u64,
    /// Neighbors that came.
    pub added: u64,
    /// Neighbors that went.
    pub removed: u64,
    /// Clients that began to need one.
    pub associated: u64,
    /// Clients that ceased to need one.
    pub dissociated: u64,
}

/// What a timer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Ask for the neighbor, in the name of a client. None: another shard is told to.
    Ask(Option<ClientId>),
    /// The same; and its MAC address is not known any more.
    AskAgain(Option<ClientId>),
}

/// The neighbors of a namespace.
#[derive(Debug)]
pub struct NeighborCache<A> {
    /// What it counted.
    pub counts: CacheCounts,
    entries: Slab<Neighbor<A>>,
    slots: FxHashMap<A, u32>,
    /// The tag of the timer of the first entry; those behind it are all the cache's.
    tag: u32,
    learned: usize,
    /// Neighbors of which another shard is to be told something, and which shard.
    waiting: BTreeSet<(A, u32)>,
    /// Changes with every neighbor that goes; who comes is behind all others.
    changes: u64,
    /// How far the RPC has read.
    cursor: Cursor<u32>,
}

impl<A: Copy + Ord + Hash> NeighborCache<A> {
    /// An empty cache, whose timers have tags from this one on.
    pub fn new(first_tag: u32) -> Self {
        NeighborCache {
            counts: CacheCounts::default(),
            entries: Slab::default(),
            slots: FxHashMap::default(),
            tag: first_tag,
            learned: 0,
            waiting: BTreeSet::new(),
            changes: 0,
            cursor: Cursor::Stopped,
        }
    }

    /// A client needs a neighbor. Returns whether nothing was known of it; ask for it then.
    pub fn associate(&mut self, context: &mut Context<'_>, address: A, client: ClientId) -> bool {
        self.counts.associated += 1;
        let (slot, is_new) = self.needed(context, address);
        if let Some(entry) = self.entries.get_mut(slot) {
            if entry.users.is_empty() {
                entry.shards_before = entry.shards.len();
            }
            entry.users.insert(client);
        }
        is_new
    }

    /// A client needs a neighbor, or another shard does: the neighbor's number, and whether nothing was known
    /// of it.
    fn needed(&mut self, context: &mut Context<'_>, address: A) -> (u32, bool) {
        let Some(&slot) = self.slots.get(&address) else {
            self.counts.add_incomplete += 1;
            let slot = self.insert(context, address, NeighborState::Incomplete);
            return (slot, true);
        };
        let entry = self.entries.get(slot);
        let Some(entry) = entry.filter(|entry| entry.state == NeighborState::Learned) else {
            return (slot, false);
        };
        self.learned -= 1;
        if entry.mac.is_some() {
            self.complete(context, slot);
            return (slot, false);
        }
        let delay = RETRIES_S[0] * SECOND;
        self.change(context, slot, NeighborState::Incomplete, delay);
        (slot, true)
    }

    /// A client does not need a neighbor any more.
    pub fn dissociate(&mut self, context: &mut Context<'_>, address: A, client: ClientId) {
        let Some(&slot) = self.slots.get(&address) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        if !entry.users.remove(&client) {
            return;
        }
        self.counts.dissociated += 1;
        self.not_needed(context, slot);
    }

    /// A client does not need a neighbor any more, or another shard does not: perhaps none does.
    fn not_needed(&mut self, context: &mut Context<'_>, slot: u32) {
        let entry = self.entries.get_mut(slot);
        if let Some(entry) = entry.filter(|entry| !entry.is_needed()) {
            self.counts.learned += 1;
            self.learned += 1;
            (entry.is_heard, entry.questions) = (false, 0);
            self.change(context, slot, NeighborState::Learned, LEARNED_TIME);
        }
    }

    /// A neighbor said what its MAC address is. Returns the neighbor when that is news for clients
    /// that need it.
    pub fn learn(
        &mut self,
        context: &mut Context<'_>,
        address: A,
        mac: MacAddress,
    ) -> Option<&Neighbor<A>> {
        let Some(&slot) = self.slots.get(&address) else {
            if self.learned < LEARNED_MAX {
                self.counts.add_learned += 1;
                self.learned += 1;
                let slot = self.insert(context, address, NeighborState::Learned);
                self.entries.get_mut(slot)?.mac = Some(mac);
            }
            return None;
        };
        let entry = self.entries.get_mut(slot)?;
        let is_news = entry.mac.replace(mac) != Some(mac);
        match entry.state {
            NeighborState::Incomplete | NeighborState::Refresh => self.complete(context, slot),
            NeighborState::Complete | NeighborState::Learned => entry.is_heard = true,
        }
        self.entries.get(slot).filter(|_| is_news)
    }

    /// A timer with a tag of the cache is over: says what to do about which neighbor.
    pub fn handle_timeout(
        &mut self,
        context: &mut Context<'_>,
        tag: u32,
    ) -> Option<(&Neighbor<A>, Wanted)> {
        let slot = tag.checked_sub(self.tag)?;
        let entry = self.entries.get_mut(slot)?;
        let was_heard = std::mem::take(&mut entry.is_heard);
        match entry.state {
            NeighborState::Learned => {
                self.counts.timer_learned += 1;
                if was_heard {
                    self.change(context, slot, NeighborState::Learned, LEARNED_TIME);
                } else {
                    self.forget(slot);
                }
                None
            }
            NeighborState::Complete => {
                self.counts.timer_complete += 1;
                if was_heard {
                    self.change(context, slot, NeighborState::Complete, COMPLETE_TIME);
                    return None;
                }
                self.ask(context, slot, NeighborState::Refresh)
            }
            NeighborState::Incomplete => {
                self.counts.timer_incomplete += 1;
                self.ask(context, slot, NeighborState::Incomplete)
            }
            NeighborState::Refresh => {
                self.counts.timer_refresh += 1;
                if entry.questions + 2 < REFRESH_QUESTIONS {
                    return self.ask(context, slot, NeighborState::Refresh);
                }
                entry.mac = None;
                self.counts.incomplete_after_refresh += 1;
                self.ask(context, slot, NeighborState::Incomplete)
            }
        }
    }

    /// What is known of a neighbor.
    pub fn get(&self, address: A) -> Option<&Neighbor<A>> {
        self.entries.get(*self.slots.get(&address)?)
    }

    /// Bytes of its tables.
    pub(crate) fn table_bytes(&self) -> usize {
        let entries = self
            .entries
            .indices()
            .filter_map(|slot| self.entries.get(slot));
        let users = entries.map(|entry| {
            memory::set(&entry.users) + memory::list::<ShardLink>(entry.shards.capacity())
        });
        let users: usize = users.sum();
        self.entries.table_bytes() + memory::table(&self.slots) + users
    }

    /// The MAC address of a neighbor.
    pub fn mac(&self, address: A) -> Option<MacAddress> {
        self.get(address)?.mac
    }

    /// Answers a `*_iter` request, the neighbors in the order in which they came; `structure` is the
    /// reference's name of its parameters.
    ///
    /// # Errors
    /// When the parameters are wrong, or neighbors went since the iteration began.
    pub fn page<T>(
        &mut self,
        params: PageParams,
        structure: &str,
        describe: impl Fn(&NeighborRow<A>) -> T,
    ) -> Result<Page<T>, Error> {
        let entries = &self.entries;
        let item = |slot| {
            let entry = entries
                .get(slot)
                .expect("a cursor of this epoch is at an entry");
            let row = NeighborRow {
                address: entry.address,
                mac: entry.mac,
                state: entry.state,
                users: entry.users.len(),
            };
            (describe(&row), entries.next(slot))
        };
        let (epoch, first) = (self.changes, entries.first());
        page(&mut self.cursor, params, structure, epoch, first, item)
    }

    fn insert(&mut self, context: &mut Context<'_>, address: A, state: NeighborState) -> u32 {
        let slot = self.entries.insert(Neighbor {
            address,
            mac: None,
            state,
            users: BTreeSet::new(),
            shards: Vec::new(),
            shards_before: 0,
            is_heard: false,
            questions: 0,
            timer: TimerId::NONE,
        });
        self.slots.insert(address, slot);
        self.counts.added += 1;
        self.counts.active += 1;
        let delay = match state {
            NeighborState::Incomplete => RETRIES_S[0] * SECOND,
            _ => LEARNED_TIME,
        };
        self.change(context, slot, state, delay);
        slot
    }

    fn complete(&mut self, context: &mut Context<'_>, slot: u32) {
        self.counts.complete += 1;
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.questions = 0;
        }
        self.change(context, slot, NeighborState::Complete, COMPLETE_TIME);
    }

    /// Notes a question, and when the next one is due.
    fn ask(
        &mut self,
        context: &mut Context<'_>,
        slot: u32,
        state: NeighborState,
    ) -> Option<(&Neighbor<A>, Wanted)> {
        let entry = self.entries.get_mut(slot)?;
        let was = entry.state;
        // The first question is not counted: of an incomplete neighbor it was sent when the client
        // came, of a complete one it is this.
        if was != NeighborState::Complete {
            entry.questions = entry.questions.saturating_add(1);
        }
        let retry = usize::from(entry.questions).min(RETRIES_S.len() - 1);
        self.change(context, slot, state, RETRIES_S[retry] * SECOND);
        let entry = self.entries.get_mut(slot)?;
        let address = entry.address;
        let first = match entry.asking_shard() {
            Some(link) => {
                link.asks = true;
                self.waiting.insert((address, link.shard));
                context.note_messages();
                None
            }
            None => Some(*entry.users.first()?),
        };
        let wanted = if was == NeighborState::Refresh && state == NeighborState::Incomplete {
            Wanted::AskAgain(first)
        } else {
            Wanted::Ask(first)
        };
        Some((self.entries.get(slot)?, wanted))
    }

    fn change(&mut self, context: &mut Context<'_>, slot: u32, state: NeighborState, delay: Nanos) {
        let tag = self.tag + slot;
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.state = state;
            context.cancel_timer(entry.timer);
            entry.timer = context.set_timer(delay, None, tag);
        }
    }

    fn forget(&mut self, slot: u32) {
        if let Some(entry) = self.entries.remove(slot) {
            self.slots.remove(&entry.address);
            self.learned -= 1;
            self.changes += 1;
            self.counts.removed += 1;
            // The user may have cleared it.
            self.counts.active = self.counts.active.saturating_sub(1);
        }
    }
}

/// Other shards of the namespace.
impl<A: Copy + Ord + Hash> NeighborCache<A> {
    /// Clients of another shard need a neighbor.
    pub(crate) fn associate_shard(&mut self, context: &mut Context<'_>, address: A, shard: u32) {
        let (slot, _) = self.needed(context, address);
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        if entry.shards.iter().all(|link| link.shard != shard) {
            entry.shards.push(ShardLink {
                shard,
                is_news: false,
                asks: false,
            });
        }
        if entry.mac.is_some() {
            self.tell_shards(context, address);
        }
    }

    /// Clients of another shard do not need it any more.
    pub(crate) fn dissociate_shard(&mut self, context: &mut Context<'_>, address: A, shard: u32) {
        let Some(&slot) = self.slots.get(&address) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        let place = entry.shards.iter().position(|link| link.shard == shard);
        if let Some(place) = place {
            entry.shards.remove(place);
            entry.shards_before -= usize::from(place < entry.shards_before);
            self.not_needed(context, slot);
        }
    }

    /// Other shards whose clients need a neighbor are told what is known of it.
    pub(crate) fn tell_shards(&mut self, context: &mut Context<'_>, address: A) {
        let slot = self.slots.get(&address);
        let Some(entry) = slot.and_then(|slot| self.entries.get_mut(*slot)) else {
            return;
        };
        for link in &mut entry.shards {
            link.is_news = true;
            self.waiting.insert((address, link.shard));
            context.note_messages();
        }
    }

    /// The next message to another shard: what is known of a neighbor, and then to ask for it.
    pub(crate) fn poll_message(&mut self) -> Option<(u32, NeighborMessage<A>)> {
        loop {
            let &(address, shard) = self.waiting.first()?;
            let slot = self.slots.get(&address);
            let entry = slot.and_then(|slot| self.entries.get_mut(*slot));
            let message = entry.and_then(|entry| {
                let mut links = entry.shards.iter_mut();
                let link = links.find(|link| link.shard == shard)?;
                if std::mem::take(&mut link.is_news) {
                    let mac = entry.mac;
                    return Some(NeighborMessage::Known { address, mac });
                }
                let asks = std::mem::take(&mut link.asks);
                asks.then_some(NeighborMessage::Ask { address })
            });
            match message {
                Some(message) => return Some((shard, message)),
                None => drop(self.waiting.pop_first()),
            }
        }
    }
}
