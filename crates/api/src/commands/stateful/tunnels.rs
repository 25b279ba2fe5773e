//! Commands about tunnels (GTP-U), which this server does not have: it says so.
//!
//! They are here because clients ask before they need one.

use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::commands::stateful::profiles::FRAGMENT;
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatefulMethod};

/// Parameters of the commands on a kind of tunnel: which.
pub fn tunnel_type(fields: &Fields<'_>) -> Result<u32, FieldError> {
    fields.uint32("tunnel_type")
}

fn check_activate(fields: &Fields<'_>) -> Result<(), FieldError> {
    tunnel_type(fields)?;
    fields.boolean("activate")?;
    fields.boolean("loopback").map(drop)
}

fn check_update(fields: &Fields<'_>) -> Result<(), FieldError> {
    tunnel_type(fields)?;
    fields.array("attr").map(drop)
}

fn check_fragment(fields: &Fields<'_>) -> Result<(), FieldError> {
    super::profiles::Fragment::parse(fields).map(drop)
}

const TUNNEL_TYPE: Param = Param::required(
    "tunnel_type",
    Kind::Uint32,
    "The kind of tunnel; 1 is GTP-U.",
);
const NO_TUNNELS: &[&str] = &["always: this server has no tunnels"];

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::TunnelSupported),
        name: "is_tunnel_supported",
        access: Access::Api,
        doc: "Whether there are tunnels of a kind.",
        types: Types::prose(
            &[TUNNEL_TYPE],
            "`is_tunnel_supported`, and `error_msg` that says why not.",
            |f| tunnel_type(f).map(drop),
        ),
        errors: &[],
        example: Example {
            params: r#"{"tunnel_type": 1}"#,
            result: r#"{"is_tunnel_supported": false, "error_msg": "this server has no tunnels"}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::ActivateTunnel),
        name: "activate_tunnel_mode",
        access: Access::Api,
        doc: "Switches tunnels on or off.",
        types: Types::prose(
            &[
                TUNNEL_TYPE,
                Param::required("activate", Kind::Boolean, "On or off."),
                Param::required(
                    "loopback",
                    Kind::Boolean,
                    "The server's side has them, too.",
                ),
            ],
            "`null`.",
            check_activate,
        ),
        errors: NO_TUNNELS,
        example: Example {
            params: r#"{"tunnel_type": 1, "activate": true, "loopback": false}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::UpdateTunnelClient),
        name: "update_tunnel_client",
        access: Access::Api,
        doc: "Puts clients into tunnels.",
        types: Types::prose(
            &[
                TUNNEL_TYPE,
                Param::required("attr", Kind::Array, "Clients and their tunnels."),
            ],
            "`{}`.",
            check_update,
        ),
        errors: NO_TUNNELS,
        example: Example {
            params: r#"{"tunnel_type": 1, "attr": []}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TunnelTopology),
        name: "tunnel_topo_get",
        access: Access::Api,
        doc: "The tunnels that were loaded.",
        types: Types::prose(&[], "`tunnel_topo_data`: JSON as text.", |_| Ok(())),
        errors: NO_TUNNELS,
        example: Example {
            params: "{}",
            result: r#"{"tunnel_topo_data": "{}"}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TunnelTopologyFragment),
        name: "tunnel_topo_fragment",
        access: Access::Context,
        doc: "Loads tunnels.",
        types: Types::prose(&FRAGMENT, "`null`.", check_fragment),
        errors: NO_TUNNELS,
        example: Example {
            params: r#"{"fragment": "{}", "frag_first": true, "frag_last": true, "md5": "99914b932bd37a50b983c5e7c90ae93b"}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TunnelTopologyClear),
        name: "tunnel_topo_clear",
        access: Access::Context,
        doc: "Forgets tunnels.",
        types: Types::prose(&[], "`null`.", |_| Ok(())),
        errors: NO_TUNNELS,
        example: Example {
            params: "{}",
            result: "null",
        },
    },
];
