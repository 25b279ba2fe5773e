//! A [`MulticastHost`] in a namespace: its designator, its timer and its methods of the RPC.

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Command, Empty, Error, Example};
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_packet::MacAddress;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::groups::{GROUPS_MAX, Group, GroupError, SOURCES_MAX};
use super::{Family, MTU_DEFAULT, MulticastHost, Mute, Query, report::Message};
use crate::client::{Client, ClientId};
use crate::iter::{Cursor, Page, PageParams, page};
use crate::params::Params;
use crate::plugin::{Context, Plugin, PluginError};
use crate::read::{self, Done, Listable, Listed, Mac, failed_check};
use crate::spec::{OfNamespace, PluginCommand, about_namespace};
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

/// What was to be done with groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// To join them.
    Add,
    /// To leave them.
    Remove,
    /// To add sources to them.
    AddSources,
    /// To take sources from them.
    RemoveSources,
}

/// A family on the wire and in the RPC.
pub(crate) trait Protocol: Family {
    /// What a group is called in errors.
    const GROUP: &'static str;
    /// The names of parameters in errors.
    const ITERATE_TYPE: &'static str;
    /// The same, of the settings.
    const SET_TYPE: &'static str;

    /// An address in the RPC.
    type Wire: Into<Self::Address> + DeserializeOwned + Listable + Default + JsonSchema;
    /// A group and a source in the RPC.
    type Source: Into<(Self::Address, Self::Address)> + DeserializeOwned + Listable + JsonSchema;
    /// A group in the RPC.
    type Description: Serialize + JsonSchema;

    /// What the RPC says of a group.
    fn describe(group: &Group<Self::Address>) -> Self::Description;
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
            waiting: read::params::<Groups<F::Wire>>(init)?.addresses::<F>(),
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

    /// Joins groups.
    pub(crate) fn join_groups(
        &mut self,
        context: &mut Context<'_>,
        groups: Groups<F::Wire>,
    ) -> Result<Done, Error> {
        let added = self.add(context, &groups.addresses::<F>());
        refused::<F>(context, Verb::Add, added)
    }

    /// Leaves groups.
    pub(crate) fn leave_groups(
        &mut self,
        context: &mut Context<'_>,
        groups: Groups<F::Wire>,
    ) -> Result<Done, Error> {
        let designator = self.designator;
        let mut send =
            |message: Message<'_, _>, version| F::transmit(context, designator, &message, version);
        let removed = self.host.remove(&groups.addresses::<F>(), &mut send);
        let removed = removed.map_err(|(error, group)| (error, group, group));
        refused::<F>(context, Verb::Remove, removed)
    }

    /// Adds sources to groups.
    pub(crate) fn add_sources(
        &mut self,
        context: &mut Context<'_>,
        sources: SourceParams<F::Source>,
    ) -> Result<Done, Error> {
        let designator = self.designator;
        let mut send =
            |message: Message<'_, _>, version| F::transmit(context, designator, &message, version);
        let done = self.host.add_sources(&sources.pairs::<F>(), &mut send);
        refused::<F>(context, Verb::AddSources, done)
    }

    /// Takes sources from groups.
    pub(crate) fn remove_sources(
        &mut self,
        context: &mut Context<'_>,
        sources: SourceParams<F::Source>,
    ) -> Result<Done, Error> {
        let designator = self.designator;
        let mut send =
            |message: Message<'_, _>, version| F::transmit(context, designator, &message, version);
        let done = self.host.remove_sources(&sources.pairs::<F>(), &mut send);
        refused::<F>(context, Verb::RemoveSources, done)
    }

    /// Lists groups.
    pub(crate) fn page(&mut self, params: PageParams) -> Result<Page<F::Description>, Error> {
        let groups = self.host.groups();
        let (epoch, first) = (groups.changes(), groups.first());
        let describe = |slot| {
            let group = groups
                .at(slot)
                .expect("a cursor of this epoch is at a group");
            (F::describe(group), groups.next(slot))
        };
        let cursor = &mut self.cursor;
        page(cursor, params, F::ITERATE_TYPE, epoch, first, describe)
    }

    /// Who speaks, and how.
    pub(crate) fn settings(&self) -> MembershipSettings {
        MembershipSettings {
            mtu: self.host.mtu,
            dmac: Mac(self.designator),
            version: self.host.version(),
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

    /// Changes who speaks, and how.
    pub(crate) fn configure(&mut self, params: SetMembership) -> Result<Done, Error> {
        let SetMembership { mtu, dmac, version } = params;
        let mtu = mtu.unwrap_or_default();
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
        if dmac != Mac::default() {
            self.designator = dmac.0;
        }
        if version != 0 {
            self.host.set_version(version);
        }
        Ok(Done)
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
) -> Result<Done, Error> {
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
    result.map(|()| Done).map_err(refuse)
}

/// Groups to join or to leave.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, bound = "W: DeserializeOwned + Listable + Default")]
#[schemars(rename = "Groups{W}")]
pub(crate) struct Groups<W> {
    /// Their addresses.
    vec: Listed<W>,
}

impl<W> Default for Groups<W> {
    fn default() -> Groups<W> {
        let vec = Listed(Vec::new());
        Groups { vec }
    }
}

impl<W> Groups<W> {
    fn addresses<F: Protocol<Wire = W>>(self) -> Vec<F::Address>
    where
        W: Into<F::Address>,
    {
        self.vec.0.into_iter().map(Into::into).collect()
    }
}

/// Sources of groups.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, bound = "S: DeserializeOwned + Listable")]
#[schemars(rename = "{S}s")]
pub(crate) struct SourceParams<S> {
    /// The groups and their sources.
    #[schemars(with = "Vec<S>")]
    vec: Listed<Option<S>>,
}

impl<S> Default for SourceParams<S> {
    fn default() -> SourceParams<S> {
        let vec = Listed(Vec::new());
        SourceParams { vec }
    }
}

impl<S> SourceParams<S> {
    /// Pairs of group and source.
    fn pairs<F: Protocol>(self) -> Vec<(F::Address, F::Address)>
    where
        S: Into<(F::Address, F::Address)>,
    {
        self.vec.0.into_iter().flatten().map(Into::into).collect()
    }
}

/// Who speaks for the groups of a namespace, and how.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MembershipSettings {
    /// The longest report, in bytes.
    mtu: u16,
    /// The MAC address of the client that speaks.
    dmac: Mac,
    /// The version of the protocol.
    version: u8,
}

/// What to change of that.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SetMembership {
    /// The longest report, 256 to 9000 bytes.
    #[schemars(required)]
    mtu: Option<u16>,
    /// The MAC address of the client that speaks; without it the same as before.
    dmac: Mac,
    /// The version of the protocol; without it the same as before.
    version: u8,
}

/// A plugin that has groups, for its commands.
pub(crate) trait HasGroups: Plugin {
    /// Whose groups they are.
    type Family: Protocol;
    /// Its groups.
    fn membership(&mut self) -> &mut Membership<Self::Family>;
}

type Wire<P> = <<P as HasGroups>::Family as Protocol>::Wire;
type Source<P> = <<P as HasGroups>::Family as Protocol>::Source;
type Description<P> = <<P as HasGroups>::Family as Protocol>::Description;

/// The row of a command that joins groups.
pub(crate) const fn join_row<P: HasGroups>(name: &'static str, example: Example) -> PluginCommand {
    Command {
        name,
        doc: "Has the clients of a namespace join multicast groups, from all sources.",
        errors: &["a group is there already", "there would be too many groups"],
        example,
        ..about_namespace(&OfNamespace(
            |plugin: &mut P, context, groups: Groups<Wire<P>>| {
                plugin.membership().join_groups(context, groups)
            },
        ))
    }
}

/// The row of a command that leaves groups.
pub(crate) const fn leave_row<P: HasGroups>(name: &'static str, example: Example) -> PluginCommand {
    Command {
        name,
        doc: "Has the clients of a namespace leave multicast groups.",
        errors: &["a group is not there"],
        example,
        ..about_namespace(&OfNamespace(
            |plugin: &mut P, context, groups: Groups<Wire<P>>| {
                plugin.membership().leave_groups(context, groups)
            },
        ))
    }
}

/// The row of a command that adds sources to groups.
pub(crate) const fn add_sources_row<P: HasGroups>(
    name: &'static str,
    example: Example,
) -> PluginCommand {
    Command {
        name,
        doc: "Has the clients of a namespace listen to sources of multicast groups, which they join.",
        errors: &[
            "a source is there already",
            "a group is there from all sources",
            "there would be too many sources or groups",
        ],
        example,
        ..about_namespace(&OfNamespace(
            |plugin: &mut P, context, sources: SourceParams<Source<P>>| {
                plugin.membership().add_sources(context, sources)
            },
        ))
    }
}

/// The row of a command that takes sources from groups.
pub(crate) const fn remove_sources_row<P: HasGroups>(
    name: &'static str,
    example: Example,
) -> PluginCommand {
    Command {
        name,
        doc: "Has the clients of a namespace listen to sources of multicast groups no more; with its last \
              source a group is left.",
        errors: &[
            "a source or a group is not there",
            "a group is there from all sources",
        ],
        example,
        ..about_namespace(&OfNamespace(
            |plugin: &mut P, context, sources: SourceParams<Source<P>>| {
                plugin.membership().remove_sources(context, sources)
            },
        ))
    }
}

/// The row of a command that lists groups.
pub(crate) const fn page_row<P: HasGroups>(name: &'static str, example: Example) -> PluginCommand {
    Command {
        name,
        doc: "Lists the multicast groups of a namespace, a page at a time.",
        errors: &["groups have come or gone since the page before"],
        example,
        ..about_namespace(&OfNamespace(
            |plugin: &mut P, _, params| -> Result<Page<Description<P>>, Error> {
                plugin.membership().page(params)
            },
        ))
    }
}

/// The row of a command that says who speaks for groups.
pub(crate) const fn settings_row<P: HasGroups>(name: &'static str) -> PluginCommand {
    Command {
        name,
        doc: "Says which client speaks for the groups of a namespace, and how.",
        example: Example {
            params: r#"{"tun": {"vport": 0}}"#,
            result: r#"{"mtu": 1500, "dmac": [0, 0, 1, 0, 0, 1], "version": 2}"#,
        },
        ..about_namespace(&OfNamespace(|plugin: &mut P, _, _: Empty| {
            Ok(plugin.membership().settings())
        }))
    }
}

/// The row of a command that changes who speaks for groups.
pub(crate) const fn configure_row<P: HasGroups>(name: &'static str) -> PluginCommand {
    Command {
        name,
        doc: "Changes which client speaks for the groups of a namespace, and how.",
        errors: &["the MTU or the version is none that there may be"],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "mtu": 1500, "dmac": [0, 0, 1, 0, 0, 1], "version": 2}"#,
            result: "true",
        },
        ..about_namespace(&OfNamespace(|plugin: &mut P, _, params| {
            plugin.membership().configure(params)
        }))
    }
}

/// An address as the reference writes it in errors: `[239 1 1 1]`.
pub(crate) fn text(address: impl AsRef<[u8]>) -> String {
    let bytes = address.as_ref().iter().map(u8::to_string);
    format!("[{}]", bytes.collect::<Vec<_>>().join(" "))
}
