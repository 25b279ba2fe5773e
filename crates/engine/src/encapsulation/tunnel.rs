//! The list of tunnels, and what a file for one must say.

use std::fmt::Debug;
use std::hash::Hash;

use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::shared_payload::SplitFrame;

use super::vxlan::Vxlan;
use super::{Encapsulation, PrefixBuilder};

/// A kind of tunnel: a value with what one link has of it, a network number and its ends.
pub trait TunnelKind: Copy + Debug + Eq + Hash + Into<Encapsulation> {
    /// Its name, as users write it.
    const NAME: &'static str;

    /// Writes what stands between the MAC addresses of a frame and its packet.
    fn push(&self, packet: EtherType, prefix: &mut PrefixBuilder);

    /// Where the packet of a frame begins that came to the port of this tunnel. It must read any bytes
    /// without a panic.
    fn strip(&self, frame: &SplitFrame<'_>) -> Stripped;

    /// The network that the addresses of its packets belong to: flows in different ones may have the
    /// same addresses. 0 is that of frames without a tunnel.
    fn network(&self) -> u32;
}

/// What was found in front of the packet of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stripped {
    /// A packet.
    Packet {
        /// Where it begins in the frame.
        packet_offset: usize,
        /// What it is, an IP packet or another.
        packet: EtherType,
        /// What is put in front of answers.
        came_in: Encapsulation,
    },
    /// It came to the end of the port's tunnel, but in a network that the port is not in.
    OtherNetwork,
    /// It came to the end of the port's tunnel, and ends too early, has no tunnel's header there, or a
    /// wrong checksum.
    Malformed,
    /// There is no packet.
    Other,
}

/// Makes the enum of all kinds of tunnels, which passes on what is asked to the kind.
macro_rules! tunnels {
    ($($(#[$doc:meta])* $kind:ident,)+) => {
        /// A tunnel: a kind, with what one link has of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Tunnel {
            $($(#[$doc])* $kind($kind),)+
        }

        impl Tunnel {
            /// The names of all kinds, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($kind::NAME),+];

            /// The name of its kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Tunnel::$kind(_) => $kind::NAME,)+
                }
            }

            /// See [`TunnelKind::push`].
            pub(super) fn push(&self, packet: EtherType, prefix: &mut PrefixBuilder) {
                match self {
                    $(Tunnel::$kind(it) => it.push(packet, prefix),)+
                }
            }

            /// See [`TunnelKind::strip`].
            #[inline]
            pub(super) fn strip(&self, frame: &SplitFrame<'_>) -> Stripped {
                match self {
                    $(Tunnel::$kind(it) => it.strip(frame),)+
                }
            }

            /// See [`TunnelKind::network`].
            pub fn network(&self) -> u32 {
                match self {
                    $(Tunnel::$kind(it) => it.network(),)+
                }
            }
        }
    };
}

tunnels! {
    /// Ethernet frames in UDP (RFC 7348).
    Vxlan,
}
