//! The table of counters that people see: 140 rows, by TRex's names and in its order.

use allosaur_engine::app::{ApplicationCounters, UdpCounters};
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use allosaur_engine::tcp::TcpCounters;
use serde_json::{Map, Value, json};

use super::app_latency;
pub use super::figures::NamedRow;
use super::figures::Rate;

/// Whether a row is a counter, and what it says of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
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
struct Row(Class, &'static str, &'static str, &'static str);

/// Where the value of a row comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    None,
    Now(fn(&Values<'_>) -> Value),
    Tcp(usize),
    Udp(usize),
    Application(usize),
    Table(usize),
}

/// What values are made of: one side of a profile, of a group, or of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) counters: &'a GroupCounters,
    pub(super) rate: Rate,
    pub(super) duration_s: f64,
    /// What belongs to no flow.
    pub(super) table: Option<&'a FlowTableCounters>,
}

/// The table, ready to be read.
#[derive(Debug)]
pub(super) struct Rows {
    sources: Vec<Source>,
}

impl Rows {
    pub(super) fn new() -> Rows {
        Rows {
            sources: ROWS.iter().map(source).collect(),
        }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.sources.len()
    }

    /// The descriptions of all rows, as `get_counter_desc` has them.
    pub(super) fn descriptions(&self) -> Vec<Value> {
        ROWS.iter().enumerate().map(description).collect()
    }

    /// The values by the row's number; those that are 0 are left out, where clients expect that.
    pub(super) fn values(&self, of: &Values<'_>) -> Map<String, Value> {
        let tcp = of.counters.flows.tcp.values();
        let udp = of.counters.flows.udp.values();
        let application = of.counters.flows.application.values();
        let table = of.table.map(FlowTableCounters::values);
        let mut values = Map::new();
        for (id, (source, row)) in self.sources.iter().zip(&ROWS).enumerate() {
            let value = match *source {
                Source::None => continue,
                Source::Now(read) => read(of),
                Source::Tcp(place) => json!(tcp[place]),
                Source::Udp(place) => json!(udp[place]),
                Source::Application(place) => json!(application[place]),
                Source::Table(place) => json!(table.map_or(0, |table| table[place])),
            };
            if row.0 == Class::Now || value.as_f64() != Some(0.0) {
                values.insert(id.to_string(), value);
            }
        }
        values
    }
}

/// A row that counts, for those who show it by its name.
#[derive(Clone, Copy, Debug)]
pub struct CounterRow {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// It counts what does not happen when all is well.
    pub is_error: bool,
    source: Source,
}

/// What the counters of one side have counted, to be read row by row.
#[derive(Clone, Debug)]
pub struct CounterRowValues {
    tcp: [u64; TcpCounters::NAMES.len()],
    udp: [u64; UdpCounters::NAMES.len()],
    application: [u64; ApplicationCounters::NAMES.len()],
    table: [u64; FlowTableCounters::NAMES.len()],
}

impl CounterRow {
    /// All rows that something here counts, in their order.
    pub fn all() -> impl Iterator<Item = CounterRow> {
        let rows = ROWS.iter().map(|row| CounterRow {
            name: row.1,
            help: row.3,
            is_error: row.0 == Class::Error,
            source: source(row),
        });
        rows.filter(|row| !matches!(row.source, Source::None | Source::Now(_)))
    }

    /// Whether it counts what belongs to no flow, and so to no profile.
    pub fn is_of_table(&self) -> bool {
        matches!(self.source, Source::Table(_))
    }

    /// Its value.
    pub fn of(&self, values: &CounterRowValues) -> u64 {
        match self.source {
            Source::None | Source::Now(_) => 0,
            Source::Tcp(place) => values.tcp[place],
            Source::Udp(place) => values.udp[place],
            Source::Application(place) => values.application[place],
            Source::Table(place) => values.table[place],
        }
    }
}

impl CounterRowValues {
    /// What flows have counted.
    pub fn of_flows(counters: &GroupCounters) -> CounterRowValues {
        CounterRowValues {
            tcp: counters.flows.tcp.values(),
            udp: counters.flows.udp.values(),
            application: counters.flows.application.values(),
            table: FlowTableCounters::default().values(),
        }
    }

    /// What belongs to no flow.
    pub fn of_table(table: &FlowTableCounters) -> CounterRowValues {
        CounterRowValues {
            table: table.values(),
            ..CounterRowValues::of_flows(&GroupCounters::default())
        }
    }
}

/// All rows but the bars, for one side of a run that is over and took so long: no rate is left. Those of
/// the add-on "latency" follow, where it had something to count.
pub fn named(
    counters: &GroupCounters,
    table: &FlowTableCounters,
    duration_s: f64,
) -> Vec<NamedRow> {
    let values = Rows::new().values(&Values {
        counters,
        rate: Rate::default(),
        duration_s,
        table: Some(table),
    });
    let rows = ROWS.iter().enumerate();
    let rows = rows.filter(|(_, row)| row.0 != Class::Bar);
    let named = rows.map(|(id, row)| NamedRow {
        name: row.1,
        value: values.get(&id.to_string()).cloned().unwrap_or(json!(0)),
        is_error: row.0 == Class::Error,
    });
    named
        .chain(app_latency::named(&counters.flows.latency))
        .collect()
}

fn description((id, row): (usize, &Row)) -> Value {
    let Row(class, name, units, help) = *row;
    let is_real = class != Class::Bar;
    json!({
        "id": id, "name": name, "units": units, "help": help,
        "info": if class == Class::Error { "error" } else { "info" },
        "zero": class == Class::Now,
        "abs": matches!(class, Class::Now | Class::Span | Class::Bar),
        "real": is_real,
    })
}

fn source(row: &Row) -> Source {
    let Row(class, name, ..) = *row;
    let place = |names: &[&str], name: &str| names.iter().position(|other| *other == name);
    if class == Class::Bar {
        return Source::None;
    }
    if let Some(read) = reader(name) {
        return Source::Now(read);
    }
    if let Some(name) = name.strip_prefix("tcps_") {
        return place(TcpCounters::NAMES, name).map_or(Source::None, Source::Tcp);
    }
    if let Some(name) = name.strip_prefix("udps_") {
        return place(UdpCounters::NAMES, name).map_or(Source::None, Source::Udp);
    }
    let application = place(ApplicationCounters::NAMES, name).map(Source::Application);
    let table = || place(FlowTableCounters::NAMES, name).map(Source::Table);
    application.or_else(table).unwrap_or(Source::None)
}

/// What is no counter.
fn reader(name: &str) -> Option<fn(&Values<'_>) -> Value> {
    Some(match name {
        "m_active_flows" => |of| json!(of.counters.active),
        "m_est_flows" => |of| json!(of.counters.established),
        "m_tx_bw_l7_r" => |of| json!(of.rate.acked_bps),
        "m_tx_bw_l7_total_r" => |of| json!(of.rate.sent_bps),
        "m_rx_bw_l7_r" => |of| json!(of.rate.received_bps),
        "m_tx_pps_r" => |of| json!(of.rate.sent_pps),
        "m_rx_pps_r" => |of| json!(of.rate.received_pps),
        "m_avg_size" => |of| json!(of.rate.mean_bytes()),
        "m_tx_ratio" => |of| json!(of.rate.acked_percent()),
        "m_traffic_duration" => |of| json!(of.duration_s),
        _ => return None,
    })
}

use Class::{Bar, Error, Info, Now, Span};

const LINE: Row = Row(Bar, "-", "", "");

#[rustfmt::skip]
const ROWS: [Row; 140] = [
    Row(Now, "m_active_flows", "", "active flows"),
    Row(Now, "m_est_flows", "", "established flows"),
    Row(Now, "m_tx_bw_l7_r", "bps", "L7 transmit rate, acknowledged data"),
    Row(Now, "m_tx_bw_l7_total_r", "bps", "L7 transmit rate, all data sent"),
    Row(Now, "m_rx_bw_l7_r", "bps", "L7 receive rate"),
    Row(Now, "m_tx_pps_r", "pps", "transmit packet rate"),
    Row(Now, "m_rx_pps_r", "pps", "receive packet rate"),
    Row(Now, "m_avg_size", "B", "average L7 bytes per packet, both directions"),
    Row(Now, "m_tx_ratio", "%", "acknowledged share of the data sent"),
    LINE,
    Row(Span, "m_traffic_duration", "sec", "duration of the traffic"),
    LINE,
    Row(Bar, "TCP", "", ""),
    LINE,
    Row(Info, "tcps_connattempt", "", "connections initiated"),
    Row(Info, "tcps_accepts", "", "connections accepted"),
    Row(Info, "tcps_connects", "", "connections established"),
    Row(Info, "tcps_closed", "", "connections closed (includes drops)"),
    Row(Info, "tcps_segstimed", "", "segments where we tried to get an RTT"),
    Row(Info, "tcps_rttupdated", "", "times we succeeded in updating the RTT"),
    Row(Info, "tcps_delack", "", "delayed ACKs sent"),
    Row(Info, "tcps_sndtotal", "", "total packets sent"),
    Row(Info, "tcps_sndpack", "", "data packets sent"),
    Row(Info, "tcps_sndbyte", "", "data bytes sent by application"),
    Row(Info, "tcps_sndbyte_ok", "", "data bytes sent by TCP"),
    Row(Info, "tcps_sndctrl", "", "control (SYN|FIN|RST) packets sent"),
    Row(Info, "tcps_sndacks", "", "ACK-only packets sent"),
    Row(Info, "tcps_rcvtotal", "", "total packets received"),
    Row(Info, "tcps_rcvpack", "", "packets received in sequence"),
    Row(Info, "tcps_rcvbyte", "", "bytes received in sequence"),
    Row(Info, "tcps_rcvackpack", "", "ACK packets received"),
    Row(Info, "tcps_rcvackbyte", "", "data bytes acknowledged by received ACKs"),
    Row(Info, "tcps_rcvackbyte_of", "", "SYN and FIN sequence numbers acknowledged by received ACKs"),
    Row(Info, "tcps_rcvoffloads", "", "segments merged by receive offload (LRO/GRO)"),
    Row(Info, "tcps_preddat", "", "in-sequence data segments that took the header-prediction path"),
    Row(Info, "tcps_drops", "", "established connections dropped"),
    Row(Error, "tcps_conndrops", "", "embryonic connections dropped"),
    Row(Error, "tcps_timeoutdrop", "", "connections dropped in retransmit timeout"),
    Row(Error, "tcps_rexmttimeo", "", "retransmit timeouts"),
    Row(Error, "tcps_rexmttimeo_syn", "", "retransmit timeouts of a SYN"),
    Row(Error, "tcps_persisttimeo", "", "persist timeouts"),
    Row(Error, "tcps_keeptimeo", "", "keepalive timeouts"),
    Row(Error, "tcps_keepprobe", "", "keepalive probes sent"),
    Row(Error, "tcps_keepdrops", "", "connections dropped by keepalive"),
    Row(Info, "tcps_testdrops", "", "connections dropped at the end of the test (no close)"),
    Row(Error, "tcps_sndrexmitpack", "", "data packets retransmitted"),
    Row(Error, "tcps_sndrexmitbyte", "", "data bytes retransmitted"),
    Row(Error, "tcps_sndprobe", "", "window probes sent"),
    Row(Error, "tcps_sndurg", "", "packets sent with URG only"),
    Row(Info, "tcps_sndwinup", "", "window-update-only packets sent"),
    Row(Error, "tcps_rcvbadsum", "", "packets received with a bad checksum"),
    Row(Error, "tcps_rcvbadoff", "", "packets received with a bad data offset"),
    Row(Error, "tcps_rcvshort", "", "packets received too short"),
    Row(Error, "tcps_rcvduppack", "", "completely duplicate packets received"),
    Row(Error, "tcps_rcvdupbyte", "", "duplicate bytes received"),
    Row(Error, "tcps_rcvpartduppack", "", "packets received with some duplicate data"),
    Row(Error, "tcps_rcvpartdupbyte", "", "duplicate bytes in partially duplicate packets"),
    Row(Error, "tcps_rcvoopackdrop", "", "out-of-order packets dropped (reassembly queue full)"),
    Row(Error, "tcps_rcvoobytesdrop", "", "out-of-order bytes dropped (reassembly queue full)"),
    Row(Error, "tcps_rcvoopack", "", "out-of-order packets received"),
    Row(Error, "tcps_rcvoobyte", "", "out-of-order bytes received"),
    Row(Error, "tcps_rcvpackafterwin", "", "packets received with data after the window"),
    Row(Error, "tcps_rcvbyteafterwin", "", "bytes received after the window"),
    Row(Error, "tcps_rcvafterclose", "", "data packets received after close"),
    Row(Error, "tcps_rcvwinprobe", "", "window probes received"),
    Row(Error, "tcps_rcvdupack", "", "duplicate ACKs received"),
    Row(Error, "tcps_rcvacktoomuch", "", "ACKs received for unsent data"),
    Row(Error, "tcps_rcvwinupd", "", "window update packets received"),
    Row(Error, "tcps_pawsdrop", "", "segments dropped by PAWS"),
    Row(Info, "tcps_predack", "", "pure ACKs that took the header-prediction path"),
    Row(Error, "tcps_persistdrop", "", "connections dropped in the persist state"),
    Row(Error, "tcps_badsyn", "", "bogus SYNs, e.g. a premature ACK"),
    Row(Error, "tcps_reasalloc", "", "reassembly queues allocated"),
    Row(Error, "tcps_reasfree", "", "reassembly queues freed"),
    Row(Error, "tcps_reas_hist_4", "", "reassembly queues of up to 4 segments"),
    Row(Error, "tcps_reas_hist_16", "", "reassembly queues of up to 16 segments"),
    Row(Error, "tcps_reas_hist_100", "", "reassembly queues of up to 100 segments"),
    Row(Error, "tcps_reas_hist_other", "", "reassembly queues of more than 100 segments"),
    Row(Error, "tcps_nombuf", "", "segments not sent: out of packet buffers"),
    Row(Error, "tcps_sack_recovery_episode", "", "SACK recovery episodes"),
    Row(Error, "tcps_sack_rexmits", "", "segments retransmitted in SACK recovery"),
    Row(Error, "tcps_sack_rexmit_bytes", "", "bytes retransmitted in SACK recovery"),
    Row(Error, "tcps_sack_rcv_blocks", "", "SACK options received"),
    Row(Error, "tcps_sack_send_blocks", "", "SACK options sent"),
    Row(Error, "tcps_sack_sboverflow", "", "SACK scoreboard overflows"),
    Row(Info, "tcps_ecn_ce", "", "packets received with ECN Congestion Experienced"),
    Row(Info, "tcps_ecn_ect0", "", "packets received with ECN Capable Transport (0)"),
    Row(Info, "tcps_ecn_ect1", "", "packets received with ECN Capable Transport (1)"),
    Row(Info, "tcps_ecn_shs", "", "ECN successful handshakes"),
    Row(Info, "tcps_ecn_rcwnd", "", "times ECN reduced the congestion window"),
    LINE,
    Row(Bar, "UDP", "", ""),
    LINE,
    Row(Info, "udps_accepts", "", "flows accepted"),
    Row(Info, "udps_connects", "", "flows initiated"),
    Row(Info, "udps_closed", "", "flows closed"),
    Row(Info, "udps_sndbyte", "", "payload bytes sent"),
    Row(Info, "udps_sndpkt", "", "datagrams sent"),
    Row(Info, "udps_rcvbyte", "", "payload bytes received"),
    Row(Info, "udps_rcvpkt", "", "datagrams received"),
    Row(Error, "udps_keepdrops", "", "flows dropped by keepalive"),
    Row(Error, "udps_nombuf", "", "datagrams not sent: out of packet buffers"),
    Row(Error, "udps_pkt_toobig", "", "datagrams not sent: larger than the MTU"),
    LINE,
    Row(Bar, "Application", "", ""),
    LINE,
    Row(Info, "user_counter_A", "", "user counter A of the application programs"),
    Row(Info, "user_counter_B", "", "user counter B of the application programs"),
    Row(Info, "user_counter_C", "", "user counter C of the application programs"),
    Row(Info, "user_counter_D", "", "user counter D of the application programs"),
    Row(Info, "flows_total", "", "flows opened by application programs"),
    Row(Info, "flows_other", "", "of these, flows of another template than the previous one"),
    LINE,
    Row(Bar, "Flow Table", "", ""),
    LINE,
    Row(Info, "rss_redirect_rx", "", "packets received by redirection from other cores"),
    Row(Info, "rss_redirect_tx", "", "packets redirected to other cores"),
    Row(Error, "rss_redirect_drops", "", "packets dropped in redirection between cores"),
    Row(Info, "rss_redirect_queue_full", "", "redirection queue was full"),
    Row(Info, "ignored_macs", "", "packets received from ignored MAC addresses"),
    Row(Info, "ignored_ips", "", "packets received from ignored IPv4 addresses"),
    Row(Error, "err_cwf", "", "client packets without a matching flow"),
    Row(Error, "err_no_syn", "", "server packets without a matching flow that are no SYN"),
    Row(Error, "err_len_err", "", "packets with inconsistent lengths"),
    Row(Error, "err_fragments_ipv4_drop", "", "IPv4 fragments dropped (not reassembled)"),
    Row(Info, "err_no_tcp_udp", "", "packets that are neither TCP nor UDP"),
    Row(Error, "err_no_template", "", "server packets for a port or address without a template"),
    Row(Error, "err_no_memory", "", "flows not opened: out of memory"),
    Row(Error, "err_dct", "", "duplicate flows, same 5-tuple: add clients"),
    Row(Error, "err_l3_cs", "", "packets with a bad IPv4 checksum"),
    Row(Error, "err_l4_cs", "", "packets with a bad TCP or UDP checksum"),
    Row(Error, "err_redirect_rx", "", "packets to the receive thread dropped"),
    Row(Info, "redirect_rx_ok", "", "packets passed to the receive thread"),
    Row(Info, "err_rx_throttled", "", "receive thread was throttled"),
    Row(Error, "err_c_nf_throttled", "", "client flows throttled"),
    Row(Error, "err_c_tuple_err", "", "client flows not opened: all source ports in use, add clients"),
    Row(Error, "err_s_nf_throttled", "", "server flows throttled"),
    Row(Error, "err_flow_overflow", "", "flows not opened: flow table full"),
    Row(Info, "defer_template", "", "flows whose template was chosen by their first bytes (l7_map)"),
    Row(Error, "err_defer_no_template", "", "flows whose first bytes match no template (l7_map)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What the engine does not count: it never runs out of packet memory.
    const UNCOUNTED: [&str; 5] = [
        "err_no_memory",
        "err_dct",
        "err_redirect_rx",
        "err_rx_throttled",
        "",
    ];

    #[test]
    fn every_row_has_a_source_and_every_counter_a_row() {
        let rows = Rows::new();
        let mut used = 0;
        for (source, row) in rows.sources.iter().zip(&ROWS) {
            let is_counted = !matches!(source, Source::None);
            let expected = row.0 != Class::Bar && !UNCOUNTED.contains(&row.1);
            assert_eq!(is_counted, expected, "{}", row.1);
            used += usize::from(is_counted && !matches!(source, Source::Now(_)));
        }
        let counters = TcpCounters::NAMES.len()
            + UdpCounters::NAMES.len()
            + ApplicationCounters::NAMES.len()
            + FlowTableCounters::NAMES.len();
        assert_eq!(used, counters);
    }

    #[test]
    fn rows_of_the_moment_are_there_when_they_are_zero() {
        let counters = GroupCounters::default();
        let of = Values {
            counters: &counters,
            rate: Rate::default(),
            duration_s: 0.0,
            table: None,
        };
        let values = Rows::new().values(&of);
        let ids: Vec<&str> = values.keys().map(String::as_str).collect();
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(values["0"], json!(0));
        assert_eq!(values["2"], json!(0.0));
    }
}
