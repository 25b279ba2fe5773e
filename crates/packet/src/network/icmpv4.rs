//! ICMP for IPv4 (RFC 792): the eight bytes that every message begins with. What follows them
//! (echo data, the packet that an error is about) is the payload.

use std::fmt;
use std::net::Ipv4Addr;

use crate::error::HeaderError;
use crate::network::checksum;
use crate::network::icmp::{four_bytes, icmp_view, two_numbers};

const ECHO_REPLY: u8 = 0;
const DESTINATION_UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

icmp_view! {
    /// A view over an ICMP message.
    Icmpv4View of Icmpv4Header, "icmpv4"
}

impl<B: AsRef<[u8]>> Icmpv4View<B> {
    /// Whether the message is intact.
    pub fn has_right_checksum(&self) -> bool {
        checksum::checksum(self.bytes.as_ref()) == 0
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Icmpv4View<B> {
    /// Computes and sets the checksum over all of the bytes.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let checksum = checksum::checksum(self.bytes.as_ref());
        self.set_checksum(checksum);
    }
}

/// The meaning of an ICMP message. Its checksum is not part of it, for it covers the payload too:
/// see [`Icmpv4View::fill_checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv4Header {
    /// Are you there?
    EchoRequest {
        /// Which of the askers.
        identifier: u16,
        /// Which of its questions.
        sequence: u16,
    },
    /// I am.
    EchoReply {
        /// As in the request.
        identifier: u16,
        /// As in the request.
        sequence: u16,
    },
    /// The packet in the payload could not be delivered.
    DestinationUnreachable {
        /// Why: 0 network, 1 host, 2 protocol, 3 port, 4 too large, and others.
        code: u8,
        /// What fits on the next link when it was too large (RFC 1191), else zero.
        next_hop_mtu_bytes: u16,
    },
    /// There is a better route to where the packet in the payload went.
    Redirect {
        /// For whom: 0 network, 1 host, and with type of service.
        code: u8,
        /// The better router.
        gateway: Ipv4Addr,
    },
    /// The packet in the payload was too long on the way.
    TimeExceeded {
        /// 0 hops, 1 waiting for fragments.
        code: u8,
    },
    /// The packet in the payload has a wrong header.
    ParameterProblem {
        /// Why.
        code: u8,
        /// Which byte of its header.
        pointer: u8,
    },
    /// Any other.
    Other {
        /// What kind of message (the type field).
        kind: u8,
        /// Which of its kind.
        code: u8,
        /// The four bytes that mean something else in each kind.
        rest: [u8; 4],
    },
}

impl Icmpv4Header {
    /// Reads the header at the start of `bytes`. Fields that must be zero are not kept.
    ///
    /// # Errors
    /// When the bytes end before the header does.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = Icmpv4View::new_checked(bytes)?;
        let (kind, code, rest) = (view.kind(), view.code(), view.rest());
        let [identifier, sequence] = two_numbers(rest);
        Ok(match (kind, code) {
            (ECHO_REQUEST, 0) => Icmpv4Header::EchoRequest {
                identifier,
                sequence,
            },
            (ECHO_REPLY, 0) => Icmpv4Header::EchoReply {
                identifier,
                sequence,
            },
            (DESTINATION_UNREACHABLE, _) => Icmpv4Header::DestinationUnreachable {
                code,
                next_hop_mtu_bytes: sequence,
            },
            (REDIRECT, _) => Icmpv4Header::Redirect {
                code,
                gateway: rest.into(),
            },
            (TIME_EXCEEDED, _) => Icmpv4Header::TimeExceeded { code },
            (PARAMETER_PROBLEM, _) => Icmpv4Header::ParameterProblem {
                code,
                pointer: rest[0],
            },
            _ => Icmpv4Header::Other { kind, code, rest },
        })
    }

    /// Bytes that [`Icmpv4Header::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header, with a checksum of zero, at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Icmpv4Header::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let (kind, code, rest) = match *self {
            Icmpv4Header::EchoRequest {
                identifier,
                sequence,
            } => (ECHO_REQUEST, 0, four_bytes(identifier, sequence)),
            Icmpv4Header::EchoReply {
                identifier,
                sequence,
            } => (ECHO_REPLY, 0, four_bytes(identifier, sequence)),
            Icmpv4Header::DestinationUnreachable {
                code,
                next_hop_mtu_bytes,
            } => (
                DESTINATION_UNREACHABLE,
                code,
                four_bytes(0, next_hop_mtu_bytes),
            ),
            Icmpv4Header::Redirect { code, gateway } => (REDIRECT, code, gateway.octets()),
            Icmpv4Header::TimeExceeded { code } => (TIME_EXCEEDED, code, [0; 4]),
            Icmpv4Header::ParameterProblem { code, pointer } => {
                (PARAMETER_PROBLEM, code, [pointer, 0, 0, 0])
            }
            Icmpv4Header::Other { kind, code, rest } => (kind, code, rest),
        };
        let mut view = Icmpv4View::new_unchecked(bytes);
        view.set_kind(kind, code);
        view.set_checksum(0);
        view.set_rest(rest);
    }
}

impl fmt::Display for Icmpv4Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Icmpv4Header::EchoRequest {
                identifier,
                sequence,
            } => {
                write!(f, "icmp echo request id {identifier} seq {sequence}")
            }
            Icmpv4Header::EchoReply {
                identifier,
                sequence,
            } => {
                write!(f, "icmp echo reply id {identifier} seq {sequence}")
            }
            Icmpv4Header::DestinationUnreachable {
                code,
                next_hop_mtu_bytes,
            } => {
                write!(
                    f,
                    "icmp destination unreachable code {code} mtu {next_hop_mtu_bytes}"
                )
            }
            Icmpv4Header::Redirect { code, gateway } => {
                write!(f, "icmp redirect code {code} to {gateway}")
            }
            Icmpv4Header::TimeExceeded { code } => write!(f, "icmp time exceeded code {code}"),
            Icmpv4Header::ParameterProblem { code, pointer } => {
                write!(f, "icmp parameter problem code {code} at {pointer}")
            }
            Icmpv4Header::Other { kind, code, .. } => write!(f, "icmp type {kind} code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ECHO: [u8; 10] = [8, 0, 0x33, 0x33, 0x12, 0x34, 0, 7, 0xaa, 0xbb];

    #[test]
    fn every_field_lies_where_it_should() {
        let view = Icmpv4View::new_checked(ECHO).unwrap();
        assert_eq!((view.kind(), view.code(), view.checksum()), (8, 0, 0x3333));
        assert_eq!(
            (view.rest(), view.payload()),
            ([0x12, 0x34, 0, 7], &[0xaa, 0xbb][..])
        );
        let header = Icmpv4Header::EchoRequest {
            identifier: 0x1234,
            sequence: 7,
        };
        assert_eq!(Icmpv4Header::parse(&ECHO), Ok(header));
        assert_eq!(view.to_string(), "icmp echo request id 4660 seq 7");
    }

    #[test]
    fn the_kinds_have_their_numbers() {
        let kinds = [
            (
                Icmpv4Header::EchoReply {
                    identifier: 1,
                    sequence: 2,
                },
                [0, 0, 0, 0, 0, 1, 0, 2],
            ),
            (
                Icmpv4Header::DestinationUnreachable {
                    code: 4,
                    next_hop_mtu_bytes: 1280,
                },
                [3, 4, 0, 0, 0, 0, 5, 0],
            ),
            (
                Icmpv4Header::Redirect {
                    code: 1,
                    gateway: Ipv4Addr::new(10, 0, 0, 9),
                },
                [5, 1, 0, 0, 10, 0, 0, 9],
            ),
            (
                Icmpv4Header::TimeExceeded { code: 1 },
                [11, 1, 0, 0, 0, 0, 0, 0],
            ),
            (
                Icmpv4Header::ParameterProblem {
                    code: 0,
                    pointer: 8,
                },
                [12, 0, 0, 0, 8, 0, 0, 0],
            ),
            (
                Icmpv4Header::Other {
                    kind: 13,
                    code: 0,
                    rest: [1, 2, 3, 4],
                },
                [13, 0, 0, 0, 1, 2, 3, 4],
            ),
        ];
        for (header, expected) in kinds {
            let mut bytes = [0xff; 8];
            header.emit(&mut bytes);
            assert_eq!(bytes, expected, "{header}");
            assert_eq!(Icmpv4Header::parse(&bytes), Ok(header));
        }
    }

    #[test]
    fn the_checksum_covers_the_payload() {
        let mut view = Icmpv4View::new_checked(ECHO).unwrap();
        assert!(!view.has_right_checksum());
        view.fill_checksum();
        // 0800 + 1234 + 0007 + aabb = c4f6, complemented.
        assert!(view.has_right_checksum() && view.checksum() == !0xc4f6);
        view.payload_mut()[1] ^= 1;
        assert!(!view.has_right_checksum());
    }

    #[test]
    fn too_few_bytes_are_refused_with_the_numbers() {
        let short = HeaderError::Short {
            header: "icmpv4",
            needed: 8,
            available: 7,
        };
        assert_eq!(Icmpv4Header::parse(&ECHO[..7]), Err(short));
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(bytes: [u8; 8], kind in 0u8..16) {
            let mut bytes = bytes;
            bytes[0] = kind;
            let header = Icmpv4Header::parse(&bytes).unwrap();
            let mut emitted = vec![0xa5; header.buffer_len()];
            header.emit(&mut emitted);
            prop_assert_eq!(Icmpv4Header::parse(&emitted), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Icmpv4View::new_unchecked(&bytes).to_string();
        }
    }
}
