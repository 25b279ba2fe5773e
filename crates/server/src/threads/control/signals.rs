//! The signals that end a server, as a file to wait for.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::ServiceError;
use crate::threads::refused;

/// SIGINT and SIGTERM as a file to wait for.
pub(super) fn end_signals() -> Result<SignalFd, ServiceError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    let system = |error: nix::Error| refused("to wait for signals")(error.into()).into();
    set.thread_block().map_err(system)?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    SignalFd::with_flags(&set, flags).map_err(system)
}
