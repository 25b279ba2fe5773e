//! Payloads that the frames of a ring share: which the two sides know, by number.
//!
//! The producer numbers each when it is first used. It puts the payload into a queue beside the ring, and
//! a record into the ring that says so; the consumer takes one from the queue at each such record. So a
//! number means the same on both sides at the same place of the ring, and a frame takes no lock and
//! counts no reference. Each side keeps what it knows alive until all are forgotten, which is a record too.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Payloads that are known at once at most; frames of others have their bytes in the ring.
pub(super) const PAYLOADS_MAX: usize = 4096;

/// What the producer tells beside the ring.
#[derive(Debug)]
enum Message {
    /// The next number is for this one.
    Keep(Arc<[u8]>),
    /// Numbers begin anew.
    ForgetAll,
}

/// Messages that the consumer has not come to.
#[derive(Debug, Default)]
pub(super) struct Messages(Mutex<VecDeque<Message>>);

impl Messages {
    fn push(&self, message: Message) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push_back(message);
    }

    fn pop(&self) -> Option<Message> {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.pop_front()
    }
}

/// What the producer knows.
#[derive(Debug, Default)]
pub(super) struct SentPayloads {
    /// By their places in memory, which no other can have while they are kept here.
    numbers: HashMap<usize, (u32, Arc<[u8]>)>,
    /// The last one that was asked for: its place, and its number.
    last: Option<(usize, u32)>,
    /// All were forgotten, and the consumer is to be told.
    pub(super) has_forgotten: bool,
}

impl SentPayloads {
    /// The number of one that is known.
    #[inline]
    pub(super) fn number(&mut self, bytes: &Arc<[u8]>) -> Option<u32> {
        let place = bytes.as_ptr().addr();
        match self.last {
            Some((last, number)) if last == place => Some(number),
            _ => {
                let number = self.numbers.get(&place)?.0;
                self.last = Some((place, number));
                Some(number)
            }
        }
    }

    /// Whether there may be another one. Its bytes can be counted in 32 bits.
    pub(super) fn has_room(&self, bytes: &Arc<[u8]>) -> bool {
        self.numbers.len() < PAYLOADS_MAX && u32::try_from(bytes.len()).is_ok()
    }

    /// Numbers one; the ring gets a record for it.
    pub(super) fn keep(&mut self, bytes: &Arc<[u8]>, messages: &Messages) -> u32 {
        let number = self.numbers.len() as u32;
        let place = bytes.as_ptr().addr();
        self.numbers.insert(place, (number, Arc::clone(bytes)));
        messages.push(Message::Keep(Arc::clone(bytes)));
        number
    }

    /// Forgets all, here; [`tell_forgotten`](SentPayloads::tell_forgotten) follows before another is kept.
    pub(super) fn forget(&mut self) {
        self.has_forgotten |= !self.numbers.is_empty();
        self.numbers = HashMap::new();
        self.last = None;
    }

    /// Tells that all were forgotten; the ring gets a record for it.
    pub(super) fn tell_forgotten(&mut self, messages: &Messages) {
        self.has_forgotten = false;
        messages.push(Message::ForgetAll);
    }
}

/// What the consumer knows, by number.
#[derive(Debug, Default)]
pub(super) struct ReceivedPayloads(Vec<Arc<[u8]>>);

impl ReceivedPayloads {
    /// Takes the message that a record of the ring is for.
    #[cold]
    pub(super) fn take(&mut self, messages: &Messages) {
        match messages.pop() {
            Some(Message::Keep(bytes)) => self.0.push(bytes),
            Some(Message::ForgetAll) => self.0 = Vec::new(),
            None => unreachable!("a record has a message, which was there before it"),
        }
    }

    /// A slice of one.
    #[inline]
    pub(super) fn slice(&self, number: u32, offset: u32, len: u32) -> &[u8] {
        &self.0[number as usize][offset as usize..][..len as usize]
    }
}
