//! ZMTP, the protocol of ZeroMQ over TCP, on a thread of its own: [`ZmtpServer`] is a ROUTER for
//! requests and a PUB for what is published.
//!
//! libzmq's own sockets put whole messages together before anybody may look at them, keep what nobody
//! reads, and have a limit for parts only. Here each peer has one request under way, and all of them
//! [share](budget) what there is.

pub mod budget;
mod connection;
mod handshake;
mod message;
mod server;
mod stream;
mod wire;

pub(super) use server::{Arrived, Listening, ZmtpServer};
