//! Sessions: flows that run programs.
//!
//! | what | where |
//! |---|---|
//! | a flow with its program | `flow` |
//! | what TCP still has to send | `outbox` |
//! | where frames go | `links` |
//! | UDP | `udp` |
//! | the time there and back in messages | `app_latency` |
//! | frames | `wire` |

pub mod app_latency;
mod flow;
mod links;
mod outbox;
mod udp;
pub mod wire;

pub use app_latency::LatencyCounters;
pub use flow::{Context, FlowStatus, FrameTx, HeaderDefaults, Pools, Session, SideCounters};
pub use links::{LinkAddresses, Links};
pub use outbox::{Outbox, OutboxPool};
