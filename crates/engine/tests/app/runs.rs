//! What each command does.

use allosaur_engine::app::{
    Action, Comparison, Condition, ProgramCommand, ProgramRun, TICK, YIELD,
};

use crate::runner::{Runner, message, send};

const TX: ProgramCommand = ProgramCommand::Send { buffer: 0 };
const MESSAGE: ProgramCommand = ProgramCommand::SendMessage { buffer: 1 };

fn rx(bytes: u64, clear: bool) -> ProgramCommand {
    ProgramCommand::Receive { bytes, clear }
}

fn rx_messages(messages: u64) -> ProgramCommand {
    ProgramCommand::ReceiveMessages {
        messages,
        clear: false,
    }
}

fn set(value: u64) -> ProgramCommand {
    ProgramCommand::SetVariable { variable: 0, value }
}

fn again(offset: i64) -> ProgramCommand {
    ProgramCommand::JumpNotZero {
        variable: 0,
        offset,
    }
}

fn delivered(bytes: u32) -> impl FnOnce(&mut ProgramRun) {
    move |application| application.handle_delivered(bytes)
}

#[test]
fn a_client_asks_waits_for_the_answer_and_closes() {
    let mut client = Runner::tcp(&[TX, rx(100, false)]);
    assert_eq!(client.drain(), [send(0)]);
    assert_eq!(client.after(ProgramRun::handle_connected), []);
    assert_eq!(client.after(delivered(60)), []);
    assert_eq!(client.after(ProgramRun::handle_acknowledged), []);
    assert_eq!(client.after(delivered(39)), []);
    assert!(!client.application.is_over());
    assert_eq!(client.after(delivered(1)), [Action::Close]);
    assert!(client.application.is_over());
    assert_eq!(client.after(delivered(1)), []);
}

#[test]
fn an_answer_that_came_before_the_acknowledgment_counts() {
    let mut client = Runner::tcp(&[TX, rx(100, false)]);
    client.drain();
    assert_eq!(client.after(delivered(100)), []);
    assert_eq!(
        client.after(ProgramRun::handle_acknowledged),
        [Action::Close]
    );
}

#[test]
fn what_programs_wait_for_adds_up() {
    // As TRex's client writes "receive 6, then 18 more, then 6 more".
    let mut server = Runner::tcp(&[rx(6, false), rx(24, false), rx(30, false)]);
    assert_eq!(server.after(delivered(24)), []);
    assert_eq!(server.after(delivered(5)), []);
    assert_eq!(server.after(delivered(1)), [Action::Close]);
}

#[test]
fn clear_begins_to_count_anew_and_forgets_what_is_too_much() {
    let mut server = Runner::tcp(&[rx(10, true), rx(10, true), rx(4, false)]);
    assert_eq!(server.after(delivered(15)), []);
    assert_eq!(server.after(delivered(9)), []);
    assert_eq!(server.after(delivered(1)), []);
    assert_eq!(server.after(delivered(4)), [Action::Close]);
}

#[test]
fn a_loop_that_receives_waits_anew_each_time() {
    let mut server = Runner::tcp(&[set(3), rx(10, false), again(-1)]);
    assert_eq!(server.after(delivered(20)), []);
    assert_eq!(server.after(delivered(10)), [Action::Close]);
}

#[test]
fn jmp_nz_loops_as_often_as_the_variable_says() {
    for (value, times) in [(0, 1), (1, 1), (2, 2), (10, 10)] {
        let mut client = Runner::udp(&[set(value), MESSAGE, again(-1)]);
        let mut expected = vec![message(1); times];
        expected.push(Action::Close);
        assert_eq!(client.drain(), expected, "set_var {value}");
    }
}

#[test]
fn without_blocking_sending_goes_on_while_there_is_room() {
    let free = ProgramCommand::SendMode { blocking: false };
    let mut client = Runner::tcp(&[
        free,
        TX,
        TX,
        ProgramCommand::SendMode { blocking: true },
        TX,
        rx(1, false),
    ]);
    assert_eq!(client.drain(), [send(0)]);
    assert_eq!(client.after(ProgramRun::handle_room), [send(0)]);
    assert_eq!(client.after(ProgramRun::handle_acknowledged), [send(0)]);
    // Room is not enough for who blocks.
    assert_eq!(client.after(ProgramRun::handle_room), []);
    assert_eq!(client.after(ProgramRun::handle_acknowledged), []);
    assert_eq!(client.after(delivered(1)), [Action::Close]);
}

#[test]
fn nothing_to_send_is_nothing_to_wait_for() {
    let mut client = Runner::tcp(&[ProgramCommand::Send { buffer: 2 }]);
    assert_eq!(client.drain(), [Action::Close]);
}

#[test]
fn a_delay_lasts() {
    let delay = ProgramCommand::Delay {
        duration: 5_000_000,
    };
    let mut client = Runner::tcp(&[delay, TX]);
    let until = client.now + 5_000_000;
    assert_eq!(client.drain(), [Action::WakeAt(until)]);
    client.now = until;
    assert_eq!(client.after(ProgramRun::handle_connected), []);
    assert_eq!(client.after(ProgramRun::handle_timeout), [send(0)]);
}

#[test]
fn random_delays_fill_their_range() {
    let (min, max) = (1_000_000, 1_000_004);
    let mut seen = [false; 5];
    let mut client = Runner::udp(&[
        set(200),
        ProgramCommand::DelayRandom { min, max },
        again(-1),
    ]);
    let mut actions = client.drain();
    while let [Action::WakeAt(at)] = actions[..] {
        seen[(at - client.now - min) as usize] = true;
        client.now = at;
        actions = client.after(ProgramRun::handle_timeout);
    }
    assert_eq!((actions, seen), (vec![Action::Close], [true; 5]));
}

#[test]
fn connect_waits_for_the_connection() {
    let mut client = Runner::tcp(&[ProgramCommand::Connect, TX]);
    assert_eq!(client.drain(), []);
    let then = [Action::Acknowledge, send(0)];
    assert_eq!(client.after(ProgramRun::handle_connected), then);
    let mut late = Runner::tcp(&[ProgramCommand::Connect, TX]);
    assert_eq!(late.after(ProgramRun::handle_connected), then);
}

#[test]
fn a_reset_is_the_last_word() {
    let mut client = Runner::tcp(&[rx(1, false), ProgramCommand::Reset]);
    assert_eq!(client.after(delivered(1)), [Action::Reset]);
    assert!(client.application.is_over());
    assert_eq!(client.after(ProgramRun::handle_peer_closed), []);
}

#[test]
fn who_waits_for_the_peer_closes_after_it() {
    let mut server = Runner::tcp(&[rx(1, false), ProgramCommand::WaitForPeerClose]);
    assert_eq!(server.after(delivered(1)), []);
    assert_eq!(
        server.after(ProgramRun::handle_peer_closed),
        [Action::Acknowledge, Action::Close]
    );
    let mut late = Runner::tcp(&[TX, ProgramCommand::WaitForPeerClose]);
    assert_eq!(late.drain(), [send(0)]);
    assert_eq!(late.after(ProgramRun::handle_peer_closed), []);
    assert_eq!(
        late.after(ProgramRun::handle_acknowledged),
        [Action::Acknowledge, Action::Close]
    );
}

#[test]
fn nobody_waits_for_bytes_that_will_never_come() {
    let mut server = Runner::tcp(&[rx(10, false), TX]);
    assert_eq!(server.after(delivered(9)), []);
    assert_eq!(
        server.after(ProgramRun::handle_peer_closed),
        [Action::Close]
    );
    // But what came is answered.
    let mut server = Runner::tcp(&[rx(10, false), TX, rx(20, false)]);
    assert_eq!(server.after(delivered(10)), [send(0)]);
    assert_eq!(server.after(ProgramRun::handle_peer_closed), []);
    assert_eq!(
        server.after(ProgramRun::handle_acknowledged),
        [Action::Close]
    );
}

#[test]
fn messages_are_counted() {
    let mut server = Runner::udp(&[rx_messages(1), MESSAGE, rx_messages(3), MESSAGE]);
    assert_eq!(server.drain(), []);
    assert_eq!(server.after(ProgramRun::handle_message), [message(1)]);
    assert_eq!(server.after(ProgramRun::handle_message), []);
    assert_eq!(
        server.after(ProgramRun::handle_message),
        [message(1), Action::Close]
    );
}

#[test]
fn keepalive_is_told_and_close_msg_ends() {
    let keepalive = ProgramCommand::Keepalive {
        timeout_ms: 500,
        received_only: true,
    };
    let mut client = Runner::udp(&[keepalive, ProgramCommand::CloseMessage, MESSAGE]);
    let told = Action::Keepalive {
        timeout_ms: 500,
        received_only: true,
    };
    assert_eq!(client.drain(), [told, Action::Close]);
}

#[test]
fn programs_count_for_the_user() {
    let add = |counter, value| ProgramCommand::AddStats { counter, value };
    let time = ProgramCommand::AddTickStats {
        counter: 3,
        variable: 2,
    };
    let mut client = Runner::tcp(&[
        ProgramCommand::SetTick { variable: 2 },
        add(0, 5),
        add(1, 7),
        rx(1, false),
        add(0, 1),
        time,
    ]);
    client.drain();
    client.now += 25 * TICK;
    client.after(delivered(1));
    assert_eq!(client.counters.user, [6, 7, 0, 25]);
}

#[test]
fn jmp_dp_jumps_while_little_time_has_passed() {
    let mut client = Runner::tcp(&[
        ProgramCommand::SetTick { variable: 1 },
        rx(1, true),
        ProgramCommand::JumpWithin {
            variable: 1,
            offset: -1,
            ticks: 200,
        },
        ProgramCommand::Reset,
    ]);
    client.drain();
    client.now += 199 * TICK;
    assert_eq!(client.after(delivered(1)), []);
    client.now += TICK;
    assert_eq!(client.after(delivered(1)), [Action::Reset]);
}

#[test]
fn a_time_can_be_moved() {
    let wait = ProgramCommand::Delay {
        duration: 20 * TICK,
    };
    let mut client = Runner::udp(&[
        ProgramCommand::SetTick { variable: 0 },
        ProgramCommand::AddTick {
            variable: 0,
            ticks: 5,
        },
        wait,
        ProgramCommand::AddTickStats {
            counter: 0,
            variable: 0,
        },
    ]);
    client.drain();
    client.now += 20 * TICK;
    client.after(ProgramRun::handle_timeout);
    assert_eq!(client.counters.user[0], 15);
}

#[test]
fn jmp_cmp_compares() {
    let cases = [
        (Comparison::Greater, [false, false, true]),
        (Comparison::Less, [true, false, false]),
        (Comparison::Equal, [false, true, false]),
        (Comparison::GreaterOrEqual, [false, true, true]),
        (Comparison::LessOrEqual, [true, true, false]),
        (Comparison::NotEqual, [true, false, true]),
    ];
    for (comparison, jumps) in cases {
        for (value, jumps) in [4, 5, 6].into_iter().zip(jumps) {
            let condition = Condition {
                variable: 0,
                comparison,
                value: 5,
            };
            let jump = ProgramCommand::Jump {
                offset: 2,
                condition: Some(condition),
            };
            let mut client = Runner::udp(&[set(value), jump, MESSAGE]);
            let sends = client.drain().len() == 2;
            assert_eq!(sends, !jumps, "{value} {comparison:?} 5");
        }
    }
}

#[test]
fn add_var_adds_and_takes_away() {
    let add = |value| ProgramCommand::AddVariable { variable: 0, value };
    let mut client = Runner::udp(&[set(10), add(-4), add(1), MESSAGE, again(-1)]);
    assert_eq!(client.drain().len(), 7 + 1);
}

#[test]
fn a_flow_of_another_group_is_made_and_waited_for() {
    let choose = |group| ProgramCommand::SetTemplate { group };
    let execute = ProgramCommand::ExecuteTemplate;
    let mut client = Runner::tcp(&[execute, choose(2), execute, execute, choose(3), execute]);
    let made = |group| [Action::Execute { group }];
    assert_eq!(client.drain(), made(2));
    assert_eq!(client.after(|a| a.handle_executed(0)), made(2));
    // The flow that was made chose the next one.
    assert_eq!(client.after(|a| a.handle_executed(1)), made(3));
    assert_eq!(client.after(|a| a.handle_executed(0)), [Action::Close]);
    let counted = (client.counters.flows_total, client.counters.flows_other);
    assert_eq!(counted, (3, 1));
}

#[test]
fn a_long_loop_lets_others_go_on() {
    let mut client = Runner::udp(&[set(5_000), MESSAGE, again(-1)]);
    let (mut sent, mut rests) = (0, 0);
    loop {
        let actions = client.drain();
        sent += actions.iter().filter(|a| **a == message(1)).count();
        assert!(actions.len() <= 501);
        match actions.last() {
            Some(Action::WakeAt(at)) => {
                assert_eq!(*at, client.now + YIELD);
                client.now = *at;
                rests += 1;
                client.application.handle_timeout();
            }
            last => break assert_eq!(last, Some(&Action::Close)),
        }
    }
    assert_eq!((sent, rests), (5_000, 10));
}

#[test]
fn variables_are_only_held_by_who_uses_them_and_given_back() {
    let mut plain = Runner::tcp(&[TX]);
    plain.drain();
    assert_eq!(plain.variables.used(), 0);
    let mut counting = Runner::udp(&[set(3), rx_messages(1)]);
    counting.drain();
    assert_eq!(counting.variables.used(), 1);
    counting.application.release(&mut counting.variables);
    assert_eq!(counting.variables.used(), 0);
}
