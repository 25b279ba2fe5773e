//! Sessions: flows that run programs.
//!
//! | what | where |
//! |---|---|
//! | a flow with its program | `flow` |
//! | what TCP still has to send | `outbox` |
//! | where frames go | `links` |
//! | UDP | `udp` |
//! | the time there and back in messages | `addon` |
//! | frames | `wire` |
//!
//! What does not live here: how TCP works (`tcp`) and programs (`app`), and ports.

pub mod addon;
mod flow;
mod links;
mod outbox;
mod udp;
pub mod wire;

pub use addon::LatencyCounters;
pub use flow::{Context, Looks, Pools, Session, SideCounters, Standing, Way};
pub use links::{LinkAddresses, Links};
pub use outbox::{Outbox, OutboxPool};
