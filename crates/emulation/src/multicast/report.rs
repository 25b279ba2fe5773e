//! Membership reports, packed into packets: the records of IGMPv3 (RFC 3376 section 4.2) and of
//! MLDv2 (RFC 3810 section 5.2), which differ in the length of an address alone, and the single
//! messages of the versions before them.

use super::Family;

/// Kinds of records, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// An answer: from these sources alone.
    IsInclude = 1,
    /// An answer: from all sources but these.
    IsExclude = 2,
    /// A change: from now on these sources alone; without sources, the group is left.
    ToInclude = 3,
    /// A change: from now on all sources but these; without sources, the group is joined.
    ToExclude = 4,
    /// A change: these sources too.
    Allow = 5,
    /// A change: these sources no longer.
    Block = 6,
}

/// What is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'m, A> {
    /// A report of the newest version: its records and how many they are.
    Records {
        /// How many.
        count: u16,
        /// The records as on the wire.
        bytes: &'m [u8],
    },
    /// A report of an older version: a group is listened to.
    Report(A),
    /// A group is left, in an older version.
    Leave(A),
}

/// Bytes of a record before its sources.
pub(crate) const fn record_bytes(address_bytes: usize) -> usize {
    4 + address_bytes
}

/// Records of one packet that is being filled.
#[derive(Debug)]
pub(crate) struct Packer<F: Family> {
    bytes: Vec<u8>,
    count: u16,
    budget: usize,
    has_sources: bool,
    family: std::marker::PhantomData<F>,
}

impl<F: Family> Packer<F> {
    /// An empty packet of a link with an MTU.
    pub(crate) fn new(mtu: u16) -> Self {
        Packer {
            bytes: Vec::new(),
            count: 0,
            budget: budget::<F>(mtu),
            has_sources: false,
            family: std::marker::PhantomData,
        }
    }

    /// Adds a record with as many of the sources as there is room for. Says how many that were;
    /// `None` when there is no room for the record, or for any source of it.
    pub(crate) fn push(
        &mut self,
        kind: RecordKind,
        group: F::Address,
        sources: &[F::Address],
    ) -> Option<usize> {
        let room = self.budget.checked_sub(self.bytes.len())?;
        let room = room.checked_sub(record_bytes(F::ADDRESS_BYTES))?;
        let fit = sources.len().min(room / F::ADDRESS_BYTES);
        if fit == 0 && !sources.is_empty() {
            return None;
        }
        let listed = u16::try_from(fit).ok()?;
        self.count = self.count.checked_add(1)?;
        self.bytes.extend([kind as u8, 0]);
        self.bytes.extend(listed.to_be_bytes());
        self.bytes.extend(group.as_ref());
        for source in &sources[..fit] {
            self.bytes.extend(source.as_ref());
        }
        self.has_sources |= fit != 0;
        Some(fit)
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether any record names sources.
    pub(crate) fn has_sources(&self) -> bool {
        self.has_sources
    }

    /// What is in it.
    pub(crate) fn message(&self) -> Message<'_, F::Address> {
        Message::Records {
            count: self.count,
            bytes: &self.bytes,
        }
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.has_sources = false;
    }
}

/// Bytes of records in a packet. The smallest MTU has room for a record and some sources.
pub(crate) fn budget<F: Family>(mtu: u16) -> usize {
    usize::from(mtu).saturating_sub(F::OVERHEAD_BYTES)
}
