//! A [`MulticastHost`] in a namespace: its designator, its timer and its methods of the RPC.

use allosaur_api::Error;
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_packet::MacAddress;
use serde_json::{Value, json};

use super::groups::{GROUPS_MAX, Group, GroupError, SOURCES_MAX};
use super::{Family, MTU_DEFAULT, MulticastHost, Mute, Query, report::Message};
use crate::client::{Client, ClientId};
use crate::iter::{Cursor, page};
use crate::params::{Params, failed_check};
use crate::plugin::{Context, PluginError};
use crate::timers::TimerId;

const MTU_MIN: u16 = 256;
const MTU_MAX: u16 = 9000;

/// Why a method of the RPC failed, of which group and source.
#[derive(Debug)]
pub(crate) struct Refusal<A> {
    /// What was to be done.
    pub(crate) verb: Verb,
    /// Why it was not.
    pub(crate) error: GroupError,
    /// With which group.
    pub(crate) group: A,
    /// With which source; that of the group again where there is none.
    pub(crate) source: A,
}

impl<A: AsRef<[u8]> + Copy> Refusal<A> {
    /// The text that both families have; they call a group `mc-ipv4` or `mc-ipv6`.
    fn text(&self, namespace: &str, what: &str) -> String {
        let (g, s) = (text(self.group), text(self.source));
        let refused = match (self.verb, self.error) {
            (Verb::AddSources, GroupError::Full) => format!(
                "has {SOURCES_MAX} sources in the group, or {GROUPS_MAX} groups, the most there can \
                 be; remove some first"
            ),
            (_, GroupError::Full) => {
                format!("has {GROUPS_MAX} groups, the most there can be; remove some first")
            }
            (Verb::AddSources, _) => format!("add(s,g) ({s},{g}) in the wrong mode"),
            (Verb::RemoveSources, GroupError::Missing) => {
                format!("add(s,g) ({g}) group does not exits")
            }
            (Verb::RemoveSources, _) => format!("remove(s,g) ({s},{g}) in the wrong mode"),
            (Verb::Remove, _) => format!("{what} {g} does not exist"),
            _ => format!("{what} {g} already exist"),
        };
        format!(" {namespace} {refused}")
    }
}

/// What a method of the RPC does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Joins groups.
    Add,
    /// Leaves groups.
    Remove,
    /// Adds sources to groups.
    AddSources,
    /// Takes sources from groups.
    RemoveSources,
    /// Lists groups.
    Iterate,
    /// Says who speaks, and how.
    Settings,
    /// Changes that.
    SetSettings,
}

impl Verb {
    /// By the name of a method, behind the family's prefix.
    pub(crate) fn of_method(name: &str) -> Option<Verb> {
        Some(match name {
            "add" => Verb::Add,
            "remove" => Verb::Remove,
            "sg_add" => Verb::AddSources,
            "sg_remove" => Verb::RemoveSources,
            "iter" => Verb::Iterate,
            "get_cfg" => Verb::Settings,
            "set_cfg" => Verb::SetSettings,
            _ => return None,
        })
    }
}

/// A family on the wire and in the RPC.
pub(crate) trait Protocol: Family {
    /// What a group is called in errors.
    const GROUP: &'static str;
    /// The name of an address in errors.
    const ADDRESS_TYPE: &'static str;
    /// The name of a pair of group and source in errors.
    const PAIR_TYPE: &'static str;
    /// The names of parameters in errors.
    const ITERATE_TYPE: &'static str;
    /// The same, of the settings.
    const SET_TYPE: &'static str;

    /// An address in the RPC.
    fn address(value: &Value) -> Result<Self::Address, Error>;
    /// The address of all zeros.
    fn unspecified() -> Self::Address;
    /// A group in the RPC.
    fn describe(group: &Group<Self::Address>) -> Value;
    /// The text of an error in the RPC, in a namespace, where the family has its own.
    fn refuse(namespace: &str, refusal: &Refusal<Self::Address>) -> Option<String>;
    /// Sends a report of the designator.
    fn transmit(
        context: &mut Context<'_>,
        designator: MacAddress,
        message: &Message<'_, Self::Address>,
        version: u8,
    ) -> Result<(), Mute>;
}

/// The client that speaks for the groups of its namespace.
pub(crate) fn designated<'c>(
    context: &'c Context<'_>,
    designator: MacAddress,
) -> Result<&'c Client, Mute> {
    let clients = &context.namespace.clients;
    let client = clients.by_mac(designator).and_then(|id| clients.get(id));
    client.ok_or(Mute::NoDesignator)
}

/// The groups of a namespace, with who speaks for them.
#[derive(Debug)]
pub(crate) struct Membership<F: Protocol> {
    /// The groups.
    pub(crate) host: MulticastHost<F>,
    designator: MacAddress,
    /// Groups of the namespace's init JSON, which wait for the designator to come.
    waiting: Vec<F::Address>,
    /// How far the RPC has read the groups.
    cursor: Cursor<u32>,
    timer: TimerId,
    timer_at: Option<Nanos>,
    tag: u32,
}

impl<F: Protocol> Membership<F> {
    /// From the init JSON of a namespace; its timer has the tag.
    ///
    /// # Errors
    /// When the init JSON is wrong.
    pub(crate) fn new(init: &Value, tag: u32) -> Result<Self, PluginError> {
        let params = Params::new(init);
        let mtu = params.number_or("mtu", MTU_DEFAULT)?;
        let version = params.number_or("version", F::VERSION_MAX)?;
        if !(MTU_MIN..=MTU_MAX).contains(&mtu) {
            let text = format!("mtu is {mtu}; it must be from {MTU_MIN} to {MTU_MAX}");
            return Err(PluginError(text));
        }
        if !(1..=F::VERSION_MAX).contains(&version) {
            let max = F::VERSION_MAX;
            let text = format!("version is {version}; it must be from 1 to {max}");
            return Err(PluginError(text));
        }
        Ok(Membership {
            host: MulticastHost::new(mtu, version),
            designator: params.mac("dmac")?.unwrap_or_default(),
            waiting: addresses::<F>(params)?,
            cursor: Cursor::Stopped,
            timer: TimerId::NONE,
            timer_at: None,
            tag,
        })
    }

    /// A client came: when it is the designator, groups that waited for it are joined.
    pub(crate) fn add_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        let mac = context.client(client).map(|client| client.mac);
        if mac == Some(self.designator) && !self.waiting.is_empty() {
            let groups = std::mem::take(&mut self.waiting);
            // Only groups that are named twice are refused, and there is nobody to tell.
            let _ = self.add(context, &groups);
        }
    }

    /// A client got an address that is in a group.
    pub(crate) fn join(&mut self, context: &mut Context<'_>, group: F::Address) {
        self.host.join(context.now, group);
        self.set_timer(context);
    }

    /// A client lost an address that is in a group.
    pub(crate) fn leave(&mut self, context: &mut Context<'_>, group: F::Address) {
        self.host.leave(context.now, group);
        self.set_timer(context);
    }

    /// A router asks.
    pub(crate) fn handle_query(&mut self, context: &mut Context<'_>, query: &Query<F::Address>) {
        let now = context.now;
        let draw = u64::from(context.draw("multicast response delay"));
        // From 1 ms on, in whole milliseconds; a drawn zero is at once.
        let delay = |max: Nanos| match (draw, max / MILLISECOND) {
            (0, _) | (_, 0) => 0,
            (draw, max) => (1 + draw % max) * MILLISECOND,
        };
        let designator = self.designator;
        let mut send =
            |message: Message<'_, _>, version| F::transmit(context, designator, &message, version);
        self.host.handle_query(now, query, delay, &mut send);
        self.set_timer(context);
    }

    /// The timer is over.
    pub(crate) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.timer_at = None;
        let (now, designator) = (context.now, self.designator);
        let mut send =
            |message: Message<'_, _>, version| F::transmit(context, designator, &message, version);
        self.host.handle_timeout(now, &mut send);
        self.set_timer(context);
    }

    /// Answers a method of the RPC.
    ///
    /// # Errors
    /// When a parameter is wrong, or a group is or is not there.
    pub(crate) fn call(
        &mut self,
        context: &mut Context<'_>,
        verb: Verb,
        given: &Value,
    ) -> Result<Value, Error> {
        let params = Params::new(given);
        match verb {
            Verb::Add => {
                let groups = addresses::<F>(params)?;
                let added = self.add(context, &groups);
                refused::<F>(context, verb, added)
            }
            Verb::Remove => {
                let groups = addresses::<F>(params)?;
                let designator = self.designator;
                let mut send = |message: Message<'_, _>, version| {
                    F::transmit(context, designator, &message, version)
                };
                let removed = self.host.remove(&groups, &mut send);
                let removed = removed.map_err(|(error, group)| (error, group, group));
                refused::<F>(context, verb, removed)
            }
            Verb::AddSources | Verb::RemoveSources => {
                let pairs = pairs::<F>(params)?;
                let designator = self.designator;
                let mut send = |message: Message<'_, _>, version| {
                    F::transmit(context, designator, &message, version)
                };
                let done = if verb == Verb::AddSources {
                    self.host.add_sources(&pairs, &mut send)
                } else {
                    self.host.remove_sources(&pairs, &mut send)
                };
                refused::<F>(context, verb, done)
            }
            Verb::Iterate => {
                let groups = self.host.groups();
                let (epoch, first) = (groups.changes(), groups.first());
                let describe = |slot| {
                    let group = groups.at(slot).map_or(Value::Null, F::describe);
                    (group, groups.next(slot))
                };
                let cursor = &mut self.cursor;
                page(cursor, given, F::ITERATE_TYPE, epoch, first, describe)
            }
            Verb::Settings => Ok(json!({
                "mtu": self.host.mtu,
                "dmac": self.designator.octets(),
                "version": self.host.version(),
            })),
            Verb::SetSettings => self.configure(params),
        }
    }

    fn add(
        &mut self,
        context: &mut Context<'_>,
        groups: &[F::Address],
    ) -> Result<(), (GroupError, F::Address, F::Address)> {
        let designator = self.designator;
        let mut send =
            |message: Message<'_, _>, version| F::transmit(context, designator, &message, version);
        let added = self.host.add(groups, &mut send);
        added.map_err(|(error, group)| (error, group, group))
    }

    fn configure(&mut self, params: Params<'_>) -> Result<Value, Error> {
        let mtu = params.number_or("mtu", 0)?;
        let designator = params.mac("dmac")?.unwrap_or_default();
        let version = params.number_or("version", 0_u8)?;
        let invalid = match mtu {
            0 => "required",
            1..MTU_MIN => "gte",
            MTU_MIN..=MTU_MAX => "",
            _ => "lte",
        };
        if !invalid.is_empty() {
            return Err(failed_check(F::SET_TYPE, "Mtu", invalid));
        }
        if version > F::VERSION_MAX {
            return Err(failed_check(F::SET_TYPE, "Version", "lte"));
        }
        self.host.mtu = mtu;
        // What is not given stays.
        if designator != MacAddress::ZERO {
            self.designator = designator;
        }
        if version != 0 {
            self.host.set_version(version);
        }
        Ok(Value::Bool(true))
    }

    fn set_timer(&mut self, context: &mut Context<'_>) {
        let at = self.host.poll_timeout();
        if at != self.timer_at {
            context.cancel_timer(self.timer);
            self.timer_at = at;
            self.timer = at.map_or(TimerId::NONE, |at| {
                context.set_timer(at.saturating_sub(context.now), None, self.tag)
            });
        }
    }
}

fn refused<F: Protocol>(
    context: &Context<'_>,
    verb: Verb,
    result: Result<(), (GroupError, F::Address, F::Address)>,
) -> Result<Value, Error> {
    let refuse = |(error, group, source)| {
        let refusal = Refusal {
            verb,
            error,
            group,
            source,
        };
        let namespace = format!("ns:{}", context.namespace.key());
        let own = F::refuse(&namespace, &refusal);
        Error::execution(own.unwrap_or_else(|| refusal.text(&namespace, F::GROUP)))
    };
    result.map(|()| Value::Bool(true)).map_err(refuse)
}

fn addresses<F: Protocol>(params: Params<'_>) -> Result<Vec<F::Address>, Error> {
    let list = params.list("vec", &format!("[]{}", F::ADDRESS_TYPE))?;
    list.into_iter().flatten().map(F::address).collect()
}

/// A group and a source.
type Pair<F> = (<F as Family>::Address, <F as Family>::Address);

/// Pairs of group and source; null is none.
fn pairs<F: Protocol>(params: Params<'_>) -> Result<Vec<Pair<F>>, Error> {
    let list = params.list("vec", &format!("[]*{}", F::PAIR_TYPE))?;
    let given = list.into_iter().flatten().filter(|pair| !pair.is_null());
    let pairs = given.map(|pair| {
        let pair = Params::object(pair, F::PAIR_TYPE)?;
        let address = |name| match pair.get(name) {
            Some(value) => F::address(value),
            None => Ok(F::unspecified()),
        };
        Ok((address("g")?, address("s")?))
    });
    pairs.collect()
}

/// An address as the reference writes it in errors: `[239 1 1 1]`.
pub(crate) fn text(address: impl AsRef<[u8]>) -> String {
    let bytes = address.as_ref().iter().map(u8::to_string);
    format!("[{}]", bytes.collect::<Vec<_>>().join(" "))
}
