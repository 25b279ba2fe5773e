//! What a command of the RPC is: name, access, parameters, reply, errors, example, in one item.
//!
//! The items themselves are in [`commands`](crate::commands), one file a noun, and the whole table
//! in [`table`](crate::table).

use crate::fields::{FieldError, Fields};
use crate::method::Method;

/// One command of the RPC.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// What the server does.
    pub method: Method,
    /// The name on the wire.
    pub name: &'static str,
    /// Who may call it.
    pub access: Access,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// The parameters, without `api_h` and `handler`, which follow from [`access`](Self::access).
    pub params: &'static [Param],
    /// What comes back.
    pub reply: &'static str,
    /// When it is refused, besides bad parameters.
    pub errors: &'static [&'static str],
    /// A call and its reply.
    pub example: Example,
    /// Reads the parameters as the server does and forgets them: a test holds the table to it.
    pub check: fn(&Fields<'_>) -> Result<(), FieldError>,
}

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

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be left out, and what that means.
    pub default: ParamDefault,
    /// What it means.
    pub doc: &'static str,
}

/// Whether a parameter may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamDefault {
    /// It may not.
    Required,
    /// It may; this is what it is then, in words or JSON.
    Optional(&'static str),
    /// It belongs to some forms of the command only; this is to which.
    Sometimes(&'static str),
}

/// The type of a parameter, strictly checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0 to 255.
    Byte,
    /// 0 to 2³²−1.
    Uint32,
    /// 0 to 2⁶⁴−1.
    Uint64,
    /// A whole number.
    Int,
    /// Any number.
    Double,
    /// `true` or `false`.
    Boolean,
    /// A string.
    String,
    /// An object.
    Object,
    /// A list.
    Array,
}

impl Kind {
    /// The type's name in error messages and in the reference.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Byte => "byte",
            Kind::Uint32 => "uint32",
            Kind::Uint64 => "uint64",
            Kind::Int => "int",
            Kind::Double => "double",
            Kind::Boolean => "boolean",
            Kind::String => "string",
            Kind::Object => "object",
            Kind::Array => "array",
        }
    }
}

/// A call and its reply, as JSON; without `api_h` and `handler`.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The parameters.
    pub params: &'static str,
    /// The result.
    pub result: &'static str,
}

impl Param {
    /// A parameter that must be there.
    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Param {
        let default = ParamDefault::Required;
        Param {
            name,
            kind,
            default,
            doc,
        }
    }

    /// A parameter that may be left out.
    pub const fn optional(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
    ) -> Param {
        let default = ParamDefault::Optional(default);
        Param {
            name,
            kind,
            default,
            doc,
        }
    }
}

impl Param {
    /// A parameter that belongs to some forms of the command only.
    pub const fn sometimes(
        name: &'static str,
        kind: Kind,
        when: &'static str,
        doc: &'static str,
    ) -> Param {
        let default = ParamDefault::Sometimes(when);
        Param {
            name,
            kind,
            default,
            doc,
        }
    }
}

/// The parameter that nearly every command of a port has.
pub const PORT_ID: Param = Param::required("port_id", Kind::Byte, "The port's number.");
/// The parameter of commands on one named profile.
pub const PROFILE_ID: Param = Param::optional(
    "profile_id",
    Kind::String,
    "\"_\"",
    "The profile on the port.",
);
