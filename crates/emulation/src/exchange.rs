//! Messages between the shards of a namespace: those of plugins, and that a plugin is there.

use allosaur_engine::time::Nanos;
use serde_json::Value;

use crate::emulation::Emulation;
use crate::plugin::PluginId;
use crate::shard_message::{MessageBody, ShardMessage};

impl Emulation {
    /// The next message to another shard. Call it until there is none, or no room for one.
    #[inline]
    pub fn poll_shard_message(&mut self) -> Option<ShardMessage> {
        let messages = &self.shared.messages;
        if messages.begun.is_empty() && messages.told.is_empty() {
            return None;
        }
        self.next_begun().or_else(|| self.next_told())
    }

    /// Takes a message of another shard to its plugin.
    pub fn handle_shard_message(&mut self, now: Nanos, message: ShardMessage) {
        let Some(&index) = self.by_key.get(&message.key) else {
            // It was removed while the message was on its way.
            return;
        };
        let plugin = PluginId(message.plugin);
        let entry = self.namespaces.get(index);
        if entry.is_some_and(|entry| entry.namespace.is_home()) {
            // All clients that have it may stand on other shards: such a plugin is made of nothing.
            let made = self.create_plugin(now, index, plugin, &Value::Null);
            debug_assert!(made.is_ok(), "{made:?}");
        }
        self.run(now, index, plugin, |plugin, context| {
            plugin.handle_message(context, message.from, message.body);
        });
    }

    fn next_begun(&mut self) -> Option<ShardMessage> {
        while let Some((index, plugin)) = self.shared.messages.begun.pop_first() {
            let entry = self.namespaces.get(index);
            let Some(entry) = entry.filter(|entry| entry.plugins.get(plugin).is_some()) else {
                continue;
            };
            if let Some(home) = entry.namespace.home_elsewhere() {
                return self.message(index, plugin, home, MessageBody::Begun);
            }
        }
        None
    }

    fn next_told(&mut self) -> Option<ShardMessage> {
        while let Some(&(index, id)) = self.shared.messages.told.first() {
            let entry = self.namespaces.get_mut(index);
            let plugin = entry.and_then(|entry| entry.plugins.get_mut(id));
            if let Some((to, body)) = plugin.and_then(|plugin| plugin.poll_message()) {
                return self.message(index, id, to, body);
            }
            self.shared.messages.told.pop_first();
        }
        None
    }

    fn message(
        &self,
        index: u32,
        plugin: PluginId,
        to: u32,
        body: MessageBody,
    ) -> Option<ShardMessage> {
        Some(ShardMessage {
            from: self.shared.placements.own_shard(),
            to,
            key: self.namespaces.get(index)?.namespace.key(),
            plugin: plugin.0,
            body,
        })
    }
}
