//! Methods about namespaces, and about the emulation as a whole.

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Empty, Error};
use allosaur_engine::time::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::counters::{self, CounterParams, CounterReport, Counters};
use crate::emulation::{Emulation, Entry, names};
use crate::iter::{self, Page, PageParams};
use crate::namespace::NamespaceKey;
use crate::read::{Done, Listed, Plugins, failed_check};
use crate::slab::Slab;
use crate::target::Tunnel;

/// Namespaces.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Tunnels {
    /// The namespaces.
    #[schemars(required)]
    tunnels: Option<Listed<Tunnel>>,
}

impl Tunnels {
    /// The list, which must be there.
    fn list(self) -> Result<Vec<Tunnel>, Error> {
        let list = self.tunnels.map(|Listed(list)| list);
        list.ok_or_else(|| failed_check("RpcCmdTunnels", "Tunnels", "required"))
    }
}

/// A namespace of `ctx_iter`. Where there is no outer tag, there is no inner one.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NamespaceEntry {
    /// The port, by its number.
    vport: u16,
    /// The numbers of its VLANs, the outer first; 0 is no tag.
    tci: [u16; 2],
    /// The types of the tags.
    tpid: [u16; 2],
    /// `null`.
    plugs: (),
}

/// What `ctx_get_info` says of a namespace.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NamespaceInfo {
    /// The port, by its number.
    vport: u16,
    /// The numbers of its VLANs, the outer first; 0 is no tag.
    tci: [u16; 2],
    /// The types of the tags.
    tpid: [u16; 2],
    /// How many clients it has.
    active_clients: usize,
    /// Its plugins.
    plug_names: Vec<&'static str>,
}

/// Plugins for namespaces or clients that are added without any.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct SetDefaults {
    /// The plugins by their names, with the init JSON of each; none without it.
    def_plugs: Option<Plugins>,
}

impl SetDefaults {
    pub(super) fn plugins(self) -> Option<Map<String, Value>> {
        self.def_plugs.map(|Plugins(plugins)| plugins)
    }
}

/// The plugins of namespaces or clients that are added without any.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Defaults {
    /// The plugins by their names, with the init JSON of each.
    pub(super) def_plugs: Option<Map<String, Value>>,
}

impl Emulation {
    /// Adds namespaces; those before one that cannot be added stay.
    pub(super) fn ctx_add(&mut self, now: Nanos, params: Tunnels) -> Result<Done, Error> {
        for tunnel in params.list()? {
            let key = tunnel.key();
            let plugins = match tunnel.plugs {
                Some(Plugins(given)) => given,
                None => self.namespace_defaults.clone().unwrap_or_default(),
            };
            self.add_namespace(now, key, &plugins)?;
        }
        Ok(Done)
    }

    /// Removes namespaces; those before one that cannot be removed are gone.
    pub(super) fn ctx_remove(&mut self, now: Nanos, params: Tunnels) -> Result<Done, Error> {
        for tunnel in params.list()? {
            self.remove_namespace(now, &tunnel.key())?;
        }
        Ok(Done)
    }

    pub(super) fn ctx_iter(
        &mut self,
        _: Nanos,
        params: PageParams,
    ) -> Result<Page<NamespaceEntry>, Error> {
        let namespaces = &self.namespaces;
        let home = |index| next_home(namespaces, index);
        iter::page(
            &mut self.cursor,
            params,
            "ApiNsIterParams",
            self.epoch,
            home(namespaces.first()),
            |index| {
                let entry = namespaces.get(index);
                let key = entry.map_or_else(Default::default, |entry| entry.namespace.key());
                let (tci, tpid) = tags(key);
                let entry = NamespaceEntry {
                    vport: key.port,
                    tci,
                    tpid,
                    plugs: (),
                };
                (entry, home(namespaces.next(index)))
            },
        )
    }

    pub(super) fn ctx_get_info(
        &mut self,
        _: Nanos,
        params: Tunnels,
    ) -> Result<Vec<NamespaceInfo>, Error> {
        let infos = params.list()?.into_iter().map(|tunnel| {
            let key = tunnel.key();
            let index = self.find_namespace(key);
            let entry = index.and_then(|index| self.namespaces.get(index));
            let entry = entry.ok_or_else(|| {
                Error::execution("error can't find a valid namespace for this tunnel")
            })?;
            let (tci, tpid) = tags(key);
            Ok(NamespaceInfo {
                vport: key.port,
                tci,
                tpid,
                active_clients: entry.namespace.clients.len(),
                plug_names: names(entry.plugins.set()),
            })
        });
        infos.collect()
    }

    pub(super) fn ctx_set_def_plugins(
        &mut self,
        _: Nanos,
        params: SetDefaults,
    ) -> Result<Done, Error> {
        self.namespace_defaults = params.plugins();
        Ok(Done)
    }

    pub(super) fn ctx_get_def_plugins(&mut self, _: Nanos, _: Empty) -> Result<Defaults, Error> {
        let def_plugs = self.namespace_defaults.clone();
        Ok(Defaults { def_plugs })
    }

    pub(super) fn ctx_stop_autotriggers(
        &mut self,
        now: Nanos,
        index: u32,
        _: Empty,
    ) -> Result<Done, Error> {
        self.stop_auto_triggers(now, index);
        Ok(Done)
    }

    pub(super) fn ctx_cnt(
        &mut self,
        now: Nanos,
        params: CounterParams,
    ) -> Result<CounterReport, Error> {
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
        if self.rx_queue.dropped != 0 {
            tables.push(&mut self.rx_queue);
        }
        tables.extend(buffers.iter_mut().map(|table| table as &mut dyn Counters));
        Ok(counters::report(&params, &mut tables))
    }

    pub(super) fn resource_monitor(
        &mut self,
        now: Nanos,
        params: CounterParams,
    ) -> Result<CounterReport, Error> {
        let (mut usage, mut memory) = (self.usage.counters(now), self.memory());
        Ok(counters::report(&params, &mut [&mut usage, &mut memory]))
    }

    pub(super) fn reset_resource_monitor(&mut self, now: Nanos, _: Empty) -> Result<Done, Error> {
        self.usage.reset(now);
        Ok(Done)
    }
}

/// A namespace whose home this is, from a number on.
fn next_home(namespaces: &Slab<Box<Entry>>, index: Option<u32>) -> Option<u32> {
    let mut indices = std::iter::successors(index, |index| namespaces.next(*index));
    indices.find(|index| {
        let entry = namespaces.get(*index);
        entry.is_some_and(|entry| entry.namespace.is_home())
    })
}

/// The VLANs of a key and the types of their tags, as requests have them.
fn tags(key: NamespaceKey) -> ([u16; 2], [u16; 2]) {
    let has_outer = key.tags[0].vlan != 0;
    let tags = key
        .tags
        .map(|tag| if has_outer { tag } else { Default::default() });
    (tags.map(|tag| tag.vlan), tags.map(|tag| tag.tpid))
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
