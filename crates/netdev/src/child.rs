//! Programs that a thread starts and that do not outlive it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Has the kernel kill the program when the thread that starts it ends, however it ends: `kill -9` of this
/// process too (`PR_SET_PDEATHSIG`, prctl(2)). Signals that are blocked here are not in the program.
pub fn end_with_thread(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    let prepare = move || {
        // SAFETY: both calls may be made between fork and exec (signal-safety(7)); the set is initialised
        // by `sigemptyset` before it is read.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have gone before the kernel was told.
            match u32::try_from(libc::getppid()) == Ok(parent) {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        }
    };
    // SAFETY: the closure neither allocates nor locks, as it must not after fork in a process of threads.
    unsafe { command.pre_exec(prepare) }
}

/// A file that becomes readable when the program ends: pidfd_open(2), Linux 5.3.
///
/// # Errors
///
/// What the system says.
pub fn watch(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    match RawFd::try_from(opened) {
        // SAFETY: the kernel has opened it for this call, and nobody else knows it.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => Err(io::Error::last_os_error()),
    }
}
