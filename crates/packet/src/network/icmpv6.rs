//! ICMP for IPv6 (RFC 4443), with the messages of neighbor discovery (RFC 4861). The options of
//! those live in `neighbor`; what follows the other messages is their payload.

use std::fmt;
use std::net::Ipv6Addr;

use crate::bytes;
use crate::error::{HeaderError, check_length};
use crate::network::checksum::Sum;
use crate::network::icmp::{four_bytes, icmp_view, two_numbers};
use crate::network::neighbor::NeighborOptions;

mod field {
    use crate::bytes::Field;

    /// The target of a neighbor solicitation or advertisement.
    pub(super) const TARGET: Field = 8..24;
    /// The timers of a router advertisement.
    pub(super) const REACHABLE: Field = 8..12;
    pub(super) const RETRANSMIT: Field = 12..16;
}

const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;

const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
const MANAGED: u8 = 0x80;
const OTHER_CONFIGURATION: u8 = 0x40;

icmp_view! {
    /// A view over an ICMPv6 message.
    Icmpv6View of Icmpv6Header, "icmpv6"
}

impl<B: AsRef<[u8]>> Icmpv6View<B> {
    /// Whether the message is intact, given the sum over its pseudo header.
    pub fn has_right_checksum(&self, pseudo_header: Sum) -> bool {
        pseudo_header.and(self.bytes.as_ref()).checksum() == 0
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Icmpv6View<B> {
    /// Computes and sets the checksum over all of the bytes, given the sum over the pseudo header
    /// ([`crate::network::checksum::pseudo_header_v6`]).
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.and(self.bytes.as_ref()).checksum();
        self.set_checksum(checksum);
    }
}

/// The meaning of an ICMPv6 message. Its checksum is not part of it, for it covers the pseudo
/// header and the payload too: see [`Icmpv6View::fill_checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv6Header {
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
        /// Why: 0 no route, 1 forbidden, 3 address, 4 port, and others.
        code: u8,
    },
    /// The packet in the payload does not fit on a link.
    PacketTooBig {
        /// What fits.
        mtu_bytes: u32,
    },
    /// The packet in the payload was too long on the way.
    TimeExceeded {
        /// 0 hops, 1 waiting for fragments.
        code: u8,
    },
    /// The packet in the payload has a wrong header.
    ParameterProblem {
        /// 0 field, 1 next header, 2 option.
        code: u8,
        /// Which byte of the packet.
        pointer: u32,
    },
    /// Are there routers?
    RouterSolicitation {
        /// The options; `source_link` is the one that belongs here.
        options: NeighborOptions,
    },
    /// I am a router.
    RouterAdvertisement {
        /// The hop limit that hosts shall use; zero says nothing.
        hop_limit: u8,
        /// Addresses come from DHCPv6.
        managed: bool,
        /// Other settings come from DHCPv6.
        other_configuration: bool,
        /// How long this is a default router; zero says that it is none.
        lifetime_s: u16,
        /// How long a neighbor counts as reachable; zero says nothing.
        reachable_ms: u32,
        /// Time between solicitations; zero says nothing.
        retransmit_ms: u32,
        /// The options; `source_link`, `mtu_bytes` and `prefix` belong here.
        options: NeighborOptions,
    },
    /// Who has the target address?
    NeighborSolicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// The options; `source_link` is the one that belongs here.
        options: NeighborOptions,
    },
    /// I have the target address.
    NeighborAdvertisement {
        /// The sender is a router.
        router: bool,
        /// It was asked.
        solicited: bool,
        /// What was known before shall be forgotten.
        override_known: bool,
        /// The address told about.
        target: Ipv6Addr,
        /// The options; `target_link` is the one that belongs here.
        options: NeighborOptions,
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

impl Icmpv6Header {
    /// Reads the message in `bytes`. Those of neighbor discovery end with the bytes; of the
    /// others the payload is what follows [`Icmpv6Header::buffer_len`]. Fields that must be zero
    /// are not kept.
    ///
    /// # Errors
    /// When the bytes end too early, or an option of neighbor discovery has a wrong length.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = Icmpv6View::new_checked(bytes)?;
        let (kind, code, rest) = (view.kind(), view.code(), view.rest());
        let [identifier, sequence] = two_numbers(rest);
        let number = u32::from_be_bytes(rest);
        Ok(match (kind, code) {
            (ECHO_REQUEST, 0) => Icmpv6Header::EchoRequest {
                identifier,
                sequence,
            },
            (ECHO_REPLY, 0) => Icmpv6Header::EchoReply {
                identifier,
                sequence,
            },
            (DESTINATION_UNREACHABLE, _) => Icmpv6Header::DestinationUnreachable { code },
            (PACKET_TOO_BIG, 0) => Icmpv6Header::PacketTooBig { mtu_bytes: number },
            (TIME_EXCEEDED, _) => Icmpv6Header::TimeExceeded { code },
            (PARAMETER_PROBLEM, _) => Icmpv6Header::ParameterProblem {
                code,
                pointer: number,
            },
            (ROUTER_SOLICITATION, 0) => {
                let options = NeighborOptions::parse(view.payload())?;
                Icmpv6Header::RouterSolicitation { options }
            }
            (ROUTER_ADVERTISEMENT, 0) => parse_router_advertisement(bytes, rest)?,
            (NEIGHBOR_SOLICITATION, 0) => {
                let (target, options) = parse_target(bytes)?;
                Icmpv6Header::NeighborSolicitation { target, options }
            }
            (NEIGHBOR_ADVERTISEMENT, 0) => {
                let (target, options) = parse_target(bytes)?;
                Icmpv6Header::NeighborAdvertisement {
                    router: rest[0] & ROUTER != 0,
                    solicited: rest[0] & SOLICITED != 0,
                    override_known: rest[0] & OVERRIDE != 0,
                    target,
                    options,
                }
            }
            _ => Icmpv6Header::Other { kind, code, rest },
        })
    }

    /// Bytes that [`Icmpv6Header::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self {
            Icmpv6Header::RouterSolicitation { options } => HEADER_BYTES + options.buffer_len(),
            Icmpv6Header::RouterAdvertisement { options, .. } => {
                field::RETRANSMIT.end + options.buffer_len()
            }
            Icmpv6Header::NeighborSolicitation { options, .. }
            | Icmpv6Header::NeighborAdvertisement { options, .. } => {
                field::TARGET.end + options.buffer_len()
            }
            _ => HEADER_BYTES,
        }
    }

    /// Writes the message, with a checksum of zero, at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Icmpv6Header::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let (kind, code, rest) = self.first_words();
        match self {
            Icmpv6Header::RouterSolicitation { options } => {
                options.emit(&mut bytes[HEADER_BYTES..]);
            }
            Icmpv6Header::RouterAdvertisement {
                reachable_ms,
                retransmit_ms,
                options,
                ..
            } => {
                bytes::set_u32(bytes, field::REACHABLE, *reachable_ms);
                bytes::set_u32(bytes, field::RETRANSMIT, *retransmit_ms);
                options.emit(&mut bytes[field::RETRANSMIT.end..]);
            }
            Icmpv6Header::NeighborSolicitation { target, options }
            | Icmpv6Header::NeighborAdvertisement {
                target, options, ..
            } => {
                bytes[field::TARGET].copy_from_slice(&target.octets());
                options.emit(&mut bytes[field::TARGET.end..]);
            }
            _ => {}
        }
        let mut view = Icmpv6View::new_unchecked(bytes);
        view.set_kind(kind, code);
        view.set_checksum(0);
        view.set_rest(rest);
    }

    /// Kind, code, and the four bytes that mean something else in each kind.
    fn first_words(&self) -> (u8, u8, [u8; 4]) {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        match *self {
            Icmpv6Header::EchoRequest {
                identifier,
                sequence,
            } => (ECHO_REQUEST, 0, four_bytes(identifier, sequence)),
            Icmpv6Header::EchoReply {
                identifier,
                sequence,
            } => (ECHO_REPLY, 0, four_bytes(identifier, sequence)),
            Icmpv6Header::DestinationUnreachable { code } => {
                (DESTINATION_UNREACHABLE, code, [0; 4])
            }
            Icmpv6Header::PacketTooBig { mtu_bytes } => {
                (PACKET_TOO_BIG, 0, mtu_bytes.to_be_bytes())
            }
            Icmpv6Header::TimeExceeded { code } => (TIME_EXCEEDED, code, [0; 4]),
            Icmpv6Header::ParameterProblem { code, pointer } => {
                (PARAMETER_PROBLEM, code, pointer.to_be_bytes())
            }
            Icmpv6Header::RouterSolicitation { .. } => (ROUTER_SOLICITATION, 0, [0; 4]),
            Icmpv6Header::RouterAdvertisement {
                hop_limit,
                managed,
                other_configuration,
                lifetime_s,
                ..
            } => {
                let flags = flag(managed, MANAGED) | flag(other_configuration, OTHER_CONFIGURATION);
                let first = u16::from_be_bytes([hop_limit, flags]);
                (ROUTER_ADVERTISEMENT, 0, four_bytes(first, lifetime_s))
            }
            Icmpv6Header::NeighborSolicitation { .. } => (NEIGHBOR_SOLICITATION, 0, [0; 4]),
            Icmpv6Header::NeighborAdvertisement {
                router,
                solicited,
                override_known,
                ..
            } => {
                let flags = flag(router, ROUTER)
                    | flag(solicited, SOLICITED)
                    | flag(override_known, OVERRIDE);
                (NEIGHBOR_ADVERTISEMENT, 0, [flags, 0, 0, 0])
            }
            Icmpv6Header::Other { kind, code, rest } => (kind, code, rest),
        }
    }
}

fn parse_router_advertisement(bytes: &[u8], rest: [u8; 4]) -> Result<Icmpv6Header, HeaderError> {
    check_length("icmpv6 router advertisement", bytes, field::RETRANSMIT.end)?;
    Ok(Icmpv6Header::RouterAdvertisement {
        hop_limit: rest[0],
        managed: rest[1] & MANAGED != 0,
        other_configuration: rest[1] & OTHER_CONFIGURATION != 0,
        lifetime_s: u16::from_be_bytes([rest[2], rest[3]]),
        reachable_ms: bytes::u32_at(bytes, field::REACHABLE),
        retransmit_ms: bytes::u32_at(bytes, field::RETRANSMIT),
        options: NeighborOptions::parse(&bytes[field::RETRANSMIT.end..])?,
    })
}

/// What follows the first eight bytes of neighbor solicitations and advertisements.
fn parse_target(bytes: &[u8]) -> Result<(Ipv6Addr, NeighborOptions), HeaderError> {
    check_length("icmpv6 neighbor message", bytes, field::TARGET.end)?;
    let target = Ipv6Addr::from(bytes::array::<16>(bytes, field::TARGET));
    Ok((target, NeighborOptions::parse(&bytes[field::TARGET.end..])?))
}

impl fmt::Display for Icmpv6Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Icmpv6Header::EchoRequest {
                identifier,
                sequence,
            } => {
                write!(f, "icmpv6 echo request id {identifier} seq {sequence}")
            }
            Icmpv6Header::EchoReply {
                identifier,
                sequence,
            } => {
                write!(f, "icmpv6 echo reply id {identifier} seq {sequence}")
            }
            Icmpv6Header::DestinationUnreachable { code } => {
                write!(f, "icmpv6 destination unreachable code {code}")
            }
            Icmpv6Header::PacketTooBig { mtu_bytes } => {
                write!(f, "icmpv6 packet too big mtu {mtu_bytes}")
            }
            Icmpv6Header::TimeExceeded { code } => write!(f, "icmpv6 time exceeded code {code}"),
            Icmpv6Header::ParameterProblem { code, pointer } => {
                write!(f, "icmpv6 parameter problem code {code} at {pointer}")
            }
            Icmpv6Header::RouterSolicitation { .. } => f.write_str("icmpv6 router solicitation"),
            Icmpv6Header::RouterAdvertisement { lifetime_s, .. } => {
                write!(f, "icmpv6 router advertisement for {lifetime_s} s")
            }
            Icmpv6Header::NeighborSolicitation { target, .. } => {
                write!(f, "icmpv6 who has {target}?")
            }
            Icmpv6Header::NeighborAdvertisement {
                target, options, ..
            } => {
                write!(f, "icmpv6 {target} is ")?;
                match options.target_link {
                    Some(address) => write!(f, "at {address}"),
                    None => f.write_str("here"),
                }
            }
            Icmpv6Header::Other { kind, code, .. } => write!(f, "icmpv6 type {kind} code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::MacAddress;
    use crate::network::checksum::pseudo_header_v6;
    use crate::network::ip_protocol::IpProtocol;
    use crate::network::neighbor::tests::any_neighbor_options;
    use proptest::prelude::*;

    fn emitted(header: &Icmpv6Header) -> Vec<u8> {
        let mut bytes = vec![0xff; header.buffer_len()];
        header.emit(&mut bytes);
        bytes
    }

    #[test]
    fn every_field_lies_where_it_should() {
        let bytes = [129, 0, 0xab, 0xcd, 0x12, 0x34, 0, 7, 0xaa];
        let view = Icmpv6View::new_checked(bytes).unwrap();
        assert_eq!(
            (view.kind(), view.code(), view.checksum()),
            (129, 0, 0xabcd)
        );
        assert_eq!(
            (view.rest(), view.payload()),
            ([0x12, 0x34, 0, 7], &[0xaa][..])
        );
        let header = Icmpv6Header::EchoReply {
            identifier: 0x1234,
            sequence: 7,
        };
        assert_eq!(Icmpv6Header::parse(&bytes), Ok(header));
        assert_eq!(view.to_string(), "icmpv6 echo reply id 4660 seq 7");
    }

    #[test]
    fn a_neighbor_solicitation_and_its_answer() {
        let target = "fe80::1".parse().unwrap();
        let options = NeighborOptions::source(MacAddress([2, 0, 0, 0, 0, 1]));
        let asked = Icmpv6Header::NeighborSolicitation { target, options };
        let mut expected = vec![135, 0, 0, 0, 0, 0, 0, 0];
        expected.extend(target.octets());
        expected.extend([1, 1, 2, 0, 0, 0, 0, 1]);
        assert_eq!(emitted(&asked), expected);
        assert_eq!(asked.to_string(), "icmpv6 who has fe80::1?");

        let answer = Icmpv6Header::NeighborAdvertisement {
            router: false,
            solicited: true,
            override_known: true,
            target,
            options: NeighborOptions::target(MacAddress([2, 0, 0, 0, 0, 9])),
        };
        expected[..8].copy_from_slice(&[136, 0, 0, 0, 0x60, 0, 0, 0]);
        expected[24..].copy_from_slice(&[2, 1, 2, 0, 0, 0, 0, 9]);
        assert_eq!(emitted(&answer), expected);
        assert_eq!(answer.to_string(), "icmpv6 fe80::1 is at 02:00:00:00:00:09");
    }

    #[test]
    fn a_router_advertisement() {
        let header = Icmpv6Header::RouterAdvertisement {
            hop_limit: 64,
            managed: false,
            other_configuration: true,
            lifetime_s: 1800,
            reachable_ms: 30_000,
            retransmit_ms: 1000,
            options: NeighborOptions::NONE,
        };
        let expected = [
            134, 0, 0, 0, 64, 0x40, 7, 8, 0, 0, 0x75, 0x30, 0, 0, 3, 0xe8,
        ];
        assert_eq!(emitted(&header), expected);
        assert_eq!(header.to_string(), "icmpv6 router advertisement for 1800 s");
        let error = Icmpv6Header::parse(&expected[..15]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("icmpv6 router advertisement: 15 bytes"),
            "{error}"
        );
    }

    #[test]
    fn errors_have_their_numbers() {
        let kinds = [
            (
                Icmpv6Header::DestinationUnreachable { code: 4 },
                [1, 4, 0, 0, 0, 0, 0, 0],
            ),
            (
                Icmpv6Header::PacketTooBig { mtu_bytes: 1280 },
                [2, 0, 0, 0, 0, 0, 5, 0],
            ),
            (
                Icmpv6Header::TimeExceeded { code: 0 },
                [3, 0, 0, 0, 0, 0, 0, 0],
            ),
            (
                Icmpv6Header::ParameterProblem {
                    code: 1,
                    pointer: 40,
                },
                [4, 1, 0, 0, 0, 0, 0, 40],
            ),
        ];
        for (header, expected) in kinds {
            assert_eq!(emitted(&header), expected, "{header}");
            assert_eq!(Icmpv6Header::parse(&expected), Ok(header));
        }
    }

    #[test]
    fn the_checksum_covers_everything() {
        let (a, b) = ("fe80::1".parse().unwrap(), "ff02::1".parse().unwrap());
        let pseudo_header = pseudo_header_v6(a, b, IpProtocol::ICMPV6, 12);
        let mut view = Icmpv6View::new_checked([128, 0, 0, 0, 0, 1, 0, 2, 3, 4, 5, 6]).unwrap();
        view.fill_checksum(pseudo_header);
        assert!(view.has_right_checksum(pseudo_header));
        view.payload_mut()[0] ^= 1;
        assert!(!view.has_right_checksum(pseudo_header));
    }

    #[test]
    fn too_few_bytes_are_refused_with_the_numbers() {
        let short = HeaderError::Short {
            header: "icmpv6",
            needed: 8,
            available: 7,
        };
        assert_eq!(Icmpv6Header::parse(&[128; 7]), Err(short));
        let header = "icmpv6 neighbor message";
        let short = HeaderError::Short {
            header,
            needed: 24,
            available: 23,
        };
        let mut bytes = [0; 23];
        bytes[0] = NEIGHBOR_SOLICITATION;
        assert_eq!(Icmpv6Header::parse(&bytes), Err(short));
    }

    fn any_header() -> impl Strategy<Value = Icmpv6Header> {
        let numbers = any::<(u8, u8, u16, u16, u32, u32)>();
        (
            0u8..11,
            numbers,
            any::<(bool, bool, bool, u128)>(),
            any_neighbor_options(),
        )
            .prop_map(
                |(which, (code, small, a, b, c, d), (on, also, third, target), options)| {
                    let target = target.into();
                    match which {
                        0 => Icmpv6Header::EchoRequest {
                            identifier: a,
                            sequence: b,
                        },
                        1 => Icmpv6Header::EchoReply {
                            identifier: a,
                            sequence: b,
                        },
                        2 => Icmpv6Header::DestinationUnreachable { code },
                        3 => Icmpv6Header::PacketTooBig { mtu_bytes: c },
                        4 => Icmpv6Header::TimeExceeded { code },
                        5 => Icmpv6Header::ParameterProblem { code, pointer: c },
                        6 => Icmpv6Header::RouterSolicitation { options },
                        7 => Icmpv6Header::RouterAdvertisement {
                            hop_limit: small,
                            managed: on,
                            other_configuration: also,
                            lifetime_s: a,
                            reachable_ms: c,
                            retransmit_ms: d,
                            options,
                        },
                        8 => Icmpv6Header::NeighborSolicitation { target, options },
                        9 => Icmpv6Header::NeighborAdvertisement {
                            router: on,
                            solicited: also,
                            override_known: third,
                            target,
                            options,
                        },
                        _ => Icmpv6Header::Other {
                            kind: 143,
                            code,
                            rest: c.to_be_bytes(),
                        },
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(header in any_header()) {
            prop_assert_eq!(Icmpv6Header::parse(&emitted(&header)), Ok(header));
            prop_assert!(!header.to_string().is_empty());
        }

        #[test]
        fn any_bytes_are_safe(mut bytes in prop::collection::vec(0u8..6, 0..90), kind in 120u8..140) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let _ = Icmpv6View::new_unchecked(&bytes).to_string();
        }
    }
}
