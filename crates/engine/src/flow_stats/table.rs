//! The counters of all groups, in one direction of one port, of one thread.

use super::group::{GROUPS, Group};

/// What is counted of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketGroupCounters {
    /// Packets.
    pub packets: u64,
    /// Bytes, with 4 of FCS a packet.
    pub bytes: u64,
    /// Packets that could not leave in time; always zero of what was received.
    pub missed_packets: u64,
}

impl PacketGroupCounters {
    /// Adds what another thread counted.
    pub fn add(&mut self, other: PacketGroupCounters) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.missed_packets += other.missed_packets;
    }

    /// What was counted since `earlier`.
    pub fn since(self, earlier: PacketGroupCounters) -> PacketGroupCounters {
        PacketGroupCounters {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            missed_packets: self.missed_packets.saturating_sub(earlier.missed_packets),
        }
    }
}

const WORDS: usize = GROUPS.div_ceil(64);

/// The counters of all groups.
#[derive(Clone, Debug)]
pub struct GroupTable {
    counters: Box<[PacketGroupCounters]>,
    /// A bit for each group.
    changed: [u64; WORDS],
}

impl Default for GroupTable {
    fn default() -> Self {
        GroupTable {
            counters: vec![PacketGroupCounters::default(); GROUPS].into(),
            changed: [0; WORDS],
        }
    }
}

impl GroupTable {
    /// Counts `packets` of `bytes` together, with FCS.
    #[inline]
    pub fn count(&mut self, group: Group, packets: u64, bytes: u64) {
        let counters = self.change(group);
        counters.packets += packets;
        counters.bytes += bytes;
    }

    /// Counts packets that could not leave in time.
    pub fn miss(&mut self, group: Group, packets: u64) {
        self.change(group).missed_packets += packets;
    }

    #[inline]
    fn change(&mut self, group: Group) -> &mut PacketGroupCounters {
        let index = group.index();
        self.changed[index / 64] |= 1 << (index % 64);
        &mut self.counters[index]
    }

    /// What was counted of a group.
    pub fn counters(&self, group: Group) -> PacketGroupCounters {
        self.counters[group.index()]
    }

    /// Shows the place and the counters of each group that has changed since the last call.
    #[inline]
    pub fn take_changed(&mut self, mut each: impl FnMut(usize, PacketGroupCounters)) {
        for (word, bits) in self.changed.iter_mut().enumerate() {
            while *bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                each(index, self.counters[index]);
            }
        }
    }
}
