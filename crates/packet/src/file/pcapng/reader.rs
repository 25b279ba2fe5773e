//! pcapng files over bytes: sections, interfaces and packets of either byte order, read.
//!
//! Blocks that hold no packet (names, statistics, secrets, custom ones) are passed over.

use super::block::{
    BLOCK_BYTES_MIN, BODY_OFFSET, BYTE_ORDER_MAGIC, Direction, ENHANCED_PACKET,
    INTERFACE_DESCRIPTION, OPTION_END, OPTION_FLAGS, OPTION_TIME_OFFSET, OPTION_TIME_RESOLUTION,
    PACKET, SECTION_HEADER, SIMPLE_PACKET, VERSION_MAJOR,
};
use super::time::Clock;
use crate::file::record::{CaptureError, LinkType, Record};

/// Whether the bytes start as a pcapng file does.
pub(crate) fn is_pcapng(bytes: &[u8]) -> bool {
    bytes
        .first_chunk::<4>()
        .is_some_and(|start| *start == SECTION_HEADER.to_be_bytes())
}

/// Where packets of a section were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number in the section, from 0.
    pub number: usize,
    /// What its frames are.
    pub link_type: LinkType,
    /// Bytes above which frames were cut; zero says that none were.
    pub snap_length: u32,
    clock: Clock,
}

/// One packet of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapngPacket<'a> {
    /// Where its block begins in the file.
    pub offset: u64,
    /// Where it was captured.
    pub interface: Interface,
    /// Which way it went there, if the file says so.
    pub direction: Option<Direction>,
    /// The frame. That of a simple packet block, which has no time, has the time of the record
    /// before it.
    pub record: Record<'a>,
}

/// Reads the packets of a pcapng file, in order.
///
/// An iterator: after the first error it gives no more.
#[derive(Clone, Debug)]
pub struct PcapngReader<'a> {
    bytes: &'a [u8],
    at: usize,
    records: u64,
    time_ns: u64,
    big_endian: bool,
    /// Those of the current section.
    interfaces: Vec<Interface>,
}

/// One block, its lengths checked.
#[derive(Clone, Copy)]
struct Block<'a> {
    kind: u32,
    /// Where it begins in the file.
    offset: usize,
    body: Body<'a>,
}

/// Bytes with the byte order of their section.
#[derive(Clone, Copy)]
struct Body<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> PcapngReader<'a> {
    /// Starts at the first section.
    ///
    /// # Errors
    /// When the bytes do not start as a pcapng file does.
    pub fn new(bytes: &'a [u8]) -> Result<Self, CaptureError> {
        if !is_pcapng(bytes) {
            return Err(CaptureError::not_a_capture(bytes));
        }
        Ok(PcapngReader {
            bytes,
            at: 0,
            records: 0,
            time_ns: 0,
            big_endian: false,
            interfaces: Vec::new(),
        })
    }

    /// The interfaces of the section that is being read, as far as it was read.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Reads blocks up to the next packet.
    fn read(&mut self) -> Result<Option<PcapngPacket<'a>>, CaptureError> {
        while self.at < self.bytes.len() {
            let block = self.read_block()?;
            let packet = match block.kind {
                SECTION_HEADER => {
                    self.begin_section(block)?;
                    None
                }
                INTERFACE_DESCRIPTION => {
                    let interface = self.read_interface(block)?;
                    self.interfaces.push(interface);
                    None
                }
                ENHANCED_PACKET => Some(self.read_enhanced(block)?),
                SIMPLE_PACKET => Some(self.read_simple(block)?),
                PACKET => Some(self.read_old(block)?),
                _ => None,
            };
            if let Some(packet) = packet {
                self.records += 1;
                self.time_ns = packet.record.time_ns;
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    /// Cuts out the block at the current place and goes behind it.
    fn read_block(&mut self) -> Result<Block<'a>, CaptureError> {
        let offset = self.at;
        let rest = &self.bytes[offset..];
        CaptureError::check_length("a block", self.records, offset, BLOCK_BYTES_MIN, rest.len())?;
        // The kind of a section header reads the same in both orders; what follows tells which.
        if rest[..4] == SECTION_HEADER.to_be_bytes() {
            self.big_endian = self.read_byte_order(rest)?;
        }
        let head = Body {
            bytes: rest,
            big_endian: self.big_endian,
        };
        let (kind, total) = (head.u32_at(0), head.u32_at(4));
        let length = total as usize;
        if length < BLOCK_BYTES_MIN || length % 4 != 0 {
            let expected = "a multiple of 4 and at least 12";
            return Err(self.malformed(offset, "the length of a block", total, expected));
        }
        CaptureError::check_length("a block", self.records, offset, length, rest.len())?;
        let again = head.u32_at(length - 4);
        if again != total {
            let expected = "the length at its start";
            return Err(self.malformed(
                offset,
                "the length at the end of a block",
                again,
                expected,
            ));
        }
        self.at = offset + length;
        let body = Body {
            bytes: &rest[BODY_OFFSET..length - 4],
            ..head
        };
        Ok(Block { kind, offset, body })
    }

    /// Whether the section at the start of `rest` is big-endian.
    fn read_byte_order(&self, rest: &[u8]) -> Result<bool, CaptureError> {
        let magic = Body {
            bytes: rest,
            big_endian: true,
        }
        .u32_at(BODY_OFFSET);
        match magic {
            BYTE_ORDER_MAGIC => Ok(true),
            _ if magic.swap_bytes() == BYTE_ORDER_MAGIC => Ok(false),
            _ => {
                let expected = "0x1a2b3c4d in either order";
                Err(self.malformed(self.at, "the byte order of a section", magic, expected))
            }
        }
    }

    fn begin_section(&mut self, block: Block<'a>) -> Result<(), CaptureError> {
        self.check_body(block, "a section header", 16)?;
        let major = block.body.u16_at(4);
        if major != VERSION_MAJOR {
            let (what, expected) = ("the version of a section", "1");
            return Err(self.malformed(block.offset, what, u32::from(major), expected));
        }
        self.interfaces.clear();
        Ok(())
    }

    fn read_interface(&self, block: Block<'a>) -> Result<Interface, CaptureError> {
        self.check_body(block, "an interface description", 8)?;
        let mut clock = Clock::default();
        for (code, value) in block.body.options(8) {
            match (code, value.bytes.len()) {
                (OPTION_TIME_RESOLUTION, 1) => {
                    let exponent = value.bytes[0];
                    clock = clock.with_resolution(exponent).ok_or_else(|| {
                        let (what, expected) = ("if_tsresol", "at most 10^-38 or 2^-127 s");
                        self.malformed(block.offset, what, u32::from(exponent), expected)
                    })?;
                }
                (OPTION_TIME_OFFSET, 8) => clock = clock.with_offset_s(value.i64()),
                _ => {}
            }
        }
        Ok(Interface {
            link_type: LinkType(u32::from(block.body.u16_at(0))),
            number: self.interfaces.len(),
            snap_length: block.body.u32_at(4),
            clock,
        })
    }

    fn read_enhanced(&self, block: Block<'a>) -> Result<PcapngPacket<'a>, CaptureError> {
        let index = self.read_index(block, "an enhanced packet", 20, |body| body.u32_at(0))?;
        self.read_timed(block, index)
    }

    /// The packet block that was in use before the enhanced one: it has 16 bits of interface
    /// and 16 bits of dropped packets in place of 32 bits of interface.
    fn read_old(&self, block: Block<'a>) -> Result<PcapngPacket<'a>, CaptureError> {
        let index = |body: Body<'_>| u32::from(body.u16_at(0));
        let index = self.read_index(block, "a packet", 20, index)?;
        self.read_timed(block, index)
    }

    fn read_index(
        &self,
        block: Block<'a>,
        what: &'static str,
        bytes: usize,
        index: impl Fn(Body<'a>) -> u32,
    ) -> Result<Interface, CaptureError> {
        self.check_body(block, what, bytes)?;
        self.interface(block, index(block.body))
    }

    fn interface(&self, block: Block<'a>, index: u32) -> Result<Interface, CaptureError> {
        self.interfaces.get(index as usize).copied().ok_or_else(|| {
            let (what, expected) = ("the interface of a packet", "described before it");
            self.malformed(block.offset, what, index, expected)
        })
    }

    /// A packet whose body has times, lengths and data from byte 4 on.
    fn read_timed(
        &self,
        block: Block<'a>,
        interface: Interface,
    ) -> Result<PcapngPacket<'a>, CaptureError> {
        let ticks = (u64::from(block.body.u32_at(4)) << 32) | u64::from(block.body.u32_at(8));
        let time_ns = interface
            .clock
            .time_ns(ticks)
            .ok_or(CaptureError::TimeOutOfRange {
                record: self.records,
                offset: block.offset as u64,
                ticks,
            })?;
        let captured = block.body.u32_at(12);
        let original_len = block.body.u32_at(16);
        let data = &block.body.bytes[20..];
        let data = data.get(..captured as usize).ok_or_else(|| {
            let (what, expected) = ("the captured length", "within the block");
            self.malformed(block.offset, what, captured, expected)
        })?;
        let direction = block.body.direction(20 + data.len().next_multiple_of(4));
        let record = Record {
            time_ns,
            original_len,
            data,
        };
        Ok(PcapngPacket {
            offset: block.offset as u64,
            interface,
            direction,
            record,
        })
    }

    fn read_simple(&self, block: Block<'a>) -> Result<PcapngPacket<'a>, CaptureError> {
        let interface = self.read_index(block, "a simple packet", 4, |_| 0)?;
        let original_len = block.body.u32_at(0);
        let snap_length = match interface.snap_length {
            0 => u32::MAX,
            length => length,
        };
        // The captured length is not said; it follows from the other two.
        let captured = original_len.min(snap_length);
        let data = block.body.bytes[4..]
            .get(..captured as usize)
            .ok_or_else(|| {
                let (what, expected) = ("the length of a simple packet", "within the block");
                self.malformed(block.offset, what, captured, expected)
            })?;
        let record = Record {
            time_ns: self.time_ns,
            original_len,
            data,
        };
        Ok(PcapngPacket {
            offset: block.offset as u64,
            interface,
            direction: None,
            record,
        })
    }

    fn check_body(
        &self,
        block: Block<'_>,
        what: &'static str,
        bytes: usize,
    ) -> Result<(), CaptureError> {
        if block.body.bytes.len() >= bytes {
            return Ok(());
        }
        let length = u32::try_from(block.body.bytes.len()).unwrap_or(u32::MAX);
        Err(self.malformed(
            block.offset,
            what,
            length,
            "as many bytes as its fields take",
        ))
    }

    fn malformed(
        &self,
        offset: usize,
        what: &'static str,
        value: u32,
        expected: &'static str,
    ) -> CaptureError {
        let (record, offset) = (self.records, offset as u64);
        CaptureError::Malformed {
            record,
            offset,
            what,
            value,
            expected,
        }
    }
}

impl<'a> Iterator for PcapngReader<'a> {
    type Item = Result<PcapngPacket<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.read();
        if packet.is_err() {
            self.at = self.bytes.len();
        }
        packet.transpose()
    }
}

impl<'a> Body<'a> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.bytes[at..at + N]
            .try_into()
            .expect("as many bytes were cut out")
    }

    fn u16_at(self, at: usize) -> u16 {
        let bytes = self.array(at);
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    fn u32_at(self, at: usize) -> u32 {
        let bytes = self.array(at);
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn i64(self) -> i64 {
        let bytes = self.array(0);
        if self.big_endian {
            i64::from_be_bytes(bytes)
        } else {
            i64::from_le_bytes(bytes)
        }
    }

    /// The direction of a packet whose options begin at `at`.
    fn direction(self, at: usize) -> Option<Direction> {
        let mut options = self.options(at);
        let is_flags =
            |(code, value): &(u16, Body<'_>)| (*code, value.bytes.len()) == (OPTION_FLAGS, 4);
        let (_, flags) = options.find(is_flags)?;
        Direction::from_flags(flags.u32_at(0))
    }

    /// The options from `at` on, as (code, value); ends at the end mark and at what is cut.
    fn options(self, at: usize) -> impl Iterator<Item = (u16, Body<'a>)> {
        let mut rest = self.bytes.get(at..).unwrap_or_default();
        std::iter::from_fn(move || {
            let head = Body {
                bytes: rest.get(..4)?,
                ..self
            };
            let (code, length) = (head.u16_at(0), usize::from(head.u16_at(2)));
            let value = rest[4..].get(..length)?;
            // Values are padded to four bytes; the padding of the last one may be missing.
            rest = rest
                .get(4 + length.next_multiple_of(4)..)
                .unwrap_or_default();
            (code != OPTION_END).then_some((
                code,
                Body {
                    bytes: value,
                    ..self
                },
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::pcapng::PcapngWriter;
    use proptest::prelude::*;

    /// Builds files in either byte order, block by block.
    struct Builder {
        big_endian: bool,
        bytes: Vec<u8>,
    }

    impl Builder {
        fn new(big_endian: bool) -> Self {
            let mut builder = Builder {
                big_endian,
                bytes: Vec::new(),
            };
            builder.section();
            builder
        }

        fn u16(&self, value: u16) -> Vec<u8> {
            if self.big_endian {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
            .to_vec()
        }

        fn u32(&self, value: u32) -> Vec<u8> {
            if self.big_endian {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
            .to_vec()
        }

        fn block(&mut self, kind: u32, parts: &[Vec<u8>]) {
            let mut body = parts.concat();
            body.resize(body.len().next_multiple_of(4), 0);
            let length = self.u32(u32::try_from(body.len() + 12).unwrap());
            let kind = self.u32(kind);
            self.bytes
                .extend([&kind, &length, &body, &length].into_iter().flatten());
        }

        fn section(&mut self) {
            let parts = [
                self.u32(BYTE_ORDER_MAGIC),
                self.u16(1),
                self.u16(0),
                vec![0xff; 8],
            ];
            self.block(SECTION_HEADER, &parts);
        }

        fn interface(&mut self, link_type: u16, snap_length: u32, options: &[(u16, Vec<u8>)]) {
            let mut parts = vec![self.u16(link_type), vec![0; 2], self.u32(snap_length)];
            for (code, value) in options {
                parts.push(self.u16(*code));
                parts.push(self.u16(u16::try_from(value.len()).unwrap()));
                parts.push(value.clone());
                parts.push(vec![0; value.len().next_multiple_of(4) - value.len()]);
            }
            self.block(INTERFACE_DESCRIPTION, &parts);
        }

        fn enhanced(&mut self, interface: u32, ticks: u64, data: &[u8]) {
            let [high, low] = [ticks >> 32, ticks & 0xffff_ffff].map(|n| u32::try_from(n).unwrap());
            let length = u32::try_from(data.len()).unwrap();
            let numbers = [interface, high, low, length, length + 1];
            let mut parts: Vec<_> = numbers.iter().map(|&number| self.u32(number)).collect();
            parts.push(data.to_vec());
            self.block(ENHANCED_PACKET, &parts);
        }

        fn packets(&self) -> Result<Vec<PcapngPacket<'_>>, CaptureError> {
            PcapngReader::new(&self.bytes)?.collect()
        }
    }

    #[test]
    fn both_byte_orders_and_several_sections() {
        for order in [false, true] {
            let mut file = Builder::new(order);
            file.interface(1, 0, &[]);
            file.block(0x0bad_cafe, &[vec![1; 9]]);
            file.enhanced(0, 1_700_000_000_123_456, &[1, 2, 3, 4, 5]);
            file.big_endian = !order;
            file.section();
            file.interface(101, 0, &[(2, b"eth0".to_vec()), (9, vec![9]), (0, vec![])]);
            file.interface(1, 0, &[(9, vec![0x8a])]);
            file.enhanced(0, 77, &[6]);
            file.enhanced(1, 1 << 10, &[]);
            let packets = file.packets().unwrap();
            let found = packets
                .iter()
                .map(|p| (p.interface.link_type.0, p.record.time_ns));
            let expected = [
                (1, 1_700_000_000_123_456_000),
                (101, 77),
                (1, 1_000_000_000),
            ];
            assert_eq!(found.collect::<Vec<_>>(), expected);
            assert_eq!(packets[0].record.data, [1, 2, 3, 4, 5]);
            assert_eq!(
                (packets[0].record.original_len, packets[0].record.is_cut()),
                (6, true)
            );
        }
    }

    #[test]
    fn times_may_count_from_another_start() {
        let mut file = Builder::new(true);
        let offset = 100i64.to_be_bytes().to_vec();
        file.interface(1, 0, &[(OPTION_TIME_OFFSET, offset)]);
        file.enhanced(0, 5, &[]);
        assert_eq!(file.packets().unwrap()[0].record.time_ns, 100_000_005_000);
    }

    #[test]
    fn directions_are_read_in_either_order() {
        for order in [false, true] {
            let mut file = Builder::new(order);
            file.interface(1, 0, &[]);
            // The other bits say how the packet was received, and what was wrong with it.
            let flags = [(1, 1), (2, 2), (0, 0), (3, 3), (0x8000_0105, 1)];
            for (flags, _) in flags {
                let head = [0, 0, 0, 1, 1].map(|number| file.u32(number)).concat();
                let comment = [file.u16(1), file.u16(3), b"hey\0".to_vec()].concat();
                let option = [file.u16(OPTION_FLAGS), file.u16(4), file.u32(flags)].concat();
                file.block(ENHANCED_PACKET, &[head, vec![9, 0, 0, 0], comment, option]);
            }
            file.enhanced(0, 0, &[1]);
            let found = file.packets().unwrap().into_iter().map(|p| p.direction);
            let known = flags.map(|(_, direction)| Direction::from_flags(direction));
            assert_eq!(
                known[..2],
                [Some(Direction::Inbound), Some(Direction::Outbound)]
            );
            assert_eq!(known[2..4], [None, None]);
            assert_eq!(found.collect::<Vec<_>>(), [&known[..], &[None]].concat());
        }
    }

    #[test]
    fn simple_and_old_packets() {
        let mut file = Builder::new(false);
        file.interface(1, 4, &[]);
        file.enhanced(0, 3, &[9]);
        let simple = [file.u32(6), vec![1, 2, 3, 4]];
        file.block(SIMPLE_PACKET, &simple);
        let old = [
            vec![0, 0, 0xff, 0xff],
            vec![0; 4],
            file.u32(8),
            file.u32(2),
            file.u32(2),
        ];
        file.block(PACKET, &[old.concat(), vec![7, 8]]);
        let packets = file.packets().unwrap();
        let expected = Record {
            time_ns: 3000,
            original_len: 6,
            data: &[1, 2, 3, 4],
        };
        assert_eq!(packets[1].record, expected);
        assert_eq!(packets[2].record, Record::whole(8000, &[7, 8]));
    }

    #[test]
    fn a_cut_file_names_record_and_byte() {
        let mut file = Builder::new(false);
        file.interface(1, 0, &[]);
        file.enhanced(0, 1, &[1, 2, 3]);
        let second = file.bytes.len();
        file.enhanced(0, 2, &[1, 2, 3]);
        for cut in second + 1..file.bytes.len() {
            let mut reader = PcapngReader::new(&file.bytes[..cut]).unwrap();
            assert!(reader.next().unwrap().is_ok());
            let error = reader.next().unwrap().unwrap_err();
            let CaptureError::Truncated {
                record: 1, offset, ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!(offset, second as u64);
            assert!(reader.next().is_none());
        }
    }

    #[test]
    fn contradictions_are_said_with_their_place() {
        let check = |change: &dyn Fn(&mut Builder), text: &str| {
            let mut file = Builder::new(false);
            change(&mut file);
            let error = file.packets().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        let interface = |file: &mut Builder| file.interface(1, 0, &[]);
        check(
            &|f| f.enhanced(0, 1, &[]),
            "byte 28: the interface of a packet is 0",
        );
        check(&|f| f.interface(1, 0, &[(9, vec![39])]), "if_tsresol is 39");
        check(&|f| f.bytes[4] = 27, "byte 0: the length of a block is 27");
        check(
            &|f| f.bytes[24] = 0,
            "the length at the end of a block is 0",
        );
        check(&|f| f.bytes[8] = 0, "the byte order of a section");
        check(&|f| f.bytes[12] = 2, "the version of a section is 2");
        check(
            &|f| f.block(INTERFACE_DESCRIPTION, &[]),
            "byte 28: an interface description is 0",
        );
        check(
            &|f| {
                interface(f);
                f.block(ENHANCED_PACKET, &[vec![0; 12], f.u32(1), f.u32(1)]);
            },
            "the captured length is 1",
        );
        check(
            &|f| {
                interface(f);
                f.block(SIMPLE_PACKET, &[f.u32(1)]);
            },
            "the length of a simple packet is 1",
        );
        check(
            &|f| {
                f.interface(1, 0, &[(9, vec![0])]);
                f.enhanced(0, u64::MAX, &[]);
            },
            "18446744073709551615 ticks",
        );
    }

    proptest! {
        #[test]
        fn read_after_write_gives_the_same(
            frames in prop::collection::vec(
                (any::<u64>(), prop::collection::vec(any::<u8>(), 0..80)), 0..9),
        ) {
            let mut writer = PcapngWriter::new(LinkType::ETHERNET);
            let mut parts = writer.clone().into_bytes();
            for (time_ns, frame) in &frames {
                let whole = writer.bytes().len();
                writer.write_frame(*time_ns, frame);
                parts.extend_from_slice(&writer.bytes()[whole..]);
            }
            prop_assert_eq!(writer.bytes(), &parts[..]);
            let packets = PcapngReader::new(writer.bytes()).unwrap().collect::<Result<Vec<_>, _>>();
            let records: Vec<_> = packets.unwrap().iter().map(|p| p.record).collect();
            let expected: Vec<_> = frames.iter().map(|(t, f)| Record::whole(*t, f)).collect();
            prop_assert_eq!(records, expected);
        }

        /// A good file with a few bytes changed: that gets further than noise.
        #[test]
        fn any_bytes_are_safe(
            order: bool,
            changes in prop::collection::vec((0usize..200, any::<u8>()), 0..6),
            cut in 0usize..200,
        ) {
            let mut file = Builder::new(order);
            file.interface(1, 4, &[(9, vec![6]), (14, vec![0; 8])]);
            file.enhanced(0, 1, &[1, 2, 3]);
            let simple = [file.u32(3), vec![1, 2, 3]];
            file.block(SIMPLE_PACKET, &simple);
            for (at, value) in changes {
                if let Some(byte) = file.bytes.get_mut(at) {
                    *byte = value;
                }
            }
            file.bytes.truncate(cut.max(4));
            if let Ok(packets) = file.packets() {
                prop_assert!(packets.len() <= 2);
            }
        }
    }
}
