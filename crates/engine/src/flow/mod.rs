//! Flows: how millions of them are kept, found and woken.
//!
//! | what | where | memory a flow |
//! |---|---|---|
//! | places | `slab`, in TIME-WAIT `fifo` | the flow itself |
//! | whose frame is this? | `table` of a `key`, for IPv6 with `prefixes` | 12 bytes at a load of two thirds |
//! | when is it its turn? | `timers` | 12 bytes, none in TIME-WAIT |
//!
//! All of it belongs to one core, grows up to a limit that is told beforehand, and never moves what
//! it holds.

mod fifo;
mod key;
mod prefixes;
mod slab;
mod table;
mod timers;

pub use fifo::Fifo;
pub use key::{AddressSpace, FlowKey, FlowScope, Protocol};
pub use prefixes::{PREFIXES_MAX, PrefixIndex, Prefixes, host_of};
pub use slab::{FlowIndex, Slab};
pub use table::Table;
pub use timers::Timers;
