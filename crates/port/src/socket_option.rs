//! Options of sockets, read and set.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::socklen_t;

/// Sets an option.
pub(crate) fn set<T: Copy>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a value that outlives the call.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    };
    succeeded(answer)
}

/// Reads an option. `T` is a plain value that the kernel writes there.
pub(crate) fn read<T: Copy>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut bytes = size_of::<T>() as socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, the size of what is there; the types that
    // are read are made of numbers, of which any bytes are right.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_mut(value).cast(),
            &mut bytes,
        )
    };
    succeeded(answer)
}

/// What a system call says that answers 0 when all went well.
pub(crate) fn succeeded(answer: c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
