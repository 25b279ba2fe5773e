//! Namespaces come and go, with their plugins.

use allosaur_api::Error;
use allosaur_engine::time::Nanos;
use serde_json::{Map, Value};

use crate::emulation::{Emulation, Entry, ids, plugin_id};
use crate::iter::Cursor;
use crate::namespace::{Namespace, NamespaceKey};
use crate::plugin::PluginSlots;

impl Emulation {
    /// Has a namespace make no more clients by itself.
    pub(crate) fn stop_auto_triggers(&mut self, now: Nanos, index: u32) {
        let entry = self.namespaces.get(index);
        for id in ids(entry.map_or(0, |entry| entry.plugins.set())) {
            self.run(now, index, id, |plugin, _| plugin.stop_auto_trigger());
        }
    }

    /// Adds a namespace with plugins, by their init JSON. One that cannot be made is an error; the
    /// namespace stays, with those before it.
    ///
    /// # Errors
    /// When it is there already, or a plugin is unknown or refuses its init JSON.
    pub(crate) fn add_namespace(
        &mut self,
        now: Nanos,
        key: NamespaceKey,
        plugins: &Map<String, Value>,
    ) -> Result<(), Error> {
        if self.by_key.contains_key(&key) {
            return Err(Error::execution(format!(
                " error there is a valid namespace for this tunnel: {key}\n, can't add it "
            )));
        }
        let index = self.insert_namespace(key);
        self.counters.added += 1;
        self.counters.active += 1;
        self.epoch += 1;
        for (name, init) in plugins {
            let id = plugin_id(name)?;
            self.create_plugin(now, index, id, init)?;
            self.deliver(now);
        }
        Ok(())
    }

    fn insert_namespace(&mut self, key: NamespaceKey) -> u32 {
        let home = self.shared.placements.home_elsewhere(&key);
        let index = self.namespaces.insert(Box::new(Entry {
            namespace: Namespace::new(key, home),
            plugins: PluginSlots::default(),
            client_defaults: None,
            cursor: Cursor::Stopped,
        }));
        self.by_key.insert(key, index);
        index
    }

    /// The number of a namespace. The part of one whose home is another shard is made here when it is first
    /// asked for: who asks has asked the home before.
    pub(crate) fn find_namespace(&mut self, key: NamespaceKey) -> Option<u32> {
        match self.by_key.get(&key) {
            Some(index) => Some(*index),
            None if self.shared.placements.home_elsewhere(&key).is_some() => {
                self.epoch += 1;
                Some(self.insert_namespace(key))
            }
            None => None,
        }
    }

    /// The namespaces whose home this is.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &Entry> {
        let indices = self.namespaces.indices();
        let entries = indices.filter_map(|index| self.namespaces.get(index));
        entries
            .map(|entry| &**entry)
            .filter(|entry| entry.namespace.is_home())
    }

    /// Refuses to remove a namespace with clients.
    pub(crate) fn check_empty(&self, key: &NamespaceKey) -> Result<(), Error> {
        let index = self.by_key.get(key);
        let entry = index.and_then(|index| self.namespaces.get(*index));
        match entry {
            Some(entry) if !entry.namespace.clients.is_empty() => Err(Error::execution(format!(
                "ns with tunnel {key}\n still has active clients, remove them"
            ))),
            _ => Ok(()),
        }
    }

    /// Removes a namespace without clients.
    ///
    /// # Errors
    /// When it is not there, or has clients.
    pub(crate) fn remove_namespace(&mut self, now: Nanos, key: &NamespaceKey) -> Result<(), Error> {
        let is_home = self.shared.placements.home_elsewhere(key).is_none();
        let Some(&index) = self.by_key.get(key) else {
            return match is_home {
                true => Err(Error::execution(
                    " error can't find a valid namespace for this tunnel",
                )),
                false => Ok(()),
            };
        };
        self.check_empty(key)?;
        let entry = self.namespaces.get(index).expect("the index is right");
        let plugins = entry.plugins.set();
        self.keep_counts(index, None);
        for id in ids(plugins) {
            self.run(now, index, id, |plugin, context| plugin.remove(context));
        }
        self.by_key.remove(key);
        self.recent = None;
        self.namespaces.remove(index);
        if is_home {
            self.counters.removed += 1;
            self.counters.active = self.counters.active.saturating_sub(1);
        }
        self.epoch += 1;
        Ok(())
    }
}
