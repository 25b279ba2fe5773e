//! The seam for applications over bytes: what a flow runs that is no program, such as TLS or HTTP.
//!
//! Each core has an [`AppCore`] of each factory, which holds the applications of its flows and what
//! they share: session caches, tickets, batches. It has no clock, socket or thread: it is told what
//! happened to a flow ([`handle_event`](AppCore::handle_event), [`handle_data`](AppCore::handle_data),
//! [`handle_timeout`](AppCore::handle_timeout)), then asked what the flow has to say
//! ([`poll_output`](AppCore::poll_output)) until there is nothing, and when it wants to be woken
//! ([`poll_timeout`](AppCore::poll_timeout)). When a flow is gone, however it ended, it is
//! [released](AppCore::release).
//!
//! A core that tells its UDP flows apart itself is a [`Demultiplexer`], too. `app_flows` has a core for
//! applications that are a struct a flow.

use std::fmt::Debug;
use std::net::SocketAddr;

use super::buffers::BufferIndex;
use super::counters::ApplicationCounters;
use super::datagram::{Datagram, DatagramBatch};
use super::end::ProgramEnd;
use super::http::StatusClass;
use super::variables::VariablePool;
use super::wakes::{FlowId, Wakes};
use crate::rng::Lcg;
use crate::tcp::End;
use crate::time::Nanos;

/// The application of a flow, by the number that its core gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AppFlow(pub u32);

/// A flow that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppFlowInfo {
    /// By this others wake it.
    pub id: FlowId,
    /// Our address and port.
    pub local: SocketAddr,
    /// Those of the peer.
    pub remote: SocketAddr,
    /// Whether we asked for it.
    pub is_client: bool,
    /// The template, by its place in the profile.
    pub template: u16,
}

/// The core on which an [`AppCore`] is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreInfo {
    /// Of its random numbers.
    pub seed: u64,
    /// What to add to the time that it is given for the time since 1970.
    pub unix_offset: Nanos,
    /// Its place among the cores of its ports: what a connection id may carry, so that a load balancer
    /// finds the core.
    pub rank: u32,
    /// How many these are.
    pub cores: u32,
}

impl Default for CoreInfo {
    /// The only one.
    fn default() -> CoreInfo {
        CoreInfo {
            seed: 0,
            unix_offset: 0,
            rank: 0,
            cores: 1,
        }
    }
}

/// A counter that an application declares: a row of the metrics registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppRow {
    /// Its name. Rows of one name stand together, and differ by label.
    pub name: &'static str,
    /// The name of its label, and the value.
    pub label: Option<(&'static str, &'static str)>,
    /// What it counts.
    pub help: &'static str,
    /// What there is one more of when it grows by one, such as `handshakes`.
    pub unit: &'static str,
    /// Whether it is 0 unless something goes wrong.
    pub is_error: bool,
    /// Whether it is told only where it is not 0, as errors are: one of many, of which most are 0.
    pub is_sparse: bool,
}

/// What an application works with.
#[derive(Debug)]
pub struct ApplicationContext<'a> {
    /// The time.
    pub now: Nanos,
    /// Where random numbers come from: seeded, so that a run can be repeated.
    pub rng: &'a mut Lcg,
    /// Where it counts for the user.
    pub counters: &'a mut ApplicationCounters,
    /// Where it counts what it has declared ([`ApplicationFactory::rows`]).
    pub rows: AppRowCounts<'a>,
    /// The variables of programs, where it runs one.
    pub variables: &'a mut VariablePool,
    /// What it is measured by.
    pub measures: &'a mut dyn AppMeasures,
    pub(crate) wakes: &'a mut Wakes,
}

impl ApplicationContext<'_> {
    /// Has a flow of this core called soon, with [`FlowEvent::Woken`]: once, however often it is woken
    /// until then.
    pub fn wake(&mut self, flow: FlowId) {
        self.wakes.push(flow);
    }

    /// The same for an application inside of this one, whose lists of rows follow the first `own` ones.
    pub fn inner(&mut self, own: usize) -> ApplicationContext<'_> {
        ApplicationContext {
            now: self.now,
            rng: self.rng,
            counters: self.counters,
            rows: AppRowCounts {
                counts: self.rows.counts,
                firsts: self.rows.firsts.get(own..).unwrap_or_default(),
            },
            variables: self.variables,
            measures: self.measures,
            wakes: self.wakes,
        }
    }
}

/// The counts of the rows that an application declared, by its lists of them.
#[derive(Debug)]
pub struct AppRowCounts<'a> {
    counts: &'a mut [u64],
    /// Where each list begins in `counts`.
    firsts: &'a [usize],
}

impl<'a> AppRowCounts<'a> {
    pub(crate) fn new(counts: &'a mut [u64], firsts: &'a [usize]) -> AppRowCounts<'a> {
        AppRowCounts { counts, firsts }
    }

    /// Adds to the row at this place of a list. A run that is no more counts nothing.
    #[inline]
    pub fn add(&mut self, list: usize, row: usize, count: u64) {
        let first = self.firsts.get(list).copied().unwrap_or(usize::MAX);
        if let Some(counted) = self.counts.get_mut(first.saturating_add(row)) {
            *counted += count;
        }
    }
}

/// What applications measure, as often as it happens in a call; only that of clients is counted.
pub trait AppMeasures: Debug {
    /// An answer over HTTP/1 began, with this status.
    fn count_status(&mut self, status: StatusClass);

    /// What secures the connection is there, and took so long.
    fn count_handshake(&mut self, took: Nanos);

    /// The first byte of a response came so long after its request.
    fn count_response_begin(&mut self, took: Nanos);

    /// The last byte of a response did.
    fn count_response(&mut self, took: Nanos);
}

/// What happened to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// The connection is there; a UDP flow has begun.
    Connected,
    /// TCP: all that was said is acknowledged. Only told where that is
    /// [wanted](AppCore::wants_acknowledged).
    Acknowledged,
    /// The peer will send no more. All that it sent was consumed before this is told.
    PeerClosed,
    /// Another flow woke it.
    Woken,
    /// The connection ended so. Nothing can be sent any more.
    Ended(End),
}

/// What an application wants of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// TCP: send the bytes that it has written behind what was sent before. UDP: send them as one
    /// message.
    Data,
    /// The same with constant bytes of the profile, which are not copied.
    Buffer(BufferIndex),
    /// UDP: send the bytes that it has written as datagrams. TCP: the same as [`Output::Data`].
    Datagrams(DatagramBatch),
    /// UDP: from now on, end the flow after a silence of so many milliseconds.
    Keepalive(u32),
    /// It is through: the flow completes when all that was said is acknowledged. TCP: a FIN follows.
    /// UDP: the flow is over. Nothing more is asked for then.
    Close,
    /// The same for one that failed: what came makes no sense, or the peer was done too early.
    Fail,
    /// The same for one that ran a program, which ended so.
    EndProgram(ProgramEnd),
    /// A program that it ran ended so, with all that it said acknowledged: the flow is judged by that,
    /// whatever comes later. What is said still, such as that the peer may close, is no part of it.
    Ended(ProgramEnd),
    /// It is through, and ends by a reset. UDP: as [`Close`](Output::Close).
    Reset,
}

/// The applications of the flows of one core, and what they share.
pub trait AppCore: Debug + Send {
    /// A flow begins. It is called by the number that this returns from now on.
    fn start(&mut self, cx: &mut ApplicationContext<'_>, flow: &AppFlowInfo) -> AppFlow;

    /// Something happened to a flow.
    fn handle_event(&mut self, flow: AppFlow, cx: &mut ApplicationContext<'_>, event: FlowEvent);

    /// TCP: these bytes arrived in order. Returns how many it consumed; the others come again, with
    /// what follows them, when the flow is next called for anything. Until then they are kept, and
    /// the receive window is smaller by them: who consumes nothing stops the peer.
    fn handle_data(&mut self, flow: AppFlow, cx: &mut ApplicationContext<'_>, data: &[u8])
    -> usize;

    /// UDP: a message arrived. It is not kept.
    fn handle_message(&mut self, flow: AppFlow, cx: &mut ApplicationContext<'_>, message: &[u8]) {
        self.handle_data(flow, cx, message);
    }

    /// The time of [`poll_timeout`](AppCore::poll_timeout) has come.
    fn handle_timeout(&mut self, _flow: AppFlow, _cx: &mut ApplicationContext<'_>) {}

    /// What a flow has to say next; bytes are written behind what is in `out`, which is empty. The
    /// transport takes `room` bytes more now; what is beyond that waits in memory until it is
    /// acknowledged, and nothing is asked for while there is no room.
    fn poll_output(
        &mut self,
        flow: AppFlow,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output>;

    /// When [`handle_timeout`](AppCore::handle_timeout) is due. A time that is over is 20 µs from now.
    fn poll_timeout(&self, _flow: AppFlow) -> Option<Nanos> {
        None
    }

    /// Whether its flows are told [`FlowEvent::Acknowledged`].
    fn wants_acknowledged(&self) -> bool {
        false
    }

    /// It tells its UDP flows apart itself: their datagrams are given to this, and not to
    /// [`handle_message`](AppCore::handle_message). Always the same answer: it is remembered.
    fn demultiplexer(&mut self) -> Option<&mut dyn Demultiplexer> {
        None
    }

    /// A flow is gone; its number may be given again.
    fn release(&mut self, flow: AppFlow, variables: &mut VariablePool);
}

/// Whose a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramRoute {
    /// That of a flow of this core, which has it: the flow is asked what it has to say.
    Flow(FlowId),
    /// It begins a connection: [`AppCore::start`](AppCore::start) is the next call. Where that
    /// cannot be (there are too many flows, we are the client, or a flow has these addresses and
    /// ports already), [`discard`](Demultiplexer::discard) is.
    Start,
    /// Of no connection. What was written goes back to where it came from: a Retry, a version
    /// negotiation, a stateless reset; nothing where nothing was written.
    Reply,
    /// Not one of this application: others are asked.
    Unknown,
}

/// An [`AppCore`] that tells its flows apart itself, as QUIC does by the ids in its packets: a connection may
/// move to other addresses and ports.
///
/// A flow is still made for each connection, by a template's rate or by the first datagram of a
/// client, and has the addresses and ports that it began with. But every datagram is handed to this,
/// with those that it came by, and it says whose it is: first where the flow table knows its
/// addresses and ports, else before it is refused.
pub trait Demultiplexer: Debug {
    /// A datagram arrived. It is not kept. A reply is written behind what is in `out`, which is empty.
    fn handle_datagram(
        &mut self,
        cx: &mut ApplicationContext<'_>,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> DatagramRoute;

    /// No flow is made for the connection that the last datagram began.
    fn discard(&mut self);
}

/// Makes the cores of the applications of one side of a template; data threads share it.
pub trait ApplicationFactory: Debug + Send + Sync {
    /// What its flows count beside what all do: a list for each layer, the outermost first. Factories
    /// that have a list in common count in the same rows.
    fn rows(&self) -> Vec<&'static [AppRow]> {
        Vec::new()
    }

    /// What runs its flows on one more core.
    fn core(&self, core: &CoreInfo) -> Box<dyn AppCore>;
}
