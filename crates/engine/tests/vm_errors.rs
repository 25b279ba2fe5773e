//! What the verifier refuses: each error names the instruction, the field and the remedy.

use allosaur_engine::vm::{
    FieldProgram, Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width,
};

fn template() -> Vec<u8> {
    let mut template = vec![0; 60];
    template[14] = 0x45;
    template
}

fn range(min: u64, init: u64, max: u64, step: u64) -> Range {
    Range {
        operation: Operation::Increment,
        init,
        min,
        max,
        step,
    }
}

fn variable(name: &str, width: Width, range: Range) -> Instruction {
    Instruction::Variable {
        name: name.to_owned(),
        width,
        values: Values::Range(range),
        next: None,
        each_core: false,
    }
}

fn list(width: Width, values: Vec<u64>, step: u64) -> Instruction {
    Instruction::Variable {
        name: "a".to_owned(),
        width,
        values: Values::List {
            values,
            operation: Operation::Increment,
            step,
        },
        next: None,
        each_core: false,
    }
}

fn write(name: &str, offset: usize) -> Instruction {
    Instruction::Write {
        variable: name.to_owned(),
        offset,
        add: 0,
        big_endian: true,
    }
}

fn trim(name: &str) -> Instruction {
    Instruction::TrimPacketSize {
        variable: name.to_owned(),
    }
}

/// The error of a program, on one line.
fn refusal(instructions: &[Instruction], template: &[u8]) -> String {
    match FieldProgram::compile(instructions, template) {
        Ok(program) => panic!("accepted:\n{}", program.disassemble()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_write_past_the_packet_names_the_last_good_offset() {
    let program = [
        variable("a", Width::Four, range(0, 0, 9, 1)),
        write("a", 57),
    ];
    assert_eq!(
        refusal(&program, &template()),
        "field engine instruction 2 (write_flow_var), field 'pkt_offset': 4 bytes at offset 57 \
         end past the packet of 60 bytes; use an offset of at most 56"
    );
    let fits = [
        variable("a", Width::Four, range(0, 0, 9, 1)),
        write("a", 56),
    ];
    assert!(FieldProgram::compile(&fits, &template()).is_ok());
}

#[test]
fn a_write_past_the_changeable_bytes_is_refused() {
    let long = vec![0; 1000];
    let program = [
        variable("a", Width::Two, range(0, 0, 9, 1)),
        write("a", 511),
    ];
    let error = refusal(&program, &long);
    assert!(error.contains("first 512 bytes"), "{error}");
    assert!(error.ends_with("use an offset of at most 510"), "{error}");
    let fits = [
        variable("a", Width::Two, range(0, 0, 9, 1)),
        write("a", 510),
    ];
    assert!(FieldProgram::compile(&fits, &long).is_ok());
    for offset in [usize::MAX, usize::MAX - 1] {
        let huge = [
            variable("a", Width::Two, range(0, 0, 9, 1)),
            write("a", offset),
        ];
        assert!(refusal(&huge, &long).contains("pkt_offset"));
        let header = [Instruction::FixChecksumIpv4 { offset }];
        assert!(refusal(&header, &long).contains("pkt_offset"));
    }
}

#[test]
fn an_unknown_variable_is_named_with_those_known() {
    let a = variable("a", Width::Two, range(0, 0, 9, 1));
    let b = variable("b", Width::Two, range(0, 0, 9, 1));
    assert_eq!(
        refusal(&[a.clone(), b, write("c", 0)], &template()),
        "field engine instruction 3 (write_flow_var), field 'name': no variable is named 'c'; \
         declare it with a flow_var before this instruction, or use one of: a, b"
    );
    let late = [write("a", 0), a.clone()];
    assert!(refusal(&late, &template()).contains("instruction 1 (write_flow_var), field 'name'"));
    assert!(refusal(&[trim("x")], &template()).contains("no variable is named 'x'"));
}

#[test]
fn names_are_unique_and_not_empty() {
    let a = variable("a", Width::One, range(0, 0, 9, 1));
    let twice = refusal(&[a.clone(), a], &template());
    assert!(
        twice.contains("instruction 2 (flow_var), field 'name'"),
        "{twice}"
    );
    let empty = refusal(&[variable("", Width::One, range(0, 0, 9, 1))], &template());
    assert!(empty.contains("the name is empty"), "{empty}");
}

#[test]
fn variables_have_64_bytes_in_all() {
    let many = |n: usize| -> Vec<Instruction> {
        (0..n)
            .map(|i| variable(&format!("v{i}"), Width::Eight, range(0, 0, 9, 1)))
            .collect()
    };
    assert!(FieldProgram::compile(&many(8), &template()).is_ok());
    let error = refusal(&many(9), &template());
    assert!(
        error.contains("instruction 9 (flow_var), field 'size'"),
        "{error}"
    );
    assert!(error.contains("72 bytes"), "{error}");
}

#[test]
fn a_range_must_make_sense() {
    let cases = [
        (range(0, 0, 256, 1), "field 'max_value': 256 does not fit"),
        (range(9, 9, 8, 1), "field 'min_value': 9 is above"),
        (
            range(2, 1, 8, 1),
            "field 'init_value': 1 of 'a' is outside of 2 to 8",
        ),
        (range(2, 9, 8, 1), "field 'init_value': 9"),
        (range(0, 0, 9, 0), "field 'step': the step of 'a' is 0"),
        (
            range(250, 250, 255, 4),
            "field 'step': the range 250 to 255 of 'a'",
        ),
    ];
    for (range, expected) in cases {
        let error = refusal(&[variable("a", Width::One, range)], &template());
        assert!(error.contains(expected), "'{expected}' is not in: {error}");
        assert!(error.contains("instruction 1 (flow_var)"), "{error}");
    }
}

#[test]
fn a_list_must_make_sense() {
    let cases = [
        (list(Width::Two, vec![], 1), "'a' lists 0 values"),
        (
            list(Width::Two, vec![0; 65_536], 1),
            "'a' lists 65536 values",
        ),
        (list(Width::One, vec![1, 256], 1), "256 does not fit"),
        (list(Width::One, vec![1], 0), "the step of 'a' is 0"),
    ];
    for (instruction, expected) in cases {
        let error = refusal(&[instruction], &template());
        assert!(error.contains(expected), "'{expected}' is not in: {error}");
    }
}

#[test]
fn a_checksum_needs_an_ipv4_header() {
    let fix = |offset| [Instruction::FixChecksumIpv4 { offset }];
    assert!(FieldProgram::compile(&fix(14), &template()).is_ok());
    assert!(refusal(&fix(15), &template()).contains("no whole IPv4 header at offset 15"));
    assert!(refusal(&fix(58), &template()).contains("field 'pkt_offset'"));
    let mut long_header = template();
    long_header[14] = 0x4f;
    assert!(refusal(&fix(14), &long_header).contains("no whole IPv4 header at offset 14"));
    let mut short_header = template();
    short_header[14] = 0x44;
    assert!(refusal(&fix(14), &short_header).contains("no whole IPv4 header"));
}

#[test]
fn a_packet_length_is_a_2_byte_variable_of_at_least_60() {
    let narrow = [variable("a", Width::One, range(60, 60, 90, 1)), trim("a")];
    assert!(refusal(&narrow, &template()).contains("'a' has 1 bytes"));
    let short = [variable("a", Width::Two, range(59, 60, 90, 1)), trim("a")];
    assert!(refusal(&short, &template()).contains("'a' makes packets of 59 bytes"));
    let listed = [list(Width::Two, vec![90, 59], 1), trim("a")];
    assert!(refusal(&listed, &template()).contains("'a' makes packets of 59 bytes"));
    let long = [variable("a", Width::Two, range(61, 61, 90, 1)), trim("a")];
    assert!(refusal(&long, &template()).contains("begin at 61, and the packet has 60 bytes"));
    let reaches = [variable("a", Width::Two, range(60, 60, 9000, 1)), trim("a")];
    assert!(FieldProgram::compile(&reaches, &template()).is_ok());
}

fn chained(mut instruction: Instruction, follower: &str) -> Instruction {
    if let Instruction::Variable { next, .. } = &mut instruction {
        *next = Some(follower.to_owned());
    }
    instruction
}

fn random(name: &str) -> Instruction {
    let range = Range {
        operation: Operation::Random,
        ..range(0, 0, 9, 1)
    };
    variable(name, Width::Two, range)
}

#[test]
fn a_follower_is_declared_right_after() {
    let a = || chained(variable("a", Width::One, range(0, 0, 9, 1)), "b");
    let b = || variable("b", Width::One, range(0, 0, 9, 1));
    assert!(FieldProgram::compile(&[a(), b()], &template()).is_ok());
    for program in [
        vec![a()],
        vec![b(), a()],
        vec![a(), write("a", 0), b()],
        vec![a(), variable("c", Width::One, range(0, 0, 9, 1)), b()],
    ] {
        let error = refusal(&program, &template());
        assert!(error.contains("field 'next_var'"), "{error}");
        assert!(
            error.ends_with("declare 'b' right after 'a', or set next_var to null"),
            "{error}"
        );
    }
}

#[test]
fn nothing_random_is_in_a_chain() {
    let b = variable("b", Width::One, range(0, 0, 9, 1));
    let error = refusal(&[chained(random("a"), "b"), b.clone()], &template());
    assert!(error.contains("field 'next_var': 'a' is random"), "{error}");
    let error = refusal(&[chained(b, "a"), random("a")], &template());
    assert!(error.contains("field 'next_var': 'a' is random"), "{error}");
}

#[test]
fn a_list_in_a_chain_steps_within_its_length() {
    let a = |step| chained(list(Width::One, vec![1, 2, 3], step), "b");
    let b = variable("b", Width::One, range(0, 0, 9, 1));
    assert!(FieldProgram::compile(&[a(3), b.clone()], &template()).is_ok());
    let error = refusal(&[a(4), b], &template());
    assert!(error.contains("the step 4 of 'a' is longer"), "{error}");
}

#[test]
fn a_repeated_sequence_must_make_sense() {
    let sequence = |min, max, length| {
        let values = Values::Sequence(Sequence {
            seed: 1,
            length,
            min,
            max,
        });
        let name = "a".to_owned();
        [Instruction::Variable {
            name,
            width: Width::One,
            values,
            next: None,
            each_core: false,
        }]
    };
    assert!(FieldProgram::compile(&sequence(0, 255, u64::MAX), &template()).is_ok());
    assert_eq!(
        refusal(&sequence(0, 255, 0), &template()),
        "field engine instruction 1 (flow_var_rand_limit), field 'limit': the limit of 'a' is 0; \
         let it repeat after at least 1 value"
    );
    assert!(refusal(&sequence(0, 256, 1), &template()).contains("field 'max_value'"));
    assert!(refusal(&sequence(2, 1, 1), &template()).contains("field 'min_value'"));
}

fn tuple(name: &str, flows: Flows) -> Instruction {
    let name = name.to_owned();
    Instruction::Tuple { name, flows }
}

const FLOWS: Flows = Flows {
    ip_min: 1,
    ip_max: 2,
    port_min: 3,
    port_max: 4,
    limit: 0,
};

#[test]
fn a_tuple_must_make_sense() {
    let ips = Flows { ip_min: 3, ..FLOWS };
    assert_eq!(
        refusal(&[tuple("a", ips)], &template()),
        "field engine instruction 1 (tuple_flow_var), field 'ip_min': 3 is above the ip_max 2 of \
         'a'; let ip_min be at most ip_max"
    );
    let ports = Flows {
        port_min: 5,
        ..FLOWS
    };
    assert!(refusal(&[tuple("a", ports)], &template()).contains("field 'port_min': 5 is above"));
    assert!(refusal(&[tuple("", FLOWS)], &template()).contains("the name is empty"));
    let error = refusal(&[tuple("a", FLOWS), tuple("a", FLOWS)], &template());
    assert!(
        error.contains("another variable is named 'a.ip'"),
        "{error}"
    );
    let error = refusal(&[tuple("a", FLOWS), write("a", 0)], &template());
    assert!(error.ends_with("or use one of: a.ip, a.port"), "{error}");
    let length = [tuple("a", FLOWS), trim("a.port")];
    assert!(refusal(&length, &template()).contains("'a.port' is a port"));
}

#[test]
fn tuples_count_among_the_64_bytes() {
    let many =
        |n: usize| -> Vec<Instruction> { (0..n).map(|i| tuple(&format!("t{i}"), FLOWS)).collect() };
    assert!(FieldProgram::compile(&many(10), &template()).is_ok());
    assert!(refusal(&many(11), &template()).contains("the variables take 66 bytes"));
}

#[test]
fn written_bits_must_make_sense() {
    let program = |offset, field, mask, shift| {
        let bits = Instruction::WriteMask {
            variable: "a".to_owned(),
            offset,
            field,
            mask,
            shift,
            add: 0,
            big_endian: true,
        };
        [variable("a", Width::Eight, range(0, 0, 9, 1)), bits]
    };
    let refused = |offset, field, mask, shift| {
        let error = refusal(&program(offset, field, mask, shift), &template());
        assert!(
            error.contains("instruction 2 (write_mask_flow_var)"),
            "{error}"
        );
        error
    };
    assert!(FieldProgram::compile(&program(58, Width::Two, 0xff, -31), &template()).is_ok());
    assert!(refused(59, Width::Two, 0xff, 0).contains("use an offset of at most 58"));
    assert!(refused(0, Width::Eight, 0xff, 0).contains("field 'pkt_cast_size'"));
    assert!(refused(0, Width::One, 0x100, 0).contains("0x100 has no bit of a field of 1 bytes"));
    assert!(refused(0, Width::One, 0xff, 32).contains("shift by -31 to 31 bits"));
    assert!(refused(0, Width::One, 0xff, i64::MIN).contains("field 'shift'"));
}

fn fix(l2_bytes: usize, l3_bytes: usize, layer4: Layer4) -> [Instruction; 1] {
    [Instruction::FixChecksums {
        l2_bytes,
        l3_bytes,
        layer4,
    }]
}

fn fix_icmpv6(l2_bytes: usize, l3_bytes: usize) -> [Instruction; 1] {
    [Instruction::FixChecksumIcmpv6 { l2_bytes, l3_bytes }]
}

fn ipv6_template(next_header: u8) -> Vec<u8> {
    let mut template = vec![0; 80];
    template[14] = 0x60;
    template[20] = next_header;
    template
}

#[test]
fn segments_need_their_ip_header() {
    let mut udp = template();
    udp[23] = 17;
    assert!(FieldProgram::compile(&fix(14, 20, Layer4::Udp), &udp).is_ok());
    assert_eq!(
        refusal(&fix(14, 24, Layer4::Udp), &udp),
        "field engine instruction 1 (fix_checksum_hw), field 'l3_len': it is 24, and the IPv4 \
         header has 20 bytes; use 20"
    );
    let tcp = refusal(&fix(14, 20, Layer4::Tcp), &udp);
    assert!(tcp.contains("field 'l4_type': it says TCP, and the IP header says protocol 17"));
    assert!(refusal(&fix(13, 20, Layer4::Udp), &udp).contains("field 'l2_len': 13 bytes"));
    assert!(refusal(&fix(18, 20, Layer4::Udp), &udp).contains("no whole IPv4 or IPv6 header"));
    for far in [60, usize::MAX] {
        assert!(refusal(&fix(far, 20, Layer4::Udp), &udp).contains("field 'l2_len'"));
    }
    udp.truncate(40);
    assert!(refusal(&fix(14, 20, Layer4::Udp), &udp).contains("field 'l3_len': 2 bytes at offset"));
}

#[test]
fn segments_of_ipv6_have_their_own_rules() {
    let udp = ipv6_template(17);
    assert!(FieldProgram::compile(&fix(14, 40, Layer4::Udp), &udp).is_ok());
    assert!(refusal(&fix(14, 20, Layer4::Udp), &udp).contains("field 'l3_len': it is 20"));
    assert!(refusal(&fix(14, 40, Layer4::Any), &udp).contains("field 'l4_type': 17 is the IPv4"));
    assert!(refusal(&fix(14, usize::MAX, Layer4::Udp), &udp).contains("field 'l3_len'"));
    assert!(FieldProgram::compile(&fix_icmpv6(14, 40), &ipv6_template(58)).is_ok());
    assert!(refusal(&fix_icmpv6(14, 40), &udp).contains("field 'l2_len': it says ICMPv6"));
    assert!(refusal(&fix_icmpv6(14, 20), &template()).contains("header at offset 14 is of IPv4"));
}
