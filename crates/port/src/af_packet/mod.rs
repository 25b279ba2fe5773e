//! Ports on the kernel's own interfaces, by packet sockets: network cards, veth, TAP devices, bridges.
//!
//! `transmit` and `receive` are the queues, `ring` their memory, `socket` the system calls, `fanout`
//! how the kernel shares out what arrives, `offloads` and `gso` what is left to hardware,
//! `namespace_socket` the frames of all interfaces of a namespace.
//!
//! Each sending thread has a socket with a ring of its own, and each receiving thread another. All of
//! it needs CAP_NET_RAW and no other privilege. The kernel's own traffic on the interface goes on: what it
//! sends is not received here, and what arrives is seen by both.

mod arrival;
mod fanout;
mod gso;
mod namespace_socket;
mod offloads;
mod receive;
mod ring;
mod socket;
mod transmit;

use std::io;

use allosaur_netdev::InterfaceError;
use allosaur_netdev::interface::{Interface, InterfaceControl};
use allosaur_packet::link::vlan;
use libc::c_int;

use crate::distribution::RxDistribution;
use crate::kinds::kind_like;
use crate::memory::FRAME_BYTES_MAX;
use crate::refusals::Refusals;
use crate::sharing::Sharing;
use crate::{Capabilities, PortError, QueueCounts};
use offloads::OFFLOAD_BYTES;
use ring::{Geometry, HEADER_BYTES, Ring};
use socket::PacketSocket;

pub use namespace_socket::NamespaceSocket;
pub use receive::AfPacketRx;
pub use transmit::AfPacketTx;

/// Frames of a transmit ring: as the queue of a network card has.
const TRANSMIT_FRAMES: usize = 1024;
/// Frames of the receive ring: at 1 Mpps the receive thread may be away for 8 ms.
const RECEIVE_FRAMES: usize = 8192;
/// What the frames in flight in the kernel may take, of each transmit queue. The default is a
/// tenth of a millisecond at 10 Gb/s.
const SEND_BUFFER_BYTES: c_int = 1 << 20;
/// What frames of many segments may take until the receive thread takes them.
const RECEIVE_BUFFER_BYTES: c_int = 4 << 20;
/// What the kernel puts in front of a received frame at most: header, address, room to align.
const RECEIVE_LEAD_BYTES: usize = 96;

/// A port on an interface: its queues, for the threads that will own them.
#[derive(Debug)]
pub struct AfPacketPort {
    /// One for each thread that sends.
    pub tx: Vec<AfPacketTx>,
    /// One for each thread that receives; the kernel shares out what arrives.
    pub rx: Vec<AfPacketRx>,
    /// By which rule.
    pub distribution: RxDistribution,
    /// For who decides about the interface.
    pub control: InterfaceControl,
    /// The interface.
    pub interface: Interface,
}

impl AfPacketPort {
    /// Opens an interface by its name, with so many queues.
    ///
    /// # Errors
    ///
    /// Names the interface, what is wrong, and the remedy: see [`Interface::find`] and [`Interface::claim`];
    /// and when the system refuses a socket or its memory.
    pub fn open(name: &str, queues: QueueCounts) -> Result<AfPacketPort, PortError> {
        let interface = Interface::find(name, kind_like(name))?;
        let claim = interface.claim()?;
        let refused = |error: io::Error| refusal(name, &error);
        let control = InterfaceControl::open(&interface, claim).map_err(refused)?;
        let transmit = |_| open_transmit(&interface, &control).map_err(refused);
        Ok(AfPacketPort {
            tx: (0..queues.tx).map(transmit).collect::<Result<_, _>>()?,
            rx: open_receivers(&interface, queues).map_err(refused)?,
            distribution: match queues.sharing {
                Sharing::ByFlow => RxDistribution::ByFlow("its hash is the kernel's".to_owned()),
                by_port => RxDistribution::ByPort(by_port),
            },
            control,
            interface,
        })
    }
}

impl crate::Port for AfPacketPort {
    type Tx = AfPacketTx;
    type Rx = AfPacketRx;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            line_rate_bps: self.interface.line_rate_bps,
            frame_bytes_max: self.interface.frame_bytes_max().min(FRAME_BYTES_MAX),
        }
    }

    fn into_queues(self) -> (Vec<AfPacketTx>, Vec<AfPacketRx>) {
        (self.tx, self.rx)
    }
}

/// The longest frame, with a VLAN tag.
fn tagged_bytes_max(interface: &Interface) -> usize {
    (interface.frame_bytes_max() + vlan::HEADER_BYTES).min(FRAME_BYTES_MAX)
}

fn open_transmit(interface: &Interface, control: &InterfaceControl) -> io::Result<AfPacketTx> {
    let socket = open_ring_socket()?;
    // Past the queueing discipline: it would hold frames back, and drop them without a word.
    socket.set(libc::PACKET_QDISC_BYPASS, &1)?;
    // A frame whose header is wrong does not hold up those behind it: that is how one is taken out.
    socket.set(libc::PACKET_LOSS, &1)?;
    socket.set_buffer([libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], SEND_BUFFER_BYTES)?;
    let bytes_max = tagged_bytes_max(interface);
    let geometry = Geometry::new(TRANSMIT_FRAMES, HEADER_BYTES + OFFLOAD_BYTES + bytes_max);
    let ring = Ring::map(&socket, libc::PACKET_TX_RING, geometry)?;
    socket.bind(interface.index, 0)?;
    let refusals = Refusals::new(control.link_query(), ring.frames());
    Ok(AfPacketTx::new(socket, ring, bytes_max, refusals))
}

/// So many queues. With several, what arrives before all are there is dropped: the kernel would give
/// it to more than one of them.
fn open_receivers(interface: &Interface, counts: QueueCounts) -> io::Result<Vec<AfPacketRx>> {
    let queues = counts.rx;
    let mut receivers = Vec::with_capacity(queues);
    let mut group = None;
    for _ in 0..queues.max(1) {
        let (socket, ring) = open_receive(interface)?;
        if queues > 1 {
            socket.block()?;
        }
        socket.bind(interface.index, libc::ETH_P_ALL)?;
        if queues > 1 {
            group = Some(match group {
                Some(group) => socket.join_fanout(group)?,
                None => socket.begin_fanout(counts.sharing)?,
            });
        }
        receivers.push(AfPacketRx::new(socket, ring));
    }
    if queues > 1 {
        for receiver in &receivers {
            receiver.admit()?;
        }
    }
    Ok(receivers)
}

/// A socket that is not bound yet, and its ring.
fn open_receive(interface: &Interface) -> io::Result<(PacketSocket, Ring)> {
    let socket = open_ring_socket()?;
    socket.set(libc::PACKET_IGNORE_OUTGOING, &1)?;
    // A frame that is too long for its place in the ring comes through the socket, whole.
    socket.set(libc::PACKET_COPY_THRESH, &1)?;
    socket.set_buffer(
        [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF],
        RECEIVE_BUFFER_BYTES,
    )?;
    let bytes = RECEIVE_LEAD_BYTES + tagged_bytes_max(interface);
    let geometry = Geometry::new(RECEIVE_FRAMES, bytes);
    let ring = Ring::map(&socket, libc::PACKET_RX_RING, geometry)?;
    Ok((socket, ring))
}

/// A socket whose frames carry the header of offloads.
fn open_ring_socket() -> io::Result<PacketSocket> {
    let socket = PacketSocket::open()?;
    let version = libc::tpacket_versions::TPACKET_V2 as c_int;
    socket.set(libc::PACKET_VERSION, &version)?;
    socket.set(libc::PACKET_VNET_HDR, &1)?;
    Ok(socket)
}

fn refusal(name: &str, error: &io::Error) -> InterfaceError {
    let (problem, remedy) = match error.raw_os_error() {
        Some(libc::EPERM) => (
            "the capability CAP_NET_RAW is missing".to_owned(),
            "Start the server as root, or give it the capability: \
             sudo setcap cap_net_raw+ep \"$(command -v allosaur-server)\"",
        ),
        Some(libc::ENOMEM) => (
            "the system has no memory for its rings".to_owned(),
            "Use fewer ports or fewer sending threads",
        ),
        Some(libc::ENOPROTOOPT) => (
            "this kernel's packet sockets are too old".to_owned(),
            "Use Linux 4.20 or newer",
        ),
        _ => (
            format!("the system refuses a packet socket: {error}"),
            "Use another interface, or memory ports",
        ),
    };
    InterfaceError::unavailable(name, problem, remedy)
}

#[cfg(test)]
mod tests;
