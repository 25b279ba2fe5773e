//! Who sees the frames of a simulation.

use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;

/// Whether a frame leaves a side, or comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It was sent.
    Leaves,
    /// It arrived.
    Arrives,
}

/// Somebody who sees all frames at both ends of the link, in the order of time.
pub trait LinkWatch {
    /// A frame passes a port. `at` is the time since the simulation began.
    fn see(&mut self, at: Nanos, side: Side, passing: Passing, frame: &[u8]);
}

/// Nobody.
impl LinkWatch for () {
    fn see(&mut self, _: Nanos, _: Side, _: Passing, _: &[u8]) {}
}

/// Two who see the same.
impl<A: LinkWatch, B: LinkWatch> LinkWatch for (A, B) {
    fn see(&mut self, at: Nanos, side: Side, passing: Passing, frame: &[u8]) {
        self.0.see(at, side, passing, frame);
        self.1.see(at, side, passing, frame);
    }
}

impl<W: LinkWatch> LinkWatch for &mut W {
    fn see(&mut self, at: Nanos, side: Side, passing: Passing, frame: &[u8]) {
        (**self).see(at, side, passing, frame);
    }
}
