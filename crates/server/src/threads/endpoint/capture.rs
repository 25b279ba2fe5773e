//! The packets of a capture on their way to a file or a socket.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_engine::capture::Captured;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rtrb::{Consumer, Producer, RingBuffer};

use super::form::Form;
use super::{Helper, HelperControl};
use crate::rx_taps::{Endpoint, PacketSink};

/// Packets that may be under way. What finds no room is lost, and not counted as written.
const PACKETS: usize = 16_384;
/// Packets that are written at once.
const BATCH: usize = 256;
/// How long a socket may hold its last packets after the end, in milliseconds.
const LINGER_MS: i32 = 1000;

/// Opens an endpoint: `file:///PATH`, or the address of a ZeroMQ PAIR socket that listens.
/// Packets that are written carry the time since the epoch; `epoch_ns` is that of time zero.
pub fn open_capture(
    endpoint: &Endpoint,
    snap_bytes: usize,
    epoch_ns: u64,
) -> Result<Box<dyn PacketSink>, String> {
    let mut sink = CaptureSink::open(&endpoint.text)?;
    let mut form = Form::new(endpoint.format, snap_bytes, epoch_ns);
    sink.write(form.bytes())?;
    form.clear();
    let (producer, consumer) = RingBuffer::new(PACKETS);
    let written = Arc::new(AtomicU64::new(0));
    let writer = Writer {
        packets: consumer,
        sink,
        form,
        written: Arc::clone(&written),
    };
    let helper = Helper::start("capture", move |orders| writer.run(&orders))?;
    Ok(Box::new(Sink {
        packets: producer,
        taken: 0,
        written,
        helper,
    }))
}

/// The end of the receive thread.
#[derive(Debug)]
struct Sink {
    packets: Producer<Captured>,
    taken: u64,
    written: Arc<AtomicU64>,
    helper: Helper,
}

impl PacketSink for Sink {
    fn push(&mut self, packet: Captured) -> bool {
        let taken = self.packets.push(packet).is_ok();
        self.taken += u64::from(taken);
        // Otherwise the thread has not seen the ring empty since it was woken.
        if self.packets.slots() + 1 >= PACKETS {
            self.helper.wake();
        }
        taken
    }

    fn pending(&self) -> u64 {
        self.taken - self.written.load(Ordering::Acquire)
    }
}

/// The end of the writing thread.
struct Writer {
    packets: Consumer<Captured>,
    sink: CaptureSink,
    form: Form,
    written: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, orders: &HelperControl) {
        loop {
            let ending = orders.are_to_end();
            orders.heard();
            while self.write_batch() > 0 {}
            if ending {
                return;
            }
            // The bell rings when the ring is no longer empty; time and again we look anyway.
            let mut files = [PollFd::new(orders.notify.file().as_fd(), PollFlags::POLLIN)];
            if let Err(error) = poll(&mut files, PollTimeout::from(100u8)) {
                tracing::debug!("waiting was interrupted: {error}");
            }
        }
    }

    fn write_batch(&mut self) -> usize {
        let mut packets = 0;
        while packets < BATCH {
            let Ok(packet) = self.packets.pop() else {
                break;
            };
            self.form.add(&packet);
            packets += 1;
        }
        if packets == 0 {
            return 0;
        }
        if let Err(problem) = self.sink.write(self.form.bytes()) {
            tracing::warn!("packets of a capture are lost: {problem}");
        }
        self.form.clear();
        self.written.fetch_add(packets as u64, Ordering::Release);
        packets
    }
}

/// Where the bytes go.
enum CaptureSink {
    File(File),
    Socket(zmq::Socket),
}

impl CaptureSink {
    fn open(endpoint: &str) -> Result<CaptureSink, String> {
        let Some(path) = endpoint.strip_prefix("file://") else {
            return CaptureSink::connect(endpoint).map(CaptureSink::Socket);
        };
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err("a file is written as file:///, and then its absolute path".to_owned());
        }
        create(path).map(CaptureSink::File).map_err(|error| {
            let remedy = match error.raw_os_error() {
                Some(code) if code == Errno::ENXIO as i32 => {
                    ": nobody reads this pipe; start the reader first"
                }
                _ => "",
            };
            let name = path.display();
            format!("the file {name} cannot be written: {error}{remedy}")
        })
    }

    fn connect(endpoint: &str) -> Result<zmq::Socket, String> {
        let connected = || {
            let socket = zmq::Context::new().socket(zmq::PAIR)?;
            socket.set_linger(LINGER_MS)?;
            socket.set_sndtimeo(LINGER_MS)?;
            socket.connect(endpoint)?;
            Ok(socket)
        };
        connected().map_err(|error: zmq::Error| {
            format!("the socket '{endpoint}' cannot be connected: {error}")
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            CaptureSink::File(file) => file.write_all(bytes).map_err(|error| error.to_string()),
            CaptureSink::Socket(socket) => socket.send(bytes, 0).map_err(|error| error.to_string()),
        }
    }
}

/// Opens a file without waiting, as a pipe that nobody reads would. Writing may wait: it has a
/// thread of its own.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let file = options.custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(file)
}
