//! Emulated clients on any number of shards, as one emulation.

use std::sync::Arc;

use allosaur_api::Error;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::shards::{FrameRoute, FrameRouter, NamespaceReader, ShardMap, ShardedCall};
use allosaur_emulation::transmit::Transmit;
use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::Nanos;
use serde_json::{Value, json};

/// Ports of which each shard has a part.
const PORTS: usize = 8;
/// Clients of a part of a call.
const PART: usize = 2;

/// Shards that are driven as one.
pub(crate) struct Sharded {
    map: Arc<ShardMap>,
    router: FrameRouter,
    shards: Vec<Emulation>,
    reader: NamespaceReader,
    handle: Value,
    /// Parts of calls that each shard has done.
    pub(crate) parts: Vec<usize>,
}

impl Sharded {
    /// So many of them, among which all clients are scattered.
    pub(crate) fn new(settings: &Settings, now: Nanos, shards: usize) -> Sharded {
        let map = ShardMap::new(vec![(0..shards).collect(); PORTS], shards);
        let map = Arc::new(map.with_neighbors(1));
        let shard = |shard| {
            let settings = Settings {
                shard,
                shards: Some(Arc::clone(&map)),
                ..settings.clone()
            };
            Emulation::new(settings, now)
        };
        let mut sharded = Sharded {
            router: FrameRouter::new(Arc::clone(&map)),
            map: Arc::clone(&map),
            shards: (0..shards as u32).map(shard).collect(),
            reader: NamespaceReader::default(),
            handle: Value::Null,
            parts: vec![0; shards],
        };
        let hello = json!({"name": "EMU", "major": 1, "minor": 1});
        let reply = sharded.handle_request(now, "api_sync_v2", &hello);
        sharded.handle = reply.expect("the version is right")["api_h"].take();
        sharded
    }

    pub(crate) fn handle_request(
        &mut self,
        now: Nanos,
        method: &str,
        params: &Value,
    ) -> Result<Value, Error> {
        let mut params = params.clone();
        if let Value::Object(params) = &mut params {
            params.insert("api_h".to_owned(), self.handle.clone());
        }
        let call = RpcCall::new(method, params);
        let mut call = ShardedCall::new(&self.map, &self.reader, call);
        loop {
            let (shard, part) = call.poll_part(PART).expect("it is not over");
            self.parts[shard] += 1;
            let reply = self.shards[shard].handle_call(now, part);
            self.exchange(now);
            if let Some(reply) = call.handle_reply(reply, &mut self.reader) {
                return reply;
            }
        }
    }

    pub(crate) fn handle_frame(&mut self, now: Nanos, port: u16, frame: &[u8]) {
        for (shard, emulation) in self.shards.iter_mut().enumerate() {
            while let Some(placement) = emulation.poll_placement() {
                self.router.handle_placement(shard, placement);
            }
        }
        match self.router.route(port, frame) {
            FrameRoute::One(shard) => self.shards[shard].handle_frame(now, port, frame),
            FrameRoute::All { counting } => {
                for (shard, emulation) in self.shards.iter_mut().enumerate() {
                    if shard == counting {
                        emulation.handle_frame(now, port, frame);
                    } else if self.router.has_copy(port, counting, shard) {
                        emulation.handle_copy(now, port, frame);
                    }
                }
            }
        }
        self.exchange(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        self.shards
            .iter_mut()
            .for_each(|shard| shard.handle_timeout(now));
        self.exchange(now);
    }

    /// Hands over what shards tell each other, until all is told.
    fn exchange(&mut self, now: Nanos) {
        while let Some(message) = self
            .shards
            .iter_mut()
            .find_map(Emulation::poll_shard_message)
        {
            self.shards[message.to as usize].handle_shard_message(now, message);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        self.shards.iter().filter_map(Emulation::poll_timeout).min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        let place = self.shards.iter().position(Emulation::has_transmit)?;
        self.shards[place].poll_transmit()
    }
}
