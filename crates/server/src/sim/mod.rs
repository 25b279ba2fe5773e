//! The simulator: what a server would do, in virtual time.
//!
//! | what | where |
//! |---|---|
//! | streams: the requests of a client, and the packets that come of them | `streams` |
//! | flows: clients, servers, and a link between them | [`stateful`] |
//! | emulated clients: their requests, and ports joined in pairs | `emulation` |

mod emulation;
pub mod stateful;
mod streams;

pub use emulation::{EMULATED_PORTS_MAX, EmulatedNetwork, FrameWatch};
pub use streams::{
    CORES_MAX, DESTINATION_MAC, LIMIT_PACKETS, LINE_RATE_BPS, SOURCE_MAC, Scenario, SimError,
    StreamsOutcome,
};
