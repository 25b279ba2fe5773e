//! A method and its parameters, as a message has them. Long lists of clients are read without a tree
//! of JSON values, and can be done a part at a time.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::params::Params;

/// Methods whose lists are read into [`Items`].
const ADD: &str = "ctx_client_add";
const REMOVE: &str = "ctx_client_remove";

/// A call. Give it to [`Emulation::handle_call`](crate::Emulation::handle_call), whole or in
/// [parts](RpcCall::split_off).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RpcCall {
    /// The name of the method.
    pub method: String,
    /// All parameters but those in `items`.
    pub params: Value,
    /// The list of a method that may have a long one. A list with something wrong in it stays in
    /// `params`, for the error.
    pub(crate) items: Items,
    /// Bytes of the text that the parameters were read from: what they take in memory grows with it.
    pub text_bytes: usize,
}

/// What a method is about that can be done one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Items {
    #[default]
    None,
    Clients(Vec<NewClient>),
    Macs(Vec<MacAddress>),
}

/// A client to add.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewClient {
    pub(crate) client: Client,
    /// Its plugins by their init JSON, if it names some; clients of the same share them.
    pub(crate) plugins: Option<Arc<Map<String, Value>>>,
}

impl RpcCall {
    /// A call of a method with parameters.
    pub fn new(method: impl Into<String>, mut params: Value) -> RpcCall {
        let method = method.into();
        let items = match method.as_str() {
            ADD => clients(&params).ok().flatten().map(Items::Clients),
            REMOVE => macs(&params).ok().flatten().map(Items::Macs),
            _ => None,
        };
        if let (Some(_), Some(fields)) = (&items, params.as_object_mut()) {
            fields.remove("clients");
            fields.remove("macs");
        }
        RpcCall {
            method,
            params,
            items: items.unwrap_or_default(),
            text_bytes: 0,
        }
    }

    /// A call of a method with the text of its parameters, which is empty when there are none.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub(super) fn read(method: String, text: &str) -> serde_json::Result<RpcCall> {
        let text_bytes = text.len();
        if method == ADD {
            if let Some((params, clients)) = read_clients(text) {
                return Ok(RpcCall {
                    method,
                    params,
                    items: Items::Clients(clients),
                    text_bytes,
                });
            }
        }
        let params = match text {
            "" => Value::Null,
            text => serde_json::from_str(text)?,
        };
        Ok(RpcCall {
            text_bytes,
            ..RpcCall::new(method, params)
        })
    }

    /// Takes off the first part of a long call, of so many clients; what is left is done after it, if
    /// it went well. `None` when the call is not that long.
    #[must_use]
    pub fn split_off(&mut self, clients_max: usize) -> Option<RpcCall> {
        let first = match &mut self.items {
            Items::Clients(list) if list.len() > clients_max => {
                let rest = list.split_off(clients_max);
                Items::Clients(std::mem::replace(list, rest))
            }
            Items::Macs(list) if list.len() > clients_max => {
                let rest = list.split_off(clients_max);
                Items::Macs(std::mem::replace(list, rest))
            }
            _ => return None,
        };
        Some(RpcCall {
            method: self.method.clone(),
            params: self.params.clone(),
            items: first,
            text_bytes: 0,
        })
    }
}

/// What a client may have.
const CLIENT_KEYS: &[&str] = &[
    "mac",
    "ipv4",
    "ipv4_dg",
    "ipv4_mtu",
    "ipv6",
    "dg_ipv6",
    "ipv4_force_dg",
    "ipv6_force_dg",
    "ipv4_force_mac",
    "ipv6_force_mac",
    "plugs",
];

/// The parameters of `ctx_client_add` where nothing is odd in them. Each field once, with its type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddFields<'t> {
    api_h: Option<Value>,
    tun: Option<Value>,
    #[serde(borrow)]
    clients: Vec<ClientFields<'t>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientFields<'t> {
    mac: Option<[u8; 6]>,
    ipv4: Option<[u8; 4]>,
    ipv4_dg: Option<[u8; 4]>,
    ipv4_mtu: Option<u16>,
    ipv6: Option<[u8; 16]>,
    dg_ipv6: Option<[u8; 16]>,
    ipv4_force_dg: Option<bool>,
    ipv6_force_dg: Option<bool>,
    ipv4_force_mac: Option<[u8; 6]>,
    ipv6_force_mac: Option<[u8; 6]>,
    #[serde(borrow)]
    plugs: Option<&'t RawValue>,
}

/// The list of clients of a text, and the other parameters. `None` when something is odd in it: then
/// it is read as any other call, which knows what is wrong or what is meant.
fn read_clients(text: &str) -> Option<(Value, Vec<NewClient>)> {
    let fields: AddFields<'_> = serde_json::from_str(text).ok()?;
    let mut params = Map::new();
    let others = [("api_h", fields.api_h), ("tun", fields.tun)];
    for (name, value) in others {
        params.extend(value.map(|value| (name.to_owned(), value)));
    }
    let mut last = None;
    let mut clients = Vec::with_capacity(fields.clients.len());
    for fields in fields.clients {
        let plugins = match fields.plugs.map(RawValue::get) {
            Some(text) => Some(shared_plugins(text, &mut last)?),
            None => None,
        };
        let client = client_of(&fields);
        clients.push(NewClient { client, plugins });
    }
    Some((Value::Object(params), clients))
}

/// The text of the plugins of the client before, and what is in it.
type Last<'t> = Option<(&'t str, Arc<Map<String, Value>>)>;

fn shared_plugins<'t>(text: &'t str, last: &mut Last<'t>) -> Option<Arc<Map<String, Value>>> {
    if let Some((_, plugins)) = last.as_ref().filter(|(before, _)| *before == text) {
        return Some(Arc::clone(plugins));
    }
    let plugins = Arc::new(serde_json::from_str(text).ok()?);
    *last = Some((text, Arc::clone(&plugins)));
    Some(plugins)
}

fn client_of(fields: &ClientFields<'_>) -> Client {
    let mac = |octets: Option<[u8; 6]>| MacAddress(octets.unwrap_or_default());
    let v4 = |octets: Option<[u8; 4]>| Ipv4Addr::from(octets.unwrap_or_default());
    let v6 = |octets: Option<[u8; 16]>| Ipv6Addr::from(octets.unwrap_or_default());
    let mut client = Client::new(mac(fields.mac));
    client.ipv4 = v4(fields.ipv4);
    client.gateway_ipv4 = v4(fields.ipv4_dg);
    if let Some(mtu) = fields.ipv4_mtu.filter(|mtu| *mtu != 0) {
        client.mtu_ipv4 = mtu;
    }
    client.ipv6 = v6(fields.ipv6);
    client.gateway_ipv6 = v6(fields.dg_ipv6);
    client.is_forced_ipv4 = fields.ipv4_force_dg.unwrap_or_default();
    client.is_forced_ipv6 = fields.ipv6_force_dg.unwrap_or_default();
    client.given_mac_ipv4 = mac(fields.ipv4_force_mac);
    client.given_mac_ipv6 = mac(fields.ipv6_force_mac);
    client
}

/// The clients of parameters; `None` when there is no list of them.
///
/// # Errors
/// When one is wrong.
pub(super) fn clients(params: &Value) -> Result<Option<Vec<NewClient>>, Error> {
    let list = Params::new(params).list("clients", "[]core.CClientCmd")?;
    let read = |list: &Vec<Value>| list.iter().map(client).collect();
    list.map(read).transpose()
}

/// The list of MAC addresses of parameters; `None` when there is none.
///
/// # Errors
/// When one is wrong.
pub(super) fn macs(params: &Value) -> Result<Option<Vec<MacAddress>>, Error> {
    let list = Params::new(params).list("macs", "[]core.MACKey")?;
    let read = |mac: &Value| match mac {
        Value::Null => Ok(MacAddress::ZERO),
        mac => crate::params::bytes::<6>(mac, "core.MACKey").map(MacAddress),
    };
    list.map(|list| list.iter().map(read).collect()).transpose()
}

fn client(given: &Value) -> Result<NewClient, Error> {
    let fields = Params::object(given, "core.CClientCmd")?;
    fields.only(CLIENT_KEYS)?;
    let mut client = Client::new(fields.mac("mac")?.unwrap_or_default());
    let v4 = |name| {
        let address = fields.ipv4(name);
        address.map(|address| address.unwrap_or(Ipv4Addr::UNSPECIFIED))
    };
    let v6 = |name| {
        let address = fields.ipv6(name);
        address.map(|address| address.unwrap_or(Ipv6Addr::UNSPECIFIED))
    };
    client.ipv4 = v4("ipv4")?;
    client.gateway_ipv4 = v4("ipv4_dg")?;
    let mtu: u16 = fields.number_or("ipv4_mtu", 0)?;
    if mtu != 0 {
        client.mtu_ipv4 = mtu;
    }
    client.ipv6 = v6("ipv6")?;
    client.gateway_ipv6 = v6("dg_ipv6")?;
    client.is_forced_ipv4 = fields.bool_or("ipv4_force_dg", false)?;
    client.is_forced_ipv6 = fields.bool_or("ipv6_force_dg", false)?;
    client.given_mac_ipv4 = fields.mac("ipv4_force_mac")?.unwrap_or_default();
    client.given_mac_ipv6 = fields.mac("ipv6_force_mac")?.unwrap_or_default();
    let plugins = fields.plugins("plugs")?;
    Ok(NewClient {
        client,
        plugins: plugins.cloned().map(Arc::new),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(method: &str, params: &Value) -> RpcCall {
        let call = RpcCall::read(method.to_owned(), &params.to_string()).expect("JSON");
        RpcCall {
            text_bytes: 0,
            ..call
        }
    }

    #[test]
    fn a_long_call_is_done_in_parts() {
        let mac = |number: u8| json!([2, 0, 0, 0, 0, number]);
        let clients: Vec<Value> = (0..5)
            .map(|number| json!({"mac": mac(number), "plugs": {"arp": {}}}))
            .collect();
        let macs: Vec<Value> = (0..5).map(mac).collect();
        for (method, list, items) in [(ADD, "clients", clients), (REMOVE, "macs", macs)] {
            let part = |items: &[Value]| {
                let mut params = json!({"tun": {"vport": 3}, "api_h": "x"});
                params[list] = json!(items);
                RpcCall::new(method, params)
            };
            let mut call = part(&items);
            let mut parts = Vec::new();
            parts.extend(std::iter::from_fn(|| call.split_off(2)));
            parts.push(call);
            assert_eq!(
                parts,
                [part(&items[..2]), part(&items[2..4]), part(&items[4..])]
            );
        }
        assert_eq!(
            RpcCall::new("ctx_cnt", json!({"macs": [1]})).split_off(0),
            None
        );
    }

    #[test]
    fn what_is_odd_keeps_its_place_for_the_error() {
        for clients in [
            json!(7),
            json!([{"mac": "x"}]),
            json!([{"mac": [256]}]),
            json!([{"plugs": [1]}]),
            json!([{"ipv4_mtu": -1}]),
        ] {
            let params = json!({"clients": clients});
            assert_eq!(
                read(ADD, &params),
                RpcCall {
                    method: ADD.to_owned(),
                    params,
                    items: Items::None,
                    text_bytes: 0,
                }
            );
        }
    }

    /// Values of a field: right, left out, short, long, of another type.
    fn octets(count: usize) -> impl Strategy<Value = Value> {
        let right = prop::collection::vec(any::<u8>(), count).prop_map(|octets| json!(octets));
        let any_length = prop::collection::vec(any::<u16>(), 0..count + 2);
        prop_oneof![
            8 => right,
            1 => Just(Value::Null),
            1 => any_length.prop_map(|octets| json!(octets)),
        ]
    }

    proptest! {
        /// Both ways of reading mean the same.
        #[test]
        fn clients_are_read_without_a_tree_as_with_one(
            given in prop::collection::vec(
                (octets(6), octets(4), octets(16), any::<u16>(), any::<bool>()),
                0..4,
            ),
        ) {
            let clients: Vec<Value> = given
                .into_iter()
                .map(|(mac, ipv4, ipv6, mtu, forced)| {
                    let plugins = [
                        json!({}), Value::Null, json!({"arp": {"timer": 3}}), json!({"x": 1}),
                    ];
                    json!({
                        "mac": mac, "ipv4": ipv4, "ipv4_dg": ipv4, "ipv6": ipv6, "dg_ipv6": ipv6,
                        "ipv4_mtu": mtu, "ipv4_force_dg": forced, "ipv4_force_mac": mac,
                        "plugs": plugins[usize::from(mtu % 4)],
                    })
                })
                .collect();
            let params = json!({"tun": {"vport": 1}, "clients": clients});
            prop_assert_eq!(read(ADD, &params), RpcCall::new(ADD, params));
        }
    }
}
