//! What TCP sockets can do beyond the usual: keys by which segments are signed, and how much the peer has
//! acknowledged. See `tcp(7)` and RFC 2385.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use crate::socket;

/// The longest key, in bytes.
pub const MD5_KEY_BYTES_MAX: usize = libc::TCP_MD5SIG_MAXKEYLEN;

/// `struct tcp_md5sig` of `linux/tcp.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Md5Signature {
    peer: libc::sockaddr_storage,
    flags: u8,
    prefix_len: u8,
    key_len: u16,
    interface: c_int,
    key: [u8; MD5_KEY_BYTES_MAX],
}

const _: () = assert!(size_of::<Md5Signature>() == 216);

/// Signs segments to a peer with a key, and drops those of it that are not signed so; an empty key ends that.
/// The key must be there before the connection is opened; on a socket that listens, before the peer opens it.
///
/// # Errors
///
/// The key is longer than [`MD5_KEY_BYTES_MAX`], or what the kernel says.
pub fn set_md5_key(socket: &impl AsFd, peer: IpAddr, key: &[u8]) -> io::Result<()> {
    let mut signature = Md5Signature {
        peer: address(peer),
        flags: 0,
        prefix_len: 0,
        key_len: 0,
        interface: 0,
        key: [0; MD5_KEY_BYTES_MAX],
    };
    let place = signature.key.get_mut(..key.len());
    place
        .ok_or(io::ErrorKind::InvalidInput)?
        .copy_from_slice(key);
    signature.key_len = key.len() as u16;
    socket::set(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG, &signature)
}

/// The bytes that were written to a socket and that its peer has not acknowledged.
///
/// # Errors
///
/// What the kernel says.
pub fn unacknowledged_bytes(socket: &impl AsFd) -> io::Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes a number to where one is, which outlives the call.
    let answer = unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::TIOCOUTQ,
            std::ptr::from_mut(&mut bytes),
        )
    };
    socket::succeeded(answer)?;
    Ok(bytes.max(0) as u32)
}

fn address(ip: IpAddr) -> libc::sockaddr_storage {
    // SAFETY: numbers, of which zeros are values.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let to = std::ptr::from_mut(&mut storage);
    match ip {
        IpAddr::V4(ip) => {
            // SAFETY: as above.
            let mut own: libc::sockaddr_in = unsafe { mem::zeroed() };
            own.sin_family = libc::AF_INET as libc::sa_family_t;
            own.sin_addr.s_addr = u32::from_ne_bytes(ip.octets());
            // SAFETY: a storage is larger than any address, and aligned for all.
            unsafe { to.cast::<libc::sockaddr_in>().write(own) };
        }
        IpAddr::V6(ip) => {
            // SAFETY: as above.
            let mut own: libc::sockaddr_in6 = unsafe { mem::zeroed() };
            own.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            own.sin6_addr.s6_addr = ip.octets();
            // SAFETY: as above.
            unsafe { to.cast::<libc::sockaddr_in6>().write(own) };
        }
    }
    storage
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_the_peer_has_not_acknowledged_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("it has an address");
        let mut client = TcpStream::connect(address).expect("it listens");
        let (mut server, _) = listener.accept().expect("a client connects");
        client.write_all(&[7; 1000]).expect("there is room");
        server.read_exact(&mut [0; 1000]).expect("they come");
        // The peer's kernel may delay its acknowledgment.
        while unacknowledged_bytes(&client).expect("a socket") > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_key_has_a_longest_length() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let peer = IpAddr::from([127, 0, 0, 1]);
        let long = set_md5_key(&listener, peer, &[b'k'; MD5_KEY_BYTES_MAX + 1]);
        let error = long.expect_err("too long").kind();
        assert_eq!(error, io::ErrorKind::InvalidInput);
    }
}
