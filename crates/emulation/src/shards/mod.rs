//! Emulated clients on several cores: each has an [`Emulation`](crate::Emulation) of its own, a *shard*.
//!
//! [`ShardMap`] says where a namespace has its home, and where its clients are; [`FrameRouter`] which shards
//! a frame is for. A call of the RPC is about one client, several, a namespace or all: [`ShardedCall`] gives
//! each shard its part, and makes one reply of theirs, which is the one that a single emulation would give.

mod call;
mod clients;
mod merge;
mod neighbors;
mod page;
mod router;

pub use crate::shard_map::ShardMap;
pub use call::ShardedCall;
pub use page::NamespaceReader;
pub use router::{FrameRoute, FrameRouter};
