//! Records of flows: what TCP knows of each, now and then.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use allosaur_api::commands::stateful::runs::{FlowLook, FlowSide, TcpFlow};
use allosaur_engine::stateful::FlowRecord;
use allosaur_engine::tcp::TcpState;
use allosaur_engine::template::Side;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};

/// For how long records are kept.
const KEPT: Nanos = 10 * SECOND;
/// Most records of single flows that are kept; older ones go first.
const FLOWS_MAX: usize = 200_000;
/// Most records of single flows in a reply; the next request has the others.
const FLOWS_TOLD_MAX: usize = 10_000;
/// The shortest time between two looks.
const INTERVAL_MIN: Nanos = 10 * MILLISECOND;
/// Sums of windows and thresholds that are not limited yet, as TRex shows them.
const UNLIMITED: u32 = 1 << 30;

/// Looks at the flows of a run, the newest last.
#[derive(Debug, Default)]
pub(super) struct Records {
    looks: VecDeque<Look>,
    next_index: u64,
    flows: usize,
}

/// What one data thread saw at a time.
#[derive(Debug)]
struct Look {
    index: u64,
    at: Nanos,
    flows: Vec<FlowRecord>,
}

impl Records {
    /// How often data threads look, when they are asked to do so every so many seconds.
    pub(super) fn interval(seconds: f64) -> Nanos {
        ((seconds * SECOND as f64) as Nanos).max(INTERVAL_MIN)
    }

    pub(super) fn add(&mut self, at: Nanos, flows: Vec<FlowRecord>) {
        if flows.is_empty() {
            return;
        }
        self.flows += flows.len();
        let index = self.next_index;
        self.next_index += 1;
        self.looks.push_back(Look { index, at, flows });
        let is_old = |look: &Look| look.at.saturating_add(KEPT) < at;
        while self.looks.len() > 1
            && (self.flows > FLOWS_MAX || self.looks.front().is_some_and(is_old))
        {
            let gone = self.looks.pop_front();
            self.flows -= gone.map_or(0, |look| look.flows.len());
        }
    }

    /// As `get_flow_info` shows them, from that number on.
    pub(super) fn shown(&self, first: u64) -> Vec<FlowLook> {
        let mut told = 0;
        let looks = self.looks.iter().filter(|look| look.index >= first);
        let looks = looks.take_while(|look| {
            let fits = told == 0 || told + look.flows.len() <= FLOWS_TOLD_MAX;
            told += look.flows.len();
            fits
        });
        looks.map(Look::shown).collect()
    }
}

impl Look {
    pub(super) fn shown(&self) -> FlowLook {
        let flows: BTreeMap<_, _> = self.flows.iter().map(shown).collect();
        let index = self.index;
        FlowLook { index, flows }
    }
}

/// One flow, by its ends: the client's first.
fn shown(record: &FlowRecord) -> (String, TcpFlow) {
    let tcp = &record.tcp;
    let flow = TcpFlow {
        origin: match record.side {
            Side::Client => FlowSide::Client,
            Side::Server => FlowSide::Server,
        },
        duration: record.duration / MILLISECOND,
        state: state_number(tcp.state),
        options: options(record),
        snd_wscale: tcp.window_scales.map(|(send, _)| send),
        rcv_wscale: tcp.window_scales.map(|(_, receive)| receive),
        rto: tcp.timeout_ms,
        last_data_recv: record.heard_ago_ms,
        rtt: milliseconds(tcp.round_trip_us),
        rttvar: milliseconds(tcp.round_trip_variation_us),
        snd_ssthresh: tcp.threshold_bytes.unwrap_or(UNLIMITED),
        snd_cwnd: tcp.congestion_window_bytes,
        rcv_space: tcp.rcv_wnd_bytes,
        snd_wnd: tcp.snd_wnd_bytes,
        rcv_nxt: tcp.rcv_nxt.0,
        snd_nxt: tcp.snd_nxt.0,
        snd_mss: tcp.send_mss_bytes,
        rcv_mss: tcp.receive_mss_bytes,
        snd_rexmitpack: tcp.retransmitted_segments,
        rcv_ooopack: tcp.out_of_order_segments,
        snd_zerowin: tcp.zero_windows,
    };
    (ends(record.local, record.remote), flow)
}

fn ends(local: SocketAddr, remote: SocketAddr) -> String {
    format!("{local}-{remote}")
}

fn milliseconds(microseconds: u32) -> f64 {
    f64::from(microseconds) / 1e3
}

fn options(record: &FlowRecord) -> String {
    let tcp = &record.tcp;
    let all = [
        (tcp.timestamps, "/timestamps"),
        (tcp.sack, "/sack"),
        (tcp.window_scales.is_some(), "/wscale"),
        (tcp.ecn, "/ecn"),
    ];
    let used = all.iter().filter(|(is_used, _)| *is_used);
    used.map(|(_, name)| *name).collect()
}

/// As BSD numbers the states of TCP.
fn state_number(state: TcpState) -> u8 {
    match state {
        TcpState::SynSent => 2,
        TcpState::SynReceived => 3,
        TcpState::Established => 4,
        TcpState::CloseWait => 5,
        TcpState::FinWait1 => 6,
        TcpState::Closing => 7,
        TcpState::LastAck => 8,
        TcpState::FinWait2 => 9,
        TcpState::TimeWait => 10,
        TcpState::Closed => 0,
    }
}
