//! Capture files over byte slices: [`read`] takes a file of any format; each format has a reader of
//! its own, and those that are written a writer.

pub mod erf;
mod open;
pub mod pcap;
pub mod pcapng;
mod record;

pub use open::read;
pub use record::{Capture, CaptureError, LinkType, Record, Resolution};
