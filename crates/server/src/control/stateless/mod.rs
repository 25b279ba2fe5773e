//! Stateless traffic, as control sees it: profiles of streams, what runs of them, packet groups, and
//! packets and captures that are sent once.

mod changes;
pub(super) mod percentiles;
pub(super) mod pgid;
mod push;
mod remote;
pub mod stream;
mod streams;
pub(super) mod traffic;
