//! Why a node cannot be made or changed.

use std::io;

use allosaur_netdev::netlink_batch::RefusedChange;
use thiserror::Error;

/// Why a node cannot be made or changed, with the remedy.
#[derive(Debug, Error)]
pub enum NodesError {
    /// A privilege is missing.
    #[error(
        "the server may not {0}: the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN are missing. Start the \
         server as root, by `sudo env \"PATH=$PATH\" allosaur server`: namespaces get their names in \
         /run/netns, which is root's"
    )]
    Privilege(&'static str),
    /// Somebody has made a namespace of that name.
    #[error(
        "the network namespace '{0}' is there already and is not this server's: remove it with \
         `ip netns delete {0}`"
    )]
    Foreign(String),
    /// There is no such node.
    #[error(
        "port {port} has no node {mac}: add it with add_node, or list the nodes with get_nodes"
    )]
    UnknownNode {
        /// The port.
        port: u8,
        /// Its MAC address.
        mac: String,
    },
    /// There is no such shared namespace.
    #[error(
        "port {port} has no shared namespace '{name}': add one with add_shared_ns, which answers its name"
    )]
    UnknownShared {
        /// The port.
        port: u8,
        /// The name that was given.
        name: String,
    },
    /// It cannot be done to this one.
    #[error("{0}")]
    Unfit(String),
    /// The system refuses.
    #[error("the system refuses to {0}: {1}")]
    System(&'static str, io::Error),
}

impl NodesError {
    /// What the system says to something.
    pub(crate) fn refused(what: &'static str, error: impl Into<io::Error>) -> NodesError {
        let error = error.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied => NodesError::Privilege(what),
            _ => NodesError::System(what, error),
        }
    }
}

impl From<RefusedChange> for NodesError {
    fn from(refused: RefusedChange) -> NodesError {
        NodesError::refused(refused.change, refused.error)
    }
}

/// A MAC address as text.
pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = mac;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}
