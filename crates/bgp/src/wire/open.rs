//! OPEN (RFC 4271 §4.2) and its capabilities (RFC 5492).

use std::net::Ipv4Addr;

use super::framing::{BgpMessageType, emit_header};
use super::notification::{Notification, code};
use super::prefix::{AddressFamily, SAFI_UNICAST};
use super::reader::Reader;

/// The AS number that stands in two octets for one that needs four (RFC 6793).
pub const AS_TRANS: u16 = 23_456;

const VERSION: u8 = 4;
const PARAMETER_CAPABILITIES: u8 = 2;
/// Says in the place of a parameter's type that the long form follows (RFC 9072).
const EXTENDED_FORM: u8 = 255;

/// What a speaker can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// Routes of a family (RFC 4760).
    Multiprotocol {
        /// The address family.
        afi: u16,
        /// The kind of routes.
        safi: u8,
    },
    /// It answers ROUTE-REFRESH (RFC 2918).
    RouteRefresh,
    /// It takes messages of up to 65,535 octets (RFC 8654).
    ExtendedMessage,
    /// It keeps routes while its peer restarts (RFC 4724).
    GracefulRestart {
        /// Whether it has just restarted.
        restarted: bool,
        /// Seconds, 4,095 at most, for which its routes may be kept.
        restart_time_s: u16,
        /// Families, and whether their forwarding state was kept.
        families: Vec<(u16, u8, bool)>,
    },
    /// AS numbers of four octets (RFC 6793), and its own.
    FourOctetAs(u32),
    /// Any other.
    Other {
        /// Its code.
        code: u8,
        /// Its value, of 255 octets at most.
        value: Vec<u8>,
    },
}

impl Capability {
    /// The capability for unicast routes of a family.
    pub fn unicast(family: AddressFamily) -> Self {
        Self::Multiprotocol {
            afi: family.afi(),
            safi: SAFI_UNICAST,
        }
    }

    /// Reads one. What has a code of ours with a length that does not fit is kept as [`Capability::Other`].
    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let code = reader.u8()?;
        let length = reader.u8()?;
        let value = reader.bytes(length.into())?;
        Some(match (code, value) {
            (1, [high, low, _, safi]) => Self::Multiprotocol {
                afi: u16::from_be_bytes([*high, *low]),
                safi: *safi,
            },
            (2, []) => Self::RouteRefresh,
            (6, []) => Self::ExtendedMessage,
            (64, [high, low, families @ ..]) if families.len() % 4 == 0 => Self::GracefulRestart {
                restarted: high & 0x80 != 0,
                restart_time_s: u16::from_be_bytes([high & 0x0f, *low]),
                families: families
                    .chunks_exact(4)
                    .map(|f| (u16::from_be_bytes([f[0], f[1]]), f[2], f[3] & 0x80 != 0))
                    .collect(),
            },
            (65, [a, b, c, d]) => Self::FourOctetAs(u32::from_be_bytes([*a, *b, *c, *d])),
            (code, value) => Self::Other {
                code,
                value: value.to_vec(),
            },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Multiprotocol { afi, safi } => {
                out.extend_from_slice(&[1, 4]);
                out.extend_from_slice(&afi.to_be_bytes());
                out.extend_from_slice(&[0, *safi]);
            }
            Self::RouteRefresh => out.extend_from_slice(&[2, 0]),
            Self::ExtendedMessage => out.extend_from_slice(&[6, 0]),
            Self::GracefulRestart {
                restarted,
                restart_time_s,
                families,
            } => {
                // As many families as the octet of the length can say.
                let families = &families[..families.len().min(63)];
                out.extend_from_slice(&[64, 2 + 4 * families.len() as u8]);
                let restart = (restart_time_s & 0x0fff) | (u16::from(*restarted) << 15);
                out.extend_from_slice(&restart.to_be_bytes());
                for (afi, safi, kept) in families {
                    out.extend_from_slice(&afi.to_be_bytes());
                    out.extend_from_slice(&[*safi, u8::from(*kept) << 7]);
                }
            }
            Self::FourOctetAs(number) => {
                out.extend_from_slice(&[65, 4]);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Other { code, value } => {
                let value = &value[..value.len().min(255)];
                out.extend_from_slice(&[*code, value.len() as u8]);
                out.extend_from_slice(value);
            }
        }
    }
}

/// An OPEN message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// My Autonomous System: [`AS_TRANS`] for a number that needs four octets.
    pub two_octet_as: u16,
    /// Hold Time, 0 for none.
    pub hold_time_s: u16,
    /// BGP Identifier.
    pub identifier: Ipv4Addr,
    /// What the sender can do.
    pub capabilities: Vec<Capability>,
}

impl Open {
    /// The AS number of the sender, in four octets where it says them.
    pub fn as_number(&self) -> u32 {
        let four_octets = self.capabilities.iter().find_map(|c| match c {
            Capability::FourOctetAs(number) => Some(*number),
            _ => None,
        });
        four_octets.unwrap_or(self.two_octet_as.into())
    }

    /// Whether the sender can do what `capability` says.
    pub fn can(&self, capability: &Capability) -> bool {
        self.capabilities.contains(capability)
    }

    /// Reads what stands behind the header.
    ///
    /// # Errors
    /// The notification that RFC 4271 §6.2 wants.
    pub fn parse(body: &[u8]) -> Result<Self, Notification> {
        let malformed = || Notification::new(code::OPEN_MESSAGE, 0);
        let mut reader = Reader(body);
        let version = reader.u8().ok_or_else(malformed)?;
        if version != VERSION {
            let data = u16::from(VERSION).to_be_bytes().to_vec();
            return Err(Notification::with_data(code::OPEN_MESSAGE, 1, data));
        }
        let mut fixed = || Some((reader.u16()?, reader.u16()?, reader.ipv4()?));
        let (two_octet_as, hold_time_s, identifier) = fixed().ok_or_else(malformed)?;
        // 1 and 2 seconds must be rejected (§4.2).
        if matches!(hold_time_s, 1 | 2) {
            return Err(Notification::new(code::OPEN_MESSAGE, 6));
        }
        if identifier.is_unspecified() {
            return Err(Notification::new(code::OPEN_MESSAGE, 3));
        }
        let open = Self {
            two_octet_as,
            hold_time_s,
            identifier,
            capabilities: parse_parameters(reader)?,
        };
        if open.as_number() == 0 {
            return Err(Notification::new(code::OPEN_MESSAGE, 2));
        }
        Ok(open)
    }

    /// Appends the message, all capabilities in one parameter.
    ///
    /// # Panics
    /// Where the capabilities are longer than 4,000 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut capabilities = Vec::new();
        for capability in &self.capabilities {
            capability.emit(&mut capabilities);
        }
        assert!(capabilities.len() <= 4000, "capabilities fit a message");
        let length = capabilities.len() as u16;
        let parameters: &[u8] = match u8::try_from(length) {
            Ok(0) => &[0],
            Ok(short @ ..=253) => &[short + 2, PARAMETER_CAPABILITIES, short],
            _ => {
                let [all_high, all_low] = (length + 3).to_be_bytes();
                let [high, low] = length.to_be_bytes();
                let long = PARAMETER_CAPABILITIES;
                &[
                    EXTENDED_FORM,
                    EXTENDED_FORM,
                    all_high,
                    all_low,
                    long,
                    high,
                    low,
                ]
            }
        };
        let fixed_len = 1 + 2 + 2 + 4;
        let body_len = fixed_len + parameters.len() + capabilities.len();
        emit_header(BgpMessageType::Open, body_len, out);
        out.push(VERSION);
        out.extend_from_slice(&self.two_octet_as.to_be_bytes());
        out.extend_from_slice(&self.hold_time_s.to_be_bytes());
        out.extend_from_slice(&self.identifier.octets());
        out.extend_from_slice(parameters);
        out.extend_from_slice(&capabilities);
    }
}

/// The capabilities of all optional parameters, in their short or their long form.
fn parse_parameters(mut reader: Reader<'_>) -> Result<Vec<Capability>, Notification> {
    let malformed = || Notification::new(code::OPEN_MESSAGE, 0);
    let mut length = usize::from(reader.u8().ok_or_else(malformed)?);
    let is_long = length != 0 && reader.0.first() == Some(&EXTENDED_FORM);
    if is_long {
        reader.u8();
        length = reader.u16().ok_or_else(malformed)?.into();
    }
    if reader.0.len() != length {
        return Err(malformed());
    }
    let mut capabilities = Vec::new();
    while !reader.is_empty() {
        let mut head = || {
            let kind = reader.u8()?;
            let length = if is_long {
                reader.u16()?
            } else {
                reader.u8()?.into()
            };
            Some((kind, reader.bytes(length.into())?))
        };
        let (kind, value) = head().ok_or_else(malformed)?;
        if kind != PARAMETER_CAPABILITIES {
            return Err(Notification::new(code::OPEN_MESSAGE, 4));
        }
        let mut value = Reader(value);
        while !value.is_empty() {
            capabilities.push(Capability::parse(&mut value).ok_or_else(malformed)?);
        }
    }
    Ok(capabilities)
}
