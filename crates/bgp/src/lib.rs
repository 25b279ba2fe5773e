//! BGP-4 (RFC 4271) for many sessions that announce the same large tables.
//!
//! [`wire`] has the messages, [`routes`] tables of routes: made by a seed, as a range, or read from an MRT
//! file. [`RouteStream`](stream::RouteStream) is a table encoded once into full UPDATE messages; any number of
//! [`BgpSession`](session::BgpSession)s [replay](replay) it, each with its own next hop and AS number, which
//! are patched at offsets that are known. A [`BgpSpeaker`](speaker::BgpSpeaker) keeps sessions, and what all of
//! them announce.
//!
//! Nothing here opens a socket or reads a clock. Who drives a session hands it bytes and the time in
//! nanoseconds, sends what [`poll_transmit`](session::BgpSession::poll_transmit) gives, and calls again at
//! [`poll_timeout`](session::BgpSession::poll_timeout).

pub mod random;
pub mod replay;
pub mod routes;
pub mod session;
pub mod speaker;
pub mod stream;
pub mod wire;
