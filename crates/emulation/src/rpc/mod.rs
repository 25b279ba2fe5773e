//! The requests that drive an emulation: methods of the core and of the plugins.

use allosaur_engine::time::Nanos;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::emulation::{Emulation, names};
use crate::namespace::{NamespaceKey, Tag};
use crate::params::{METHOD_NOT_FOUND, Params, RpcError, mismatch};
use crate::plugin::{Call, Method, PluginId, Target};
use crate::plugins::PLUGINS;

impl Emulation {
    /// Answers a request. State is whole after an error.
    ///
    /// # Errors
    /// When the method is unknown or cannot be done, with what was wrong.
    pub fn handle_request(
        &mut self,
        now: Nanos,
        method: &str,
        params: &Value,
    ) -> Result<Value, RpcError> {
        match method {
            "ctx_add" => self.ctx_add(now, params),
            "ctx_remove" => self.ctx_remove(now, params),
            "ctx_get_info" => self.ctx_get_info(params),
            "ctx_client_add" => self.ctx_client_add(now, params),
            _ => self.call_plugin(now, method, params),
        }
    }

    fn call_plugin(&mut self, now: Nanos, method: &str, params: &Value) -> Result<Value, RpcError> {
        let Some((id, found)) = plugin_method(method) else {
            return Err(RpcError {
                code: METHOD_NOT_FOUND,
                message: "Method not found".to_owned(),
            });
        };
        let name = PLUGINS[usize::from(id.0)].name;
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get(index).expect("it was found");
        let client = match found.target {
            Target::Namespace => None,
            Target::Client => {
                let mac = Params::new(params).mac("mac")?.unwrap_or_default();
                let client = entry.namespace.clients.by_mac(mac);
                let client = client.ok_or_else(|| {
                    RpcError::new(format!(
                        "Error there is no valid client {mac} for this MAC "
                    ))
                })?;
                let has = entry
                    .namespace
                    .clients
                    .get(client)
                    .is_some_and(|client| client.plugins & 1 << id.0 != 0);
                if !has {
                    return Err(RpcError::new(format!(
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
            Err(RpcError::new(format!(
                " error there is no valid plugin {name} for this tunnel "
            )))
        })
    }

    /// The namespace of `tun`.
    fn namespace_of(&self, params: &Value) -> Result<u32, RpcError> {
        let tun = Params::new(params).get("tun").unwrap_or(&Value::Null);
        let key = key(tun)?;
        let index = self.by_key.get(&key).copied();
        index.ok_or_else(|| RpcError::new(" error there is no valid namespace for this tunnel "))
    }

    fn ctx_add(&mut self, now: Nanos, params: &Value) -> Result<Value, RpcError> {
        for tunnel in tunnels(params)? {
            let given = Params::new(tunnel).get("plugs");
            let plugins = given.and_then(Value::as_object);
            let defaults = self.namespace_defaults.clone();
            let plugins = plugins
                .filter(|plugins| !plugins.is_empty())
                .unwrap_or(&defaults);
            self.add_namespace(now, key(tunnel)?, plugins)?;
        }
        Ok(Value::Bool(true))
    }

    fn ctx_remove(&mut self, now: Nanos, params: &Value) -> Result<Value, RpcError> {
        for tunnel in tunnels(params)? {
            self.remove_namespace(now, &key(tunnel)?)?;
        }
        Ok(Value::Bool(true))
    }

    fn ctx_get_info(&mut self, params: &Value) -> Result<Value, RpcError> {
        let mut infos = Vec::new();
        for tunnel in tunnels(params)? {
            let key = key(tunnel)?;
            let index = self.by_key.get(&key).copied();
            let entry = index.and_then(|index| self.namespaces.get(index));
            let entry = entry.ok_or_else(|| {
                RpcError::new("error can't find a valid namespace for this tunnel")
            })?;
            infos.push(json!({
                "vport": key.port,
                "tci": key.tags.map(|tag| tag.vlan),
                "tpid": key.tags.map(|tag| tag.tpid),
                "active_clients": entry.namespace.clients.len(),
                "plug_names": names(entry.plugins.set()),
            }));
        }
        Ok(Value::Array(infos))
    }

    fn ctx_client_add(&mut self, now: Nanos, params: &Value) -> Result<Value, RpcError> {
        let index = self.namespace_of(params)?;
        let clients = Params::new(params).get("clients");
        for given in clients.and_then(Value::as_array).into_iter().flatten() {
            let fields = Params::new(given);
            let mac = fields.mac("mac")?.unwrap_or_default();
            let mut client = Client::new(mac);
            let v4 = |name| {
                fields
                    .ipv4(name)
                    .map(|address| address.unwrap_or([0; 4].into()))
            };
            client.ipv4 = v4("ipv4")?;
            client.gateway_ipv4 = v4("ipv4_dg")?;
            let v6 = |name| {
                fields
                    .ipv6(name)
                    .map(|address| address.unwrap_or([0; 16].into()))
            };
            client.ipv6 = v6("ipv6")?;
            client.gateway_ipv6 = v6("dg_ipv6")?;
            let none = Map::new();
            let plugins = fields
                .get("plugs")
                .and_then(Value::as_object)
                .unwrap_or(&none);
            self.add_client(now, index, client, plugins)?;
        }
        Ok(Value::Bool(true))
    }
}

fn plugin_method(name: &str) -> Option<(PluginId, &'static Method)> {
    let all = (0..).zip(PLUGINS);
    let mut methods =
        all.flat_map(|(id, spec)| spec.methods.iter().map(move |m| (PluginId(id), m)));
    methods.find(|(_, method)| method.name == name)
}

fn tunnels(params: &Value) -> Result<&Vec<Value>, RpcError> {
    let given = Params::new(params).get("tunnels");
    let given = given.ok_or_else(|| {
        RpcError::new(
            "Key: 'RpcCmdTunnels.Tunnels' Error:Field validation for 'Tunnels' failed on the 'required' tag",
        )
    })?;
    given
        .as_array()
        .ok_or_else(|| mismatch(given, "[]*fastjson.RawMessage"))
}

/// The key in a tunnel: port, tag types and VLANs.
fn key(tunnel: &Value) -> Result<NamespaceKey, RpcError> {
    let fields = Params::new(tunnel);
    let mut tags = [Tag::default(); 2];
    let list = |name: &str| {
        fields
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (tcis, tpids) = (list("tci"), list("tpid"));
    for (at, tag) in tags.iter_mut().enumerate() {
        let number = |list: &[Value]| list.get(at).and_then(Value::as_u64).unwrap_or(0) as u16;
        tag.vlan = number(&tcis) & 0x0fff;
        tag.tpid = number(&tpids);
        if tag.vlan != 0 && tag.tpid == 0 {
            tag.tpid = 0x8100;
        }
        if tag.vlan == 0 {
            tag.tpid = 0;
        }
    }
    Ok(NamespaceKey {
        port: fields.number_or("vport", 0)?,
        tags,
    })
}
