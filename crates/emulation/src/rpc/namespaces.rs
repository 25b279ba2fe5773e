//! Methods about namespaces, and about the emulation as a whole.

use allosaur_api::Error;
use allosaur_engine::time::Nanos;
use serde_json::{Map, Value, json};

use super::{check_tunnels, key, tunnels};
use crate::counters::{self, Counters};
use crate::emulation::{Emulation, names};
use crate::iter;
use crate::namespace::NamespaceKey;
use crate::params::Params;

impl Emulation {
    /// Adds namespaces; those before one that cannot be added stay.
    pub(super) fn ctx_add(&mut self, now: Nanos, params: &Value) -> Result<Value, Error> {
        let tunnels = tunnels(params)?;
        check_tunnels(tunnels)?;
        for tunnel in tunnels {
            let key = key(tunnel)?;
            let given = Params::new(tunnel).plugins("plugs")?;
            let defaults = self.namespace_defaults.clone();
            let none = Map::new();
            let plugins = given.or(defaults.as_ref()).unwrap_or(&none);
            self.add_namespace(now, key, plugins)?;
        }
        Ok(Value::Bool(true))
    }

    /// Removes namespaces; those before one that cannot be removed are gone.
    pub(super) fn ctx_remove(&mut self, now: Nanos, params: &Value) -> Result<Value, Error> {
        let tunnels = tunnels(params)?;
        check_tunnels(tunnels)?;
        for tunnel in tunnels {
            self.remove_namespace(now, &key(tunnel)?)?;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn ctx_iter(&mut self, params: &Value) -> Result<Value, Error> {
        let namespaces = &self.namespaces;
        iter::page(
            &mut self.cursor,
            params,
            "ApiNsIterParams",
            self.epoch,
            namespaces.first(),
            |index| {
                let entry = namespaces.get(index);
                let key = entry.map_or_else(Default::default, |entry| entry.namespace.key());
                let mut tunnel = tunnel(key);
                tunnel["plugs"] = Value::Null;
                (tunnel, namespaces.next(index))
            },
        )
    }

    pub(super) fn ctx_get_info(&mut self, params: &Value) -> Result<Value, Error> {
        let mut infos = Vec::new();
        for given in tunnels(params)? {
            let key = key(given)?;
            let index = self.by_key.get(&key).copied();
            let entry = index.and_then(|index| self.namespaces.get(index));
            let entry = entry.ok_or_else(|| {
                Error::execution("error can't find a valid namespace for this tunnel")
            })?;
            let mut info = tunnel(key);
            info["active_clients"] = json!(entry.namespace.clients.len());
            info["plug_names"] = json!(names(entry.plugins.set()));
            infos.push(info);
        }
        Ok(Value::Array(infos))
    }

    pub(super) fn ctx_set_def_plugins(&mut self, params: &Value) -> Result<Value, Error> {
        self.namespace_defaults = Params::new(params).plugins("def_plugs")?.cloned();
        Ok(Value::Bool(true))
    }

    pub(super) fn ctx_cnt(&mut self, now: Nanos, params: &Value) -> Result<Value, Error> {
        self.refresh_counters(now);
        let mut buffers = BUFFERS.map(Buffers);
        let mut tables: Vec<&mut dyn Counters> = vec![
            &mut self.counters,
            &mut self.parser,
            &mut self.timer_counters,
            &mut self.veth,
        ];
        if self.tx_queue.dropped != 0 {
            tables.push(&mut self.tx_queue);
        }
        tables.extend(buffers.iter_mut().map(|table| table as &mut dyn Counters));
        counters::report(params, &mut tables)
    }

    pub(super) fn resource_monitor(&mut self, now: Nanos, params: &Value) -> Result<Value, Error> {
        let (mut usage, mut memory) = (self.usage.counters(now), self.memory());
        counters::report(params, &mut [&mut usage, &mut memory])
    }
}

/// A key as requests have it. Where there is no outer tag, there is no inner one.
fn tunnel(key: NamespaceKey) -> Value {
    let has_outer = key.tags[0].vlan != 0;
    let tags = key
        .tags
        .map(|tag| if has_outer { tag } else { Default::default() });
    json!({
        "vport": key.port,
        "tci": tags.map(|tag| tag.vlan),
        "tpid": tags.map(|tag| tag.tpid),
    })
}

/// The tables of the reference's packet buffers. There are no such buffers here: frames are written
/// where they are sent from, so nothing is ever counted.
const BUFFERS: [&str; 8] = [
    "mbuf-pool",
    "mbuf-128",
    "mbuf-256",
    "mbuf-512",
    "mbuf-1024",
    "mbuf-2048",
    "mbuf-4096",
    "mbuf-9216",
];

struct Buffers(&'static str);

crate::counters! {
    struct BufferCounters: u64, "mbuf" {
        alloc: "mbufAlloc", "allocation of mbufs", "ops", Info;
        free: "mbufFree", "deallocation of mbufs", "ops", Info;
        alloc_cache: "mbufAllocCache", "allocation of mbufs from cache", "ops", Info;
        free_cache: "mbufFreeCache", "deallocation of mbufs from cache", "ops", Info;
    }
}

impl Counters for Buffers {
    fn name(&self) -> &'static str {
        self.0
    }

    fn meta(&self) -> &'static [counters::CounterMeta] {
        BufferCounters::default().meta()
    }

    fn value(&self, index: usize) -> u64 {
        BufferCounters::default().value(index)
    }

    fn clear(&mut self) {}
}
