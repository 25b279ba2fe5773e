//! Explicit congestion notification: RFC 3168.

use crate::script::run;

const WITH_ECN: &str = "
    set ecn=active
    connect
    > SEW 0:0(0) <mss 1000>
    < SE. 0:0(0) ack 1 win 65535 <mss 1000>
    > . 1:1(0) ack 1
    connected
    counter ecn_shs=1
";

/// Section 6.1.1: a SYN with ECE and CWR asks, a SYN-ACK with ECE alone grants.
#[test]
fn it_is_asked_for_and_granted() {
    run(&format!(
        "{WITH_ECN}
        write 10
        > P. 1:11(10) ack 1 ect
        counter ecn_ect0=1
        "
    ));
    run("
        set ecn=passive
        listen
        < SEW 0:0(0) win 65535 <mss 1000>
        > SE. 0:0(0) ack 1
        < . 1:1(0) ack 1 win 65535
        counter ecn_shs=1
    ");
}

#[test]
fn without_grant_it_is_not_used() {
    run("
        set ecn=active
        connect
        > SEW 0:0(0)
        < S. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        write 10
        > P. 1:11(10) ack 1
        counter ecn_shs=0
    ");
    // Some reflect all bits: that is no grant.
    run("
        set ecn=active
        connect
        > SEW 0:0(0)
        < SEW. 0:0(0) ack 1 win 65535 <mss 1000>
        > . 1:1(0) ack 1
        counter ecn_shs=0
    ");
    run("
        listen
        < SEW 0:0(0) win 65535 <mss 1000>
        > S. 0:0(0) ack 1
    ");
    run("
        set ecn=passive
        connect
        > S 0:0(0)
    ");
}

/// Section 6.1.1.1: who gets no answer may ask without.
#[test]
fn a_syn_again_asks_without() {
    run("
        set ecn=active
        connect
        > SEW 0:0(0)
        +1s > S 0:0(0)
    ");
}

/// Section 6.1.3: "the TCP receiver sets the ECN-Echo flag in the TCP header of the subsequent ACK
/// packets ... until it receives a TCP packet with the CWR flag set".
#[test]
fn a_mark_is_echoed_until_it_was_heard() {
    run(&format!(
        "{WITH_ECN}
        < . 1:1001(1000) ack 1 win 65535 ce
        < . 1001:2001(1000) ack 1 win 65535
        > E. 1:1(0) ack 2001
        < . 2001:3001(1000) ack 1 win 65535
        < . 3001:4001(1000) ack 1 win 65535
        > E. 1:1(0) ack 4001
        < W. 4001:5001(1000) ack 1 win 65535
        < . 5001:6001(1000) ack 1 win 65535
        > . 1:1(0) ack 6001
        counter ecn_ce=1
        "
    ));
}

/// Section 6.1.2: "the sending TCP SHOULD halve the congestion window ... TCP should not react to
/// congestion indications more than once every window of data"; the next new segment says CWR,
/// and segments again are not marked (6.1.5).
#[test]
fn the_window_goes_down_once_a_round_trip() {
    run(&format!(
        "{WITH_ECN}
        write 8000
        > . 1:1001(1000) ack 1 ect
        > . 1001:2001(1000) ack 1 ect
        > . 2001:3001(1000) ack 1 ect
        > . 3001:4001(1000) ack 1 ect
        > . 4001:5001(1000) ack 1 ect
        > . 5001:6001(1000) ack 1 ect
        > . 6001:7001(1000) ack 1 ect
        > P. 7001:8001(1000) ack 1 ect
        < E. 1:1(0) ack 1001 win 65535
        ssthresh 4000
        < E. 1:1(0) ack 2001 win 65535
        ssthresh 4000
        write 4000
        none
        < E. 1:1(0) ack 5001 win 65535
        > W. 8001:9001(1000) ack 1 ect
        counter ecn_rcwnd=1
        < . 1:1(0) ack 8001 win 65535
        > . 9001:10001(1000) ack 1 ect
        > . 10001:11001(1000) ack 1 ect
        > P. 11001:12001(1000) ack 1 ect
        < E. 1:1(0) ack 9001 win 65535
        counter ecn_rcwnd=2
        ssthresh 2000
        "
    ));
}

/// A loss in a window that was slowed down for a mark is repaired at once, and the window goes
/// down no further for it.
#[test]
fn a_loss_after_a_mark_is_repaired() {
    run(&format!(
        "{WITH_ECN}
        write 8000
        > . 1:1001(1000) ack 1 ect
        > . 1001:2001(1000) ack 1 ect
        > . 2001:3001(1000) ack 1 ect
        > . 3001:4001(1000) ack 1 ect
        > . 4001:5001(1000) ack 1 ect
        > . 5001:6001(1000) ack 1 ect
        > . 6001:7001(1000) ack 1 ect
        > P. 7001:8001(1000) ack 1 ect
        < E. 1:1(0) ack 1001 win 65535
        ssthresh 4000
        < E. 1:1(0) ack 1001 win 65535
        < E. 1:1(0) ack 1001 win 65535
        < E. 1:1(0) ack 1001 win 65535
        > . 1001:2001(1000) ack 1
        ssthresh 4000
        "
    ));
}
