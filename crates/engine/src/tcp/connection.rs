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

/// The states of RFC 9293, section 3.3.2, without LISTEN: a listener has no connection yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TcpState {
    /// Our SYN was sent (active open).
    SynSent,
    /// A SYN was received (passive or simultaneous open), and ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// The peer's FIN was received; ours was not sent.
    CloseWait,
    /// Our FIN was sent.
    FinWait1,
    /// Our FIN was acknowledged.
    FinWait2,
    /// Both FINs were sent, and ours is not acknowledged (simultaneous close).
    Closing,
    /// The peer's FIN was received first, and ours was sent.
    LastAck,
    /// Closed; segments that are still under way are answered.
    TimeWait,
    /// Closed.
    Closed,
}

/// A set of flags of a connection. [`enter_closed`](Connection::enter_closed) clears all but those
/// that say how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag(u32);

impl Flag {
    /// An ACK must be sent now. Set by what must be acknowledged at once; cleared by any segment
    /// that carries an ACK.
    pub(super) const ACK_NOW: Flag = Flag(1);
    /// A FIN follows the data. Set by [`close`](Connection::close).
    pub(super) const FIN_QUEUED: Flag = Flag(1 << 1);
    /// The FIN was sent at least once.
    pub(super) const FIN_SENT: Flag = Flag(1 << 2);
    /// A RST must be sent, and nothing else. Set by [`abort`](Connection::abort); sending the RST
    /// closes the connection.
    pub(super) const SEND_RST: Flag = Flag(1 << 3);
    /// Timestamps were negotiated by the SYNs.
    pub(super) const TIMESTAMPS: Flag = Flag(1 << 4);
    /// SACK was negotiated by the SYNs.
    pub(super) const SACK: Flag = Flag(1 << 5);
    /// ECN was negotiated by the SYNs.
    pub(super) const ECN: Flag = Flag(1 << 6);
    /// Segments carry ECE. Set when a packet arrived with CE, cleared by the peer's CWR.
    pub(super) const SEND_ECE: Flag = Flag(1 << 7);
    /// The next new data carries CWR. Set when the peer's ECE reduced the window, cleared when CWR
    /// was sent.
    pub(super) const SEND_CWR: Flag = Flag(1 << 8);
    /// Fast recovery (RFC 6582, RFC 6675): from the fast retransmit until `recover` is acknowledged,
    /// or the retransmission timer expires.
    pub(super) const FAST_RECOVERY: Flag = Flag(1 << 9);
    /// In fast recovery: the first unacknowledged segment is retransmitted, whatever the window is.
    /// Set on entry and without SACK by a partial ACK; cleared when data was sent.
    pub(super) const RETRANSMIT_NOW: Flag = Flag(1 << 10);
    /// The round trip of the segment that ends at `rtt_seq` is being measured. Cleared by its ACK,
    /// and by a retransmission (Karn).
    pub(super) const RTT_TIMING: Flag = Flag(1 << 11);
    /// The retransmission timer is the persist timer. Set when the peer's window keeps data back and
    /// nothing is in flight; cleared when the window opens or data is acknowledged.
    pub(super) const PERSIST: Flag = Flag(1 << 12);
    /// A window probe must be sent. Set by the persist timer, cleared when data was sent or the
    /// window opens.
    pub(super) const WINDOW_PROBE: Flag = Flag(1 << 13);
    /// A keepalive probe must be sent. Set by the keepalive timer, cleared when it was sent.
    pub(super) const KEEPALIVE_PROBE: Flag = Flag(1 << 14);
    /// Window scaling was negotiated by the SYNs.
    pub(super) const WINDOW_SCALING: Flag = Flag(1 << 15);
    /// The peer's FIN arrived before some of its data. Cleared when that has arrived.
    pub(super) const FIN_OUT_OF_ORDER: Flag = Flag(1 << 16);
    /// Our SYN is acknowledged.
    pub(super) const SYN_ACKED: Flag = Flag(1 << 17);
    /// `recover` is not acknowledged yet, so duplicate ACKs begin no fast recovery (RFC 6582, section
    /// 3.2, step 2). Set on entry to fast recovery and by the retransmission timer.
    pub(super) const BELOW_RECOVER: Flag = Flag(1 << 18);
    /// The peer's ECE reduced the window; it does so once until `recover` is acknowledged.
    pub(super) const CONGESTION_RECOVERY: Flag = Flag(1 << 19);
    /// The retransmission timer expired, and nothing was acknowledged since.
    pub(super) const RTO_EXPIRED: Flag = Flag(1 << 20);
    /// The rescue retransmission of this fast recovery was sent (RFC 6675, NextSeg, rule 4).
    pub(super) const RESCUE_SENT: Flag = Flag(1 << 21);
    /// A partial ACK restarted the retransmission timer in this fast recovery without SACK (RFC 6582).
    pub(super) const PARTIAL_ACKED: Flag = Flag(1 << 22);
    /// It ended by a RST, the peer's or ours.
    pub(super) const RESET: Flag = Flag(1 << 23);
    /// The peer did not answer: the RST to send is for that, and the connection ended so.
    pub(super) const TIMED_OUT: Flag = Flag(1 << 24);
    /// The test ended: the RST to send is for that, and the connection ended so.
    pub(super) const CUT_OFF: Flag = Flag(1 << 25);
    /// It ended in SYN-SENT.
    pub(super) const CLOSED_IN_SYN_SENT: Flag = Flag(1 << 26);
    /// The RST that ended it acknowledged all that was written.
    pub(super) const ALL_ACKED: Flag = Flag(1 << 27);

    /// Whether all of these are among them.
    #[inline]
    pub(super) const fn contains(self, flags: Flag) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The flags of both.
    pub(super) const fn or(self, other: Flag) -> Flag {
        Flag(self.0 | other.0)
    }
}

/// The shift counts of windows, 14 at most (RFC 7323): in the lower half Snd.Wind.Shift, above it
/// Rcv.Wind.Shift.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowScales(u8);

impl WindowScales {
    pub(super) fn new(send: u8, receive: u8) -> WindowScales {
        debug_assert!(send.max(receive) <= WINDOW_SCALE_MAX, "as RFC 7323 says");
        WindowScales(receive << 4 | send)
    }

    /// Of the windows that the peer advertises.
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
/// [`poll_timeout`](Connection::poll_timeout). It may be dropped when
/// [`is_closed`](Connection::is_closed), after [`release`](Connection::release).
///
/// Fields have the names of RFC 9293, section 3.3.1, and where it has none those of BSD.
#[derive(Clone, Debug)]
pub struct Connection {
    // What every segment touches.
    /// The oldest unacknowledged sequence number (SND.UNA).
    pub(super) snd_una: Seq,
    /// The next sequence number to send (SND.NXT). Below `snd_max` while data is sent again after a
    /// timeout.
    pub(super) snd_nxt: Seq,
    /// The highest sequence number that was ever sent.
    pub(super) snd_max: Seq,
    /// Behind the last byte that the application wrote (Linux: `write_seq`); the FIN has this number.
    pub(super) write_seq: Seq,
    /// The next sequence number that is expected (RCV.NXT).
    pub(super) rcv_nxt: Seq,
    /// The right edge of the window that was advertised (RCV.NXT + RCV.WND).
    pub(super) rcv_adv: Seq,
    /// The ACK field of the last segment that was sent (Last.ACK.sent of RFC 7323).
    pub(super) last_ack_sent: Seq,
    /// The peer's window in bytes (SND.WND).
    pub(super) snd_wnd: u32,
    pub(super) flags: Flag,
    pub(super) congestion: Congestion,
    pub(super) state: TcpState,
    /// Bytes of data in a full segment to send.
    pub(super) mss: u16,
    pub(super) scales: WindowScales,
    pub(super) dup_acks: u8,
    /// Timeouts since data was acknowledged.
    pub(super) backoff: u8,
    /// Window or keepalive probes since a segment arrived.
    pub(super) probes: u8,
    /// State of loss recovery and reassembly; none while nothing is missing.
    pub(super) recovery: RecoveryIndex,
    pub(super) timers: Timers,
    // What only some need.
    /// The sequence number of the segment that updated `snd_wnd` last (SND.WL1).
    pub(super) snd_wl1: Seq,
    /// The largest window that the peer ever advertised (MAX.SND.WND of RFC 5961).
    pub(super) max_snd_wnd: u32,
    /// The timestamp to echo (TS.Recent of RFC 7323).
    pub(super) ts_recent: u32,
    /// The end of the segment whose round trip is measured, and when it was sent.
    pub(super) rtt_seq: Seq,
    pub(super) rtt_start_us: u32,
    pub(super) rtt: Rtt,
    /// When a segment arrived last.
    pub(super) last_received_ms: u32,
    /// When data was sent last.
    pub(super) last_sent_ms: u32,
    /// What few connections ever need.
    pub(super) cold: ColdIndex,
}

/// What a connection is called with.
#[derive(Debug)]
pub struct TcpContext<'a> {
    /// The time in milliseconds; wraps around.
    pub now_ms: u32,
    /// The same time in microseconds; wraps around.
    pub now_us: u32,
    /// The settings of this side.
    pub tunables: &'a Tunables,
    /// Bytes that were delivered and that the application has not consumed: the window is smaller
    /// by them.
    pub unread_bytes: u32,
    /// Counters of BSD, of this side of the template.
    pub counters: &'a mut TcpCounters,
    /// Where connections keep their state of loss recovery.
    pub recovery: &'a mut RecoveryPool,
}

impl Connection {
    /// An active open; `iss` is the initial send sequence number (ISS), drawn so that nobody guesses
    /// it (RFC 6528).
    pub fn connect(cx: &mut TcpContext<'_>, iss: Seq) -> Connection {
        cx.counters.connattempt += 1;
        Connection::opening(cx, iss, TcpState::SynSent)
    }

    /// A passive open by the peer's `syn`.
    pub fn accept(cx: &mut TcpContext<'_>, iss: Seq, syn: &Segment) -> Connection {
        cx.counters.accepts += 1;
        cx.counters.rcvtotal += 1;
        let mut connection = Connection::opening(cx, iss, TcpState::SynReceived);
        connection.process_syn(cx, syn);
        let requests_ecn = syn.has(TcpFlags::ECE | TcpFlags::CWR);
        if requests_ecn && cx.tunables.ecn != Ecn::Off {
            connection.set(Flag::ECN);
        }
        connection
    }

    /// A connection whose handshake begins, and must end within the connect timeout.
    fn opening(cx: &TcpContext<'_>, iss: Seq, state: TcpState) -> Connection {
        let mut connection = Connection::new(cx.tunables, cx.now_ms, iss, state);
        let until_ms = cx.now_ms.wrapping_add(cx.tunables.connect_timeout_ms);
        connection.timers.set(Timer::Keep, until_ms);
        connection
    }

    /// A connection that has sent nothing, and received its last segment at `now_ms`.
    pub(super) fn new(tunables: &Tunables, now_ms: u32, iss: Seq, state: TcpState) -> Connection {
        let mss = tunables.mss_bytes;
        let mut rtt = Rtt::default();
        if tunables.patient {
            rtt.distrust();
        }
        Connection {
            snd_una: iss,
            snd_nxt: iss,
            snd_max: iss,
            write_seq: iss + 1,
            rcv_nxt: Seq(0),
            rcv_adv: Seq(0),
            last_ack_sent: Seq(0),
            snd_wnd: 0,
            flags: Flag(0),
            congestion: Congestion::new(tunables, u32::from(mss)),
            state,
            mss,
            scales: WindowScales::default(),
            dup_acks: 0,
            backoff: 0,
            probes: 0,
            recovery: RecoveryIndex::NONE,
            timers: Timers::default(),
            snd_wl1: Seq(0),
            max_snd_wnd: 0,
            ts_recent: 0,
            rtt_seq: iss,
            rtt_start_us: 0,
            rtt,
            last_received_ms: now_ms,
            last_sent_ms: now_ms,
            cold: ColdIndex::default(),
        }
    }

    /// Prefetches the cache lines that it lies in.
    #[inline]
    pub fn fetch(&self) {
        prefetch(&self.recovery);
        prefetch(&self.dup_acks);
    }

    /// Takes the sequence number and the options of the peer's SYN.
    pub(super) fn process_syn(&mut self, cx: &mut TcpContext<'_>, syn: &Segment) {
        self.rcv_nxt = syn.seq + 1;
        self.last_ack_sent = self.rcv_nxt;
        self.rcv_adv = self.rcv_nxt + cx.tunables.receive_buffer_bytes;
        self.snd_wl1 = syn.seq;
        // RFC 7323, section 2.2: the window of a SYN is never scaled.
        self.snd_wnd = u32::from(syn.window);
        self.max_snd_wnd = self.snd_wnd;
        let mut mss = cx
            .tunables
            .mss_bytes
            .min(syn.mss.unwrap_or(MSS_BYTES_DEFAULT));
        if let (Some((value, _)), true) = (syn.timestamps, cx.tunables.rfc1323) {
            self.set(Flag::TIMESTAMPS);
            self.ts_recent = value;
            mss = mss.saturating_sub(TIMESTAMPS_BYTES);
        }
        if let (Some(scale), true) = (syn.window_scale, cx.tunables.rfc1323) {
            self.set(Flag::WINDOW_SCALING);
            let send = scale.min(WINDOW_SCALE_MAX);
            self.scales = WindowScales::new(send, cx.tunables.window_scale());
        }
        if syn.sack_permitted && cx.tunables.sack {
            self.set(Flag::SACK);
        }
        self.mss = mss.max(1);
        self.congestion = Congestion::new(cx.tunables, u32::from(self.mss));
    }

    /// The application has `bytes` more to send, at most [`writable_bytes`](Connection::writable_bytes),
    /// and did not [`close`](Connection::close) yet.
    pub fn write(&mut self, bytes: u32, counters: &mut TcpCounters) {
        debug_assert!(!self.has(Flag::FIN_QUEUED), "nothing follows the end");
        self.write_seq += bytes;
        counters.sndbyte += u64::from(bytes);
    }

    /// How many bytes the application may still write.
    pub fn writable_bytes(&self, tunables: &Tunables) -> u32 {
        let waiting = self.oldest_byte().until(self.write_seq);
        tunables.transmit_buffer_bytes.saturating_sub(waiting)
    }

    /// Bytes that were written and are not acknowledged.
    pub fn unacknowledged_bytes(&self) -> u32 {
        self.oldest_byte().until(self.write_seq)
    }

    /// The sequence number of the oldest unacknowledged byte of data.
    #[inline]
    pub(super) fn oldest_byte(&self) -> Seq {
        self.snd_una + u32::from(!self.has(Flag::SYN_ACKED))
    }

    /// The application has no more to send. What it wrote is sent, then a FIN; both wait until the
    /// connection is established.
    pub fn close(&mut self) {
        self.set(Flag::FIN_QUEUED);
    }

    /// Aborts the connection: the next [`poll_transmit`](Connection::poll_transmit) sends a RST where
    /// RFC 9293 asks for one, and closes it.
    pub fn abort(&mut self) {
        self.timers.stop_all();
        self.set(Flag::SEND_RST);
    }

    /// The same at the end of a test; it does not count as a failure of the connection.
    pub fn cut_off(&mut self) {
        self.abort();
        self.set(Flag::CUT_OFF);
    }

    /// Closes the connection without the RST that [`abort`](Connection::abort) would send: there is no
    /// room for it in the tx queue.
    pub fn close_silently(&mut self, cx: &mut TcpContext<'_>) {
        let how = self.reset_end();
        self.enter_closed(cx, how, &mut Outcome::default());
    }

    /// Closes a connection in TIME-WAIT before its time: no segments are under way any more.
    pub fn finish(&mut self, cx: &mut TcpContext<'_>) {
        self.enter_closed(cx, End::Closed, &mut Outcome::default());
    }

    /// The next sequence number that is expected (RCV.NXT); none before the peer's SYN.
    pub fn rcv_nxt(&self) -> Option<Seq> {
        (self.state != TcpState::SynSent).then_some(self.rcv_nxt)
    }

    /// Whether this is the next sequence number that is expected (RCV.NXT).
    pub fn is_rcv_nxt(&self, seq: Seq) -> bool {
        seq == self.rcv_nxt
    }

    /// Whether it is closed, and has nothing to send any more.
    pub fn is_closed(&self) -> bool {
        self.state == TcpState::Closed
    }

    /// How it ended, and whether that was in SYN-SENT; `None` while it is not closed.
    pub fn ended(&self) -> Option<(End, bool)> {
        let how = if self.has(Flag::RESET) {
            End::Reset
        } else if self.has(Flag::TIMED_OUT) {
            End::TimedOut
        } else if self.has(Flag::CUT_OFF) {
            End::CutOff
        } else {
            End::Closed
        };
        let was_syn_sent = self.has(Flag::CLOSED_IN_SYN_SENT);
        self.is_closed().then_some((how, was_syn_sent))
    }

    /// Whether the peer has acknowledged our SYN and all that was written. A closed connection answers
    /// too; the RST that closed it may have acknowledged the rest.
    pub fn has_all_acknowledged(&self) -> bool {
        !self.snd_una.is_before(self.write_seq) || self.has(Flag::ALL_ACKED)
    }

    /// Its state.
    pub fn state(&self) -> TcpState {
        self.state
    }

    /// Whether the peer's FIN was received, and all data before it.
    #[inline]
    pub(super) fn is_fin_received(&self) -> bool {
        matches!(
            self.state,
            TcpState::CloseWait | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait
        )
    }

    /// Whether the handshake is complete: one of the synchronized states of RFC 9293.
    pub fn is_synchronized(&self) -> bool {
        self.state >= TcpState::Established && self.state != TcpState::Closed
    }

    /// Whether `syn` may open a new connection with the ports of this one, which is closed, or in
    /// TIME-WAIT and `syn` is newer (RFC 9293, section 3.6.1; RFC 6191).
    pub fn may_be_replaced_by(&self, syn: &Segment) -> bool {
        if !syn.opens_connection() || self.state != TcpState::TimeWait {
            return self.is_closed();
        }
        match syn.timestamps {
            Some((value, _)) if self.has(Flag::TIMESTAMPS) && value != self.ts_recent => {
                Seq(value).is_after(Seq(self.ts_recent))
            }
            // RCV.NXT is behind the FIN.
            _ => !syn.seq.is_before(self.rcv_nxt),
        }
    }

    /// Gives back what it holds in pools. The last call before it is dropped.
    pub fn release(&mut self, pool: &mut RecoveryPool) {
        pool.release(&mut self.recovery);
        pool.cold.release(&mut self.cold);
    }

    /// Enters CLOSED.
    pub(super) fn enter_closed(
        &mut self,
        cx: &mut TcpContext<'_>,
        how: End,
        outcome: &mut Outcome,
    ) {
        cx.counters.closed += 1;
        match (how, self.state) {
            (End::Closed, _) => {}
            (End::CutOff, _) => cx.counters.testdrops += 1,
            (_, TcpState::SynSent) => cx.counters.conndrops += 1,
            _ => cx.counters.drops += 1,
        }
        self.count_reassembly(cx);
        let was_syn_sent = self.state == TcpState::SynSent;
        self.state = TcpState::Closed;
        self.timers.stop_all();
        self.flags = match how {
            End::Closed => Flag(0),
            End::Reset => Flag::RESET,
            End::TimedOut => Flag::TIMED_OUT,
            End::CutOff => Flag::CUT_OFF,
        };
        if was_syn_sent {
            self.set(Flag::CLOSED_IN_SYN_SENT);
        }
        self.release(cx.recovery);
        outcome.ended = Some(how);
    }

    /// Both FINs were received, ours was sent first: enters TIME-WAIT.
    pub(super) fn enter_time_wait(&mut self, cx: &TcpContext<'_>) {
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

/// There are millions of them at once.
const _: () = assert!(std::mem::size_of::<Connection>() == 112);
