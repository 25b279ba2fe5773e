//! ROUTE-REFRESH (RFC 2918), with the subtypes of RFC 7313.

use super::framing::{BgpMessageType, emit_header};
use super::notification::{Notification, code};
use super::prefix::{AddressFamily, SAFI_UNICAST};

/// A ROUTE-REFRESH message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRefresh {
    /// The address family.
    pub afi: u16,
    /// 0 asks for all routes; 1 and 2 mark the begin and the end of an answer.
    pub subtype: u8,
    /// The kind of routes.
    pub safi: u8,
}

impl RouteRefresh {
    /// A request for all routes of a family.
    pub fn request(family: AddressFamily) -> Self {
        Self {
            afi: family.afi(),
            subtype: 0,
            safi: SAFI_UNICAST,
        }
    }

    /// Reads what stands behind the header.
    ///
    /// # Errors
    /// Where it does not have four octets (RFC 7313 §5).
    pub fn parse(body: &[u8]) -> Result<Self, Notification> {
        let Ok([high, low, subtype, safi]) = <[u8; 4]>::try_from(body) else {
            let mut message = Vec::new();
            emit_header(BgpMessageType::RouteRefresh, body.len(), &mut message);
            message.extend_from_slice(body);
            return Err(Notification::with_data(code::ROUTE_REFRESH, 1, message));
        };
        Ok(Self {
            afi: u16::from_be_bytes([high, low]),
            subtype,
            safi,
        })
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_header(BgpMessageType::RouteRefresh, 4, out);
        out.extend_from_slice(&self.afi.to_be_bytes());
        out.extend_from_slice(&[self.subtype, self.safi]);
    }

    /// The family whose routes are asked for; `None` for marks and for families that we do not have.
    pub fn asked(&self) -> Option<AddressFamily> {
        AddressFamily::of(self.afi, self.safi).filter(|_| self.subtype == 0)
    }
}
