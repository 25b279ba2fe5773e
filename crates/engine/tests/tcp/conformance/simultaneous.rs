//! Both sides at the same time: RFC 9293, section 3.5, figure 7, and section 3.6, figure 13.

use crate::script::run;

#[test]
fn both_sides_may_connect_at_once() {
    run("
        connect
        > S 0:0(0) <mss 1000>
        < S 0:0(0) win 65535 <mss 1000>
        > S. 0:0(0) ack 1 <mss 1000>
        state SYN-RECEIVED
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        connected
        state ESTABLISHED
        write 10
        > P. 1:11(10) ack 1
        counter connects=1
    ");
}

/// "The window field in a segment where the SYN bit is set (i.e., a <SYN> or <SYN,ACK>) MUST NOT
/// be scaled" (RFC 7323, section 2.2), also when it answers a SYN that crossed ours.
#[test]
fn the_window_of_a_crossing_answer_is_not_scaled() {
    run("
        set rfc1323=1
        connect
        > S 0:0(0) <mss 1000,TS 0 0,ws 0>
        < S 0:0(0) win 2000 <mss 1000,TS 1 0,ws 7>
        > S. 0:0(0) ack 1 <mss 1000,TS 0 1,ws 0>
        < S. 0:0(0) ack 1 win 2000 <mss 1000,TS 1 0,ws 7>
        connected
        write 5000
        > . 1:989(988) ack 1
        > . 989:1977(988) ack 1
        +10ms < . 1:1(0) ack 1977 win 100 <TS 2 0>
        > . 1977:2965(988) ack 1
        > . 2965:3953(988) ack 1
        > . 3953:4941(988) ack 1
    ");
}

/// The answer to our answer was lost: the peer's leaves again, and is acknowledged.
#[test]
fn a_crossing_answer_again_is_acknowledged() {
    run("
        connect
        > S 0:0(0)
        < S 0:0(0) win 65535 <mss 1000>
        > S. 0:0(0) ack 1
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        connected
        +1s < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        state ESTABLISHED
    ");
}

#[test]
fn both_sides_may_close_at_once() {
    run("
        established
        close
        > F. 1:1(0) ack 1
        state FIN-WAIT-1
        < F. 1:1(0) ack 1 win 65535
        > . 2:2(0) ack 2
        peer closed
        state CLOSING
        < . 2:2(0) ack 2 win 65535
        state TIME-WAIT
        ended closed
        wait 1s
        state CLOSED
        counter closed=1
        counter drops=0
    ");
}

/// In CLOSING the end that was lost leaves again.
#[test]
fn in_closing_the_end_leaves_again() {
    run("
        established
        close
        > F. 1:1(0) ack 1
        < F. 1:1(0) ack 1 win 65535
        > . 2:2(0) ack 2
        +200ms > F. 1:1(0) ack 2
        < . 2:2(0) ack 2 win 65535
        state TIME-WAIT
    ");
}
