//! ARP requests for clients on so many shards, each handed over to its shard by a copy:
//! `sharded_answers SHARDS [FRAMES]`. Count what each part costs with callgrind, by
//! `--toggle-collect='*hand_over*'` or `--toggle-collect='*answer_all*'`; it prints who answered how many.

use allosaur_emulation::shards::ShardMap;
use allosaur_emulation::{Emulation, Settings};
use serde_json::json;

/// VLANs, and clients of each.
const VLANS: u16 = 64;
const CLIENTS: u16 = 1000;
/// Bytes of each frame, and how many come between two looks of a shard.
const FRAME_BYTES: usize = 64;
const BURST: u64 = 64;

struct Shard {
    emulation: Emulation,
    /// Frames that were handed over, one behind the other, each of `FRAME_BYTES`.
    frames: Vec<u8>,
    answers: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (shards, frames) = (number(1) as usize, number(100_000));
    let map = ShardMap::new(vec![(0..shards).collect()], shards);
    let mut all: Vec<Shard> = (0..shards as u32).map(shard).collect();
    for vlan in 1..=VLANS {
        let owner = map.owner_of_frame(0, &arp_request(vlan, 0));
        add(&mut all[owner].emulation, vlan);
    }
    let requests: Vec<_> = (0..frames)
        .map(|n| arp_request(1 + n as u16 % VLANS, (n * 7919 % u64::from(CLIENTS)) as u16))
        .collect();
    for burst in requests.chunks(BURST as usize * shards) {
        hand_over(&map, &mut all, burst);
        all.iter_mut().for_each(answer_all);
    }
    let answers: Vec<_> = all.iter().map(|shard| shard.answers).collect();
    assert_eq!(answers.iter().sum::<u64>(), frames);
    println!("{answers:?}");
}

fn shard(shard: u32) -> Shard {
    let settings = Settings {
        shard,
        ..Settings::default()
    };
    Shard {
        emulation: Emulation::new(settings, 0),
        frames: Vec::new(),
        answers: 0,
    }
}

fn add(emulation: &mut Emulation, vlan: u16) {
    let tunnel = json!({"vport": 0, "tci": [vlan, 0]});
    let client = |number: u16| {
        let [high, low] = number.to_be_bytes();
        json!({"mac": [2, 0, 0, vlan, high, low], "ipv4": [10, 0, high, low], "plugs": {"arp": {}, "icmp": {}}})
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    for (method, params) in [
        ("ctx_add", json!({"tunnels": [tunnel]})),
        ("ctx_client_add", json!({"tun": tunnel, "clients": clients})),
    ] {
        emulation
            .handle_request(0, method, &params)
            .expect("they are new");
    }
    while emulation.poll_transmit().is_some() {}
}

fn arp_request(vlan: u16, client: u16) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 9, 9, 9, 0x81, 0]);
    frame.extend(vlan.to_be_bytes());
    frame.extend([
        8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 9, 9, 9, 10, 0, 255, 99,
    ]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0]);
    frame.extend(client.to_be_bytes());
    frame.resize(FRAME_BYTES, 0);
    frame
}

/// What the receive thread does.
#[inline(never)]
fn hand_over(map: &ShardMap, shards: &mut [Shard], frames: &[Vec<u8>]) {
    for frame in frames {
        let shard = &mut shards[map.owner_of_frame(0, frame)];
        shard.frames.extend_from_slice(frame);
    }
}

/// What a data thread does.
#[inline(never)]
fn answer_all(shard: &mut Shard) {
    let emulation = &mut shard.emulation;
    emulation.prefetch(0, shard.frames.chunks(FRAME_BYTES));
    for frame in shard.frames.chunks(FRAME_BYTES) {
        emulation.handle_frame(1, 0, frame);
    }
    shard.frames.clear();
    while emulation.poll_transmit().is_some() {
        shard.answers += 1;
    }
}
