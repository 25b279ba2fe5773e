//! The way of received frames to emulated clients, which are on data threads: each frame is handed over to
//! the thread that has its namespace.

use std::sync::Arc;

use allosaur_emulation::shards::ShardMap;
use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::tap::{TapIn, TapSwitch};

use crate::rx_taps::RxTap;

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

/// The way to one data thread, and what wakes it.
pub struct ClientLink {
    /// Frames that arrived.
    pub frames: TapIn,
    /// Wakes the thread.
    pub wake: Box<dyn Fn() + Send>,
}

/// Hands received frames over to the data threads that have the clients.
pub struct ClientFrames {
    map: Arc<ShardMap>,
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
            map,
            links: links.into_iter().map(|link| (link, false)).collect(),
            inhabited,
            has_written: false,
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
        let owner = self.map.owner_of_frame(port.into(), frame);
        let (link, is_written) = &mut self.links[owner];
        (*is_written, self.has_written) = (true, true);
        if !link.frames.copy(at, port, frame) {
            link.frames.note_lost();
        }
        // Others may have clients of that address too.
        false
    }

    fn poll_transmit(&mut self, _: Nanos, _: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
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
