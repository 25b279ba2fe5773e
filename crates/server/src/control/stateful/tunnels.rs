//! Tunnels, which this server does not have.

use allosaur_api::commands::stateful::tunnels::{TunnelParams, TunnelSupport};
use allosaur_api::{Error, Fields};

use crate::control::reply::{Reply, reply};

/// Why nothing of it works.
const NONE: &str = "this server has no tunnels (GTP-U): send traffic without them";

pub(super) fn is_supported(fields: &Fields<'_>) -> Reply {
    fields.read::<TunnelParams>()?;
    reply(&TunnelSupport {
        is_tunnel_supported: false,
        error_msg: Some(NONE),
    })
}

pub(super) fn refuse() -> Reply {
    Err(Error::execution(NONE))
}
