//! What a plugin is, and what it may do.
//!
//! A plugin is one object a namespace, which keeps the states of all clients that have it. The
//! emulation calls it with a [`Context`], by which it reads clients, sends frames, sets timers and
//! tells other plugins what changed. A [`Spec`](crate::spec::Spec) describes it; one list has them all
//! (`plugins/mod.rs`).

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_engine::rng::Lcg;
use allosaur_engine::tcp::End;
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_l7::tls::{TlsClient, TlsSettings, TlsSettingsError};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::network::ipv6::Ipv6Header;
use serde_json::Value;

use crate::client::{Client, ClientId};
use crate::counters::Counters;
use crate::exports::{ExportReport, Exports};
use crate::frame::Frame;
use crate::namespace::Namespace;
use crate::placements::Placements;
use crate::shard_message::MessageBody;
use crate::timers::{Owner, TimerId, Timers};
use crate::tls::TlsClients;
use crate::transmit::TxQueue;

/// A plugin, by its place in the list of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId(pub(crate) u8);

/// Why a plugin was not made; the text is given to the user behind the name of the plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(pub String);

impl From<Error> for PluginError {
    fn from(error: Error) -> Self {
        PluginError(error.to_string())
    }
}

/// What happened to a client, told to those of its plugins that did not cause it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has another IPv4 address; this was the old one.
    Ipv4Changed(Ipv4Addr),
    /// It has another gateway for IPv4; this was the old one.
    GatewayIpv4Changed(Ipv4Addr),
    /// It has another static IPv6 address; this was the old one.
    Ipv6Changed(Ipv6Addr),
    /// It has another address by DHCPv6; this was the old one.
    DhcpIpv6Changed(Ipv6Addr),
    /// Its gateway's MAC address for IPv4 is known, as it was not before.
    GatewayResolvedIpv4,
    /// Its gateway's MAC address for IPv6 is known, as it was not before.
    GatewayResolvedIpv6,
    /// What came of messages that it had the server send.
    Exported(Box<ExportReport>),
    /// Something happened to a connection of this plugin.
    Socket {
        /// Which one.
        socket: SocketId,
        /// What it is to the plugin: a number of its own.
        tag: u32,
        /// What happened.
        what: SocketEvent,
    },
    /// Another plugin says something to this one alone ([`Context::post`]).
    Message {
        /// Who says it.
        from: PluginId,
        /// What it means is between the two.
        token: u64,
        /// The same.
        data: Vec<u8>,
    },
}

/// A connection of TCP, as the plugin `transport` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// Somebody asks for it; its tag is that of the listener.
    Asked,
    /// It is there.
    Connected,
    /// So many bytes arrived in order.
    Received {
        /// How many.
        count: u32,
        /// What they are, where the plugin wants to know.
        bytes: Vec<u8>,
    },
    /// What was written fits now: more may be written.
    Room,
    /// The peer has no more to say.
    PeerClosed,
    /// It is over, and forgotten.
    Ended(End),
}

/// A timer that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// Which one.
    pub timer: TimerId,
    /// The client that it was set for.
    pub client: Option<ClientId>,
    /// What it was set for.
    pub tag: u32,
}

/// What a value is behind its trait, for [`Context::with_plugin`]. Each type has it.
pub trait AsAny: Any {
    /// The value itself.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A protocol in one namespace, with the states of all its clients. Nothing here may panic,
/// whatever comes in.
pub trait Plugin: AsAny + Send {
    /// A client gets the plugin, with its init JSON (null when it was not given). The client has its
    /// addresses. On an error the client is not added.
    ///
    /// # Errors
    /// When the init JSON is wrong.
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError>;

    /// A client goes; it is still there. Timers that were set for it end by themselves.
    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId);

    /// A frame arrived, of a kind that the spec names.
    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let _ = (context, frame);
    }

    /// A timer is over.
    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let _ = (context, timeout);
    }

    /// Asks the cache for what [`handle_timeout`](Plugin::handle_timeout) will need of a client, which
    /// changes nothing: the cache misses of many clients wait together. A plugin that keeps little, or
    /// has few timers at once, need not.
    fn prefetch(&self, client: ClientId) {
        let _ = client;
    }

    /// Something happened to a client that has this plugin.
    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        let _ = (context, client, event);
    }

    /// What a client still lacks, by this protocol, before it can send packets of a family through
    /// its gateway: a noun for the user. `None` when it lacks nothing.
    fn missing(&self, client: ClientId, is_ipv6: bool) -> Option<&'static str> {
        let _ = (client, is_ipv6);
        None
    }

    /// Shows the counters of a client, or those of the namespace itself, each table with its place in
    /// [`Spec::counters`](crate::spec::Spec::counters).
    fn counters(
        &mut self,
        namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        let _ = (namespace, client, show);
    }

    /// The next message to the same plugin of the namespace on another shard, which has the number. It is asked
    /// for after [`Context::note_messages`].
    fn poll_message(&mut self) -> Option<(u32, MessageBody)> {
        None
    }

    /// A message of the same plugin of the namespace on the shard `from`.
    fn handle_message(&mut self, context: &mut Context<'_>, from: u32, message: MessageBody) {
        let _ = (context, from, message);
    }

    /// The counters of a namespace or a client were set to zero: those that they are copied from follow.
    fn counters_cleared(&mut self) {}

    /// The namespace shall make no more clients by itself.
    fn stop_auto_trigger(&mut self) {}

    /// The namespace goes; it has no clients any more.
    fn remove(&mut self, context: &mut Context<'_>) {
        let _ = context;
    }

    /// Bytes of its tables: of a place for each client, of what it learnt. What the items of tables
    /// point to, such as texts and buffers, does not count.
    fn table_bytes(&self) -> usize;
}

/// The plugins of a namespace by number. The one that runs is not there.
#[derive(Default)]
pub(crate) struct PluginSlots(Vec<Option<Box<dyn Plugin>>>, u32);

impl PluginSlots {
    pub(crate) fn take(&mut self, id: PluginId) -> Option<Box<dyn Plugin>> {
        self.0.get_mut(usize::from(id.0))?.take()
    }

    /// One of them, to look at.
    pub(crate) fn get(&self, id: PluginId) -> Option<&dyn Plugin> {
        self.0.get(usize::from(id.0))?.as_deref()
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, id: PluginId) -> Option<&mut dyn Plugin> {
        match self.0.get_mut(usize::from(id.0)) {
            Some(Some(plugin)) => Some(&mut **plugin),
            _ => None,
        }
    }

    /// Puts a plugin to its place.
    pub(crate) fn put(&mut self, id: PluginId, plugin: Box<dyn Plugin>) {
        let index = usize::from(id.0);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(plugin);
        self.1 |= 1 << id.0;
    }

    /// Takes a plugin away.
    pub(crate) fn remove(&mut self, id: PluginId) {
        self.take(id);
        self.1 &= !(1 << id.0);
    }

    /// The one of a type, unless it is running.
    fn find<P: Plugin>(&mut self) -> Option<PluginId> {
        let is_it = |slot: &mut Option<Box<dyn Plugin>>| {
            // The plugin, not the box, which is of some type, too.
            let plugin = slot.as_deref_mut();
            plugin.is_some_and(|plugin| plugin.as_any_mut().is::<P>())
        };
        let place = self.0.iter_mut().position(is_it);
        place.map(|place| PluginId(place as u8))
    }

    /// Bytes of the tables of all of them but the one that runs.
    pub(crate) fn table_bytes(&self) -> usize {
        let plugins = self.0.iter().flatten();
        plugins.map(|plugin| plugin.table_bytes()).sum()
    }

    /// Which there are, a bit each; the one that runs too.
    pub(crate) fn set(&self) -> u32 {
        self.1
    }
}

/// An event on its way to plugins.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) namespace: u32,
    pub(crate) client: ClientId,
    pub(crate) from: PluginId,
    /// The only plugin to get it; all others of the client if there is none.
    pub(crate) to: Option<PluginId>,
    pub(crate) event: Event,
}

/// What all namespaces share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) timers: Timers,
    pub(crate) tx: TxQueue,
    pub(crate) events: VecDeque<Pending>,
    pub(crate) exports: Exports,
    pub(crate) placements: Placements,
    pub(crate) messages: WaitingMessages,
    pub(crate) tls: TlsClients,
    pub(crate) rng: Lcg,
    /// Draws that a test wants to be what they were in a recording.
    pub(crate) pinned: Vec<(&'static str, u64)>,
    /// When a timer is due, if not exactly after its delay.
    pub(crate) timer_due: Option<fn(Nanos, Nanos) -> Nanos>,
    /// What to add to `now` for the time since 1970.
    pub(crate) unix_offset: Nanos,
}

/// Who has messages to other shards, each once: namespaces with their plugins.
#[derive(Debug, Default)]
pub(crate) struct WaitingMessages {
    /// Those that are new where their namespace is not at home.
    pub(crate) begun: BTreeSet<(u32, PluginId)>,
    /// Those that say so themselves.
    pub(crate) told: BTreeSet<(u32, PluginId)>,
}

/// What a plugin sees and may do while it runs.
pub struct Context<'c> {
    /// The time.
    pub now: Nanos,
    /// The namespace, with its clients.
    pub namespace: &'c mut Namespace,
    pub(crate) plugins: &'c mut PluginSlots,
    pub(crate) shared: &'c mut Shared,
    pub(crate) index: u32,
    pub(crate) plugin: PluginId,
}

/// Bytes of Ethernet's addresses.
const MACS: usize = 12;
/// The shortest time between two turns of those who send.
const TICK: Nanos = 10 * MILLISECOND;

/// Frames.
impl Context<'_> {
    /// Sends a frame with the namespace's tags; `payload` bytes of zeros follow the EtherType, which
    /// the caller writes.
    #[inline]
    pub fn send(
        &mut self,
        source: MacAddress,
        destination: MacAddress,
        ether_type: EtherType,
        payload: usize,
    ) -> &mut [u8] {
        let tags = self.namespace.tags();
        let header = MACS + tags.len() + 2;
        let port = self.namespace.key().port;
        let frame = self.shared.tx.push(port, header + payload);
        frame[..6].copy_from_slice(&destination.octets());
        frame[6..MACS].copy_from_slice(&source.octets());
        frame[MACS..header - 2].copy_from_slice(tags);
        frame[header - 2..header].copy_from_slice(&ether_type.0.to_be_bytes());
        &mut frame[header..]
    }

    /// Sends an IPv4 packet; the caller writes the `payload` bytes behind its header. Length and
    /// header checksum are filled in; identification is that of `header`.
    ///
    /// # Panics
    /// When the packet is longer than 65,535 bytes.
    pub fn send_ipv4(
        &mut self,
        source: MacAddress,
        destination: MacAddress,
        header: &Ipv4Header,
        payload: usize,
    ) -> &mut [u8] {
        let bytes = header.buffer_len() + payload;
        let header = Ipv4Header {
            total_bytes: u16::try_from(bytes).expect("a packet has at most 65,535 bytes"),
            ..*header
        };
        let packet = self.send(source, destination, EtherType::IPV4, bytes);
        header.emit(packet);
        &mut packet[header.buffer_len()..]
    }

    /// Sends an IPv6 packet; the caller writes the `payload` bytes behind its header. The length is
    /// filled in.
    ///
    /// # Panics
    /// When the payload is longer than 65,535 bytes.
    pub fn send_ipv6(
        &mut self,
        source: MacAddress,
        destination: MacAddress,
        header: &Ipv6Header,
        payload: usize,
    ) -> &mut [u8] {
        let header = Ipv6Header {
            payload_bytes: u16::try_from(payload).expect("a payload has at most 65,535 bytes"),
            ..*header
        };
        let bytes = header.buffer_len() + payload;
        let packet = self.send(source, destination, EtherType::IPV6, bytes);
        header.emit(packet);
        &mut packet[header.buffer_len()..]
    }

    /// Sends a copy of a whole frame, as it is; the caller may change it.
    #[inline]
    pub fn send_copy(&mut self, frame: &[u8]) -> &mut [u8] {
        let port = self.namespace.key().port;
        let copy = self.shared.tx.push(port, frame.len());
        copy.copy_from_slice(frame);
        copy
    }

    /// Sends a frame of two parts, one behind the other, to change in place.
    pub fn send_joined(&mut self, head: &[u8], tail: &[u8]) -> &mut [u8] {
        let port = self.namespace.key().port;
        let joined = self.shared.tx.push(port, head.len() + tail.len());
        let (front, back) = joined.split_at_mut(head.len());
        front.copy_from_slice(head);
        back.copy_from_slice(tail);
        joined
    }
}

/// Time and chance.
impl Context<'_> {
    /// Sets a timer `delay` from now, for a client or for the namespace. `tag` comes back with it.
    pub fn set_timer(&mut self, delay: Nanos, client: Option<ClientId>, tag: u32) -> TimerId {
        let generation = client.map_or(0, |client| self.namespace.clients.generation(client));
        let owner = Owner {
            namespace: self.index,
            client: client.map_or(u32::MAX, |client| client.0),
            client_generation: generation as u16,
            plugin: self.plugin.0,
            tag,
        };
        let at = match self.shared.timer_due {
            Some(due) => due(self.now, delay),
            None => self.now.saturating_add(delay),
        };
        self.shared.timers.set(at, owner)
    }

    /// Cancels a timer; does nothing when it is over. Returns whether it was set.
    pub fn cancel_timer(&mut self, timer: TimerId) -> bool {
        self.shared.timers.cancel(timer)
    }

    /// A random number of 32 bits. The name says what it is for: a test gives the one of a
    /// recording by it.
    pub fn draw(&mut self, what: &'static str) -> u32 {
        let pinned = &self.shared.pinned;
        let pin = pinned.iter().find(|(name, _)| *name == what);
        pin.map_or_else(
            || self.shared.rng.next31() << 1 ^ self.shared.rng.next31(),
            |&(_, value)| value as u32,
        )
    }

    /// The time between two events of which there are `rate` a second.
    pub fn period(&self, rate: f64) -> Nanos {
        self.rounded(((1e9 / rate) as Nanos).max(1))
    }

    /// How long a timer of this delay really takes.
    pub fn rounded(&self, delay: Nanos) -> Nanos {
        let due = self.shared.timer_due;
        due.map_or(delay, |due| due(self.now, delay).saturating_sub(self.now))
    }

    /// The time in which those who send very often send several at once.
    pub fn tick(&self) -> Nanos {
        match self.shared.timer_due {
            Some(_) => self.rounded(1),
            None => TICK,
        }
    }

    /// The time since 1970.
    pub fn unix_time(&self) -> Nanos {
        self.now.wrapping_add(self.shared.unix_offset)
    }
}

/// TLS.
impl Context<'_> {
    /// What begins TLS sessions with these settings. Clients with equal settings share it; keep it
    /// while sessions are to begin.
    ///
    /// # Errors
    /// When a setting is wrong; the error names it.
    pub fn tls_client(
        &mut self,
        settings: TlsSettings,
    ) -> Result<Arc<TlsClient>, TlsSettingsError> {
        self.shared.tls.client(settings)
    }
}

/// Clients.
impl Context<'_> {
    /// A client.
    #[inline]
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.namespace.clients.get(id)
    }

    /// Whether a client has this plugin.
    #[inline]
    pub fn has_this(&self, id: ClientId) -> bool {
        let client = self.namespace.clients.get(id);
        client.is_some_and(|client| client.plugins & 1 << self.plugin.0 != 0)
    }

    /// Gives a client another IPv4 address, and tells its other plugins. Unspecified takes it away.
    /// Returns false when another client has it; nothing changes then.
    pub fn set_ipv4(&mut self, id: ClientId, address: Ipv4Addr) -> bool {
        let clients = &mut self.namespace.clients;
        if !address.is_unspecified() && clients.by_ipv4(address).is_some_and(|other| other != id) {
            return false;
        }
        let Some(client) = clients.get_mut(id) else {
            return false;
        };
        let old = std::mem::replace(&mut client.ipv4, address);
        if old != address {
            clients.index_ipv4(old, address, id);
            let key = self.namespace.key();
            self.shared.placements.ipv4_changed(key, old, address);
            self.publish(id, Event::Ipv4Changed(old));
        }
        true
    }

    /// Gives a client another gateway for IPv4, and tells its other plugins.
    pub fn set_gateway_ipv4(&mut self, id: ClientId, address: Ipv4Addr) {
        if let Some(client) = self.namespace.clients.get_mut(id) {
            let old = std::mem::replace(&mut client.gateway_ipv4, address);
            if old != address {
                self.publish(id, Event::GatewayIpv4Changed(old));
            }
        }
    }

    /// Gives a client another address by DHCPv6, and tells its other plugins. Unspecified takes it
    /// away. Returns false when another client has it.
    pub fn set_dhcp_ipv6(&mut self, id: ClientId, address: Ipv6Addr) -> bool {
        let clients = &mut self.namespace.clients;
        if !address.is_unspecified() && clients.by_ipv6(address).is_some_and(|other| other != id) {
            return false;
        }
        let Some(client) = clients.get_mut(id) else {
            return false;
        };
        let old = std::mem::replace(&mut client.dhcp_ipv6, address);
        if old != address {
            clients.index_ipv6(old, address, id);
            self.publish(id, Event::DhcpIpv6Changed(old));
        }
        true
    }

    /// Says what the MAC address of a client's gateway for IPv4 is, or that it is not known any
    /// more. The other plugins are told when it becomes known. A forced one stays.
    pub fn set_gateway_mac_ipv4(&mut self, id: ClientId, mac: Option<MacAddress>) {
        if let Some(client) = self.namespace.clients.get_mut(id) {
            let mac = client.forced_mac_ipv4().or(mac);
            let old = std::mem::replace(&mut client.gateway_mac_ipv4, mac);
            if old.is_none() && mac.is_some() {
                self.publish(id, Event::GatewayResolvedIpv4);
            }
        }
    }

    /// As [`Context::set_gateway_mac_ipv4`], for IPv6.
    pub fn set_gateway_mac_ipv6(&mut self, id: ClientId, mac: Option<MacAddress>) {
        if let Some(client) = self.namespace.clients.get_mut(id) {
            let mac = client.forced_mac_ipv6().or(mac);
            let old = std::mem::replace(&mut client.gateway_mac_ipv6, mac);
            if old.is_none() && mac.is_some() {
                self.publish(id, Event::GatewayResolvedIpv6);
            }
        }
    }
}

/// Other plugins.
impl Context<'_> {
    /// Tells all other plugins of a client, once the one that runs has returned.
    pub fn publish(&mut self, client: ClientId, event: Event) {
        self.shared.events.push_back(Pending {
            namespace: self.index,
            client,
            from: self.plugin,
            to: None,
            event,
        });
    }

    /// Tells one plugin something about a client, once the one that runs has returned.
    pub fn post(&mut self, to: PluginId, client: ClientId, token: u64, data: Vec<u8>) {
        let from = self.plugin;
        self.shared.events.push_back(Pending {
            namespace: self.index,
            client,
            from,
            to: Some(to),
            event: Event::Message { from, token, data },
        });
    }

    /// Tells one plugin what happened to a connection of its, once the one that runs has returned.
    pub(crate) fn tell(
        &mut self,
        to: PluginId,
        client: ClientId,
        socket: SocketId,
        tag: u32,
        what: SocketEvent,
    ) {
        self.shared.events.push_back(Pending {
            namespace: self.index,
            client,
            from: self.plugin,
            to: Some(to),
            event: Event::Socket { socket, tag, what },
        });
    }

    /// The plugin that runs has something to say to another shard ([`Plugin::poll_message`]).
    pub fn note_messages(&mut self) {
        self.shared.messages.told.insert((self.index, self.plugin));
    }

    /// The plugin that runs.
    pub fn this(&self) -> PluginId {
        self.plugin
    }

    /// Calls another plugin of the namespace, such as a transport to send by. `None` when the
    /// namespace does not have it, or it is one that is running.
    pub fn with_plugin<P: Plugin, R>(
        &mut self,
        run: impl FnOnce(&mut P, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let id = self.plugins.find::<P>()?;
        let mut plugin = self.plugins.take(id)?;
        let mut context = Context {
            now: self.now,
            namespace: self.namespace,
            plugins: self.plugins,
            shared: self.shared,
            index: self.index,
            plugin: id,
        };
        let other = (*plugin).as_any_mut().downcast_mut::<P>();
        let result = other.map(|other| run(other, &mut context));
        self.plugins.put(id, plugin);
        result
    }
}
