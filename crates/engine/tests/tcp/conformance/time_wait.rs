//! TIME-WAIT: RFC 9293, section 3.6.1, and RFC 6191.

use crate::script::run;

const UNTIL_TIME_WAIT: &str = "
    listen
    < S 0:0(0) win 65535 <mss 1000>
    > S. 0:0(0) ack 1
    < . 1:1(0) ack 1 win 65535
    connected
    close
    > F. 1:1(0) ack 1
    < F. 1:1(0) ack 2 win 65535
    > . 2:2(0) ack 2
    state TIME-WAIT
    ended closed
";

/// "The only thing that can arrive in this state is a retransmission of the remote FIN.
/// Acknowledge it, and restart the 2 MSL timeout."
#[test]
fn their_end_again_starts_the_wait_again() {
    run(&format!(
        "{UNTIL_TIME_WAIT}
        +900ms < F. 1:1(0) ack 2 win 65535
        > . 2:2(0) ack 2
        wait 999ms
        state TIME-WAIT
        wait 1ms
        state CLOSED
        ended closed
        counter closed=1
        "
    ));
}

#[test]
fn an_old_acknowledgment_does_not_make_the_wait_longer() {
    run(&format!(
        "{UNTIL_TIME_WAIT}
        +900ms < . 1:1(0) ack 2 win 65535
        > . 2:2(0) ack 2
        wait 100ms
        state CLOSED
        "
    ));
}

/// "It MAY accept a new SYN from the remote TCP endpoint to reopen the connection directly from
/// TIME-WAIT state, if it: assigns its initial sequence number ... larger than the largest
/// sequence number it used on the previous connection incarnation".
#[test]
fn a_newer_syn_begins_a_new_connection() {
    run(&format!(
        "{UNTIL_TIME_WAIT}
        < S 2:2(0) win 65535 <mss 1000>
        > S. 0:0(0) ack 3
        state SYN-RECEIVED
        < . 3:3(0) ack 1 win 65535
        connected
        "
    ));
}

#[test]
fn an_older_syn_does_not() {
    run(&format!(
        "{UNTIL_TIME_WAIT}
        < S 1:1(0) win 65535 <mss 1000>
        > . 2:2(0) ack 2
        state TIME-WAIT
        "
    ));
}

/// RFC 6191: with timestamps, the newer one decides, not the number.
#[test]
fn with_timestamps_they_decide() {
    let beginning = "
        set rfc1323=1
        listen
        < S 0:0(0) win 65535 <mss 1000,TS 1000 0,ws 0>
        > S. 0:0(0) ack 1
        < . 1:1(0) ack 1 win 65535 <TS 1000 0>
        close
        > F. 1:1(0) ack 1
        < F. 1:1(0) ack 2 win 65535 <TS 1001 0>
        > . 2:2(0) ack 2
        state TIME-WAIT
    ";
    run(&format!(
        "{beginning}
        < S 4000000000:4000000000(0) win 65535 <mss 1000,TS 1002 0,ws 0>
        > S. 0:0(0) ack 4000000001
        state SYN-RECEIVED
        "
    ));
    run(&format!(
        "{beginning}
        < S 5000:5000(0) win 65535 <mss 1000,TS 1000 0,ws 0>
        > . 2:2(0) ack 2
        state TIME-WAIT
        counter pawsdrop=1
        "
    ));
    run(&format!(
        "{beginning}
        < S 5000:5000(0) win 65535 <mss 1000,TS 1001 0,ws 0>
        > S. 0:0(0) ack 5001
        "
    ));
}

#[test]
fn data_after_the_end_is_not_taken() {
    run(&format!(
        "{UNTIL_TIME_WAIT}
        < P. 2:12(10) ack 2 win 65535
        delivered 0
        state TIME-WAIT
        "
    ));
}
