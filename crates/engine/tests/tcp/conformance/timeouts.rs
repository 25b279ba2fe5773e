//! Time: the retransmission timeout (RFC 6298), keepalive (RFC 9293, section 3.8.4) and the end
//! of patience.

use crate::script::run;

/// Rules 2.2 and 2.3, and 5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")".
#[test]
fn the_timeout_follows_the_round_trip_and_doubles() {
    run("
        connect
        > S 0:0(0)
        rto 1000ms
        +100ms < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        rto 300ms
        write 500
        > P. 1:501(500) ack 1
        +300ms > P. 1:501(500) ack 1
        +600ms > P. 1:501(500) ack 1
        +1200ms > P. 1:501(500) ack 1
        counter rexmttimeo=3
        counter sndrexmitpack=3
        counter sndrexmitbyte=1500
        counter sndbyte_ok=500
        counter sndpack=1
    ");
}

/// Karn: what was sent again says nothing of the round trip, and the timeout stays backed off
/// until something is measured.
#[test]
fn what_was_sent_again_is_not_measured() {
    run("
        established
        rto 200ms
        write 500
        > P. 1:501(500) ack 1
        +200ms > P. 1:501(500) ack 1
        +150ms < . 1:1(0) ack 501 win 65535
        rto 400ms
        write 500
        > P. 501:1001(500) ack 1
        +150ms < . 1:1(0) ack 1001 win 65535
        counter rttupdated=2
    ");
}

/// With timestamps it is measured all the same (RFC 7323, section 4.1).
#[test]
fn with_timestamps_it_is_measured() {
    run("
        set rfc1323=1
        established
        write 500
        > P. 1:501(500) ack 1
        +200ms > P. 1:501(500) ack 1 <TS 200 1>
        +150ms < . 1:1(0) ack 501 win 65535 <TS 2 200>
        counter rttupdated=2
    ");
}

/// Rule 5.3: "When an ACK is received that acknowledges new data, restart the retransmission
/// timer"; rule 5.2: "When all outstanding data has been acknowledged, turn off the
/// retransmission timer."
#[test]
fn the_timer_starts_again_with_what_is_acknowledged() {
    run("
        established
        write 2000
        > . 1:1001(1000)
        > P. 1001:2001(1000)
        +150ms < . 1:1(0) ack 1001 win 65535
        wait 149ms
        < . 1:1(0) ack 2001 win 65535
        wait 4s
        none
        counter rexmttimeo=0
    ");
}

/// After 12 retransmissions without answer it is over, and the peer is told once.
#[test]
fn patience_has_an_end() {
    run("
        set keepalive_idle=60000s
        established
        write 500
        > P. 1:501(500) ack 1
        +200ms > P. 1:501(500) ack 1
        +400ms > P. 1:501(500) ack 1
        +800ms > P. 1:501(500) ack 1
        +1600ms > P. 1:501(500) ack 1
        +3200ms > P. 1:501(500) ack 1
        +6400ms > P. 1:501(500) ack 1
        +12800ms > P. 1:501(500) ack 1
        +25600ms > P. 1:501(500) ack 1
        +51200ms > P. 1:501(500) ack 1
        +64s > P. 1:501(500) ack 1
        +64s > P. 1:501(500) ack 1
        +64s > P. 1:501(500) ack 1
        +64s > R. 501:501(0) ack 1
        ended timed out
        state CLOSED
        counter timeoutdrop=1
        counter drops=1
        counter closed=1
    ");
}

/// "When the interval expires ... SEG.SEQ = SND.NXT-1": who lives must answer.
#[test]
fn silence_is_asked_whether_somebody_lives() {
    run("
        set keepalive_idle=5s
        set keepalive_interval=2s
        set keepalive_probes=3
        established
        +5s > . 0:0(0) ack 1
        < . 1:1(0) ack 1 win 65535
        +5s > . 0:0(0) ack 1
        +2s > . 0:0(0) ack 1
        +2s > . 0:0(0) ack 1
        +2s > R. 1:1(0) ack 1
        ended timed out
        counter keepprobe=4
        counter keeptimeo=5
        counter keepdrops=1
        counter drops=1
    ");
}

#[test]
fn who_is_asked_answers() {
    run("
        established
        < . 0:0(0) ack 1 win 65535
        > . 1:1(0) ack 1
        wait 2s
        < . 0:0(0) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 0:1(1) ack 1 win 65535
        > . 1:1(0) ack 1
    ");
}

#[test]
fn what_is_heard_puts_the_question_off() {
    run("
        established
        +4s < P. 1:11(10) ack 1 win 65535
        +100ms > . 1:1(0) ack 11
        wait 4899ms
        +1ms > . 0:0(0) ack 11
        counter keeptimeo=1
    ");
}

/// "After a TCP has not sent data in an interval exceeding the retransmission timeout", the
/// window is the initial one: "RW = min(IW,cwnd)" (RFC 5681, section 4.1).
#[test]
fn a_rest_takes_the_window_back() {
    run("
        set initial_window=2
        established
        write 4000
        > . 1:1001(1000)
        > . 1001:2001(1000)
        +10ms < . 1:1(0) ack 2001 win 65535
        > . 2001:3001(1000)
        > P. 3001:4001(1000)
        +10ms < . 1:1(0) ack 4001 win 65535
        cwnd 6000
        write 2000
        > . 4001:5001(1000)
        > P. 5001:6001(1000)
        +10ms < . 1:1(0) ack 6001 win 65535
        +190ms < P. 1:11(10) ack 6001 win 65535
        +100ms > . 6001:6001(0) ack 11
        write 6000
        > . 6001:7001(1000)
        > . 7001:8001(1000)
        none
        cwnd 2000
    ");
}

/// What a full port did not take at a timeout leaves when it can, and the timer runs again.
#[test]
fn a_retransmission_waits_for_the_port() {
    run("
        established
        write 500
        > P. 1:501(500) ack 1
        block
        wait 1s
        unblock
        > P. 1:501(500) ack 1
        +400ms > P. 1:501(500) ack 1
        counter rexmttimeo=2
    ");
}

/// Data is an answer as well: the questions begin anew.
#[test]
fn data_answers_a_question() {
    run("
        set keepalive_idle=5s
        set keepalive_interval=2s
        set keepalive_probes=1
        established
        +5s > . 0:0(0) ack 1
        +1s < P. 1:11(10) ack 1 win 65535
        +100ms > . 1:1(0) ack 11
        +4900ms > . 0:0(0) ack 11
        +2s > R. 1:1(0) ack 11
        ended timed out
    ");
}
