//! The peer's window: zero, small, shrinking; RFC 9293, sections 3.8.6.1 and 3.8.6.2. And
//! our own: RFC 5681 and RFC 9438.

use crate::script::run;

/// "The sending TCP peer must regularly transmit at least one octet of new data (if available)
/// ... to the receiving TCP peer even if the send window is zero, in order to 'probe' the
/// window", first "when a zero window has existed for the retransmission timeout period", and
/// SHOULD "increase exponentially the interval between successive probes".
#[test]
fn a_closed_window_is_asked_until_it_opens() {
    run("
        established win 1000
        write 3000
        > . 1:1001(1000) ack 1
        +10ms < . 1:1(0) ack 1001 win 0
        +200ms > . 1001:1002(1) ack 1
        +10ms < . 1:1(0) ack 1001 win 0
        +390ms > . 1001:1002(1) ack 1
        +10ms < . 1:1(0) ack 1001 win 0
        +790ms > . 1001:1002(1) ack 1
        +10ms < . 1:1(0) ack 1001 win 65535
        > . 1001:2001(1000) ack 1
        > P. 2001:3001(1000) ack 1
        < . 1:1(0) ack 3001 win 65535
        acknowledged 3000
        counter sndprobe=3
        counter persisttimeo=3
        counter rcvwinupd=1
        counter sndbyte_ok=3000
        counter rexmttimeo=0
    ");
}

/// "The octet is taken": then it is acknowledged, and the rest follows behind it.
#[test]
fn a_probe_may_be_accepted() {
    run("
        established win 0
        write 500
        +200ms > . 1:2(1) ack 1
        +10ms < . 1:1(0) ack 2 win 0
        acknowledged 1
        +200ms > . 2:3(1) ack 1
        +10ms < . 1:1(0) ack 3 win 65535
        > P. 3:501(498) ack 1
        acknowledged 1
        counter sndprobe=2
        counter sndbyte_ok=500
        counter sndrexmitpack=0
    ");
}

/// "As long as the receiving TCP peer continues to send acknowledgments in response to the probe
/// segments, the sending TCP peer MUST allow the connection to stay open"; else not for ever.
#[test]
fn who_answers_may_keep_its_window_closed_and_who_does_not_is_given_up() {
    let answered = "
        +200ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +400ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +800ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +1600ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +3200ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +6400ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +12800ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +25600ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
        +51200ms > . 1:2(1)
        < . 1:1(0) ack 1 win 0
    ";
    let minute = "+60s > . 1:2(1)\n";
    let acknowledged = "< . 1:1(0) ack 1 win 0\n";
    let long = format!("{minute}{acknowledged}").repeat(20);
    let silent = minute.repeat(12);
    run(&format!(
        "set keepalive_idle=60000s
        established win 0
        write 500
        {answered}
        {long}
        state ESTABLISHED
        {silent}
        +60s > R. 1:1(0) ack 1
        ended timed out
        counter persistdrop=1
        counter keepdrops=0
        "
    ));
}

/// "The sender ... SHOULD NOT send new data" beyond a window that shrinks, "but SHOULD retransmit
/// normally the old unacknowledged data between SND.UNA and SND.UNA+SND.WND", and "if the window
/// shrinks to zero, the TCP implementation MUST probe it in the standard way".
#[test]
fn a_window_may_shrink() {
    run("
        established
        write 4000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        > P. 3001:4001(1000)
        +10ms < . 1:1(0) ack 1001 win 1000
        write 1000
        none
        +200ms > . 1001:2001(1000)
        +10ms < . 1:1(0) ack 2001 win 0
        # It is asked when the data that is under way times out.
        +400ms > . 2001:2002(1)
        +10ms < . 1:1(0) ack 2001 win 5000
        > . 2001:3001(1000)
        > . 3001:4001(1000)
    ");
}

/// No silly windows (section 3.8.6.2.1): a small window is used only when it is half of the
/// largest, or after the override timeout; then for what it is.
#[test]
fn a_small_window_is_used_late() {
    run("
        established win 4000
        write 4500
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        +10ms < . 1:1(0) ack 4001 win 300
        none
        +200ms > . 4001:4301(300)
        +10ms < . 1:1(0) ack 4301 win 200
        > P. 4301:4501(200)
        counter sndprobe=0
        counter sndpack=6
    ");
}

#[test]
fn half_of_the_largest_window_is_not_silly() {
    run("
        established win 900
        write 2000
        > . 1:901(900)
        +10ms < . 1:1(0) ack 901 win 450
        > . 901:1351(450)
        +10ms < . 1:1(0) ack 1351 win 449
        none
        +200ms > . 1351:1800(449)
    ");
}

/// A window update: of two that are as new, the larger counts; an older one does not.
#[test]
fn an_older_window_does_not_count() {
    run("
        established win 2000
        < . 11:21(10) ack 1 win 3000
        > . 1:1(0) ack 1
        < . 1:11(10) ack 1 win 500
        > . 1:1(0) ack 21
        write 5000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        < . 21:21(0) ack 1 win 4000
        > . 3001:4001(1000)
        counter rcvwinupd=1
    ");
}

/// The window that is offered never shrinks, and what is beyond it is not taken; a byte exactly at
/// its edge asks.
#[test]
fn our_window_ends_where_it_ends() {
    run("
        set receive_buffer=2000
        established
        block
        < . 1:1001(1000) ack 1 win 65535
        < . 1001:2001(1000) ack 1 win 65535
        delivered 2000
        < . 2001:2002(1) ack 1 win 65535
        delivered 0
        counter rcvwinprobe=1
        counter rcvpackafterwin=0
        unblock
        > . 1:1(0) ack 2001 win 2000
    ");
}

/// Slow start: "cwnd += min (N, SMSS)" for each acknowledgment, or two segments (RFC 3465);
/// avoidance: a segment for each window.
#[test]
fn the_window_grows_as_newreno_says() {
    run("
        set initial_window=2
        established
        write 32000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        +10ms < . 1:1(0) ack 1001 win 65535
        cwnd 3000
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        < . 1:1(0) ack 4001 win 65535
        cwnd 5000
        ssthresh none
        > . 4001:5001(1000)
        > . 5001:6001(1000)
        > . 6001:7001(1000)
        > . 7001:8001(1000)
        > . 8001:9001(1000)
        +200ms > . 4001:5001(1000)
        cwnd 1000
        ssthresh 2500
        # After a timeout, one segment more at most.
        < . 1:1(0) ack 9001 win 65535
        cwnd 2000
        > . 9001:10001(1000)
        > . 10001:11001(1000)
        < . 1:1(0) ack 11001 win 65535
        cwnd 4000
        > . 11001:12001(1000)
        > . 12001:13001(1000)
        > . 13001:14001(1000)
        > . 14001:15001(1000)
        # Beyond the threshold: one more for a whole window.
        < . 1:1(0) ack 13001 win 65535
        cwnd 4000
        > . 15001:16001(1000)
        > . 16001:17001(1000)
        < . 1:1(0) ack 15001 win 65535
        cwnd 5000
        > . 17001:18001(1000)
        > . 18001:19001(1000)
        > . 19001:20001(1000)
    ");
}

/// CUBIC leaves 0.7 of the window (RFC 9438, section 4.6).
#[test]
fn cubic_leaves_more_after_a_loss() {
    run("
        set congestion=cubic
        set no_delay=1
        established
        write 10000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        > . 4001:5001(1000)
        > . 5001:6001(1000)
        > . 6001:7001(1000)
        > . 7001:8001(1000)
        > . 8001:9001(1000)
        > P. 9001:10001(1000)
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000)
        ssthresh 7000
        < . 1:1(0) ack 10001 win 65535
        cwnd 2000
    ");
}

/// What a small window took is under way like all data, with a timeout of its own.
#[test]
fn what_a_small_window_took_may_be_lost() {
    run("
        established win 4000
        write 4500
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        +10ms < . 1:1(0) ack 4001 win 300
        +200ms > . 4001:4301(300)
        +200ms > . 4001:4301(300)
        +400ms > . 4001:4301(300)
        counter rexmttimeo=2
        counter sndprobe=0
    ");
}
