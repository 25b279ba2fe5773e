//! What a flow works with in each call, and what it leaves behind.

use allosaur_packet::shared_payload::SharedPayload;

use super::app_latency::{Connections, LatencyCounters};
use super::application::ApplicationPool;
use super::flow_times::FlowTimes;
use super::links::Links;
use super::outbox::OutboxPool;
use super::outcome::OutcomeCounters;
use crate::app::{
    AppFlowInfo, ApplicationCounters, Buffers, FlowId, Program, UdpCounters, VariablePool,
};
use crate::flow::{AddressSpaces, FlowKey};
use crate::rng::Lcg;
use crate::tcp::{RecoveryPool, TcpContext, TcpCounters, Tunables};
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// What one side of the flows of one template counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideCounters {
    /// TCP.
    pub tcp: TcpCounters,
    /// UDP.
    pub udp: UdpCounters,
    /// Programs.
    pub application: ApplicationCounters,
    /// The add-on "latency".
    pub latency: LatencyCounters,
    /// How flows ended.
    pub outcomes: OutcomeCounters,
    /// What applications over bytes count, by the rows of the profile.
    pub rows: Box<[u64]>,
}

impl SideCounters {
    /// Adds what the applications of another have counted, of the same profile.
    pub fn add_rows(&mut self, others: &[u64]) {
        if self.rows.is_empty() {
            self.rows = others.into();
            return;
        }
        for (mine, others) in self.rows.iter_mut().zip(others) {
            *mine += others;
        }
    }
}

/// How the frames of one side of a template look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderDefaults {
    /// The type of service, or traffic class.
    pub type_of_service: u8,
    /// Time to live, or hop limit.
    pub time_to_live: u8,
    /// The longest frame that its port takes, without FCS.
    pub frame_bytes_max: usize,
}

/// What the flows of a core share.
#[derive(Debug, Default)]
pub struct Pools {
    /// For TCP while something is lost.
    pub recovery: RecoveryPool,
    /// For programs with variables.
    pub variables: VariablePool,
    /// Applications over bytes.
    pub applications: ApplicationPool,
    /// For flows that send several buffers.
    pub outboxes: OutboxPool,
    /// Where the frames of flows go.
    pub links: Links,
    /// What the addresses of flows belong to.
    pub spaces: AddressSpaces,
    /// Numbers for connections of the add-on "latency".
    pub connections: Connections,
    /// Where random times come from.
    pub rng: Lcg,
    /// What TCP's clock said at the engine's time 0, in milliseconds.
    pub tcp_began_ms: u32,
    /// The time of all that happens now, see [`set_clock`](Pools::set_clock).
    pub clock: Clock,
}

impl Pools {
    /// TCP's clock: milliseconds that go round.
    pub fn tcp_ms(&self, now: Nanos) -> u32 {
        ((now / MILLISECOND) as u32).wrapping_add(self.tcp_began_ms)
    }

    /// It is `now`: to be said before a flow is called. It is the same for all that happens in a turn,
    /// so that other units of it are mostly known.
    #[inline]
    pub fn set_clock(&mut self, now: Nanos) {
        if self.clock.at != now {
            self.clock = Clock {
                at: now,
                ms: now / MILLISECOND,
                us: (now / MICROSECOND) as u32,
                tcp_ms: self.tcp_ms(now),
            };
        }
    }
}

/// A time in other units than nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    at: Nanos,
    /// Whole milliseconds.
    pub ms: u64,
    /// Whole microseconds; they go round.
    pub us: u32,
    /// TCP's clock: milliseconds that go round.
    pub tcp_ms: u32,
}

impl Clock {
    /// What a TCP connection works with at this time, where all that it delivers is consumed.
    #[inline(always)]
    pub(super) fn tcp<'a>(
        &self,
        tunables: &'a Tunables,
        counters: &'a mut SideCounters,
        recovery: &'a mut RecoveryPool,
    ) -> TcpContext<'a> {
        TcpContext {
            now_ms: self.tcp_ms,
            now_us: self.us,
            tunables,
            unread_bytes: 0,
            counters: &mut counters.tcp,
            recovery,
        }
    }
}

impl Default for Clock {
    /// Of no time that is ever asked for.
    fn default() -> Clock {
        Clock {
            at: Nanos::MAX,
            ms: 0,
            us: 0,
            tcp_ms: 0,
        }
    }
}

/// What a flow works with: the same things, by value, in each call.
#[derive(Debug)]
pub struct FlowContext<'a> {
    /// The time.
    pub now: Nanos,
    /// What it runs.
    pub program: &'a Program,
    /// What it sends.
    pub buffers: &'a Buffers,
    /// How its TCP behaves.
    pub tunables: &'a Tunables,
    /// How its frames look.
    pub headers: HeaderDefaults,
    /// Where it counts.
    pub counters: &'a mut SideCounters,
    /// What all flows share, with the time in other units.
    pub pools: &'a mut Pools,
    /// How long the flows of its run took, of clients.
    pub times: &'a mut FlowTimes,
    /// Its template, by its place in the profile.
    pub template: u16,
}

impl FlowContext<'_> {
    /// What its TCP connection works with.
    pub(super) fn tcp(&mut self) -> TcpContext<'_> {
        let pools = &mut *self.pools;
        pools
            .clock
            .tcp(self.tunables, self.counters, &mut pools.recovery)
    }

    /// What an application over bytes is told of a flow.
    pub(super) fn flow_info(&self, id: FlowId, key: &FlowKey, is_client: bool) -> AppFlowInfo {
        let (local, remote) = key.endpoints(&self.pools.spaces);
        AppFlowInfo {
            id,
            local,
            remote,
            is_client,
            template: self.template,
        }
    }
}

/// Where the frames of a flow leave: one transmit queue.
pub trait FrameTx {
    /// Has a frame of so many bytes written by `write`, and sends it; `false`, and nothing
    /// happens, when there is no room.
    fn send(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool;

    /// The same for a frame that ends with `payload`; `write` writes the `head_bytes` before it.
    fn send_sharing(
        &mut self,
        head_bytes: usize,
        payload: SharedPayload<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        self.send(head_bytes + payload.len, |frame| {
            let (head, place) = frame.split_at_mut(head_bytes);
            place.copy_from_slice(payload.slice());
            write(head);
        })
    }

    /// The same for frames that end with `payloads` each, until there are no more or there is no room;
    /// `write` writes what is before one. Returns how many were sent.
    fn send_run<'p>(
        &mut self,
        head_bytes: usize,
        payloads: impl Iterator<Item = SharedPayload<'p>>,
        mut write: impl FnMut(&SharedPayload<'p>, &mut [u8]),
    ) -> u32 {
        let mut sent = 0;
        for payload in payloads {
            if !self.send_sharing(head_bytes, payload, |head| write(&payload, head)) {
                break;
            }
            sent += 1;
        }
        sent
    }
}

/// How a flow stands after it was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStatus {
    /// It goes on; call [`Session::handle_timeout`] at this time.
    Open(Option<Nanos>),
    /// The tx queue is full: call [`Session::handle_writable`] when it no longer is; and at this time.
    Blocked(Option<Nanos>),
    /// It is over: release it, and forget it.
    Over,
}
