//! The JSON of one stream: mode, rate, packet, field engine program.

use crate::fields::{FieldError, Fields};
use serde_json::Value;

/// A stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream<'a> {
    /// A stream that is not enabled is kept and not sent.
    pub enabled: bool,
    /// Starts with the profile.
    pub self_start: bool,
    /// Starts paused.
    pub start_paused: bool,
    /// Bit 0: source MAC from the packet. Bits 1 and 2: destination MAC, 0 from the port, 1 from
    /// the packet, 2 resolved. Bit 3: dummy.
    pub flags: u32,
    /// How often a chain may enter the stream; 0 without limit.
    pub action_count: u32,
    /// Seed of the random variables.
    pub random_seed: u32,
    /// Delay before the first packet, in microseconds.
    pub isg_us: f64,
    /// The multiplier makes that delay shorter, too.
    pub scales_isg: bool,
    /// The stream that starts when this one ends; −1 for none.
    pub next_stream_id: i64,
    /// The only data thread that sends it; −1 for all.
    pub core_id: i64,
    /// How many packets.
    pub mode: StreamMode,
    /// How fast.
    pub rate: Rate,
    /// The packet template in base64; `None` only for dummies.
    pub packet_base64: Option<&'a str>,
    /// The field engine program.
    pub instructions: Vec<Instruction>,
    /// Packets to make beforehand and send over and over; 0 makes each packet new.
    pub cache_packets: u16,
    /// The packet group that its packets are counted in.
    pub flow_stats: Option<FlowStats>,
}

/// What is counted of a stream by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// The user's number of the packet group.
    pub pg_id: u32,
    /// What is counted.
    pub rule: RuleType,
    /// The packet within VXLAN carries the sign.
    pub vxlan: bool,
    /// Time stamps after IEEE 1588.
    pub ieee_1588: bool,
}

/// What is counted of a packet group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleType {
    /// Packets and bytes.
    Stats,
    /// Those, and latency, jitter, loss and order.
    Latency,
    /// A tagged packet group.
    Tagged,
}

/// Bit 3 of [`Stream::flags`]: the stream sends nothing and only takes its time.
pub const FLAG_DUMMY: u32 = 1 << 3;

/// How many packets a stream sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamMode {
    /// Without end.
    Continuous,
    /// `total_pkts` packets.
    SingleBurst {
        /// Packets in all.
        total_pkts: u32,
    },
    /// `count` bursts.
    MultiBurst {
        /// Packets of one burst.
        pkts_per_burst: u32,
        /// From the last packet of a burst to the first of the next, in microseconds.
        ibg_us: f64,
        /// Bursts.
        count: u32,
    },
}

/// How fast a stream is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The unit.
    pub unit: RateUnit,
    /// The number.
    pub value: f64,
}

/// The unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// Packets per second.
    Pps,
    /// Bits per second at layer 1.
    BpsL1,
    /// Bits per second at layer 2.
    BpsL2,
    /// Percent of the line rate at layer 1.
    Percentage,
}

/// An instruction of the field engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// `flow_var`.
    FlowVar(FlowVar),
    /// `flow_var_rand_limit`.
    FlowVarRandLimit(FlowVarRandLimit),
    /// `tuple_flow_var`.
    TupleFlowVar(TupleFlowVar),
    /// `write_mask_flow_var`.
    WriteMaskFlowVar(WriteMaskFlowVar),
    /// `write_flow_var`.
    WriteFlowVar {
        /// The variable.
        name: String,
        /// Where, in bytes from the start of the packet.
        pkt_offset: u32,
        /// Added before the write.
        add_value: i64,
        /// Network byte order.
        is_big_endian: bool,
    },
    /// `fix_checksum_ipv4`.
    FixChecksumIpv4 {
        /// Where the IPv4 header is.
        pkt_offset: u32,
    },
    /// `fix_checksum_hw`.
    FixChecksumHw {
        /// Where the IP header is.
        l2_len: u16,
        /// Bytes from there to the next header.
        l3_len: u16,
        /// [`L4_TYPE_UDP`], [`L4_TYPE_TCP`] or [`L4_TYPE_IP`].
        l4_type: u8,
    },
    /// `fix_checksum_icmpv6`.
    FixChecksumIcmpv6 {
        /// Where the IPv6 header is.
        l2_len: u16,
        /// Bytes from there to the ICMPv6 header.
        l3_len: u16,
    },
    /// `trim_pkt_size`.
    TrimPktSize {
        /// The variable.
        name: String,
    },
}

/// The instruction `flow_var`: a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowVar {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u8,
    /// `inc`, `dec` or `random`.
    pub op: Operation,
    /// What is added with each packet.
    pub step: u64,
    /// The values.
    pub values: FlowVarValues,
    /// The variable that moves when this one wraps.
    pub next_var: Option<String>,
    /// All cores together count as one would; otherwise each core counts alone.
    pub split_to_cores: bool,
}

/// The instruction `flow_var_rand_limit`: a variable with random values that repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowVarRandLimit {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u8,
    /// Values until the first one comes again.
    pub limit: u64,
    /// Where the random values begin.
    pub seed: u32,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// The variable that moves when this one begins again.
    pub next_var: Option<String>,
    /// All cores together draw as one would; otherwise each core draws alone.
    pub split_to_cores: bool,
}

/// The instruction `tuple_flow_var`: addresses and ports of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleFlowVar {
    /// Its name.
    pub name: String,
    /// First address.
    pub ip_min: u32,
    /// Last address.
    pub ip_max: u32,
    /// First port.
    pub port_min: u16,
    /// Last port.
    pub port_max: u16,
    /// How many flows; 0 for all.
    pub limit_flows: u32,
    /// Bit 0: all ports from 1 on and no limit of flows.
    pub flags: u16,
}

/// The instruction `write_mask_flow_var`: some bits of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteMaskFlowVar {
    /// The variable.
    pub name: String,
    /// Where the field is, in bytes from the start of the packet.
    pub pkt_offset: u32,
    /// Bytes of the field.
    pub pkt_cast_size: u8,
    /// The bits that are written.
    pub mask: u32,
    /// To the left; to the right when negative.
    pub shift: i64,
    /// Added before the shift.
    pub add_value: i64,
    /// Network byte order.
    pub is_big_endian: bool,
}

/// Bit 0 of [`TupleFlowVar::flags`]: all ports from 1 on and no limit of flows.
pub const TUPLE_FLAG_UNLIMITED: u16 = 1;

/// How a variable moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Up.
    Inc,
    /// Down.
    Dec,
    /// At random.
    Random,
}

/// What values a variable takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowVarValues {
    /// A range.
    Range {
        /// The first packet's value.
        init: u64,
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A list.
    List(Vec<u64>),
}

/// `l4_type` of UDP.
pub const L4_TYPE_UDP: u8 = 11;
/// `l4_type` of TCP.
pub const L4_TYPE_TCP: u8 = 13;
/// `l4_type` of the IPv4 header alone.
pub const L4_TYPE_IP: u8 = 17;

impl<'a> Stream<'a> {
    /// Reads a stream.
    pub fn parse(value: &'a Value) -> Result<Stream<'a>, FieldError> {
        let map = value.as_object().ok_or(FieldError::Type {
            name: "stream".to_owned(),
            found: "something else",
            expected: "object",
        })?;
        let fields = Fields::new(map);
        let flags = fields.uint32("flags")?;
        let mode = fields.object("mode")?;
        let (instructions, cache_packets) = parse_vm(&fields)?;
        Ok(Stream {
            enabled: fields.boolean("enabled")?,
            self_start: fields.boolean("self_start")?,
            start_paused: fields.optional("start_paused", Fields::boolean)? == Some(true),
            flags,
            action_count: fields
                .optional("action_count", Fields::uint32)?
                .unwrap_or(0),
            random_seed: fields.optional("random_seed", Fields::uint32)?.unwrap_or(0),
            isg_us: fields.double("isg")?,
            scales_isg: fields.optional("scale_isg", Fields::boolean)? == Some(true),
            next_stream_id: fields.int("next_stream_id")?,
            core_id: fields.optional("core_id", Fields::int)?.unwrap_or(-1),
            mode: StreamMode::parse(&mode)?,
            rate: Rate::parse(&mode.object("rate")?)?,
            packet_base64: parse_packet(&fields, flags & FLAG_DUMMY != 0)?,
            instructions,
            cache_packets,
            flow_stats: parse_flow_stats(&fields)?,
        })
    }
}

fn parse_packet<'a>(fields: &Fields<'a>, dummy: bool) -> Result<Option<&'a str>, FieldError> {
    if dummy && fields.is_missing("packet") {
        return Ok(None);
    }
    fields.object("packet")?.string("binary").map(Some)
}

fn parse_flow_stats(fields: &Fields<'_>) -> Result<Option<FlowStats>, FieldError> {
    let Some(fields) = fields.optional("flow_stats", Fields::object)? else {
        return Ok(None);
    };
    if !fields.boolean("enabled")? {
        return Ok(None);
    }
    let rule = match fields.one_of("rule_type", &["stats", "latency", "tpg"])? {
        "stats" => RuleType::Stats,
        "latency" => RuleType::Latency,
        _ => RuleType::Tagged,
    };
    let flag = |name| Ok(fields.optional(name, Fields::boolean)? == Some(true));
    Ok(Some(FlowStats {
        pg_id: fields.uint32("stream_id")?,
        rule,
        vxlan: flag("vxlan")?,
        ieee_1588: flag("ieee_1588")?,
    }))
}

fn parse_vm(fields: &Fields<'_>) -> Result<(Vec<Instruction>, u16), FieldError> {
    let Some(vm) = fields.optional("vm", Fields::object)? else {
        return Ok((Vec::new(), 0));
    };
    let cache = vm.optional("cache", Fields::uint16)?.unwrap_or(0);
    let instructions = vm.array("instructions")?.iter().enumerate();
    let parse = |(i, value)| Instruction::parse(&Fields::of(value, &instruction_name(i))?);
    Ok((instructions.map(parse).collect::<Result<_, _>>()?, cache))
}

/// What an error calls an instruction.
pub fn instruction_name(index: usize) -> String {
    format!("vm.instructions[{index}]")
}

impl StreamMode {
    fn parse(fields: &Fields<'_>) -> Result<StreamMode, FieldError> {
        let kinds = ["continuous", "single_burst", "multi_burst"];
        Ok(match fields.one_of("type", &kinds)? {
            "continuous" => StreamMode::Continuous,
            "single_burst" => StreamMode::SingleBurst {
                total_pkts: fields.uint32("total_pkts")?,
            },
            _ => StreamMode::MultiBurst {
                pkts_per_burst: fields.uint32("pkts_per_burst")?,
                ibg_us: fields.double("ibg")?,
                count: fields.uint32("count")?,
            },
        })
    }
}

impl Rate {
    fn parse(fields: &Fields<'_>) -> Result<Rate, FieldError> {
        let units = ["pps", "bps_L1", "bps_L2", "percentage"];
        let unit = match fields.one_of("type", &units)? {
            "pps" => RateUnit::Pps,
            "bps_L1" => RateUnit::BpsL1,
            "bps_L2" => RateUnit::BpsL2,
            _ => RateUnit::Percentage,
        };
        let value = fields.double("value")?;
        Ok(Rate { unit, value })
    }
}

impl Instruction {
    fn parse(fields: &Fields<'_>) -> Result<Instruction, FieldError> {
        let name = |fields: &Fields<'_>| fields.string("name").map(str::to_owned);
        let kinds = [
            "flow_var",
            "flow_var_rand_limit",
            "tuple_flow_var",
            "write_flow_var",
            "write_mask_flow_var",
            "fix_checksum_ipv4",
            "fix_checksum_hw",
            "fix_checksum_icmpv6",
            "trim_pkt_size",
        ];
        Ok(match fields.one_of("type", &kinds)? {
            "flow_var" => Instruction::FlowVar(FlowVar::parse(fields)?),
            "flow_var_rand_limit" => {
                Instruction::FlowVarRandLimit(FlowVarRandLimit::parse(fields)?)
            }
            "tuple_flow_var" => Instruction::TupleFlowVar(TupleFlowVar::parse(fields)?),
            "write_mask_flow_var" => {
                Instruction::WriteMaskFlowVar(WriteMaskFlowVar::parse(fields)?)
            }
            "write_flow_var" => Instruction::WriteFlowVar {
                name: name(fields)?,
                pkt_offset: fields.uint32("pkt_offset")?,
                add_value: fields.optional("add_value", Fields::int)?.unwrap_or(0),
                is_big_endian: fields.boolean("is_big_endian")?,
            },
            "fix_checksum_ipv4" => Instruction::FixChecksumIpv4 {
                pkt_offset: fields.uint32("pkt_offset")?,
            },
            "fix_checksum_hw" => Instruction::FixChecksumHw {
                l2_len: fields.uint16("l2_len")?,
                l3_len: fields.uint16("l3_len")?,
                l4_type: fields.byte("l4_type")?,
            },
            "fix_checksum_icmpv6" => Instruction::FixChecksumIcmpv6 {
                l2_len: fields.uint16("l2_len")?,
                l3_len: fields.uint16("l3_len")?,
            },
            _ => Instruction::TrimPktSize {
                name: name(fields)?,
            },
        })
    }
}

impl FlowVar {
    fn parse(fields: &Fields<'_>) -> Result<FlowVar, FieldError> {
        let op = match fields.one_of("op", &["inc", "dec", "random"])? {
            "inc" => Operation::Inc,
            "dec" => Operation::Dec,
            _ => Operation::Random,
        };
        Ok(FlowVar {
            name: fields.string("name")?.to_owned(),
            size: fields.byte("size")?,
            op,
            step: fields.optional("step", Fields::uint64)?.unwrap_or(1),
            values: FlowVarValues::parse(fields)?,
            next_var: fields
                .optional("next_var", Fields::string)?
                .map(str::to_owned),
            split_to_cores: split_to_cores(fields)?,
        })
    }
}

impl FlowVarRandLimit {
    fn parse(fields: &Fields<'_>) -> Result<FlowVarRandLimit, FieldError> {
        Ok(FlowVarRandLimit {
            name: fields.string("name")?.to_owned(),
            size: fields.byte("size")?,
            limit: fields.uint64("limit")?,
            seed: fields.optional("seed", Fields::uint32)?.unwrap_or(0),
            min: fields.uint64("min_value")?,
            max: fields.uint64("max_value")?,
            next_var: fields
                .optional("next_var", Fields::string)?
                .map(str::to_owned),
            split_to_cores: split_to_cores(fields)?,
        })
    }
}

fn split_to_cores(fields: &Fields<'_>) -> Result<bool, FieldError> {
    Ok(fields
        .optional("split_to_cores", Fields::boolean)?
        .unwrap_or(true))
}

impl TupleFlowVar {
    fn parse(fields: &Fields<'_>) -> Result<TupleFlowVar, FieldError> {
        Ok(TupleFlowVar {
            name: fields.string("name")?.to_owned(),
            ip_min: fields.uint32("ip_min")?,
            ip_max: fields.uint32("ip_max")?,
            port_min: fields.uint16("port_min")?,
            port_max: fields.uint16("port_max")?,
            limit_flows: fields.optional("limit_flows", Fields::uint32)?.unwrap_or(0),
            flags: fields.optional("flags", Fields::uint16)?.unwrap_or(0),
        })
    }
}

impl WriteMaskFlowVar {
    fn parse(fields: &Fields<'_>) -> Result<WriteMaskFlowVar, FieldError> {
        Ok(WriteMaskFlowVar {
            name: fields.string("name")?.to_owned(),
            pkt_offset: fields.uint32("pkt_offset")?,
            pkt_cast_size: fields.byte("pkt_cast_size")?,
            mask: fields.uint32("mask")?,
            shift: fields.optional("shift", Fields::int)?.unwrap_or(0),
            add_value: fields.optional("add_value", Fields::int)?.unwrap_or(0),
            is_big_endian: fields.boolean("is_big_endian")?,
        })
    }
}

impl FlowVarValues {
    fn parse(fields: &Fields<'_>) -> Result<FlowVarValues, FieldError> {
        if !fields.is_missing("value_list") {
            let list = fields.uint_array("value_list", u64::MAX, "uint64")?;
            return Ok(FlowVarValues::List(list));
        }
        Ok(FlowVarValues::Range {
            init: fields.uint64("init_value")?,
            min: fields.uint64("min_value")?,
            max: fields.uint64("max_value")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stream() -> Value {
        json!({
            "enabled": true, "self_start": true, "flags": 3, "isg": 0, "next_stream_id": -1,
            "mode": {"type": "single_burst", "total_pkts": 7, "rate": {"type": "pps", "value": 10}},
            "packet": {"binary": "AAAA", "meta": ""},
            "vm": {"instructions": [
                {"type": "flow_var", "name": "a", "size": 2, "op": "inc", "step": 1,
                 "init_value": 1, "min_value": 1, "max_value": 9, "next_var": null},
                {"type": "write_flow_var", "name": "a", "pkt_offset": 26, "add_value": -1,
                 "is_big_endian": true}]},
            "flow_stats": {"enabled": false}
        })
    }

    fn error(change: impl FnOnce(&mut Value)) -> String {
        let mut value = stream();
        change(&mut value);
        Stream::parse(&value)
            .expect_err("the stream is wrong")
            .to_string()
    }

    #[test]
    fn a_stream_is_read() {
        let value = stream();
        let read = Stream::parse(&value).expect("the stream is right");
        assert_eq!(read.mode, StreamMode::SingleBurst { total_pkts: 7 });
        assert_eq!((read.flags, read.core_id, read.action_count), (3, -1, 0));
        assert_eq!(read.instructions.len(), 2);
    }

    #[test]
    fn errors_name_the_field_with_its_path() {
        assert_eq!(
            error(|s| s["packet"] = Value::Null),
            "field 'packet' is missing"
        );
        assert_eq!(
            error(|s| s["mode"]["rate"]["value"] = json!("1")),
            "'mode.rate.value' is 'string', expecting 'double'"
        );
        assert_eq!(
            error(|s| s["vm"]["instructions"][1]["pkt_offset"] = json!(-1)),
            "'vm.instructions[1].pkt_offset' is 'int', expecting 'uint32'"
        );
        assert!(error(|s| s["vm"]["instructions"][0]["op"] = json!("up")).contains("'random'"));
    }
}
