//! A port joined to a ZeroMQ PAIR socket: raw frames, one a message, both ways. An emulation server of
//! another process has a pair of them, one for each way, with many frames a message.

use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;

use allosaur_port::memory::FRAME_BYTES_MAX;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{Helper, HelperControl};
use crate::rx_taps::Wire;
use crate::threads::waker::Waker;

/// Frames that may be under way in each direction. What finds no room is lost, as on any port.
const FRAMES: usize = 4096;
/// Frames of one direction before the other has its turn.
const BUDGET: usize = 256;
/// The shortest frame without FCS.
const FRAME_BYTES_MIN: usize = 14;
/// Messages of an emulation server, by their bytes: 64 frames at most, so none is longer.
const MESSAGE_BYTES: RangeInclusive<usize> = 4..=64 * (FRAME_BYTES_MAX + 4) + 4;
/// How long the thread waits at most before it looks whether it shall end, in milliseconds.
const WAIT_MS: i64 = 200;

/// Connects a PAIR socket to `endpoint`, where the client's listens. `receive` is woken when
/// there is a frame to send.
pub fn open_wire(endpoint: &str, receive: Waker) -> Result<Box<dyn Wire>, String> {
    let connected = || {
        let socket = zmq::Context::new().socket(zmq::PAIR)?;
        socket.set_linger(0)?;
        socket.connect(endpoint)?;
        Ok(socket)
    };
    let socket = connected().map_err(|error: zmq::Error| {
        format!("the socket '{endpoint}' cannot be connected: {error}")
    })?;
    let bytes = FRAME_BYTES_MIN..=FRAME_BYTES_MAX;
    start("wire", Sockets::One(socket), bytes, receive)
}

/// Binds two PAIR sockets: an emulation server of another process connects to `outward` for what it
/// receives, and to `inward` for what it sends. `receive` is woken when there is a message of it.
pub fn open_emu_channel(
    outward: &str,
    inward: &str,
    receive: Waker,
) -> Result<Box<dyn Wire>, String> {
    let context = zmq::Context::new();
    let bind = |endpoint: &str| {
        let bound = || {
            let socket = context.socket(zmq::PAIR)?;
            socket.set_linger(0)?;
            socket.bind(endpoint)?;
            Ok(socket)
        };
        bound().map_err(|error: zmq::Error| {
            format!(
                "the socket '{endpoint}' of the emulation server cannot be opened: {error}; give \
                 another --emu-zmq-port"
            )
        })
    };
    let sockets = Sockets::Two {
        outward: bind(outward)?,
        inward: bind(inward)?,
    };
    start("emu-zmq", sockets, MESSAGE_BYTES, receive)
}

fn start(
    name: &str,
    sockets: Sockets,
    bytes: RangeInclusive<usize>,
    receive: Waker,
) -> Result<Box<dyn Wire>, String> {
    let (outward, outward_end) = RingBuffer::new(FRAMES);
    let (inward_end, inward) = RingBuffer::new(FRAMES);
    let courier = SocketWorker {
        sockets,
        bytes,
        outward: outward_end,
        inward: inward_end,
        receive,
    };
    let helper = Helper::start(name, move |orders| courier.run(&orders))?;
    Ok(Box::new(SocketPair {
        outward,
        inward,
        helper,
    }))
}

/// The end of the receive thread.
#[derive(Debug)]
struct SocketPair {
    outward: Producer<Box<[u8]>>,
    inward: Consumer<Vec<u8>>,
    helper: Helper,
}

impl Wire for SocketPair {
    fn push(&mut self, frame: &[u8]) -> bool {
        let taken = self.outward.push(frame.into()).is_ok();
        // Otherwise the thread has not seen the ring empty since it was woken.
        if self.outward.slots() + 1 >= FRAMES {
            self.helper.wake();
        }
        taken
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.inward.pop().ok()
    }
}

/// One socket for both ways, or one for each.
enum Sockets {
    One(zmq::Socket),
    Two {
        outward: zmq::Socket,
        inward: zmq::Socket,
    },
}

impl Sockets {
    fn outward(&self) -> &zmq::Socket {
        match self {
            Sockets::One(socket) => socket,
            Sockets::Two { outward, .. } => outward,
        }
    }

    fn inward(&self) -> &zmq::Socket {
        match self {
            Sockets::One(socket) => socket,
            Sockets::Two { inward, .. } => inward,
        }
    }
}

/// The thread that owns the socket.
struct SocketWorker {
    sockets: Sockets,
    /// How long messages that come may be.
    bytes: RangeInclusive<usize>,
    outward: Consumer<Box<[u8]>>,
    inward: Producer<Vec<u8>>,
    receive: Waker,
}

impl SocketWorker {
    fn run(mut self, orders: &HelperControl) {
        while !orders.are_to_end() {
            orders.heard();
            let out = self.carry_outward();
            let inward = self.carry_inward();
            if inward > 0 {
                self.receive.wake();
            }
            if out == 0 && inward == 0 {
                self.wait(orders);
            }
        }
    }

    fn carry_outward(&mut self) -> usize {
        let mut carried = 0;
        while carried < BUDGET {
            let Ok(frame) = self.outward.pop() else {
                break;
            };
            // A client that does not read loses frames, and holds up nobody.
            let _ = self.sockets.outward().send(&frame[..], zmq::DONTWAIT);
            carried += 1;
        }
        carried
    }

    fn carry_inward(&mut self) -> usize {
        let mut carried = 0;
        while carried < BUDGET && !self.inward.is_full() {
            let Ok(frame) = self.sockets.inward().recv_bytes(zmq::DONTWAIT) else {
                break;
            };
            carried += 1;
            if !self.bytes.contains(&frame.len()) {
                tracing::debug!(bytes = frame.len(), "what came by a socket cannot be sent");
                continue;
            }
            let pushed = self.inward.push(frame);
            debug_assert!(pushed.is_ok(), "there was room");
        }
        carried
    }

    fn wait(&self, orders: &HelperControl) {
        let mut items = [
            self.sockets.inward().as_poll_item(zmq::POLLIN),
            zmq::PollItem::from_fd(orders.notify.file().as_raw_fd(), zmq::POLLIN),
        ];
        if let Err(error) = zmq::poll(&mut items, WAIT_MS) {
            tracing::debug!("waiting was interrupted: {error}");
        }
    }
}
