//! Emulated clients on several cores: each has an [`Emulation`](crate::Emulation) of its own, a *shard*,
//! and a namespace with all of its clients is on one of them.
//!
//! [`ShardMap`] says on which, of a namespace and of a frame. A call of the RPC is about one namespace,
//! several or all: [`ShardedCall`] gives each shard its part, and makes one reply of theirs, which is the
//! one that a single emulation would give.

mod call;
mod map;
mod merge;

pub use call::{NamespaceReader, ShardedCall};
pub use map::ShardMap;
