//! The counters of flows: 140 rows by TRex's names and in its order, and ours behind them. Metrics have
//! those that count, the RPC's tables all of them.

use allosaur_engine::app::{ApplicationCounters, UdpCounters};
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use allosaur_engine::tcp::TcpCounters;

/// Whether a row is a counter, and what it says of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A line that structures the table.
    Bar,
    /// The value of the moment, shown also when 0.
    Now,
    /// The same, left out when 0.
    Span,
    /// A counter.
    Info,
    /// A counter that is 0 unless something goes wrong.
    Error,
}

/// A row: class, name, unit, meaning.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow(
    pub Class,
    pub &'static str,
    pub &'static str,
    pub &'static str,
);

/// Where a counter lies in [`FlowValues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPlace {
    /// Among those of TCP.
    Tcp(usize),
    /// Among those of UDP.
    Udp(usize),
    /// Among those of programs.
    Application(usize),
    /// Among those that belong to no flow, and so to no profile.
    Table(usize),
}

/// What one side has counted, to be read row by row.
#[derive(Clone, Debug)]
pub struct FlowValues {
    tcp: [u64; TcpCounters::NAMES.len()],
    udp: [u64; UdpCounters::NAMES.len()],
    application: [u64; ApplicationCounters::NAMES.len()],
    table: [u64; FlowTableCounters::NAMES.len()],
}

impl FlowRow {
    /// Where its counter lies; nowhere if something here does not count it, or if it is none.
    pub fn place(&self) -> Option<FlowPlace> {
        let FlowRow(class, name, ..) = *self;
        if class == Class::Bar {
            return None;
        }
        let place = |names: &[&str], name: &str| names.iter().position(|other| *other == name);
        if let Some(name) = name.strip_prefix("tcps_") {
            return place(TcpCounters::NAMES, name).map(FlowPlace::Tcp);
        }
        if let Some(name) = name.strip_prefix("udps_") {
            return place(UdpCounters::NAMES, name).map(FlowPlace::Udp);
        }
        let application = place(ApplicationCounters::NAMES, name).map(FlowPlace::Application);
        application.or_else(|| place(FlowTableCounters::NAMES, name).map(FlowPlace::Table))
    }
}

impl FlowValues {
    /// What flows have counted, and with a table what belongs to none.
    pub fn new(counters: &GroupCounters, table: Option<&FlowTableCounters>) -> FlowValues {
        FlowValues {
            tcp: counters.flows.tcp.values(),
            udp: counters.flows.udp.values(),
            application: counters.flows.application.values(),
            table: table.map(FlowTableCounters::values).unwrap_or_default(),
        }
    }

    /// The value of a counter.
    pub fn of(&self, place: FlowPlace) -> u64 {
        match place {
            FlowPlace::Tcp(place) => self.tcp[place],
            FlowPlace::Udp(place) => self.udp[place],
            FlowPlace::Application(place) => self.application[place],
            FlowPlace::Table(place) => self.table[place],
        }
    }
}

use Class::{Bar, Error, Info, Now, Span};

const LINE: FlowRow = FlowRow(Bar, "-", "", "");

/// The rows.
#[rustfmt::skip]
pub const FLOW_ROWS: [FlowRow; 143] = [
    FlowRow(Now, "m_active_flows", "", "active flows"),
    FlowRow(Now, "m_est_flows", "", "established flows"),
    FlowRow(Now, "m_tx_bw_l7_r", "bps", "L7 transmit rate, acknowledged data"),
    FlowRow(Now, "m_tx_bw_l7_total_r", "bps", "L7 transmit rate, all data sent"),
    FlowRow(Now, "m_rx_bw_l7_r", "bps", "L7 receive rate"),
    FlowRow(Now, "m_tx_pps_r", "pps", "transmit packet rate"),
    FlowRow(Now, "m_rx_pps_r", "pps", "receive packet rate"),
    FlowRow(Now, "m_avg_size", "B", "average L7 bytes per packet, both directions"),
    FlowRow(Now, "m_tx_ratio", "%", "acknowledged share of the data sent"),
    LINE,
    FlowRow(Span, "m_traffic_duration", "sec", "duration of the traffic"),
    LINE,
    FlowRow(Bar, "TCP", "", ""),
    LINE,
    FlowRow(Info, "tcps_connattempt", "", "connections initiated"),
    FlowRow(Info, "tcps_accepts", "", "connections accepted"),
    FlowRow(Info, "tcps_connects", "", "connections established"),
    FlowRow(Info, "tcps_closed", "", "connections closed (includes drops)"),
    FlowRow(Info, "tcps_segstimed", "", "segments where we tried to get an RTT"),
    FlowRow(Info, "tcps_rttupdated", "", "times we succeeded in updating the RTT"),
    FlowRow(Info, "tcps_delack", "", "delayed ACKs sent"),
    FlowRow(Info, "tcps_sndtotal", "", "total packets sent"),
    FlowRow(Info, "tcps_sndpack", "", "data packets sent"),
    FlowRow(Info, "tcps_sndbyte", "", "data bytes sent by application"),
    FlowRow(Info, "tcps_sndbyte_ok", "", "data bytes sent by TCP"),
    FlowRow(Info, "tcps_sndctrl", "", "control (SYN|FIN|RST) packets sent"),
    FlowRow(Info, "tcps_sndacks", "", "ACK-only packets sent"),
    FlowRow(Info, "tcps_rcvtotal", "", "total packets received"),
    FlowRow(Info, "tcps_rcvpack", "", "packets received in sequence"),
    FlowRow(Info, "tcps_rcvbyte", "", "bytes received in sequence"),
    FlowRow(Info, "tcps_rcvackpack", "", "ACK packets received"),
    FlowRow(Info, "tcps_rcvackbyte", "", "data bytes acknowledged by received ACKs"),
    FlowRow(Info, "tcps_rcvackbyte_of", "", "SYN and FIN sequence numbers acknowledged by received ACKs"),
    FlowRow(Info, "tcps_rcvoffloads", "", "segments merged by receive offload (LRO/GRO)"),
    FlowRow(Info, "tcps_preddat", "", "in-sequence data segments that took the header-prediction path"),
    FlowRow(Info, "tcps_drops", "", "established connections dropped"),
    FlowRow(Error, "tcps_conndrops", "", "embryonic connections dropped"),
    FlowRow(Error, "tcps_timeoutdrop", "", "connections dropped in retransmit timeout"),
    FlowRow(Error, "tcps_rexmttimeo", "", "retransmit timeouts"),
    FlowRow(Error, "tcps_rexmttimeo_syn", "", "retransmit timeouts of a SYN"),
    FlowRow(Error, "tcps_persisttimeo", "", "persist timeouts"),
    FlowRow(Error, "tcps_keeptimeo", "", "keepalive timeouts"),
    FlowRow(Error, "tcps_keepprobe", "", "keepalive probes sent"),
    FlowRow(Error, "tcps_keepdrops", "", "connections dropped by keepalive"),
    FlowRow(Info, "tcps_testdrops", "", "connections dropped at the end of the test (no close)"),
    FlowRow(Error, "tcps_sndrexmitpack", "", "data packets retransmitted"),
    FlowRow(Error, "tcps_sndrexmitbyte", "", "data bytes retransmitted"),
    FlowRow(Error, "tcps_sndprobe", "", "window probes sent"),
    FlowRow(Error, "tcps_sndurg", "", "packets sent with URG only"),
    FlowRow(Info, "tcps_sndwinup", "", "window-update-only packets sent"),
    FlowRow(Error, "tcps_rcvbadsum", "", "packets received with a bad checksum"),
    FlowRow(Error, "tcps_rcvbadoff", "", "packets received with a bad data offset"),
    FlowRow(Error, "tcps_rcvshort", "", "packets received too short"),
    FlowRow(Error, "tcps_rcvduppack", "", "completely duplicate packets received"),
    FlowRow(Error, "tcps_rcvdupbyte", "", "duplicate bytes received"),
    FlowRow(Error, "tcps_rcvpartduppack", "", "packets received with some duplicate data"),
    FlowRow(Error, "tcps_rcvpartdupbyte", "", "duplicate bytes in partially duplicate packets"),
    FlowRow(Error, "tcps_rcvoopackdrop", "", "out-of-order packets dropped (reassembly queue full)"),
    FlowRow(Error, "tcps_rcvoobytesdrop", "", "out-of-order bytes dropped (reassembly queue full)"),
    FlowRow(Error, "tcps_rcvoopack", "", "out-of-order packets received"),
    FlowRow(Error, "tcps_rcvoobyte", "", "out-of-order bytes received"),
    FlowRow(Error, "tcps_rcvpackafterwin", "", "packets received with data after the window"),
    FlowRow(Error, "tcps_rcvbyteafterwin", "", "bytes received after the window"),
    FlowRow(Error, "tcps_rcvafterclose", "", "data packets received after close"),
    FlowRow(Error, "tcps_rcvwinprobe", "", "window probes received"),
    FlowRow(Error, "tcps_rcvdupack", "", "duplicate ACKs received"),
    FlowRow(Error, "tcps_rcvacktoomuch", "", "ACKs received for unsent data"),
    FlowRow(Error, "tcps_rcvwinupd", "", "window update packets received"),
    FlowRow(Error, "tcps_pawsdrop", "", "segments dropped by PAWS"),
    FlowRow(Info, "tcps_predack", "", "pure ACKs that took the header-prediction path"),
    FlowRow(Error, "tcps_persistdrop", "", "connections dropped in the persist state"),
    FlowRow(Error, "tcps_badsyn", "", "bogus SYNs, e.g. a premature ACK"),
    FlowRow(Error, "tcps_reasalloc", "", "reassembly queues allocated"),
    FlowRow(Error, "tcps_reasfree", "", "reassembly queues freed"),
    FlowRow(Error, "tcps_reas_hist_4", "", "reassembly queues of up to 4 segments"),
    FlowRow(Error, "tcps_reas_hist_16", "", "reassembly queues of up to 16 segments"),
    FlowRow(Error, "tcps_reas_hist_100", "", "reassembly queues of up to 100 segments"),
    FlowRow(Error, "tcps_reas_hist_other", "", "reassembly queues of more than 100 segments"),
    FlowRow(Error, "tcps_nombuf", "", "segments not sent: out of packet buffers"),
    FlowRow(Error, "tcps_sack_recovery_episode", "", "SACK recovery episodes"),
    FlowRow(Error, "tcps_sack_rexmits", "", "segments retransmitted in SACK recovery"),
    FlowRow(Error, "tcps_sack_rexmit_bytes", "", "bytes retransmitted in SACK recovery"),
    FlowRow(Error, "tcps_sack_rcv_blocks", "", "SACK options received"),
    FlowRow(Error, "tcps_sack_send_blocks", "", "SACK options sent"),
    FlowRow(Error, "tcps_sack_sboverflow", "", "SACK scoreboard overflows"),
    FlowRow(Info, "tcps_ecn_ce", "", "packets received with ECN Congestion Experienced"),
    FlowRow(Info, "tcps_ecn_ect0", "", "packets received with ECN Capable Transport (0)"),
    FlowRow(Info, "tcps_ecn_ect1", "", "packets received with ECN Capable Transport (1)"),
    FlowRow(Info, "tcps_ecn_shs", "", "ECN successful handshakes"),
    FlowRow(Info, "tcps_ecn_rcwnd", "", "times ECN reduced the congestion window"),
    LINE,
    FlowRow(Bar, "UDP", "", ""),
    LINE,
    FlowRow(Info, "udps_accepts", "", "flows accepted"),
    FlowRow(Info, "udps_connects", "", "flows initiated"),
    FlowRow(Info, "udps_closed", "", "flows closed"),
    FlowRow(Info, "udps_sndbyte", "", "payload bytes sent"),
    FlowRow(Info, "udps_sndpkt", "", "datagrams sent"),
    FlowRow(Info, "udps_rcvbyte", "", "payload bytes received"),
    FlowRow(Info, "udps_rcvpkt", "", "datagrams received"),
    FlowRow(Error, "udps_keepdrops", "", "flows dropped by keepalive"),
    FlowRow(Error, "udps_nombuf", "", "datagrams not sent: out of packet buffers"),
    FlowRow(Error, "udps_pkt_toobig", "", "datagrams not sent: larger than the MTU"),
    LINE,
    FlowRow(Bar, "Application", "", ""),
    LINE,
    FlowRow(Info, "user_counter_A", "", "user counter A of the application programs"),
    FlowRow(Info, "user_counter_B", "", "user counter B of the application programs"),
    FlowRow(Info, "user_counter_C", "", "user counter C of the application programs"),
    FlowRow(Info, "user_counter_D", "", "user counter D of the application programs"),
    FlowRow(Info, "flows_total", "", "flows opened by application programs"),
    FlowRow(Info, "flows_other", "", "of these, flows of another template than the previous one"),
    LINE,
    FlowRow(Bar, "Flow Table", "", ""),
    LINE,
    FlowRow(Info, "rss_redirect_rx", "", "packets received by redirection from other cores"),
    FlowRow(Info, "rss_redirect_tx", "", "packets redirected to other cores"),
    FlowRow(Error, "rss_redirect_drops", "", "packets dropped in redirection between cores"),
    FlowRow(Info, "rss_redirect_queue_full", "", "redirection queue was full"),
    FlowRow(Info, "ignored_macs", "", "packets received from ignored MAC addresses"),
    FlowRow(Info, "ignored_ips", "", "packets received from ignored IPv4 addresses"),
    FlowRow(Error, "err_cwf", "", "client packets without a matching flow"),
    FlowRow(Error, "err_no_syn", "", "server packets without a matching flow that are no SYN"),
    FlowRow(Error, "err_len_err", "", "packets with inconsistent lengths"),
    FlowRow(Error, "err_fragments_ipv4_drop", "", "IPv4 fragments dropped (not reassembled)"),
    FlowRow(Info, "err_no_tcp_udp", "", "packets that are neither TCP nor UDP"),
    FlowRow(Error, "err_no_template", "", "server packets for a port or address without a template"),
    FlowRow(Error, "err_no_memory", "", "flows not opened: out of memory"),
    FlowRow(Error, "err_dct", "", "duplicate flows, same 5-tuple: add clients"),
    FlowRow(Error, "err_l3_cs", "", "packets with a bad IPv4 checksum"),
    FlowRow(Error, "err_l4_cs", "", "packets with a bad TCP or UDP checksum"),
    FlowRow(Error, "err_redirect_rx", "", "packets to the receive thread dropped"),
    FlowRow(Info, "redirect_rx_ok", "", "packets passed to the receive thread"),
    FlowRow(Info, "err_rx_throttled", "", "receive thread was throttled"),
    FlowRow(Error, "err_c_nf_throttled", "", "client flows throttled"),
    FlowRow(Error, "err_c_tuple_err", "", "client flows not opened: all source ports in use, add clients"),
    FlowRow(Error, "err_s_nf_throttled", "", "server flows throttled"),
    FlowRow(Error, "err_flow_overflow", "", "flows not opened: flow table full"),
    FlowRow(Info, "defer_template", "", "flows whose template was chosen by their first bytes (l7_map)"),
    FlowRow(Error, "err_defer_no_template", "", "flows whose first bytes match no template (l7_map)"),
    FlowRow(Error, "err_tunnel_network", "", "packets of a tunnel's network (VNI) that their port is not in"),
    FlowRow(Error, "err_tunnel_header", "", "packets for the end of a tunnel with a wrong header or checksum there"),
    FlowRow(Error, "err_address_spaces", "", "flows not opened: too many tunnel networks and IPv6 prefixes"),
];
