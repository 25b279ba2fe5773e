//! Any program and any events: nothing breaks, nothing stays.

use allosaur_engine::app::{
    Action, Comparison, Condition, ProgramCommand, TURN_COMMANDS_MAX, Transport, YIELD,
};
use proptest::prelude::*;

use crate::runner::{Runner, compile};

fn variable() -> impl Strategy<Value = u32> {
    0_u32..5
}

fn offset() -> impl Strategy<Value = i64> {
    -6_i64..6
}

fn comparison() -> impl Strategy<Value = Comparison> {
    prop_oneof![
        Just(Comparison::Greater),
        Just(Comparison::Less),
        Just(Comparison::Equal),
        Just(Comparison::GreaterOrEqual),
        Just(Comparison::LessOrEqual),
        Just(Comparison::NotEqual),
    ]
}

/// Commands that streams and messages have in common.
fn common() -> impl Strategy<Value = ProgramCommand> {
    let condition =
        (variable(), comparison(), 0_u64..20).prop_map(|(variable, comparison, value)| Condition {
            variable,
            comparison,
            value,
        });
    prop_oneof![
        (variable(), 0_u64..20)
            .prop_map(|(variable, value)| ProgramCommand::SetVariable { variable, value }),
        (variable(), -9_i64..9)
            .prop_map(|(variable, value)| ProgramCommand::AddVariable { variable, value }),
        variable().prop_map(|variable| ProgramCommand::SetTick { variable }),
        (variable(), 0_u64..9)
            .prop_map(|(variable, ticks)| ProgramCommand::AddTick { variable, ticks }),
        (0_u32..4, any::<u64>())
            .prop_map(|(counter, value)| ProgramCommand::AddStats { counter, value }),
        (0_u32..4, variable())
            .prop_map(|(counter, variable)| ProgramCommand::AddTickStats { counter, variable }),
        (variable(), offset())
            .prop_map(|(variable, offset)| ProgramCommand::JumpNotZero { variable, offset }),
        (variable(), offset(), 0_u64..9).prop_map(|(variable, offset, ticks)| {
            ProgramCommand::JumpWithin {
                variable,
                offset,
                ticks,
            }
        }),
        (offset(), prop::option::of(condition))
            .prop_map(|(offset, condition)| ProgramCommand::Jump { offset, condition }),
        (0_u64..9).prop_map(|duration| ProgramCommand::Delay { duration }),
        (0_u64..9, 0_u64..9).prop_map(|(min, max)| ProgramCommand::DelayRandom { min, max }),
        (0_u32..5).prop_map(|group| ProgramCommand::SetTemplate { group }),
        Just(ProgramCommand::ExecuteTemplate),
    ]
}

fn stream() -> impl Strategy<Value = ProgramCommand> {
    prop_oneof![
        6 => common(),
        2 => (0_u32..5).prop_map(|buffer| ProgramCommand::Send { buffer }),
        2 => (0_u64..50, any::<bool>()).prop_map(|(bytes, clear)| ProgramCommand::Receive { bytes, clear }),
        1 => any::<bool>().prop_map(|blocking| ProgramCommand::SendMode { blocking }),
        1 => prop_oneof![
            Just(ProgramCommand::Reset), Just(ProgramCommand::WaitForPeerClose), Just(ProgramCommand::Connect)
        ],
    ]
}

fn datagram() -> impl Strategy<Value = ProgramCommand> {
    prop_oneof![
        6 => common(),
        2 => (0_u32..5).prop_map(|buffer| ProgramCommand::SendMessage { buffer }),
        2 => (0_u64..5, any::<bool>())
            .prop_map(|(messages, clear)| ProgramCommand::ReceiveMessages { messages, clear }),
        1 => (0_u32..9, any::<bool>()).prop_map(|(timeout_ms, received_only)| {
            ProgramCommand::Keepalive { timeout_ms, received_only }
        }),
        1 => Just(ProgramCommand::CloseMessage),
    ]
}

/// What may happen to a flow.
fn happen(runner: &mut Runner, event: u8, number: u32) {
    let application = &mut runner.application;
    match event {
        0 => application.handle_connected(),
        1 => application.handle_delivered(number),
        2 => application.handle_message(),
        3 => application.handle_acknowledged(),
        4 => application.handle_room(),
        5 => application.handle_peer_closed(),
        6 => application.handle_executed(number as u16 % 4),
        _ => application.handle_timeout(),
    }
    runner.now += u64::from(number) * 1_000_000;
}

fn run(
    transport: Transport,
    commands: &[ProgramCommand],
    events: &[(u8, u32)],
) -> Result<(), TestCaseError> {
    let Ok(program) = compile(transport, commands) else {
        return Ok(());
    };
    let mut runner = Runner::new(program);
    for (event, number) in events {
        let was_over = runner.application.is_over();
        happen(&mut runner, *event, *number);
        let actions = runner.drain();
        prop_assert!(actions.len() <= usize::from(TURN_COMMANDS_MAX) + 1);
        prop_assert!(!was_over || actions.is_empty(), "{actions:?} after the end");
        let ends = |action: &Action| matches!(action, Action::Close | Action::Reset);
        let end = actions.iter().position(ends);
        prop_assert_eq!(end.is_some(), runner.application.is_over() && !was_over);
        prop_assert!(end.is_none_or(|end| end + 1 == actions.len()));
    }
    runner.application.release(&mut runner.variables);
    prop_assert_eq!(runner.variables.used(), 0);
    Ok(())
}

/// Who is told of bytes only when they are enough does the same as who is told of all.
fn run_by_parts(commands: &[ProgramCommand], events: &[(u8, u32)]) -> Result<(), TestCaseError> {
    let Ok(program) = compile(Transport::Stream, commands) else {
        return Ok(());
    };
    let mut all = Runner::new(program.clone());
    let mut parts = Runner::new(program);
    prop_assert_eq!(all.drain(), parts.drain());
    for (event, number) in events {
        happen(&mut all, *event, *number);
        let is_part = *event == 1 && parts.application.take_part(&parts.program, *number);
        match is_part {
            true => parts.now = all.now,
            false => happen(&mut parts, *event, *number),
        }
        let actions = all.drain();
        prop_assert!(!is_part || actions.is_empty(), "{actions:?}");
        prop_assert_eq!(actions, parts.drain());
    }
    Ok(())
}

/// A program that only counts and jumps ends if it is accepted, however long that takes.
fn ends(commands: &[ProgramCommand]) -> Result<(), TestCaseError> {
    if compile(Transport::Datagram, commands).is_err() {
        return Ok(());
    }
    let mut runner = Runner::udp(commands);
    for _ in 0..5_000 {
        match runner.drain()[..] {
            [Action::Close] => return Ok(()),
            [Action::WakeAt(at)] => {
                prop_assert_eq!(at, runner.now + YIELD);
                runner.application.handle_timeout();
            }
            ref other => prop_assert!(false, "{:?}", other),
        }
    }
    prop_assert!(false, "it was accepted, and does not end");
    Ok(())
}

fn counting() -> impl Strategy<Value = ProgramCommand> {
    prop_oneof![
        (0_u32..3, 0_u64..4)
            .prop_map(|(variable, value)| ProgramCommand::SetVariable { variable, value }),
        (0_u32..3, -6_i64..3)
            .prop_map(|(variable, offset)| ProgramCommand::JumpNotZero { variable, offset }),
        Just(ProgramCommand::AddStats {
            counter: 0,
            value: 1
        }),
    ]
}

proptest! {
    #[test]
    fn any_stream_and_any_events(
        commands in prop::collection::vec(stream(), 1..12),
        events in prop::collection::vec((0_u8..8, 0_u32..60), 0..60),
    ) {
        run(Transport::Stream, &commands, &events)?;
    }

    #[test]
    fn bytes_may_be_told_by_parts(
        commands in prop::collection::vec(stream(), 1..12),
        events in prop::collection::vec((0_u8..8, 0_u32..60), 0..60),
    ) {
        run_by_parts(&commands, &events)?;
    }

    #[test]
    fn any_messages_and_any_events(
        commands in prop::collection::vec(datagram(), 1..12),
        events in prop::collection::vec((0_u8..8, 0_u32..60), 0..60),
    ) {
        run(Transport::Datagram, &commands, &events)?;
    }

    #[test]
    fn loops_that_count_end_when_they_are_accepted(
        commands in prop::collection::vec(counting(), 1..10),
    ) {
        ends(&commands)?;
    }
}
