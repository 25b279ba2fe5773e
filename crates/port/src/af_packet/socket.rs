//! Packet sockets: the system calls, behind safe functions.
//!
//! The kernel's own words are in `packet(7)` and `Documentation/networking/packet_mmap.rst`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use allosaur_netdev::socket::{self, Plain, succeeded};
use libc::{c_int, c_void, sockaddr_ll, socklen_t};

/// A raw packet socket.
#[derive(Debug)]
pub(super) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens one that receives nothing until it is bound.
    pub(super) fn open() -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        socket::open(libc::AF_PACKET, kind, 0).map(PacketSocket)
    }

    /// Sets an option of packet sockets. `T` is what the kernel expects there.
    pub(super) fn set<T: Copy>(&self, option: c_int, value: &T) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    /// Sets an option of any level.
    fn set_at<T: Copy>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        socket::set(&self.0, level, option, value)
    }

    /// Sets the size of a buffer by the first option, and where that is refused by the second: only
    /// the privileged may pass the system's limit.
    pub(super) fn set_buffer(&self, options: [c_int; 2], bytes: c_int) -> io::Result<()> {
        let forced = self.set_at(libc::SOL_SOCKET, options[0], &bytes);
        forced.or_else(|_| self.set_at(libc::SOL_SOCKET, options[1], &bytes))
    }

    /// Takes one frame that the ring had no room for. Returns its length, which is more than fits
    /// into `bytes` when it was cut off.
    pub(super) fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most as many bytes as there are.
        let received = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                bytes.as_mut_ptr().cast::<c_void>(),
                bytes.len(),
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Ties it to an interface; frames of `protocol` arrive from now on, none when it is 0.
    pub(super) fn bind(&self, index: c_int, protocol: c_int) -> io::Result<()> {
        let address = sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (protocol as u16).to_be(),
            sll_ifindex: index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the kernel reads the whole address, which outlives the call.
        let answer = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<sockaddr_ll>() as socklen_t,
            )
        };
        succeeded(answer)
    }

    /// Drops all that arrives from now on, until [`admit`](PacketSocket::admit). Nothing of it is
    /// counted.
    pub(super) fn block(&self) -> io::Result<()> {
        self.filter(&[instruction(libc::BPF_RET | libc::BPF_K, 0, 0)])
    }

    /// Lets in what arrives, and not what leaves: sockets of a group do not heed
    /// PACKET_IGNORE_OUTGOING.
    pub(super) fn admit(&self) -> io::Result<()> {
        let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
        self.filter(&[
            instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, packet_type, 0),
            // One instruction further when it is another.
            instruction(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                u32::from(libc::PACKET_OUTGOING),
                1,
            ),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
            instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0),
        ])
    }

    /// Puts a program in the place of what decided which frames come in.
    fn filter(&self, instructions: &[libc::sock_filter]) -> io::Result<()> {
        self.set_at(
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program_of(instructions),
        )
    }

    /// Tells the kernel to send what is ready in the ring, and does not wait for it.
    pub(super) fn kick(&self) -> io::Result<()> {
        // SAFETY: no bytes are handed over; the kernel reads the ring, whose frames that are ready
        // nobody here writes to.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        match sent {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Frames that found no room in the ring since the last call.
    pub(super) fn take_dropped(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        self.read(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics)?;
        Ok(u64::from(statistics.tp_drops))
    }

    /// The error that waits to be heard, if there is one. Until then who waits for the socket is
    /// woken over and over.
    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let mut error: c_int = 0;
        self.read(libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
        Ok((error != 0).then(|| io::Error::from_raw_os_error(error)))
    }

    /// Reads an option of any level.
    pub(super) fn read<T: Plain>(
        &self,
        level: c_int,
        option: c_int,
        value: &mut T,
    ) -> io::Result<()> {
        socket::read(&self.0, level, option, value)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A program as options take it: the kernel copies it before the call returns.
pub(super) fn program_of(instructions: &[libc::sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog {
        len: instructions.len() as u16,
        // The kernel only reads it.
        filter: instructions.as_ptr().cast_mut(),
    }
}

/// An instruction of classic BPF; of a comparison, `if_not` is how many instructions are left out when
/// it does not hold.
pub(super) fn instruction(code: u32, k: u32, if_not: u8) -> libc::sock_filter {
    jump(code, k, 0, if_not)
}

/// A comparison, with how many instructions are left out when it holds and when it does not.
pub(super) fn jump(code: u32, k: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: if_so,
        jf: if_not,
        k,
    }
}
