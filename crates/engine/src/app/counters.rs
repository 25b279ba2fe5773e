//! What applications and UDP flows count, by TRex's names.

use crate::stats::counters;

/// How many counters belong to the user.
pub const USER_COUNTERS: usize = 4;

/// Counters of the applications of one side of one template. All only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationCounters {
    /// What programs added to `user_counter_A` to `user_counter_D`.
    pub user: [u64; USER_COUNTERS],
    /// Flows that programs made.
    pub flows_total: u64,
    /// Those of another group than the one before.
    pub flows_other: u64,
}

impl ApplicationCounters {
    /// The names, in the order of [`values`](ApplicationCounters::values).
    pub const NAMES: &'static [&'static str] = &[
        "user_counter_A",
        "user_counter_B",
        "user_counter_C",
        "user_counter_D",
        "flows_total",
        "flows_other",
    ];

    /// The values, in the order of [`NAMES`](ApplicationCounters::NAMES).
    pub fn values(&self) -> [u64; Self::NAMES.len()] {
        let [a, b, c, d] = self.user;
        [a, b, c, d, self.flows_total, self.flows_other]
    }

    /// Counters with these values, in the order of [`NAMES`](ApplicationCounters::NAMES).
    pub fn from_values(values: [u64; Self::NAMES.len()]) -> ApplicationCounters {
        let [a, b, c, d, flows_total, flows_other] = values;
        ApplicationCounters {
            user: [a, b, c, d],
            flows_total,
            flows_other,
        }
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &ApplicationCounters) {
        for (mine, theirs) in self.user.iter_mut().zip(other.user) {
            *mine = mine.wrapping_add(theirs);
        }
        self.flows_total += other.flows_total;
        self.flows_other += other.flows_other;
    }
}

counters! {
    /// Counters of the UDP flows of one side of one template, by TRex's names without `udps_`. All
    /// only grow.
    UdpCounters;
    /// Flows that another side began.
    accepts,
    /// Flows that we began.
    connects,
    /// Flows that are gone.
    closed,
    /// Bytes of messages sent.
    sndbyte,
    /// Messages sent.
    sndpkt,
    /// Bytes of messages that arrived.
    rcvbyte,
    /// Messages that arrived.
    rcvpkt,
    /// Flows given up because they were silent.
    keepdrops,
    /// Messages that could not be sent for want of memory.
    nombuf,
    /// Messages that are too long for a packet.
    pkt_toobig,
}
