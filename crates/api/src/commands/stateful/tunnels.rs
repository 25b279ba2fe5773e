//! Commands about tunnels (GTP-U), which this server does not have: it says so.
//!
//! They are here because clients ask before they need one.

use crate::command::{Access, AnyObject, Command, Empty, Example, Types};
use crate::commands::stateful::profiles::{Fragment, FragmentReply};
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatefulMethod};
use serde::{Deserialize, Serialize};

/// Parameters of `is_tunnel_supported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TunnelParams {
    /// The kind of tunnel; 1 is GTP-U.
    #[serde(rename = "tunnel_type")]
    pub kind: u32,
}

/// Reply of `is_tunnel_supported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TunnelSupport<'a> {
    /// Whether there are such tunnels.
    pub is_tunnel_supported: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_msg: Option<&'a str>,
}

/// Parameters of `activate_tunnel_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ActivateTunnelParams {
    /// The kind of tunnel; 1 is GTP-U.
    #[serde(rename = "tunnel_type")]
    pub kind: u32,
    /// On or off.
    #[serde(rename = "activate")]
    pub is_active: bool,
    /// The server's side has them, too.
    #[serde(rename = "loopback")]
    pub has_servers: bool,
}

/// Parameters of `update_tunnel_client`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct UpdateTunnelClientParams {
    /// The kind of tunnel; 1 is GTP-U.
    #[serde(rename = "tunnel_type")]
    pub kind: u32,
    /// Clients and their tunnels.
    #[serde(rename = "attr")]
    pub clients: Vec<AnyObject>,
}

/// Reply of `tunnel_topo_get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TunnelTopology<'a> {
    /// The tunnels: JSON as text.
    pub tunnel_topo_data: &'a str,
}

const NO_TUNNELS: &[&str] = &["always: this server has no tunnels"];

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::TunnelSupported),
        name: "is_tunnel_supported",
        access: Access::Api,
        doc: "Whether there are tunnels of a kind.",
        types: Types::of::<TunnelParams, TunnelSupport<'_>>(),
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
        types: Types::of::<ActivateTunnelParams, ()>(),
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
        types: Types::of::<UpdateTunnelClientParams, Empty>(),
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
        types: Types::of::<Empty, TunnelTopology<'_>>(),
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
        types: Types::of::<Fragment<'_>, Option<FragmentReply>>(),
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
        types: Types::of::<Empty, ()>(),
        errors: NO_TUNNELS,
        example: Example {
            params: "{}",
            result: "null",
        },
    },
];
