//! What comes late, in TIME-WAIT: a connection of which only little was kept answers as the whole one.

use allosaur_engine::tcp::{
    Connection, Ecn, Outcome, Progress, RecoveryPool, Segment, Seq, TcpContext, TcpCounters,
    TcpState, Tunables,
};
use allosaur_packet::transport::tcp::TcpFlags;
use proptest::prelude::*;

/// The number of our SYN, and of the peer's.
const OURS: Seq = Seq(u32::MAX - 40);
const THEIRS: Seq = Seq(7_000);

/// A connection with all it works with.
#[derive(Clone)]
struct End {
    connection: Connection,
    tunables: Tunables,
    counters: TcpCounters,
    recovery: RecoveryPool,
    now_ms: u32,
}

impl End {
    fn work<R>(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut TcpContext<'_>) -> R,
    ) -> (R, Vec<Segment>) {
        let mut cx = TcpContext {
            now_ms: self.now_ms,
            now_us: self.now_ms.wrapping_mul(1_000),
            tunables: &self.tunables,
            unread_bytes: 0,
            counters: &mut self.counters,
            recovery: &mut self.recovery,
        };
        let result = act(&mut self.connection, &mut cx);
        let mut sent = Vec::new();
        let progress = self.connection.poll_transmit(
            &mut cx,
            &mut Outcome::default(),
            &mut |segment: &Segment| {
                sent.push(*segment);
                true
            },
        );
        let audit = self.connection.audit(&self.recovery, progress);
        audit.expect("all rules");
        // Only that the peer saw congestion is kept.
        let most = usize::from(self.tunables.ecn != Ecn::Off);
        assert!(progress == Progress::Done && self.recovery.in_use() <= most);
        (result, sent)
    }

    fn take(&mut self, segment: Segment) -> (Outcome, Vec<Segment>) {
        self.work(|connection, cx| connection.handle_segment(cx, &segment))
    }

    /// The connection is there: bytes come with the peer's end, after ours.
    fn close(&mut self, before: &Before) {
        let plain = Segment {
            seq: THEIRS + 1,
            ack: OURS + 1,
            flags: TcpFlags::ACK,
            window: before.windows[1],
            timestamps: before.uses[0].then_some((510, 1_000)),
            ..Segment::default()
        };
        self.take(plain);
        self.now_ms += 20;
        self.work(|connection, _| connection.close());
        let fin = Segment {
            len: before.received,
            ack: OURS + 2,
            flags: TcpFlags::ACK | TcpFlags::FIN,
            ..plain
        };
        self.take(fin);
        assert_eq!(self.connection.state(), TcpState::TimeWait);
    }
}

/// How the connection came to be.
#[derive(Clone, Debug)]
struct Before {
    asks: bool,
    uses: [bool; 3],
    windows: [u16; 2],
    scale: u8,
    buffer_bytes: u32,
    received: u32,
}

fn before() -> impl Strategy<Value = Before> {
    // Windows that their field says to the byte.
    let buffer = (1..600u32).prop_map(|units| units << 12);
    (
        any::<bool>(),
        any::<[bool; 3]>(),
        any::<[u16; 2]>(),
        0..15u8,
        buffer,
        0..1_400u32,
    )
        .prop_map(
            |(asks, uses, windows, scale, buffer_bytes, received)| Before {
                asks,
                uses,
                windows,
                scale,
                buffer_bytes,
                received,
            },
        )
}

/// A connection in TIME-WAIT: bytes came, both sides closed, we first.
fn in_time_wait(before: &Before) -> End {
    let [rfc1323, sack, ecn] = before.uses;
    let tunables = Tunables {
        rfc1323,
        sack,
        ecn: if ecn { Ecn::Active } else { Ecn::Off },
        receive_buffer_bytes: match rfc1323 {
            true => before.buffer_bytes,
            false => before.buffer_bytes.min(0xffff),
        },
        ..Tunables::default()
    };
    let mut counters = TcpCounters::default();
    let mut recovery = RecoveryPool::default();
    let mut cx = TcpContext {
        now_ms: 1_000,
        now_us: 1_000_000,
        tunables: &tunables,
        unread_bytes: 0,
        counters: &mut counters,
        recovery: &mut recovery,
    };
    let syn = Segment {
        seq: THEIRS,
        ack: OURS + 1,
        flags: TcpFlags::SYN,
        window: before.windows[0],
        window_scale: Some(before.scale),
        sack_permitted: true,
        timestamps: Some((500, 0)),
        ..Segment::default()
    };
    let connection = if before.asks {
        Connection::connect(&mut cx, OURS)
    } else {
        let asks_ecn = TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR;
        let syn = Segment {
            flags: if ecn { asks_ecn } else { TcpFlags::SYN },
            ..syn
        };
        Connection::accept(&mut cx, OURS, &syn)
    };
    let mut end = End {
        connection,
        tunables,
        counters,
        recovery,
        now_ms: 1_000,
    };
    end.work(|_, _| ());
    if before.asks {
        let ece = if ecn { TcpFlags::ECE } else { TcpFlags::NONE };
        end.take(Segment {
            flags: TcpFlags::SYN | TcpFlags::ACK | ece,
            ..syn
        });
    }
    end.close(before);
    end
}

/// What comes late, its numbers by their distance from those that are expected.
fn late() -> impl Strategy<Value = (u32, Segment)> {
    let near = || prop_oneof![-3..3i32, -70_000..70_000i32, any::<i32>()];
    let flags = prop_oneof![
        3 => Just(TcpFlags::ACK),
        3 => Just(TcpFlags::ACK | TcpFlags::FIN),
        1 => Just(TcpFlags::SYN),
        1 => Just(TcpFlags::RST),
        1 => any::<u8>().prop_map(TcpFlags),
    ];
    let passed_ms = prop_oneof![Just(0), 0..150u32, 0..600u32];
    let stamp = prop_oneof![Just(None), (-3..3i32).prop_map(Some)];
    let rest = (any::<u16>(), 0..3_000u32, stamp, any::<bool>());
    (passed_ms, near(), near(), flags, rest).prop_map(
        |(passed_ms, seq, ack, flags, (window, len, stamp, ecn))| {
            let segment = Segment {
                seq: THEIRS + seq as u32,
                ack: OURS + 2 + ack as u32,
                flags,
                window,
                len: if len > 1_500 { 0 } else { len },
                timestamps: stamp.map(|stamp| (510u32.wrapping_add_signed(stamp), 1_000)),
                ecn,
                ..Segment::default()
            };
            (passed_ms, segment)
        },
    )
}

/// Answers what comes by the whole connection and by what is kept of it.
fn answers_are_equal(before: &Before, segments: Vec<(u32, Segment)>) -> Result<(), TestCaseError> {
    let mut whole = in_time_wait(before);
    let little = whole.connection.to_time_wait(whole.now_ms, &whole.recovery);
    let little = little.expect("it only waits");
    let mut again = End {
        connection: little.connection(&whole.tunables),
        ..whole.clone()
    };
    for (passed_ms, mut segment) in segments {
        segment.seq += before.received + 2;
        for end in [&mut whole, &mut again] {
            end.now_ms += passed_ms;
        }
        let ended = [&mut whole, &mut again]
            .map(|end| end.work(|connection, cx| connection.handle_timeout(cx)));
        prop_assert_eq!(format!("{:?}", ended[0]), format!("{:?}", ended[1]));
        let gives_way = [&whole, &again].map(|end| end.connection.may_be_replaced_by(&segment));
        prop_assert_eq!(gives_way[0], gives_way[1]);
        let answers = [&mut whole, &mut again].map(|end| end.take(segment));
        prop_assert_eq!(format!("{:?}", answers[0]), format!("{:?}", answers[1]));
        let states = [&whole, &again].map(|end| {
            (
                end.connection.state(),
                end.connection.poll_timeout(end.now_ms),
            )
        });
        prop_assert_eq!(states[0], states[1]);
        prop_assert_eq!(&whole.counters, &again.counters);
    }
    for end in [&mut whole, &mut again] {
        end.connection.release(&mut end.recovery);
        prop_assert_eq!(end.recovery.in_use(), 0);
    }
    Ok(())
}

#[test]
fn a_window_that_comes_late_changes_no_answer() {
    // The FIN came with bytes, so the window that was told last is older than it.
    let before = Before {
        asks: false,
        uses: [false; 3],
        windows: [0, 0],
        scale: 0,
        buffer_bytes: 4096,
        received: 2,
    };
    let segment = |seq, ack, window, len| Segment {
        seq: THEIRS - seq,
        ack: OURS + 2 - ack,
        flags: TcpFlags::ACK,
        window,
        len,
        ..Segment::default()
    };
    let segments = vec![(0, segment(2, 0, 2, 0)), (0, segment(0, 1, 0, 1))];
    let result = answers_are_equal(&before, segments);
    result.expect("what is kept answers alike");
}

proptest! {
    #![proptest_config(crate::cases(1_000))]

    #[test]
    fn what_comes_late_is_answered_as_by_the_whole(
        before in before(),
        segments in prop::collection::vec(late(), 1..8),
    ) {
        answers_are_equal(&before, segments)?;
    }
}
