//! The simulator: what a server would do, in virtual time.
//!
//! | what | where |
//! |---|---|
//! | streams: the requests of a client, and the packets that come of them | `streams` |
//! | flows: clients, servers, and a link between them | [`stateful`] |

pub mod stateful;
mod streams;

pub use streams::{
    CORES_MAX, DESTINATION_MAC, LIMIT_PACKETS, LINE_RATE_BPS, SOURCE_MAC, Scenario, SimError,
    StreamsOutcome,
};
