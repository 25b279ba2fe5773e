//! What a command of the RPC is: name, access, parameters, reply, errors, example, in one item.
//!
//! The items themselves are in [`commands`](crate::commands), one file a noun, and the whole table
//! in [`table`](crate::table).

#[cfg(feature = "schema")]
use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

#[cfg(feature = "schema")]
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
#[cfg(feature = "schema")]
use crate::json_schema::{Schema, SchemaGenerator, json_schema};
use crate::method::Method;

/// One command of the RPC. `M` is what it does, for those who do it: [`Method`] where control does,
/// a function in a plug-in.
#[derive(Clone, Copy, Debug)]
pub struct Command<M: 'static = Method> {
    /// What the server does.
    pub method: M,
    /// The name on the wire.
    pub name: &'static str,
    /// Who may call it.
    pub access: Access,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// The types of its parameters, without `api_h` and `handler`, which follow from
    /// [`access`](Self::access), and of its reply.
    pub types: Types,
    /// When it is refused, besides bad parameters.
    pub errors: &'static [&'static str],
    /// A call and its reply.
    pub example: Example,
}

impl<M> Command<M> {
    /// A row to be completed with its name and what it means. It answers `true`, and wants `api_h`.
    pub const fn of(method: M, types: Types) -> Command<M> {
        Command {
            method,
            name: "",
            access: Access::Api,
            doc: "",
            types,
            errors: &[],
            example: Example {
                params: "{}",
                result: "true",
            },
        }
    }

    /// The same command, done by another.
    pub const fn with_method<N>(&self, method: N) -> Command<N> {
        Command {
            method,
            name: self.name,
            access: self.access,
            doc: self.doc,
            types: self.types,
            errors: self.errors,
            example: self.example,
        }
    }
}

/// What a command takes and gives, as types. The doc comments of their fields are the reference.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// The schema of the parameters.
    #[cfg(feature = "schema")]
    pub request: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the reply.
    #[cfg(feature = "schema")]
    pub reply: fn(&mut SchemaGenerator) -> Schema,
    /// Reads the parameters as the server does and forgets them: a test holds the schema to it.
    #[cfg(feature = "schema")]
    pub check: fn(&Fields<'static>) -> Result<(), FieldError>,
}

impl Types {
    /// Parameters that [`Fields::read`] reads, and a reply that serde writes.
    pub const fn of<Q, R>() -> Types
    where
        Q: Deserialize<'static> + JsonSchema,
        R: Serialize + JsonSchema,
    {
        Types {
            #[cfg(feature = "schema")]
            request: SchemaGenerator::subschema_for::<Q>,
            #[cfg(feature = "schema")]
            reply: SchemaGenerator::subschema_for::<R>,
            #[cfg(feature = "schema")]
            check: |fields| fields.read::<Q>().map(drop),
        }
    }

    /// The same with parameters as `T` describes them: what [`check`](Self::check) reads, and more.
    pub const fn requested_by<T: JsonSchema>(self) -> Types {
        Types {
            #[cfg(feature = "schema")]
            request: SchemaGenerator::subschema_for::<T>,
            ..self
        }
    }
}

/// `{}`: the parameters of a command that takes none, and the reply of one that has nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Who may call a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody, before the handshake too.
    Open,
    /// Who passes `api_h`, the string that `api_sync_v2` answered.
    Api,
    /// Who passes `api_h`, `port_id` and the `handler` that `acquire` answered for the port.
    Owner,
    /// Who passes `api_h` and the `handler` that `acquire` answered for the server in stateful mode.
    Context,
}

/// A call and its reply, as JSON; without `api_h` and `handler`.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The parameters.
    pub params: &'static str,
    /// The result.
    pub result: &'static str,
}

impl Example {
    /// The call and its reply.
    ///
    /// # Panics
    ///
    /// When one of them is no JSON: a test of the table reads them all.
    pub fn to_json(&self) -> Value {
        let read = |text| serde_json::from_str::<Value>(text).expect("an example is JSON");
        json!({"params": read(self.params), "result": read(self.result)})
    }
}

/// An object that is not described here: whoever gets the request reads it by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyObject, D::Error> {
        // Whether it is an object is asked first; what is in it, nobody asks here.
        Empty::deserialize(deserializer).map(|_| AnyObject)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for AnyObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": true})
    }
}
