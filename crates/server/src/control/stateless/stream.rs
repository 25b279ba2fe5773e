//! From the JSON of a stream to what the engine is asked to do, which is kept for its profile.
//!
//! The simulator converts its streams here too.

use allosaur_api::commands::streams::AddStream;
use allosaur_api::commands::streams::stream::{
    self as json, FLAG_DUMMY, FlowStats, L4_TYPE_IP, L4_TYPE_TCP, L4_TYPE_UDP, RuleType,
    TUPLE_FLAG_UNLIMITED, instruction_name,
};
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::flow_stats::tag::tag;
use allosaur_engine::flow_stats::{Group, Rule, Tagging, VxlanPorts};
use allosaur_engine::stream::spec::{PACKET_BYTES_MAX, PACKET_BYTES_MIN, PACKET_BYTES_PADDED};
use allosaur_engine::stream::{DestinationMac, Mode, Rate, StreamId, StreamSpec};
use allosaur_engine::time::{MICROSECOND, Nanos};
use allosaur_engine::vm::{
    self, Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width,
};
use base64::Engine as _;
use serde_json::Value;
use thiserror::Error as ThisError;

use super::port::StoredStream;
use super::state::Stateless;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::port::Port;
use crate::control::reply::{Reply, reply};

/// Why a stream cannot be used. Displays as one sentence that names stream and field.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("stream {stream}: {problem}")]
pub struct StreamError {
    /// The stream's number.
    pub stream: StreamId,
    /// The field, what is wrong with it, what would be right.
    pub problem: String,
}

/// Longest delay, a year: what is longer is a mistake in the unit.
const DELAY_US_MAX: f64 = 365.0 * 86_400.0 * 1e6;

impl Stateless {
    pub(super) fn add_stream(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = AddStream::parse(fields)?;
        let port = control.port(params.port)?;
        let (mut spec, counted) = check_stream(&params, port)?;
        self.port_mut(control, params.port)?
            .profile_or_new(&params.profile)?;
        let pg_id = counted.map(|counted| counted.pg_id);
        let member = (params.port, params.profile.clone());
        if let Some(counted) = counted {
            let rule = self
                .groups
                .join(&counted, member.clone(), &self.ports, view);
            let rule = rule.map_err(|problem| problem_of(spec.id, problem))?;
            spec.rule = Some(rule);
        }
        let json = params.stream.to_string();
        let stream = StoredStream { json, spec, pg_id };
        let profile = self
            .port_mut(control, params.port)?
            .profile_mut(&params.profile)?;
        let added = profile.add(stream, &params.profile);
        if added.is_err() {
            self.groups.leave(pg_id, &member);
        }
        added.and_then(|()| reply(&Empty {}))
    }
}

/// All that can be said of a stream without the other streams of its profile.
fn check_stream(
    params: &AddStream<'_>,
    port: &Port,
) -> Result<(StreamSpec, Option<FlowStats>), Error> {
    let spec = convert(params.stream_id, params.stream);
    let (spec, counted) = spec.map_err(|error| Error::execution(error.to_string()))?;
    let problem = |problem| problem_of(spec.id, problem);
    let threads = port.threads.len();
    if let Some(core) = spec.core.filter(|core| usize::from(*core) >= threads) {
        return Err(problem(format!(
            "field 'core_id' is {core}. It must be an integer between 0 and {} (inclusive), which \
             counts the data threads of the port",
            threads.saturating_sub(1)
        )));
    }
    if !spec.program.is_empty() {
        let verified = vm::verify(&spec.program, &padded(&spec));
        verified.map_err(|error| problem(format!("vm: {error}")))?;
    }
    if let Some(counted) = &counted {
        check_countable(&spec, counted, &port.reception.vxlan).map_err(problem)?;
    }
    Ok((spec, counted))
}

fn problem_of(stream: StreamId, problem: String) -> Error {
    Error::execution(StreamError { stream, problem }.to_string())
}

fn check_countable(
    spec: &StreamSpec,
    counted: &FlowStats,
    vxlan: &VxlanPorts,
) -> Result<(), String> {
    if spec.dummy {
        let text = "field 'flow_stats.enabled' is true for a dummy stream, which sends nothing: \
                    leave flow_stats out";
        return Err(text.to_owned());
    }
    let first = match counted.rule {
        RuleType::Latency => Group::latency(0),
        RuleType::Stats | RuleType::Tagged => Group::flow(0),
    };
    let rule = Rule {
        group: first.expect("there is a first group"),
        vxlan: counted.vxlan,
        run: 0,
    };
    tag(&mut padded(spec), rule, Tagging::default(), vxlan).map_err(|error| error.to_string())
}

/// The packet template as it will be sent, but for what the port puts in.
fn padded(spec: &StreamSpec) -> Vec<u8> {
    let mut template = spec.packet.clone();
    template.resize(template.len().max(PACKET_BYTES_PADDED), 0);
    template
}

/// Converts the JSON of stream `id`: what is sent, and what is counted of it.
pub fn convert(
    id: StreamId,
    value: &Value,
) -> Result<(StreamSpec, Option<FlowStats>), StreamError> {
    let read = json::Stream::parse(value).map_err(|error| error.to_string());
    read.and_then(|stream| Ok((spec(id, &stream)?, stream.flow_stats)))
        .map_err(|problem| StreamError {
            stream: id,
            problem,
        })
}

type Problem = String;

fn spec(id: StreamId, stream: &json::Stream<'_>) -> Result<StreamSpec, Problem> {
    Ok(StreamSpec {
        id,
        enabled: stream.enabled,
        self_start: stream.self_start,
        next: next(stream.next_stream_id)?,
        action_count: stream.action_count,
        start_delay: nanos("isg", stream.isg_us)?,
        scales_delay: stream.scales_isg,
        mode: mode(stream.mode)?,
        rate: rate(stream.rate)?,
        packet: packet(stream.packet_base64)?,
        keep_source_mac: stream.flags & 1 != 0,
        destination_mac: destination_mac(stream.flags)?,
        dummy: stream.flags & FLAG_DUMMY != 0,
        start_paused: stream.start_paused,
        random_seed: stream.random_seed,
        core: core(stream.core_id)?,
        rule: None,
        program: program(&stream.instructions)?,
    })
}

fn next(id: i64) -> Result<Option<StreamId>, Problem> {
    match id {
        -1 => Ok(None),
        id => StreamId::try_from(id).map(Some).map_err(|_| {
            format!("field 'next_stream_id' is {id}; it must be a stream's number, or -1 for none")
        }),
    }
}

fn core(id: i64) -> Result<Option<u8>, Problem> {
    match id {
        -1 => Ok(None),
        id => u8::try_from(id).map(Some).map_err(|_| {
            format!("field 'core_id' is {id}; it must be a data thread's number, or -1 for all")
        }),
    }
}

fn nanos(field: &str, microseconds: f64) -> Result<Nanos, Problem> {
    if !(0.0..=DELAY_US_MAX).contains(&microseconds) {
        return Err(format!(
            "field '{field}' is {microseconds} microseconds; it must be from 0 to a year"
        ));
    }
    Ok((microseconds * MICROSECOND as f64).round() as Nanos)
}

fn mode(mode: json::StreamMode) -> Result<Mode, Problem> {
    let above_zero = |field: &str, count: u32| match count {
        0 => Err(format!("field 'mode.{field}' is 0; it must be at least 1")),
        count => Ok(u64::from(count)),
    };
    Ok(match mode {
        json::StreamMode::Continuous => Mode::Continuous,
        json::StreamMode::SingleBurst { total_pkts } => Mode::SingleBurst {
            packets: above_zero("total_pkts", total_pkts)?,
        },
        json::StreamMode::MultiBurst {
            pkts_per_burst,
            ibg_us,
            count,
        } => Mode::MultiBurst {
            packets_per_burst: above_zero("pkts_per_burst", pkts_per_burst)?,
            gap: nanos("mode.ibg", ibg_us)?,
            bursts: above_zero("count", count)?,
        },
    })
}

fn rate(rate: json::Rate) -> Result<Rate, Problem> {
    let value = rate.value;
    if value <= 0.0 || !value.is_finite() {
        return Err(format!(
            "field 'mode.rate.value' is {value}; it must be above 0"
        ));
    }
    Ok(match rate.unit {
        json::RateUnit::Pps => Rate::PacketsPerSecond(value),
        json::RateUnit::BpsL1 => Rate::BitsPerSecondL1(value),
        json::RateUnit::BpsL2 => Rate::BitsPerSecondL2(value),
        json::RateUnit::Percentage => Rate::Percent(value),
    })
}

fn packet(base64: Option<&str>) -> Result<Vec<u8>, Problem> {
    let Some(base64) = base64 else {
        return Ok(vec![0; PACKET_BYTES_PADDED]);
    };
    decode_packet(base64)
}

/// A packet template, from base64.
pub(super) fn decode_packet(base64: &str) -> Result<Vec<u8>, Problem> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64);
    let bytes = bytes.map_err(|error| format!("the packet's 'binary' is not base64: {error}"))?;
    if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&bytes.len()) {
        return Err(format!(
            "packet is {} bytes; it must be {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}",
            bytes.len()
        ));
    }
    Ok(bytes)
}

fn destination_mac(flags: u32) -> Result<DestinationMac, Problem> {
    if flags > 0xf {
        return Err(format!(
            "field 'flags' is {flags}; bits above 3 have no meaning: leave them 0"
        ));
    }
    match (flags >> 1) & 3 {
        0 => Ok(DestinationMac::Port),
        1 => Ok(DestinationMac::Packet),
        2 => Ok(DestinationMac::Resolved),
        _ => Err(format!(
            "field 'flags' is {flags}; bits 1 and 2 must be 0 (port), 1 (packet) or 2 (resolved)"
        )),
    }
}

fn program(instructions: &[json::Instruction]) -> Result<Vec<Instruction>, Problem> {
    let convert = |(i, instruction)| {
        let name = instruction_name(i);
        self::instruction(instruction).map_err(|problem| format!("{name}: {problem}"))
    };
    instructions.iter().enumerate().map(convert).collect()
}

fn instruction(instruction: &json::Instruction) -> Result<Instruction, Problem> {
    Ok(match instruction {
        json::Instruction::FlowVar(variable) => self::variable(variable)?,
        json::Instruction::FlowVarRandLimit(variable) => Instruction::Variable {
            name: variable.name.clone(),
            width: width(&variable.name, variable.size)?,
            values: Values::Sequence(Sequence {
                seed: variable.seed,
                length: variable.limit,
                min: variable.min,
                max: variable.max,
            }),
            next: variable.next_var.clone(),
            each_core: !variable.split_to_cores,
        },
        json::Instruction::TupleFlowVar(tuple) => self::tuple(tuple)?,
        json::Instruction::WriteMaskFlowVar(write) => Instruction::WriteMask {
            variable: write.name.clone(),
            offset: write.pkt_offset as usize,
            field: Width::from_bytes(write.pkt_cast_size.into()).ok_or_else(|| {
                let size = write.pkt_cast_size;
                format!("field 'pkt_cast_size' is {size}; it must be 1, 2 or 4")
            })?,
            mask: write.mask,
            shift: write.shift,
            add: write.add_value,
            big_endian: write.is_big_endian,
        },
        json::Instruction::WriteFlowVar {
            name,
            pkt_offset,
            add_value,
            is_big_endian,
        } => Instruction::Write {
            variable: name.clone(),
            offset: *pkt_offset as usize,
            add: *add_value,
            big_endian: *is_big_endian,
        },
        json::Instruction::FixChecksumIpv4 { pkt_offset } => Instruction::FixChecksumIpv4 {
            offset: *pkt_offset as usize,
        },
        json::Instruction::TrimPktSize { name } => Instruction::TrimPacketSize {
            variable: name.clone(),
        },
        json::Instruction::FixChecksumHw {
            l2_len,
            l3_len,
            l4_type,
        } => Instruction::FixChecksums {
            l2_bytes: usize::from(*l2_len),
            l3_bytes: usize::from(*l3_len),
            layer4: layer4(*l4_type)?,
        },
        json::Instruction::FixChecksumIcmpv6 { l2_len, l3_len } => Instruction::FixChecksumIcmpv6 {
            l2_bytes: usize::from(*l2_len),
            l3_bytes: usize::from(*l3_len),
        },
    })
}

fn variable(variable: &json::FlowVar) -> Result<Instruction, Problem> {
    let operation = match variable.op {
        json::Operation::Inc => Operation::Increment,
        json::Operation::Dec => Operation::Decrement,
        json::Operation::Random => Operation::Random,
    };
    let step = match (variable.step, operation) {
        (0, Operation::Random) => 1,
        (step, _) => step,
    };
    Ok(Instruction::Variable {
        name: variable.name.clone(),
        width: width(&variable.name, variable.size)?,
        values: values(&variable.values, operation, step),
        next: variable.next_var.clone(),
        each_core: !variable.split_to_cores,
    })
}

fn tuple(tuple: &json::TupleFlowVar) -> Result<Instruction, Problem> {
    let unlimited = match tuple.flags {
        0 => false,
        TUPLE_FLAG_UNLIMITED => true,
        flags => {
            return Err(format!(
                "field 'flags' of tuple '{}' is {flags}; it must be 0, or 1 for all ports from 1 \
                 on and no limit of flows",
                tuple.name
            ));
        }
    };
    let (port_min, port_max, limit) = if unlimited {
        (1, u16::MAX, 0)
    } else {
        (tuple.port_min, tuple.port_max, tuple.limit_flows)
    };
    Ok(Instruction::Tuple {
        name: tuple.name.clone(),
        flows: Flows {
            ip_min: tuple.ip_min,
            ip_max: tuple.ip_max,
            port_min,
            port_max,
            limit,
        },
    })
}

fn layer4(l4_type: u8) -> Result<Layer4, Problem> {
    match l4_type {
        L4_TYPE_UDP => Ok(Layer4::Udp),
        L4_TYPE_TCP => Ok(Layer4::Tcp),
        L4_TYPE_IP => Ok(Layer4::Any),
        _ => Err(format!(
            "field 'l4_type' is {l4_type}; it must be {L4_TYPE_UDP} (UDP), {L4_TYPE_TCP} (TCP) or \
             {L4_TYPE_IP} (the IPv4 header alone)"
        )),
    }
}

fn width(name: &str, size: u8) -> Result<Width, Problem> {
    Width::from_bytes(size.into()).ok_or_else(|| {
        format!("field 'size' of variable '{name}' is {size}; it must be 1, 2, 4 or 8")
    })
}

fn values(values: &json::FlowVarValues, operation: Operation, step: u64) -> Values {
    match values {
        json::FlowVarValues::Range { init, min, max } => Values::Range(Range {
            operation,
            init: *init,
            min: *min,
            max: *max,
            step,
        }),
        json::FlowVarValues::List(values) => Values::List {
            values: values.clone(),
            operation,
            step,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stream(packet_bytes: usize) -> Value {
        let packet = base64::engine::general_purpose::STANDARD.encode(vec![0_u8; packet_bytes]);
        json!({
            "enabled": true, "self_start": true, "flags": 0, "action_count": 0, "isg": 1.5,
            "next_stream_id": -1, "core_id": -1,
            "mode": {"type": "multi_burst", "pkts_per_burst": 4, "ibg": 1e6, "count": 5,
                     "rate": {"type": "bps_L1", "value": 1000}},
            "packet": {"binary": packet, "meta": ""},
            "vm": {"instructions": []}, "flow_stats": {"enabled": false}
        })
    }

    fn error(change: impl FnOnce(&mut Value)) -> String {
        let mut value = stream(60);
        change(&mut value);
        convert(3, &value)
            .expect_err("the stream is wrong")
            .to_string()
    }

    #[test]
    fn microseconds_become_nanoseconds() {
        let spec = convert(3, &stream(60)).expect("the stream is right").0;
        assert_eq!((spec.id, spec.start_delay), (3, 1500));
        assert_eq!(
            spec.mode,
            Mode::MultiBurst {
                packets_per_burst: 4,
                gap: 1_000_000_000,
                bursts: 5
            }
        );
        assert_eq!(spec.rate, Rate::BitsPerSecondL1(1000.0));
    }

    #[test]
    fn packets_have_a_smallest_and_a_largest_size() {
        for bytes in [14, 9238] {
            assert!(convert(3, &stream(bytes)).is_ok());
        }
        for bytes in [0, 13, 9239] {
            let error = convert(3, &stream(bytes)).expect_err("too short or too long");
            let text = format!("stream 3: packet is {bytes} bytes; it must be 14 to 9238");
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_stream_and_the_field() {
        assert_eq!(
            error(|s| s["packet"] = Value::Null),
            "stream 3: field 'packet' is missing"
        );
        assert_eq!(
            error(|s| s["mode"]["rate"]["value"] = json!(0)),
            "stream 3: field 'mode.rate.value' is 0; it must be above 0"
        );
        let fix = json!({"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 6});
        let text = error(|s| s["vm"]["instructions"] = json!([fix]));
        assert!(text.starts_with("stream 3: vm.instructions[0]: field 'l4_type' is 6; it must be"));
        assert!(error(|s| s["isg"] = json!(-1)).contains("'isg'"));
        assert!(error(|s| s["packet"]["binary"] = json!("!")).contains("base64"));
        assert!(error(|s| s["flags"] = json!(6)).contains("flags"));
    }
}
