//! When acknowledgments leave, and when small segments do: RFC 9293, sections 3.7.4 and 3.8.6.3;
//! RFC 5681, section 4.2.

use crate::script::run;

/// "An ACK SHOULD be generated for at least every second full-sized segment, and MUST be
/// generated within 500 ms of the arrival of the first unacknowledged packet" (RFC 5681, 4.2).
#[test]
fn every_second_segment_is_acknowledged_at_once_and_the_last_later() {
    run("
        established
        < . 1:1001(1000) ack 1 win 65535
        < . 1001:2001(1000) ack 1 win 65535
        > . 1:1(0) ack 2001
        < . 2001:3001(1000) ack 1 win 65535
        +100ms > . 1:1(0) ack 3001
        counter delack=1
        counter rcvpack=3
        counter rcvbyte=3000
        counter preddat=3
    ");
}

#[test]
fn an_acknowledgment_rides_on_data() {
    run("
        established
        < P. 1:101(100) ack 1 win 65535
        write 10
        > P. 1:11(10) ack 101
        wait 150ms
        counter delack=0
        counter sndacks=1
    ");
}

#[test]
fn so_many_bytes_are_acknowledged_at_once() {
    run("
        set acknowledge=1500
        established
        < . 1:1001(1000) ack 1 win 65535
        < . 1001:1401(400) ack 1 win 65535
        < . 1401:1501(100) ack 1 win 65535
        > . 1:1(0) ack 1501
        < . 1501:1502(1) ack 1 win 65535
        +100ms > . 1:1(0) ack 1502
    ");
}

/// "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order segment arrives
/// ... [and] an immediate ACK when the incoming segment fills in all or part of a gap".
#[test]
fn gaps_are_told_at_once() {
    run("
        established
        < . 1001:2001(1000) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 2001:3001(1000) ack 1 win 65535
        > . 1:1(0) ack 1
        delivered 0
        < . 1:501(500) ack 1 win 65535
        > . 1:1(0) ack 501
        delivered 500
        < . 501:1001(500) ack 1 win 65535
        > . 1:1(0) ack 3001
        delivered 2500
        counter rcvoopack=2
        counter rcvoobyte=2000
        counter reasalloc=1
        counter reasfree=1
        counter reas_hist_4=1
    ");
}

#[test]
fn old_data_is_acknowledged_at_once_and_counted() {
    run("
        established
        < . 1:1001(1000) ack 1 win 65535
        < . 1:1001(1000) ack 1 win 65535
        > . 1:1(0) ack 1001
        < . 501:1501(1000) ack 1 win 65535
        +100ms > . 1:1(0) ack 1501
        delivered 1500
        counter rcvduppack=1
        counter rcvdupbyte=1000
        counter rcvpartduppack=1
        counter rcvpartdupbyte=500
    ");
}

/// "If there is unacknowledged data (i.e., SND.NXT > SND.UNA), then the sending TCP endpoint
/// buffers all user data ... until the outstanding data has been acknowledged or until the TCP
/// endpoint can send a full-sized segment" (Nagle, section 3.7.4).
#[test]
fn small_segments_wait_for_company() {
    run("
        established
        write 10
        > P. 1:11(10) ack 1
        write 20
        none
        write 970
        none
        write 20
        > . 11:1011(1000) ack 1
        none
        < . 1:1(0) ack 1011 win 65535
        > P. 1011:1021(10) ack 1
    ");
}

#[test]
fn without_nagle_they_do_not() {
    run("
        set no_delay=1
        established
        write 10
        > P. 1:11(10) ack 1
        write 20
        > P. 11:31(20) ack 1
        write 1500
        > . 31:1031(1000) ack 1
        > P. 1031:1531(500) ack 1
        counter sndpack=4
        counter sndbyte=1530
    ");
}

#[test]
fn each_segment_says_push_when_the_user_wants() {
    run("
        set always_push=1
        established
        write 2000
        > P. 1:1001(1000) ack 1
        > P. 1001:2001(1000) ack 1
    ");
}

/// The end does not wait.
#[test]
fn what_comes_with_the_end_leaves_at_once() {
    run("
        established
        write 10
        > P. 1:11(10) ack 1
        write 20
        close
        > PF. 11:31(20) ack 1
    ");
}

/// No bytes are kept for more than the user allows.
#[test]
fn reassembly_has_an_end() {
    run("
        set reassembly=2
        established
        < . 1001:2001(1000) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 3001:4001(1000) ack 1 win 65535
        > . 1:1(0) ack 1
        < . 5001:6001(1000) ack 1 win 65535
        > . 1:1(0) ack 1
        counter rcvoopackdrop=1
        counter rcvoobytesdrop=1000
        < . 1:1001(1000) ack 1 win 65535
        > . 1:1(0) ack 2001
        < . 5001:6001(1000) ack 1 win 65535
        > . 1:1(0) ack 2001
        < . 2001:3001(1000) ack 1 win 65535
        > . 1:1(0) ack 4001
        < . 4001:5001(1000) ack 1 win 65535
        > . 1:1(0) ack 6001
        delivered 6000
        counter rcvoopackdrop=1
        counter reasalloc=1
        counter reasfree=1
    ");
}

/// What is out of order when a connection ends is counted as over, too.
#[test]
fn a_reassembly_that_is_given_up_is_counted() {
    run("
        established
        < . 1001:2001(1000) ack 1 win 65535
        > . 1:1(0) ack 1
        < R 1:1(0)
        ended reset
        counter reasalloc=1
        counter reasfree=1
        counter reas_hist_4=1
    ");
}

/// The acknowledgment that a full port did not take leaves when it can.
#[test]
fn an_acknowledgment_waits_for_the_port() {
    run("
        established
        block
        < . 1:1001(1000) ack 1 win 65535
        < . 1001:2001(1000) ack 1 win 65535
        wait 1s
        unblock
        > . 1:1(0) ack 2001
    ");
}

/// Who shall wait for more bytes than the window has room for does not stop the peer.
#[test]
fn half_a_window_is_acknowledged_at_once() {
    run("
        set acknowledge=60000
        set receive_buffer=4000
        established
        < . 1:1001(1000) ack 1 win 65535
        < . 1001:2001(1000) ack 1 win 65535
        > . 1:1(0) ack 2001
    ");
}
