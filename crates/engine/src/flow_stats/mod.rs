//! Statistics of single streams: which packets are counted together, and by what sign on the
//! wire they are known.
//!
//! * `group`: which packets are counted together.
//! * [`tag`]: the sign, put into a stream's template when it is compiled.
//! * [`receive`]: the sign, read from a frame that arrived.
//! * [`table`]: the counters of all groups in one direction of one port.
//! * [`vxlan`]: the UDP ports within which packets are looked for.

mod group;
pub mod receive;
pub mod table;
pub mod tag;
pub mod vxlan;

pub use group::{FLOW_GROUPS, GROUPS, Group, LATENCY_GROUPS};
pub use table::{GroupTable, PacketGroupCounters};
pub use tag::{Rule, TagError, Tagging};
pub use vxlan::{VXLAN_PORT, VXLAN_PORTS_MAX, VxlanPorts};
