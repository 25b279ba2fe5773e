//! Resets, sent and received: RFC 9293, sections 3.5.2, 3.10.5 and 3.10.7.4; RFC 5961.

use crate::script::run;

/// RFC 5961, section 3.2: "If the RST bit is set and the sequence number exactly matches the next
/// expected sequence number (RCV.NXT), then TCP MUST reset the connection."
#[test]
fn a_reset_with_the_expected_number_ends_the_connection() {
    for (state, lines) in STATES {
        run(&format!(
            "{lines}
            state {state}
            < R {}:{}(0)
            state CLOSED
            ended reset
            counter drops=1
            counter closed=1
            < . 2:2(0) ack 1 win 65535
            none
            ",
            EXPECTED(state),
            EXPECTED(state),
        ));
    }
}

/// "If the RST bit is set and the sequence number does not exactly match the next expected
/// sequence value, yet is within the current receive window, TCP MUST send an acknowledgment
/// (challenge ACK)"; "If the RST bit is set and the sequence number is outside the current
/// receive window, silently drop the segment."
#[test]
fn other_resets_are_challenged_or_dropped() {
    for (state, lines) in STATES {
        let challenge = format!(
            "> . {}:{}(0) ack {}",
            NEXT(state),
            NEXT(state),
            EXPECTED(state)
        );
        run(&format!(
            "{lines}
            < R 900:900(0)
            {challenge}
            < R 32760:32760(0)
            none
            wait 100ms
            < R 32760:32760(0)
            {challenge}
            < R 90000:90000(0)
            < R 0:0(0)
            none
            state {state}
            "
        ));
    }
}

/// A state and how it is reached.
const STATES: [(&str, &str); 4] = [
    ("ESTABLISHED", "established"),
    (
        "CLOSE-WAIT",
        "established
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2",
    ),
    (
        "FIN-WAIT-1",
        "established
        close
        > F. 1:1(0) ack 1",
    ),
    (
        "FIN-WAIT-2",
        "established
        close
        > F. 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535",
    ),
];

/// The number that is expected in a state.
#[expect(non_snake_case, reason = "a table, as a function")]
fn EXPECTED(state: &str) -> u32 {
    if state == "CLOSE-WAIT" { 2 } else { 1 }
}

/// The number that is next to send.
#[expect(non_snake_case, reason = "a table, as a function")]
fn NEXT(state: &str) -> u32 {
    if state.starts_with("FIN") { 2 } else { 1 }
}

/// "CLOSING, LAST-ACK, TIME-WAIT: If the RST bit is set, then enter the CLOSED state": nothing is
/// lost when the peer had everything.
#[test]
fn a_reset_after_both_ends_loses_nothing() {
    run("
        established
        close
        > F. 1:1(0) ack 1
        < F. 1:1(0) ack 2 win 65535
        > . 2:2(0) ack 2
        ended closed
        state TIME-WAIT
        < R 2:2(0)
        state CLOSED
        ended closed
        counter drops=0
    ");
    run("
        established
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2
        close
        > F. 1:1(0) ack 2
        < R 2:2(0)
        ended closed
        counter drops=0
    ");
    run("
        established
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2
        write 10 close
        > PF. 1:11(10) ack 2
        < R 2:2(0)
        ended reset
        counter drops=1
    ");
}

/// Section 3.10.5: "send a reset segment <SEQ=SND.NXT><CTL=RST>" where the peer may wait
/// for us.
#[test]
fn who_aborts_sends_a_reset_where_somebody_waits() {
    for (state, lines) in STATES {
        run(&format!(
            "{lines}
            abort
            > R. {}:{}(0) ack {}
            state CLOSED
            ended reset
            counter closed=1
            counter drops=1
            ",
            NEXT(state),
            NEXT(state),
            EXPECTED(state),
        ));
    }
    run("
        listen
        < S 0:0(0) win 65535 <mss 1000>
        > S. 0:0(0) ack 1
        abort
        > R. 1:1(0) ack 1
        state CLOSED
        ended reset
    ");
}

/// In SYN-SENT, CLOSING, LAST-ACK and TIME-WAIT: "respond to the ABORT ... delete the TCB, enter
/// CLOSED state, and return".
#[test]
fn who_aborts_where_nobody_waits_sends_nothing() {
    run("
        connect
        > S 0:0(0)
        abort
        state CLOSED
        ended reset
        counter conndrops=1
    ");
    run("
        established
        close
        > F. 1:1(0) ack 1
        < F. 1:1(0) ack 1 win 65535
        > . 2:2(0) ack 2
        state CLOSING
        abort
        state CLOSED
        ended reset
    ");
    run("
        established
        close
        > F. 1:1(0) ack 1
        < F. 1:1(0) ack 2 win 65535
        > . 2:2(0) ack 2
        abort
        state CLOSED
        ended closed
        counter drops=0
    ");
}

/// What was sent again has an old number; the reset has the newest, or nobody would take it.
#[test]
fn a_reset_after_a_timeout_has_the_newest_number() {
    run("
        established
        write 3000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > P. 2001:3001(1000)
        +200ms > . 1:1001(1000)
        abort
        > R. 3001:3001(0) ack 1
    ");
}

/// A reset that the port has no room for leaves later.
#[test]
fn a_reset_waits_for_the_port() {
    run("
        established
        block
        abort
        none
        state ESTABLISHED
        < . 1:11(10) ack 1 win 65535
        none
        unblock
        > R. 1:1(0) ack 1
        delivered 0
        state CLOSED
    ");
}

/// RFC 5961, section 5.2: "All incoming segments whose ACK value doesn't satisfy the above
/// condition MUST be discarded and an ACK sent back."
#[test]
fn an_ancient_acknowledgment_is_not_believed() {
    run("
        established win 2000
        write 8000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        < . 1:1(0) ack 2001 win 2000
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        < . 1:1(0) ack 4001 win 2000
        > . 4001:5001(1000)
        > . 5001:6001(1000)
        < P. 1:11(10) ack 2000 win 2000
        > . 6001:6001(0) ack 1
        delivered 0
        < P. 1:11(10) ack 2001 win 2000
        delivered 10
        +100ms > . 6001:6001(0) ack 11
        acknowledged 4000
    ");
}

/// "If the ACK acks something not yet sent (SEG.ACK > SND.NXT), then send an ACK, drop the
/// segment, and return."
#[test]
fn an_acknowledgment_of_what_was_never_sent_is_answered() {
    run("
        established
        < P. 1:11(10) ack 2 win 65535
        > . 1:1(0) ack 1
        delivered 0
        counter rcvacktoomuch=1
    ");
}

/// RFC 5961, section 7: who is asked too often does not answer each time. Two sides that
/// disagree would else answer each other for ever.
#[test]
fn what_is_empty_and_has_no_place_is_answered_seldom() {
    run("
        established
        < . 90000:90000(0) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 90000:90000(0) ack 1 win 65535
        < . 90000:90000(0) ack 9 win 65535
        < . 0:0(0) ack 1 win 65535
        none
        wait 100ms
        < . 90000:90000(0) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 90000:90010(10) ack 1 win 65535
        > . 1:1(0) ack 1
    ");
}
