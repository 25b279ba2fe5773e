//! The rings by which the emulated clients of data threads tell each other what they know of a namespace that
//! stands on several.
//!
//! Messages are made when there is room for them: while another thread stands still, what is told of waits in
//! the state of the clients, and none is lost.

use allosaur_emulation::shard_message::ShardMessage;
use allosaur_engine::time::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::emulation::EmulatedClients;
use crate::threads::waker::Waker;

/// Messages from one thread to another that it has not taken.
const MESSAGES: usize = 256;
/// Messages of a thread that are taken before other work has its turn.
const BUDGET: usize = 64;

/// The ways of a data thread's clients to those of others.
#[derive(Debug, Default)]
pub struct ShardLinks {
    /// To each thread; none to itself.
    to: Vec<Option<(Producer<ShardMessage>, Waker)>>,
    from: Vec<Consumer<ShardMessage>>,
    /// There was no room for it.
    unsent: Option<ShardMessage>,
}

/// Those of each of the data threads that the wakers wake.
pub fn shard_links(wakers: &[Waker]) -> Vec<ShardLinks> {
    let mut all: Vec<ShardLinks> = wakers.iter().map(|_| ShardLinks::default()).collect();
    for from in 0..all.len() {
        for (to, waker) in wakers.iter().enumerate() {
            if from == to {
                all[from].to.push(None);
                continue;
            }
            let (messages, received) = RingBuffer::new(MESSAGES);
            all[from].to.push(Some((messages, waker.clone())));
            all[to].from.push(received);
        }
    }
    all
}

impl ShardLinks {
    /// Gives clients what others tell them. Returns how much it was.
    #[inline]
    pub(super) fn receive(&mut self, now: Nanos, clients: &mut EmulatedClients) -> u64 {
        let mut taken = 0;
        for ring in &mut self.from {
            for _ in 0..BUDGET {
                let Ok(message) = ring.pop() else { break };
                clients.handle_shard_message(now, message);
                taken += 1;
            }
        }
        taken
    }

    /// Tells others what clients have to say, as far as there is room. Returns how much it was.
    #[inline]
    pub(super) fn send(&mut self, clients: &mut EmulatedClients) -> u64 {
        let mut sent = 0;
        while let Some(message) = self.unsent.take().or_else(|| clients.poll_shard_message()) {
            let link = self.to.get_mut(message.to as usize);
            let Some((ring, waker)) = link.and_then(Option::as_mut) else {
                debug_assert!(false, "a shard has no message to itself: {message:?}");
                continue;
            };
            let pushed = ring.push(message);
            waker.wake();
            if let Err(rtrb::PushError::Full(message)) = pushed {
                self.unsent = Some(message);
                break;
            }
            sent += 1;
        }
        sent
    }

    /// Whether there was no room for a message.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent.is_some()
    }
}
