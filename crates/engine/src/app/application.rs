//! The seam for applications over bytes: what a flow runs that is no program, such as TLS or HTTP.
//!
//! An application is driven by its flow, and has no clock, socket or thread: it is told what
//! happened ([`handle_event`](Application::handle_event), [`handle_data`](Application::handle_data),
//! [`handle_timeout`](Application::handle_timeout)), then asked what it has to say
//! ([`poll_output`](Application::poll_output)) until there is nothing, and when it wants to be woken
//! ([`poll_timeout`](Application::poll_timeout)). When its flow is gone, however it ended, it is
//! dropped.

use std::fmt::Debug;

use super::buffers::BufferIndex;
use super::counters::ApplicationCounters;
use crate::rng::Lcg;
use crate::tcp::End;
use crate::time::Nanos;

/// What an application works with.
#[derive(Debug)]
pub struct ApplicationContext<'a> {
    /// The time.
    pub now: Nanos,
    /// Where random numbers come from: seeded, so that a run can be repeated.
    pub rng: &'a mut Lcg,
    /// Where it counts; the counters of the user are its own.
    pub counters: &'a mut ApplicationCounters,
}

/// What happened to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// The connection is there; a UDP flow has begun.
    Connected,
    /// The peer will send no more. All that it sent was consumed before this is told.
    PeerClosed,
    /// The connection ended so. Nothing can be sent any more.
    Ended(End),
}

/// What an application wants of its flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// TCP: send these bytes behind what was sent before. UDP: send them as one message.
    Data(Vec<u8>),
    /// The same with constant bytes of the profile, which are not copied.
    Buffer(BufferIndex),
    /// UDP: from now on, end the flow after a silence of so many milliseconds.
    Keepalive(u32),
    /// It is through: the flow completes when all that was said is acknowledged. TCP: a FIN follows.
    /// UDP: the flow is over. Nothing more is asked for then.
    Close,
    /// The same for one that failed: what came makes no sense, or the peer was done too early.
    Fail,
    /// It is through, and ends by a reset. UDP: as [`Close`](Output::Close).
    Reset,
}

/// An application on one flow.
pub trait Application: Debug + Send {
    /// Something happened to the flow.
    fn handle_event(&mut self, cx: &mut ApplicationContext<'_>, event: FlowEvent);

    /// TCP: these bytes arrived in order. Returns how many it consumed; the others come again, with
    /// what follows them, when the flow is next called for anything. Until then they are kept, and
    /// the receive window is smaller by them: who consumes nothing stops the peer.
    fn handle_data(&mut self, cx: &mut ApplicationContext<'_>, data: &[u8]) -> usize;

    /// UDP: a message arrived. It is not kept.
    fn handle_message(&mut self, cx: &mut ApplicationContext<'_>, message: &[u8]) {
        self.handle_data(cx, message);
    }

    /// The time of [`poll_timeout`](Application::poll_timeout) has come.
    fn handle_timeout(&mut self, _cx: &mut ApplicationContext<'_>) {}

    /// What it has to say next. The transport takes `room` bytes more now; what is beyond that waits
    /// in memory until it is acknowledged, and nothing is asked for while there is no room.
    fn poll_output(&mut self, cx: &mut ApplicationContext<'_>, room: usize) -> Option<Output>;

    /// When [`handle_timeout`](Application::handle_timeout) is due.
    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}

/// Makes the applications of the flows of one side of a template; data threads share it.
pub trait ApplicationFactory: Debug + Send + Sync {
    /// The application of one more flow.
    fn start(&self) -> Box<dyn Application>;
}
