//! The emulation: namespaces and their clients, frames, timers and events given to plugins.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_engine::rng::Lcg;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::frame as packet_frame;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::client::{Client, ClientId};
use crate::exports::{Export, ExportReport, Exports};
use crate::frame::{self, Frame, FrameKind, KINDS, ParserCounters};
use crate::iter::Cursor;
use crate::namespace::{Namespace, NamespaceKey};
use crate::placements::{Placement, Placements};
use crate::plugin::{
    Context, Event, Pending, Plugin, PluginError, PluginId, PluginSlots, Shared, WaitingMessages,
};
use crate::plugins::PLUGINS;
use crate::shard_map::ShardMap;
use crate::slab::Slab;
use crate::spec::Scope;
use crate::timers::Timers;
use crate::tls::TlsClients;
use crate::totals::Totals;
use crate::transmit::{RxQueueCounters, Transmit, TxQueue, TxQueueCounters, VethCounters};
use crate::usage::Usage;

/// What an emulation begins with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Of its random numbers.
    pub seed: u32,
    /// Which of several [shards](crate::shards) it is: they have random numbers of their own, and the rest
    /// in common.
    pub shard: u32,
    /// Which shard has which clients, where there are several; else it has all.
    pub shards: Option<Arc<ShardMap>>,
    /// What to add to the time that it is given for the time since 1970.
    pub unix_offset: Nanos,
    /// Random numbers that shall have a value, by what they are for: for tests against recordings.
    pub pinned: Vec<(&'static str, u64)>,
    /// When a timer that is set now is due: for tests against recordings of coarse timers. Exactly
    /// after its delay if there is none.
    pub timer_due: Option<fn(now: Nanos, delay: Nanos) -> Nanos>,
    /// Whether clients may write files, send by sockets of the server and post to web servers.
    pub exports: bool,
}

crate::counters! {
    /// Counters of namespaces.
    pub(crate) struct NamespaceCounters: u64, "ctx" {
        added: "addNs", "add ns", "ops", Info;
        removed: "removeNs", "remove ns", "ops", Info;
        active: "activeNs", "active ns", "ops", Info;
    }
}

/// A namespace with its plugins.
pub(crate) struct Entry {
    pub(crate) namespace: Namespace,
    pub(crate) plugins: PluginSlots,
    /// Plugins that a client gets when its request names none.
    pub(crate) client_defaults: Option<Map<String, Value>>,
    /// How far the reader of its clients is.
    pub(crate) cursor: Cursor<ClientId>,
}

/// All emulated clients of a server. See the [crate](crate) for how to drive it.
pub struct Emulation {
    pub(crate) namespaces: Slab<Box<Entry>>,
    pub(crate) by_key: FxHashMap<NamespaceKey, u32>,
    /// The namespace of the last frame, which is mostly that of the next.
    pub(crate) recent: Option<(NamespaceKey, u32)>,
    pub(crate) namespace_defaults: Option<Map<String, Value>>,
    pub(crate) shared: Shared,
    pub(crate) counters: NamespaceCounters,
    /// Changes with every namespace that comes or goes.
    pub(crate) epoch: u64,
    /// Which plugin takes each kind of frame.
    takers: [Option<PluginId>; KINDS],
    /// How far the reader of the namespaces is.
    pub(crate) cursor: Cursor<u32>,
    pub(crate) parser: ParserCounters,
    pub(crate) veth: VethCounters,
    pub(crate) tx_queue: TxQueueCounters,
    pub(crate) rx_queue: RxQueueCounters,
    pub(crate) timer_counters: TimerCounters,
    pub(crate) usage: Usage,
    pub(crate) api_handle: String,
    /// Whether somebody asked for the handle.
    pub(crate) is_synced: bool,
    pub(crate) shutdown_at: Option<Nanos>,
    pub(crate) totals: Totals,
}

impl Emulation {
    /// An emulation without namespaces, at time `now`.
    pub fn new(settings: Settings, now: Nanos) -> Emulation {
        Emulation {
            namespaces: Slab::default(),
            by_key: FxHashMap::default(),
            recent: None,
            namespace_defaults: None,
            shared: Shared {
                timers: Timers::new(now),
                tx: TxQueue::default(),
                events: VecDeque::new(),
                exports: Exports::new(settings.exports),
                placements: Placements::new(settings.shards, settings.shard),
                messages: WaitingMessages::default(),
                tls: TlsClients::default(),
                rng: Lcg::new(
                    settings
                        .seed
                        .wrapping_add(settings.shard.wrapping_mul(SHARD_SEED)),
                ),
                pinned: settings.pinned,
                timer_due: settings.timer_due,
                unix_offset: settings.unix_offset,
            },
            counters: NamespaceCounters::default(),
            epoch: 0,
            takers: takers(),
            cursor: Cursor::Stopped,
            parser: ParserCounters::default(),
            veth: VethCounters::default(),
            tx_queue: TxQueueCounters::default(),
            rx_queue: RxQueueCounters::default(),
            timer_counters: TimerCounters::default(),
            usage: Usage::new(now),
            api_handle: api_handle(settings.seed),
            is_synced: false,
            shutdown_at: None,
            totals: Totals::default(),
        }
    }

    /// What the process has used, for the resource monitor: time of the CPU since it started, and
    /// memory.
    pub fn set_usage(&mut self, cpu_time: Nanos, rss_bytes: u64) {
        self.usage.set(cpu_time, rss_bytes);
    }

    /// So many frames were lost on the way here from who received them.
    pub fn note_rx_lost(&mut self, frames: u64) {
        self.rx_queue.dropped += frames;
    }

    /// When the user wants the emulation to end, if it was asked to.
    pub fn poll_shutdown(&self) -> Option<Nanos> {
        self.shutdown_at
    }

    /// Gives a frame that arrived at a port to the plugin that it is for.
    pub fn handle_frame(&mut self, now: Nanos, port: u16, bytes: &[u8]) {
        self.veth.rx_packets += 1;
        self.veth.rx_octets += bytes.len() as u64;
        let layout = frame::parse(bytes);
        if let Some(kind) = frame::kind(bytes, &layout, &mut self.parser) {
            self.dispatch(now, port, bytes, &layout, kind, false);
        }
    }

    /// The same of a frame that is for all clients of its namespace, and that another shard counts.
    pub fn handle_copy(&mut self, now: Nanos, port: u16, bytes: &[u8]) {
        let layout = frame::parse(bytes);
        if let Some(kind) = frame::kind(bytes, &layout, &mut ParserCounters::default()) {
            self.dispatch(now, port, bytes, &layout, kind, true);
        }
    }

    #[inline]
    fn dispatch(
        &mut self,
        now: Nanos,
        port: u16,
        bytes: &[u8],
        layout: &packet_frame::Layout,
        kind: FrameKind,
        is_copy: bool,
    ) {
        let key = frame::key(port, bytes, layout);
        let index = self.namespace_index(&key);
        if let (Some(index), Some(plugin)) = (index, self.takers[kind as usize]) {
            self.recent = Some((key, index));
            let frame = Frame {
                bytes,
                layout,
                kind,
                is_copy,
            };
            self.run(now, index, plugin, |plugin, context| {
                plugin.handle_frame(context, &frame);
            });
        }
    }

    /// The number of a namespace.
    #[inline]
    pub(crate) fn namespace_index(&self, key: &NamespaceKey) -> Option<u32> {
        match self.recent {
            Some((recent, index)) if recent == *key => Some(index),
            _ => self.by_key.get(key).copied(),
        }
    }

    /// When to call [`Emulation::handle_timeout`]; not later than the earliest timer. At once while
    /// frames wait.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        if self.shared.tx.is_waiting() {
            return Some(0);
        }
        self.shared.timers.next_due()
    }

    /// The ports that have namespaces, each once.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.by_key.keys().map(|key| key.port).collect()
    }

    /// How often namespaces came or went.
    pub fn changes(&self) -> u64 {
        self.epoch
    }

    /// Whether frames wait to be sent.
    pub fn has_transmit(&self) -> bool {
        self.shared.tx.is_waiting()
    }

    /// The next frame to send. Call it until there is none; those that are not taken wait.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.shared.tx.pop()
    }

    /// The next thing that clients want done outside. Call it until there is none.
    pub fn poll_export(&mut self) -> Option<Export> {
        self.shared.exports.pop()
    }

    /// The next thing to tell who shares frames out. Call it until there is none.
    pub fn poll_placement(&mut self) -> Option<Placement> {
        self.shared.placements.pop()
    }

    /// Tells a client what came of that.
    pub fn handle_export_report(&mut self, now: Nanos, report: ExportReport) {
        if let Some(owner) = self.shared.exports.owner(report.exporter) {
            self.shared.events.push_back(Pending {
                namespace: owner.namespace,
                client: owner.client,
                from: NOBODY,
                to: Some(PluginId(owner.plugin)),
                event: Event::Exported(Box::new(report)),
            });
            self.deliver(now);
        }
    }

    /// Makes a plugin of a namespace, unless it is there; says whether it was made. Events wait: a
    /// client that is being added may have plugins still to come that they are for.
    pub(crate) fn create_plugin(
        &mut self,
        now: Nanos,
        index: u32,
        id: PluginId,
        init: &Value,
    ) -> Result<bool, Error> {
        let Some(entry) = self.namespaces.get_mut(index) else {
            return Ok(false);
        };
        if entry.plugins.set() & 1 << id.0 != 0 {
            return Ok(false);
        }
        let spec = PLUGINS[usize::from(id.0)];
        let mut context = Context {
            now,
            namespace: &mut entry.namespace,
            plugins: &mut entry.plugins,
            shared: &mut self.shared,
            index,
            plugin: id,
        };
        let made = spec.keys.check(init);
        let made = made.and_then(|()| (spec.create)(&mut context, init));
        let plugin = made.map_err(|error| not_created(spec.name, &error))?;
        entry.plugins.put(id, plugin);
        if !entry.namespace.is_home() {
            self.shared.messages.begun.insert((index, id));
        }
        Ok(true)
    }

    /// Adds a client with plugins, by their init JSON. When one is unknown or refuses, the client
    /// stays without it and those behind it, and its namespace without what it got for that alone.
    ///
    /// # Errors
    /// When a plugin is unknown or refuses.
    pub(crate) fn add_client(
        &mut self,
        now: Nanos,
        index: u32,
        client: Client,
        plugins: &Map<String, Value>,
    ) -> Result<ClientId, Error> {
        let (forced_ipv4, forced_ipv6) = (client.forced_mac_ipv4(), client.forced_mac_ipv6());
        let (mac, ipv4) = (client.mac, client.ipv4);
        let entry = self.namespaces.get_mut(index).expect("the caller found it");
        let id = entry.namespace.clients.insert(client);
        let key = entry.namespace.key();
        let placements = &mut self.shared.placements;
        placements.client_changed(key, mac, true);
        placements.ipv4_changed(key, Ipv4Addr::UNSPECIFIED, ipv4);
        let added = self.add_plugins(now, index, id, plugins);
        if forced_ipv4.is_some() || forced_ipv6.is_some() {
            self.with_context(now, index, |context| {
                context.set_gateway_mac_ipv4(id, forced_ipv4);
                context.set_gateway_mac_ipv6(id, forced_ipv6);
            });
        }
        self.deliver(now);
        added.map(|()| id)
    }

    /// Gives a client plugins, in the order of the list of plugins.
    fn add_plugins(
        &mut self,
        now: Nanos,
        index: u32,
        id: ClientId,
        plugins: &Map<String, Value>,
    ) -> Result<(), Error> {
        let mut first_error = Ok(());
        let mut given = 0;
        for name in plugins.keys() {
            match plugin_id(name) {
                Ok(plugin) => given |= 1 << plugin.0,
                Err(error) => first_error = Err(error),
            }
        }
        for plugin in ids(given) {
            let init = &plugins[PLUGINS[usize::from(plugin.0)].name];
            let is_new = self.create_plugin(now, index, plugin, &Value::Null)?;
            let added = self.add_plugin(now, index, plugin, id, init);
            if is_new && added.is_err() {
                self.run_quietly(now, index, plugin, |plugin, context| plugin.remove(context));
                if let Some(entry) = self.namespaces.get_mut(index) {
                    entry.plugins.remove(plugin);
                }
            }
            added?;
        }
        first_error
    }

    /// Does something in a namespace that no plugin does.
    fn with_context(&mut self, now: Nanos, index: u32, run: impl FnOnce(&mut Context<'_>)) {
        if let Some(entry) = self.namespaces.get_mut(index) {
            run(&mut Context {
                now,
                namespace: &mut entry.namespace,
                plugins: &mut entry.plugins,
                shared: &mut self.shared,
                index,
                plugin: NOBODY,
            });
        }
    }

    /// Gives a client a plugin that its namespace has.
    fn add_plugin(
        &mut self,
        now: Nanos,
        index: u32,
        plugin: PluginId,
        id: ClientId,
        init: &Value,
    ) -> Result<(), Error> {
        let spec = PLUGINS[usize::from(plugin.0)];
        self.set_plugin(index, id, plugin, true);
        let added = self.run_quietly(now, index, plugin, |plugin, context| {
            spec.keys.check(init)?;
            plugin.add_client(context, id, init)
        });
        match added {
            Some(Err(error)) => {
                self.set_plugin(index, id, plugin, false);
                Err(not_created(spec.name, &error))
            }
            _ => Ok(()),
        }
    }

    fn set_plugin(&mut self, index: u32, id: ClientId, plugin: PluginId, has: bool) {
        let entry = self.namespaces.get_mut(index);
        if let Some(client) = entry.and_then(|entry| entry.namespace.clients.get_mut(id)) {
            client.plugins &= !(1 << plugin.0);
            client.plugins |= u32::from(has) << plugin.0;
        }
    }

    /// Removes a client.
    pub(crate) fn remove_client(&mut self, now: Nanos, index: u32, id: ClientId) {
        let entry = self.namespaces.get(index);
        let client = entry.and_then(|entry| entry.namespace.clients.get(id));
        let plugins = client.map_or(0, |client| client.plugins);
        self.keep_counts(index, Some(id));
        for plugin in ids(plugins) {
            self.run_quietly(now, index, plugin, |plugin, context| {
                plugin.remove_client(context, id);
            });
        }
        if let Some(entry) = self.namespaces.get_mut(index) {
            if let Some(client) = entry.namespace.clients.remove(id) {
                let key = entry.namespace.key();
                let placements = &mut self.shared.placements;
                placements.client_changed(key, client.mac, false);
                placements.ipv4_changed(key, client.ipv4, Ipv4Addr::UNSPECIFIED);
            }
        }
        self.deliver(now);
    }

    /// Runs a plugin of a namespace, and then those that it told something.
    pub(crate) fn run<R>(
        &mut self,
        now: Nanos,
        index: u32,
        id: PluginId,
        run: impl FnOnce(&mut dyn Plugin, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let result = self.run_quietly(now, index, id, run);
        if !self.shared.events.is_empty() {
            self.deliver(now);
        }
        result
    }

    /// Runs a plugin of a namespace; its events wait.
    #[inline]
    fn run_quietly<R>(
        &mut self,
        now: Nanos,
        index: u32,
        id: PluginId,
        run: impl FnOnce(&mut dyn Plugin, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let entry = self.namespaces.get_mut(index)?;
        let mut plugin = entry.plugins.take(id)?;
        let mut context = Context {
            now,
            namespace: &mut entry.namespace,
            plugins: &mut entry.plugins,
            shared: &mut self.shared,
            index,
            plugin: id,
        };
        let result = run(&mut *plugin, &mut context);
        entry.plugins.put(id, plugin);
        Some(result)
    }

    /// Gives events to those that they are for, until there are no more.
    pub(crate) fn deliver(&mut self, now: Nanos) {
        while let Some(pending) = self.shared.events.pop_front() {
            let Pending {
                namespace, client, ..
            } = pending;
            let entry = self.namespaces.get(namespace);
            let found = entry.and_then(|entry| entry.namespace.clients.get(client));
            let has = found.map_or(0, |client| client.plugins);
            let to = match pending.to {
                Some(id) => has & 1 << id.0,
                None => has & !1_u32.checked_shl(u32::from(pending.from.0)).unwrap_or(0),
            };
            for id in ids(to) {
                self.run_quietly(now, namespace, id, |plugin, context| {
                    plugin.handle_event(context, client, &pending.event);
                });
            }
        }
    }
}

fn not_created(name: &str, error: &PluginError) -> Error {
    let reason = match error.0.as_str() {
        "" => String::new(),
        reason => format!(", error: {reason}"),
    };
    Error::execution(format!("could not create plugin '{name}'{reason}"))
}

/// The author of events that are no plugin's.
const NOBODY: PluginId = PluginId(u8::MAX);

/// The plugins of a set, in the order of the list.
pub(crate) fn ids(set: u32) -> impl Iterator<Item = PluginId> {
    let all = 0..PLUGINS.len() as u8;
    all.filter(move |id| set & 1 << id != 0).map(PluginId)
}

/// The names of the plugins of a set.
pub(crate) fn names(set: u32) -> Vec<&'static str> {
    let names = ids(set).map(|id| PLUGINS[usize::from(id.0)].name);
    names.collect()
}

/// Whether clients with these plugins may stand on any shard of their namespace.
pub(crate) fn are_of_clients<'n>(mut names: impl Iterator<Item = &'n str>) -> bool {
    names.all(|name| {
        let spec = PLUGINS.iter().find(|spec| spec.name == name);
        spec.is_some_and(|spec| spec.scope == Scope::Client)
    })
}

/// The plugin of a name.
pub(crate) fn plugin_id(name: &str) -> Result<PluginId, Error> {
    let place = PLUGINS.iter().position(|spec| spec.name == name);
    let id = place.map(|place| PluginId(place as u8));
    id.ok_or_else(|| Error::execution(format!("plugins-add {name} does not exits ")))
}

fn takers() -> [Option<PluginId>; KINDS] {
    let mut takers = [None; KINDS];
    for (id, spec) in (0..).zip(PLUGINS) {
        for &kind in spec.frames {
            takers[kind as usize] = Some(PluginId(id));
        }
    }
    takers
}

impl Emulation {
    /// Brings counters up to date that are kept elsewhere.
    pub(crate) fn refresh_counters(&mut self, now: Nanos) {
        self.refresh_frames();
        self.timer_counters.active = self.shared.timers.len() as u64;
        self.timer_counters.ticks = now / TICK;
    }
}

impl Emulation {
    /// The same of frames that went.
    pub(crate) fn refresh_frames(&mut self) {
        let tx = &mut self.shared.tx;
        self.veth.tx_packets += std::mem::take(&mut tx.packets);
        self.veth.tx_octets += std::mem::take(&mut tx.octets);
        self.tx_queue.dropped += std::mem::take(&mut tx.drops);
    }
}

/// A name for the caller's side, as long as the emulation lives: ten letters.
fn api_handle(seed: u32) -> String {
    let mut rng = Lcg::new(seed ^ 0x5eed);
    let mut letter = || {
        let letter = (rng.next31() >> 8) as u8 % 52;
        let first = if letter < 26 { b'a' } else { b'A' };
        char::from(first + letter % 26)
    };
    (0..10).map(|_| letter()).collect()
}

/// What the seeds of two shards differ by: the golden ratio, of 32 bits.
const SHARD_SEED: u32 = 0x9e37_79b9;

/// The unit of counted time.
const TICK: Nanos = SECOND / 100;

crate::counters! {
    /// Timers.
    pub(crate) struct TimerCounters: u64, "timerw" {
        active: "activeTimer", "active timers", "timers", Info;
        ticks: "ticks", "ticks", "ops", Info;
    }
}
