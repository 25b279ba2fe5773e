//! Calls that are being done, a long one part after part: between two parts of one, others have their turns.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use allosaur_api::Error;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::shards::{NamespaceReader, ShardMap, ShardedCall};
use serde_json::Value;

use crate::control::PendingId;
use crate::emulation::{FAILED_MAX, PART_CLIENTS};

/// How long a data thread may take for one part of a call.
const PART_MAX: Duration = Duration::from_secs(30);
/// Parts that may be under way, so that a data thread need not wait for the next.
const PARTS_MAX: usize = FAILED_MAX;
/// Calls that are begun and not answered.
const CALLS_MAX: usize = 64;
/// Bytes of their texts; one that is alone may have any length. As values they take many times that.
const TEXT_BYTES_MAX: usize = 8 << 20;
const NO_ANSWER: &str = "a data thread does not answer: try again with less in one request, and look at \
                         the server's log if that does not help";

/// What came of a call.
pub(super) type Done = (PendingId, Result<Value, Error>);

/// A part of a call, for the data thread of a shard. Parts are answered in the order in which they were polled.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) of: PendingId,
    pub(super) shard: usize,
    pub(super) call: RpcCall,
}

/// The calls that are begun and not answered.
#[derive(Debug)]
pub(super) struct Calls {
    map: Arc<ShardMap>,
    reader: NamespaceReader,
    last: u64,
    running: HashMap<PendingId, Running>,
    /// Those with parts that are not under way.
    turns: VecDeque<PendingId>,
    /// Of which calls parts are under way, and to which shard, the earliest first. Calls that have failed
    /// are among them.
    under_way: VecDeque<(PendingId, usize)>,
    text_bytes: usize,
}

#[derive(Debug)]
struct Running {
    call: ShardedCall,
    text_bytes: usize,
    until: Instant,
}

impl Calls {
    /// None yet, for clients that are shared out by `map`.
    pub(super) fn new(map: Arc<ShardMap>) -> Calls {
        Calls {
            map,
            reader: NamespaceReader::default(),
            last: 0,
            running: HashMap::new(),
            turns: VecDeque::new(),
            under_way: VecDeque::new(),
            text_bytes: 0,
        }
    }

    /// Whether another may begin.
    pub(super) fn has_room(&self) -> bool {
        let is_full = self.running.len() >= CALLS_MAX || self.text_bytes > TEXT_BYTES_MAX;
        !is_full || self.running.is_empty()
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, call: RpcCall, now: Instant) -> PendingId {
        self.last += 1;
        let id = PendingId(self.last);
        let text_bytes = call.text_bytes;
        self.text_bytes += text_bytes;
        let running = Running {
            call: ShardedCall::new(&self.map, &self.reader, call),
            text_bytes,
            until: now + PART_MAX,
        };
        self.running.insert(id, running);
        self.turns.push_back(id);
        id
    }

    /// The next part to do, of the call whose turn it is.
    pub(super) fn poll_part(&mut self) -> Option<Part> {
        if self.under_way.len() >= PARTS_MAX {
            return None;
        }
        let of = self.turns.pop_front()?;
        let running = self.running.get_mut(&of)?;
        let (shard, call) = running.call.poll_part(PART_CLIENTS)?;
        if running.call.has_more() && !running.call.is_waiting() {
            self.turns.push_back(of);
        }
        self.under_way.push_back((of, shard));
        Some(Part { of, shard, call })
    }

    /// The shard of the earliest part that is under way.
    pub(super) fn next_shard(&self) -> Option<usize> {
        self.under_way.front().map(|(_, shard)| *shard)
    }

    /// The earliest part that is under way is done. The reply to a call is that of its last part, or of all,
    /// or the first error: what is behind it is not done.
    pub(super) fn handle_reply(
        &mut self,
        reply: Result<Value, Error>,
        now: Instant,
    ) -> Option<Done> {
        let (of, _) = self.under_way.pop_front()?;
        let running = self.running.get_mut(&of)?;
        running.until = now + PART_MAX;
        let was_waiting = running.call.is_waiting();
        match running.call.handle_reply(reply, &mut self.reader) {
            Some(reply) => Some(self.end(of, reply)),
            None => {
                if was_waiting {
                    self.turns.push_back(of);
                }
                None
            }
        }
    }

    /// When a data thread has taken too long.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.running.values().map(|running| running.until).min()
    }

    /// Gives up a call that a data thread takes too long for.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Done> {
        let mut running = self.running.iter();
        let (&late, _) = running.find(|(_, running)| running.until <= now)?;
        Some(self.end(late, Err(Error::execution(NO_ANSWER))))
    }

    /// Gives up any call: the server ends.
    pub(super) fn give_up(&mut self) -> Option<Done> {
        let any = *self.running.keys().next()?;
        Some(self.end(any, Err(Error::execution("the server ends"))))
    }

    fn end(&mut self, id: PendingId, reply: Result<Value, Error>) -> Done {
        if let Some(running) = self.running.remove(&id) {
            self.text_bytes -= running.text_bytes;
        }
        self.turns.retain(|other| *other != id);
        (id, reply)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn adding(clients: usize) -> RpcCall {
        let client = |number: usize| json!({"mac": [2, 0, 0, 0, number >> 8, number & 255]});
        let clients: Vec<Value> = (0..clients).map(client).collect();
        RpcCall::new("ctx_client_add", json!({ "clients": clients }))
    }

    /// Of which calls the parts are that can be given now.
    fn given(calls: &mut Calls) -> Vec<PendingId> {
        std::iter::from_fn(|| calls.poll_part())
            .map(|part| part.of)
            .collect()
    }

    #[test]
    fn a_short_call_is_done_between_the_parts_of_a_long_one() {
        let (mut calls, now) = (Calls::new(Arc::new(ShardMap::single())), Instant::now());
        let long = calls.begin(adding(100 * PART_CLIENTS), now);
        assert_eq!(given(&mut calls), [long; PARTS_MAX]);
        let short = calls.begin(RpcCall::new("ping", json!({})), now);
        let mut parts = PARTS_MAX;
        let mut done = Vec::new();
        while calls.running.contains_key(&short) {
            done.extend(calls.handle_reply(Ok(json!(true)), now));
            parts += given(&mut calls).len();
        }
        assert_eq!(done, [(short, Ok(json!(true)))]);
        assert!(parts <= 2 * PARTS_MAX + 2, "{parts} parts went before");
        let mut done = None;
        while done.is_none() {
            done = calls.handle_reply(Ok(json!(7)), now);
            parts += given(&mut calls).len();
        }
        assert_eq!((done, parts), (Some((long, Ok(json!(7)))), 101));
        assert_eq!(calls.poll_timeout(), None);
    }

    #[test]
    fn nothing_is_given_of_a_call_that_has_failed() {
        let (mut calls, now) = (Calls::new(Arc::new(ShardMap::single())), Instant::now());
        let failing = calls.begin(adding(100 * PART_CLIENTS), now);
        assert_eq!(given(&mut calls).len(), PARTS_MAX);
        let error = Err(Error::execution("no"));
        let done = calls.handle_reply(error.clone(), now);
        assert_eq!(done, Some((failing, error)));
        let next = calls.begin(adding(1), now);
        assert_eq!(given(&mut calls), [next]);
        // The replies to parts of the first are for none.
        let replies = (0..PARTS_MAX).filter_map(|_| calls.handle_reply(Ok(Value::Null), now));
        assert_eq!(replies.collect::<Vec<_>>(), [(next, Ok(Value::Null))]);
    }

    #[test]
    fn a_call_without_an_answer_is_given_up_and_no_other() {
        let (mut calls, now) = (Calls::new(Arc::new(ShardMap::single())), Instant::now());
        let late = calls.begin(adding(1), now);
        assert_eq!(given(&mut calls), [late]);
        let later = now + PART_MAX;
        let other = calls.begin(adding(1), later);
        assert_eq!(calls.poll_timeout(), Some(later));
        let (id, reply) = calls.handle_timeout(later).expect("one is late");
        assert!(reply.is_err_and(|error| error.to_string() == NO_ANSWER));
        assert_eq!((id, calls.handle_timeout(later)), (late, None));
        assert_eq!(given(&mut calls), [other]);
        assert_eq!(calls.handle_reply(Ok(json!(1)), later), None);
        let done = calls.handle_reply(Ok(json!(2)), later);
        assert_eq!(done, Some((other, Ok(json!(2)))));
    }

    #[test]
    fn calls_of_too_many_bytes_wait_but_one_may_have_any_length() {
        let (mut calls, now) = (Calls::new(Arc::new(ShardMap::single())), Instant::now());
        let mut huge = RpcCall::default();
        huge.text_bytes = 2 * TEXT_BYTES_MAX;
        assert!(calls.has_room());
        let first = calls.begin(huge, now);
        assert!(!calls.has_room());
        assert_eq!(given(&mut calls), [first]);
        calls.handle_reply(Ok(Value::Null), now);
        for _ in 0..CALLS_MAX {
            assert!(calls.has_room());
            calls.begin(RpcCall::default(), now);
        }
        assert!(!calls.has_room());
    }
}
