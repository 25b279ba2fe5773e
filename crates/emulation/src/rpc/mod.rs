//! The requests that drive an emulation: methods of the core and of the plugins, and their messages.

pub mod call;
mod clients;
pub mod dialect;
mod namespaces;

use allosaur_api::error::{EXECUTION, INTERNAL, METHOD_NOT_FOUND};
use allosaur_api::{Error, Exchange};
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::{Value, json};

use crate::emulation::Emulation;
use crate::namespace::{NamespaceKey, Tag};
use crate::params::{Params, failed_check, mismatch, number};
use crate::plugin::{Call, Method, PluginId, Target};
use crate::plugins::PLUGINS;
use call::{Items, RpcCall};
use dialect::EmulationDialect;

/// Methods of the core that need no `api_h`.
const FREE: [&str; 2] = ["api_sync_v2", "get_version"];
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
        if needs_api(&call.method) {
            let given = call.params.get("api_h").map_or(Some(""), Value::as_str);
            let known = if self.is_synced { &self.api_handle } else { "" };
            if given != Some(known) {
                return Err(Error::bad_params("Method with not a valid API "));
            }
        }
        let params = &call.params;
        match call.items {
            Items::Clients(clients) => self.ctx_client_add(now, params, Some(clients)),
            Items::Macs(macs) => self.ctx_client_remove(now, params, Some(macs)),
            Items::None => self.handle_request(now, &call.method, params),
        }
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
        match method {
            "api_sync_v2" => self.api_sync(params),
            "get_version" => Ok(version()),
            "ping" => Ok(json!({"ts": now / TICK})),
            "shutdown" => self.shutdown(now, params),
            "ctx_add" => self.ctx_add(now, params),
            "ctx_remove" => self.ctx_remove(now, params),
            "ctx_iter" => self.ctx_iter(params),
            "ctx_get_info" => self.ctx_get_info(params),
            "ctx_set_def_plugins" => self.ctx_set_def_plugins(params),
            "ctx_get_def_plugins" => Ok(json!({"def_plugs": self.namespace_defaults})),
            "ctx_cnt" => self.ctx_cnt(now, params),
            "ctx_resource_monitor_get" => self.resource_monitor(now, params),
            "ctx_resource_monitor_reset" => {
                self.usage.reset(now);
                Ok(Value::Bool(true))
            }
            "ctx_stop_autotriggers" => {
                let index = self.namespace_of(params)?;
                self.stop_auto_triggers(now, index);
                Ok(Value::Bool(true))
            }
            "ctx_client_add" => self.ctx_client_add(now, params, None),
            "ctx_client_remove" => self.ctx_client_remove(now, params, None),
            "ctx_client_get_info" => self.ctx_client_get_info(params),
            "ctx_client_iter" => self.ctx_client_iter(params),
            "ctx_client_set_def_plugins" => self.ctx_client_set_def_plugins(params),
            "ctx_client_get_def_plugins" => self.ctx_client_get_def_plugins(params),
            _ => self.call_plugin(now, method, params),
        }
    }

    fn api_sync(&mut self, params: &Value) -> Result<Value, Error> {
        let params = Params::new(params);
        let invalid = |_| Error::bad_params("Invalid params");
        let name = params.string_or("name", "").map_err(invalid)?;
        let major: u8 = params.number_or("major", 0).map_err(invalid)?;
        let minor: u8 = params.number_or("minor", 0).map_err(invalid)?;
        let (ours, our_major, our_minor) = API;
        if name != ours || major != our_major || minor > our_minor {
            return Err(Error::execution(format!(
                "Server API {ours}:({our_major}:{our_minor}) does not match the client API \
                 {name}:({major}:{minor}) "
            )));
        }
        self.is_synced = true;
        Ok(json!({"api_h": self.api_handle}))
    }

    fn shutdown(&mut self, now: Nanos, params: &Value) -> Result<Value, Error> {
        let seconds: u32 = Params::new(params).number_or("time", 0)?;
        self.shutdown_at = Some(now.saturating_add(Nanos::from(seconds) * SECOND));
        Ok(Value::Bool(true))
    }

    fn call_plugin(&mut self, now: Nanos, method: &str, params: &Value) -> Result<Value, Error> {
        let (id, found) = plugin_method(method).ok_or_else(|| Error {
            code: METHOD_NOT_FOUND,
            message: "Method not found".to_owned(),
            specific: None,
        })?;
        let name = PLUGINS[usize::from(id.0)].name;
        // Whether a client is named is looked at before where it is.
        let mac = match found.target {
            Target::Namespace => None,
            Target::Client => {
                let mac = Params::new(params).mac("mac")?.unwrap_or_default();
                if mac == Default::default() {
                    return Err(failed_check("RpcCmdMac", "MACKey", "required"));
                }
                Some(mac)
            }
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
        let call = Call {
            method,
            client,
            params,
        };
        let result = self.run(now, index, id, |plugin, context| {
            plugin.call(context, &call)
        });
        result.unwrap_or_else(|| {
            Err(Error::execution(format!(
                " error there is no valid plugin {name} for this tunnel "
            )))
        })
    }

    /// The namespace of `tun`.
    fn namespace_of(&self, params: &Value) -> Result<u32, Error> {
        let key = key(Params::new(params).get("tun").unwrap_or(&Value::Null))?;
        let index = self.by_key.get(&key).copied();
        index.ok_or_else(|| Error::execution(" error there is no valid namespace for this tunnel "))
    }
}

fn version() -> Value {
    json!({
        "version": concat!("v", env!("CARGO_PKG_VERSION")),
        "build_date": "unknown",
        "build_time": "unknown",
        "built_by": "allosaur",
        "mode": "emulation",
    })
}

/// Whether a method can be called only with the `api_h` that `api_sync_v2` gave. One that is not
/// there can be called, and is not found.
fn needs_api(method: &str) -> bool {
    match plugin_method(method) {
        Some((_, method)) => method.needs_api,
        None => {
            let is_core = method.starts_with("ctx_") || matches!(method, "ping" | "shutdown");
            is_core && !FREE.contains(&method)
        }
    }
}

fn plugin_method(name: &str) -> Option<(PluginId, &'static Method)> {
    let specs = (0..).map(PluginId).zip(PLUGINS);
    let mut methods = specs.flat_map(|(id, spec)| spec.methods.iter().map(move |m| (id, m)));
    methods.find(|(_, method)| method.name == name)
}

/// The key in a tunnel: port, tag types and VLANs. As in the reference, priority bits are cut off a
/// tag (one of nothing else is a tag of VLAN 0), and a tag without a type has that of 802.1Q.
/// What names a namespace, and what its request may have beside.
const TUNNEL_KEYS: &[&str] = &["vport", "tci", "tpid", "plugs", "def_c_plugs"];

fn key(tunnel: &Value) -> Result<NamespaceKey, Error> {
    let fields = Params::object(tunnel, "core.CTunnelDataJson")?;
    fields.only(TUNNEL_KEYS)?;
    let port = fields.number_or("vport", 0)?;
    let (tpids, vlans) = (two(fields, "tpid")?, two(fields, "tci")?);
    let tags = [0, 1].map(|at| match vlans[at] {
        0 => Tag::default(),
        vlan => Tag {
            tpid: if tpids[at] == 0 { 0x8100 } else { tpids[at] },
            vlan: vlan & 0x0fff,
        },
    });
    Ok(NamespaceKey { port, tags })
}

fn two(fields: Params<'_>, name: &str) -> Result<[u16; 2], Error> {
    let mut numbers = [0; 2];
    let given = fields.list(name, "[2]uint16")?;
    for (one, given) in numbers.iter_mut().zip(given.into_iter().flatten()) {
        *one = number(given, "uint16")?;
    }
    Ok(numbers)
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

/// The tunnels of a request, which must be there.
fn tunnels(params: &Value) -> Result<&Vec<Value>, Error> {
    let given = Params::new(params).list("tunnels", "[]core.CTunnelDataJson")?;
    given.ok_or_else(|| failed_check("RpcCmdTunnels", "Tunnels", "required"))
}

/// What is wrong with a tunnel that is not an object is known before anything is done.
fn check_tunnels(tunnels: &[Value]) -> Result<(), Error> {
    let wrong = tunnels.iter().find(|t| !t.is_object() && !t.is_null());
    wrong.map_or(Ok(()), |wrong| Err(mismatch(wrong, "core.CTunnelDataJson")))
}
