//! TCP: one connection as a state machine without I/O (RFC 9293 and its companions).
//!
//! | what | where | source |
//! |---|---|---|
//! | states, beginning, end | `connection`, with SYNs in `handshake` | RFC 9293 |
//! | segments of the fast path, in and out | `header_prediction` | those of the next two |
//! | what arrives, in named steps | `input`, `acknowledge`, `reassembly` | RFC 9293, 5961, 7323, 2018 |
//! | what leaves | `output` | RFC 9293, 1122 (Nagle, silly windows) |
//! | loss | `acknowledge`, `scoreboard` | RFC 5681, 6582, 6675, 3042 |
//! | what routers say | `icmp_error` | RFC 1191, 8201, 1122, 5927 |
//! | the window | `congestion` | RFC 5681, 9438, 3168 |
//! | time | `rtt`, `timers`, `timeout` | RFC 6298 |
//! | what is left in TIME-WAIT | `time_wait` | RFC 9293, 6191 |
//! | what people see of it | `info`, `counters` | – |
//! | what always holds | `audit` | – |
//!
//! A connection keeps no bytes: of what it sends it knows how many there are, and the caller finds
//! them again by their offset; of what it receives it only tells how many arrived in order. What
//! it needs only while something is lost lies in a pool (`recovery`).

mod acknowledge;
mod audit;
mod cold;
mod congestion;
mod connection;
mod counters;
mod handshake;
mod header_prediction;
mod icmp_error;
mod info;
mod input;
mod outcome;
mod output;
mod ranges;
mod reassembly;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod seq;
mod time_wait;
mod timeout;
mod timers;
mod tunables;

pub use connection::{Connection, TcpContext, TcpState};
pub use counters::TcpCounters;
pub use info::Info;
pub use outcome::{End, Outcome};
pub use output::{Progress, SegmentTx};
pub use recovery::RecoveryPool;
pub use segment::{Coalesced, Segment};
pub use seq::Seq;
pub use time_wait::TimeWait;
pub use tunables::{CongestionAlgorithm, Ecn, MSS_BYTES_DEFAULT, MSS_BYTES_MIN, Tunables};
