//! What control sees of the world: counters, time, files, watchers and devices.

use allosaur_engine::time::Nanos;

use super::netdevs::Netdevs;
use crate::control::View;
use crate::counters::{Counters, Snapshot};
use crate::threads::RxHandle;
use crate::threads::clock::Clock;

/// What control sees of the world.
pub(super) struct ControlContext {
    pub(super) counters: Counters,
    pub(super) snapshot: Snapshot,
    pub(super) clock: Clock,
    pub(super) rx_handle: RxHandle,
    pub(super) netdevs: Netdevs,
}

impl ControlContext {
    pub(super) fn now_ns(&self) -> Nanos {
        self.clock.now_ns()
    }

    /// Looks at what the threads have counted.
    pub(super) fn refresh(&mut self) {
        self.counters.read(&mut self.snapshot);
    }

    /// What control sees at that time.
    pub(super) fn view(&self, now_ns: Nanos) -> View<'_> {
        View {
            now_ns,
            snapshot: &self.snapshot,
            groups: &self.counters,
            endpoints: &self.rx_handle,
            devices: &self.netdevs,
        }
    }
}
