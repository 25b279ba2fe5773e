//! Loss found by duplicates: RFC 5681, section 3.2; RFC 6582; RFC 3042.

use crate::script::run;

const SIX: &str = "
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
";

/// "When the third duplicate ACK is received, a TCP MUST set ssthresh to no more than" half of
/// what is under way; "the lost segment starting at SND.UNA MUST be retransmitted and cwnd set to
/// ssthresh plus 3*SMSS."
#[test]
fn the_third_duplicate_sends_the_lost_segment_again() {
    run(&format!(
        "{SIX}
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        none
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000) ack 1
        ssthresh 5000
        cwnd 8000
        counter rcvdupack=3
        < . 1:1(0) ack 1 win 65535
        cwnd 9000
        < . 1:1(0) ack 10001 win 65535
        cwnd 2000
        acknowledged 10000
        counter sndrexmitpack=1
        counter rexmttimeo=0
        "
    ));
}

/// RFC 3042: "If ... the TCP sender [may] transmit a previously unsent segment upon the arrival
/// of the first two consecutive duplicate ACKs".
#[test]
fn the_first_two_duplicates_let_new_segments_leave() {
    run("
        set initial_window=4
        established
        write 20000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        < . 1:1(0) ack 1 win 65535
        > . 4001:5001(1000)
        < . 1:1(0) ack 1 win 65535
        > . 5001:6001(1000)
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000)
        ssthresh 2000
        cwnd 5000
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        > . 6001:7001(1000)
    ");
}

/// Not beyond the peer's window.
#[test]
fn limited_transmit_respects_the_window() {
    run("
        set initial_window=4
        established win 4000
        write 20000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        < . 1:1(0) ack 1 win 4000
        < . 1:1(0) ack 1 win 4000
        none
    ");
}

/// RFC 6582, section 3.2, step 3: "Partial acknowledgments: ... retransmit the first
/// unacknowledged segment. Deflate the congestion window by the amount of new data acknowledged
/// ... if the partial ACK acknowledges at least one SMSS of new data, then add back SMSS bytes".
#[test]
fn partial_acknowledgments_send_the_next_lost_segment() {
    run(&format!(
        "{SIX}
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000)
        cwnd 8000
        +10ms < . 1:1(0) ack 3001 win 65535
        > . 3001:4001(1000)
        cwnd 6000
        +10ms < . 1:1(0) ack 5001 win 65535
        > . 5001:6001(1000)
        cwnd 5000
        +10ms < . 1:1(0) ack 10001 win 65535
        cwnd 2000
        ssthresh 5000
        counter sndrexmitpack=3
        "
    ));
}

/// RFC 6582, section 3.2, step 2, and section 4.1: duplicates of what a timeout sent again are no
/// new loss.
#[test]
fn duplicates_after_a_timeout_mean_nothing() {
    run(&format!(
        "{SIX}
        +200ms > . 1:1001(1000)
        < . 1:1(0) ack 2001 win 65535
        > . 2001:3001(1000)
        > . 3001:4001(1000)
        < . 1:1(0) ack 2001 win 65535
        < . 1:1(0) ack 2001 win 65535
        < . 1:1(0) ack 2001 win 65535
        < . 1:1(0) ack 2001 win 65535
        none
        ssthresh 5000
        "
    ));
}

/// What has data, another window, or nothing under way is no duplicate (RFC 5681, section 2).
#[test]
fn not_every_old_acknowledgment_is_a_duplicate() {
    run(&format!(
        "{SIX}
        < . 1:1(0) ack 1 win 65534
        < . 1:1(0) ack 1 win 65533
        < P. 1:11(10) ack 1 win 65535
        < . 11:11(0) ack 1 win 65534
        wait 100ms
        counter rcvdupack=0
        "
    )
    .replace("wait 100ms", "+100ms > . 10001:10001(0) ack 11"));
    run("
        established
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        none
        counter rcvdupack=0
    ");
}

/// The user says how many duplicates mean loss.
#[test]
fn the_threshold_can_be_set() {
    run("
        set duplicates=1
        established
        write 3000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        > P. 2001:3001(1000)
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000)
    ");
}

/// A loss during a repair that duplicates cannot tell is left to the timer, and after it all is
/// sent again from the oldest on.
#[test]
fn a_timeout_ends_a_repair() {
    run(&format!(
        "{SIX}
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000)
        +200ms > . 1:1001(1000)
        cwnd 1000
        ssthresh 4000
        +10ms < . 1:1(0) ack 1001 win 65535
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        counter rexmttimeo=1
        "
    ));
}

/// A port that is full in the middle of a repair delays it, and nothing else.
#[test]
fn a_repair_waits_for_the_port() {
    run(&format!(
        "{SIX}
        block
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        unblock
        > . 1:1001(1000)
        none
        counter sndrexmitpack=1
        "
    ));
}

/// RFC 6582, section 3.2, step 3: only "for the first partial ACK that arrives during fast
/// recovery, also reset the retransmit timer".
#[test]
fn the_second_partial_acknowledgment_does_not_start_the_timer_again() {
    run(&format!(
        "{SIX}
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        < . 1:1(0) ack 1 win 65535
        > . 1:1001(1000)
        +10ms < . 1:1(0) ack 3001 win 65535
        > . 3001:4001(1000)
        +150ms < . 1:1(0) ack 5001 win 65535
        > . 5001:6001(1000)
        +50ms > . 5001:6001(1000)
        cwnd 1000
        counter rexmttimeo=1
        "
    ));
}
