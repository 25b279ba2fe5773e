//! What control asks of the thread that has the sessions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use allosaur_api::commands::routes::{RoutesAnnounced, RoutesShown};
use allosaur_bgp::routes::table::RouteTable;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_nodes::namespace::NetworkNamespace;

use crate::counters::BgpSessionBlock;

/// What the answer to a request is: the error is for users, with the remedy.
pub(crate) type RouteResult = Result<RouteAnswer, String>;

/// What is asked.
#[derive(Debug)]
pub(crate) enum RouteRequest {
    /// A new speaker.
    AddSpeaker(SpeakerSpec),
    /// A new session of a speaker.
    AddSession {
        /// The speaker.
        speaker: String,
        /// The session.
        session: Box<SessionSpec>,
    },
    /// A table for all sessions of a speaker.
    Announce {
        /// The speaker.
        speaker: String,
        /// What the table is called.
        name: String,
        /// Its routes.
        table: Arc<RouteTable>,
        /// Routes per second.
        rate: Option<u32>,
    },
    /// A table is withdrawn.
    Withdraw {
        /// The speaker.
        speaker: String,
        /// The table.
        name: String,
        /// Routes per second.
        rate: Option<u32>,
    },
    /// Routes of a table are withdrawn and announced again.
    Flap {
        /// The speaker.
        speaker: String,
        /// The table.
        name: String,
        /// How often.
        times: u32,
        /// Routes per second.
        rate: u32,
        /// Which share of them, 0 to 1.
        share: f64,
    },
    /// How all is.
    Show {
        /// Of this speaker alone.
        speaker: Option<String>,
    },
    /// A session, or a speaker with all it has, goes.
    Remove {
        /// The speaker.
        speaker: String,
        /// The session with this peer alone.
        peer: Option<IpAddr>,
    },
}

/// What is answered.
#[derive(Debug)]
pub(crate) enum RouteAnswer {
    /// It is done.
    Done,
    /// A table is being sent.
    Announced(RoutesAnnounced),
    /// How all is.
    Shown(RoutesShown),
}

/// What a speaker is to be.
#[derive(Clone, Debug)]
pub(crate) struct SpeakerSpec {
    /// Its name.
    pub(crate) name: String,
    /// Its AS number.
    pub(crate) asn: u32,
    /// Its BGP Identifier.
    pub(crate) router_id: Ipv4Addr,
    /// The hold time that it offers.
    pub(crate) hold_time_s: u16,
    /// Where its sockets are.
    pub(crate) place: SpeakerPlace,
    /// The TCP port on which it waits for peers.
    pub(crate) tcp_port: u16,
}

/// Where the sockets of a speaker are.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpeakerPlace {
    /// The namespace; none is the server's own.
    pub(crate) namespace: Option<NetworkNamespace>,
    /// The addresses that connections may come from, of each family the first.
    pub(crate) addresses: Vec<IpAddr>,
}

impl SpeakerPlace {
    /// The address that connections to a peer come from; none where the system chooses.
    pub(crate) fn address_to(&self, peer: IpAddr) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().copied();
        addresses.find(|own| own.is_ipv4() == peer.is_ipv4())
    }
}

/// What a session is to be.
#[derive(Clone, Debug)]
pub(crate) struct SessionSpec {
    /// The session, as its state machine knows it, but for what the speaker says.
    pub(crate) config: BgpSessionConfig,
    /// The peer.
    pub(crate) peer: SocketAddr,
    /// The key by which segments are signed.
    pub(crate) md5: Option<String>,
    /// Where its counters are published.
    pub(crate) block: Arc<BgpSessionBlock>,
}
