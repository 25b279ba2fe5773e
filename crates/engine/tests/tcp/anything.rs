//! Anything at a connection in any state: segments near its window and far from it, timeouts,
//! writes, closes, full ports. No panic, and all rules hold after each step.
//!
//! This reading of bytes is shared by the property test below and the fuzz target `tcp`.

use allosaur_engine::tcp::{
    CongestionAlgorithm, Connection, Ecn, Outcome, Progress, RecoveryPool, Segment, Seq,
    TcpContext, TcpCounters, TcpState, Tunables,
};
use allosaur_packet::transport::tcp::TcpFlags;
use allosaur_packet::transport::tcp_options::{SackBlock, SackBlocks};

/// Segments that one poll may give: more is a loop without end.
const SEGMENTS_MAX: u32 = 100_000;
/// A SYN that asks for ECN.
const ECN_ASKED: TcpFlags = TcpFlags(TcpFlags::ECE.0 | TcpFlags::CWR.0);
/// What still happens to a connection that is over.
const STEPS_AFTER_END: u32 = 5;

/// Lives the life that the bytes tell.
pub(crate) fn live(bytes: &[u8]) {
    let mut life = Life::begin(Bytes { left: bytes });
    let mut steps_left = STEPS_AFTER_END;
    while !life.bytes.left.is_empty() && steps_left > 0 {
        life.step();
        steps_left -= u32::from(life.connection.is_closed());
    }
    life.end();
}

/// Decisions, one byte after the other; zeros when there are no more.
struct Bytes<'a> {
    left: &'a [u8],
}

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.left.split_first().unwrap_or((&0, &[]));
        self.left = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn short(&mut self) -> u32 {
        u32::from(self.byte()) << 8 | u32::from(self.byte())
    }

    fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

struct Life<'a> {
    bytes: Bytes<'a>,
    now_ms: u32,
    tunables: Tunables,
    counters: TcpCounters,
    recovery: RecoveryPool,
    connection: Connection,
    blocked: bool,
    closing: bool,
    /// Beyond the highest number that was seen to leave.
    high: Seq,
    /// The number of our SYN.
    first: Seq,
    written: u64,
    delivered: u64,
    acknowledged: u64,
    ends: u32,
}

impl Life<'_> {
    fn begin(mut bytes: Bytes<'_>) -> Life<'_> {
        let tunables = tunables(&mut bytes);
        let (now_ms, first) = (bytes.word(), Seq(bytes.word()));
        let (mut counters, mut recovery) = (TcpCounters::default(), RecoveryPool::default());
        let mut cx = context(now_ms, &tunables, &mut counters, &mut recovery);
        let connection = if bytes.coin() {
            Connection::connect(&mut cx, first)
        } else {
            let syn = Segment {
                flags: TcpFlags::SYN | bytes.pick(&[TcpFlags::NONE, ECN_ASKED]),
                ..any_segment(&mut bytes, Seq(0), [Seq(0); 2], 0)
            };
            Connection::accept(&mut cx, first, &syn)
        };
        let mut life = Life {
            bytes,
            now_ms,
            tunables,
            counters,
            recovery,
            connection,
            blocked: false,
            closing: false,
            high: first,
            first,
            written: 0,
            delivered: 0,
            acknowledged: 0,
            ends: 0,
        };
        life.transmit();
        if life.bytes.coin() {
            life.shake_hands();
        }
        life
    }

    /// The segment that makes the connection, so that not all die young.
    fn shake_hands(&mut self) {
        let is_client = self.connection.state() == TcpState::SynSent;
        let (high, window) = (self.high, self.bytes.short() as u16);
        let rcv_nxt = self.connection.info(&self.tunables, &self.recovery).rcv_nxt;
        let flags = if is_client {
            TcpFlags::SYN | TcpFlags::ACK | self.bytes.pick(&[TcpFlags::NONE, TcpFlags::ECE])
        } else {
            TcpFlags::ACK
        };
        let segment = Segment {
            seq: if is_client {
                Seq(self.bytes.word())
            } else {
                rcv_nxt
            },
            ack: high,
            flags,
            window,
            mss: Some(self.bytes.short() as u16),
            window_scale: Some(self.bytes.byte() % 16),
            sack_permitted: true,
            timestamps: Some((self.now_ms, self.now_ms)),
            ..Segment::default()
        };
        self.arrive(&segment);
    }

    fn step(&mut self) {
        match self.bytes.byte() % 16 {
            0..=8 => {
                let info = self.connection.info(&self.tunables, &self.recovery);
                let sent = [self.first + 1 + self.acknowledged as u32, self.high];
                let segment = any_segment(&mut self.bytes, info.rcv_nxt, sent, self.now_ms);
                self.arrive(&segment);
            }
            9 | 10 => self.write(),
            11 if self.bytes.byte() < 64 => {
                self.connection.close();
                self.closing = true;
                self.transmit();
            }
            11 | 12 => {
                self.blocked = self.bytes.coin();
                self.transmit();
            }
            13 => {
                let due = self.connection.poll_timeout(self.now_ms);
                self.pass(due.unwrap_or(1));
            }
            14 => {
                let reach = self.bytes.pick(&[10, 10, 300, 1 << 16]);
                let ms = self.bytes.short() % reach;
                self.pass(ms);
            }
            _ if self.bytes.byte() < 8 => {
                self.connection.abort();
                self.transmit();
            }
            _ => self.pass(1),
        }
    }

    fn write(&mut self) {
        let bytes = self
            .bytes
            .short()
            .min(self.connection.writable_bytes(&self.tunables));
        if !self.closing && !self.connection.is_closed() {
            self.connection.write(bytes, &mut self.counters);
            self.written += u64::from(bytes);
        }
        self.transmit();
    }

    fn pass(&mut self, ms: u32) {
        self.now_ms = self.now_ms.wrapping_add(ms);
        let mut cx = context(
            self.now_ms,
            &self.tunables,
            &mut self.counters,
            &mut self.recovery,
        );
        let outcome = self.connection.handle_timeout(&mut cx);
        self.note(outcome);
        self.transmit();
    }

    fn arrive(&mut self, segment: &Segment) {
        let mut cx = context(
            self.now_ms,
            &self.tunables,
            &mut self.counters,
            &mut self.recovery,
        );
        let was_closed = self.connection.is_closed();
        let outcome = self.connection.handle_segment(&mut cx, segment);
        if was_closed {
            assert_eq!(outcome, Outcome::default(), "what is over hears nothing");
        }
        self.note(outcome);
        self.transmit();
    }

    fn transmit(&mut self) {
        let mut outcome = Outcome::default();
        let (blocked, mut high, mut count) = (self.blocked, self.high, 0);
        let oldest = self.acknowledged;
        let mut cx = context(
            self.now_ms,
            &self.tunables,
            &mut self.counters,
            &mut self.recovery,
        );
        let written = self.written;
        let progress =
            self.connection
                .poll_transmit(&mut cx, &mut outcome, &mut |segment: &Segment| {
                    count += 1;
                    assert!(count < SEGMENTS_MAX, "it sends for ever");
                    let last = oldest + u64::from(segment.offset) + u64::from(segment.len);
                    assert!(last <= written, "it sends what nobody wrote");
                    // Now and then the port is full in the middle.
                    if blocked && count > 1 {
                        return false;
                    }
                    high = high.max(segment.seq + segment.span());
                    true
                });
        self.high = high;
        self.note(outcome);
        if let Err(broken) = self.connection.audit(&self.recovery, progress) {
            panic!("{broken}: {:#?}", self.connection);
        }
        if progress == Progress::Done || !blocked {
            self.check_counters();
        }
    }

    fn note(&mut self, outcome: Outcome) {
        self.delivered += u64::from(outcome.delivered_bytes);
        self.acknowledged += u64::from(outcome.acknowledged_bytes);
        if outcome.ended.is_some() {
            self.ends += 1;
        }
        assert!(self.ends <= 2, "it ends, and then it is over");
        assert!(
            self.acknowledged <= self.written,
            "acknowledged what nobody wrote"
        );
    }

    fn check_counters(&self) {
        let it = &self.counters;
        assert_eq!(it.rcvbyte, self.delivered);
        assert_eq!(it.rcvackbyte, self.acknowledged);
        assert_eq!(it.sndbyte, self.written);
        assert!(it.sndbyte_ok <= it.sndbyte && it.rcvackbyte <= it.sndbyte_ok);
        let named = it.sndpack + it.sndacks + it.sndctrl + it.sndrexmitpack + it.sndprobe;
        assert!(
            named <= it.sndtotal && it.sndtotal <= named + it.keepprobe,
            "{it:?}"
        );
        assert!(it.reasfree <= it.reasalloc && it.reasalloc <= it.reasfree + 1);
        assert_eq!(it.closed, u64::from(self.connection.is_closed()));
        assert!(it.drops + it.conndrops <= it.closed);
    }

    /// However it stands, it can be ended, and leaves nothing behind.
    fn end(mut self) {
        self.blocked = false;
        self.connection.abort();
        self.transmit();
        assert!(self.connection.is_closed(), "{:?}", self.connection.state());
        assert_eq!(self.counters.reasalloc, self.counters.reasfree);
        self.connection.release(&mut self.recovery);
        assert_eq!(self.recovery.in_use(), 0, "a block is lost");
    }
}

fn context<'a>(
    now_ms: u32,
    tunables: &'a Tunables,
    counters: &'a mut TcpCounters,
    recovery: &'a mut RecoveryPool,
) -> TcpContext<'a> {
    TcpContext {
        unread_bytes: 0,
        now_ms,
        now_us: now_ms.wrapping_mul(1_000),
        tunables,
        counters,
        recovery,
    }
}

fn tunables(bytes: &mut Bytes<'_>) -> Tunables {
    let flags = bytes.byte();
    let flag = |place: u8| flags >> place & 1 == 1;
    Tunables {
        mss_bytes: bytes.pick(&[10, 100, 536, 1460, 9216]),
        initial_window_segments: 1 + bytes.byte() % 20,
        receive_buffer_bytes: bytes.pick(&[1 << 10, 32 << 10, 1 << 20, 1 << 30]),
        transmit_buffer_bytes: bytes.pick(&[1 << 10, 16 << 10, 64 << 10]),
        no_delay: flag(0),
        always_push: flag(1),
        acknowledge_bytes: bytes.pick(&[0, 0, 1, 1460, 65_000]),
        duplicates_max: bytes.pick(&[3, 3, 1, 10]),
        rfc1323: flag(2),
        sack: flag(3) || flag(5),
        congestion: if flag(4) {
            CongestionAlgorithm::Cubic
        } else {
            CongestionAlgorithm::NewReno
        },
        ecn: bytes.pick(&[Ecn::Off, Ecn::Active, Ecn::Passive]),
        reassembly_pieces_max: bytes.pick(&[100, 0, 1, 3, 1000]),
        ..Tunables::default()
    }
}

/// A segment that has to do with a connection that expects `expected` and has sent from one number
/// to another what is not acknowledged; more or less.
fn any_segment(bytes: &mut Bytes<'_>, expected: Seq, sent: [Seq; 2], now_ms: u32) -> Segment {
    const ACK: u8 = TcpFlags::ACK.0;
    let kinds = bytes.byte();
    let flags = match bytes.byte() {
        0..=199 => ACK,
        200..=219 => ACK | TcpFlags::PSH.0,
        220..=224 => ACK | TcpFlags::FIN.0,
        225..=239 => ACK | TcpFlags::ECE.0,
        240..=243 => ACK | TcpFlags::SYN.0,
        244..=251 => ACK | TcpFlags::CWR.0,
        _ => bytes.byte(),
    };
    let seq = match bytes.byte() {
        0..=149 => expected,
        150..=199 => expected - bytes.short() % 5_000,
        200..=250 => expected + bytes.short() % 5_000,
        _ => Seq(bytes.word()),
    };
    let under_way = sent[0].until(sent[1]).max(1);
    let ack = match bytes.byte() {
        0..=119 => sent[0],
        120..=169 => sent[1],
        170..=229 => sent[0] + bytes.short() % under_way,
        230..=250 => sent[0] - bytes.short() % 20_000,
        _ => Seq(bytes.word()),
    };
    let mut blocks = [SackBlock::default(); 4];
    let count = usize::from(kinds & 3);
    for block in &mut blocks[..count] {
        let left = sent[0] + bytes.short() % under_way;
        block.left = left.0;
        block.right = (left + 1 + bytes.short() % 4_000).0;
    }
    Segment {
        seq,
        ack,
        flags: TcpFlags(flags),
        window: bytes.pick(&[65_535, 65_535, 65_535, 65_535, 65_535, 0, 500, 3_000]),
        len: bytes.pick(&[0, 0, 0, 0, 1, 10, 1_000, 1_460]),
        offset: 0,
        coalesced: 0,
        last_offset: 0,
        mss: (kinds & 4 != 0).then(|| bytes.short() as u16),
        window_scale: (kinds & 8 != 0).then(|| bytes.byte()),
        sack_permitted: kinds & 16 != 0,
        timestamps: (kinds & 32 != 0).then(|| {
            let echo = now_ms.wrapping_sub(bytes.short());
            (bytes.pick(&[now_ms, now_ms, now_ms, 7]), echo)
        }),
        sack: SackBlocks::new(&blocks[..count]),
        ecn: kinds & 192 == 192,
    }
}
