//! ARP requests for clients of one namespace on so many shards, each handed over to its shard by a copy:
//! `sharded_answers SHARDS [FRAMES]`. Count what each part costs with callgrind, by
//! `--toggle-collect='*hand_over*'` or `--toggle-collect='*answer_all*'`; it prints who answered how many.

use std::sync::Arc;

use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::shards::{FrameRoute, FrameRouter, NamespaceReader, ShardMap, ShardedCall};
use allosaur_emulation::{Emulation, Settings};
use serde_json::{Value, json};

/// The VLAN of the namespace, and its clients.
const VLAN: u16 = 1;
const CLIENTS: u16 = 64_000;
/// Clients that are added at once.
const PART: usize = 32;
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
    let map = Arc::new(ShardMap::new(vec![(0..shards).collect()], shards));
    let mut all: Vec<Shard> = (0..shards).map(|number| shard(&map, number)).collect();
    add(&map, &mut all);
    let mut router = FrameRouter::new(Arc::clone(&map));
    for (number, shard) in all.iter_mut().enumerate() {
        while let Some(placement) = shard.emulation.poll_placement() {
            router.handle_placement(number, placement);
        }
    }
    let requests: Vec<_> = (0..frames)
        .map(|n| arp_request(VLAN, (n * 7919 % u64::from(CLIENTS)) as u16))
        .collect();
    for burst in requests.chunks(BURST as usize * shards) {
        hand_over(&router, &mut all, burst);
        all.iter_mut().for_each(answer_all);
    }
    let answers: Vec<_> = all.iter().map(|shard| shard.answers).collect();
    assert_eq!(answers.iter().sum::<u64>(), frames);
    println!("{answers:?}");
}

fn shard(map: &Arc<ShardMap>, number: usize) -> Shard {
    let settings = Settings {
        shard: number as u32,
        shards: Some(Arc::clone(map)),
        ..Settings::default()
    };
    Shard {
        emulation: Emulation::new(settings, 0),
        frames: Vec::new(),
        answers: 0,
    }
}

fn add(map: &ShardMap, shards: &mut [Shard]) {
    let tunnel = json!({"vport": 0, "tci": [VLAN, 0]});
    let client = |number: u16| {
        let [high, low] = number.to_be_bytes();
        json!({"mac": [2, 0, 0, 0, high, low], "ipv4": [10, 0, high, low], "plugs": {"arp": {}, "icmp": {}}})
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    call(map, shards, "ctx_add", json!({"tunnels": [tunnel]}));
    let params = json!({"tun": tunnel, "clients": clients});
    call(map, shards, "ctx_client_add", params);
    for shard in shards {
        while shard.emulation.poll_transmit().is_some() {}
    }
}

fn call(map: &ShardMap, shards: &mut [Shard], method: &str, params: Value) {
    let mut reader = NamespaceReader::default();
    let call = RpcCall::new(method, params).admitted();
    let mut call = ShardedCall::new(map, &reader, call);
    loop {
        let (shard, part) = call.poll_part(PART).expect("it is not over");
        let reply = shards[shard].emulation.handle_call(0, part);
        if let Some(reply) = call.handle_reply(reply, &mut reader) {
            reply.expect("they are new");
            return;
        }
    }
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
fn hand_over(router: &FrameRouter, shards: &mut [Shard], frames: &[Vec<u8>]) {
    for frame in frames {
        let FrameRoute::One(shard) = router.route(0, frame) else {
            panic!("all have told where their clients are");
        };
        shards[shard].frames.extend_from_slice(frame);
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
