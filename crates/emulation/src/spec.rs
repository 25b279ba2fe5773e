//! The description of a plugin: how it is made, and its commands of the RPC.
//!
//! A command is a row, as those of the server are: [`about_namespace`] or [`about_client`] make it of the
//! function that does it, which says by its own types what the command takes and gives.

use std::fmt;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Command, Error, Example, Types};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::ClientId;
use crate::counters::{CounterMeta, CounterParams, CounterReport};
use crate::frame::FrameKind;
use crate::params::Params;
use crate::plugin::{Context, Plugin, PluginError};
use crate::read;
use crate::target::{InNamespace, OfOneClient, reply};

/// What makes a plugin for a namespace, from the init JSON.
pub type Create = fn(&mut Context<'_>, &Value) -> Result<Box<dyn Plugin>, PluginError>;

/// The description of a plugin.
#[derive(Debug)]
pub struct Spec {
    /// Its name in the RPC.
    pub name: &'static str,
    /// Which frames it takes.
    pub frames: &'static [FrameKind],
    /// Its commands.
    pub commands: &'static [PluginCommand],
    /// Its tables of counters: what tells their names apart, where it has several, and what they mean.
    pub counters: &'static [(&'static str, &'static [CounterMeta])],
    /// What its init JSON may have, in a client or in a namespace.
    pub keys: Keys,
    /// What its state is of.
    pub scope: Scope,
    /// Makes it for a namespace, from the namespace's init JSON (null when it was not given).
    pub create: Create,
}

/// What the state of a plugin is of, which says where its clients may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of single clients: those of a namespace may stand on several [shards](crate::shards), and each has
    /// the plugin. A namespace's init JSON says nothing to it.
    Client,
    /// Of the namespace: all clients that have it are together, at the namespace's home.
    Namespace,
}

/// What the init JSON of a plugin may have.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// These; others are refused. A namespace's may stand in a client's, as defaults of both have them.
    Only(&'static [&'static str]),
    /// The plugin looks itself.
    Own,
}

impl Keys {
    /// Refuses a key that is not known.
    ///
    /// # Errors
    /// When there is one.
    pub(crate) fn check(self, init: &Value) -> Result<(), PluginError> {
        match self {
            Keys::Only(known) => Ok(Params::new(init).only(known)?),
            Keys::Own => Ok(()),
        }
    }
}

/// Whom a command of a plugin is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A namespace (`tun`).
    Namespace,
    /// A client of it (`tun` and `mac`).
    Client,
}

/// How the replies of several shards to a command about a namespace make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// They are the same.
    Same,
    /// Tables of counters by their names, which are added up.
    Counters,
    /// Pages of neighbors, each of which is listed once.
    Neighbors,
}

/// A command of the RPC that a plugin has: a row as those of the server.
pub type PluginCommand = Command<PluginMethod>;

/// What a command of a plugin does.
#[derive(Clone, Copy)]
pub struct PluginMethod {
    /// Whom it is about.
    pub target: Target,
    /// How the replies make one when a namespace's clients stand on several shards.
    pub(crate) merge: Merge,
    handler: &'static dyn Handler,
}

impl PluginMethod {
    /// Answers the command: `client` is the one that it is about, when its target is a client.
    ///
    /// # Errors
    /// When a parameter is wrong, or it cannot be done; nothing has changed then.
    pub(crate) fn call(
        self,
        plugin: &mut dyn Plugin,
        context: &mut Context<'_>,
        client: Option<ClientId>,
        params: &Value,
    ) -> Result<Value, Error> {
        self.handler.handle(plugin, context, client, params)
    }
}

impl fmt::Debug for PluginMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

/// A function of a plugin that answers a command, without its types.
trait Handler: Sync {
    fn handle(
        &self,
        plugin: &mut dyn Plugin,
        context: &mut Context<'_>,
        client: Option<ClientId>,
        params: &Value,
    ) -> Result<Value, Error>;
}

/// A function that answers a command about a namespace.
pub struct OfNamespace<P, Q, R>(pub fn(&mut P, &mut Context<'_>, Q) -> Result<R, Error>);

/// A function that answers a command about a client.
pub struct OfClient<P, Q, R>(pub fn(&mut P, &mut Context<'_>, ClientId, Q) -> Result<R, Error>);

impl<P: Plugin, Q: DeserializeOwned, R: Serialize> Handler for OfNamespace<P, Q, R> {
    fn handle(
        &self,
        plugin: &mut dyn Plugin,
        context: &mut Context<'_>,
        _: Option<ClientId>,
        params: &Value,
    ) -> Result<Value, Error> {
        let done = (self.0)(of_type(plugin), context, read::params(params)?)?;
        Ok(reply(&done))
    }
}

impl<P: Plugin, Q: DeserializeOwned, R: Serialize> Handler for OfClient<P, Q, R> {
    fn handle(
        &self,
        plugin: &mut dyn Plugin,
        context: &mut Context<'_>,
        client: Option<ClientId>,
        params: &Value,
    ) -> Result<Value, Error> {
        let client = client.expect("a command about a client is called with one");
        let done = (self.0)(of_type(plugin), context, client, read::params(params)?)?;
        Ok(reply(&done))
    }
}

fn of_type<P: Plugin>(plugin: &mut dyn Plugin) -> &mut P {
    let plugin = plugin.as_any_mut().downcast_mut();
    plugin.expect("a plugin is of the type that its own description has")
}

/// The row of a command about a namespace, to be completed with its name and what it means.
pub const fn about_namespace<P, Q, R>(handler: &'static OfNamespace<P, Q, R>) -> PluginCommand
where
    P: Plugin,
    Q: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    row::<Q, R, InNamespace<Q>>(PluginMethod {
        target: Target::Namespace,
        merge: Merge::Same,
        handler,
    })
}

/// The same of a command about a client.
pub const fn about_client<P, Q, R>(handler: &'static OfClient<P, Q, R>) -> PluginCommand
where
    P: Plugin,
    Q: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    row::<Q, R, OfOneClient<Q>>(PluginMethod {
        target: Target::Client,
        merge: Merge::Same,
        handler,
    })
}

/// The row of a command that lists the neighbors of a namespace, to be completed.
pub const fn neighbor_pages<P, Q, R>(handler: &'static OfNamespace<P, Q, R>) -> PluginCommand
where
    P: Plugin,
    Q: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    merged(about_namespace(handler), Merge::Neighbors)
}

const fn merged(command: PluginCommand, merge: Merge) -> PluginCommand {
    let method = PluginMethod {
        merge,
        ..command.method
    };
    Command { method, ..command }
}

const fn row<Q, R, T>(method: PluginMethod) -> PluginCommand
where
    Q: DeserializeOwned + JsonSchema,
    R: Serialize + JsonSchema,
    T: JsonSchema,
{
    Command::of(method, Types::of::<Q, R>().requested_by::<T>())
}

/// The row that gives the counters of a namespace.
pub const fn namespace_counters<P: Plugin>(name: &'static str, access: Access) -> PluginCommand {
    Command {
        name,
        access,
        doc: "Gives the plugin's counters of a namespace, or clears them.",
        example: Example {
            params: r#"{"tun": {"vport": 0}, "zero": false}"#,
            result: r#"{"table": {"counter": 3}}"#,
        },
        ..merged(
            about_namespace(&OfNamespace(report_of_namespace::<P>)),
            Merge::Counters,
        )
    }
}

/// The row that gives the counters of a client.
pub const fn client_counters<P: Plugin>(name: &'static str, access: Access) -> PluginCommand {
    Command {
        name,
        access,
        doc: "Gives the plugin's counters of a client, or clears them.",
        example: Example {
            params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "zero": false}"#,
            result: r#"{"table": {"counter": 3}}"#,
        },
        ..about_client(&OfClient(report_of_client::<P>))
    }
}

fn report_of_namespace<P: Plugin>(
    plugin: &mut P,
    context: &mut Context<'_>,
    params: CounterParams,
) -> Result<CounterReport, Error> {
    Ok(report(plugin, context, None, &params))
}

fn report_of_client<P: Plugin>(
    plugin: &mut P,
    context: &mut Context<'_>,
    client: ClientId,
    params: CounterParams,
) -> Result<CounterReport, Error> {
    Ok(report(plugin, context, Some(client), &params))
}

fn report<P: Plugin>(
    plugin: &mut P,
    context: &mut Context<'_>,
    client: Option<ClientId>,
    params: &CounterParams,
) -> CounterReport {
    let mut report = params.report();
    plugin.counters(context.namespace, client, &mut |_, table| {
        params.add(&mut report, table);
    });
    if params.clear {
        plugin.counters_cleared();
    }
    report
}
