//! The words between control and the engine of a core.

use std::sync::Arc;

use allosaur_packet::MacAddress;
use allosaur_packet::rss::RssShare;

use super::filters::Blocklist;
use super::topology::Topology;
use crate::encapsulation::Encapsulation;
use crate::template::{CompiledProfile, PoolShare, Side};
use crate::time::Nanos;
use crate::transmit::PortIndex;

/// Numbers that runs of profiles may have: 0 to this, without it.
pub const RUNS_MAX: u16 = 2048;

/// A profile that runs, as control numbers it: below [`RUNS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunIndex(pub u16);

/// What the engine must know of a port.
#[derive(Clone, Debug)]
pub struct FlowPortInfo {
    /// Which side of flows it has.
    pub side: Side,
    /// Its MAC address.
    pub own_mac: MacAddress,
    /// Where a client's frames go: the other port, or the gateway.
    pub peer_mac: MacAddress,
    /// What clients send their packets in. A tunnel's frames are also recognised when they arrive;
    /// servers answer in what they were asked in.
    pub encapsulation: Encapsulation,
    /// The longest frame that it takes, without FCS.
    pub frame_bytes_max: usize,
    /// For a client's port: which part of pools it has.
    pub share: PoolShare,
}

/// What control tells the engine of a core.
#[derive(Debug)]
pub enum StatefulCommand {
    /// Starts a profile.
    Start {
        /// Its number, which none has that runs.
        run: RunIndex,
        /// What to do.
        profile: Arc<CompiledProfile>,
        /// What the rates are multiplied by.
        factor: f64,
        /// When it begins.
        start_at: Nanos,
        /// How long flows begin; `None` is until it is stopped.
        duration: Option<Nanos>,
        /// Whether client ports begin flows, as bits by port, of all cores. With none at all, the
        /// profile only serves, until its time is over or it is stopped.
        clients: u32,
        /// How long it waits for its flows.
        limits: RunLimits,
    },
    /// Other rates from now on.
    Update {
        /// Which.
        run: RunIndex,
        /// What the rates are multiplied by.
        factor: f64,
    },
    /// Begins no more flows, and tells when all are over.
    Stop {
        /// Which.
        run: RunIndex,
        /// Ends the flows that there are at once.
        abort: bool,
    },
    /// All cores have told the end of a profile: from now on it serves nobody. Until then a core
    /// serves also after its own end, because clients of other cores may still ask.
    Retire {
        /// Which.
        run: RunIndex,
    },
    /// Forgets a profile, its counters and what is left of its flows.
    Remove {
        /// Which.
        run: RunIndex,
    },
    /// Which part of pools and rates a client's port has, in runs that start from now on.
    SetShare {
        /// The port; one that this core does not serve is left alone.
        port: PortIndex,
        /// Its part.
        share: PoolShare,
    },
    /// Where the frames of flows that begin from now on come from and go to, where no topology
    /// says more. Servers answer from their own MAC address to whoever asked, in its VLAN.
    SetLink {
        /// Of which port; one that this core does not serve is left alone.
        port: PortIndex,
        /// Its MAC address.
        own_mac: MacAddress,
        /// The other port's, or the gateway's.
        peer_mac: MacAddress,
        /// What clients send their packets in.
        encapsulation: Encapsulation,
    },
    /// Where the frames go by addresses of clients, for flows that begin from now on. It replaces the one
    /// before.
    SetTopology(Arc<Topology>),
    /// Lets clients rest, or begin flows again, of all profiles. Flows that there are go on.
    EnableClients {
        /// The first of the clients, by address: of IPv6, the last 32 bits.
        first: u32,
        /// The last of them.
        last: u32,
        /// Whether they begin flows.
        enabled: bool,
    },
    /// Whom servers do not serve, and who gets no resets. It replaces the list before.
    SetIgnored(Arc<Blocklist>),
}

/// How long a run waits for its flows. Without limits, flows take the time that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// How long after its first flow began one must be established, of those that this core's
    /// clients begin. Else it ends by [`EndCause::NotEstablished`].
    pub establish_max: Option<Nanos>,
    /// How long flows may go on when no more begin. What is left then is reset.
    pub close_max: Option<Nanos>,
}

/// What the engine of a core tells control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A profile begins no more flows, and all that it had are over.
    Ended {
        /// Which.
        run: RunIndex,
        /// When.
        at: Nanos,
        /// Why it began no more.
        cause: EndCause,
    },
}

/// Why a profile begins no more flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Its time is over, or it has begun all its flows.
    Done,
    /// It was stopped.
    Stopped,
    /// No flow was established in time ([`RunLimits::establish_max`]).
    NotEstablished,
}

/// Whose a frame was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// A flow's, or it was answered or counted as one that no flow wanted.
    Flow,
    /// TCP or UDP for no flow and no template. It was counted, and a segment answered, unless such
    /// frames are somebody else's ([`StatefulEngine::pass_unmatched`](super::StatefulEngine::pass_unmatched)).
    Unmatched,
    /// Neither TCP nor UDP, or of a port that this core does not serve.
    Other,
}

/// What a core is given.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its ports, by their number; those that it does not serve are `None`.
    pub ports: Vec<Option<FlowPortInfo>>,
    /// By the same numbers, what the cards of ports with clients bring to this core; fewer are none.
    /// Clients there begin flows from ports by which the answers come here; elsewhere from those `p`
    /// with `p % cores == rank`.
    pub rss: Vec<Option<Arc<RssShare>>>,
    /// Flows at the same time.
    pub flows_max: usize,
    /// Where random numbers begin.
    pub seed: u64,
}
