//! BGP speakers over kernel sockets: one thread has all sessions, waits for their sockets by epoll, and does
//! what control asks of it.
//!
//! The speaker itself is the crate `bgp`, which knows neither sockets nor clocks. The [driver](driver) gives
//! its sessions bytes and time, and knows sockets by a trait: tests run it in memory.

mod connection;
mod driver;
mod kernel_sockets;
mod request;
mod service;
mod sockets;
mod speaker;
#[cfg(test)]
mod tests;

pub(crate) use request::{RouteAnswer, RouteRequest, SessionSpec, SpeakerPlace, SpeakerSpec};
pub(crate) use service::RouteService;
