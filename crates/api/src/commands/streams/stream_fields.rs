//! What the reference page says of the JSON of a stream.

/// The fields of a stream, for the reference page: name, type, default, meaning.
pub const FIELDS: &[(&str, &str, &str, &str)] = &[
    (
        "enabled",
        "boolean",
        "",
        "`false`: the stream is kept and not sent.",
    ),
    (
        "self_start",
        "boolean",
        "",
        "Starts with the profile; otherwise when another stream's `next_stream_id` names it.",
    ),
    (
        "start_paused",
        "boolean",
        "false",
        "Waits where it would start, until `resume_streams` names it.",
    ),
    (
        "flags",
        "uint32",
        "",
        "Bit 0: keep the packet's source MAC. Bits 1 and 2: destination MAC, 0 the port's, 1 the packet's, 2 resolved. Bit 3: dummy, sends nothing and only takes its time.",
    ),
    (
        "action_count",
        "uint32",
        "0",
        "How often a chain may enter the stream; 0 without limit.",
    ),
    (
        "random_seed",
        "uint32",
        "0",
        "Seed of the random variables.",
    ),
    (
        "isg",
        "double",
        "",
        "Delay before the first packet, in microseconds. The multiplier changes it with `scale_isg` only.",
    ),
    (
        "scale_isg",
        "bool",
        "false",
        "The multiplier makes `isg` shorter as it makes gaps between packets, and a chain of such streams has its average rate: streams of a capture have it.",
    ),
    (
        "next_stream_id",
        "int",
        "",
        "The stream that starts when this one ends; -1 for none.",
    ),
    (
        "core_id",
        "int",
        "-1",
        "The only data thread that sends it; -1 for all.",
    ),
    (
        "mode.type",
        "string",
        "",
        "`continuous`, `single_burst` (with `total_pkts`) or `multi_burst` (with `pkts_per_burst`, `ibg` in microseconds, `count`).",
    ),
    (
        "mode.rate",
        "object",
        "",
        "`type`: `pps`, `bps_L1`, `bps_L2` or `percentage`; `value`: above 0.",
    ),
    (
        "packet.binary",
        "string",
        "",
        "The packet in base64, 14 to 9238 bytes without the frame check sequence. Shorter ones are padded with zeros to 60 bytes.",
    ),
    (
        "vm.instructions",
        "array",
        "none",
        "The field engine program: `flow_var`, `flow_var_rand_limit`, `tuple_flow_var`, `write_flow_var`, `write_mask_flow_var`, `fix_checksum_ipv4`, `fix_checksum_hw`, `fix_checksum_icmpv6`, `trim_pkt_size`.",
    ),
    (
        "vm.cache",
        "uint16",
        "0",
        "Accepted as a hint; every packet is made anew, so that the program is followed beyond the cache's size.",
    ),
    (
        "flow_stats.enabled",
        "boolean",
        "false",
        "The stream's packets are counted by themselves, in a packet group. They need an IPv4 or IPv6 header behind Ethernet and at most two VLAN tags, and carry the group's sign in the identification of IPv4, or in the low 16 bits of the flow label of IPv6.",
    ),
    (
        "flow_stats.stream_id",
        "uint32",
        "",
        "The packet group's number. Several streams that are only counted may share one, also of several ports. 1023 groups can be counted at once, and 128 more measured.",
    ),
    (
        "flow_stats.rule_type",
        "string",
        "",
        "`stats`: packets and bytes are counted. `latency`: so are latency, jitter, loss and order; the last 16 bytes of each packet carry its number and time. The number belongs to one stream then, the lowest data thread of the core mask sends it, and the multiplier leaves its rate as it is. `tpg` is not supported yet.",
    ),
    (
        "flow_stats.vxlan",
        "boolean",
        "false",
        "The packet within VXLAN carries the sign.",
    ),
    (
        "flow_stats.ieee_1588",
        "boolean",
        "false",
        "Must be `false` in this version.",
    ),
];
