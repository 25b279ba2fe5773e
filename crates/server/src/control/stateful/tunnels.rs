//! Tunnels, which this server does not have.

use allosaur_api::commands::stateful::tunnels::tunnel_type;
use allosaur_api::{Error, Fields};
use serde_json::json;

use crate::control::reply::Reply;

/// Why nothing of it works.
const NONE: &str = "this server has no tunnels (GTP-U): send traffic without them";

pub(super) fn is_supported(fields: &Fields<'_>) -> Reply {
    tunnel_type(fields)?;
    Ok(json!({"is_tunnel_supported": false, "error_msg": NONE}))
}

pub(super) fn refuse() -> Reply {
    Err(Error::execution(NONE))
}
