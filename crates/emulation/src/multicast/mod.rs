//! A host that listens to multicast groups: what IGMP (RFC 2236, RFC 3376) and MLD (RFC 2710,
//! RFC 3810) have in common, over their type of address.
//!
//! As in the reference, one client of a namespace, the designator, speaks for all of them, changes
//! are reported once, and answers are not held back when others report the same group.
//!
//! * [`answer`]: when the reports of an answer leave.
//! * [`count`]: what is counted.
//! * [`groups`]: the table of groups.
//! * [`report`]: records and packets.
//! * [`membership`]: all of it in a namespace, with the methods of the RPC.

mod answer;
pub(crate) mod count;
pub(crate) mod groups;
pub(crate) mod membership;
pub(crate) mod report;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::hash::Hash;

use allosaur_engine::time::{MILLISECOND, Nanos};

use crate::counters::{CounterMeta, Counters};
use answer::{Answer, Pace};
use count::{COUNTS, Count};
use groups::{Cursor, GroupError, Groups};
use report::{Message, Packer, RecordKind, record_bytes};

/// The MTU of a namespace, when none is given.
pub(crate) const MTU_DEFAULT: u16 = 1500;
/// Joins of clients are collected for this long, so that many clients need few reports.
pub(crate) const JOIN_DELAY: Nanos = 10 * MILLISECOND;

/// What IGMP and MLD differ in.
pub(crate) trait Family: Debug + 'static {
    /// Addresses of groups and sources: arrays of bytes.
    type Address: Copy + Eq + Ord + Hash + Debug + AsRef<[u8]>;
    /// Bytes of an address.
    const ADDRESS_BYTES: usize = size_of::<Self::Address>();
    /// Bytes of the MTU that a report does not fill. The reference reserves room for two tags and
    /// one more IP header, and how groups are distributed over packets shall be the same.
    const OVERHEAD_BYTES: usize;
    /// The newest version, the one with records.
    const VERSION_MAX: u8;
    /// The name of the table of counters.
    const TABLE: &'static str;
    /// The counters of the table, in their order.
    const COUNTERS: &'static [Count];
    /// What they mean.
    const META: &'static [CounterMeta];
}

/// The counters of a namespace.
#[derive(Debug)]
pub(crate) struct Counts<F> {
    values: [u64; COUNTS],
    family: std::marker::PhantomData<F>,
}

impl<F> Default for Counts<F> {
    fn default() -> Self {
        Counts {
            values: [0; COUNTS],
            family: std::marker::PhantomData,
        }
    }
}

impl<F> Counts<F> {
    /// Counts one.
    pub(crate) fn count(&mut self, count: Count) {
        self.values[count as usize] += 1;
    }
}

impl<F: Family> Counters for Counts<F> {
    fn name(&self) -> &'static str {
        F::TABLE
    }

    fn meta(&self) -> &'static [CounterMeta] {
        F::META
    }

    fn value(&self, index: usize) -> u64 {
        self.values[F::COUNTERS[index] as usize]
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Why a report could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mute {
    /// There is no client with the designator's MAC address.
    NoDesignator,
    /// The designator has no address to send from.
    NoAddress,
    /// The version has no such message.
    Unknown,
}

/// Sends a report in the name of the designator, in the version that is given.
pub(crate) type Send<'s, A> = dyn FnMut(Message<'_, A>, u8) -> Result<(), Mute> + 's;

/// A query of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Query<A> {
    /// Its version, which hosts follow.
    pub(crate) version: u8,
    /// The group that it asks about; `None` for all.
    pub(crate) group: Option<A>,
    /// Whether it asks about sources of the group.
    pub(crate) has_sources: bool,
    /// The time in which to answer.
    pub(crate) max_response: Nanos,
}

/// The groups of a namespace, and who speaks for them.
#[derive(Debug)]
pub(crate) struct MulticastHost<F: Family> {
    /// The MTU of its reports.
    pub(crate) mtu: u16,
    version: u8,
    /// What it counted.
    pub(crate) counts: Counts<F>,
    groups: Groups<F::Address>,
    answer: Option<Answer>,
    /// Changes of clients that were not reported yet: true for a join.
    pending: Vec<(F::Address, bool)>,
    pending_at: Nanos,
}

impl<F: Family> MulticastHost<F> {
    /// A host without groups.
    pub(crate) fn new(mtu: u16, version: u8) -> Self {
        MulticastHost {
            mtu,
            version,
            counts: Counts::default(),
            groups: Groups::default(),
            answer: None,
            pending: Vec::new(),
            pending_at: 0,
        }
    }

    /// The version that it speaks.
    pub(crate) fn version(&self) -> u8 {
        self.version
    }

    /// Speaks another version from now on. An answer in the making is cancelled when it changes
    /// (RFC 3376 section 7.2.1, RFC 3810 section 8.2.1): its pace is of the packets of the old one.
    pub(crate) fn set_version(&mut self, version: u8) {
        if self.version != version {
            self.version = version;
            self.answer = None;
        }
    }

    /// The groups.
    pub(crate) fn groups(&self) -> &Groups<F::Address> {
        &self.groups
    }

    /// Joins groups for a user, up to the first that cannot be joined; those before it stay.
    pub(crate) fn add(
        &mut self,
        addresses: &[F::Address],
        send: &mut Send<'_, F::Address>,
    ) -> Result<(), (GroupError, F::Address)> {
        let mut joined = Vec::new();
        let mut result = Ok(());
        for &address in addresses {
            match self.groups.add(address) {
                Ok(is_new) => {
                    if is_new {
                        self.counts.count(Count::Add);
                        joined.push((address, true));
                    }
                }
                Err(error) => {
                    self.counts.count(Count::AddError);
                    result = Err((error, address));
                    break;
                }
            }
        }
        self.report_changes(&joined, send);
        result
    }

    /// Leaves groups of a user, up to the first that cannot be left.
    pub(crate) fn remove(
        &mut self,
        addresses: &[F::Address],
        send: &mut Send<'_, F::Address>,
    ) -> Result<(), (GroupError, F::Address)> {
        let mut left = Vec::new();
        let mut result = Ok(());
        for &address in addresses {
            let answer = self.answer_without(address);
            // Versions without sources said that it is left when the last source went.
            let is_silent = self.version != F::VERSION_MAX && !self.groups.is_wanted(address);
            match self.groups.remove(address) {
                Ok(is_gone) => {
                    if is_gone {
                        self.answer = answer;
                        self.counts.count(Count::Remove);
                    }
                    if is_gone && !is_silent {
                        left.push((address, false));
                    }
                }
                Err(error) => {
                    self.counts.count(Count::RemoveError);
                    result = Err((error, address));
                    break;
                }
            }
        }
        self.report_changes(&left, send);
        result
    }

    /// Adds sources to groups, each pair a group and a source, up to the first that cannot be added.
    pub(crate) fn add_sources(
        &mut self,
        pairs: &[(F::Address, F::Address)],
        send: &mut Send<'_, F::Address>,
    ) -> Result<(), (GroupError, F::Address, F::Address)> {
        let (mut new, mut allowed) = (Vec::new(), Vec::new());
        let mut joined = Vec::new();
        let mut result = Ok(());
        for &(group, source) in pairs {
            let was_wanted = self.groups.is_wanted(group);
            match self.groups.add_source(group, source) {
                Ok(is_new) => {
                    self.counts.count(Count::AddSource);
                    if is_new {
                        new.push(group);
                    }
                    if !was_wanted {
                        joined.push((group, true));
                    }
                    allowed.push((group, source));
                }
                Err(error) => {
                    self.counts.count(Count::AddSourceError);
                    result = Err((error, group, source));
                    break;
                }
            }
        }
        if self.version == F::VERSION_MAX {
            let empty = new
                .iter()
                .map(|&group| (RecordKind::ToInclude, group, None));
            self.send_records(empty, Count::ChangeReports, send);
            let allow = allowed.iter();
            let allow = allow.map(|&(group, source)| (RecordKind::Allow, group, Some(source)));
            self.send_records(allow, Count::AllowReports, send);
        } else {
            self.report_changes(&joined, send);
        }
        result
    }

    /// Takes sources from groups, up to the first that cannot be taken.
    pub(crate) fn remove_sources(
        &mut self,
        pairs: &[(F::Address, F::Address)],
        send: &mut Send<'_, F::Address>,
    ) -> Result<(), (GroupError, F::Address, F::Address)> {
        let (mut blocked, mut left) = (Vec::new(), Vec::new());
        let mut result = Ok(());
        for &(group, source) in pairs {
            if let Err(error) = self.groups.remove_source(group, source) {
                // The reference counts it among the errors of groups.
                self.counts.count(Count::RemoveError);
                result = Err((error, group, source));
                break;
            }
            self.counts.count(Count::RemoveSource);
            blocked.push((group, source));
            if !self.groups.is_wanted(group) {
                left.push((group, false));
            }
        }
        if self.version == F::VERSION_MAX {
            let block = blocked.iter();
            let block = block.map(|&(group, source)| (RecordKind::Block, group, Some(source)));
            self.send_records(block, Count::BlockReports, send);
        } else {
            self.report_changes(&left, send);
        }
        result
    }

    /// A client got an address that is in a group; reported after [`JOIN_DELAY`].
    pub(crate) fn join(&mut self, now: Nanos, address: F::Address) {
        self.change(now, address, true);
    }

    /// A client lost an address that is in a group.
    pub(crate) fn leave(&mut self, now: Nanos, address: F::Address) {
        self.change(now, address, false);
    }

    fn change(&mut self, now: Nanos, address: F::Address, is_join: bool) {
        if self.pending.is_empty() {
            self.pending_at = now + JOIN_DELAY;
        }
        self.pending.push((address, is_join));
    }

    /// A query arrived. `draw` gives a random number up to a limit, which delays a short answer.
    pub(crate) fn handle_query(
        &mut self,
        now: Nanos,
        query: &Query<F::Address>,
        draw: impl FnOnce(Nanos) -> Nanos,
        send: &mut Send<'_, F::Address>,
    ) {
        self.set_version(query.version);
        match query.group {
            Some(group) => {
                self.counts.count(if query.has_sources {
                    Count::SourceQueries
                } else {
                    Count::GroupQueries
                });
                self.answer_group(group, send);
            }
            None => {
                self.counts.count(Count::GeneralQueries);
                if self.answer.is_some() {
                    self.counts.count(Count::QueriesWhileAnswering);
                }
                self.plan_answer(now, query.max_response, draw);
                self.continue_answer(now, send);
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        let pending = (!self.pending.is_empty()).then_some(self.pending_at);
        let answer = self.answer.map(|answer| answer.at);
        [pending, answer].into_iter().flatten().min()
    }

    /// Reports what is due: changes of clients, and the next packets of an answer.
    pub(crate) fn handle_timeout(&mut self, now: Nanos, send: &mut Send<'_, F::Address>) {
        if !self.pending.is_empty() && self.pending_at <= now {
            self.report_pending(send);
        }
        self.continue_answer(now, send);
    }

    /// Reports groups that were joined or left.
    fn report_changes(&mut self, changes: &[(F::Address, bool)], send: &mut Send<'_, F::Address>) {
        if self.version == F::VERSION_MAX {
            let records = changes.iter().map(|&(group, is_join)| {
                let kind = if is_join {
                    RecordKind::ToExclude
                } else {
                    RecordKind::ToInclude
                };
                (kind, group, None)
            });
            return self.send_records(records, Count::ChangeReports, send);
        }
        for &(group, is_join) in changes {
            let message = if is_join {
                Message::Report(group)
            } else {
                Message::Leave(group)
            };
            self.deliver(message, Count::ChangeReports, send);
        }
    }

    fn report_pending(&mut self, send: &mut Send<'_, F::Address>) {
        let pending = std::mem::take(&mut self.pending);
        let mut changes = Vec::new();
        for (address, is_join) in pending {
            let is_reported = if is_join {
                let joined = self.groups.join(address);
                if matches!(joined, Ok(true)) {
                    self.counts.count(Count::Add);
                } else if joined.is_err() {
                    self.counts.count(Count::AddError);
                }
                joined.unwrap_or(false)
            } else {
                let answer = self.answer_without(address);
                let is_gone = self.groups.leave(address);
                if is_gone {
                    self.answer = answer;
                    self.counts.count(Count::Remove);
                }
                is_gone
            };
            if is_reported {
                changes.push((address, is_join));
            }
        }
        self.report_changes(&changes, send);
    }

    /// Sends records with one source or none, in as few packets as they fit into.
    fn send_records(
        &mut self,
        records: impl Iterator<Item = (RecordKind, F::Address, Option<F::Address>)>,
        count: Count,
        send: &mut Send<'_, F::Address>,
    ) {
        let mut packer = Packer::<F>::new(self.mtu);
        for (kind, group, source) in records {
            let sources = source.as_slice();
            if packer.push(kind, group, sources).is_none() {
                self.deliver(packer.message(), count, send);
                packer.clear();
                packer.push(kind, group, sources);
            }
        }
        if !packer.is_empty() {
            self.deliver(packer.message(), count, send);
        }
    }

    /// Answers a query about one group at once, with all its sources.
    fn answer_group(&mut self, address: F::Address, send: &mut Send<'_, F::Address>) {
        let Some(slot) = self.groups.slot(address) else {
            return;
        };
        let mut cursor = Some(Cursor { slot, sources: 0 });
        while let Some(from) = cursor.filter(|cursor| cursor.slot == slot) {
            cursor = self.send_page(from, u64::MAX, true, send);
        }
    }

    /// Plans the answer to a general query, beside that to an earlier one: all groups in one packet
    /// after a random time; more packets evenly over the time that the router gives.
    fn plan_answer(&mut self, now: Nanos, max_response: Nanos, draw: impl FnOnce(Nanos) -> Nanos) {
        let Some(slot) = self.groups.first() else {
            return;
        };
        let first = Cursor { slot, sources: 0 };
        let cursor = self.answer.map_or(first, |answer| answer.cursor);
        let mut packets = self.packets_max();
        let mut again = 0;
        if cursor != first {
            // The end of the table ends a packet.
            packets += 1;
            let group = self.groups.at(cursor.slot);
            let number = group.map_or(0, |group| group.number);
            again = number + u64::from(cursor.sources > 0);
        }
        let (pace, at, is_too_high) = Pace::new(now, max_response, packets, draw);
        if is_too_high {
            self.counts.count(Count::RateTooHigh);
        }
        let answer = Answer {
            cursor,
            below: self.groups.next_number(),
            again,
            at,
            pace,
        };
        self.answer = Some(answer.merged(self.answer));
    }

    /// How many packets report all groups, at most.
    fn packets_max(&self) -> usize {
        let groups = self.groups.len();
        if self.version != F::VERSION_MAX {
            return groups;
        }
        let record = record_bytes(F::ADDRESS_BYTES);
        let budget = report::budget::<F>(self.mtu);
        let sources = self.groups.sources_len();
        let bytes = groups * record + sources * F::ADDRESS_BYTES;
        if bytes <= budget {
            return 1;
        }
        if sources == 0 {
            return groups.div_ceil(budget / record);
        }
        // A packet may begin with the rest of a group, whose record it repeats, and has too little
        // room at its end for a record with a source.
        let used = (budget + 1).saturating_sub(2 * record + F::ADDRESS_BYTES);
        bytes.div_ceil(used.max(1))
    }

    /// Sends the packets of an answer that are due.
    fn continue_answer(&mut self, now: Nanos, send: &mut Send<'_, F::Address>) {
        while let Some(answer) = self.answer.filter(|answer| answer.at <= now) {
            let next = self.send_page(answer.cursor, answer.below, false, send);
            let rest = self.rest(answer, next);
            self.answer = rest.map(|rest| Answer {
                at: rest.pace.next(rest.at),
                ..rest
            });
        }
    }

    /// An answer from a place in the table on; behind the end of the table it goes on at its beginning.
    fn rest(&self, answer: Answer, next: Option<Cursor>) -> Option<Answer> {
        let is_part = |cursor: Cursor, below| {
            let group = self.groups.at(cursor.slot);
            group.is_some_and(|group| group.number < below)
        };
        if let Some(cursor) = next.filter(|next| is_part(*next, answer.below)) {
            return Some(Answer { cursor, ..answer });
        }
        let slot = self.groups.first()?;
        let cursor = Cursor { slot, sources: 0 };
        let rest = Answer {
            cursor,
            below: answer.again,
            again: 0,
            ..answer
        };
        is_part(cursor, rest.below).then_some(rest)
    }

    /// Sends one packet of an answer, from a place in the table on and before the first group of a
    /// number; returns where the next begins.
    fn send_page(
        &mut self,
        from: Cursor,
        below: u64,
        is_single: bool,
        send: &mut Send<'_, F::Address>,
    ) -> Option<Cursor> {
        let mut packer = Packer::<F>::new(self.mtu);
        let mut next = Some(from);
        while let Some(cursor) = next {
            let group = self.groups.at(cursor.slot);
            let Some(group) = group.filter(|group| group.number < below) else {
                next = None;
                break;
            };
            let behind = self.groups.next(cursor.slot).filter(|_| !is_single);
            let behind = behind.map(|slot| Cursor { slot, sources: 0 });
            let rest = group.sources().get(cursor.sources..).unwrap_or_default();
            let kind = match group.sources {
                None => RecordKind::IsExclude,
                // From no source at all is not listened to (RFC 3376 section 3.2).
                Some(_) if rest.is_empty() => {
                    next = behind;
                    continue;
                }
                Some(_) => RecordKind::IsInclude,
            };
            if self.version != F::VERSION_MAX {
                let message = Message::Report(group.address);
                self.deliver(message, Count::Answers, send);
                return behind;
            }
            match packer.push(kind, group.address, rest) {
                None => break,
                Some(fit) if fit < rest.len() => {
                    next = Some(Cursor {
                        sources: cursor.sources + fit,
                        ..cursor
                    });
                    break;
                }
                Some(_) => next = behind,
            }
        }
        if packer.is_empty() {
            return None;
        }
        let count = if packer.has_sources() {
            Count::SourceAnswers
        } else {
            Count::Answers
        };
        self.deliver(packer.message(), count, send);
        next
    }

    /// Hands a message on, and counts what became of it.
    fn deliver(
        &mut self,
        message: Message<'_, F::Address>,
        count: Count,
        send: &mut Send<'_, F::Address>,
    ) {
        self.counts.count(match send(message, self.version) {
            Ok(()) => count,
            Err(Mute::NoDesignator) => Count::NoDesignator,
            Err(Mute::NoAddress) => Count::NoDesignatorAddress,
            Err(Mute::Unknown) => return,
        });
    }

    /// The answer in the making without a group that is about to go: where that is next, it goes on
    /// behind it.
    fn answer_without(&self, address: F::Address) -> Option<Answer> {
        let answer = self.answer?;
        if Some(answer.cursor.slot) != self.groups.slot(address) {
            return Some(answer);
        }
        let next = self.groups.next(answer.cursor.slot);
        self.rest(answer, next.map(|slot| Cursor { slot, sources: 0 }))
    }
}
