//! The timers of an emulation, given to plugins: all that are due, or some.

use allosaur_engine::time::Nanos;

use crate::client::ClientId;
use crate::emulation::Emulation;
use crate::plugin::{PluginId, Timeout};

impl Emulation {
    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while self.handle_some_timeouts(now) {}
    }

    /// Does some of what is due by `now`, the earliest first: at most
    /// [`TIMERS_AT_ONCE`](crate::timers::TIMERS_AT_ONCE) timers. False when none was due.
    pub fn handle_some_timeouts(&mut self, now: Nanos) -> bool {
        if !self.shared.timers.gather(now) {
            return false;
        }
        self.prefetch_for_timers();
        self.handle_gathered(now);
        true
    }

    /// Gives the timers that were gathered to their plugins.
    fn handle_gathered(&mut self, now: Nanos) {
        while let Some((timer, owner)) = self.shared.timers.pop() {
            let client = (owner.client != u32::MAX).then_some(ClientId(owner.client));
            let Some(entry) = self.namespaces.get(owner.namespace) else {
                continue;
            };
            let clients = &entry.namespace.clients;
            let is_gone = client.is_some_and(|client| {
                clients.get(client).is_none()
                    || clients.generation(client) as u16 != owner.client_generation
            });
            if is_gone {
                continue;
            }
            let timeout = Timeout {
                timer,
                client,
                tag: owner.tag,
            };
            let plugin = PluginId(owner.plugin);
            self.run(now, owner.namespace, plugin, |plugin, context| {
                plugin.handle_timeout(context, timeout);
            });
        }
    }

    /// Whether timers are due by `now`.
    #[inline]
    pub fn has_due_timers(&self, now: Nanos) -> bool {
        let due = self.shared.timers.next_due();
        due.is_some_and(|due| due <= now)
    }

    /// How many timers are set.
    pub fn timers(&self) -> usize {
        self.shared.timers.len()
    }
}
