//! What the flow table of a core counts, by TRex's names.
//!
//! What lives here: the counters and their names. What does not: those of flows (`session`).

use crate::stats::counters;

counters! {
    /// Counters of one side of a core, by TRex's names. All only grow.
    FlowTableCounters;
    /// Frames for a client that has no such flow.
    err_cwf,
    /// Segments for a server that has no such flow, and are no SYN.
    err_no_syn,
    /// Frames whose lengths are wrong.
    err_len_err,
    /// Parts of IPv4 packets.
    err_fragments_ipv4_drop,
    /// Frames of other protocols.
    err_no_tcp_udp,
    /// Frames for a server that no template has.
    err_no_template,
    /// Frames with a wrong checksum of IPv4.
    err_l3_cs,
    /// Frames with a wrong checksum of TCP or UDP.
    err_l4_cs,
    /// Flows that a client could not begin, as all its ports are in use.
    err_c_tuple_err,
    /// Flows that could not begin, as there are too many.
    err_flow_overflow,
    /// Flows whose template their first bytes decided.
    defer_template,
    /// Flows whose first bytes no template has.
    err_defer_no_template,
}
