//! Tests of ports on the loopback interface; they need CAP_NET_RAW, and are skipped without.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::*;
use crate::{RxQueue, TxQueue};

/// What tells frames of a test from others on the loopback: an EtherType for experiments would not
/// be spread by flow, so it stands in the payload.
const MARK: &[u8; 8] = b"spread\x05\xa1";

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
    frame[42..50].copy_from_slice(MARK);
    frame[50] = number;
    frame[51] = flow;
    frame
}

#[test]
fn the_kernel_shares_flows_out_over_receive_queues() {
    let counts = QueueCounts { tx: 1, rx: 2 };
    let mut port = match AfPacketPort::open("lo", counts) {
        Ok(port) => port,
        Err(error) if error.to_string().contains("CAP_NET_RAW") => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
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
                if frame.len() == 60 && &frame[42..50] == MARK {
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
