//! The way to an emulation server of another process: it gets what the ports receive, as watchers do,
//! and the ports send what comes from it.

mod message;

use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::message::{Batch, Frames};
use super::endpoint::Wire;
use super::rx_tap::{RxTap, bit};

/// Messages that are taken before what has arrived at ports is looked at again.
const MESSAGES_PER_TURN: usize = 8;

/// The ends of two sockets, which carry messages of frames.
#[derive(Debug)]
pub struct EmuChannel {
    wire: Box<dyn Wire>,
    ports: usize,
    batch: Batch,
}

impl EmuChannel {
    /// Of so many ports.
    pub fn new(wire: Box<dyn Wire>, ports: usize) -> EmuChannel {
        EmuChannel {
            wire,
            ports,
            batch: Batch::default(),
        }
    }

    fn flush(&mut self) {
        // Who does not read loses frames, and holds up nobody.
        self.batch.take(|message| {
            self.wire.push(message);
        });
    }
}

impl RxTap for EmuChannel {
    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => (0..self.ports).fold(0, |ports, port| ports | bit(port)),
            Origin::Transmitted => 0,
        }
    }

    fn handle_frame(&mut self, _: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        if !self.batch.push(port, frame) {
            self.flush();
            self.batch.push(port, frame);
        }
        false
    }

    fn poll_transmit(&mut self, _now: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        self.flush();
        for _ in 0..MESSAGES_PER_TURN {
            let Some(message) = self.wire.receive() else {
                return;
            };
            let mut frames = Frames::of(&message);
            for (port, frame) in frames.by_ref() {
                if usize::from(port) < self.ports && !frame.is_empty() {
                    send(port, frame);
                }
            }
            if frames.is_wrong {
                tracing::debug!(
                    bytes = message.len(),
                    "a message of the emulation server is not as it must be"
                );
            }
        }
    }
}
