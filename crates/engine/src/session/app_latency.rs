//! The add-on "latency": twelve bytes in front of each message, by which the way there and back is
//! measured.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | always 0 |
//! | 2..4 | the number of the message |
//! | 4..8 | when the client sent it, in microseconds; goes round after 71 minutes |
//! | 8..12 | the number of the connection, which the client chooses |
//!
//! The client writes it, the server returns the one that came last, and the client measures.

use crate::app::Addon;
use crate::time::Tight;

/// How long the header is.
pub const HEADER_BYTES: usize = Addon::Latency.header_bytes();
/// The number of the first connection, as TRex numbers them.
const CONNECTION_FIRST: u32 = 0x1234_5678;
/// Messages behind the newest answer that may still be answered and measured.
const REMEMBERED: u16 = 64;

/// What stands in front of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The number of the message.
    pub sequence: u16,
    /// When the client sent it, in microseconds.
    pub sent_us: u32,
    /// The number of the connection.
    pub connection: u32,
}

impl Header {
    /// What stands in front of `message`; `None` when it is too short, or no such header.
    pub fn parse(message: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = message.first_chunk()?;
        let [0, 0, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = *bytes else {
            return None;
        };
        Some(Header {
            sequence: u16::from_be_bytes([s0, s1]),
            sent_us: u32::from_be_bytes([t0, t1, t2, t3]),
            connection: u32::from_be_bytes([c0, c1, c2, c3]),
        })
    }

    /// The bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [s0, s1] = self.sequence.to_be_bytes();
        let [t0, t1, t2, t3] = self.sent_us.to_be_bytes();
        let [c0, c1, c2, c3] = self.connection.to_be_bytes();
        [0, 0, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3]
    }
}

/// What the add-on counts for one side of the templates of a group. Times are microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounters {
    /// The shortest time there and back; 0 when nothing was measured.
    pub min_time: u64,
    /// The longest.
    pub max_time: u64,
    /// Answers that were measured.
    pub measure_cnt: u64,
    /// The sum of their times.
    pub total_time: u64,
    /// Messages that arrived with a header.
    pub total_pkts: u64,
}

impl LatencyCounters {
    /// The names, in the order of [`values`](LatencyCounters::values).
    pub const NAMES: &'static [&'static str] = &[
        "min_time",
        "max_time",
        "measure_cnt",
        "total_time",
        "total_pkts",
    ];

    /// The values, in the order of [`NAMES`](LatencyCounters::NAMES).
    pub fn values(&self) -> [u64; Self::NAMES.len()] {
        [
            self.min_time,
            self.max_time,
            self.measure_cnt,
            self.total_time,
            self.total_pkts,
        ]
    }

    /// From the values, in the order of [`NAMES`](LatencyCounters::NAMES).
    pub fn from_values(values: [u64; Self::NAMES.len()]) -> LatencyCounters {
        let [min_time, max_time, measure_cnt, total_time, total_pkts] = values;
        LatencyCounters {
            min_time,
            max_time,
            measure_cnt,
            total_time,
            total_pkts,
        }
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &LatencyCounters) {
        self.min_time = match (self.measure_cnt, other.measure_cnt) {
            (0, _) => other.min_time,
            (_, 0) => self.min_time,
            _ => self.min_time.min(other.min_time),
        };
        self.max_time = self.max_time.max(other.max_time);
        self.measure_cnt += other.measure_cnt;
        self.total_time += other.total_time;
        self.total_pkts += other.total_pkts;
    }

    fn measure(&mut self, time_us: u32) {
        let time = u64::from(time_us);
        self.add(&LatencyCounters {
            min_time: time,
            max_time: time,
            measure_cnt: 1,
            total_time: time,
            total_pkts: 0,
        });
    }
}

/// Numbers of connections, no two alike on the cores of a server.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    next: u32,
    step: u32,
}

impl Default for Connections {
    fn default() -> Self {
        Connections::of_core(0, 1)
    }
}

impl Connections {
    /// The numbers of one core among `cores`.
    pub fn of_core(rank: u32, cores: u32) -> Connections {
        Connections {
            next: CONNECTION_FIRST.wrapping_add(rank),
            step: cores.max(1),
        }
    }

    /// The number of the next connection.
    pub fn draw(&mut self) -> u32 {
        let drawn = self.next;
        self.next = self.next.wrapping_add(self.step);
        drawn
    }
}

/// What a flow remembers of its headers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stamp {
    Client {
        connection: u32,
        /// The number of the next message.
        sequence: u16,
        /// A bit for each of the last messages, the newest first: its answer was not measured.
        open: Tight,
    },
    /// What came last.
    Server(Header),
}

impl Stamp {
    pub(super) fn client(connection: u32) -> Stamp {
        Stamp::Client {
            connection,
            sequence: 0,
            open: Tight::new(0),
        }
    }

    /// The number of a client's connection.
    pub(super) fn connection(&self) -> Option<u32> {
        match self {
            Stamp::Client { connection, .. } => Some(*connection),
            Stamp::Server(_) => None,
        }
    }

    /// The header of the next message.
    pub(super) fn header(&self, now_us: u32) -> Header {
        match *self {
            Stamp::Client {
                connection,
                sequence,
                ..
            } => Header {
                sequence,
                sent_us: now_us,
                connection,
            },
            Stamp::Server(header) => header,
        }
    }

    /// That message was sent.
    pub(super) fn note_sent(&mut self) {
        if let Stamp::Client { sequence, open, .. } = self {
            *sequence = sequence.wrapping_add(1);
            *open = Tight::new(open.get() << 1 | 1);
        }
    }

    /// A message arrived.
    pub(super) fn receive(&mut self, now_us: u32, message: &[u8], counters: &mut LatencyCounters) {
        let Some(header) = Header::parse(message) else {
            return;
        };
        match self {
            Stamp::Server(last) => {
                counters.total_pkts += 1;
                *last = header;
            }
            Stamp::Client {
                connection,
                sequence,
                open,
            } => {
                if header.connection != *connection {
                    return;
                }
                counters.total_pkts += 1;
                // Each message is measured once, however often it is answered.
                let behind = sequence.wrapping_sub(1).wrapping_sub(header.sequence);
                let is_open = behind < REMEMBERED && open.get() >> behind & 1 == 1;
                if is_open {
                    *open = Tight::new(open.get() & !(1 << behind));
                    counters.measure(now_us.wrapping_sub(header.sent_us));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answers(stamp: &mut Stamp, counters: &mut LatencyCounters, heard: &[(u32, Header)]) {
        for (at, header) in heard {
            stamp.receive(*at, &header.to_bytes(), counters);
        }
    }

    #[test]
    fn a_header_is_twelve_bytes_in_network_order() {
        let header = Header {
            sequence: 0x0102,
            sent_us: 0x0304_0506,
            connection: CONNECTION_FIRST,
        };
        let bytes = [0, 0, 1, 2, 3, 4, 5, 6, 0x12, 0x34, 0x56, 0x78];
        assert_eq!(header.to_bytes(), bytes);
        assert_eq!(Header::parse(&bytes), Some(header));
        assert_eq!(Header::parse(&bytes[..11]), None);
        assert_eq!(Header::parse(&[1; 12]), None);
    }

    #[test]
    fn each_message_is_measured_once_in_any_order_and_over_the_end_of_numbers() {
        let (mut stamp, mut counters) = (Stamp::client(7), LatencyCounters::default());
        let mut sent = Vec::new();
        for n in 0..70_000_u32 {
            sent.push(stamp.header((u32::MAX - 100).wrapping_add(n)));
            stamp.note_sent();
        }
        let last = sent.len() - 1;
        let late = sent[last - 1].sent_us.wrapping_add(40);
        let heard = [
            (sent[last].sent_us.wrapping_add(10), sent[last]),
            (late, sent[last - 1]),
            (late, sent[last - 1]),
            (late, sent[last - 64]),
            (
                late,
                Header {
                    connection: 8,
                    ..sent[last - 2]
                },
            ),
            (
                late,
                Header {
                    sequence: sent[last].sequence.wrapping_add(1),
                    ..sent[last]
                },
            ),
        ];
        answers(&mut stamp, &mut counters, &heard);
        assert_eq!(counters.values(), [10, 40, 2, 50, 5]);
    }

    #[test]
    fn a_server_returns_what_came_last() {
        let (mut stamp, mut counters) =
            (Stamp::Server(Header::default()), LatencyCounters::default());
        let header = |sequence| Header {
            sequence,
            sent_us: 5,
            connection: 9,
        };
        answers(&mut stamp, &mut counters, &[(0, header(1)), (0, header(2))]);
        stamp.receive(0, b"too short", &mut counters);
        stamp.receive(0, b"no such header", &mut counters);
        assert_eq!(stamp.header(77), header(2));
        assert_eq!(counters.values(), [0, 0, 0, 0, 2]);
        assert_eq!(stamp.connection(), None);
    }

    #[test]
    fn cores_have_numbers_of_their_own() {
        let mut drawn = Vec::new();
        for rank in 0..3 {
            let mut connections = Connections::of_core(rank, 3);
            drawn.extend((0..5).map(|_| connections.draw()));
        }
        drawn.sort_unstable();
        let expected: Vec<u32> = (0..15).map(|n| CONNECTION_FIRST + n).collect();
        assert_eq!(drawn, expected);
    }

    proptest! {
        #[test]
        fn sums_are_of_all(times in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..5), 0..5)) {
            let mut sum = LatencyCounters::default();
            for part in &times {
                let mut counters = LatencyCounters::default();
                part.iter().for_each(|time| counters.measure(*time));
                sum.add(&LatencyCounters::from_values(counters.values()));
            }
            let all = || times.iter().flatten().map(|time| u64::from(*time));
            let expected = [
                all().min().unwrap_or(0),
                all().max().unwrap_or(0),
                all().count() as u64,
                all().sum(),
                0,
            ];
            prop_assert_eq!(sum.values(), expected);
        }
    }
}
