//! The groups that a host listens to, in the order in which it joined them.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::memory;
use crate::slab::Slab;

/// Groups of one namespace at most: a million clients with IPv6 are in two each.
pub(crate) const GROUPS_MAX: usize = 1 << 21;
/// Sources of one group at most.
pub(crate) const SOURCES_MAX: usize = 4096;

/// Why a group or a source was not added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupError {
    /// The group is there, from all sources.
    Exists,
    /// The group is there, from some sources.
    ExistsFiltered,
    /// The group is not there.
    Missing,
    /// The group is there, but for the clients' own use.
    NotManaged,
    /// The group is there from all sources, so that single ones mean nothing.
    WrongMode,
    /// The source is there.
    SourceExists,
    /// The source is not there.
    SourceMissing,
    /// There are [`GROUPS_MAX`] groups, or [`SOURCES_MAX`] sources.
    Full,
}

/// One group.
#[derive(Debug)]
pub(crate) struct Group<A> {
    pub(crate) address: A,
    /// The sources that it is wanted from; `None` for all of them.
    pub(crate) sources: Option<Box<Sources<A>>>,
    /// How many addresses of clients are in it (solicited-node groups).
    pub(crate) users: u32,
    /// A user asked for it, by the RPC or in the initialization.
    pub(crate) managed: bool,
    /// Counts on with each group that comes: the order of the table.
    pub(crate) number: u64,
}

/// Sources in ascending order.
#[derive(Debug)]
pub(crate) struct Sources<A>(pub(crate) Vec<A>);

impl<A> Group<A> {
    /// Its sources, none when it is wanted from all.
    pub(crate) fn sources(&self) -> &[A] {
        self.sources.as_deref().map_or(&[], |sources| &sources.0)
    }
}

/// A place in the table, from which to read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The slot of the group.
    pub(crate) slot: u32,
    /// How many of its sources were read already.
    pub(crate) sources: usize,
}

/// All groups of a namespace.
#[derive(Debug)]
pub(crate) struct Groups<A> {
    slab: Slab<Group<A>>,
    slots: FxHashMap<A, u32>,
    /// How often groups came and went: iterations end when it changes.
    changes: u64,
    /// The number of the group that comes next.
    next_number: u64,
    /// Sources of all groups together.
    sources: usize,
}

impl<A> Default for Groups<A> {
    fn default() -> Self {
        Groups {
            slab: Slab::default(),
            slots: FxHashMap::default(),
            changes: 0,
            next_number: 0,
            sources: 0,
        }
    }
}

impl<A: Copy + Eq + Ord + Hash> Groups<A> {
    /// Adds a group from all sources for a user. Says whether it must be reported: one that
    /// clients have already is not.
    pub(crate) fn add(&mut self, address: A) -> Result<bool, GroupError> {
        if let Some(group) = self.find(address) {
            return match (group.sources.is_some(), group.managed) {
                (true, _) => Err(GroupError::ExistsFiltered),
                (false, true) => Err(GroupError::Exists),
                (false, false) => {
                    group.managed = true;
                    Ok(false)
                }
            };
        }
        let group = self.insert(address)?;
        group.managed = true;
        Ok(true)
    }

    /// Bytes of the tables of groups, without their sources.
    pub(crate) fn table_bytes(&self) -> usize {
        self.slab.table_bytes() + memory::table(&self.slots)
    }

    /// Takes a group from a user. Says whether it is gone: one that clients have stays.
    pub(crate) fn remove(&mut self, address: A) -> Result<bool, GroupError> {
        let group = self.find(address).ok_or(GroupError::Missing)?;
        if !group.managed {
            return Err(GroupError::NotManaged);
        }
        if group.users != 0 {
            group.managed = false;
            let sources = group.sources.take();
            self.sources -= sources.map_or(0, |sources| sources.0.len());
            return Ok(false);
        }
        self.delete(address);
        Ok(true)
    }

    /// Adds a source to a group, and the group if it is not there. Says whether the group is new.
    pub(crate) fn add_source(&mut self, address: A, source: A) -> Result<bool, GroupError> {
        let is_new = !self.slots.contains_key(&address);
        if is_new {
            let group = self.insert(address)?;
            group.managed = true;
            group.sources = Some(Box::new(Sources(Vec::new())));
        }
        let group = self.find(address).ok_or(GroupError::Missing)?;
        if !group.managed {
            return Err(GroupError::NotManaged);
        }
        let sources = group.sources.as_mut().ok_or(GroupError::WrongMode)?;
        match sources.0.binary_search(&source) {
            Ok(_) => Err(GroupError::SourceExists),
            Err(_) if sources.0.len() >= SOURCES_MAX => Err(GroupError::Full),
            Err(at) => {
                sources.0.insert(at, source);
                self.sources += 1;
                Ok(is_new)
            }
        }
    }

    /// Takes a source from a group; the group stays.
    pub(crate) fn remove_source(&mut self, address: A, source: A) -> Result<(), GroupError> {
        let group = self.find(address).ok_or(GroupError::Missing)?;
        let sources = group.sources.as_mut().ok_or(GroupError::WrongMode)?;
        let at = sources.0.binary_search(&source);
        sources.0.remove(at.map_err(|_| GroupError::SourceMissing)?);
        self.sources -= 1;
        Ok(())
    }

    /// One more address of a client is in the group. Says whether it is new, or wanted from
    /// more sources than before.
    pub(crate) fn join(&mut self, address: A) -> Result<bool, GroupError> {
        if let Some(&slot) = self.slots.get(&address) {
            let group = self.slab.get_mut(slot).ok_or(GroupError::Missing)?;
            group.users += 1;
            let sources = group.sources.take();
            self.sources -= sources.as_ref().map_or(0, |sources| sources.0.len());
            return Ok(sources.is_some());
        }
        self.insert(address)?.users = 1;
        Ok(true)
    }

    /// One address of a client less is in the group. Says whether the group is gone.
    pub(crate) fn leave(&mut self, address: A) -> bool {
        let Some(group) = self.find(address) else {
            return false;
        };
        group.users = group.users.saturating_sub(1);
        let is_unused = group.users == 0 && !group.managed;
        if is_unused {
            self.delete(address);
        }
        is_unused
    }

    /// The group in a slot.
    pub(crate) fn at(&self, slot: u32) -> Option<&Group<A>> {
        self.slab.get(slot)
    }

    /// The slot of a group.
    pub(crate) fn slot(&self, address: A) -> Option<u32> {
        self.slots.get(&address).copied()
    }

    /// The slot of the oldest group.
    pub(crate) fn first(&self) -> Option<u32> {
        self.slab.first()
    }

    /// The slot of the group that came next.
    pub(crate) fn next(&self, slot: u32) -> Option<u32> {
        self.slab.next(slot)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// How many sources all of them have.
    pub(crate) fn sources_len(&self) -> usize {
        self.sources
    }

    /// The number of the group that comes next.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Whether anything of a group is listened to.
    pub(crate) fn is_wanted(&self, address: A) -> bool {
        let group = self.slot(address).and_then(|slot| self.slab.get(slot));
        group.is_some_and(|group| group.sources.is_none() || !group.sources().is_empty())
    }

    /// How often groups came and went.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    fn find(&mut self, address: A) -> Option<&mut Group<A>> {
        self.slab.get_mut(*self.slots.get(&address)?)
    }

    fn insert(&mut self, address: A) -> Result<&mut Group<A>, GroupError> {
        if self.len() >= GROUPS_MAX {
            return Err(GroupError::Full);
        }
        let slot = self.slab.insert(Group {
            address,
            sources: None,
            users: 0,
            managed: false,
            number: self.next_number,
        });
        self.next_number += 1;
        self.slots.insert(address, slot);
        self.changes += 1;
        self.slab.get_mut(slot).ok_or(GroupError::Missing)
    }

    fn delete(&mut self, address: A) {
        if let Some(slot) = self.slots.remove(&address) {
            let group = self.slab.remove(slot);
            self.sources -= group.map_or(0, |group| group.sources().len());
            self.changes += 1;
        }
    }
}
