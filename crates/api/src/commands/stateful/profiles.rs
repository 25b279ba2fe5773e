//! Commands that bring stateful profiles to the server, list them, and take them away.

use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::commands::ports::{default_profile, profile_id};
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatefulMethod};
use schemars::JsonSchema;
use serde::Deserialize;

/// The parameter of commands on one stateful profile.
pub const STATEFUL_PROFILE_ID: Param =
    Param::optional("profile_id", Kind::String, "\"_\"", "The profile.");

/// Parameters of commands on one stateful profile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct StatefulProfile {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
}

/// A part of a text that is longer than a request may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Whose text.
    pub profile: String,
    /// The part.
    pub text: &'a str,
    /// It is the first.
    pub is_first: bool,
    /// It is the last.
    pub is_last: bool,
    /// The MD5 of the whole text, in hexadecimal; comes with a first part that is not the last.
    pub md5: Option<&'a str>,
}

impl<'a> Fragment<'a> {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'a>) -> Result<Fragment<'a>, FieldError> {
        let flag = |name| -> Result<bool, FieldError> {
            Ok(fields.optional(name, Fields::boolean)? == Some(true))
        };
        let (is_first, is_last) = (flag("frag_first")?, flag("frag_last")?);
        let md5 = fields.optional("md5", Fields::string)?;
        if is_first && !is_last && md5.is_none() {
            let problem = "is missing; the first of several fragments needs the MD5 of them all";
            return Err(fields.bad("md5", problem));
        }
        Ok(Fragment {
            profile: profile_id(fields)?,
            text: fields.string("fragment")?,
            is_first,
            is_last,
            md5,
        })
    }
}

/// The parameters of commands that send a text in parts.
pub(super) const FRAGMENT: [Param; 5] = [
    STATEFUL_PROFILE_ID,
    Param::required("fragment", Kind::String, "The next part of the text."),
    Param::optional(
        "frag_first",
        Kind::Boolean,
        "false",
        "It is the first part.",
    ),
    Param::optional("frag_last", Kind::Boolean, "false", "It is the last part."),
    Param::optional(
        "md5",
        Kind::String,
        "none",
        "The MD5 of the whole text, in hexadecimal: needed with a first part that is not the last.",
    ),
];

/// Parameters of `get_profile_list` in stateful mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatefulProfileList {
    /// The stateless profiles of each port, too.
    pub with_ports: bool,
}

impl StatefulProfileList {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<StatefulProfileList, FieldError> {
        let given = fields.optional("profiles_in_ports", Fields::boolean)?;
        Ok(StatefulProfileList {
            with_ports: given == Some(true),
        })
    }
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
        types: Types::prose(
            &FRAGMENT,
            "`null`; after the first part `{\"matches_loaded\": true}` when the profile has this \
                very text already, and the other parts need not be sent.",
            |f| Fragment::parse(f).map(drop),
        ),
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
        types: Types::prose(&[STATEFUL_PROFILE_ID], "`null`.", |f| {
            profile_id(f).map(drop)
        }),
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
        types: Types::prose(
            &[Param::optional(
                "profiles_in_ports",
                Kind::Boolean,
                "false",
                "Stateless profiles, too.",
            )],
            "A list of names. With `profiles_in_ports` its last element is an object: the \
                stateless profiles of each port.",
            |f| StatefulProfileList::parse(f).map(drop),
        ),
        errors: &[],
        example: Example {
            params: r#"{"profiles_in_ports": false}"#,
            result: r#"["_", "mail"]"#,
        },
    },
];
