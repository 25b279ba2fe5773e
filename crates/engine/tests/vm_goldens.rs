//! The field engine against captures of the simulator that users' profiles were written for:
//! streams that send alone, packet by packet, in all bytes but the MAC addresses.

use allosaur_engine::vm::{
    BURST, Checksums, FieldProgram, Flows, Instruction, Layer4, Operation, Range, Sequence, Stage,
    State, Values, Width,
};
use allosaur_testkit::data;
use base64::Engine as _;
use serde_json::Value;

/// Bytes of the MAC addresses, which the port may give.
const MAC_BYTES: usize = 12;

/// The frames of a little-endian microsecond capture.
fn frames(capture: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = &capture[24..];
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let bytes = [header[8], header[9], header[10], header[11]];
        let (frame, after) = after.split_at(u32::from_le_bytes(bytes) as usize);
        frames.push(frame);
        rest = after;
    }
    frames
}

/// An instruction of this engine; `None` for those that it does not have yet.
fn instruction(json: &Value) -> Option<Instruction> {
    let text = |field: &str| json[field].as_str().map(str::to_owned);
    let number = |field: &str| json[field].as_u64();
    match json["type"].as_str()? {
        "flow_var" => Some(Instruction::Variable {
            name: text("name")?,
            width: Width::from_bytes(number("size")?)?,
            values: values(json)?,
            next: text("next_var"),
            each_core: json["split_to_cores"] == false,
        }),
        "flow_var_rand_limit" => Some(Instruction::Variable {
            name: text("name")?,
            width: Width::from_bytes(number("size")?)?,
            values: Values::Sequence(Sequence {
                seed: u32::try_from(number("seed")?).ok()?,
                length: number("limit")?,
                min: number("min_value")?,
                max: number("max_value")?,
            }),
            next: text("next_var"),
            each_core: json["split_to_cores"] == false,
        }),
        "write_flow_var" => Some(Instruction::Write {
            variable: text("name")?,
            offset: usize::try_from(number("pkt_offset")?).ok()?,
            add: json["add_value"].as_i64()?,
            big_endian: json["is_big_endian"].as_bool()?,
        }),
        "tuple_flow_var" => Some(Instruction::Tuple {
            name: text("name")?,
            flows: Flows {
                ip_min: u32::try_from(number("ip_min")?).ok()?,
                ip_max: u32::try_from(number("ip_max")?).ok()?,
                port_min: u16::try_from(number("port_min")?).ok()?,
                port_max: u16::try_from(number("port_max")?).ok()?,
                limit: u32::try_from(number("limit_flows")?).ok()?,
            },
        }),
        "write_mask_flow_var" => Some(Instruction::WriteMask {
            variable: text("name")?,
            offset: usize::try_from(number("pkt_offset")?).ok()?,
            field: Width::from_bytes(number("pkt_cast_size")?)?,
            mask: u32::try_from(number("mask")?).ok()?,
            shift: json["shift"].as_i64()?,
            add: json["add_value"].as_i64()?,
            big_endian: json["is_big_endian"].as_bool()?,
        }),
        "fix_checksum_ipv4" => Some(Instruction::FixChecksumIpv4 {
            offset: usize::try_from(number("pkt_offset")?).ok()?,
        }),
        "fix_checksum_hw" => Some(Instruction::FixChecksums {
            l2_bytes: usize::try_from(number("l2_len")?).ok()?,
            l3_bytes: usize::try_from(number("l3_len")?).ok()?,
            layer4: match number("l4_type")? {
                11 => Layer4::Udp,
                13 => Layer4::Tcp,
                _ => Layer4::Any,
            },
        }),
        "trim_pkt_size" => Some(Instruction::TrimPacketSize {
            variable: text("name")?,
        }),
        _ => None,
    }
}

fn values(json: &Value) -> Option<Values> {
    let number = |field: &str| json[field].as_u64();
    let operation = match json["op"].as_str()? {
        "inc" => Operation::Increment,
        "dec" => Operation::Decrement,
        _ => Operation::Random,
    };
    let step = number("step")?;
    if let Some(list) = json["value_list"].as_array() {
        return Some(Values::List {
            values: list.iter().map(Value::as_u64).collect::<Option<_>>()?,
            operation,
            step,
        });
    }
    Some(Values::Range(Range {
        operation,
        init: number("init_value")?,
        min: number("min_value")?,
        max: number("max_value")?,
        step,
    }))
}

/// Compares one golden; false when it has more than one stream, or one with statistics of its
/// own (which mark its packets) or with unknown instructions.
fn compare(name: &str, json: &Value, capture: &[u8]) -> bool {
    let commands = json["commands"].as_array().expect("a golden has commands");
    let streams: Vec<&Value> = commands
        .iter()
        .filter(|command| command["method"] == "add_stream")
        .map(|command| &command["params"]["stream"])
        .collect();
    let [stream] = streams[..] else {
        return false;
    };
    if stream["flow_stats"]["enabled"] == true {
        return false;
    }
    let instructions = stream["vm"]["instructions"]
        .as_array()
        .expect("a stream has a vm");
    let instructions: Option<Vec<Instruction>> = instructions.iter().map(instruction).collect();
    let Some(instructions) = instructions.filter(|instructions| !instructions.is_empty()) else {
        return false;
    };
    let packet = stream["packet"]["binary"]
        .as_str()
        .expect("a stream has a packet");
    let mut template = base64::engine::general_purpose::STANDARD
        .decode(packet)
        .expect("a packet is in base64");
    template.resize(template.len().max(60), 0);
    let seed = stream["random_seed"].as_u64().unwrap_or(0);
    let seed = u32::try_from(seed).expect("a seed has 32 bits");

    // The captures are of ports that compute checksums.
    let program = FieldProgram::compile_for(Checksums::LeftToPort, &instructions, &template);
    let program = program.expect("a valid program");
    let mut state = State::new(&program, seed, 0, 1);
    let mut stage = Stage::default();
    for (burst, expected) in frames(capture).chunks(BURST).enumerate() {
        stage.run(&program, &mut state, &template, expected.len());
        for (i, expected) in expected.iter().enumerate() {
            let mut made = vec![0; stage.length(i)];
            stage.write(i, &template, &mut made);
            let number = burst * BURST + i;
            let writes_macs = name == "udp_1pkt_1mac";
            let from = if writes_macs {
                MAC_BYTES - 1
            } else {
                MAC_BYTES
            };
            assert_eq!(made[from..], expected[from..], "packet {number} of {name}");
        }
    }
    true
}

#[test]
fn single_streams_make_the_captured_packets() {
    let mut compared = Vec::new();
    for (name, requests, capture) in data::golden_pairs() {
        let requests = serde_json::from_str(&data::text(&requests)).expect("a golden is JSON");
        let capture = std::fs::read(capture).expect("the capture can be read");
        if compare(&name, &requests, &capture) {
            compared.push(name);
        }
    }
    for name in [
        "syn_attack",
        "syn_attack_fix_cs_hw",
        "udp_1pkt_src_ip_split",
        "udp_inc_len_9k",
        "hlt_udp_ports",
        "udp_1pkt_repeat_random",
        "udp_1pkt_tuple_gen_split",
        "hlt_vlans_vm",
        "dependent_field_engine_vars_c2",
        "dependent_vars_all_dec_1_2",
        "dependent_vars_all_inc_2_2_c2",
    ] {
        assert!(
            compared.iter().any(|other| other == name),
            "{name} is not in {compared:?}"
        );
    }
}
