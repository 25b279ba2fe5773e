//! A method and its parameters, as a message has them. Long lists of clients are read without a tree
//! of JSON values, and can be done a part at a time.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_api::json_schema::JsonSchema;
use allosaur_packet::MacAddress;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::read::{self, Ipv4, Ipv6, Listable, Listed, Mac, Plugins};

/// Methods whose lists are read into [`Items`].
const ADD: &str = "ctx_client_add";
const REMOVE: &str = "ctx_client_remove";
/// What methods begin with whose answer tells of the whole process.
const MONITOR: &str = "ctx_resource_monitor_";

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
    /// Whether it was looked at elsewhere who calls, so that it needs no `api_h`.
    pub(crate) is_admitted: bool,
    /// Whether other shards are asked the same: one whose namespace lacks the plugin says nothing then.
    pub(crate) is_part: bool,
}

/// What a method is about that can be done one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Items {
    #[default]
    None,
    Clients(Vec<NewClient>),
    Macs(Vec<MacAddress>),
    /// A question about the namespace of the call, which is not done.
    Query(Query),
}

/// A question about the clients of the namespace of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Query {
    /// Which is the first of new clients that cannot be added, since one that is there has its address.
    Conflict(Vec<NewClient>),
    /// Which of some clients are there.
    Located(Vec<MacAddress>),
    /// Whether it has none, else an error.
    IsEmpty,
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
            ADD => {
                let list = read::params(&params).ok();
                let list = list.and_then(|ClientList { clients }| clients);
                list.map(|list| Items::Clients(new_clients(list)))
            }
            REMOVE => {
                let list = read::params(&params).ok();
                let list = list.and_then(|MacList { macs }| macs);
                list.map(|list| Items::Macs(addresses(list)))
            }
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
            is_admitted: false,
            is_part: false,
        }
    }

    /// The same call, of a caller who has proved to another port who he is: it needs no `api_h`.
    #[must_use]
    pub fn admitted(self) -> RpcCall {
        RpcCall {
            is_admitted: true,
            ..self
        }
    }

    /// Whether its answer tells what the whole process has used.
    pub fn wants_usage(&self) -> bool {
        self.method.starts_with(MONITOR)
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
                    is_admitted: false,
                    is_part: false,
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

    /// A call of the same with other items.
    #[must_use]
    pub(crate) fn with(&self, items: Items) -> RpcCall {
        RpcCall {
            method: self.method.clone(),
            params: self.params.clone(),
            items,
            text_bytes: 0,
            is_admitted: self.is_admitted,
            is_part: self.is_part,
        }
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
        Some(self.with(first))
    }
}

/// The parameters of `ctx_client_add` where nothing is odd in them. Each field once, with its type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainAdd<'t> {
    api_h: Option<Value>,
    tun: Option<Value>,
    #[serde(borrow)]
    clients: Vec<PlainClient<'t>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainClient<'t> {
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
    let fields: PlainAdd<'_> = serde_json::from_str(text).ok()?;
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

fn client_of(fields: &PlainClient<'_>) -> Client {
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

/// A client to add.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename = "core.CClientCmd", deny_unknown_fields, default)]
#[schemars(rename = "NewClient")]
pub(super) struct ClientFields {
    /// Its MAC address, which no other client has, and not zero.
    #[schemars(required)]
    mac: Mac,
    /// Its IPv4 address; 0.0.0.0 is none.
    ipv4: Ipv4,
    /// Its gateway for IPv4.
    ipv4_dg: Ipv4,
    /// The longest IPv4 packet that it sends, in bytes; 0 is 1500.
    ipv4_mtu: u16,
    /// Its static IPv6 address; `::` is none.
    ipv6: Ipv6,
    /// Its gateway for IPv6.
    dg_ipv6: Ipv6,
    /// Whether its gateway for IPv4 has the MAC address `ipv4_force_mac`, and is not asked for it.
    ipv4_force_dg: bool,
    /// The same for IPv6.
    ipv6_force_dg: bool,
    /// The MAC address of its gateway for IPv4.
    ipv4_force_mac: Mac,
    /// The same for IPv6.
    ipv6_force_mac: Mac,
    /// Its plugins by their names, with the init JSON of each; without it those of
    /// `ctx_client_set_def_plugins`.
    plugs: Option<Plugins>,
}

impl Listable for ClientFields {
    const LIST: &'static str = "[]core.CClientCmd";
}

impl From<ClientFields> for NewClient {
    fn from(fields: ClientFields) -> NewClient {
        let mut client = Client::new(fields.mac.0);
        client.ipv4 = fields.ipv4.0;
        client.gateway_ipv4 = fields.ipv4_dg.0;
        if fields.ipv4_mtu != 0 {
            client.mtu_ipv4 = fields.ipv4_mtu;
        }
        client.ipv6 = fields.ipv6.0;
        client.gateway_ipv6 = fields.dg_ipv6.0;
        client.is_forced_ipv4 = fields.ipv4_force_dg;
        client.is_forced_ipv6 = fields.ipv6_force_dg;
        client.given_mac_ipv4 = fields.ipv4_force_mac.0;
        client.given_mac_ipv6 = fields.ipv6_force_mac.0;
        let plugins = fields.plugs.map(|Plugins(plugins)| Arc::new(plugins));
        NewClient { client, plugins }
    }
}

/// The list of `ctx_client_add`.
#[derive(Deserialize)]
struct ClientList {
    clients: Option<Listed<ClientFields>>,
}

/// The list of `ctx_client_remove`.
#[derive(Deserialize)]
struct MacList {
    macs: Option<Listed<Mac>>,
}

/// The clients that fields are.
pub(super) fn new_clients(list: Listed<ClientFields>) -> Vec<NewClient> {
    list.0.into_iter().map(NewClient::from).collect()
}

/// The addresses that a list is.
pub(super) fn addresses(list: Listed<Mac>) -> Vec<MacAddress> {
    list.0.into_iter().map(|Mac(mac)| mac).collect()
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
                    is_admitted: false,
                    is_part: false,
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
