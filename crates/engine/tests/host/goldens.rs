//! Requests and replies byte for byte, written by hand from the figures of the RFCs, their
//! checksums added up by hand.

use allosaur_engine::host::{ANNOUNCE_INTERVAL, Host, HostSettings};

use crate::requests::{OWN_LOCAL, OWN_V4, ask, settings};

/// Bytes out of hexadecimal digits; spaces are for the reader.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The same, as long as a frame must be.
fn padded(text: &str) -> Vec<u8> {
    let mut frame = hex(text);
    frame.resize(frame.len().max(60), 0);
    frame
}

#[test]
fn an_arp_request() {
    let request = hex("ffffffffffff 020000000099 0806  0001 0800 06 04 0001 \
         020000000099 0a000009 000000000000 0a000001");
    let reply = padded(
        "020000000099 020000000001 0806  0001 0800 06 04 0002 \
         020000000001 0a000001 020000000099 0a000009",
    );
    assert_eq!(ask(&settings(), &request), Some(reply));
}

#[test]
fn an_arp_probe() {
    let request = hex("ffffffffffff 020000000099 0806  0001 0800 06 04 0001 \
         020000000099 00000000 000000000000 0a000001");
    let reply = padded(
        "020000000099 020000000001 0806  0001 0800 06 04 0002 \
         020000000001 0a000001 020000000099 00000000",
    );
    assert_eq!(ask(&settings(), &request), Some(reply));
}

#[test]
fn an_echo_request_over_ipv4() {
    let request = padded(
        "020000000001 020000000099 0800 \
         45b80020 12344000 030150e8 0a000009 0a000001  08006d5a abcd0007 70696e67",
    );
    let reply = padded(
        "020000000099 020000000001 0800 \
         45b80020 00004000 4001261c 0a000001 0a000009  0000755a abcd0007 70696e67",
    );
    assert_eq!(ask(&settings(), &request), Some(reply));
}

#[test]
fn an_echo_request_over_ipv6_behind_a_tag() {
    let (peer, own) = (
        "20010db8000000000000000000000009",
        "20010db8000000000000000000000001",
    );
    let request = hex(&format!(
        "020000000001 020000000099 8100e005 86dd \
         60012345 000d3a03 {peer} {own}  8000e066 00010002 68656c6c6f"
    ));
    let reply = hex(&format!(
        "020000000099 020000000001 8100e005 86dd \
         60000000 000d3a40 {own} {peer}  8100df66 00010002 68656c6c6f"
    ));
    let settings = HostSettings {
        vlan: vec![5],
        ..settings()
    };
    assert_eq!(ask(&settings, &request), Some(reply));
}

#[test]
fn a_neighbor_solicitation() {
    let (peer, own) = (
        "fe800000000000000000000000000099",
        "fe800000000000000000000000000001",
    );
    let request = hex(&format!(
        "3333ff000001 020000000099 86dd 60000000 00203aff {peer} \
         ff0200000000000000000001ff000001  87007969 00000000 {own} 0101 020000000099"
    ));
    let reply = hex(&format!(
        "020000000099 020000000001 86dd 60000000 00203aff {own} {peer} \
         88001785 60000000 {own} 0201 020000000001"
    ));
    assert_eq!(ask(&settings(), &request), Some(reply));
}

#[test]
fn a_solicitation_of_one_who_has_no_address_yet() {
    let own = "fe800000000000000000000000000001";
    let nobody = "0".repeat(32);
    let request = hex(&format!(
        "3333ff000001 020000000099 86dd 60000000 00183aff {nobody} \
         ff0200000000000000000001ff000001  87007c25 00000000 {own}"
    ));
    let reply = hex(&format!(
        "333300000001 020000000001 86dd 60000000 00203aff {own} \
         ff020000000000000000000000000001  8800579b 20000000 {own} 0201 020000000001"
    ));
    assert_eq!(ask(&settings(), &request), Some(reply));
}

#[test]
fn announcements_in_two_vlans() {
    let settings = HostSettings {
        vlan: vec![100, 0x234],
        ipv4: Some(OWN_V4),
        ipv6: vec![OWN_LOCAL],
        ..settings()
    };
    let arp = padded(
        "ffffffffffff 020000000001 88a80064 81000234 0806  0001 0800 06 04 0001 \
         020000000001 0a000001 000000000000 0a000001",
    );
    let own = "fe800000000000000000000000000001";
    let advertisement = hex(&format!(
        "333300000001 020000000001 88a80064 81000234 86dd 60000000 00203aff {own} \
         ff020000000000000000000000000001  8800579b 20000000 {own} 0201 020000000001"
    ));
    let mut host = Host::new(settings, 7);
    let mut frame = vec![0xee; 3];
    for round in [7, 7 + ANNOUNCE_INTERVAL] {
        assert_eq!(host.poll_timeout(), Some(round));
        assert!(!host.poll_transmit(round - 1, &mut frame));
        assert!(host.poll_transmit(round, &mut frame));
        assert_eq!(frame, arp);
        assert!(host.poll_transmit(round, &mut frame));
        assert_eq!(frame, advertisement);
        assert!(!host.poll_transmit(round, &mut frame));
    }
}
