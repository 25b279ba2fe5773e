//! Profiles that are not right: each is refused, with the stream, the field and the remedy.

use allosaur_engine::flow_stats::{Group, Rule};
use allosaur_engine::stream::{CompileError, Mode, Profile, Rate, StreamSpec};
use allosaur_engine::time::MILLISECOND;
use allosaur_engine::vm::Instruction;

use crate::bench::{burst, facts, stream};

fn refused(streams: &[StreamSpec]) -> CompileError {
    Profile::compile(streams, &facts(2)).expect_err("the streams are not right")
}

fn message(spec: StreamSpec) -> String {
    refused(&[spec]).to_string()
}

#[test]
fn packets_are_14_to_9238_bytes() {
    for (bytes, right) in [
        (13, false),
        (14, true),
        (9238, true),
        (9239, false),
        (0, false),
    ] {
        let spec = StreamSpec {
            packet: vec![0; bytes],
            ..stream(5)
        };
        let result = Profile::compile(std::slice::from_ref(&spec), &facts(1));
        assert_eq!(result.is_ok(), right, "{bytes} bytes");
        if !right {
            let expected = format!("stream 5: packet is {bytes} bytes; it must be 14 to 9238");
            assert!(message(spec).starts_with(&expected));
        }
    }
}

#[test]
fn rates_are_above_zero_and_finite() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let spec = StreamSpec {
            rate: Rate::PacketsPerSecond(value),
            ..stream(5)
        };
        let expected = format!("stream 5: rate is {value}; it must be above zero and finite");
        assert_eq!(message(spec), expected);
    }
}

#[test]
fn bursts_are_not_empty() {
    let empty = |packets_per_burst, bursts| {
        let mode = Mode::MultiBurst {
            packets_per_burst,
            gap: 0,
            bursts,
        };
        message(StreamSpec { mode, ..stream(5) })
    };
    assert_eq!(
        message(burst(5, 0)),
        "stream 5: total_pkts is 0; it must be at least 1"
    );
    assert_eq!(
        empty(0, 1),
        "stream 5: pkts_per_burst is 0; it must be at least 1"
    );
    assert_eq!(empty(1, 0), "stream 5: count is 0; it must be at least 1");
}

#[test]
fn delays_end_within_a_year() {
    let isg = StreamSpec {
        start_delay: u64::MAX,
        ..stream(5)
    };
    assert_eq!(
        refused(&[isg]),
        CompileError::Delay {
            stream: 5,
            field: "isg"
        }
    );
    let mode = Mode::MultiBurst {
        packets_per_burst: 1,
        gap: u64::MAX,
        bursts: 2,
    };
    let ibg = StreamSpec { mode, ..stream(5) };
    assert_eq!(
        refused(&[ibg]),
        CompileError::Delay {
            stream: 5,
            field: "ibg"
        }
    );
}

#[test]
fn chains_lead_somewhere() {
    let nowhere = StreamSpec {
        next: Some(9),
        ..burst(1, 1)
    };
    let unknown = CompileError::NextUnknown { stream: 1, next: 9 };
    assert_eq!(refused(std::slice::from_ref(&nowhere)), unknown);
    let disabled = StreamSpec {
        enabled: false,
        ..stream(9)
    };
    assert_eq!(refused(&[nowhere, disabled]), unknown);
    let endless = StreamSpec {
        next: Some(2),
        ..stream(1)
    };
    assert_eq!(
        refused(&[endless, stream(2)]),
        CompileError::ContinuousNext(1)
    );
    let asleep = StreamSpec {
        self_start: false,
        ..stream(4)
    };
    assert_eq!(refused(&[stream(1), asleep]), CompileError::Unreachable(4));
    assert_eq!(refused(&[stream(3), stream(3)]), CompileError::Duplicate(3));
}

#[test]
fn loops_take_time_or_have_an_end() {
    let itself = StreamSpec {
        next: Some(1),
        ..burst(1, 100)
    };
    assert_eq!(refused(&[itself]), CompileError::EndlessSelfLoop(1));
    let one = StreamSpec {
        next: Some(2),
        ..burst(1, 1)
    };
    let two = StreamSpec {
        next: Some(1),
        ..burst(2, 1)
    };
    let timeless = [one.clone(), two.clone()];
    assert!(matches!(
        refused(&timeless),
        CompileError::TimelessLoop(1 | 2)
    ));
    let slow = StreamSpec {
        start_delay: MILLISECOND,
        ..two.clone()
    };
    assert!(Profile::compile(&[one.clone(), slow], &facts(1)).is_ok());
    let ends = StreamSpec {
        action_count: 5,
        ..two
    };
    assert!(Profile::compile(&[one, ends], &facts(1)).is_ok());
}

#[test]
fn cores_exist_and_chains_stay_on_theirs() {
    let pinned = StreamSpec {
        core: Some(2),
        ..stream(1)
    };
    assert_eq!(
        message(pinned),
        "stream 1: core_id is 2, but the data cores are 0 to 1: choose one of them"
    );
    let one = StreamSpec {
        core: Some(0),
        next: Some(2),
        ..burst(1, 1)
    };
    let two = StreamSpec {
        core: Some(1),
        self_start: false,
        ..burst(2, 1)
    };
    assert_eq!(
        refused(&[one, two]),
        CompileError::PinnedChain { stream: 1, next: 2 }
    );
}

#[test]
fn measured_streams_are_sent_by_the_lowest_core_and_followed_by_their_like() {
    let rule = Rule {
        group: Group::latency(0).expect("there is a first"),
        vxlan: false,
        run: 0,
    };
    let measured = |spec: StreamSpec| StreamSpec {
        rule: Some(rule),
        ..spec
    };
    let pinned = StreamSpec {
        core: Some(0),
        ..measured(stream(5))
    };
    assert_eq!(refused(&[pinned]), CompileError::SequencedCore(5));
    let one = StreamSpec {
        next: Some(2),
        ..burst(1, 1)
    };
    let two = StreamSpec {
        self_start: false,
        ..burst(2, 1)
    };
    let mixed = CompileError::SequencedChain { stream: 1, next: 2 };
    assert_eq!(refused(&[measured(one.clone()), two.clone()]), mixed);
    assert_eq!(refused(&[one, measured(two)]), mixed);
}

#[test]
fn a_program_that_is_not_right_is_named_with_its_stream() {
    let write = Instruction::Write {
        variable: "nobody".to_owned(),
        offset: 20,
        add: 0,
        big_endian: true,
    };
    let message = message(StreamSpec {
        program: vec![write],
        ..stream(5)
    });
    assert!(
        message.starts_with("stream 5: ") && message.contains("nobody"),
        "{message}"
    );
}

#[test]
fn a_profile_has_at_most_20_000_streams() {
    let streams: Vec<StreamSpec> = (0..20_001).map(stream).collect();
    assert_eq!(refused(&streams), CompileError::TooManyStreams(20_001));
    assert!(Profile::compile(&streams[..20_000], &facts(1)).is_ok());
}
