//! A TCP connection: its state, and how it is driven.

use allosaur_packet::prefetch;
use allosaur_packet::transport::tcp::TcpFlags;

use super::cold::ColdIndex;
use super::congestion::Congestion;
use super::counters::TcpCounters;
use super::outcome::{End, Outcome};
use super::recovery::{RecoveryIndex, RecoveryPool};
use super::rtt::Rtt;
use super::segment::Segment;
use super::seq::Seq;
use super::timers::{Timer, Timers};
use super::tunables::{Ecn, MSS_BYTES_DEFAULT, Tunables};

/// Bytes of the timestamps option, with its padding.
pub(super) const TIMESTAMPS_BYTES: u16 = 12;
/// The largest shift of windows (RFC 7323, section 2.3).
const WINDOW_SCALE_MAX: u8 = 14;

/// The states of RFC 9293, section 3.3.2, without LISTEN: who listens has no connection yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TcpState {
    /// Asked for a connection.
    SynSent,
    /// Was asked, or both asked at the same time.
    SynReceived,
    /// Data flows.
    Established,
    /// The other side is done, we are not.
    CloseWait,
    /// We are done, and said so.
    FinWait1,
    /// The other side knows that we are done.
    FinWait2,
    /// Both said it at the same time.
    Closing,
    /// The other side was done first, and now we said it.
    LastAck,
    /// Over; what may still be under way is answered.
    TimeWait,
    /// Over.
    Closed,
}

/// Facts that are true or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag(u32);

impl Flag {
    /// An acknowledgment must leave.
    pub(super) const ACK_NOW: Flag = Flag(1);
    /// The application has no more to send: a FIN follows its data.
    pub(super) const FIN_WANTED: Flag = Flag(1 << 1);
    /// The FIN was sent at least once.
    pub(super) const FIN_SENT: Flag = Flag(1 << 2);
    /// A reset must leave, and nothing else any more.
    pub(super) const RESET: Flag = Flag(1 << 3);
    /// Both sides use timestamps.
    pub(super) const TIMESTAMPS: Flag = Flag(1 << 4);
    /// Both sides use SACK.
    pub(super) const SACK: Flag = Flag(1 << 5);
    /// Both sides use ECN.
    pub(super) const ECN: Flag = Flag(1 << 6);
    /// Congestion was seen on the way here, and the other side has not answered that.
    pub(super) const ECN_ECHO: Flag = Flag(1 << 7);
    /// Our window went down: say so with the next new data.
    pub(super) const ECN_REDUCED: Flag = Flag(1 << 8);
    /// Something lost is being repaired.
    pub(super) const RECOVERY: Flag = Flag(1 << 9);
    /// The oldest segment must leave again, whatever the window is.
    pub(super) const RESEND: Flag = Flag(1 << 10);
    /// The round trip of `timed` is being measured.
    pub(super) const TIMING: Flag = Flag(1 << 11);
    /// The retransmission timer asks for the window.
    pub(super) const PERSIST: Flag = Flag(1 << 12);
    /// A byte must leave though the window is closed.
    pub(super) const PROBE: Flag = Flag(1 << 13);
    /// A keepalive probe must leave.
    pub(super) const KEEP_PROBE: Flag = Flag(1 << 14);
    /// The other side scales its windows, and so do we.
    pub(super) const SCALED: Flag = Flag(1 << 15);
    /// The FIN of the other side has been taken.
    pub(super) const PEER_CLOSED: Flag = Flag(1 << 16);
    /// The FIN of the other side arrived, but not all before it.
    pub(super) const EARLY_FIN: Flag = Flag(1 << 17);
    /// Our SYN is acknowledged.
    pub(super) const SYN_DONE: Flag = Flag(1 << 18);
    /// What is lost below `recover` was answered already: no further repair begins.
    pub(super) const HELD: Flag = Flag(1 << 19);
    /// The window went down for what is below `recover`, because of marks (ECN).
    pub(super) const SLOWED: Flag = Flag(1 << 20);
    /// The oldest segment was sent again by the retransmission timer.
    pub(super) const TIMED_OUT: Flag = Flag(1 << 21);
    /// What may happen once in a repair has: with SACK the rescue retransmission (RFC 6675,
    /// NextSeg, rule 4), else that a partial acknowledgment started the timer again (RFC 6582).
    pub(super) const ONCE: Flag = Flag(1 << 22);
    /// The reset that must leave is that of a connection that was given up.
    pub(super) const GIVEN_UP: Flag = Flag(1 << 23);
    /// The reset that must leave is that of the test's end.
    pub(super) const CUT_OFF: Flag = Flag(1 << 24);
    /// It ended before it was there: what it asked for was not answered.
    pub(super) const ENDED_UNANSWERED: Flag = Flag(1 << 25);
    /// It ended by a reset.
    pub(super) const ENDED_RESET: Flag = Flag(1 << 26);
    /// It was given up for silence.
    pub(super) const ENDED_SILENT: Flag = Flag(1 << 27);
    /// The end of the test ended it.
    pub(super) const ENDED_CUT_OFF: Flag = Flag(1 << 28);
    /// The reset that ended it acknowledged all that was written.
    pub(super) const ENDED_ACKNOWLEDGED: Flag = Flag(1 << 29);

    /// With none of these, what arrives in order only has to be counted.
    pub(super) const NOT_PLAIN_INPUT: Flag = Flag::ECN.or(Flag::FIN_WANTED).or(Flag::EARLY_FIN);
    /// With none of these, nothing leaves but what is new.
    pub(super) const ASKS: Flag = Flag::RESET
        .or(Flag::ACK_NOW)
        .or(Flag::RECOVERY)
        .or(Flag::PROBE)
        .or(Flag::KEEP_PROBE);
    /// With none of these, full segments of new data may leave one like the other.
    pub(super) const NOT_PLAIN_OUTPUT: Flag = Flag::RESET
        .or(Flag::RECOVERY)
        .or(Flag::PERSIST)
        .or(Flag::PROBE)
        .or(Flag::ECN)
        .or(Flag::ECN_ECHO);

    /// Whether these are among them.
    #[inline]
    pub(super) const fn contains(self, flags: Flag) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Either of two.
    pub(super) const fn or(self, other: Flag) -> Flag {
        Flag(self.0 | other.0)
    }
}

/// The shifts of windows, 14 at most: in the lower half the one that the other side tells, above it
/// ours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowScales(u8);

impl WindowScales {
    pub(super) fn new(send: u8, receive: u8) -> WindowScales {
        debug_assert!(send.max(receive) <= WINDOW_SCALE_MAX, "as RFC 7323 says");
        WindowScales(receive << 4 | send)
    }

    /// Of the windows that the other side tells.
    #[inline]
    pub(super) fn send(self) -> u8 {
        self.0 & 0xf
    }

    /// Of ours.
    #[inline]
    pub(super) fn receive(self) -> u8 {
        self.0 >> 4
    }
}

/// A TCP connection (RFC 9293), without buffers: of data it knows only how many bytes there are.
///
/// Driven like this: [`connect`](Connection::connect) or [`accept`](Connection::accept); then
/// any of [`handle_segment`](Connection::handle_segment),
/// [`handle_timeout`](Connection::handle_timeout), [`write`](Connection::write),
/// [`close`](Connection::close) and [`abort`](Connection::abort), and after each of them
/// [`poll_transmit`](Connection::poll_transmit) and
/// [`poll_timeout`](Connection::poll_timeout). It may be forgotten when
/// [`is_closed`](Connection::is_closed), after [`release`](Connection::release).
#[derive(Clone, Debug)]
pub struct Connection {
    // What every segment touches.
    /// The oldest number that is not acknowledged (SND.UNA).
    pub(super) una: Seq,
    /// The next to send (SND.NXT). Behind `high` while sending again after a timeout.
    pub(super) next: Seq,
    /// The highest that was ever sent.
    pub(super) high: Seq,
    /// After the application's last byte; the FIN has this number.
    pub(super) end: Seq,
    /// The next that is expected (RCV.NXT).
    pub(super) expected: Seq,
    /// The right edge of the window that was offered.
    pub(super) offered: Seq,
    /// What was last acknowledged.
    pub(super) last_ack_sent: Seq,
    /// The window of the other side, in bytes (SND.WND).
    pub(super) send_window: u32,
    pub(super) flags: Flag,
    pub(super) congestion: Congestion,
    pub(super) state: TcpState,
    /// Bytes of data in a full segment to send.
    pub(super) mss: u16,
    pub(super) scales: WindowScales,
    pub(super) dup_acks: u8,
    /// Timeouts since something was acknowledged.
    pub(super) backoff: u8,
    /// Probes since something was heard.
    pub(super) probes: u8,
    pub(super) side: RecoveryIndex,
    pub(super) timers: Timers,
    // What only some need.
    /// The sequence number of the segment that told `send_window` last (SND.WL1).
    pub(super) window_seq: Seq,
    /// The largest window that the other side ever offered.
    pub(super) send_window_max: u32,
    /// The timestamp to echo (TS.Recent).
    pub(super) timestamp: u32,
    /// The end of the segment whose round trip is timed, and when it left.
    pub(super) timed: Seq,
    pub(super) timed_us: u32,
    pub(super) rtt: Rtt,
    /// When something was heard last.
    pub(super) heard_ms: u32,
    /// When data was sent last.
    pub(super) sent_ms: u32,
    /// What losses and the like left behind.
    pub(super) cold: ColdIndex,
}

/// What a connection works with.
#[derive(Debug)]
pub struct TcpContext<'a> {
    /// The time in milliseconds; goes round.
    pub now_ms: u32,
    /// The same time in microseconds; goes round.
    pub now_us: u32,
    /// How this side behaves.
    pub tunables: &'a Tunables,
    /// Bytes that were delivered and that the application has not consumed: the window is smaller
    /// by them.
    pub unread_bytes: u32,
    /// Where it counts.
    pub counters: &'a mut TcpCounters,
    /// Memory for what is out of order.
    pub sides: &'a mut RecoveryPool,
}

impl Connection {
    /// A connection that asks for the other side; `first` is the number of its SYN, drawn so
    /// that nobody guesses it (RFC 6528).
    pub fn connect(cx: &mut TcpContext<'_>, first: Seq) -> Connection {
        cx.counters.connattempt += 1;
        Connection::asking(cx, first, TcpState::SynSent)
    }

    /// A connection that another side asked for with `syn`.
    pub fn accept(cx: &mut TcpContext<'_>, first: Seq, syn: &Segment) -> Connection {
        cx.counters.accepts += 1;
        cx.counters.rcvtotal += 1;
        let mut connection = Connection::asking(cx, first, TcpState::SynReceived);
        connection.take_syn(cx, syn);
        let asks_for_ecn = syn.has(TcpFlags::ECE | TcpFlags::CWR);
        if asks_for_ecn && cx.tunables.ecn != Ecn::Off {
            connection.set(Flag::ECN);
        }
        connection
    }

    /// A connection that is not there yet, and has so long to be.
    fn asking(cx: &TcpContext<'_>, first: Seq, state: TcpState) -> Connection {
        let mut connection = Connection::new(cx.tunables, cx.now_ms, first, state);
        let until_ms = cx.now_ms.wrapping_add(cx.tunables.connect_timeout_ms);
        connection.timers.set(Timer::Keep, until_ms);
        connection
    }

    /// A connection that has sent nothing, and was heard of at `now_ms`.
    pub(super) fn new(tunables: &Tunables, now_ms: u32, first: Seq, state: TcpState) -> Connection {
        let mss = tunables.mss_bytes;
        let mut rtt = Rtt::default();
        if tunables.patient {
            rtt.distrust();
        }
        Connection {
            una: first,
            next: first,
            high: first,
            end: first + 1,
            expected: Seq(0),
            offered: Seq(0),
            last_ack_sent: Seq(0),
            send_window: 0,
            flags: Flag(0),
            congestion: Congestion::new(tunables, u32::from(mss)),
            state,
            mss,
            scales: WindowScales::default(),
            dup_acks: 0,
            backoff: 0,
            probes: 0,
            side: RecoveryIndex::NONE,
            timers: Timers::default(),
            window_seq: Seq(0),
            send_window_max: 0,
            timestamp: 0,
            timed: first,
            timed_us: 0,
            rtt,
            heard_ms: now_ms,
            sent_ms: now_ms,
            cold: ColdIndex::default(),
        }
    }

    /// Asks for the lines of the cache that it is in.
    #[inline]
    pub fn fetch(&self) {
        prefetch(&self.side);
        prefetch(&self.dup_acks);
    }

    /// Takes what the other side's SYN says, in either state.
    pub(super) fn take_syn(&mut self, cx: &mut TcpContext<'_>, syn: &Segment) {
        self.expected = syn.seq + 1;
        self.last_ack_sent = self.expected;
        self.offered = self.expected + cx.tunables.receive_buffer_bytes;
        self.window_seq = syn.seq;
        // RFC 7323, section 2.2: the window of a SYN is never scaled.
        self.send_window = u32::from(syn.window);
        self.send_window_max = self.send_window;
        let mut mss = cx
            .tunables
            .mss_bytes
            .min(syn.mss.unwrap_or(MSS_BYTES_DEFAULT));
        if let (Some((value, _)), true) = (syn.timestamps, cx.tunables.rfc1323) {
            self.set(Flag::TIMESTAMPS);
            self.timestamp = value;
            mss = mss.saturating_sub(TIMESTAMPS_BYTES);
        }
        if let (Some(scale), true) = (syn.window_scale, cx.tunables.rfc1323) {
            self.set(Flag::SCALED);
            let send = scale.min(WINDOW_SCALE_MAX);
            self.scales = WindowScales::new(send, cx.tunables.window_scale());
        }
        if syn.sack_permitted && cx.tunables.sack {
            self.set(Flag::SACK);
        }
        self.mss = mss.max(1);
        self.congestion = Congestion::new(cx.tunables, u32::from(self.mss));
    }

    /// The application has `bytes` more to send, at most [`room_bytes`](Connection::room_bytes),
    /// and did not [`close`](Connection::close) yet.
    pub fn write(&mut self, bytes: u32, counters: &mut TcpCounters) {
        debug_assert!(!self.has(Flag::FIN_WANTED), "nothing follows the end");
        self.end += bytes;
        counters.sndbyte += u64::from(bytes);
    }

    /// How many bytes the application may still write.
    pub fn room_bytes(&self, tunables: &Tunables) -> u32 {
        let waiting = self.oldest_byte().until(self.end);
        tunables.transmit_buffer_bytes.saturating_sub(waiting)
    }

    /// Bytes that were written and are not acknowledged.
    pub fn unacknowledged_bytes(&self) -> u32 {
        self.oldest_byte().until(self.end)
    }

    /// The oldest byte of data that is not acknowledged.
    #[inline]
    pub(super) fn oldest_byte(&self) -> Seq {
        self.una + u32::from(!self.has(Flag::SYN_DONE))
    }

    /// The application has no more to send. What it wrote is sent, then a FIN; before the
    /// connection is there, both wait for it.
    pub fn close(&mut self) {
        self.set(Flag::FIN_WANTED);
    }

    /// Ends the connection at once: the next [`poll_transmit`](Connection::poll_transmit) sends a
    /// reset, if the other side could make use of one, and then it is closed.
    pub fn abort(&mut self) {
        self.timers.stop_all();
        self.set(Flag::RESET);
    }

    /// The same at the end of a test, which is no fault of the connection.
    pub fn cut_off(&mut self) {
        self.abort();
        self.set(Flag::CUT_OFF);
    }

    /// Ends the connection, and tells nobody: what [`abort`](Connection::abort) wants to say finds
    /// no way out.
    pub fn end_untold(&mut self, cx: &mut TcpContext<'_>) {
        let how = self.reset_means();
        self.end(cx, how, &mut Outcome::default());
    }

    /// Ends the connection as it is: it is in TIME-WAIT, and nobody will send anything any more.
    pub fn finish(&mut self, cx: &mut TcpContext<'_>) {
        self.end(cx, End::Closed, &mut Outcome::default());
    }

    /// The number of the next byte that is expected (RCV.NXT); none before the peer's SYN.
    pub fn expected(&self) -> Option<Seq> {
        (self.state != TcpState::SynSent).then_some(self.expected)
    }

    /// Whether the byte with this number is the next that is expected.
    pub fn expects(&self, seq: Seq) -> bool {
        seq == self.expected
    }

    /// Whether it is over, and has nothing to send any more.
    pub fn is_closed(&self) -> bool {
        self.state == TcpState::Closed
    }

    /// How it ended, and whether it had not even been answered by then; `None` while it is not closed.
    pub fn ended(&self) -> Option<(End, bool)> {
        let how = if self.has(Flag::ENDED_RESET) {
            End::Reset
        } else if self.has(Flag::ENDED_SILENT) {
            End::TimedOut
        } else if self.has(Flag::ENDED_CUT_OFF) {
            End::CutOff
        } else {
            End::Closed
        };
        let is_unanswered = self.has(Flag::ENDED_UNANSWERED);
        self.is_closed().then_some((how, is_unanswered))
    }

    /// Whether the other side has acknowledged all that was written, our SYN first: also to be asked of
    /// one that is closed, by a reset perhaps that acknowledged the rest.
    pub fn has_all_acknowledged(&self) -> bool {
        !self.una.is_before(self.end) || self.has(Flag::ENDED_ACKNOWLEDGED)
    }

    /// Where it stands.
    pub fn state(&self) -> TcpState {
        self.state
    }

    /// Whether both sides know of each other.
    pub fn is_synchronized(&self) -> bool {
        self.state >= TcpState::Established && self.state != TcpState::Closed
    }

    /// Whether `syn` may begin a new connection in the place of this one: it is over, and what
    /// comes is newer (RFC 9293, section 3.6.1; RFC 6191).
    pub fn gives_way_to(&self, syn: &Segment) -> bool {
        if !syn.opens_connection() || self.state != TcpState::TimeWait {
            return self.is_closed();
        }
        match syn.timestamps {
            Some((value, _)) if self.has(Flag::TIMESTAMPS) && value != self.timestamp => {
                Seq(value).is_after(Seq(self.timestamp))
            }
            // Of what came, the FIN was last.
            _ => !syn.seq.is_before(self.expected),
        }
    }

    /// Gives back what it holds in pools. The last thing before it is forgotten.
    pub fn release(&mut self, sides: &mut RecoveryPool) {
        sides.release(&mut self.side);
        sides.cold.release(&mut self.cold);
    }

    /// It is over.
    pub(super) fn end(&mut self, cx: &mut TcpContext<'_>, how: End, outcome: &mut Outcome) {
        cx.counters.closed += 1;
        match (how, self.state) {
            (End::Closed, _) => {}
            (End::CutOff, _) => cx.counters.testdrops += 1,
            (_, TcpState::SynSent) => cx.counters.conndrops += 1,
            _ => cx.counters.drops += 1,
        }
        self.count_reassembly(cx);
        let was_asking = self.state == TcpState::SynSent;
        self.state = TcpState::Closed;
        self.timers.stop_all();
        // All that is left to know of it.
        self.flags = match how {
            End::Closed => Flag(0),
            End::Reset => Flag::ENDED_RESET,
            End::TimedOut => Flag::ENDED_SILENT,
            End::CutOff => Flag::ENDED_CUT_OFF,
        };
        if was_asking {
            self.set(Flag::ENDED_UNANSWERED);
        }
        self.release(cx.sides);
        outcome.ended = Some(how);
    }

    /// Both sides said that they are done, and we said it first.
    pub(super) fn wait_for_stragglers(&mut self, cx: &TcpContext<'_>) {
        self.state = TcpState::TimeWait;
        self.timers.stop_all();
        let at_ms = cx.now_ms.wrapping_add(cx.tunables.time_wait_ms);
        self.timers.set(Timer::TimeWait, at_ms);
    }

    #[inline]
    pub(super) fn has(&self, flag: Flag) -> bool {
        self.flags.0 & flag.0 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, flag: Flag) {
        self.flags.0 |= flag.0;
    }

    #[inline]
    pub(super) fn clear(&mut self, flag: Flag) {
        self.flags.0 &= !flag.0;
    }
}

/// Millions of them are held at once.
const _: () = assert!(std::mem::size_of::<Connection>() == 112);
