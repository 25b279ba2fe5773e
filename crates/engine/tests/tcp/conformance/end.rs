//! How connections end: RFC 9293, sections 3.6, 3.10.4 and 3.10.7.4, eighth.

use crate::script::run;

#[test]
fn who_closes_first_waits_and_who_closes_last_does_not() {
    run("
        established
        close
        > F. 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535
        state FIN-WAIT-2
        < F. 1:1(0) ack 2 win 65535
        > . 2:2(0) ack 2
        peer closed
        ended closed
        state TIME-WAIT
        wait 999ms
        state TIME-WAIT
        wait 1ms
        state CLOSED
        counter closed=1
    ");
    run("
        established
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2
        peer closed
        state CLOSE-WAIT
        close
        > F. 1:1(0) ack 2
        state LAST-ACK
        < . 2:2(0) ack 2 win 65535
        state CLOSED
        ended closed
    ");
}

/// Half close: "the user who closes may continue to receive until the peer closes too"
/// (in the sense of section 3.6: CLOSE means "I have no more data to send").
#[test]
fn data_arrives_after_our_end() {
    run("
        established
        close
        > F. 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535
        state FIN-WAIT-2
        < . 1:1001(1000) ack 2 win 65535
        delivered 1000
        < P. 1001:2001(1000) ack 2 win 65535
        > . 2:2(0) ack 2001
        delivered 1000
        counter rcvafterclose=2
        < PF. 2001:2501(500) ack 2 win 65535
        > . 2:2(0) ack 2502
        delivered 500
        peer closed
        state TIME-WAIT
    ");
}

#[test]
fn data_leaves_after_their_end() {
    run("
        established
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2
        state CLOSE-WAIT
        write 1500
        > . 1:1001(1000) ack 2
        < . 2:2(0) ack 1001 win 65535
        > P. 1001:1501(500) ack 2
        acknowledged 1000
        < . 2:2(0) ack 1501 win 65535
        acknowledged 500
        counter rcvafterclose=0
    ");
}

/// Data, the end and the acknowledgment of ours in one segment.
#[test]
fn everything_may_come_at_once() {
    run("
        established
        write 10 close
        > PF. 1:11(10) ack 1
        < PF. 1:101(100) ack 12 win 65535
        > . 12:12(0) ack 102
        delivered 100
        acknowledged 10
        peer closed
        ended closed
        state TIME-WAIT
    ");
}

/// "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order segment arrives"
/// (RFC 5681, section 4.2), an end that is early as well; it counts when all before it is there.
#[test]
fn an_end_that_is_early_waits_for_what_is_before_it() {
    run("
        established
        < F. 1001:1001(0) ack 1 win 65535
        > . 1:1(0) ack 1
        state ESTABLISHED
        < . 501:1001(500) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 1:501(500) ack 1 win 65535
        > . 1:1(0) ack 1002
        delivered 1000
        peer closed
        state CLOSE-WAIT
    ");
}

#[test]
fn an_end_beyond_the_window_is_not_there() {
    run("
        set receive_buffer=2000
        established
        < PF. 1:3001(3000) ack 1 win 65535
        > . 1:1(0) ack 2001 win 2000
        delivered 2000
        state ESTABLISHED
        counter rcvpackafterwin=1
        counter rcvbyteafterwin=1000
        < PF. 2001:3001(1000) ack 1 win 65535
        > . 1:1(0) ack 3002
        peer closed
    ");
}

#[test]
fn an_end_that_is_lost_leaves_again_with_what_was_lost_before_it() {
    run("
        established
        write 1500 close
        > . 1:1001(1000) ack 1
        > PF. 1001:1501(500) ack 1
        +200ms > . 1:1001(1000) ack 1
        +10ms < . 1:1(0) ack 1001 win 65535
        > PF. 1001:1501(500) ack 1
        < . 1:1(0) ack 1502 win 65535
        state FIN-WAIT-2
        counter sndrexmitpack=2
        counter sndrexmitbyte=1500
        counter sndbyte_ok=1500
    ");
}

/// A retransmission of their end is acknowledged in every state that has seen it.
#[test]
fn their_end_again_is_acknowledged_again() {
    run("
        established
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2
        peer closed
        < F. 1:1(0) ack 1 win 65535
        > . 1:1(0) ack 2
        state CLOSE-WAIT
        close
        > F. 1:1(0) ack 2
        < F. 1:1(0) ack 1 win 65535
        > . 2:2(0) ack 2
        state LAST-ACK
        < . 2:2(0) ack 2 win 65535
        ended closed
    ");
}

/// A FIN has no need of a window, data has.
#[test]
fn an_end_without_data_leaves_although_the_window_is_closed() {
    run("
        established win 0
        close
        > F. 1:1(0) ack 1
        +200ms > F. 1:1(0) ack 1
        < . 1:1(0) ack 2 win 0
        state FIN-WAIT-2
    ");
}

/// The end rides on the last data, also when that is a full segment.
#[test]
fn the_end_rides_on_a_full_segment() {
    run("
        established
        write 2000 close
        > . 1:1001(1000) ack 1
        > PF. 1001:2001(1000) ack 1
        counter sndpack=2
        counter sndctrl=1
    ");
}

/// "If the user has closed and the peer never does, the connection would stay in FIN-WAIT-2":
/// who lives and answers probes does not hold it for ever. BSD waits as long as for a silent side.
#[test]
fn who_never_closes_is_not_waited_for() {
    run("
        set keepalive_idle=5s
        set keepalive_interval=4s
        set keepalive_probes=3
        established
        close
        > F. 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535
        state FIN-WAIT-2
        +5s > . 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535
        +5s > . 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535
        +2s > R. 2:2(0) ack 1
        ended timed out
        counter closed=1
        counter drops=1
        counter keepdrops=0
    ");
    run("
        set keepalive_idle=50s
        set keepalive_interval=4s
        set keepalive_probes=3
        established
        close
        > F. 1:1(0) ack 1
        < . 1:1(0) ack 2 win 65535
        +11s < P. 1:1001(1000) ack 2 win 65535
        delivered 1000
        +100ms > . 2:2(0) ack 1001
        wait 11s
        state FIN-WAIT-2
        < F. 1001:1001(0) ack 2 win 65535
        > . 2:2(0) ack 1002
        peer closed
        ended closed
        state TIME-WAIT
        wait 1s
        state CLOSED
        counter drops=0
    ");
}
