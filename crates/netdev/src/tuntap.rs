//! TAP devices: interfaces of the kernel whose other end is a file, as
//! `Documentation/networking/tuntap.rst` of Linux explains. What the kernel sends arrives there with
//! all checksums and cut to the wire's size, so our stack is tested on one against the kernel's.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::socket::succeeded;

/// A TAP device; it is gone when this is dropped.
#[derive(Debug)]
pub struct TapDevice(File);

impl TapDevice {
    /// Makes one in the network namespace of this thread. It is down, and has no address.
    ///
    /// # Errors
    ///
    /// What the kernel says: the caller may not (it needs `CAP_NET_ADMIN`), has no `/dev/net/tun`, or the
    /// name is taken or longer than 15 bytes.
    pub fn make(name: &str) -> io::Result<TapDevice> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = options
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        if name.len() >= libc::IFNAMSIZ {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut named = [0; libc::IFNAMSIZ];
        for (place, byte) in named.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        let mut request = libc::ifreq {
            ifr_name: named,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_flags: (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short,
            },
        };
        // SAFETY: the kernel reads and writes an `ifreq`, which outlives the call.
        let answer = unsafe {
            libc::ioctl(
                file.as_raw_fd(),
                libc::TUNSETIFF,
                std::ptr::from_mut(&mut request),
            )
        };
        succeeded(answer)?;
        Ok(TapDevice(file))
    }

    /// The next frame that the kernel sent, without FCS: how long it is; `None` when there is none.
    ///
    /// # Errors
    ///
    /// What the kernel says, as when the device is down.
    pub fn receive(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(bytes) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands the kernel a frame without FCS. It has been through its stack when this returns.
    ///
    /// # Errors
    ///
    /// What the kernel says, as when the device is down.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write_all(frame)
    }
}

impl AsFd for TapDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
