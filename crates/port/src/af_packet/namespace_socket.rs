//! One packet socket on all interfaces of a network namespace: frames with the number of the interface
//! that they came by, or shall leave by. For a namespace in which all interfaces are ours.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use allosaur_packet::link::{ethernet, vlan};
use libc::{c_void, iovec, msghdr, sockaddr_ll, tpacket_auxdata};

use super::gso::GsoFrame;
use super::offloads::{OFFLOAD_BYTES, Offloads, Tag, tag_in};
use super::socket::PacketSocket;

/// The longest piece of data that the kernel hands to a device before it cuts it.
const WHOLE_BYTES_MAX: usize = 1 << 16;
/// What frames may take in the kernel until they are read.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;
/// Room for what the kernel tells of a frame beside its bytes.
const CONTROL_BYTES: usize = 128;

/// The socket. Frames that leave do not come back.
#[derive(Debug)]
pub struct NamespaceSocket {
    socket: PacketSocket,
    whole: Vec<u8>,
    segment: Vec<u8>,
    lost: u64,
}

impl NamespaceSocket {
    /// Opens one in the network namespace of this thread; it stays there wherever the thread goes.
    ///
    /// # Errors
    ///
    /// What the kernel says: it needs CAP_NET_RAW.
    pub fn open() -> io::Result<NamespaceSocket> {
        let socket = PacketSocket::open()?;
        socket.set(libc::PACKET_VNET_HDR, &1)?;
        socket.set(libc::PACKET_AUXDATA, &1)?;
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1)?;
        socket.set_buffer(
            [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF],
            RECEIVE_BUFFER_BYTES,
        )?;
        // Of any interface.
        socket.bind(0, libc::ETH_P_ALL)?;
        Ok(NamespaceSocket {
            socket,
            whole: vec![0; OFFLOAD_BYTES + WHOLE_BYTES_MAX + ethernet::HEADER_BYTES],
            segment: Vec::new(),
            lost: 0,
        })
    }

    /// Sends a frame by an interface. False when the kernel has no room, or the interface is gone.
    pub fn send(&mut self, index: u32, frame: &[u8]) -> bool {
        let mut header = [0; OFFLOAD_BYTES];
        Offloads::write_plain(&mut header, frame.len());
        let mut address = no_address();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index as i32;
        let mut parts = [slice_of(&header), slice_of(frame)];
        // SAFETY: all of it are numbers and pointers, for which zeros are right.
        let mut message: msghdr = unsafe { zeroed() };
        message.msg_name = ptr::from_mut(&mut address).cast();
        message.msg_namelen = size_of::<sockaddr_ll>() as u32;
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        // SAFETY: the kernel reads the address and the parts, which outlive the call.
        let sent = unsafe {
            libc::sendmsg(
                self.socket.as_fd().as_raw_fd(),
                &message,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        sent >= 0
    }

    /// Hands what the kernel sent next to `each`, with the number of its interface: one frame or, where the
    /// kernel left the cutting to the device, several. False when there is nothing.
    pub fn receive(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> bool {
        loop {
            match self.receive_whole() {
                Ok((bytes, index, tag)) => {
                    if self.cut(bytes, index, tag, each).is_none() {
                        self.lost += 1;
                    }
                    return true;
                }
                // An interface went down: the next frame is behind this.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
                Err(_) => return false,
            }
        }
    }

    /// Frames that could not be cut.
    pub fn lost_packets(&self) -> u64 {
        self.lost
    }

    /// Reads the next frame with its header of offloads. Gives its length, its interface, and the VLAN tag that
    /// the kernel took out of it.
    fn receive_whole(&mut self) -> io::Result<(usize, u32, Option<Tag>)> {
        let mut address = no_address();
        // Words, so that it is aligned as the kernel's headers are.
        let mut control = [0u64; CONTROL_BYTES / 8];
        let mut part = iovec {
            iov_base: self.whole.as_mut_ptr().cast::<c_void>(),
            iov_len: self.whole.len(),
        };
        // SAFETY: all of it are numbers and pointers, for which zeros are right.
        let mut message: msghdr = unsafe { zeroed() };
        message.msg_name = ptr::from_mut(&mut address).cast();
        message.msg_namelen = size_of::<sockaddr_ll>() as u32;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: the kernel writes no more than the lengths that it is told, to memory that outlives the call.
        let received = unsafe {
            libc::recvmsg(
                self.socket.as_fd().as_raw_fd(),
                &mut message,
                libc::MSG_DONTWAIT,
            )
        };
        let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        Ok((bytes, address.sll_ifindex as u32, tag_of(&message)))
    }

    /// Hands on the frame that was read; `None` when it is no whole frame.
    fn cut(
        &mut self,
        bytes: usize,
        index: u32,
        tag: Option<Tag>,
        each: &mut dyn FnMut(u32, &[u8]),
    ) -> Option<()> {
        let (header, frame) = self.whole.get_mut(..bytes)?.split_first_chunk_mut()?;
        let offloads = Offloads::read(*header);
        if offloads.is_gso() {
            let whole = GsoFrame::new(frame, &offloads, tag)?;
            whole.cut(&mut self.segment, |segment| each(index, segment));
            return Some(());
        }
        offloads.complete_checksum(frame);
        let Some(tag) = tag else {
            each(index, frame);
            return Some(());
        };
        let (addresses, rest) = frame.split_at_checked(ethernet::TYPE_OFFSET)?;
        self.segment.clear();
        self.segment.reserve(frame.len() + vlan::HEADER_BYTES);
        self.segment.extend_from_slice(addresses);
        self.segment.extend_from_slice(&tag);
        self.segment.extend_from_slice(rest);
        each(index, &self.segment);
        Some(())
    }
}

impl AsFd for NamespaceSocket {
    /// Becomes readable when a frame has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn no_address() -> sockaddr_ll {
    // SAFETY: all of it are numbers, for which zeros are right.
    unsafe { zeroed() }
}

fn slice_of(bytes: &[u8]) -> iovec {
    iovec {
        // The kernel only reads what is sent.
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// The VLAN tag that the kernel took out of a frame.
fn tag_of(message: &msghdr) -> Option<Tag> {
    // SAFETY: the kernel has written the headers in the control bytes, which are still there.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let is_auxiliary =
        header.cmsg_level == libc::SOL_PACKET && header.cmsg_type == libc::PACKET_AUXDATA;
    if !is_auxiliary {
        return None;
    }
    // SAFETY: such a header is followed by this struct, which may stand at any address.
    let data = unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast::<tpacket_auxdata>()) };
    tag_in(data.tp_status, data.tp_vlan_tpid, data.tp_vlan_tci)
}
