//! What all domains share: ports and who owns them, sessions and their events, requests that wait, and
//! the queue of what is to be done.

pub(in crate::control) mod access;
mod base;
mod flows;
mod handles;
pub(in crate::control) mod layers;
pub(in crate::control) mod lease;
pub(in crate::control) mod owner;
pub(in crate::control) mod pending;
pub(in crate::control) mod port;
pub(in crate::control) mod rates;
pub(in crate::control) mod reception;
mod secret;
pub(in crate::control) mod sessions;

pub(in crate::control) use self::base::Core;
