//! Sessions: flows that run programs.
//!
//! | what | where |
//! |---|---|
//! | a flow with its program, and its segments of the fast path | `flow`, with what each call is given in `context` |
//! | its other segments, and what else happens to it | `transmit`, `events` |
//! | how it begins, and how it is ended | `open`, `close` |
//! | how messages travel | `udp_transport` with `udp` |
//! | what runs on it | `application`: a program, or an application over bytes, called in `app_calls` |
//! | datagrams of one that tells its flows apart itself | `datagrams`, `batch` |
//! | bytes for the latter | `byte_flow`, `receive_buffer` |
//! | what TCP still has to send | `outbox`, with bytes of applications in `owned_buffers` |
//! | what is left of it in TIME-WAIT | `time_wait` |
//! | when it began, how long it took, and how it ended | `begin_time`, `flow_times` with `measure`, `outcome` with `judge` |
//! | where frames go, and what surrounds their data | `links`, `surroundings`; behind tags, tunnels and over IPv6 `prefixed` |
//! | the time there and back in messages | `app_latency` |
//! | frames | `wire` |

mod app_calls;
pub mod app_latency;
mod application;
mod batch;
mod begin_time;
mod byte_flow;
mod close;
mod context;
mod datagrams;
mod events;
mod flow;
mod flow_times;
mod judge;
mod links;
mod measure;
mod open;
mod outbox;
mod outcome;
mod owned_buffers;
mod prefixed;
mod receive_buffer;
mod surroundings;
mod time_wait;
mod transmit;
mod udp;
mod udp_transport;
pub mod wire;

pub use app_latency::LatencyCounters;
pub use application::ApplicationPool;
pub use begin_time::BeginTime;
pub use context::{Clock, FlowContext, FlowStatus, FrameTx, HeaderDefaults, Pools, SideCounters};
pub use flow::Session;
pub use flow_times::{FlowTimes, TimeHistogram};
pub use links::{LinkAddresses, Links};
pub use outbox::{Outbox, OutboxPool};
pub use outcome::{FlowOutcome, OutcomeCounters};
pub use time_wait::TimeWaitSession;
