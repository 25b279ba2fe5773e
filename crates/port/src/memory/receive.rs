//! The receive queue of a memory port: the rings of the peer, and the link on the way.

use allosaur_packet::shared_payload::SplitFrame;

use super::link::{Link, Loss, Passage};
use super::police::Police;
use super::ring::Consumer;
use super::settings::LinkSettings;
use crate::{RxFrame, RxQueue};

/// Frames that the receive side takes from one ring before it looks at the next.
const FRAMES_PER_VISIT: usize = 64;

/// The receive queue of a memory port: reads the rings of the peer, and is the link.
#[derive(Debug)]
pub struct MemoryRx {
    rings: Vec<RingRx>,
    link: Link,
    police: Police,
    unlimited: bool,
    /// Whose turn it is.
    next_inlet: usize,
    lost_packets: u64,
    up: bool,
    /// A split frame in one piece, for who wants it so.
    scratch: Vec<u8>,
}

/// One ring of the peer.
#[derive(Debug)]
struct RingRx {
    /// Which of the peer's queues writes it.
    queue: usize,
    ring: Consumer,
    loss: Loss,
}

impl MemoryRx {
    /// Reads `rings`, in order of the peer's queues; `direction` is 0 or 1 and tells the two
    /// directions of a link apart.
    pub(super) fn new(rings: Vec<Consumer>, settings: &LinkSettings, direction: u64) -> MemoryRx {
        let ring = |(queue, ring)| RingRx {
            queue,
            ring,
            loss: Loss::new(settings, direction, queue as u64),
        };
        MemoryRx {
            rings: rings.into_iter().enumerate().map(ring).collect(),
            link: Link::new(settings),
            police: Police::new(settings),
            unlimited: settings.is_unlimited(),
            next_inlet: 0,
            lost_packets: 0,
            up: true,
            scratch: Vec::new(),
        }
    }

    /// Shares the peer's queues out over up to so many receive queues: the first queue of the peer
    /// to the first of them, the second to the second, and so on, by turns. A link with a rate, a
    /// delay or loss is one thing that all frames pass, so its queue stays whole.
    pub fn split(mut self, queues: usize) -> Vec<MemoryRx> {
        let queues = queues.clamp(1, self.rings.len().max(1));
        if queues == 1 || !self.unlimited {
            return vec![self];
        }
        let mut shares: Vec<Vec<RingRx>> = (0..queues).map(|_| Vec::new()).collect();
        for (number, ring) in self.rings.drain(..).enumerate() {
            shares[number % queues].push(ring);
        }
        let queue = |rings| MemoryRx {
            rings,
            link: self.link.clone(),
            police: self.police.clone(),
            lost_packets: std::mem::take(&mut self.lost_packets),
            scratch: Vec::new(),
            ..self
        };
        shares.into_iter().map(queue).collect()
    }

    /// Undoes [`split`](MemoryRx::split), whatever order the parts come in.
    ///
    /// # Panics
    ///
    /// When there is no queue.
    pub fn join(queues: Vec<MemoryRx>) -> MemoryRx {
        let mut parts = queues.into_iter();
        let mut whole = parts.next().expect("a port has a queue");
        for part in parts {
            whole.lost_packets += part.lost_packets;
            whole.rings.extend(part.rings);
        }
        whole.rings.sort_unstable_by_key(|ring| ring.queue);
        whole.next_inlet = 0;
        whole
    }

    /// Switches the link on the way here down or up. While it is down, all that the peer sends is
    /// lost, and so is what was in flight.
    pub fn set_up(&mut self, up: bool) {
        if self.up != up {
            self.lose_all();
            self.up = up;
        }
    }

    /// Frames that the link lost since it was made, as it was told to or because it was down.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// When the next frame arrives (or has); `None` when the peer has sent none. A frame may
    /// still be lost when its time comes.
    pub fn next_arrival_ns(&mut self) -> Option<u64> {
        self.refresh();
        self.next_frame().map(|(_, passage)| passage.arrival_ns)
    }

    fn refresh(&mut self) {
        for ring in &mut self.rings {
            ring.ring.refresh();
        }
    }

    /// The frame that the link takes next: of those at the front of their rings the one that can
    /// start first, and by turns when there are several.
    fn next_frame(&mut self) -> Option<(usize, Passage)> {
        let mut next: Option<(usize, Passage)> = None;
        for turn in 0..self.rings.len() {
            let index = (self.next_inlet + turn) % self.rings.len();
            let Some(front) = self.rings[index].ring.peek() else {
                continue;
            };
            let passage = self.link.offer(front.at_ns, front.frame_bytes());
            if next.is_none_or(|(_, earlier)| passage.starts_before(earlier)) {
                next = Some((index, passage));
            }
        }
        next
    }

    /// Takes all that the peer has sent, and loses it. What it sends meanwhile waits for the next
    /// call.
    fn lose_all(&mut self) {
        self.refresh();
        for ring in &mut self.rings {
            while ring.ring.peek().is_some() {
                // Which of the frames after it are lost must not depend on this.
                ring.loss.draw();
                ring.ring.pop();
                self.lost_packets += 1;
            }
            ring.ring.release();
        }
    }

    /// The way of frames on a link that neither delays nor loses. `drain` takes frames of a ring, as
    /// many as it is told, and says how many.
    fn receive_at_once(
        &mut self,
        budget: usize,
        mut drain: impl FnMut(&mut Consumer, usize) -> usize,
    ) -> usize {
        let mut taken = 0;
        let mut idle_rings = 0;
        while taken < budget && idle_rings < self.rings.len() {
            let ring = &mut self.rings[self.next_inlet].ring;
            let visit = drain(ring, FRAMES_PER_VISIT.min(budget - taken));
            taken += visit;
            idle_rings = if visit == 0 { idle_rings + 1 } else { 0 };
            self.next_inlet = (self.next_inlet + 1) % self.rings.len();
        }
        taken
    }

    /// The way of frames on any other link. What the peer sends meanwhile waits for the next
    /// call, so that a link that loses everything still comes to an end here.
    fn receive_over_link(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: &mut impl FnMut(SplitFrame<'_>),
    ) -> usize {
        self.refresh();
        let mut taken = 0;
        while taken < budget {
            let Some((index, passage)) = self.next_frame() else {
                break;
            };
            if passage.arrival_ns > now_ns {
                break;
            }
            self.link.take(passage);
            self.next_inlet = (index + 1) % self.rings.len();
            let ring = &mut self.rings[index];
            // Every frame is drawn, so that which are lost depends on nothing else.
            let drawn = ring.loss.draw();
            if self.police.drops(passage.end, drawn) {
                self.lost_packets += 1;
            } else if let Some(front) = ring.ring.peek() {
                each(SplitFrame {
                    at_ns: passage.arrival_ns,
                    ..front
                });
                taken += 1;
            }
            ring.ring.pop();
        }
        for ring in &mut self.rings {
            ring.ring.release();
        }
        taken
    }
}

impl RxQueue for MemoryRx {
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        if !self.up {
            self.lose_all();
            return 0;
        }
        if self.unlimited {
            self.receive_at_once(budget, |ring, frames| ring.drain(frames, &mut each))
        } else {
            let mut scratch = std::mem::take(&mut self.scratch);
            let taken = self.receive_over_link(now_ns, budget, &mut |frame| {
                each(frame.at_ns, frame.bytes(&mut scratch));
            });
            self.scratch = scratch;
            taken
        }
    }

    fn receive_bursts(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[RxFrame<'_>]),
    ) -> usize {
        if self.up && self.unlimited {
            return self
                .receive_at_once(budget, |ring, frames| ring.drain_bursts(frames, &mut each));
        }
        self.receive(now_ns, budget, |at_ns, bytes| {
            each(&[RxFrame { at_ns, bytes }]);
        })
    }

    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        if !self.up {
            self.lose_all();
            return 0;
        }
        if self.unlimited {
            self.receive_at_once(budget, |ring, frames| ring.drain_split(frames, &mut each))
        } else {
            self.receive_over_link(now_ns, budget, &mut |frame| each(&[frame]))
        }
    }
}
