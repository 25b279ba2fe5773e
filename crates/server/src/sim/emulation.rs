//! Emulated clients in virtual time: their requests, and ports that are joined in pairs, where nobody
//! but the clients is.

use std::collections::VecDeque;

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::{MICROSECOND, Nanos};

/// How long a frame is under way to the other port of a pair. With no time at all, two clients that
/// answer each other would stop the clock.
const DELAY: Nanos = 10 * MICROSECOND;

/// Most ports of a simulation.
pub const EMULATED_PORTS_MAX: u16 = 32;

/// Sees each frame that leaves: when, by which port, its bytes.
pub type FrameWatch<'w> = dyn FnMut(Nanos, u16, &[u8]) + 'w;

/// A frame on its way.
struct Arrival {
    at: Nanos,
    port: u16,
    frame: Vec<u8>,
}

/// Emulated clients on ports.
pub struct EmulatedNetwork {
    emulation: Emulation,
    now: Nanos,
    ports: u16,
    under_way: VecDeque<Arrival>,
}

impl EmulatedNetwork {
    /// No clients yet, on so many ports: 0 and 1 are a pair, 2 and 3, and so on. Time begins at 0, also
    /// where clients tell it, and what is random is the same each time.
    pub fn new(ports: u16) -> EmulatedNetwork {
        EmulatedNetwork {
            emulation: Emulation::new(Settings::default(), 0),
            now: 0,
            ports,
            under_way: VecDeque::new(),
        }
    }

    /// Answers a message of the RPC of emulated clients.
    pub fn request(&mut self, message: &[u8], watch: &mut FrameWatch<'_>) -> Vec<u8> {
        let reply = self.emulation.handle_message(self.now, message);
        self.transmit(watch);
        reply
    }

    /// Lets time pass up to `until`, with all that is due then.
    pub fn run(&mut self, until: Nanos, watch: &mut FrameWatch<'_>) {
        loop {
            let timer = self.emulation.poll_timeout().unwrap_or(Nanos::MAX);
            let arrival = self
                .under_way
                .front()
                .map_or(Nanos::MAX, |arrival| arrival.at);
            if timer.min(arrival) > until {
                break;
            }
            if arrival <= timer {
                let arrival = self.under_way.pop_front().expect("it was looked at");
                self.now = self.now.max(arrival.at);
                self.emulation
                    .handle_frame(self.now, arrival.port, &arrival.frame);
            } else {
                self.now = self.now.max(timer);
                self.emulation.handle_timeout(self.now);
            }
            self.transmit(watch);
        }
        self.now = self.now.max(until);
    }

    /// Puts on the way what the clients send.
    fn transmit(&mut self, watch: &mut FrameWatch<'_>) {
        while let Some(transmit) = self.emulation.poll_transmit() {
            let port = transmit.port;
            if port >= self.ports {
                continue;
            }
            watch(self.now, port, transmit.frame);
            if port ^ 1 < self.ports {
                self.under_way.push_back(Arrival {
                    at: self.now + DELAY,
                    port: port ^ 1,
                    frame: transmit.frame.to_vec(),
                });
            }
        }
    }
}
