//! Whom a request is about: a namespace by its port and its tags, a client by its MAC address.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::marker::PhantomData;

use allosaur_api::Error;
use allosaur_api::json_schema::JsonSchema;
#[cfg(feature = "schema")]
use allosaur_api::json_schema::{Schema, SchemaGenerator};
use allosaur_packet::MacAddress;
use serde::{Deserialize, Serialize};
use serde_json::Value;
#[cfg(feature = "schema")]
use serde_json::json;

use crate::namespace::{NamespaceKey, Tag};
use crate::read::{Filled, Listable, Listed, Mac, Plugins, failed_check};

/// A namespace, by the frames that are in it. Who adds one may say which plugins it has.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename = "core.CTunnelDataJson", deny_unknown_fields, default)]
#[schemars(rename = "Tunnel")]
pub(crate) struct Tunnel {
    /// The port, by its number.
    pub(crate) vport: u16,
    /// The numbers of its VLANs, the outer first; 0 is no tag. Priority bits are not looked at.
    pub(crate) tci: Vlans,
    /// The types of the tags, such as 0x8100, which 0 stands for.
    pub(crate) tpid: Vlans,
    /// In `ctx_add` only: its plugins, with the init JSON of each; without it those of
    /// `ctx_set_def_plugins`.
    pub(crate) plugs: Option<Plugins>,
    /// Clients of profiles send it along; it is not looked at.
    pub(crate) def_c_plugs: Option<Plugins>,
}

impl Listable for Tunnel {
    const LIST: &'static str = "[]core.CTunnelDataJson";
}

/// A number for each of two tags.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename = "[2]uint16")]
#[schemars(inline)]
pub(crate) struct Vlans(Filled<u16, 2>);

impl Default for Vlans {
    fn default() -> Vlans {
        Vlans(Filled([0; 2]))
    }
}

impl Tunnel {
    /// The key that it is. As in TRex, priority bits are cut off a tag (one of nothing else is a tag of
    /// VLAN 0), and a tag without a type has that of 802.1Q.
    pub(crate) fn key(&self) -> NamespaceKey {
        let (Vlans(Filled(vlans)), Vlans(Filled(tpids))) = (self.tci, self.tpid);
        let tags = [0, 1].map(|at| match vlans[at] {
            0 => Tag::default(),
            vlan => Tag {
                tpid: if tpids[at] == 0 { 0x8100 } else { tpids[at] },
                vlan: vlan & 0x0fff,
            },
        });
        NamespaceKey {
            port: self.vport,
            tags,
        }
    }
}

/// The namespace of a request; without one it is that of port 0 without tags.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct TunnelParams {
    pub(crate) tun: Option<Tunnel>,
}

/// The client of a request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct ClientParams {
    mac: Option<Mac>,
}

impl ClientParams {
    /// Its address.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn mac(self) -> Result<Mac, Error> {
        let mac = self.mac.filter(|mac| *mac != Mac::default());
        mac.ok_or_else(|| failed_check("RpcCmdMac", "MACKey", "required"))
    }
}

/// Clients of a namespace.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct MacParams {
    /// The MAC addresses of the clients.
    #[schemars(required)]
    macs: Option<Listed<Mac>>,
}

impl MacParams {
    /// The addresses.
    ///
    /// # Errors
    /// When there is no list of them.
    pub(crate) fn macs(self) -> Result<Vec<MacAddress>, Error> {
        let macs = self.macs;
        let macs = macs.ok_or_else(|| failed_check("RpcCmdMacs", "MACKeys", "required"))?;
        Ok(macs.0.into_iter().map(|Mac(mac)| mac).collect())
    }
}

/// The parameters of a command about a namespace: its own, and `tun`.
pub(crate) struct InNamespace<Q>(PhantomData<Q>);

/// The parameters of a command about a client: its own, `tun` and `mac`.
pub(crate) struct OfOneClient<Q>(PhantomData<Q>);

#[cfg(feature = "schema")]
impl<Q: JsonSchema> JsonSchema for InNamespace<Q> {
    fn schema_name() -> Cow<'static, str> {
        name_of::<Q>("Namespace")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Q::json_schema(generator);
        require::<Tunnel>(&mut schema, generator, "tun", "The namespace.");
        schema
    }
}

#[cfg(feature = "schema")]
impl<Q: JsonSchema> JsonSchema for OfOneClient<Q> {
    fn schema_name() -> Cow<'static, str> {
        name_of::<Q>("Client")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Q::json_schema(generator);
        require::<Mac>(&mut schema, generator, "mac", "The client's MAC address.");
        require::<Tunnel>(&mut schema, generator, "tun", "The client's namespace.");
        schema
    }
}

#[cfg(feature = "schema")]
fn name_of<Q: JsonSchema>(target: &str) -> Cow<'static, str> {
    match &*Q::schema_name() {
        "Empty" => format!("{target}Params").into(),
        own => format!("{own}Of{target}").into(),
    }
}

#[cfg(feature = "schema")]
/// Puts a field that must be there in front of the others.
fn require<T: JsonSchema>(
    schema: &mut Schema,
    generator: &mut SchemaGenerator,
    name: &str,
    doc: &str,
) {
    let mut field = generator.subschema_for::<T>();
    field.insert("description".to_owned(), doc.into());
    let object = schema.ensure_object();
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    properties[name] = field.to_value();
    let required = object.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(names) = required {
        names.insert(0, name.into());
    }
}

/// The JSON of a reply.
pub(crate) fn reply<R: Serialize>(result: &R) -> Value {
    serde_json::to_value(result).expect("replies are plain structs with string keys")
}
