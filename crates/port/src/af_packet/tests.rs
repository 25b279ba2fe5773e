//! Tests of ports on the loopback interface; they need CAP_NET_RAW, and are skipped without.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::*;
use crate::{RxQueue, TxQueue};

/// What tells a test's frames from others on the loopback, those of a test that runs beside it or in
/// another process too: an EtherType for experiments would not be spread by flow, so it stands in the
/// payload.
fn mark_of(test: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = std::process::id().to_be_bytes();
    let [e, f, g, h] = test;
    [e, f, g, h, a, b, c, d]
}

const FLOWS: [u8; 4] = *b"flow";
const PORTS: [u8; 4] = *b"port";

/// A UDP frame between two hosts of a flow, there or back, with a number.
fn frame(flow: u8, back: bool, number: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    let (client, server) = ([198, 18, 0, flow], [198, 19, 0, 1]);
    let (from, to) = if back {
        (server, client)
    } else {
        (client, server)
    };
    frame[26..30].copy_from_slice(&from);
    frame[30..34].copy_from_slice(&to);
    let sum = allosaur_packet::network::checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let (client, server) = ([4, flow], [0x13, 0x37]);
    let (from, to) = if back {
        (server, client)
    } else {
        (client, server)
    };
    frame[34..36].copy_from_slice(&from);
    frame[36..38].copy_from_slice(&to);
    frame[38..40].copy_from_slice(&26u16.to_be_bytes());
    frame[42..50].copy_from_slice(&mark_of(FLOWS));
    frame[50] = number;
    frame[51] = flow;
    frame
}

/// The loopback with so many receive queues; `None` without the privilege.
fn loopback(rx: usize, sharing: Sharing) -> Option<AfPacketPort> {
    let counts = QueueCounts { tx: 1, rx, sharing };
    match AfPacketPort::open("lo", counts) {
        Ok(port) => Some(port),
        Err(error) if error.to_string().contains("CAP_NET_RAW") => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_kernel_shares_flows_out_over_receive_queues() {
    let Some(mut port) = loopback(2, Sharing::ByFlow) else {
        return;
    };
    let (flows, numbers) = (64, 6);
    for number in 0..numbers {
        for flow in 0..flows {
            let frame = frame(flow, number % 2 == 1, number);
            let slot = port.tx[0].slot(0, frame.len());
            slot.expect("the ring has room").copy_from_slice(&frame);
        }
        port.tx[0].flush();
    }
    let mut seen: HashMap<u8, Vec<(usize, u8)>> = HashMap::new();
    let mut left = usize::from(flows) * usize::from(numbers);
    let give_up = Instant::now() + Duration::from_secs(20);
    while left > 0 {
        assert!(Instant::now() < give_up, "{left} frames did not arrive");
        port.tx[0].flush();
        for (queue, rx) in port.rx.iter_mut().enumerate() {
            rx.receive(0, 64, |_, frame| {
                if frame.len() == 60 && frame[42..50] == mark_of(FLOWS) {
                    seen.entry(frame[51]).or_default().push((queue, frame[50]));
                    left -= 1;
                }
            });
        }
    }
    for (flow, got) in &seen {
        let expected: Vec<_> = (0..numbers).map(|number| (got[0].0, number)).collect();
        assert_eq!(*got, expected, "flow {flow}: one queue, in order");
    }
    let used = |queue| seen.values().filter(|got| got[0].0 == queue).count();
    assert!(used(0) > 5 && used(1) > 5, "{} and {}", used(0), used(1));
}

/// A frame with a number, of a kind that the number chooses: over IPv4, with options or a fragment,
/// or IPv6; TCP, UDP or neither; in no VLAN, one or two.
fn some_frame(number: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    let tags: &[&[u8]] = &[&[], &[0x81, 0, 0, 7], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]];
    frame.extend(tags[usize::from(number) % 3]);
    let protocol = [6, 17, 132][usize::from(number / 3) % 3];
    let variant = number / 9 % 4;
    let mark = [mark_of(PORTS).as_slice(), &number.to_be_bytes()].concat();
    match variant {
        3 => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, protocol, 64]);
            frame.extend([0x20; 32]);
        }
        _ => {
            let (words, fragment) = [(5, 0), (8, 0), (5, 0x20)][usize::from(variant)];
            let total = words * 4 + 40;
            let header = frame.len() + 2;
            frame.extend([
                8,
                0,
                0x40 | words,
                0,
                0,
                total,
                0,
                0,
                fragment,
                0,
                64,
                protocol,
                0,
                0,
            ]);
            frame.extend([198, 18, 0, 1, 198, 19, 0, 1]);
            frame.resize(header + usize::from(words) * 4, 1);
            let sum = allosaur_packet::network::checksum::checksum(&frame[header..]);
            frame[header + 10..header + 12].copy_from_slice(&sum.to_be_bytes());
        }
    }
    let ports = u32::from(number).wrapping_mul(0x9e37_79b9).to_be_bytes();
    frame.extend(ports);
    frame.extend([0, 40, 0, 0, 0, 0, 0, 0, 0x50, 0]);
    frame.extend(&mark);
    frame.resize(frame.len() + 40 - 14 - mark.len(), 0);
    frame
}

/// A message of ICMP with a number that chooses its kind: over IPv4, with options or without, or IPv6;
/// an error or not; about a packet of TCP, UDP or neither, with options or without.
fn some_message(number: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    let is_v6 = number % 3 == 2;
    let inner = [6, 17, 132][usize::from(number / 3) % 3];
    let kinds: [u8; 4] = if is_v6 {
        [1, 2, 3, 129]
    } else {
        [3, 11, 12, 0]
    };
    let kind = kinds[usize::from(number / 9) % 4];
    let words = |number: u16| if number % 2 == 0 { 5u8 } else { 8 };
    let ipv4 = |words: u8, protocol: u8, bytes: u8| {
        let mut header = vec![
            0x40 | words,
            0,
            0,
            words * 4 + bytes,
            0,
            0,
            0,
            0,
            64,
            protocol,
            0,
            0,
        ];
        header.extend([198, 18, 0, 1, 198, 19, 0, 1]);
        header.resize(usize::from(words) * 4, 1);
        let sum = allosaur_packet::network::checksum::checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    };
    let ipv6 = |protocol: u8, bytes: u8| {
        let mut header = vec![0x60, 0, 0, 0, 0, bytes, protocol, 64];
        header.extend([0x20; 32]);
        header
    };
    let mut message = vec![kind, 4, 0, 0, 0, 0, 5, 120];
    message.extend(match is_v6 {
        true => ipv6(inner, 40),
        false => ipv4(words(number / 36), inner, 40),
    });
    message.extend(u32::from(number).wrapping_mul(0x9e37_79b9).to_be_bytes());
    message.extend([0; 4]);
    message.extend([mark_of(PORTS).as_slice(), &number.to_be_bytes()].concat());
    let bytes = message.len() as u8;
    match is_v6 {
        true => {
            frame.extend([0x86, 0xdd]);
            frame.extend(ipv6(58, bytes));
        }
        false => {
            frame.extend([8, 0]);
            frame.extend(ipv4(words(number / 72), 1, bytes));
        }
    }
    frame.extend(message);
    frame
}

/// A frame of [`some_frame`] without its tags in VXLAN over IPv4 or IPv6, in a VLAN or none; or a datagram to its
/// port that is not of it.
fn some_tunnel(number: u16) -> Vec<u8> {
    let mut inner = some_frame(number);
    let tags_bytes = [0, 4, 8][usize::from(number) % 3];
    inner.drain(12..12 + tags_bytes);
    let udp_bytes = (8 + 8 + inner.len()) as u16;
    let mut frame = vec![0; 12];
    if number % 2 == 1 {
        frame.extend([0x81, 0, 0, 7]);
    }
    match number / 2 % 2 {
        0 => {
            let [high, low] = (20 + udp_bytes).to_be_bytes();
            let header = frame.len() + 2;
            frame.extend([8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
            frame.extend([198, 18, 0, 1, 198, 19, 0, 1]);
            let sum = allosaur_packet::network::checksum::checksum(&frame[header..]);
            frame[header + 10..header + 12].copy_from_slice(&sum.to_be_bytes());
        }
        _ => {
            let [high, low] = udp_bytes.to_be_bytes();
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, high, low, 17, 64]);
            frame.extend([0x20; 32]);
        }
    }
    frame.extend((number % 7).to_be_bytes());
    frame.extend(4789_u16.to_be_bytes());
    frame.extend(udp_bytes.to_be_bytes());
    let flags = if number / 4 % 4 == 3 { 0 } else { 8 };
    frame.extend([0, 0, flags, 0, 0, 0, 0, 0, 7, 0]);
    frame.extend(inner);
    frame
}

#[test]
fn the_kernel_shares_out_by_ports_as_software_does() {
    const PACKETS: u16 = 720;
    const MESSAGES: u16 = PACKETS + 576;
    const FRAMES: u16 = MESSAGES + 144;
    let some_frame = |number| match number {
        0..PACKETS => some_frame(number),
        PACKETS..MESSAGES => some_message(number),
        _ => some_tunnel(number),
    };
    for sharing in [Sharing::BySourcePort, Sharing::ByDestinationPort] {
        let Some(mut port) = loopback(3, sharing) else {
            return;
        };
        for number in 0..FRAMES {
            let frame = some_frame(number);
            let slot = port.tx[0].slot(0, frame.len());
            slot.expect("the ring has room").copy_from_slice(&frame);
            port.tx[0].flush();
        }
        let mut left: Vec<bool> = vec![true; FRAMES.into()];
        let give_up = Instant::now() + Duration::from_secs(20);
        let mut used = [0; 3];
        while left.contains(&true) {
            assert!(Instant::now() < give_up, "not all arrived");
            port.tx[0].flush();
            for (queue, rx) in port.rx.iter_mut().enumerate() {
                rx.receive(0, 64, |_, frame| {
                    let mut marks = frame.windows(8).rev();
                    let Some(from_end) = marks.position(|bytes| bytes == mark_of(PORTS)) else {
                        return;
                    };
                    let at = frame.len() - from_end;
                    let number = u16::from_be_bytes([frame[at], frame[at + 1]]);
                    assert_eq!(frame, some_frame(number), "frame {number}");
                    let share = sharing.share_of(frame, 3);
                    assert_eq!(queue, share, "{sharing:?}, frame {number}: {frame:x?}");
                    assert!(std::mem::take(&mut left[usize::from(number)]), "once");
                    used[queue] += 1;
                });
            }
        }
        assert!(used.iter().all(|frames| *frames > 60), "{used:?}");
    }
}
