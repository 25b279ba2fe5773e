//! AF_XDP sockets: the system calls, behind safe functions.
//!
//! The kernel's own words are in `Documentation/networking/af_xdp.rst`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use allosaur_netdev::socket::{self, Plain, succeeded};
use libc::{c_int, c_void, socklen_t};

use super::mapping::Mapping;
use super::ring::{Consumer, Layout, Producer};

/// Busy polling by who owns the socket, of `SOL_SOCKET`; Linux 5.11.
const SO_PREFER_BUSY_POLL: c_int = 69;
const SO_BUSY_POLL_BUDGET: c_int = 70;
/// How many frames one system call may send when the kernel copies them, of `SOL_XDP`; Linux 6.17.
const XDP_MAX_TX_SKB_BUDGET: c_int = 9;
/// What a busy poll takes at most.
const BUSY_POLL_FRAMES: c_int = 64;
/// How long a call may look for frames before it returns, in microseconds.
const BUSY_POLL_US: c_int = 20;

// What the kernel writes into the rings.
const _: () = assert!(size_of::<libc::xdp_desc>() == 16);
const _: () = assert!(size_of::<libc::xdp_umem_reg>() == 32);

/// Which ring of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingKind {
    Receive,
    Transmit,
    Fill,
    Completion,
}

/// An AF_XDP socket.
#[derive(Debug)]
pub(super) struct XdpSocket(OwnedFd);

impl XdpSocket {
    /// Opens one that does nothing until it is bound.
    pub(super) fn open() -> io::Result<XdpSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        socket::open(libc::AF_XDP, kind, 0).map(XdpSocket)
    }

    /// Makes memory that of the socket, in chunks of `chunk_bytes`. The kernel holds its pages until
    /// the socket and those that share with it are closed.
    pub(super) fn register(&self, memory: &Mapping, chunk_bytes: usize) -> io::Result<()> {
        let request = libc::xdp_umem_reg {
            addr: memory.address(0, 0).as_ptr() as u64,
            len: memory.bytes() as u64,
            chunk_size: chunk_bytes as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        self.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
    }

    /// Makes a ring and maps its end that reads.
    pub(super) fn consumer<T: Copy>(&self, kind: RingKind, count: u32) -> io::Result<Consumer<T>> {
        let (memory, layout) = self.ring(kind, count, size_of::<T>())?;
        Ok(Consumer::new(memory, layout))
    }

    /// Makes a ring and maps its end that writes.
    pub(super) fn producer<T: Copy>(&self, kind: RingKind, count: u32) -> io::Result<Producer<T>> {
        let (memory, layout) = self.ring(kind, count, size_of::<T>())?;
        Ok(Producer::new(memory, layout))
    }

    fn ring(
        &self,
        kind: RingKind,
        count: u32,
        entry_bytes: usize,
    ) -> io::Result<(Arc<Mapping>, Layout)> {
        let (option, page) = match kind {
            RingKind::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING as u64),
            RingKind::Transmit => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING as u64),
            RingKind::Fill => (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING),
            RingKind::Completion => (
                libc::XDP_UMEM_COMPLETION_RING,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING,
            ),
        };
        self.set(libc::SOL_XDP, option, &count)?;
        let none = libc::xdp_ring_offset {
            producer: 0,
            consumer: 0,
            desc: 0,
            flags: 0,
        };
        let mut offsets = libc::xdp_mmap_offsets {
            rx: none,
            tx: none,
            fr: none,
            cr: none,
        };
        self.read(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        let offset = match kind {
            RingKind::Receive => offsets.rx,
            RingKind::Transmit => offsets.tx,
            RingKind::Fill => offsets.fr,
            RingKind::Completion => offsets.cr,
        };
        let layout = Layout {
            producer: offset.producer as usize,
            consumer: offset.consumer as usize,
            flags: offset.flags as usize,
            entries: offset.desc as usize,
            count,
        };
        let bytes = layout.entries + count as usize * entry_bytes;
        let memory = Mapping::of_file(self.as_fd(), page, bytes)?;
        Ok((Arc::new(memory), layout))
    }

    /// Ties it to a hardware queue, with the memory that was registered.
    pub(super) fn bind(&self, interface: c_int, queue: u32, flags: u16) -> io::Result<()> {
        self.bind_as(interface, queue, flags, 0)
    }

    /// Ties it to the hardware queue of another socket, whose memory, fill ring and completion ring
    /// it shares.
    pub(super) fn bind_beside(
        &self,
        other: &XdpSocket,
        interface: c_int,
        queue: u32,
    ) -> io::Result<()> {
        let other = other.0.as_raw_fd() as u32;
        self.bind_as(interface, queue, libc::XDP_SHARED_UMEM, other)
    }

    fn bind_as(&self, interface: c_int, queue: u32, flags: u16, shared: u32) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface as u32,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared,
        };
        // SAFETY: the kernel reads the whole address, which outlives the call.
        let answer = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_xdp>() as socklen_t,
            )
        };
        succeeded(answer)
    }

    /// Whether the device reads and writes the frames itself.
    pub(super) fn is_zero_copy(&self) -> io::Result<bool> {
        let mut options = libc::xdp_options { flags: 0 };
        self.read(libc::SOL_XDP, libc::XDP_OPTIONS, &mut options)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Lets one system call send so many frames, where the kernel knows the option.
    pub(super) fn allow_at_once(&self, frames: u32) {
        // Older kernels send 32 a call; `flush` then calls again.
        drop(self.set(libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &frames));
    }

    /// Lets who receives drive the driver's queue.
    pub(super) fn prefer_busy_poll(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1)?;
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, &BUSY_POLL_US)?;
        self.set(libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &BUSY_POLL_FRAMES)
    }

    /// Tells the kernel to send what is in the transmit ring, and does not wait for it.
    #[inline]
    pub(super) fn kick(&self) -> io::Result<()> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: no bytes are handed over; what the kernel reads is in the ring, whose frames
        // nobody here writes to.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), std::ptr::null(), 0, flags) };
        match sent {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Tells the driver to look for frames, and for chunks to write them to.
    #[inline]
    pub(super) fn wake_receiver(&self) -> io::Result<()> {
        let nothing: *mut c_void = std::ptr::null_mut();
        // SAFETY: no bytes are asked for; the kernel writes to chunks that it was given.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), nothing, 0, libc::MSG_DONTWAIT) };
        match got {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Frames that arrived here and were lost, since the socket was opened.
    pub(super) fn lost_packets(&self) -> io::Result<u64> {
        let mut statistics = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        self.read(libc::SOL_XDP, libc::XDP_STATISTICS, &mut statistics)?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full)
    }

    fn set<T: Copy>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        socket::set(&self.0, level, option, value)
    }

    /// Reads an option.
    fn read<T: Plain>(&self, level: c_int, option: c_int, value: &mut T) -> io::Result<()> {
        socket::read(&self.0, level, option, value)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
