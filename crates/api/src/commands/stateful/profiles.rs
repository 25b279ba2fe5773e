//! Commands that bring stateful profiles to the server, list them, and take them away.

use std::collections::BTreeMap;

use crate::command::{Access, Command, Example, Types};
use crate::commands::ports::default_profile;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatefulMethod};
use serde::{Deserialize, Serialize};

/// Parameters of commands on one stateful profile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct StatefulProfile {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
}

/// Parameters of commands that send a text in parts, because a request may not be that long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Fragment<'a> {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The next part of the text.
    #[serde(rename = "fragment")]
    pub text: &'a str,
    /// It is the first part.
    #[serde(rename = "frag_first", default)]
    pub is_first: bool,
    /// It is the last part.
    #[serde(rename = "frag_last", default)]
    pub is_last: bool,
    /// The MD5 of the whole text, in hexadecimal: needed with a first part that is not the last.
    #[schemars(extend("x-default" = "none"))]
    pub md5: Option<&'a str>,
}

impl<'a> Fragment<'a> {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'a>) -> Result<Fragment<'a>, FieldError> {
        let fragment: Fragment<'a> = fields.read()?;
        if fragment.is_first && !fragment.is_last && fragment.md5.is_none() {
            let problem = "is missing; the first of several fragments needs the MD5 of them all";
            return Err(fields.bad("md5", problem));
        }
        Ok(fragment)
    }
}

/// Reply of `profile_fragment`. After a first part, when this very text is loaded already and the
/// other parts need not be sent; else `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FragmentReply {
    /// `true`.
    pub matches_loaded: bool,
}

/// Parameters of `get_profile_list` in stateful mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct StatefulProfileList {
    /// Stateless profiles, too.
    #[serde(rename = "profiles_in_ports", default)]
    pub with_ports: bool,
}

/// Reply of `get_profile_list` in stateful mode. The names, and with `profiles_in_ports` after them
/// the stateless profiles of each port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct StatefulProfileNames(pub Vec<ListedProfile>);

/// An element of a list of stateful profiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ListedProfile {
    /// The name of a profile.
    Name(String),
    /// The stateless profiles of each port.
    OfPorts(BTreeMap<u8, Vec<String>>),
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::ProfileFragment),
        name: "profile_fragment",
        access: Access::Context,
        doc: "Loads a profile, as JSON in parts. With the first part it begins anew; with the last it \
              is loaded (event 60 with state 1). A name that is new is known from then on, also when its text \
              is refused. It is read when it is started. The JSON has \
              `buf_list`, `ip_gen_dist_list`, `program_list`, `templates`, and may have `tg_names`, \
              `c_glob_info` and `s_glob_info`. A pool (`ip_gen_dist_list`) of clients may have, in the \
              place of `ip_start`, `ip_end` and `ip_offset`, `emulation`: the clients are emulated ones, of \
              the namespace at `vport` with the VLAN tags `tci` (of types `tpid`), those that are ready when it \
              is started; fewer than `ready_min` (1) are an error.",
        types: Types::of::<Fragment<'_>, Option<FragmentReply>>(),
        errors: &[
            "another profile has just this text, by its MD5",
            "the profile runs",
            "the text does not begin with a first part, or does not have the MD5 that was told",
            "the text or the texts of all profiles are too long",
        ],
        example: Example {
            params: r#"{"profile_id": "_", "fragment": "{}", "frag_first": true, "frag_last": true, "md5": "99914b932bd37a50b983c5e7c90ae93b"}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::ProfileClear),
        name: "profile_clear",
        access: Access::Context,
        doc: "Takes a profile away: event 60 with state 6, and a little later event 61. The profile \
              `_` is there again afterwards, idle.",
        types: Types::of::<StatefulProfile, ()>(),
        errors: &["no such profile", "the profile runs"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::ProfileList),
        name: "get_profile_list",
        access: Access::Context,
        doc: "The profiles. `_` is always there.",
        types: Types::of::<StatefulProfileList, StatefulProfileNames>(),
        errors: &[],
        example: Example {
            params: r#"{"profiles_in_ports": false}"#,
            result: r#"["_", "mail"]"#,
        },
    },
];
