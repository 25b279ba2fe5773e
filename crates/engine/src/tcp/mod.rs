//! TCP: one connection as a state machine without I/O (RFC 9293 and its companions).
//!
//! | what | where | source |
//! |---|---|---|
//! | states, and the fields of a connection | `connection` | RFC 9293 |
//! | the handshake | `handshake` | RFC 9293 |
//! | input: the steps of a segment that arrives | `input`, its checks in `acceptability` | RFC 9293, 5961, 7323, 3168 |
//! | data out of order | `reassembly` | RFC 5681, 2018 |
//! | output: the segments that are sent | `output`, its fast path in `output_fast_path` | RFC 9293, 1122 (Nagle, silly windows) |
//! | loss recovery | `fast_recovery`, `scoreboard` | RFC 5681, 6582, 6675, 3042 |
//! | ICMP errors | `icmp_error` | RFC 1191, 8201, 1122, 5927 |
//! | congestion control | `congestion` | RFC 5681, 9438, 3168 |
//! | timers and round trips | `timers`, `timeout`, `rtt` | RFC 6298 |
//! | connections in TIME-WAIT | `time_wait` | RFC 9293, 6191 |
//! | records and counters | `info`, `counters` | – |
//! | invariants, for tests | `audit` | – |
//!
//! A connection keeps no bytes: of what it sends it knows how many there are, and the caller finds
//! them again by their offset; of what it receives it only says how many arrived in order. State of
//! recovery and reassembly lies in a pool (`recovery`).

mod acceptability;
mod audit;
mod cold;
mod congestion;
mod connection;
mod counters;
mod fast_recovery;
mod handshake;
mod icmp_error;
mod info;
mod input;
mod outcome;
mod output;
mod output_fast_path;
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
pub use segment::Segment;
pub use seq::Seq;
pub use time_wait::TimeWait;
pub use tunables::{CongestionAlgorithm, Ecn, MSS_BYTES_DEFAULT, MSS_BYTES_MIN, Tunables};
