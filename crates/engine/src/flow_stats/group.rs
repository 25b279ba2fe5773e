//! Groups of packets that are counted together.

/// Groups that are only counted.
pub const FLOW_GROUPS: u16 = 1023;
/// Groups whose latency is measured.
pub const LATENCY_GROUPS: u16 = 128;
/// All groups.
pub const GROUPS: usize = FLOW_GROUPS as usize + LATENCY_GROUPS as usize;

/// A group of packets that are counted together: its place among all [`GROUPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group(u16);

impl Group {
    /// The `n`-th of the groups that are only counted.
    pub fn flow(n: u16) -> Option<Group> {
        (n < FLOW_GROUPS).then_some(Group(n))
    }

    /// The `n`-th of the groups whose latency is measured.
    pub fn latency(n: u16) -> Option<Group> {
        (n < LATENCY_GROUPS).then_some(Group(FLOW_GROUPS + n))
    }

    /// Whether its latency is measured.
    pub fn is_latency(self) -> bool {
        self.0 >= FLOW_GROUPS
    }

    /// The place among all groups.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The number on the wire: the place among the groups of its kind.
    pub fn wire_id(self) -> u16 {
        self.0.checked_sub(FLOW_GROUPS).unwrap_or(self.0)
    }
}
