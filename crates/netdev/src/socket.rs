//! Opening sockets, and reading and setting their options, with values of any type; which options
//! there are is the business of who uses them.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libc::socklen_t;

/// Opens a socket that is closed when another program is executed. `kind` is a type with flags,
/// such as `SOCK_RAW | SOCK_NONBLOCK`.
///
/// # Errors
///
/// What the kernel says.
pub fn open(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes three numbers, and no memory.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Sets an option.
///
/// # Errors
///
/// What the kernel says.
pub fn set<T: Copy>(socket: &impl AsFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a value that outlives the call.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    };
    succeeded(answer)
}

/// A value that the kernel may write: any bytes are a value of it.
///
/// # Safety
///
/// It is made of numbers only.
pub unsafe trait Plain: Copy {}

// SAFETY: a number.
unsafe impl Plain for c_int {}
// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: two numbers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: three numbers.
unsafe impl Plain for libc::ucred {}
// SAFETY: numbers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: a number.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: numbers.
unsafe impl Plain for libc::xdp_statistics {}

/// Reads an option.
///
/// # Errors
///
/// What the kernel says.
pub fn read<T: Plain>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut bytes = size_of::<T>() as socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, the size of what is there, and any bytes are
    // right there.
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

/// The result of a system call that answers 0 when all went well.
///
/// # Errors
///
/// The error of this thread's last call, when the answer is another.
pub fn succeeded(answer: c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
