//! The commands of emulated clients: those of the emulation itself, and the list of all.
//!
//! A command of a plugin is in the plugin's description, which this list has by itself.

use std::fmt;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Command, Error, Example, Types};
use allosaur_engine::time::Nanos;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::emulation::Emulation;
use crate::plugin::PluginId;
use crate::plugins::PLUGINS;
use crate::read;
use crate::spec::PluginMethod;
use crate::target::{InNamespace, reply};

/// What a command does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method {
    /// One of the emulation itself.
    Core(CoreMethod),
    /// One of a plugin.
    Plugin(PluginId, PluginMethod),
}

/// What a command of the emulation itself does.
#[derive(Clone, Copy)]
pub(crate) struct CoreMethod(&'static dyn Handler);

impl CoreMethod {
    pub(super) fn call(
        self,
        emulation: &mut Emulation,
        now: Nanos,
        params: &Value,
    ) -> Result<Value, Error> {
        self.0.handle(emulation, now, params)
    }
}

impl fmt::Debug for CoreMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoreMethod")
    }
}

/// A function that answers a command, without its types.
trait Handler: Sync {
    fn handle(&self, emulation: &mut Emulation, now: Nanos, params: &Value)
    -> Result<Value, Error>;
}

/// A function that answers a command.
struct Of<Q, R>(fn(&mut Emulation, Nanos, Q) -> Result<R, Error>);

impl<Q: DeserializeOwned, R: Serialize> Handler for Of<Q, R> {
    fn handle(
        &self,
        emulation: &mut Emulation,
        now: Nanos,
        params: &Value,
    ) -> Result<Value, Error> {
        let done = (self.0)(emulation, now, read::params(params)?)?;
        Ok(reply(&done))
    }
}

/// What answers `api_sync_v2`. As TRex's, it does not say what is wrong with a parameter.
struct Handshake;

impl Handler for Handshake {
    fn handle(
        &self,
        emulation: &mut Emulation,
        now: Nanos,
        params: &Value,
    ) -> Result<Value, Error> {
        let params = read::params(params).map_err(|_| Error::bad_params("Invalid params"))?;
        Ok(reply(&emulation.api_sync(now, params)?))
    }
}

/// A function that answers a command about a namespace, by its place.
struct OfNamespace<Q, R>(fn(&mut Emulation, Nanos, u32, Q) -> Result<R, Error>);

impl<Q: DeserializeOwned, R: Serialize> Handler for OfNamespace<Q, R> {
    fn handle(
        &self,
        emulation: &mut Emulation,
        now: Nanos,
        params: &Value,
    ) -> Result<Value, Error> {
        let given = read::params(params)?;
        let index = emulation.namespace_of(params)?;
        let done = (self.0)(emulation, now, index, given)?;
        Ok(reply(&done))
    }
}

/// The row of a command about a namespace, to be completed with its name and what it means.
const fn about_namespace<Q, R>(handler: &'static OfNamespace<Q, R>) -> Command<CoreMethod>
where
    Q: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    let types = Types::of::<Q, R>().requested_by::<InNamespace<Q>>();
    Command::of(CoreMethod(handler), types)
}

/// The row of a command, to be completed with its name and what it means.
const fn row<Q, R>(handler: &'static Of<Q, R>) -> Command<CoreMethod>
where
    Q: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    Command::of(CoreMethod(handler), Types::of::<Q, R>())
}

/// The commands of the emulation itself.
pub(super) const CORE: &[Command<CoreMethod>] = &[
    Command {
        name: "api_sync_v2",
        access: Access::Open,
        doc: "Says which version of the RPC the caller speaks, and gets the handle that other commands want.",
        errors: &["the server speaks another version"],
        example: Example {
            params: r#"{"name": "EMU", "major": 1, "minor": 1}"#,
            result: r#"{"api_h": "kxvbzqpwet"}"#,
        },
        method: CoreMethod(&Handshake),
        ..row(&Of(Emulation::api_sync))
    },
    Command {
        name: "get_version",
        access: Access::Open,
        doc: "Gives the version of the server.",
        example: Example {
            params: "{}",
            result: r#"{"version": "v0.9.0", "build_date": "unknown", "build_time": "unknown", "built_by": "allosaur", "mode": "emulation"}"#,
        },
        ..row(&Of(Emulation::version))
    },
    Command {
        name: "ping",
        doc: "Gives the server's time.",
        example: Example {
            params: "{}",
            result: r#"{"ts": 4711}"#,
        },
        ..row(&Of(Emulation::ping))
    },
    Command {
        name: "shutdown",
        doc: "Ends the emulation: all namespaces and clients are gone. The server goes on.",
        example: Example {
            params: r#"{"time": 1}"#,
            result: "true",
        },
        ..row(&Of(Emulation::shutdown))
    },
    Command {
        name: "ctx_add",
        doc: "Adds namespaces; those in front of one that cannot be added stay.",
        errors: &[
            "a namespace is there already",
            "a plugin is unknown, or its init JSON is wrong",
        ],
        example: Example {
            params: r#"{"tunnels": [{"vport": 0, "tci": [100, 0], "tpid": [33024, 0], "plugs": {"arp": {}}}]}"#,
            result: "true",
        },
        ..row(&Of(Emulation::ctx_add))
    },
    Command {
        name: "ctx_remove",
        doc: "Removes namespaces; those in front of one that cannot be removed are gone.",
        errors: &["a namespace is not there", "a namespace has clients"],
        example: Example {
            params: r#"{"tunnels": [{"vport": 0}]}"#,
            result: "true",
        },
        ..row(&Of(Emulation::ctx_remove))
    },
    Command {
        name: "ctx_iter",
        doc: "Lists namespaces, a page at a time.",
        errors: &["namespaces have come or gone since the page before"],
        example: Example {
            params: r#"{"reset": true, "count": 255}"#,
            result: r#"{"empty": false, "stopped": false, "data": [{"vport": 0, "tci": [100, 0], "tpid": [33024, 0], "plugs": null}]}"#,
        },
        ..row(&Of(Emulation::ctx_iter))
    },
    Command {
        name: "ctx_get_info",
        doc: "Says which plugins namespaces have, and how many clients.",
        errors: &["a namespace is not there"],
        example: Example {
            params: r#"{"tunnels": [{"vport": 0}]}"#,
            result: r#"[{"vport": 0, "tci": [0, 0], "tpid": [0, 0], "active_clients": 3, "plug_names": ["arp"]}]"#,
        },
        ..row(&Of(Emulation::ctx_get_info))
    },
    Command {
        name: "ctx_set_def_plugins",
        doc: "Sets the plugins of namespaces that are added without any.",
        example: Example {
            params: r#"{"def_plugs": {"arp": {}, "icmp": {}}}"#,
            result: "true",
        },
        ..row(&Of(Emulation::ctx_set_def_plugins))
    },
    Command {
        name: "ctx_get_def_plugins",
        doc: "Gives the plugins of namespaces that are added without any.",
        example: Example {
            params: "{}",
            result: r#"{"def_plugs": {"arp": {}, "icmp": {}}}"#,
        },
        ..row(&Of(Emulation::ctx_get_def_plugins))
    },
    Command {
        name: "ctx_cnt",
        doc: "Gives the counters of the emulation as a whole, or clears them.",
        example: Example {
            params: r#"{"mask": ["ctx"]}"#,
            result: r#"{"ctx": {"activeNs": 1, "addNs": 1}}"#,
        },
        ..row(&Of(Emulation::ctx_cnt))
    },
    Command {
        name: "ctx_resource_monitor_get",
        doc: "Gives what the server has used of CPUs and memory since it was reset.",
        example: Example {
            params: "{}",
            result: r#"{"Resource monitor": {"cpuPercent": 12, "elapsedTimeMs": 1000, "rss": 31457280}}"#,
        },
        ..row(&Of(Emulation::resource_monitor))
    },
    Command {
        name: "ctx_resource_monitor_reset",
        doc: "Begins to measure anew what the server uses of CPUs.",
        ..row(&Of(Emulation::reset_resource_monitor))
    },
    Command {
        name: "ctx_stop_autotriggers",
        doc: "Stops a namespace from making clients by itself.",
        errors: &["the namespace is not there"],
        example: Example {
            params: r#"{"tun": {"vport": 0}}"#,
            result: "true",
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_stop_autotriggers))
    },
    Command {
        name: "ctx_client_add",
        doc: "Adds clients; those in front of one that cannot be added stay. One whose plugin cannot be made \
              stays without it.",
        errors: &[
            "the namespace is not there",
            "another client has one of the addresses",
            "a plugin is unknown, or its init JSON is wrong",
        ],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "clients": [{"mac": [0, 0, 1, 0, 0, 1], "ipv4": [1, 1, 1, 3], "ipv4_dg": [1, 1, 1, 1], "plugs": {"arp": {}}}]}"#,
            result: "true",
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_client_add))
    },
    Command {
        name: "ctx_client_remove",
        doc: "Removes clients; those in front of one that is not there are gone.",
        errors: &["the namespace is not there", "a client is not there"],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "macs": [[0, 0, 1, 0, 0, 1]]}"#,
            result: "true",
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_client_remove))
    },
    Command {
        name: "ctx_client_get_info",
        doc: "Says which addresses and plugins clients have, and what they know of their gateways.",
        errors: &["the namespace is not there", "a client is not there"],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "macs": [[0, 0, 1, 0, 0, 1]]}"#,
            result: r#"[{"mac": [0, 0, 1, 0, 0, 1], "ipv4": [1, 1, 1, 3], "ipv4_dg": [1, 1, 1, 1], "ipv4_mtu": 1500, "plug_names": ["arp"]}]"#,
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_client_get_info))
    },
    Command {
        name: "ctx_client_iter",
        doc: "Lists the clients of a namespace by their MAC addresses, a page at a time.",
        errors: &[
            "the namespace is not there",
            "clients have come or gone since the page before",
        ],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "reset": true, "count": 255}"#,
            result: r#"{"empty": false, "stopped": false, "data": [[0, 0, 1, 0, 0, 1]]}"#,
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_client_iter))
    },
    Command {
        name: "ctx_client_set_def_plugins",
        doc: "Sets the plugins of clients of a namespace that are added without any.",
        errors: &["the namespace is not there"],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "def_plugs": {"arp": {}, "icmp": {}}}"#,
            result: "true",
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_client_set_def_plugins))
    },
    Command {
        name: "ctx_client_get_def_plugins",
        doc: "Gives the plugins of clients of a namespace that are added without any.",
        errors: &["the namespace is not there"],
        example: Example {
            params: r#"{"tun": {"vport": 0}}"#,
            result: r#"{"def_plugs": {"arp": {}, "icmp": {}}}"#,
        },
        ..about_namespace(&OfNamespace(Emulation::ctx_client_get_def_plugins))
    },
];

/// All commands: those of the emulation, then those of each plugin.
fn all() -> impl Iterator<Item = Command<Method>> {
    let core = CORE
        .iter()
        .map(|command| command.with_method(Method::Core(command.method)));
    let of_plugins = (0..).map(PluginId).zip(PLUGINS).flat_map(|(id, spec)| {
        let commands = spec.commands.iter();
        commands.map(move |command| command.with_method(Method::Plugin(id, command.method)))
    });
    core.chain(of_plugins)
}

/// The command of a name.
pub(crate) fn find(name: &str) -> Option<Command<Method>> {
    all().find(|command| command.name == name)
}

/// The command of a name, for those who want to know of it.
pub fn command(name: &str) -> Option<Command<()>> {
    find(name).map(|command| command.with_method(()))
}

/// The names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|command| command.name)
}
