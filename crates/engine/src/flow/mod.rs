//! Flows: how millions of them are kept, found and woken.
//!
//! | what | where | memory a flow |
//! |---|---|---|
//! | places | `slab`, in TIME-WAIT `fifo` | the flow itself |
//! | whose frame is this? | `table` of a `key`, for IPv6 and tunnels with `spaces` | 12 bytes at a load of two thirds |
//! | when is it its turn? | `timers` | 12 bytes, none in TIME-WAIT |
//!
//! All of it belongs to one core, grows up to a limit that is told beforehand, and never moves what
//! it holds.

mod fifo;
mod key;
mod slab;
mod spaces;
mod table;
mod timers;

pub use fifo::Fifo;
pub use key::{FlowKey, FlowScope, Protocol};
pub use slab::{FlowIndex, Slab};
pub use spaces::{AddressSpace, AddressSpaces, SPACES_MAX, SpaceIndex, host_of};
pub use table::Table;
pub use timers::Timers;
