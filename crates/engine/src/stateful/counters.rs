//! What the flow table of a core counts, by TRex's names.
//!
//! What lives here: the counters and their names. What does not: those of flows (`session`).

/// Makes the struct, and the list of its names in the same order.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one side of a core. All only grow.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct FlowTableCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl FlowTableCounters {
            /// The names, in the order of [`values`](FlowTableCounters::values).
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The values, in the order of [`NAMES`](FlowTableCounters::NAMES).
            pub fn values(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$name),*]
            }

            /// Adds what another has counted.
            pub fn add(&mut self, other: &FlowTableCounters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
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
