//! The requests that drive an emulation: methods of the core and of the plugins, and their messages.

pub(crate) mod address_conflict;
pub mod call;
mod clients;
pub mod commands;
pub mod dialect;
mod namespaces;
pub(crate) mod query;
#[cfg(feature = "schema")]
pub mod reference;

use allosaur_api::error::{EXECUTION, INTERNAL, METHOD_NOT_FOUND};
use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Empty, Error, Exchange};
use allosaur_engine::time::{Nanos, SECOND};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::emulation::Emulation;
use crate::plugin::PluginId;
use crate::plugins::PLUGINS;
use crate::read::{self, Done};
use crate::spec::{PluginMethod, Target};
use crate::target::{ClientParams, TunnelParams, reply};
use call::{Items, RpcCall};
use commands::Method;
use dialect::EmulationDialect;

/// The version of the RPC.
const API: (&str, u8, u8) = ("EMU", 1, 1);
/// The unit of `ping`'s time.
const TICK: Nanos = SECOND / 100;

impl Emulation {
    /// Answers a message: a request or a batch of them, in JSON.
    pub fn handle_message(&mut self, now: Nanos, text: &[u8]) -> Vec<u8> {
        let mut exchange = Exchange::<EmulationDialect>::read(text.to_vec(), false);
        while let Some(call) = exchange.next_request() {
            exchange.answer(self.handle_call(now, call));
        }
        exchange.into_text()
    }

    /// Answers a request of a message, whose caller must have given its `api_h`.
    ///
    /// # Errors
    /// As [`Emulation::handle_request`], and when `api_h` is wrong.
    pub fn handle_call(&mut self, now: Nanos, call: RpcCall) -> Result<Value, Error> {
        if !call.is_admitted && needs_api(&call.method) {
            let given = call.params.get("api_h").map_or(Some(""), Value::as_str);
            let known = if self.is_synced { &self.api_handle } else { "" };
            if given != Some(known) {
                return Err(Error::bad_params("Method with not a valid API "));
            }
        }
        let params = &call.params;
        let done = match call.items {
            Items::Clients(clients) => {
                let index = self.namespace_of(params)?;
                self.add_clients(now, index, clients)?
            }
            Items::Macs(macs) => {
                let index = self.namespace_of(params)?;
                self.remove_clients(now, index, macs)?
            }
            Items::None if call.is_part && self.lacks_plugin(&call.method, params) => {
                return Ok(Value::Null);
            }
            Items::Query(query) => return self.query(params, &query),
            Items::None => return self.handle_request(now, &call.method, params),
        };
        Ok(reply(&done))
    }

    /// Answers a request. State is whole after an error.
    ///
    /// # Errors
    /// When the method is unknown or cannot be done, with what was wrong.
    pub fn handle_request(
        &mut self,
        now: Nanos,
        method: &str,
        params: &Value,
    ) -> Result<Value, Error> {
        match commands::find(method).map(|command| command.method) {
            Some(Method::Core(method)) => method.call(self, now, params),
            Some(Method::Plugin(id, method)) => self.call_plugin(now, id, method, params),
            None => Err(Error {
                code: METHOD_NOT_FOUND,
                message: "Method not found".to_owned(),
                specific: None,
            }),
        }
    }

    fn api_sync(&mut self, _: Nanos, params: SyncParams) -> Result<ApiHandle, Error> {
        let SyncParams { name, major, minor } = params;
        let (ours, our_major, our_minor) = API;
        if name != ours || major != our_major || minor > our_minor {
            return Err(Error::execution(format!(
                "Server API {ours}:({our_major}:{our_minor}) does not match the client API \
                 {name}:({major}:{minor}) "
            )));
        }
        self.is_synced = true;
        let api_h = self.api_handle.clone();
        Ok(ApiHandle { api_h })
    }

    fn version(&mut self, _: Nanos, _: Empty) -> Result<Version, Error> {
        Ok(Version {
            version: concat!("v", env!("CARGO_PKG_VERSION")),
            build_date: "unknown",
            build_time: "unknown",
            built_by: "allosaur",
            mode: "emulation",
        })
    }

    fn ping(&mut self, now: Nanos, _: Empty) -> Result<Time, Error> {
        Ok(Time { ts: now / TICK })
    }

    fn shutdown(&mut self, now: Nanos, params: ShutdownParams) -> Result<Done, Error> {
        let seconds = Nanos::from(params.time);
        self.shutdown_at = Some(now.saturating_add(seconds * SECOND));
        Ok(Done)
    }

    fn call_plugin(
        &mut self,
        now: Nanos,
        id: PluginId,
        method: PluginMethod,
        params: &Value,
    ) -> Result<Value, Error> {
        let name = PLUGINS[usize::from(id.0)].name;
        // Whether a client is named is looked at before where it is.
        let mac = match method.target {
            Target::Namespace => None,
            Target::Client => Some(read::params::<ClientParams>(params)?.mac()?.0),
        };
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get(index).expect("it was found");
        let client = match mac {
            None => None,
            Some(mac) => {
                let client = entry.namespace.clients.by_mac(mac).ok_or_else(|| {
                    Error::execution(format!(
                        "Error there is no valid client {mac} for this MAC "
                    ))
                })?;
                let state = entry.namespace.clients.get(client);
                if state.is_none_or(|state| state.plugins & 1 << id.0 == 0) {
                    return Err(Error::execution(format!(
                        "Error there is no valid plugin {name} for this client "
                    )));
                }
                Some(client)
            }
        };
        let result = self.run(now, index, id, |plugin, context| {
            method.call(plugin, context, client, params)
        });
        result.unwrap_or_else(|| {
            Err(Error::execution(format!(
                " error there is no valid plugin {name} for this tunnel "
            )))
        })
    }

    /// Whether a method is of a plugin that its namespace does not have here.
    fn lacks_plugin(&mut self, method: &str, params: &Value) -> bool {
        let found = commands::find(method).map(|command| command.method);
        let (Some(Method::Plugin(id, _)), Ok(index)) = (found, self.namespace_of(params)) else {
            return false;
        };
        let entry = self.namespaces.get(index);
        entry.is_some_and(|entry| entry.plugins.set() & 1 << id.0 == 0)
    }

    /// The namespace of `tun`.
    fn namespace_of(&mut self, params: &Value) -> Result<u32, Error> {
        let TunnelParams { tun } = read::params(params)?;
        let index = self.find_namespace(tun.unwrap_or_default().key());
        index.ok_or_else(|| Error::execution(" error there is no valid namespace for this tunnel "))
    }
}

/// Parameters of `api_sync_v2`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SyncParams {
    /// The name of the API: `EMU`.
    name: String,
    /// The version that the caller speaks: the server's must be the same.
    major: u8,
    /// The same: the server's must not be lower.
    minor: u8,
}

/// Reply of `api_sync_v2`.
#[derive(Debug, Serialize, JsonSchema)]
struct ApiHandle {
    /// What other commands want as `api_h`.
    api_h: String,
}

/// Reply of `get_version`.
#[derive(Debug, Serialize, JsonSchema)]
struct Version {
    /// The version.
    version: &'static str,
    /// `unknown`.
    build_date: &'static str,
    /// `unknown`.
    build_time: &'static str,
    /// `allosaur`.
    built_by: &'static str,
    /// `emulation`.
    mode: &'static str,
}

/// Reply of `ping`.
#[derive(Debug, Serialize, JsonSchema)]
struct Time {
    /// The server's time, in hundredths of a second.
    ts: u64,
}

/// Parameters of `shutdown`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ShutdownParams {
    /// In how many seconds.
    time: u32,
}

/// Whether a method can be called only with the `api_h` that `api_sync_v2` gave. One that is not
/// there can be called, and is not found, but for names that begin as those of the emulation do.
fn needs_api(method: &str) -> bool {
    match commands::find(method) {
        Some(command) => command.access != Access::Open,
        None => method.starts_with("ctx_"),
    }
}

/// An error of the same text with the code of those of clients' plugins.
fn internal(error: Error) -> Error {
    Error {
        code: match error.code {
            EXECUTION => INTERNAL,
            code => code,
        },
        ..error
    }
}
