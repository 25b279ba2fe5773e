//! pcapng files: a reader of all that there are, and a writer of one section in memory.

mod block;
mod reader;
mod time;
mod writer;

pub(super) use reader::is_pcapng;

pub use block::{Direction, SNAP_LENGTH};
pub use reader::{Interface, PcapngPacket, PcapngReader};
pub use writer::{InterfaceDescription, PcapngWriter};
