//! What requests carry after the handshake.

use super::secret::Secrets;
use crate::control::worker_command::PortMode;

/// What requests carry that are for a mode.
#[derive(Debug)]
pub(in crate::control) struct ApiHandles {
    stateless: String,
    stateful: String,
}

impl ApiHandles {
    /// New ones.
    pub(super) fn draw(secrets: &mut Secrets) -> ApiHandles {
        ApiHandles {
            stateless: secrets.draw(),
            stateful: secrets.draw(),
        }
    }

    /// That of a mode.
    pub(in crate::control) fn of(&self, mode: PortMode) -> &str {
        match mode {
            PortMode::Stateless => &self.stateless,
            PortMode::Stateful => &self.stateful,
        }
    }
}
