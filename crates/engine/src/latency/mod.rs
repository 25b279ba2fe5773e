//! Latency: what a packet carries to have its time on the way measured, and what is made of it.
//!
//! * [`trailer`]: the last 16 bytes of a packet: its number, and when it was sent.
//! * [`checksum_fixup`]: the checksum that covers it.
//! * [`meter`]: times, jitter, loss and order of the packets of one group.
//! * [`histogram`]: its times, finely sorted, for percentiles.

pub mod checksum_fixup;
pub mod histogram;
pub mod meter;
pub mod trailer;

pub use checksum_fixup::ChecksumFixup;
pub use histogram::Histogram;
pub use meter::{LatencyStats, Meter};
pub use trailer::{TRAILER_BYTES, Trailer};
