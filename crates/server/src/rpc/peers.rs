//! The messages of all peers, and whose turn it is.
//!
//! The messages of one peer are answered in order; of several peers each has a message done in turn.
//! A batch is done whole, so nobody sees half of it, unless one of its requests has to wait: who
//! waits for a reply that is pending, or for a long text, holds up nobody else.

use std::collections::{HashMap, VecDeque};

use allosaur_api::limits::{MESSAGES_MAX, MESSAGES_PER_PEER_MAX};
use allosaur_api::{Error, Request};
use serde_json::Value;

use super::{Conversion, Converted, Exchange};
use crate::control::PendingId;
use crate::transport::{Codec, Envelope, Message};

/// Who sends messages: the number of its transport, and its name there.
pub type Peer = (usize, Vec<u8>);

/// All messages that are not answered.
#[derive(Debug, Default)]
pub struct Peers {
    queues: HashMap<Peer, Queue>,
    /// Those whose next request can be done.
    turns: VecDeque<Peer>,
    pending: HashMap<PendingId, Peer>,
    messages: usize,
    replies: VecDeque<(usize, Envelope, Vec<u8>)>,
    codec: Codec,
    /// Those that take long.
    conversions: VecDeque<(Peer, Conversion)>,
}

/// The messages of one peer, of which the first is being answered.
#[derive(Debug)]
struct Queue {
    /// Nothing while another thread reads or writes it.
    exchange: Option<Exchange>,
    from: Envelope,
    later: VecDeque<Message>,
}

impl Peers {
    /// Takes a message that has arrived by a transport.
    pub fn receive(&mut self, transport: usize, message: Message) {
        let peer = (transport, message.from.peer.clone());
        let queue = self.queues.get_mut(&peer);
        let waiting = queue.as_ref().map_or(0, |queue| 1 + queue.later.len());
        if waiting >= MESSAGES_PER_PEER_MAX || self.messages >= MESSAGES_MAX {
            let mut exchange = Exchange::read(&mut self.codec, &message.frame);
            exchange.refuse(&too_many(waiting));
            let frame = exchange.into_frame(&mut self.codec);
            self.replies.push_back((transport, message.from, frame));
            return;
        }
        self.messages += 1;
        match queue {
            Some(queue) => queue.later.push_back(message),
            None => self.begin(peer, message, VecDeque::new()),
        }
    }

    /// The next text that takes long, and whose it is: another thread does it
    /// ([`Conversion::run`]), and [`Peers::handle_converted`] takes what comes of it.
    pub fn poll_conversion(&mut self) -> Option<(Peer, Conversion)> {
        self.conversions.pop_front()
    }

    /// Whether such a text is under way.
    pub fn is_converting(&self) -> bool {
        self.queues.values().any(|queue| queue.exchange.is_none())
    }

    /// A message of a peer was read, or the reply to it is written.
    pub fn handle_converted(&mut self, peer: Peer, converted: Converted) {
        match converted {
            Converted::Read(exchange) => {
                if let Some(queue) = self.queues.get_mut(&peer) {
                    queue.exchange = Some(exchange);
                    self.turns.push_back(peer);
                }
            }
            Converted::Written(frame) => self.reply(peer, frame),
        }
    }

    /// Whether any request can be done.
    pub fn is_ready(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The next request to do, and whose it is: [`Peers::answer`] or [`Peers::wait`] must follow.
    pub fn next_request(&mut self) -> Option<(Peer, Request)> {
        while let Some(peer) = self.turns.pop_front() {
            let exchange = self.queues.get_mut(&peer)?.exchange.as_mut()?;
            if let Some(request) = exchange.next_request() {
                return Some((peer, request));
            }
            self.finish(peer);
        }
        None
    }

    /// Answers the request of a peer.
    pub fn answer(&mut self, peer: Peer, reply: Result<Value, Error>) {
        let queue = self.queues.get_mut(&peer);
        let Some(exchange) = queue.and_then(|queue| queue.exchange.as_mut()) else {
            return;
        };
        exchange.answer(reply);
        if exchange.is_done() {
            self.finish(peer);
        } else {
            // Nobody comes in between.
            self.turns.push_front(peer);
        }
    }

    /// The request of a peer will be answered later.
    pub fn wait(&mut self, peer: Peer, pending: PendingId) {
        self.pending.insert(pending, peer);
    }

    /// Answers a request that waited.
    pub fn complete(&mut self, pending: PendingId, reply: Result<Value, Error>) {
        if let Some(peer) = self.pending.remove(&pending) {
            self.answer(peer, reply);
        }
    }

    /// The next message that is answered: its transport, who sent it, and the reply.
    pub fn poll_reply(&mut self) -> Option<(usize, Envelope, Vec<u8>)> {
        self.replies.pop_front()
    }

    /// All requests of a peer's first message are answered.
    fn finish(&mut self, peer: Peer) {
        let queue = self.queues.get_mut(&peer);
        if let Some(exchange) = queue.and_then(|queue| queue.exchange.take()) {
            self.convert(peer, Conversion::Write(exchange));
        }
    }

    /// A peer's first message is answered: the next has its turn.
    fn reply(&mut self, peer: Peer, frame: Vec<u8>) {
        let Some(Queue {
            from, mut later, ..
        }) = self.queues.remove(&peer)
        else {
            return;
        };
        self.messages -= 1;
        self.replies.push_back((peer.0, from, frame));
        if let Some(next) = later.pop_front() {
            self.begin(peer, next, later);
        }
    }

    fn begin(&mut self, peer: Peer, message: Message, later: VecDeque<Message>) {
        let queue = Queue {
            exchange: None,
            from: message.from,
            later,
        };
        self.queues.insert(peer.clone(), queue);
        self.convert(peer, Conversion::Read(message.frame));
    }

    /// Does it now, unless it takes long.
    fn convert(&mut self, peer: Peer, conversion: Conversion) {
        if conversion.is_long() {
            self.conversions.push_back((peer, conversion));
        } else {
            let converted = conversion.run(&mut self.codec);
            self.handle_converted(peer, converted);
        }
    }
}

fn too_many(of_peer: usize) -> Error {
    let (what, most) = match of_peer >= MESSAGES_PER_PEER_MAX {
        true => ("this client has", MESSAGES_PER_PEER_MAX),
        false => ("clients have", MESSAGES_MAX),
    };
    Error::execution(format!(
        "{what} {most} messages that are not answered, which is the most: wait for replies"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::TEXT_BYTES_SHORT;
    use serde_json::json;

    fn request(id: u64) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {}})
    }

    fn send(peers: &mut Peers, name: &str, message: &Value) {
        let from = Envelope {
            peer: name.as_bytes().to_vec(),
            ..Envelope::default()
        };
        let frame = message.to_string().into_bytes();
        peers.receive(0, Message { from, frame });
    }

    /// Who has the turn.
    fn turn(peers: &mut Peers) -> Option<Peer> {
        peers.next_request().map(|(peer, _)| peer)
    }

    /// Names of senders and ids of the replies to them, in order.
    fn replies(peers: &mut Peers) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some((_, to, text)) = peers.poll_reply() {
            let reply: Value = serde_json::from_slice(&text).expect("a reply is JSON");
            let ids = match reply.as_array() {
                Some(batch) => batch.iter().map(|one| one["id"].clone()).collect(),
                None => reply["id"].clone(),
            };
            all.push((String::from_utf8(to.peer).expect("a name"), ids));
        }
        all
    }

    fn reply(name: &str, ids: Value) -> (String, Value) {
        (name.to_owned(), ids)
    }

    #[test]
    fn who_waits_holds_up_nobody_else_and_keeps_the_order_of_its_own() {
        let mut peers = Peers::default();
        send(&mut peers, "slow", &json!([request(1), request(2)]));
        send(&mut peers, "slow", &request(3));
        let slow = turn(&mut peers).expect("a request");
        let pending = PendingId(1);
        peers.wait(slow, pending);
        for id in 10..12 {
            send(&mut peers, "quick", &request(id));
            let quick = turn(&mut peers).expect("a request");
            peers.answer(quick, Ok(json!({})));
        }
        assert!(!peers.is_ready());
        let quick = [reply("quick", json!(10)), reply("quick", json!(11))];
        assert_eq!(replies(&mut peers), quick);
        peers.complete(pending, Ok(json!({})));
        while let Some(slow) = turn(&mut peers) {
            peers.answer(slow, Ok(json!({})));
        }
        let slow = [reply("slow", json!([1, 2])), reply("slow", json!(3))];
        assert_eq!(replies(&mut peers), slow);
        assert!(peers.queues.is_empty() && peers.messages == 0);
    }

    #[test]
    fn a_batch_is_done_whole_unless_it_waits() {
        let mut peers = Peers::default();
        let batch: Vec<Value> = (0..100).map(request).collect();
        send(&mut peers, "long", &json!(batch));
        send(&mut peers, "short", &request(7));
        for _ in 0..50 {
            let long = turn(&mut peers).expect("a request");
            assert_eq!(long.1, b"long");
            peers.answer(long, Ok(json!({})));
        }
        let long = turn(&mut peers).expect("a request");
        peers.wait(long, PendingId(1));
        let short = turn(&mut peers).expect("a request");
        assert_eq!(short.1, b"short");
        peers.answer(short, Ok(json!({})));
        peers.complete(PendingId(1), Ok(json!({})));
        let long = turn(&mut peers).expect("a request");
        assert_eq!(long.1, b"long");
    }

    #[test]
    fn long_texts_hold_up_nobody_else_and_keep_the_order_of_their_own() {
        let long = "x".repeat(TEXT_BYTES_SHORT);
        let mut peers = Peers::default();
        let mut asks = request(1);
        asks["params"]["text"] = json!(long);
        send(&mut peers, "slow", &asks);
        send(&mut peers, "slow", &request(2));
        let convert = |peers: &mut Peers, while_it_lasts: Value| {
            let (slow, conversion) = peers.poll_conversion().expect("it is long");
            send(peers, "quick", &while_it_lasts);
            let quick = turn(peers).expect("a request");
            peers.answer(quick, Ok(json!({})));
            assert!(peers.is_converting() && !peers.is_ready());
            assert_eq!(
                replies(peers),
                [reply("quick", while_it_lasts["id"].clone())]
            );
            let converted = conversion.run(&mut Codec::default());
            peers.handle_converted(slow, converted);
        };
        convert(&mut peers, request(10));
        let (slow, asked) = peers.next_request().expect("it was read");
        assert_eq!(asked.params["text"], json!(long));
        peers.answer(slow, Ok(json!(long)));
        convert(&mut peers, request(11));
        assert_eq!(replies(&mut peers), [reply("slow", json!(1))]);
        let slow = turn(&mut peers).expect("the next request");
        peers.answer(slow, Ok(json!({})));
        assert_eq!(replies(&mut peers), [reply("slow", json!(2))]);
        assert!(peers.queues.is_empty() && peers.messages == 0);
    }

    #[test]
    fn more_messages_than_may_wait_are_refused_and_do_no_harm() {
        let mut peers = Peers::default();
        for id in 0..MESSAGES_PER_PEER_MAX as u64 + 2 {
            send(&mut peers, "eager", &request(id));
        }
        let most = MESSAGES_PER_PEER_MAX as u64;
        let refused = [most, most + 1].map(|id| reply("eager", json!(id)));
        assert_eq!(replies(&mut peers), refused);
        for peer in 1..2 * MESSAGES_MAX {
            send(&mut peers, &format!("peer {peer}"), &request(peer as u64));
        }
        assert_eq!(peers.messages, MESSAGES_MAX);
        let room = MESSAGES_MAX - MESSAGES_PER_PEER_MAX;
        assert_eq!(replies(&mut peers).len(), 2 * MESSAGES_MAX - 1 - room);
        let mut answered = 0;
        while let Some(peer) = turn(&mut peers) {
            peers.answer(peer, Ok(json!({})));
            answered += 1;
        }
        assert_eq!((answered, peers.messages), (MESSAGES_MAX, 0));
    }

    #[test]
    fn what_is_no_request_is_answered_in_its_turn() {
        let mut peers = Peers::default();
        send(&mut peers, "odd", &json!([]));
        send(&mut peers, "odd", &json!(5));
        assert_eq!(turn(&mut peers), None);
        let answered = [reply("odd", Value::Null), reply("odd", Value::Null)];
        assert_eq!(replies(&mut peers), answered);
    }
}
