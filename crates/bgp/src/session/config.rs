//! What a session is to be.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::open::{AS_TRANS, Capability, Open};
use crate::wire::prefix::AddressFamily;

/// Who a session is, whom it expects, and what it offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BgpSessionConfig {
    /// Our AS number.
    pub local_as: u32,
    /// The peer's AS number; `None` takes any.
    pub peer_as: Option<u32>,
    /// Our BGP Identifier.
    pub identifier: Ipv4Addr,
    /// The hold time that we offer: 0 for none, else 3 at least.
    pub hold_time_s: u16,
    /// How long to wait before another connection is tried.
    pub connect_retry_ns: u64,
    /// Whether the peer opens the connection.
    pub passive: bool,
    /// Families that we offer.
    pub families: Vec<AddressFamily>,
    /// Whether we offer extended messages.
    pub extended_messages: bool,
    /// For how many seconds the peer is asked to keep our routes while we restart; `None` does not offer
    /// graceful restart.
    pub restart_time_s: Option<u16>,
    /// The next hop of our IPv4 routes.
    pub next_hop_ipv4: Ipv4Addr,
    /// The next hop of our IPv6 routes.
    pub next_hop_ipv6: Ipv6Addr,
}

/// Why a session cannot be as it is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BgpConfigError {
    /// RFC 4271 §4.2.
    #[error("hold_time_s: {0} seconds; take 0 for none, or 3 at least (RFC 4271)")]
    HoldTime(u16),
    /// 0 is reserved (RFC 7607).
    #[error("{0}: 0 is no AS number; take 1 to 4294967295")]
    AsNumber(&'static str),
    /// RFC 6286.
    #[error("identifier: 0.0.0.0 is no BGP Identifier; take an IPv4 address of the speaker")]
    Identifier,
    /// There must be something to talk about.
    #[error("families: none is given; take ipv4, ipv6 or both")]
    NoFamily,
    /// The field has twelve bits.
    #[error("restart_time_s: {0} seconds; take 4095 at most (RFC 4724)")]
    RestartTime(u16),
}

impl BgpSessionConfig {
    /// Whether a session can be so.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), BgpConfigError> {
        if matches!(self.hold_time_s, 1 | 2) {
            return Err(BgpConfigError::HoldTime(self.hold_time_s));
        }
        if self.local_as == 0 {
            return Err(BgpConfigError::AsNumber("local_as"));
        }
        if self.peer_as == Some(0) {
            return Err(BgpConfigError::AsNumber("peer_as"));
        }
        if self.identifier.is_unspecified() {
            return Err(BgpConfigError::Identifier);
        }
        if self.families.is_empty() {
            return Err(BgpConfigError::NoFamily);
        }
        match self.restart_time_s {
            Some(seconds @ 4096..) => Err(BgpConfigError::RestartTime(seconds)),
            _ => Ok(()),
        }
    }

    /// Our OPEN. `restarted` says that sessions were up before, so that the peer keeps the routes of then.
    pub fn open(&self, restarted: bool) -> Open {
        let mut capabilities: Vec<_> = self
            .families
            .iter()
            .copied()
            .map(Capability::unicast)
            .collect();
        capabilities.push(Capability::RouteRefresh);
        if self.extended_messages {
            capabilities.push(Capability::ExtendedMessage);
        }
        if let Some(restart_time_s) = self.restart_time_s {
            let kept = |family: &AddressFamily| (family.afi(), 1, true);
            capabilities.push(Capability::GracefulRestart {
                restarted,
                restart_time_s,
                families: self.families.iter().map(kept).collect(),
            });
        }
        capabilities.push(Capability::FourOctetAs(self.local_as));
        Open {
            two_octet_as: u16::try_from(self.local_as).unwrap_or(AS_TRANS),
            hold_time_s: self.hold_time_s,
            identifier: self.identifier,
            capabilities,
        }
    }
}
