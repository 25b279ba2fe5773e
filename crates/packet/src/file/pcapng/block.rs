//! The numbers of blocks and options that are read or written (the IETF's draft on pcapng).

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const ENHANCED_PACKET: u32 = 6;

pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
pub(super) const VERSION_MAJOR: u16 = 1;

/// Type and length before the body, length again after it.
pub(super) const BLOCK_BYTES_MIN: usize = 12;
pub(super) const BODY_OFFSET: usize = 8;

pub(super) const OPTION_END: u16 = 0;
pub(super) const OPTION_TIME_RESOLUTION: u16 = 9;
pub(super) const OPTION_TIME_OFFSET: u16 = 14;
/// The flags of a packet (`epb_flags`, `pack_flags`).
pub(super) const OPTION_FLAGS: u16 = 2;
pub(super) const DIRECTION_BITS: u32 = 0b11;

/// The snapshot length that a writer notes: the one of tcpdump. Frames are cut there.
pub const SNAP_LENGTH: u32 = 262_144;

/// Which way a packet went at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

impl Direction {
    /// As the flags of a packet say it.
    #[must_use]
    pub(super) const fn flags(self) -> u32 {
        match self {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        }
    }

    /// As the flags of a packet say it, if they do.
    pub(super) const fn from_flags(flags: u32) -> Option<Direction> {
        match flags & DIRECTION_BITS {
            1 => Some(Direction::Inbound),
            2 => Some(Direction::Outbound),
            _ => None,
        }
    }
}
