//! The trailer of a packet whose latency is measured: its last 16 bytes, in the byte order of the
//! machine that sends and receives it, little endian.

/// How long it is.
pub const TRAILER_BYTES: usize = 16;
/// Its first byte.
const MAGIC: u8 = 0xab;
/// What TRex's simulator writes into its captures but for the group.
const SIMULATED: [u8; TRAILER_BYTES] = [
    0xcd, 0xab, 0, 0, 0x78, 0x56, 0x34, 0x12, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88,
];

/// What the trailer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Changes with each run, so that packets of the last one are known.
    pub run: u8,
    /// The group's number among those whose latency is measured.
    pub group: u16,
    /// The packet's number in the run.
    pub sequence: u32,
    /// When it was sent, in nanoseconds.
    pub sent_ns: u64,
}

impl Trailer {
    /// Writes the trailer over the end of a packet, which must be that long.
    #[inline]
    pub fn write(self, packet: &mut [u8]) {
        let at = packet.len() - TRAILER_BYTES;
        let bytes = &mut packet[at..];
        bytes[0] = MAGIC;
        bytes[1] = self.run;
        bytes[2..4].copy_from_slice(&self.group.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sent_ns.to_le_bytes());
    }

    /// Writes what the simulator shows in place of a trailer: the same in every packet.
    pub(crate) fn write_simulated(group: u16, packet: &mut [u8]) {
        let at = packet.len() - TRAILER_BYTES;
        let bytes = &mut packet[at..];
        bytes.copy_from_slice(&SIMULATED);
        bytes[2..4].copy_from_slice(&group.to_le_bytes());
    }

    /// Reads the trailer at the end of a frame, if there is one.
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<Trailer> {
        let bytes: &[u8; TRAILER_BYTES] = frame.last_chunk()?;
        let [magic, run, g0, g1, s0, s1, s2, s3, sent @ ..] = *bytes;
        (magic == MAGIC).then_some(Trailer {
            run,
            group: u16::from_le_bytes([g0, g1]),
            sequence: u32::from_le_bytes([s0, s1, s2, s3]),
            sent_ns: u64::from_le_bytes(sent),
        })
    }
}
