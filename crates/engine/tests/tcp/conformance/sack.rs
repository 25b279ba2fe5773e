//! Selective acknowledgments: RFC 2018 and RFC 6675.

use crate::script::run;

const TEN: &str = "
    set sack=1
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

/// RFC 2018, section 4: "The first SACK block ... MUST specify the contiguous block of data
/// containing the segment which triggered this ACK".
#[test]
fn what_came_last_is_told_first() {
    run("
        set sack=1
        established
        < . 1001:2001(1000) ack 1 win 65535
        > . 1:1(0) ack 1 <sack 1001:2001>
        < . 3001:4001(1000) ack 1 win 65535
        > . 1:1(0) ack 1 <sack 3001:4001 1001:2001>
        < . 5001:6001(1000) ack 1 win 65535
        > . 1:1(0) ack 1 <sack 5001:6001 3001:4001 1001:2001>
        < . 2001:3001(1000) ack 1 win 65535
        > . 1:1(0) ack 1 <sack 1001:4001 5001:6001>
        < . 1:1001(1000) ack 1 win 65535
        > . 1:1(0) ack 4001 <sack 5001:6001>
        < . 4001:5001(1000) ack 1 win 65535
        > . 1:1(0) ack 6001 <>
        delivered 6000
        counter sack_send_blocks=5
    ");
}

/// With timestamps there is room for three blocks, else for four.
#[test]
fn as_many_blocks_as_there_is_room_for() {
    let arrive = |times: &str| {
        format!(
            "established
            < . 1001:1101(100) ack 1 win 65535 {times}
            > . 1:1(0) ack 1
            < . 2001:2101(100) ack 1 win 65535 {times}
            > . 1:1(0) ack 1
            < . 3001:3101(100) ack 1 win 65535 {times}
            > . 1:1(0) ack 1
            < . 4001:4101(100) ack 1 win 65535 {times}
            > . 1:1(0) ack 1
            < . 5001:5101(100) ack 1 win 65535 {times}
            "
        )
    };
    run(&format!(
        "set sack=1
        {}
        > . 1:1(0) ack 1 <sack 5001:5101 4001:4101 3001:3101 2001:2101>",
        arrive("")
    ));
    run(&format!(
        "set sack=1
        set rfc1323=1
        {}
        > . 1:1(0) ack 1 <TS 0 1,sack 5001:5101 4001:4101 3001:3101>",
        arrive("<TS 2 0>")
    ));
}

/// RFC 6675, section 5: after three pieces beyond it, what is oldest is lost; the window is half,
/// and what is missing leaves as the pipe has room.
#[test]
fn holes_are_filled_in_order() {
    run(&format!(
        "{TEN}
        < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
        < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
        none
        < . 1:1(0) ack 1 win 65535 <sack 1001:3001 4001:5001>
        > . 1:1001(1000)
        ssthresh 5000
        cwnd 5000
        # The pipe: 3001:4001, which is not lost yet, and 5001:10001, and what was sent again.
        < . 1:1(0) ack 1 win 65535 <sack 4001:6001 1001:3001>
        none
        < . 1:1(0) ack 1 win 65535 <sack 4001:7001 1001:3001>
        # Now 3001 is lost, too: four left in the pipe.
        > . 3001:4001(1000)
        # The pipe has room and nothing else is there to leave: the rescue.
        < . 1:1(0) ack 3001 win 65535 <sack 4001:8001>
        > P. 9001:10001(1000)
        < . 1:1(0) ack 10001 win 65535
        cwnd 5000
        counter sack_recovery_episode=1
        counter sack_rexmits=3
        counter sack_rexmit_bytes=3000
        counter sndrexmitpack=3
        counter rexmttimeo=0
        "
    ));
}

/// An acknowledgment that says nothing new is no duplicate (RFC 6675, section 2).
#[test]
fn only_news_is_a_duplicate() {
    run(&format!(
        "{TEN}
        < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
        < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
        < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
        < . 1:1(0) ack 1 win 65535
        none
        counter rcvdupack=1
        counter sack_rcv_blocks=3
        "
    ));
}

/// NextSeg, rule 2: new data when no more is lost.
#[test]
fn new_data_leaves_when_the_holes_are_filled() {
    run(&format!(
        "{TEN}
        < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
        > . 1:1001(1000)
        write 5000
        none
        < . 1:1(0) ack 1 win 65535 <sack 1001:6001>
        none
        < . 1:1(0) ack 1 win 65535 <sack 1001:7001>
        > . 10001:11001(1000)
        < . 1:1(0) ack 1 win 65535 <sack 1001:9001>
        > . 11001:12001(1000)
        > . 12001:13001(1000)
        "
    ));
}

/// Rules 3 and 4: without new data, what might be lost leaves again, then once the end of what is
/// under way: "a single 'rescue' retransmission per entry into loss recovery".
#[test]
fn the_end_is_rescued_once() {
    run(&format!(
        "{TEN}
        < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
        > . 1:1001(1000)
        < . 1:1(0) ack 1 win 65535 <sack 1001:8001>
        > . 9001:10001(1000)
        < . 1:1(0) ack 8001 win 65535
        none
        +200ms > . 8001:9001(1000)
        "
    )
    .replace("> . 9001:10001", "> P. 9001:10001"));
}

/// RFC 2018, section 8: "After a retransmit timeout the data sender SHOULD turn off all of the
/// SACKed bits, since the timeout might indicate that the data receiver has reneged."
#[test]
fn who_reneges_gets_everything_again() {
    run(&format!(
        "{TEN}
        < . 1:1(0) ack 1 win 65535 <sack 1001:10001>
        > . 1:1001(1000)
        +200ms > . 1:1001(1000)
        +10ms < . 1:1(0) ack 1001 win 65535
        > . 1001:2001(1000)
        > . 2001:3001(1000)
        < . 1:1(0) ack 3001 win 65535
        > . 3001:4001(1000)
        > . 4001:5001(1000)
        > . 5001:6001(1000)
        "
    ));
}

/// What the peer tells after a timeout is left out.
#[test]
fn what_is_told_after_a_timeout_is_not_sent_again() {
    run(&format!(
        "{TEN}
        +200ms > . 1:1001(1000)
        +10ms < . 1:1(0) ack 2001 win 65535 <sack 3001:5001>
        > . 2001:3001(1000)
        < . 1:1(0) ack 5001 win 65535
        > . 5001:6001(1000)
        > . 6001:7001(1000)
        > . 7001:8001(1000)
        "
    ));
}

/// Blocks that cannot be are not believed: of what was never sent, upside down, or below what is
/// acknowledged (a duplicate, RFC 2883).
#[test]
fn nonsense_is_not_believed() {
    run(&format!(
        "{TEN}
        < . 1:1(0) ack 2001 win 65535 <sack 1:1001>
        < . 1:1(0) ack 2001 win 65535 <sack 20001:30001 5001:4001 1:2001>
        none
        counter rcvdupack=0
        "
    ));
}

/// The last condition of RFC 6675, section 5.1: a repair that a timeout ended does not begin anew
/// before all is acknowledged that was sent until then.
#[test]
fn after_a_timeout_no_repair_begins_for_what_was_sent_before() {
    run(&format!(
        "{TEN}
        +200ms > . 1:1001(1000)
        < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
        < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
        < . 1:1(0) ack 1 win 65535 <sack 1001:8001>
        none
        counter sack_recovery_episode=0
        "
    ));
}

/// Data may bring blocks, too.
#[test]
fn blocks_that_ride_on_data_count() {
    run(&format!(
        "{TEN}
        < P. 1:11(10) ack 1 win 65535 <sack 1001:4001>
        > . 1:1001(1000) ack 11
        delivered 10
        counter sack_recovery_episode=1
        "
    ));
}
