//! The state of captures in control, which is next to none: they live on the receive thread.

use crate::control::awaited::Awaited;

/// Captures, receive queues, sockets of ports and service mode.
#[derive(Debug, Default)]
pub(in crate::control) struct Captures {
    pub(super) awaited: Awaited<Captures>,
}
