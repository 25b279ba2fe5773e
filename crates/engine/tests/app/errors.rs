//! What is refused, and in which words.

use allosaur_engine::app::{COMMANDS_MAX, Comparison, Condition, ProgramCommand, Transport};

use crate::runner::compile;

const TX: ProgramCommand = ProgramCommand::Send { buffer: 0 };
const MESSAGE: ProgramCommand = ProgramCommand::SendMessage { buffer: 0 };
const ALWAYS_BACK: ProgramCommand = ProgramCommand::Jump {
    offset: -1,
    condition: None,
};

fn tcp(commands: &[ProgramCommand]) -> String {
    let error = compile(Transport::Stream, commands);
    error.expect_err("the program is wrong").to_string()
}

fn udp(commands: &[ProgramCommand]) -> String {
    let error = compile(Transport::Datagram, commands);
    error.expect_err("the program is wrong").to_string()
}

fn back(variable: u32, offset: i64) -> ProgramCommand {
    ProgramCommand::JumpNotZero { variable, offset }
}

fn set(variable: u32, value: u64) -> ProgramCommand {
    ProgramCommand::SetVariable { variable, value }
}

#[test]
fn a_buffer_must_be_there() {
    assert_eq!(
        tcp(&[TX, ProgramCommand::Send { buffer: 4 }]),
        "command 1 (tx): buf_index is 4, but buf_list has 4: use 0 to 3"
    );
}

#[test]
fn a_jump_must_stay_in_the_program() {
    let text = tcp(&[TX, set(0, 1), back(0, -3)]);
    assert!(text.contains("command 2 (jmp_nz)"), "{text}");
    assert!(text.contains("leads to command -1"), "{text}");
    assert!(tcp(&[back(0, 2)]).contains("has 1: use 0"));
    for offset in [i64::MIN, i64::MAX] {
        assert!(tcp(&[TX, back(0, offset)]).contains("jmp_nz"));
    }
    assert!(compile(Transport::Stream, &[TX, back(0, 1)]).is_ok());
}

#[test]
fn numbers_must_exist() {
    assert!(tcp(&[set(5, 0)]).contains("variable 5 does not exist"));
    let counter = ProgramCommand::AddStats {
        counter: 4,
        value: 1,
    };
    assert!(tcp(&[counter]).contains("stats_id is 4: use 0 to 3"));
    let group = ProgramCommand::SetTemplate { group: 4 };
    assert!(tcp(&[group]).contains("tg_id is 4, but the profile has 3 template groups"));
    let group = ProgramCommand::SetTemplate { group: u32::MAX };
    assert!(tcp(&[group]).contains("set_template"));
}

#[test]
fn commands_belong_to_tcp_or_udp() {
    assert!(udp(&[TX]).contains("command 0 (tx): a program of messages"));
    assert!(tcp(&[MESSAGE]).contains("command 0 (tx_msg): a program of a stream"));
    assert!(udp(&[MESSAGE, ProgramCommand::Reset]).contains("command 1 (reset)"));
}

#[test]
fn some_commands_have_their_place() {
    assert!(tcp(&[TX, ProgramCommand::Connect]).contains("only be the first command"));
    assert!(tcp(&[ProgramCommand::Reset, TX]).contains("only be the last command"));
    assert!(tcp(&[ProgramCommand::WaitForPeerClose, TX]).contains("command 0 (nc)"));
}

#[test]
fn times_must_make_sense() {
    let range = ProgramCommand::DelayRandom { min: 2, max: 1 };
    assert!(tcp(&[range]).contains("min_usec is above max_usec"));
    let long = ProgramCommand::Delay { duration: u64::MAX };
    assert!(tcp(&[long]).contains("longer than a year"));
    let keepalive = ProgramCommand::Keepalive {
        timeout_ms: 0,
        received_only: false,
    };
    assert!(udp(&[keepalive]).contains("msec is 0"));
}

#[test]
fn a_program_has_commands_but_not_too_many() {
    assert!(tcp(&[]).contains("no commands"));
    assert!(compile(Transport::Stream, &vec![TX; COMMANDS_MAX]).is_ok());
    assert!(tcp(&vec![TX; COMMANDS_MAX + 1]).contains("the most is 65534"));
}

#[test]
fn a_loop_that_never_ends_nor_waits_is_refused() {
    let text = udp(&[MESSAGE, ALWAYS_BACK]);
    assert!(text.contains("command 1 (jmp_cmp)"), "{text}");
    assert!(text.contains("commands 0 to 1 never ends"), "{text}");
    let itself = ProgramCommand::Jump {
        offset: 0,
        condition: None,
    };
    assert!(tcp(&[TX, itself]).contains("never ends"));
    // The counter begins anew each time.
    assert!(udp(&[set(0, 3), MESSAGE, back(0, -2)]).contains("never ends"));
    // What the jump depends on never changes.
    let if_one = |offset| ProgramCommand::Jump {
        offset,
        condition: Some(Condition {
            variable: 1,
            comparison: Comparison::Equal,
            value: 0,
        }),
    };
    assert!(udp(&[MESSAGE, if_one(-1)]).contains("never ends"));
    assert!(udp(&[ProgramCommand::SetTick { variable: 0 }, within(-1)]).contains("never ends"));
    let add = ProgramCommand::AddVariable {
        variable: 1,
        value: 1,
    };
    assert!(compile(Transport::Datagram, &[MESSAGE, add, if_one(-2)]).is_ok());
    assert!(compile(Transport::Datagram, &[add, if_one(2), back_always(-2)]).is_ok());
    assert!(udp(&[MESSAGE, if_one(2), back_always(-2)]).contains("never ends"));
}

fn back_always(offset: i64) -> ProgramCommand {
    ProgramCommand::Jump {
        offset,
        condition: None,
    }
}

fn within(offset: i64) -> ProgramCommand {
    ProgramCommand::JumpWithin {
        variable: 0,
        offset,
        ticks: 10,
    }
}

#[test]
fn loops_that_wait_or_end_are_right() {
    let delay = ProgramCommand::Delay { duration: 10 };
    let rx = ProgramCommand::Receive {
        bytes: 10,
        clear: true,
    };
    let until_close = ProgramCommand::ReceiveUntilClose;
    let right: [&[ProgramCommand]; 7] = [
        &[until_close, TX, back(0, -1)],
        &[TX, ALWAYS_BACK],
        &[rx, ALWAYS_BACK],
        &[delay, ALWAYS_BACK],
        &[set(0, 9), TX, back(0, -1)],
        &[set(0, 9), set(1, 9), back(1, 0), back(0, -2)],
        &[ProgramCommand::SetTick { variable: 0 }, within(0)],
    ];
    for commands in right {
        let program = compile(Transport::Stream, commands);
        assert!(program.is_ok(), "{commands:?}: {program:?}");
    }
}

#[test]
fn the_end_of_the_other_side_is_waited_for_once_only() {
    let until_close = ProgramCommand::ReceiveUntilClose;
    assert!(tcp(&[until_close, ALWAYS_BACK]).contains("never ends"));
    let datagrams = compile(Transport::Datagram, &[until_close]);
    assert!(datagrams.is_err(), "{datagrams:?}");
}

#[test]
fn the_search_for_loops_is_quick_in_long_programs() {
    let mut commands = vec![set(0, 1); COMMANDS_MAX / 2];
    commands.resize(COMMANDS_MAX, back(0, -(COMMANDS_MAX as i64) / 2));
    // Each jump leads to where the variable is set again, so none of these loops ends.
    assert!(tcp(&commands).contains("never ends"));
    let jumps: Vec<ProgramCommand> = (0..COMMANDS_MAX as i64)
        .map(|i| back((i % 5) as u32, -i))
        .collect();
    assert!(compile(Transport::Stream, &jumps).is_ok());
}
