//! What options agree on: RFC 9293, section 3.7.1; RFC 7323; RFC 2018, section 2.

use crate::script::run;

#[test]
fn all_are_offered_and_used_when_both_do() {
    run("
        set rfc1323=1
        set sack=1
        set receive_buffer=262144
        connect
        > S 0:0(0) win 65535 <mss 1000,sackOK,TS 0 0,ws 3>
        +10ms < S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS 77 0,ws 7>
        > . 1:1(0) ack 1 win 32768 <TS 10 77>
        write 988
        > P. 1:989(988) ack 1 win 32768 <TS 10 77>
        counter rttupdated=1
    ");
}

/// "TSopt MUST NOT be sent unless ... received"; a window is scaled only "if both sides send
/// Window Scale options in their <SYN> segments" (RFC 7323, sections 2.2 and 3.2).
#[test]
fn what_the_other_side_does_not_offer_is_not_used() {
    run("
        set rfc1323=1
        set sack=1
        set receive_buffer=262144
        connect
        > S 0:0(0) win 65535 <mss 1000,sackOK,TS 0 0,ws 3>
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1 win 65535 <>
        write 1000
        > P. 1:1001(1000) ack 1 <>
        < . 2001:3001(1000) ack 1 win 65535
        > . 1001:1001(0) ack 1 <>
    ");
}

#[test]
fn what_the_other_side_does_not_offer_is_not_answered() {
    run("
        set rfc1323=1
        set sack=1
        listen
        < S 0:0(0) win 65535 <mss 1000>
        > S. 0:0(0) ack 1 <mss 1000>
    ");
    run("
        set rfc1323=1
        set sack=1
        listen
        < S 0:0(0) win 65535 <mss 1000,sackOK>
        > S. 0:0(0) ack 1 <mss 1000,sackOK>
    ");
    run("
        listen
        < S 0:0(0) win 65535 <mss 1000,sackOK,TS 5 0,ws 9>
        > S. 0:0(0) ack 1 <mss 1000>
    ");
}

/// "If an MSS Option is not received at connection setup, TCP implementations MUST assume a
/// default send MSS of 536" (section 3.7.1).
#[test]
fn without_a_word_segments_are_short() {
    run("
        connect
        > S 0:0(0)
        < S. 0:0(0) ack 1 win 65535
        > . 1:1(0) ack 1
        write 600
        > . 1:537(536) ack 1
        < . 1:1(0) ack 537 win 65535
        > P. 537:601(64) ack 1
    ");
}

/// Options take their room from the data (RFC 6691): with timestamps and blocks to tell, a
/// segment is shorter.
#[test]
fn segments_with_options_are_not_larger() {
    run("
        set sack=1
        set rfc1323=1
        established
        < . 1001:2001(1000) ack 1 win 65535 <TS 2 0>
        > . 1:1(0) ack 1 <TS 0 1,sack 1001:2001>
        write 1000
        > . 1:977(976) ack 1 <TS 0 1,sack 1001:2001>
        < . 1:1(0) ack 977 win 65535 <TS 2 0>
        > P. 977:1001(24) ack 1 <TS 0 2,sack 1001:2001>
    ");
}

#[test]
fn an_absurd_segment_size_still_moves_data() {
    run("
        set rfc1323=1
        connect
        > S 0:0(0)
        < S. 0:0(0) ack 1 win 65535 <mss 5,TS 1 0,ws 0>
        > . 1:1(0) ack 1
        write 2
        > . 1:2(1) ack 1
        > P. 2:3(1) ack 1
    ");
}

/// "If a Window Scale option is received with a shift.cnt value larger than 14, the TCP SHOULD log
/// the error but MUST use 14 instead of the specified value" (RFC 7323, section 2.3).
#[test]
fn a_shift_is_never_more_than_14() {
    run("
        set initial_window=20
        set rfc1323=1
        connect
        > S 0:0(0)
        < S. 0:0(0) ack 1 win 500 <mss 10012,TS 1 0,ws 15>
        > . 1:1(0) ack 1
        < . 1:1(0) ack 1 win 1 <TS 1 0>
        write 20000
        > . 1:989(988)
        > . 989:1977(988)
        > . 1977:2965(988)
        > . 2965:3953(988)
        > . 3953:4941(988)
        > . 4941:5929(988)
        > . 5929:6917(988)
        > . 6917:7905(988)
        > . 7905:8893(988)
        > . 8893:9881(988)
        > . 9881:10869(988)
        > . 10869:11857(988)
        > . 11857:12845(988)
        > . 12845:13833(988)
        > . 13833:14821(988)
        > . 14821:15809(988)
        none
    ");
}

/// PAWS: "If the connection has been ... and SEG.TSval < TS.Recent ... the segment is not
/// acceptable; Send an acknowledgment in reply" (RFC 7323, section 5.3, R1).
#[test]
fn an_old_timestamp_makes_an_old_segment() {
    run("
        set rfc1323=1
        established
        < P. 1:11(10) ack 1 win 65535 <TS 100 0>
        delivered 10
        +100ms > . 1:1(0) ack 11 <TS 100 100>
        < P. 11:21(10) ack 1 win 65535 <TS 99 0>
        > . 1:1(0) ack 11 <TS 100 100>
        delivered 0
        counter pawsdrop=1
        counter rcvduppack=1
        counter rcvdupbyte=10
        < P. 11:21(10) ack 1 win 65535 <TS 101 0>
        delivered 10
        +100ms > . 1:1(0) ack 21 <TS 200 101>
    ");
}

/// Timestamps go round like numbers: "s < t if 0 < (t - s) < 2^31" (section 5.2).
#[test]
fn timestamps_go_round() {
    run("
        set rfc1323=1
        connect
        > S 0:0(0)
        < S. 0:0(0) ack 1 win 65535 <mss 1000,TS 4294967290 0,ws 0>
        > . 1:1(0) ack 1 <TS 0 4294967290>
        < P. 1:11(10) ack 1 win 65535 <TS 4 0>
        delivered 10
        +100ms > . 1:1(0) ack 11 <TS 100 4>
        < P. 11:21(10) ack 1 win 65535 <TS 4294967295 0>
        > . 1:1(0) ack 11 <TS 100 4>
        counter pawsdrop=1
    ");
}

/// After 24 days a timestamp says nothing (section 5.5).
#[test]
fn after_weeks_any_timestamp_is_new() {
    run("
        set rfc1323=1
        set keepalive_idle=2147482s
        established
        < P. 1:11(10) ack 1 win 65535 <TS 100 0>
        +100ms > . 1:1(0) ack 11 <TS 100 100>
        wait 2073601s
        < P. 11:21(10) ack 1 win 65535 <TS 99 0>
        delivered 20
        +100ms > . 1:1(0) ack 21
        counter pawsdrop=0
    ");
}

/// "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the segment"
/// (section 3.2); a reset needs none.
#[test]
fn without_its_timestamp_a_segment_is_dropped_but_for_a_reset() {
    run("
        set rfc1323=1
        established
        < P. 1:11(10) ack 1 win 65535
        none
        delivered 0
        < R 1:1(0)
        ended reset
    ");
}

/// Which one is echoed: of the segment that the last acknowledgment left waiting (section 4.3).
#[test]
fn the_echo_is_of_the_first_of_two_segments() {
    run("
        set rfc1323=1
        established
        < . 1:1001(1000) ack 1 win 65535 <TS 10 0>
        < . 1001:2001(1000) ack 1 win 65535 <TS 11 0>
        > . 1:1(0) ack 2001 <TS 0 10>
        < . 3001:4001(1000) ack 1 win 65535 <TS 12 0>
        > . 1:1(0) ack 2001 <TS 0 10>
        < . 2001:3001(1000) ack 1 win 65535 <TS 13 0>
        > . 1:1(0) ack 4001 <TS 0 13>
    ");
}

/// A retransmission tells the newer time of the two, also when it is all old.
#[test]
fn the_echo_follows_a_retransmission() {
    run("
        set rfc1323=1
        established
        < . 1:1001(1000) ack 1 win 65535 <TS 10 0>
        < . 1:1001(1000) ack 1 win 65535 <TS 500 0>
        > . 1:1(0) ack 1001 <TS 0 500>
        delivered 1000
        counter rcvduppack=1
    ");
}
