//! The way of received frames to emulated clients, which are on data threads: each frame is handed over to
//! the threads that it is for. These say where clients are that cannot be found otherwise.

use std::sync::Arc;

use allosaur_emulation::placements::Placement;
use allosaur_emulation::shards::{FrameRoute, FrameRouter, ShardMap};
use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::tap::{TapIn, TapSwitch};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::rx_taps::RxTap;
use crate::threads::waker::Waker;

/// What a data thread has told of where clients are, and the receive thread has not taken in.
const PLACEMENTS: usize = 8192;
/// In the number of the port of a frame: another thread counts it.
pub const COPY: u8 = 0x80;

/// The ports that have emulated clients: each data thread says of its own which they are, others look.
#[derive(Clone, Debug, Default)]
pub struct InhabitedPorts(Arc<[TapSwitch]>);

impl InhabitedPorts {
    /// None yet, of so many data threads.
    pub fn new(threads: usize) -> InhabitedPorts {
        InhabitedPorts((0..threads).map(|_| TapSwitch::default()).collect())
    }

    /// Those of a data thread, which alone may set them.
    pub fn of(&self, thread: usize) -> TapSwitch {
        self.0[thread].clone()
    }

    /// Those of all threads, as bits.
    #[inline]
    pub fn ports(&self) -> u64 {
        self.0.iter().fold(0, |ports, own| ports | own.ports())
    }
}

/// Tells the receive thread where the clients of a data thread are.
#[derive(Debug)]
pub struct PlacementSender {
    ring: Producer<Placement>,
    receiver: Waker,
}

/// The way of what a data thread tells; `receiver` wakes the receive thread when there is no room.
pub fn placements(receiver: Waker) -> (PlacementSender, Consumer<Placement>) {
    let (ring, placements) = RingBuffer::new(PLACEMENTS);
    (PlacementSender { ring, receiver }, placements)
}

impl PlacementSender {
    /// Tells one thing, or gives it back: there is no room yet.
    ///
    /// # Errors
    ///
    /// What could not be told.
    pub fn send(&mut self, placement: Placement) -> Result<(), Placement> {
        self.ring.push(placement).map_err(|full| {
            self.receiver.wake();
            let rtrb::PushError::Full(placement) = full;
            placement
        })
    }
}

/// The way to one data thread, and what wakes it.
pub struct ClientLink {
    /// Frames that arrived.
    pub frames: TapIn,
    /// What the thread told of where clients are.
    pub placements: Consumer<Placement>,
    /// Wakes the thread.
    pub wake: Box<dyn Fn() + Send>,
}

/// Hands received frames over to the data threads that have the clients.
pub struct ClientFrames {
    router: FrameRouter,
    /// To each data thread, and whether frames were written that it does not see yet.
    links: Vec<(ClientLink, bool)>,
    inhabited: InhabitedPorts,
    /// Some were written.
    has_written: bool,
}

impl ClientFrames {
    /// To data threads by their links, whose clients are shared out by `map`.
    pub fn new(
        map: Arc<ShardMap>,
        links: Vec<ClientLink>,
        inhabited: InhabitedPorts,
    ) -> ClientFrames {
        ClientFrames {
            router: FrameRouter::new(map),
            links: links.into_iter().map(|link| (link, false)).collect(),
            inhabited,
            has_written: false,
        }
    }
}

impl ClientFrames {
    /// Takes in where clients are. Who has answered a request has told of its clients before.
    #[inline]
    fn take_placements(&mut self) {
        for (shard, (link, _)) in self.links.iter_mut().enumerate() {
            while let Ok(placement) = link.placements.pop() {
                self.router.handle_placement(shard, placement);
            }
        }
    }

    #[inline]
    fn hand_over(&mut self, shard: usize, at: Nanos, number: u8, frame: &[u8]) {
        let (link, is_written) = &mut self.links[shard];
        (*is_written, self.has_written) = (true, true);
        if !link.frames.copy(at, number, frame) {
            link.frames.note_lost();
        }
    }
}

impl RxTap for ClientFrames {
    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => self.inhabited.ports(),
            Origin::Transmitted => 0,
        }
    }

    fn wants_change(&self) -> bool {
        true
    }

    #[inline]
    fn handle_frame(&mut self, at: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        self.take_placements();
        match self.router.route(port.into(), frame) {
            FrameRoute::One(shard) => self.hand_over(shard, at, port, frame),
            FrameRoute::All { counting } => {
                self.hand_over(counting, at, port, frame);
                for shard in 0..self.links.len() {
                    if self.router.has_copy(port.into(), counting, shard) {
                        self.hand_over(shard, at, port | COPY, frame);
                    }
                }
            }
        }
        // Others may have clients of that address too.
        false
    }

    fn poll_transmit(&mut self, _: Nanos, _: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        self.take_placements();
        if !std::mem::take(&mut self.has_written) {
            return;
        }
        for (link, is_written) in &mut self.links {
            if std::mem::take(is_written) {
                link.frames.flush();
                (link.wake)();
            }
        }
    }

    fn answers(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for ClientFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientFrames")
            .field("inhabited", &self.inhabited)
            .finish_non_exhaustive()
    }
}
