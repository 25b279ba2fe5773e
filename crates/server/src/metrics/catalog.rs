//! What there is to be counted: names, and where the counters lie.
//!
//! A catalog costs control next to nothing, however much there is: whoever asked for it reads the
//! counters, on a thread of its own.

use std::sync::Arc;

use allosaur_engine::flow_stats::Group;
use allosaur_engine::template::CompiledProfile;

use crate::counters::{BgpSessionBlock, EchoBlock, GroupReadout, GroupTraffic, RunBlock, Snapshot};

/// All that is counted, as it is at a time.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The server's version, with a leading `v`.
    pub version: String,
    /// When it was built.
    pub built: String,
    /// How long the server runs.
    pub uptime_s: f64,
    /// The ports, in order.
    pub ports: Vec<CatalogPort>,
    /// The packet groups, in order of their `pg_id`.
    pub groups: Vec<CatalogGroup>,
    /// The profiles of flows that run, or have run.
    pub runs: Vec<CatalogRun>,
    /// The echo streams that run, or ran last.
    pub echo: Option<CatalogEcho>,
    /// The sessions of BGP speakers.
    pub bgp_sessions: Vec<CatalogBgpSession>,
    /// What is not as it should be; control knows nothing of that.
    pub problems: Vec<String>,
}

/// A port.
#[derive(Clone, Debug)]
pub struct CatalogPort {
    /// The kind of port.
    pub driver: String,
    /// The interface that it is on, or nothing.
    pub interface: String,
    /// What it is, in words.
    pub description: String,
    /// The port at the other end, where that is known.
    pub peer: Option<u8>,
    /// What clients call its mode.
    pub mode: &'static str,
    /// Whether its link is up.
    pub is_link_up: bool,
    /// Whether it sends streams or a capture, or has flows.
    pub is_sending: bool,
    /// Its profiles that have streams.
    pub profiles: Vec<CatalogProfile>,
}

/// A profile of streams of a port.
#[derive(Clone, Debug)]
pub struct CatalogProfile {
    /// Its name.
    pub name: String,
    /// How many streams it has.
    pub streams: usize,
    /// Whether it is sent, or pauses.
    pub is_running: bool,
}

/// A packet group.
#[derive(Clone, Debug)]
pub struct CatalogGroup {
    /// What clients call it.
    pub pg_id: u32,
    /// Where its counters are.
    pub group: Group,
    /// Which of the groups that were there one after the other it is, for its latency.
    pub version: u32,
    /// What was counted there before it was made, by port.
    pub before: Arc<[GroupTraffic]>,
    /// The profiles that its streams are in.
    pub profiles: Arc<str>,
    /// The ports that its streams are on, a bit each.
    pub senders: u32,
}

/// A profile of flows that runs, or has run.
#[derive(Clone, Debug)]
pub struct CatalogRun {
    /// Its name.
    pub profile: String,
    /// What runs.
    pub compiled: Arc<CompiledProfile>,
    /// What each data thread has counted.
    pub blocks: Vec<Arc<RunBlock>>,
    /// Whether all flows are over.
    pub is_over: bool,
    /// Connections per second that are asked for.
    pub offered_cps: f64,
}

/// Echo streams beside flows.
#[derive(Clone, Debug)]
pub struct CatalogEcho {
    /// The profile that they were started with; empty when they were started by themselves.
    pub profile: String,
    /// What they measured.
    pub block: Arc<EchoBlock>,
}

/// A session of a BGP speaker.
#[derive(Clone, Debug)]
pub struct CatalogBgpSession {
    /// The name of the speaker.
    pub speaker: String,
    /// The address of the peer.
    pub peer: String,
    /// What it has counted.
    pub block: Arc<BgpSessionBlock>,
}

/// What metrics are read of.
#[derive(Clone, Copy, Debug)]
pub struct Readout<'a> {
    /// What there is.
    pub catalog: &'a Catalog,
    /// What all threads have counted.
    pub snapshot: &'a Snapshot,
    /// What they have counted of packet groups.
    pub groups: &'a dyn GroupReadout,
}
