//! pcapng files, written into memory: one section, little-endian, times in nanoseconds, any number
//! of interfaces. They are read by `reader`.

use super::block::{
    BLOCK_BYTES_MIN, BYTE_ORDER_MAGIC, Direction, ENHANCED_PACKET, INTERFACE_DESCRIPTION,
    OPTION_END, OPTION_FLAGS, OPTION_TIME_RESOLUTION, SECTION_HEADER, SNAP_LENGTH,
};
use crate::file::record::{LinkType, Record};

const OPTION_NAME: u16 = 2;

/// The value of `if_tsresol` that says nanoseconds.
const NANOSECONDS: u8 = 9;

/// What a file says of an interface, before its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceDescription<'a> {
    /// Its name, none when it is empty. Cut to 255 bytes.
    pub name: &'a str,
    /// What its frames are.
    pub link_type: LinkType,
    /// Bytes after which its frames are cut, at most [`SNAP_LENGTH`]; zero is the same as that.
    pub snap_length: u32,
}

/// Writes a pcapng file into memory, little-endian, times in nanoseconds.
///
/// To write a long file in parts: write [`PcapngWriter::bytes`] out, then [`PcapngWriter::clear`], again and
/// again. The memory is kept, so only the longest part allocates.
#[derive(Clone, Debug)]
pub struct PcapngWriter {
    bytes: Vec<u8>,
    /// Of each interface, in order.
    snap_lengths: Vec<u32>,
}

impl PcapngWriter {
    /// A file with one interface, which has no name.
    ///
    /// # Panics
    /// When the link type is above 65,535, which pcapng cannot say.
    #[must_use]
    pub fn new(link_type: LinkType) -> Self {
        let mut writer = PcapngWriter::without_interfaces();
        writer.add_interface(&InterfaceDescription {
            name: "",
            link_type,
            snap_length: SNAP_LENGTH,
        });
        writer
    }

    /// A file that has no interface yet: [`PcapngWriter::add_interface`] before the first packet.
    #[must_use]
    pub fn without_interfaces() -> Self {
        let mut writer = PcapngWriter {
            bytes: Vec::new(),
            snap_lengths: Vec::new(),
        };
        let magic = BYTE_ORDER_MAGIC.to_le_bytes();
        let version = [1, 0, 0, 0]; // 1.0
        let length = u64::MAX.to_le_bytes(); // not said
        writer.block(SECTION_HEADER, &[&magic, &version, &length]);
        writer
    }

    /// Describes one more interface; its number is for [`PcapngWriter::write_at`]. There may be packets
    /// of others before it.
    ///
    /// # Panics
    /// When the link type is above 65,535, which pcapng cannot say.
    pub fn add_interface(&mut self, description: &InterfaceDescription<'_>) -> u32 {
        let number =
            u32::try_from(self.snap_lengths.len()).expect("there is no memory for more interfaces");
        let snap_length = match description.snap_length {
            0 => SNAP_LENGTH,
            length => length.min(SNAP_LENGTH),
        };
        self.snap_lengths.push(snap_length);
        let link_type =
            u16::try_from(description.link_type.0).expect("a link type is a 16-bit number");
        let (name, name_bytes) = cut_name(description.name);
        let name_option = option_head(OPTION_NAME, name_bytes);
        self.block(
            INTERFACE_DESCRIPTION,
            &[
                &link_type.to_le_bytes(),
                &[0; 2],
                &snap_length.to_le_bytes(),
                if name.is_empty() { &[] } else { &name_option },
                name,
                padding_of(name),
                &option_head(OPTION_TIME_RESOLUTION, 1),
                &[NANOSECONDS, 0, 0, 0],
                &option_head(OPTION_END, 0),
            ],
        );
        number
    }

    /// Appends a whole frame of the first interface.
    ///
    /// # Panics
    /// When there is no interface.
    pub fn write_frame(&mut self, time_ns: u64, frame: &[u8]) {
        self.write(&Record::whole(time_ns, frame));
    }

    /// Appends a record of the first interface; its data is cut to the snapshot length.
    ///
    /// # Panics
    /// When there is no interface.
    pub fn write(&mut self, record: &Record<'_>) {
        self.packet(record, 0, &[]);
    }

    /// Appends a record of an interface, which went there one way; its data is cut to the
    /// snapshot length of the interface.
    ///
    /// # Panics
    /// When there is no such interface.
    pub fn write_at(&mut self, record: &Record<'_>, interface: u32, direction: Direction) {
        let options = [
            option_head(OPTION_FLAGS, 4),
            direction.flags().to_le_bytes(),
            option_head(OPTION_END, 0),
        ];
        self.packet(record, interface, options.as_flattened());
    }

    /// What was written since the start or the last [`PcapngWriter::clear`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was written so far, after it went elsewhere. Interfaces stay.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// What was written since the start or the last [`PcapngWriter::clear`].
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn packet(&mut self, record: &Record<'_>, interface: u32, options: &[u8]) {
        let snap_length = self.snap_lengths[interface as usize];
        let captured = u32::try_from(record.data.len())
            .unwrap_or(u32::MAX)
            .min(snap_length);
        let data = &record.data[..captured as usize];
        let ticks = record.time_ns.to_le_bytes();
        self.block(
            ENHANCED_PACKET,
            &[
                &interface.to_le_bytes(),
                &ticks[4..],
                &ticks[..4],
                &captured.to_le_bytes(),
                &record.original_len.to_le_bytes(),
                data,
                padding_of(data),
                options,
            ],
        );
    }

    /// A block whose parts are a multiple of four bytes together.
    fn block(&mut self, kind: u32, parts: &[&[u8]]) {
        let body_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let total = u32::try_from(body_bytes + BLOCK_BYTES_MIN)
            .expect("frames are cut to the snapshot length");
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(&total.to_le_bytes());
        parts
            .iter()
            .for_each(|part| self.bytes.extend_from_slice(part));
        self.bytes.extend_from_slice(&total.to_le_bytes());
    }
}

/// Code and length of an option; its value follows, padded.
fn option_head(code: u16, value_bytes: u8) -> [u8; 4] {
    let [low, high] = code.to_le_bytes();
    [low, high, value_bytes, 0]
}

/// The zeros that follow bytes up to the next multiple of four.
fn padding_of(bytes: &[u8]) -> &'static [u8] {
    &[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]
}

/// A name and its bytes, cut between characters to what a byte can count.
fn cut_name(name: &str) -> (&[u8], u8) {
    let mut end = name.len().min(usize::from(u8::MAX));
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = u8::try_from(end).expect("it was cut to what a byte can count");
    (&name.as_bytes()[..end], bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::file::pcapng::{PcapngPacket, PcapngReader};
    use proptest::prelude::*;

    const PORT: InterfaceDescription<'_> = InterfaceDescription {
        name: "port 0",
        link_type: LinkType::ETHERNET,
        snap_length: 0,
    };

    fn packets(bytes: &[u8]) -> Vec<PcapngPacket<'_>> {
        let packets = PcapngReader::new(bytes).unwrap().collect::<Result<_, _>>();
        packets.unwrap()
    }

    #[test]
    fn a_file_byte_for_byte() {
        let mut writer = PcapngWriter::without_interfaces();
        let snap_length = 4;
        writer.add_interface(&InterfaceDescription {
            snap_length,
            ..PORT
        });
        let record = Record::whole(0x0102_0304_0506_0708, &[0xaa, 0xbb, 0xcc, 0xdd, 0xee]);
        writer.write_at(&record, 0, Direction::Outbound);
        let expected: &[&[u8]] = &[
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            &[
                1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0,
            ],
            &[1, 0, 0, 0, 44, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0],
            &[2, 0, 6, 0, b'p', b'o', b'r', b't', b' ', b'0', 0, 0],
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0],
            &[6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5],
            &[4, 0, 0, 0, 5, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd],
            &[2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0],
        ];
        assert_eq!(writer.bytes(), expected.concat());
    }

    #[test]
    fn the_file_of_one_interface_stays_what_it_was() {
        let mut writer = PcapngWriter::new(LinkType::RAW_IP);
        writer.write_frame(1, &[7]);
        let blocks: Vec<usize> = [28, 32, 36].into();
        assert_eq!(writer.bytes().len(), blocks.iter().sum::<usize>());
        let packet = packets(writer.bytes())[0];
        assert_eq!(packet.record, Record::whole(1, &[7]));
        assert_eq!(packet.interface.link_type, LinkType::RAW_IP);
        assert_eq!((packet.interface.number, packet.direction), (0, None));
    }

    #[test]
    fn each_interface_cuts_on_its_own() {
        let mut writer = PcapngWriter::without_interfaces();
        let frame = vec![1; SNAP_LENGTH as usize + 1];
        let lengths = [(2, 2), (0, SNAP_LENGTH), (u32::MAX, SNAP_LENGTH)];
        for (snap_length, kept) in lengths {
            let port = InterfaceDescription {
                snap_length,
                ..PORT
            };
            let interface = writer.add_interface(&port);
            writer.write_at(&Record::whole(0, &frame), interface, Direction::Inbound);
            let packet = packets(writer.bytes())[interface as usize];
            assert_eq!(packet.record.data.len(), kept as usize);
            assert_eq!(packet.record.original_len, SNAP_LENGTH + 1);
            assert_eq!(packet.interface.snap_length, kept);
        }
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let mut writer = PcapngWriter::without_interfaces();
        let name = "\u{e9}".repeat(200);
        writer.add_interface(&InterfaceDescription {
            name: &name,
            ..PORT
        });
        writer.write_frame(0, &[]);
        assert_eq!(writer.bytes()[28 + 16..28 + 20], [2, 0, 254, 0]);
        assert_eq!(packets(writer.bytes()).len(), 1);
    }

    proptest! {
        #[test]
        fn read_after_write_gives_the_same(
            names in prop::collection::vec(".{0,9}", 1..4),
            seen in prop::collection::vec((
                any::<prop::sample::Index>(),
                any::<bool>(),
                any::<u64>(),
                prop::collection::vec(any::<u8>(), 0..80),
            ), 0..9),
        ) {
            let mut writer = PcapngWriter::without_interfaces();
            for name in &names {
                writer.add_interface(&InterfaceDescription { name, ..PORT });
            }
            let mut file = writer.bytes().to_vec();
            let ways = |is_sent| if is_sent { Direction::Outbound } else { Direction::Inbound };
            for (at, is_sent, time_ns, frame) in &seen {
                // In parts, as a long file is written.
                writer.clear();
                let interface = u32::try_from(at.index(names.len())).unwrap();
                writer.write_at(&Record::whole(*time_ns, frame), interface, ways(*is_sent));
                file.extend_from_slice(writer.bytes());
            }
            let packets = packets(&file);
            prop_assert_eq!(packets.len(), seen.len());
            for (packet, (at, is_sent, time_ns, frame)) in packets.iter().zip(&seen) {
                prop_assert_eq!(packet.interface.number, at.index(names.len()));
                prop_assert_eq!(packet.direction, Some(ways(*is_sent)));
                prop_assert_eq!(packet.record, Record::whole(*time_ns, frame));
            }
            let records: Vec<_> = packets.iter().map(|packet| packet.record).collect();
            prop_assert_eq!(file::read(&file).unwrap().records, records);
        }
    }
}
