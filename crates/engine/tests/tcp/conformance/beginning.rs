//! How connections begin: RFC 9293, sections 3.5, 3.10.7.3 and 3.10.7.4.

use crate::script::run;

#[test]
fn a_client_connects() {
    run("
        connect
        > S 0:0(0) win 32768 <mss 1000>
        state SYN-SENT
        < S. 0:0(0) ack 1 win 65535 <mss 1460>
        > . 1:1(0) ack 1 win 32768 <>
        connected
        state ESTABLISHED
        counter connattempt=1
        counter connects=1
        counter sndctrl=1
        counter sndacks=1
    ");
}

#[test]
fn a_server_accepts() {
    run("
        listen
        < S 0:0(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 1 win 32768 <mss 1000>
        state SYN-RECEIVED
        < . 1:1(0) ack 1 win 65535
        connected
        state ESTABLISHED
        counter accepts=1
        counter connects=1
        counter connattempt=0
    ");
}

/// "When the first segment of a connection is not answered": RFC 6298, rules 2.1 and 5.5, one
/// second and then twice as long each time.
#[test]
fn a_syn_without_answer_leaves_again_until_the_time_is_over() {
    run("
        connect
        > S 0:0(0)
        +1s > S 0:0(0) <mss 1000>
        +2s > S 0:0(0)
        wait 2s
        ended timed out
        state CLOSED
        counter rexmttimeo_syn=2
        counter rexmttimeo=0
        counter conndrops=1
        counter drops=0
        counter closed=1
    ");
}

/// "If the SYN or SYN/ACK is lost, the initial window used by a sender after a correctly
/// transmitted SYN MUST be one segment" (RFC 5681, section 3.1); "the RTO MUST be re-initialized
/// to 3 seconds when data transmission begins" (RFC 6298, rule 5.7).
#[test]
fn after_a_lost_syn_one_segment_is_the_window_and_the_timeout_is_long() {
    run("
        connect
        > S 0:0(0)
        +1s > S 0:0(0)
        +10ms < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        connected
        cwnd 1000
        write 3000
        > . 1:1001(1000) ack 1
        +3s > . 1:1001(1000) ack 1
    ");
}

#[test]
fn an_answer_that_is_lost_leaves_again() {
    run("
        listen
        < S 0:0(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 1
        +1s > S. 0:0(0) ack 1 <mss 1000>
        +500ms < S 0:0(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 1 <mss 1000>
        < . 1:1(0) ack 1 win 65535
        connected
        cwnd 1000
        counter rexmttimeo_syn=1
    ");
}

/// Who sent a SYN and nothing more is told when it is over: "SYN-RECEIVED STATE ... send a reset
/// segment" (section 3.10.5).
#[test]
fn half_a_connection_ends_in_time_with_a_reset() {
    run("
        listen
        < S 0:0(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 1
        +1s > S. 0:0(0) ack 1
        +2s > S. 0:0(0) ack 1
        +2s > R. 1:1(0) ack 1
        ended timed out
        state CLOSED
        counter keepdrops=1
        counter drops=1
        counter conndrops=0
    ");
}

/// "If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset ... and discard the segment" (section
/// 3.10.7.3).
#[test]
fn an_answer_to_another_syn_is_refused() {
    run("
        connect
        > S 0:0(0)
        < S. 0:0(0) ack 0 win 65535 <mss 1000>
        refused
        < S. 0:0(0) ack 2 win 65535 <mss 1000>
        refused
        state SYN-SENT
        < . 7:7(0) ack 900 win 65535
        refused
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        connected
    ");
}

/// "If the segment acknowledgment is not acceptable, form a reset segment" (section 3.10.7.4,
/// fifth, SYN-RECEIVED); what has no acknowledgment is dropped.
#[test]
fn in_syn_received_only_the_right_acknowledgment_counts() {
    run("
        listen
        < S 0:0(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 1
        < . 1:1(0) ack 5 win 65535
        refused
        < P 1:11(10) win 65535
        state SYN-RECEIVED
        < . 1:11(10) ack 1 win 65535
        connected
        delivered 10
        +100ms > . 1:1(0) ack 11
    ");
}

/// A client that began anew with another number: it is asked, answers with a reset, and then
/// its SYN finds nobody in the way (section 3.5.1, figure 8).
#[test]
fn another_syn_in_syn_received_is_asked() {
    run("
        listen
        < S 0:0(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 1
        < S 5000:5000(0) win 65535 <mss 1460>
        > . 1:1(0) ack 1
        < R 1:1(0)
        ended reset
        state CLOSED
        < S 5000:5000(0) win 65535 <mss 1460>
        > S. 0:0(0) ack 5001
    ");
}

/// RFC 5961, section 4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST
/// send an ACK (also referred to as challenge ACK) to the remote peer".
#[test]
fn a_syn_on_a_connection_that_is_there_is_challenged() {
    run("
        established
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        < S 90000:90000(0) win 65535 <mss 1000>
        > . 1:1(0) ack 1
        < S 1:1(0) win 65535 <mss 1000>
        > . 1:1(0) ack 1
        state ESTABLISHED
        counter badsyn=2
    ");
}

#[test]
fn what_is_written_early_waits_for_the_connection() {
    run("
        connect
        > S 0:0(0)
        write 10
        close
        none
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > PF. 1:11(10) ack 1
        state FIN-WAIT-1
        counter sndbyte=10
        counter sndbyte_ok=10
        < . 1:1(0) ack 12 win 65535
        acknowledged 10
        state FIN-WAIT-2
    ");
}

#[test]
fn data_and_end_in_the_answer_to_a_syn_count() {
    run("
        connect
        > S 0:0(0)
        < SF. 0:5(5) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 7
        delivered 5
        peer closed
        state CLOSE-WAIT
    ");
}

#[test]
fn a_reset_ends_the_attempt_only_when_it_answers_it() {
    run("
        connect
        > S 0:0(0)
        < R 1:1(0)
        state SYN-SENT
        < R. 0:0(0) ack 1
        state CLOSED
        ended reset
        counter conndrops=1
        counter drops=0
    ");
}
