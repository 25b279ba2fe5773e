//! The messages of all peers, and whose turn it is.
//!
//! The messages of one peer are answered in order; of several peers each has a message done in turn.
//! A batch of up to 512 requests is done whole, so nobody sees half of it, unless one of its
//! requests has to wait; a longer one lets the others have their turns in between. Who waits for a
//! reply that is pending, or for a long text, holds up nobody else.

use std::collections::{HashMap, VecDeque};

use allosaur_api::exchange::Next;
use allosaur_api::limits::{MESSAGES_MAX, MESSAGES_PER_PEER_MAX};
use allosaur_api::{Dialect, Error, Exchange};
use serde_json::Value;

use super::conversion::{frame_of, read_frame};
use super::{Conversion, Converted};
use crate::control::PendingId;
use crate::transport::{Codec, Envelope, Message};

/// Requests of a batch that are done before others have their turn.
const TURN_REQUESTS: usize = 512;
/// New messages that go before a batch that has had a turn.
const NEW_BEFORE_OLD: usize = 64;
/// Long messages that are read and whose turn has not come.
const READ_AHEAD_MAX: usize = 8;

/// Who sends messages: the number of its transport, and its name there.
pub type Peer = (usize, Vec<u8>);

/// All messages that are not answered.
#[derive(Debug)]
pub struct Peers<D: Dialect> {
    queues: HashMap<Peer, Queue<D>>,
    /// Those whose next request can be done.
    turns: VecDeque<Peer>,
    /// The one of whose message the last request was, which goes on with it.
    current: Option<Peer>,
    /// Requests of it that were done in its turn.
    done_in_turn: usize,
    /// Those whose batches have had a turn and go on. New messages go before them.
    long_batches: VecDeque<Peer>,
    /// New messages that did, one after the other.
    went_before: usize,
    /// Long messages that are being read or have been, and whose first request was not given.
    read_ahead: usize,
    /// Bytes of replies to messages that are not answered.
    reply_bytes: usize,
    pending: HashMap<PendingId, Peer>,
    messages: usize,
    replies: VecDeque<(usize, Envelope, Vec<u8>)>,
    codec: Codec,
    /// Those that take long.
    conversions: VecDeque<(Peer, Conversion<D>)>,
}

/// The messages of one peer, of which the first is being answered.
#[derive(Debug)]
struct Queue<D: Dialect> {
    /// Nothing while another thread reads or writes it.
    exchange: Option<Exchange<D>>,
    /// It is counted in [`Peers::read_ahead`].
    is_ahead: bool,
    from: Envelope,
    later: VecDeque<Message>,
}

impl<D: Dialect> Peers<D> {
    /// Nobody yet; `codec` knows how large a message may be.
    pub fn new(codec: Codec) -> Peers<D> {
        Peers {
            queues: HashMap::new(),
            turns: VecDeque::new(),
            current: None,
            done_in_turn: 0,
            long_batches: VecDeque::new(),
            went_before: 0,
            read_ahead: 0,
            reply_bytes: 0,
            pending: HashMap::new(),
            messages: 0,
            replies: VecDeque::new(),
            codec,
            conversions: VecDeque::new(),
        }
    }

    /// Takes a message that has arrived by a transport.
    pub fn receive(&mut self, transport: usize, message: Message) {
        let peer = (transport, message.from.peer.clone());
        let queue = self.queues.get_mut(&peer);
        let waiting = queue.as_ref().map_or(0, |queue| 1 + queue.later.len());
        if waiting >= MESSAGES_PER_PEER_MAX || self.messages >= MESSAGES_MAX {
            let (frame, left_out) = (message.frame, message.left_out);
            let mut exchange: Exchange<D> = read_frame(&mut self.codec, frame, left_out);
            exchange.refuse(&too_many(waiting));
            let frame = frame_of(&mut self.codec, exchange);
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
    pub fn poll_conversion(&mut self) -> Option<(Peer, Conversion<D>)> {
        let is_due = |conversion: &Conversion<D>| match conversion {
            Conversion::Read(..) => self.read_ahead < READ_AHEAD_MAX,
            Conversion::Write(_) => true,
        };
        let mut conversions = self.conversions.iter();
        let due = conversions.position(|(_, conversion)| is_due(conversion))?;
        let (peer, conversion) = self.conversions.remove(due)?;
        if let Some(queue) = self.queues.get_mut(&peer) {
            queue.is_ahead = matches!(conversion, Conversion::Read(..));
            self.read_ahead += usize::from(queue.is_ahead);
        }
        Some((peer, conversion))
    }

    /// Whether such a text is under way.
    pub fn is_converting(&self) -> bool {
        self.queues.values().any(|queue| queue.exchange.is_none())
    }

    /// A message of a peer was read, or the reply to it is written.
    pub fn handle_converted(&mut self, peer: Peer, converted: Converted<D>) {
        match converted {
            Converted::Read(exchange) => {
                if let Some(queue) = self.queues.get_mut(&peer) {
                    self.reply_bytes += exchange.reply_bytes();
                    queue.exchange = Some(exchange);
                    self.turns.push_back(peer);
                }
            }
            Converted::Written(frame) => self.reply(peer, frame),
        }
    }

    /// Whether any request can be done.
    pub fn is_ready(&self) -> bool {
        self.current.is_some() || !self.turns.is_empty() || !self.long_batches.is_empty()
    }

    /// Whose turn it is.
    fn next_turn(&mut self) -> Option<Peer> {
        if let Some(peer) = self.current.take() {
            return Some(peer);
        }
        self.done_in_turn = 0;
        let is_new = self.long_batches.is_empty() || self.went_before < NEW_BEFORE_OLD;
        if let Some(peer) = is_new.then(|| self.turns.pop_front()).flatten() {
            self.went_before += 1;
            return Some(peer);
        }
        self.went_before = 0;
        self.long_batches
            .pop_front()
            .or_else(|| self.turns.pop_front())
    }

    /// The next request to do, and whose it is: [`Peers::answer`] or [`Peers::wait`] must follow. There
    /// may be none now, though it [is ready](Peers::is_ready): then new messages shall be received.
    pub fn next_request(&mut self) -> Option<(Peer, D::Request)> {
        while let Some(peer) = self.next_turn() {
            let queue = self.queues.get_mut(&peer)?;
            let exchange = queue.exchange.as_mut()?;
            if std::mem::take(&mut queue.is_ahead) {
                self.read_ahead -= 1;
            }
            let before = exchange.reply_bytes();
            exchange.refuse_beyond_limits(self.reply_bytes);
            let next = exchange.next_within(TURN_REQUESTS);
            self.reply_bytes += exchange.reply_bytes() - before;
            match next {
                Next::Request(request) => return Some((peer, request)),
                Next::Pause => {
                    self.long_batches.push_back(peer);
                    return None;
                }
                Next::Done => self.finish(peer),
            }
        }
        None
    }

    /// Answers the request of a peer.
    pub fn answer(&mut self, peer: Peer, reply: Result<Value, Error>) {
        let queue = self.queues.get_mut(&peer);
        let Some(exchange) = queue.and_then(|queue| queue.exchange.as_mut()) else {
            return;
        };
        let before = exchange.reply_bytes();
        exchange.answer(reply);
        self.reply_bytes += exchange.reply_bytes() - before;
        self.done_in_turn += 1;
        if exchange.is_done() {
            self.finish(peer);
        } else if self.done_in_turn < TURN_REQUESTS && self.current.is_none() {
            // Nobody comes in between.
            self.current = Some(peer);
        } else {
            self.long_batches.push_back(peer);
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
            self.reply_bytes -= exchange.reply_bytes();
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
            is_ahead: false,
            from: message.from,
            later,
        };
        self.queues.insert(peer.clone(), queue);
        self.convert(peer, Conversion::Read(message.frame, message.left_out));
    }

    /// Does it now, unless it takes long.
    fn convert(&mut self, peer: Peer, conversion: Conversion<D>) {
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
    use allosaur_api::MainDialect;
    use allosaur_api::exchange::TEXT_BYTES_SHORT;
    use serde_json::json;

    type MainPeers = Peers<MainDialect>;

    fn main_peers() -> MainPeers {
        Peers::new(Codec::default())
    }

    fn request(id: u64) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {}})
    }

    fn send(peers: &mut MainPeers, name: &str, message: &Value) {
        let from = Envelope {
            peer: name.as_bytes().to_vec(),
            ..Envelope::default()
        };
        let frame = message.to_string().into_bytes();
        let left_out = 0;
        let message = Message {
            from,
            frame,
            left_out,
        };
        peers.receive(0, message);
    }

    /// Who has the turn.
    fn turn(peers: &mut MainPeers) -> Option<Peer> {
        peers.next_request().map(|(peer, _)| peer)
    }

    /// Names of senders and ids of the replies to them, in order.
    fn replies(peers: &mut MainPeers) -> Vec<(String, Value)> {
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

    /// Does what takes long, and nothing else.
    fn read_all(peers: &mut MainPeers) {
        while let Some((peer, conversion)) = peers.poll_conversion() {
            peers.handle_converted(peer, conversion.run(&mut Codec::default()));
        }
    }

    #[test]
    fn a_batch_of_what_is_no_request_lets_others_have_their_turns() {
        let mut peers = main_peers();
        let nonsense = vec![5; 3 * TURN_REQUESTS];
        send(&mut peers, "odd", &json!(nonsense));
        assert_eq!(turn(&mut peers), None);
        assert!(peers.is_ready());
        send(&mut peers, "short", &request(7));
        let short = turn(&mut peers).expect("a request");
        peers.answer(short, Ok(json!({})));
        assert_eq!(replies(&mut peers), [reply("short", json!(7))]);
        while peers.is_ready() {
            assert_eq!(turn(&mut peers), None);
        }
        read_all(&mut peers);
        let answered = reply("odd", vec![Value::Null; nonsense.len()].into());
        assert_eq!(replies(&mut peers), [answered]);
    }

    fn reply(name: &str, ids: Value) -> (String, Value) {
        (name.to_owned(), ids)
    }

    #[test]
    fn who_waits_holds_up_nobody_else_and_keeps_the_order_of_its_own() {
        let mut peers = main_peers();
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
    fn a_batch_of_one_turn_is_done_whole_unless_it_waits() {
        let mut peers = main_peers();
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
    fn a_long_batch_lets_others_have_their_turns() {
        let mut peers = main_peers();
        let batch: Vec<Value> = (0..3 * TURN_REQUESTS as u64).map(request).collect();
        for name in ["long", "also long"] {
            send(&mut peers, name, &json!(batch));
        }
        read_all(&mut peers);
        send(&mut peers, "short", &request(7));
        for done in 0.. {
            assert!(done <= 2 * TURN_REQUESTS, "others wait for whole batches");
            let peer = turn(&mut peers).expect("a request");
            let is_short = peer.1 == b"short";
            peers.answer(peer, Ok(json!({})));
            if is_short {
                break;
            }
        }
        // Even without an end of new ones, batches go on.
        let mut news = 0;
        while peers.long_batches.len() == 2 {
            assert!(news <= 2 * NEW_BEFORE_OLD, "batches do not go on");
            send(&mut peers, "new", &request(news as u64));
            let peer = turn(&mut peers).expect("a request");
            peers.answer(peer, Ok(json!({})));
            news += 1;
        }
        let _ = replies(&mut peers);
        while let Some(peer) = turn(&mut peers) {
            peers.answer(peer, Ok(json!({})));
        }
        read_all(&mut peers);
        let ids = |name: &str| reply(name, batch.iter().map(|one| one["id"].clone()).collect());
        let mut answered = replies(&mut peers);
        answered.retain(|(name, _)| name != "new");
        assert!(answered == [ids("long"), ids("also long")]);
        assert!(peers.queues.is_empty() && peers.reply_bytes == 0);
    }

    #[test]
    fn few_long_messages_are_read_before_their_turn() {
        let mut peers = main_peers();
        let mut asks = request(1);
        asks["params"]["text"] = json!("x".repeat(TEXT_BYTES_SHORT));
        let all = 3 * READ_AHEAD_MAX;
        for peer in 0..all {
            send(&mut peers, &peer.to_string(), &asks);
        }
        let (mut answered, mut read) = (0, Vec::new());
        while answered < all {
            while let Some(conversion) = peers.poll_conversion() {
                read.push(conversion);
            }
            assert!(read.len() <= READ_AHEAD_MAX && peers.read_ahead <= READ_AHEAD_MAX);
            let (peer, conversion) = read.pop().expect("one is read");
            peers.handle_converted(peer, conversion.run(&mut Codec::default()));
            let peer = turn(&mut peers).expect("a request");
            peers.answer(peer, Ok(json!({})));
            answered += 1;
        }
        assert!(peers.queues.is_empty() && peers.read_ahead == 0);
    }

    #[test]
    fn long_texts_hold_up_nobody_else_and_keep_the_order_of_their_own() {
        let long = "x".repeat(TEXT_BYTES_SHORT);
        let mut peers = main_peers();
        let mut asks = request(1);
        asks["params"]["text"] = json!(long);
        send(&mut peers, "slow", &asks);
        send(&mut peers, "slow", &request(2));
        let convert = |peers: &mut MainPeers, while_it_lasts: Value| {
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
        let mut peers = main_peers();
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
        let mut peers = main_peers();
        send(&mut peers, "odd", &json!([]));
        send(&mut peers, "odd", &json!(5));
        assert_eq!(turn(&mut peers), None);
        let answered = [reply("odd", Value::Null), reply("odd", Value::Null)];
        assert_eq!(replies(&mut peers), answered);
    }
}
