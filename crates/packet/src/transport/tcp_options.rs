//! The options of a TCP header (RFC 9293 section 3.2, RFC 7323, RFC 2018).

use std::fmt;

use crate::error::HeaderError;
use crate::options::{OptionList, RawOption, RawOptions};

const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Blocks that one SACK option can hold: 40 bytes of options, two of them kind and length.
pub const SACK_BLOCKS_MAX: usize = 4;

/// Bytes that the receiver has beyond those it acknowledges: from `left` up to before `right`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlock {
    /// The first sequence number of the block.
    pub left: u32,
    /// The sequence number after its last one.
    pub right: u32,
}

/// The blocks of a SACK option, at most [`SACK_BLOCKS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    blocks: [SackBlock; SACK_BLOCKS_MAX],
    count: u8,
}

impl SackBlocks {
    /// Takes the first blocks; those beyond [`SACK_BLOCKS_MAX`] are left out, as RFC 2018
    /// section 4 wants the most important ones first.
    #[must_use]
    pub fn new(given: &[SackBlock]) -> Self {
        let mut sack = SackBlocks::default();
        for (slot, &block) in sack.blocks.iter_mut().zip(given) {
            *slot = block;
            sack.count += 1;
        }
        sack
    }

    /// The blocks.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }
}

/// One option of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// One byte of padding.
    NoOperation,
    /// The largest payload that the sender of it takes, in bytes.
    MaximumSegmentSize(u16),
    /// How many bits the sender's windows are shifted.
    WindowScale(u8),
    /// The sender of it understands SACK.
    SackPermitted,
    /// What was received out of order.
    Sack(SackBlocks),
    /// The clock of the sender, and the last one it saw of the peer.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The peer's clock, as last seen.
        echo: u32,
    },
    /// Any other, as it is; also a known one of an unusual length.
    Other {
        /// The kind of option.
        kind: u8,
        /// What follows kind and length.
        data: &'a [u8],
    },
}

impl<'a> TcpOption<'a> {
    fn from_raw(raw: RawOption<'a>) -> Self {
        match (raw.kind, raw.data) {
            _ if raw.is_no_operation() => TcpOption::NoOperation,
            (MAXIMUM_SEGMENT_SIZE, &[high, low]) => {
                TcpOption::MaximumSegmentSize(u16::from_be_bytes([high, low]))
            }
            (WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
            (SACK_PERMITTED, []) => TcpOption::SackPermitted,
            (SACK, data) if data.len() % 8 == 0 && data.len() <= 8 * SACK_BLOCKS_MAX => {
                let mut sack = SackBlocks::default();
                for (slot, bytes) in sack.blocks.iter_mut().zip(data.chunks_exact(8)) {
                    let (left, right) = pair(bytes);
                    *slot = SackBlock { left, right };
                    sack.count += 1;
                }
                TcpOption::Sack(sack)
            }
            (TIMESTAMPS, data) if data.len() == 8 => {
                let (value, echo) = pair(data);
                TcpOption::Timestamps { value, echo }
            }
            (kind, data) => TcpOption::Other { kind, data },
        }
    }
}

/// Two 32-bit numbers out of eight bytes.
fn pair(bytes: &[u8]) -> (u32, u32) {
    let number = u64::from_be_bytes(bytes.try_into().expect("the caller cuts out eight bytes"));
    let low = u32::try_from(number & 0xffff_ffff).expect("the lower half is 32 bits");
    (
        u32::try_from(number >> 32).expect("the upper half is 32 bits"),
        low,
    )
}

/// Goes over the options area of a header without keeping it; ends at what is not well formed.
pub fn iterate(bytes: &[u8]) -> impl Iterator<Item = TcpOption<'_>> {
    RawOptions::over(bytes).map(TcpOption::from_raw)
}

/// The options of a TCP header, in order: well formed, at most 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TcpOptions(OptionList);

impl TcpOptions {
    /// No options.
    pub const EMPTY: TcpOptions = TcpOptions(OptionList::EMPTY);

    /// Takes the options area of a header; what follows an end mark is left out.
    ///
    /// # Errors
    /// When an option has a length that cannot be, or there are more than 40 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        OptionList::parse("tcp", bytes).map(TcpOptions)
    }

    /// Appends an option.
    ///
    /// # Errors
    /// When the options would be more than 40 bytes.
    pub fn push(&mut self, option: TcpOption<'_>) -> Result<(), HeaderError> {
        let mut push = |kind, data: &[u8]| self.0.push("tcp", kind, data);
        match option {
            TcpOption::NoOperation => self.0.push_no_operation("tcp"),
            TcpOption::MaximumSegmentSize(size) => push(MAXIMUM_SEGMENT_SIZE, &size.to_be_bytes()),
            TcpOption::WindowScale(shift) => push(WINDOW_SCALE, &[shift]),
            TcpOption::SackPermitted => push(SACK_PERMITTED, &[]),
            TcpOption::Sack(sack) => {
                let mut data = [0; 8 * SACK_BLOCKS_MAX];
                for (slot, block) in data.chunks_exact_mut(8).zip(sack.as_slice()) {
                    slot[..4].copy_from_slice(&block.left.to_be_bytes());
                    slot[4..].copy_from_slice(&block.right.to_be_bytes());
                }
                push(SACK, &data[..8 * sack.as_slice().len()])
            }
            TcpOption::Timestamps { value, echo } => {
                let number = (u64::from(value) << 32) | u64::from(echo);
                push(TIMESTAMPS, &number.to_be_bytes())
            }
            TcpOption::Other { kind, data } => push(kind, data),
        }
    }

    /// Bytes that the options take in a header: a multiple of 4.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        self.0.padded_bytes()
    }

    /// Writes the options and the padding after them.
    ///
    /// # Panics
    /// When there are not exactly [`TcpOptions::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        self.0.emit(bytes);
    }

    /// The options, in order.
    pub fn iter(&self) -> impl Iterator<Item = TcpOption<'_>> {
        self.0.iter().map(TcpOption::from_raw)
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        TcpOptions::EMPTY
    }
}

impl fmt::Debug for TcpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for TcpOption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::NoOperation => f.write_str("nop"),
            TcpOption::MaximumSegmentSize(size) => write!(f, "mss {size}"),
            TcpOption::WindowScale(shift) => write!(f, "wscale {shift}"),
            TcpOption::SackPermitted => f.write_str("sackOK"),
            TcpOption::Sack(sack) => {
                f.write_str("sack")?;
                sack.as_slice()
                    .iter()
                    .try_for_each(|b| write!(f, " {}..{}", b.left, b.right))
            }
            TcpOption::Timestamps { value, echo } => write!(f, "ts {value} echo {echo}"),
            TcpOption::Other { kind, data } => write!(f, "option {kind} ({} bytes)", data.len()),
        }
    }
}

impl fmt::Display for TcpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, option) in self.iter().enumerate() {
            write!(f, "{}{option}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What Linux puts in a SYN.
    const SYN: [u8; 20] = [
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7,
    ];

    #[test]
    fn the_options_of_a_syn() {
        let options = TcpOptions::parse(&SYN).unwrap();
        assert_eq!(
            options.to_string(),
            "mss 1460, sackOK, ts 9 echo 0, nop, wscale 7"
        );
        assert_eq!(
            options.iter().collect::<Vec<_>>(),
            [
                TcpOption::MaximumSegmentSize(1460),
                TcpOption::SackPermitted,
                TcpOption::Timestamps { value: 9, echo: 0 },
                TcpOption::NoOperation,
                TcpOption::WindowScale(7),
            ]
        );
        let mut bytes = [0xff; 20];
        options.emit(&mut bytes);
        assert_eq!(bytes, SYN);
    }

    #[test]
    fn sack_blocks() {
        let bytes = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 1, 1];
        let blocks = [
            SackBlock { left: 1, right: 2 },
            SackBlock {
                left: 256,
                right: 257,
            },
        ];
        let options = TcpOptions::parse(&bytes).unwrap();
        assert_eq!(
            options.iter().last(),
            Some(TcpOption::Sack(SackBlocks::new(&blocks)))
        );
        assert_eq!(options.to_string(), "nop, nop, sack 1..2 256..257");
        assert_eq!(
            SackBlocks::new(&[blocks[0]; 7]).as_slice().len(),
            SACK_BLOCKS_MAX
        );
    }

    #[test]
    fn known_kinds_of_odd_lengths_are_kept_as_they_are() {
        for bytes in [
            &[2u8, 3, 9] as &[u8],
            &[3, 2],
            &[4, 3, 0],
            &[5, 4, 1, 2],
            &[8, 4, 0, 0],
        ] {
            let options = TcpOptions::parse(bytes).unwrap();
            let expected = TcpOption::Other {
                kind: bytes[0],
                data: &bytes[2..],
            };
            assert_eq!(options.iter().next(), Some(expected));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut options = TcpOptions::parse(&SYN).unwrap();
        let full = SackBlocks::new(&[SackBlock::default(); 4]);
        let error = options.push(TcpOption::Sack(full)).unwrap_err();
        let text = "tcp: field 'options' is 54; it must be at most 40 bytes in all";
        assert_eq!(error.to_string(), text);
        assert_eq!(options, TcpOptions::parse(&SYN).unwrap());
    }

    /// As many of any options as fit.
    pub(crate) fn any_options() -> impl Strategy<Value = TcpOptions> {
        let seed = (
            0u8..8,
            any::<(u16, u32, u32)>(),
            prop::collection::vec(any::<u8>(), 0..9),
        );
        prop::collection::vec(seed, 0..7).prop_map(|seeds| {
            let mut options = TcpOptions::EMPTY;
            for (kind, (small, a, b), data) in &seeds {
                let blocks = [SackBlock {
                    left: *a,
                    right: *b,
                }; 4];
                let _ = options.push(match kind {
                    0 | 1 => TcpOption::NoOperation,
                    2 => TcpOption::MaximumSegmentSize(*small),
                    3 => TcpOption::WindowScale(small.to_be_bytes()[0]),
                    4 => TcpOption::SackPermitted,
                    5 => TcpOption::Sack(SackBlocks::new(&blocks[..data.len().min(4)])),
                    6 => TcpOption::Timestamps {
                        value: *a,
                        echo: *b,
                    },
                    _ => TcpOption::Other { kind: 200, data },
                });
            }
            options
        })
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(options in any_options()) {
            let mut bytes = vec![0xa5; options.buffer_len()];
            options.emit(&mut bytes);
            prop_assert_eq!(TcpOptions::parse(&bytes), Ok(options));
            prop_assert!(iterate(&bytes).eq(options.iter()));
        }

        #[test]
        fn pushing_what_was_read_gives_the_same(options in any_options()) {
            let mut again = TcpOptions::EMPTY;
            options.iter().try_for_each(|option| again.push(option)).unwrap();
            prop_assert_eq!(again, options);
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(0u8..12, 0..60)) {
            let _ = (TcpOptions::parse(&bytes), iterate(&bytes).count());
        }
    }
}
