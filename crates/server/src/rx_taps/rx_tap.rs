//! What all taps on the frames of ports have in common.

use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use super::message::{Answer, Request};
use super::port::PortState;

/// Sees frames of ports, and may send some: a capture, a host that answers, an emulated client. A
/// state machine without I/O; [`RxTaps`](super::RxTaps) drives it:
///
/// 1. [`handle_request`](RxTap::handle_request), whenever control asks something. After it, and
///    after frames were sent, [`wants`](RxTap::wants) may have changed and is asked again.
/// 2. [`handle_frame`](RxTap::handle_frame), for each frame of a port that it wants.
/// 3. [`poll_transmit`](RxTap::poll_transmit) after that, and at the time that
///    [`poll_timeout`](RxTap::poll_timeout) says.
pub trait RxTap: Send + fmt::Debug {
    /// Does what is asked, or gives the request back when it is another tap's.
    fn handle_request(&mut self, request: Request, _now: Nanos) -> ControlFlow<Answer, Request> {
        ControlFlow::Continue(request)
    }

    /// The ports of which it wants frames that were received or sent, as bits.
    fn wants(&self, origin: Origin) -> u64;

    /// Takes a frame of a port that it wants. True when the frame is its own, so that no tap behind
    /// it that [answers](RxTap::answers) shall see it.
    fn handle_frame(&mut self, at: Nanos, port: PortIndex, origin: Origin, frame: &[u8]) -> bool;

    /// Asks the cache for what frames of a port that it wants will need, before it is given one after the
    /// other: the cache misses of a tap with a large table wait together.
    fn prefetch(&self, _port: PortIndex, _frames: &mut dyn Iterator<Item = &[u8]>) {}

    /// Hands the frames that ports shall send to `send`, which says whether there was room; one
    /// that finds none is lost.
    fn poll_transmit(&mut self, _now: Nanos, _send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {}

    /// When [`poll_transmit`](RxTap::poll_transmit) has something to send that cannot be late.
    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    /// Whether its timeouts may be a little late: no thread stays awake shortly before them.
    fn is_deferrable(&self) -> bool {
        false
    }

    /// Whether it takes part in the network: it then sees all frames, whatever the port's service
    /// mode shows, until a tap before it has one of its own. The others watch.
    fn answers(&self) -> bool {
        false
    }

    /// Whether it sees only frames that the port's service mode shows.
    fn is_filtered(&self) -> bool {
        !self.answers()
    }

    /// What becomes readable when [`poll_transmit`](RxTap::poll_transmit) has something to send by a port
    /// that came from outside of this thread.
    fn file_of(&self, _port: usize) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The ports of which it measures when frames arrive, as bits: a sleep would be measured too.
    fn measured_ports(&self) -> u64 {
        0
    }

    /// Whether [`wants`](RxTap::wants) changes by itself, too: then it is asked before each look at ports.
    fn wants_change(&self) -> bool {
        false
    }

    /// Whether there is nothing to see or to send.
    fn is_idle(&self) -> bool {
        self.wants(Origin::Received) | self.wants(Origin::Transmitted) == 0
    }

    /// Takes note of frames, sent or received, that it could not be shown.
    fn note_lost(&mut self, _origin: Origin, _frames: u64) {}

    /// Adds what it knows of a port.
    fn describe_port(&self, _port: PortIndex, _state: &mut PortState) {}
}

/// A port's bit.
pub(super) fn bit(port: usize) -> u64 {
    1 << port
}

/// The bits of the ports that hold something, for taps with a place for each port.
pub(super) fn bits_of<T>(ports: &[Option<T>]) -> u64 {
    let held = ports.iter().enumerate().filter(|(_, held)| held.is_some());
    held.fold(0, |bits, (port, _)| bits | bit(port))
}
