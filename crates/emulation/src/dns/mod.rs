//! What DNS (RFC 1035) and multicast DNS (RFC 6762) have in common: messages, caches of answers,
//! queries of the RPC, and clients that ask by themselves.

pub(crate) mod auto_play;
pub(crate) mod cache;
pub(crate) mod kind;
pub(crate) mod message;
pub(crate) mod query;
