//! Ports on DPDK's own drivers without hardware: what goes in comes out, byte for byte.
//!
//! The tests start DPDK in their own process; what it needs of the machine is memory. Without
//! hugepages that is 2 GiB for all of them, of which one takes a third: they run one after the other.

use std::ffi::CStr;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allosaur_packet::shared_payload::{SharedPayload, SplitFrame};

use super::device::symmetric_key;
use super::eal::Eal;
use super::{DpdkPort, FRAMES_MAX, ffi};
use crate::description::{DpdkDevice, PortDescription};
use crate::distribution::RxDistribution;
use crate::tap::{self, Tapped};
use crate::{FrameId, Port, QueueCounts, RxQueue, TxQueue};

thread_local! {
    /// DPDK's memory, from a test's first port on until its thread ends.
    static MEMORY: MutexGuard<'static, ()> = {
        static ALL: Mutex<()> = Mutex::new(());
        // A test that failed gave its memory back like any other.
        ALL.lock().unwrap_or_else(PoisonError::into_inner)
    };
}

fn open(text: &str, tx: usize) -> DpdkPort {
    let queues = QueueCounts {
        tx,
        ..QueueCounts::ONE
    };
    DpdkPort::open(&device(text), &[], queues).expect("DPDK's drivers need no hardware")
}

fn device(text: &str) -> DpdkDevice {
    MEMORY.with(|_| ());
    match text.parse().expect("well formed") {
        PortDescription::Dpdk(device) => device,
        other => panic!("not a device: {other}"),
    }
}

fn open_pair(name: &str, tx: [usize; 2], rx: usize) -> [DpdkPort; 2] {
    MEMORY.with(|_| ());
    let queues = tx.map(|tx| QueueCounts {
        tx,
        rx,
        ..QueueCounts::ONE
    });
    DpdkPort::open_pair(name, &[], queues).expect("rings need no hardware")
}

/// The bytes of a frame that is like no other of another number.
fn frame(number: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number * 7 + at * 13 + at / 256) as u8)
        .collect()
}

fn send(port: &mut impl TxQueue, bytes: &[u8]) -> bool {
    let Some(slot) = port.slot(0, bytes.len()) else {
        return false;
    };
    slot.copy_from_slice(bytes);
    true
}

fn received(port: &mut impl RxQueue) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    // One way and the other: both give the same, in bursts or one by one.
    let one = port.receive(0, 1, |_, bytes| frames.push(bytes.to_vec()));
    let more = port.receive_split(0, 10_000, |burst| {
        assert!(!burst.is_empty() && !burst.iter().any(SplitFrame::is_split));
        frames.extend(burst.iter().map(|frame| frame.head.to_vec()));
    });
    assert_eq!(one + more, frames.len());
    frames
}

#[test]
fn frames_of_every_length_come_out_of_the_ring_in_order() {
    let mut port = open("vdev:net_ring", 1);
    let longest = port.capabilities().frame_bytes_max;
    assert!(longest >= 1514, "{longest}");
    let lengths = (14..200)
        .chain((200..longest).step_by(97))
        .chain([longest, port.tx[0].frame_bytes_max()]);
    for (number, len) in lengths.enumerate() {
        assert!(send(&mut port.tx[0], &frame(number, len)));
        port.tx[0].flush();
        assert_eq!(received(&mut port.rx[0]), [frame(number, len)]);
    }
}

#[test]
fn slots_and_registered_frames_keep_their_order_in_bursts() {
    let mut port = open("vdev:net_ring", 2);
    let ids: Vec<FrameId> = (0..3)
        .map(|number| {
            port.tx[1]
                .register(&frame(number, 60 + number))
                .expect("there is room")
        })
        .collect();
    let mut expected = Vec::new();
    for round in 0..200 {
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(port.tx[1].repeat(0, *id, 5), 5);
            expected.extend(vec![frame(number, 60 + number); 5]);
            assert!(send(&mut port.tx[1], &frame(round, 100)));
            expected.push(frame(round, 100));
        }
        if round % 7 == 0 {
            port.tx[1].flush();
            assert!(!port.tx[1].has_unsent());
            let found = received(&mut port.rx[0]);
            assert!(found == expected, "round {round}");
            expected.clear();
        }
    }
    port.tx[1].flush();
    assert!(received(&mut port.rx[0]) == expected);
}

#[test]
fn a_full_device_has_no_room_and_loses_nothing() {
    let mut port = open("vdev:net_ring", 1);
    let id = port.tx[0].register(&frame(0, 60)).expect("there is room");
    for by_slot in [false, true] {
        let mut sent = 0;
        while match by_slot {
            true => send(&mut port.tx[0], &frame(0, 60)),
            false => port.tx[0].repeat(0, id, 1) == 1,
        } {
            sent += 1;
            assert!(sent < 100_000, "a ring is full some day");
        }
        assert!(!port.tx[0].has_room(0, 60) || !by_slot);
        assert!(port.tx[0].has_unsent());
        let mut arrived = 0;
        while port.tx[0].has_unsent() {
            let frames = received(&mut port.rx[0]);
            assert!(frames.iter().all(|bytes| *bytes == frame(0, 60)));
            arrived += frames.len();
            port.tx[0].flush();
        }
        arrived += received(&mut port.rx[0]).len();
        assert_eq!(arrived, sent);
        assert!(port.tx[0].has_room(0, 60));
    }
}

#[test]
fn net_null_takes_everything_and_gives_pools_back() {
    let mut port = open("vdev:net_null", 1);
    assert_eq!(port.capabilities().line_rate_bps, 10e9);
    for round in 0..3 {
        // The pools of unregistered frames serve again, and then there are no more.
        let frames: Vec<FrameId> = (0..FRAMES_MAX)
            .map(|number| {
                port.tx[0]
                    .register(&frame(number + round, 60))
                    .expect("there is room")
            })
            .collect();
        assert_eq!(port.tx[0].register(&frame(0, 60)), None);
        for (number, id) in frames.iter().enumerate() {
            assert_eq!(port.tx[0].repeat(0, *id, 100_000), 100_000);
            let mut copy = Vec::new();
            port.tx[0].copy_registered(*id, &mut copy);
            assert_eq!(copy, frame(number + round, 60));
        }
        port.tx[0].flush();
        frames.into_iter().for_each(|id| port.tx[0].unregister(id));
    }
    assert_eq!(received(&mut port.rx[0]), Vec::<Vec<u8>>::new());
}

#[test]
fn reused_frames_keep_what_is_not_written() {
    let mut port = open("vdev:net_ring", 1);
    let tx = &mut port.tx[0];
    let (long, other) = (frame(1, 1514), frame(2, 700));
    let ids = [&long, &other].map(|bytes| tx.register(bytes).expect("there is room"));
    let mut expected = Vec::new();
    for round in 0..5000_u32 {
        // Lengths of their own, in an order in which mbufs meet many of them.
        let (id, bytes) = match round % 3 {
            0 => (ids[1], &other),
            _ => (ids[0], &long),
        };
        let len = bytes.len() - (round as usize * 31) % 600;
        let slot = tx.reuse(0, id, len).expect("who receives makes room");
        slot[20..24].copy_from_slice(&round.to_be_bytes());
        let mut whole = bytes[..len].to_vec();
        whole[20..24].copy_from_slice(&round.to_be_bytes());
        expected.push(whole);
        if round % 50 == 49 {
            assert!(send(tx, &frame(3, 80)));
            expected.push(frame(3, 80));
            tx.flush();
            assert!(received(&mut port.rx[0]) == expected, "round {round}");
            expected.clear();
        }
    }
    ids.into_iter().for_each(|id| tx.unregister(id));
}

#[test]
fn reused_frames_are_copied_by_a_tap_and_sent() {
    let mut port = open("vdev:net_ring", 1);
    let id = port.tx[0].register(&frame(1, 700)).expect("there is room");
    let (mut tap_in, mut tap_out) = tap::tap();
    let mut tapped = Tapped::new(&mut port.tx[0], &mut tap_in, 4);
    let mut expected = Vec::new();
    for (number, len) in [(1, 700), (2, 650), (3, 700)] {
        tapped.reuse(0, id, len).expect("there is room")[0] = number;
        expected.push(frame(1, 700)[..len].to_vec());
        expected.last_mut().expect("just pushed")[0] = number;
    }
    drop(tapped);
    port.tx[0].flush();
    tap_in.flush();
    assert_eq!(received(&mut port.rx[0]), expected);
    let mut copies = Vec::new();
    tap_out.receive(10, |_, _, bytes| copies.push(bytes.to_vec()));
    assert_eq!(copies, expected);
}

#[test]
fn pools_of_reused_frames_serve_again() {
    let mut port = open("vdev:net_null", 1);
    for round in 0..3 * FRAMES_MAX {
        let len = 1514 - round;
        let id = port.tx[0]
            .register(&frame(round, len))
            .expect("there is room");
        for _ in 0..10_000 {
            let slot = port.tx[0].reuse(0, id, len).expect("net_null takes all");
            assert!(slot == frame(round, len));
        }
        port.tx[0].flush();
        port.tx[0].unregister(id);
    }
}

#[test]
fn queues_move_between_threads_and_devices_end_with_their_last_queue() {
    for _ in 0..3 {
        let port = open("vdev:net_ring7", 2);
        let (tx, mut rx) = port.into_queues();
        let threads = tx.into_iter().map(|mut tx| {
            std::thread::spawn(move || {
                (0..500).for_each(|number| assert!(send(&mut tx, &frame(number, 64))));
                tx.flush();
                assert!(!tx.has_unsent());
            })
        });
        threads.for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(received(&mut rx[0]).len(), 1000);
    }
}

#[test]
fn threads_share_the_queues_of_a_device_that_has_too_few() {
    // A ring of DPDK's has 16.
    let port = open("vdev:net_ring", 40);
    assert_eq!(port.tx.len(), 40);
    let (tx, mut rx) = port.into_queues();
    let threads = tx.into_iter().enumerate().map(|(number, mut tx)| {
        std::thread::spawn(move || {
            (0..20).for_each(|_| assert!(send(&mut tx, &frame(number, 64))));
            tx.flush();
            assert!(!tx.has_unsent());
        })
    });
    threads.for_each(|thread| thread.join().expect("no panic"));
    let found = received(&mut rx[0]);
    for number in 0..40 {
        let of = found.iter().filter(|bytes| **bytes == frame(number, 64));
        assert_eq!(of.count(), 20, "frames of thread {number}");
    }
}

#[test]
fn what_one_end_of_rings_sends_the_other_receives() {
    let mut ends = open_pair("both_ways", [2, 3], 1);
    let longest = ends[0].capabilities().frame_bytes_max;
    assert_eq!(longest, ends[1].capabilities().frame_bytes_max);
    for (from, queue) in [(0, 0), (1, 2), (0, 1), (1, 0), (1, 1)] {
        let lengths = (14..150).chain([1514, longest]);
        let frames: Vec<_> = lengths.map(|len| frame(len + queue, len)).collect();
        let tx = &mut ends[from].tx[queue];
        assert!(frames.iter().all(|bytes| send(tx, bytes)));
        tx.flush();
        assert_eq!(received(&mut ends[from].rx[0]), Vec::<Vec<u8>>::new());
        assert!(received(&mut ends[1 - from].rx[0]) == frames);
    }
}

#[test]
fn frames_on_rings_stay_on_the_queue_of_their_number() {
    // Two threads that send and one more, as with flows; two receive queues.
    let mut ends = open_pair("queues", [3, 3], 2);
    for end in &ends {
        assert_eq!(end.rx.len(), 2);
        assert!(matches!(end.distribution, RxDistribution::ByTxQueue));
    }
    for queue in 0..3 {
        assert!(send(&mut ends[0].tx[queue], &frame(queue, 60)));
        ends[0].tx[queue].flush();
        assert_eq!(received(&mut ends[1].rx[queue % 2]), [frame(queue, 60)]);
    }
    // More threads than rings share them, and nobody knows which ring is whose.
    let mut ends = open_pair("many", [1, 17], 2);
    assert!(matches!(ends[0].distribution, RxDistribution::Unknown(_)));
    assert!(matches!(ends[1].distribution, RxDistribution::ByTxQueue));
    assert_eq!((ends[0].rx.len(), ends[1].rx.len()), (1, 1));
    for (number, tx) in ends[1].tx.iter_mut().enumerate() {
        assert!(send(tx, &frame(number, 60)));
        tx.flush();
    }
    assert_eq!(received(&mut ends[0].rx[0]).len(), 17);
}

#[test]
fn payloads_cross_rings_where_they_are() {
    let [mut near, mut far] = open_pair("payloads", [1, 1], 1);
    let bytes: Arc<[u8]> = frame(5, 20_000).into();
    let head = frame(6, 66);
    let mut sent = Vec::new();
    for round in 0..9_000_usize {
        // By turns with others, short and long; more than there are mbufs.
        let (offset, len) = (round % 7_000, 1 + round * 31 % 9_000);
        let payload = SharedPayload {
            bytes: &bytes,
            offset,
            len,
            sum: round as u16,
        };
        let slot = near.tx[0].slot_sharing(0, head.len(), payload);
        slot.expect("there is room").copy_from_slice(&head);
        sent.push(Some((offset, len, round as u16)));
        if round % 3 == 0 {
            assert!(send(&mut near.tx[0], &frame(round, 60 + round % 300)));
            sent.push(None);
        }
        if round % 50 != 49 {
            continue;
        }
        near.tx[0].flush();
        let mut expected = sent.drain(..);
        let is_one_by_one = round % 100 == 99;
        if is_one_by_one {
            far.rx[0].receive(0, usize::MAX, |_, found| match expected.next() {
                Some(Some((offset, len, _))) => {
                    assert!(found[..66] == head && found[66..] == bytes[offset..][..len]);
                }
                other => assert_eq!(other, Some(None)),
            });
            continue;
        }
        far.rx[0].receive_split(0, usize::MAX, |burst| {
            for found in burst {
                let Some(Some((offset, len, sum))) = expected.next() else {
                    assert!(!found.is_split());
                    continue;
                };
                assert_eq!((found.head, found.payload_sum), (&head[..], sum));
                assert_eq!(
                    found.payload.as_ptr_range(),
                    bytes[offset..][..len].as_ptr_range()
                );
            }
        });
        assert_eq!(expected.next(), None);
    }
    assert_eq!(Arc::strong_count(&bytes), 2);
}

#[test]
fn payloads_are_let_go_when_all_frames_were_received() {
    let [mut near, mut far] = open_pair("let_go", [1, 1], 1);
    let bytes: Arc<[u8]> = frame(1, 2_000).into();
    let send = |tx: &mut super::DpdkTx| {
        let (len, sum, offset) = (1_000, 0, 0);
        let payload = SharedPayload {
            bytes: &bytes,
            offset,
            len,
            sum,
        };
        tx.slot_sharing(0, 66, payload)
            .expect("there is room")
            .fill(0);
    };
    let tx = &mut near.tx[0];
    (0..3).for_each(|_| send(tx));
    tx.forget_payloads();
    tx.flush();
    assert_eq!(Arc::strong_count(&bytes), 2);
    far.rx[0].receive(0, 2, |_, _| {});
    tx.flush();
    assert_eq!(Arc::strong_count(&bytes), 2, "one is under way");
    far.rx[0].receive(0, 2, |_, _| {});
    tx.flush();
    assert_eq!(Arc::strong_count(&bytes), 1);
    // Frames outlive who sent them.
    send(tx);
    tx.flush();
    drop(near);
    assert_eq!(Arc::strong_count(&bytes), 2);
    far.rx[0].receive_split(0, 9, |burst| assert_eq!(burst[0].payload, &bytes[..1_000]));
    drop(far);
    assert_eq!(Arc::strong_count(&bytes), 1);
}

#[test]
fn a_full_ring_has_no_room_and_loses_nothing() {
    let [mut near, mut far] = open_pair("full", [1, 1], 1);
    // Short frames are as many as there are mbufs for them, others as fit.
    for (len, least) in [(60, 512), (1000, 2047), (60, 512)] {
        let mut sent = 0;
        while send(&mut near.tx[0], &frame(sent, len)) {
            sent += 1;
            assert!(sent < 100_000, "a ring is full some day");
        }
        assert!(!near.tx[0].has_room(0, len));
        assert!(sent >= least, "{sent} of {len} bytes");
        let mut arrived = received(&mut far.rx[0]);
        near.tx[0].flush();
        assert!(!near.tx[0].has_unsent());
        arrived.extend(received(&mut far.rx[0]));
        let expected: Vec<_> = (0..sent).map(|number| frame(number, len)).collect();
        assert!(arrived == expected);
    }
}

#[test]
fn rings_that_are_not_empty_give_all_memory_back() {
    // What is in the rings, and registered frames too; more often than DPDK has memory for.
    for round in 0..30 {
        let mut ends = open_pair("again", [2, 2], 1);
        let id = ends[0].tx[0].register(&frame(round, 9000));
        let id = id.expect("there is room");
        assert_eq!(ends[0].tx[0].repeat(0, id, 500), 500);
        assert!(send(&mut ends[1].tx[1], &frame(round, 60)));
        ends.iter_mut()
            .flat_map(|end| &mut end.tx)
            .for_each(TxQueue::flush);
        assert_eq!(ends[1].rx[0].receive(0, 40, |_, _| {}), 40);
    }
}

#[test]
fn a_queue_that_is_always_full_holds_up_no_other() {
    let [mut near, mut far] = open_pair("turns", [2, 1], 1);
    for tx in &mut near.tx {
        (0..200).for_each(|number| assert!(send(tx, &frame(number, 60))));
        tx.flush();
    }
    let mut read = |budget| {
        let mut numbers = Vec::new();
        far.rx[0].receive(0, budget, |_, bytes| {
            let number = (0..200).find(|number| bytes == frame(*number, 60));
            numbers.push(number.expect("one of them"));
        });
        numbers
    };
    let thirty: Vec<usize> = (0..30).collect();
    assert_eq!((read(30), read(30)), (thirty.clone(), thirty));
    assert_eq!(read(500).len(), 340);
}

#[test]
fn two_pairs_of_one_name_are_refused() {
    let first = open_pair("twice", [1, 1], 1);
    let second = DpdkPort::open_pair("twice", &[], [QueueCounts::ONE; 2]);
    let error = second.expect_err("the name is taken").to_string();
    assert!(
        error.contains("'ring:twice'") && error.contains("another name"),
        "{error}"
    );
    drop(first);
    open_pair("twice", [1, 1], 1);
}

#[test]
fn a_device_that_shares_out_has_a_reader_a_queue_and_a_symmetric_key() {
    let queues = QueueCounts {
        rx: 3,
        ..QueueCounts::ONE
    };
    let open = |text| DpdkPort::open(&device(text), &[], queues).expect("needs no hardware");
    let port = open("vdev:net_null,no-rx=0,size=60");
    assert_eq!(port.rx.len(), 3);
    let (key, has_ports) = port
        .control
        .device
        .hash_key()
        .expect("net_null keeps a key");
    assert_eq!((key, has_ports), (symmetric_key(40), true));
    let RxDistribution::Rss { rss, queues: 3 } = &port.distribution else {
        panic!("{:?}", port.distribution);
    };
    // Queues stand in the table by turns.
    let by_turns: Vec<u16> = (0..rss.table().len())
        .map(|entry| (entry % 3) as u16)
        .collect();
    assert_eq!(rss.table(), by_turns);
    for mut rx in port.rx {
        assert_eq!(
            rx.receive(0, 10, |_, bytes| assert_eq!(bytes.len(), 60)),
            10
        );
    }
    // Others are read by one, whatever was wanted.
    let port = open("vdev:net_ring");
    assert_eq!(port.rx.len(), 1);
    assert!(matches!(port.distribution, RxDistribution::Unknown(_)));
}

#[test]
fn dpdk_leaves_no_directory_behind() {
    let _port = open("vdev:net_null", 1);
    // SAFETY: DPDK was started by the line above; the text ends with a zero and stays.
    let directory = unsafe { CStr::from_ptr(ffi::rte_eal_get_runtime_dir()) };
    let directory = directory.to_str().expect("a plain path");
    assert!(directory.ends_with("/allosaur"), "{directory}");
    assert!(!std::path::Path::new(directory).exists(), "{directory}");
}

#[test]
fn errors_name_the_device_and_the_remedy() {
    let error = |text: &str, pci: &[String]| {
        let error = DpdkPort::open(&device(text), pci, QueueCounts::ONE).expect_err(text);
        error.to_string()
    };
    let unknown = error("vdev:net_nonsense,a=1", &[]);
    assert!(unknown.contains("'vdev:net_nonsense,a=1'"), "{unknown}");
    assert!(unknown.contains("guide of network drivers"), "{unknown}");
    let twice = open("vdev:net_null9", 1);
    let second = error("vdev:net_null9", &[]);
    assert!(second.contains("another port of this process"), "{second}");
    drop(twice);
    let absent = error("pci:0000:ff:1f.7", &["0000:ff:1f.7".to_owned()]);
    assert!(absent.contains("no such PCI device"), "{absent}");
    let late = Eal::start(&["0000:ff:1f.7".to_owned()]);
    let (_, remedy) = late.err().expect("DPDK was started without it");
    assert!(remedy.contains("another server"), "{remedy}");
}
