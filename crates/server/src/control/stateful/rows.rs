//! The table of counters that people see: 140 rows, by TRex's names and in its order.
//!
//! What lives here: what each row is called and means, and where its value comes from. What does
//! not: who counts (the engine), and whose counters they are (`counters`, `groups`).

use allosaur_engine::app::{ApplicationCounters, UdpCounters};
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use allosaur_engine::tcp::TcpCounters;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::addon;
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

/// A row of the table, with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedRow {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// It counts what does not happen when all is well.
    pub is_error: bool,
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
    named.chain(addon::named(&counters.flows.latency)).collect()
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
    Row(Now, "m_active_flows", "", "flows that there are"),
    Row(Now, "m_est_flows", "", "of these, flows whose ends know of each other"),
    Row(Now, "m_tx_bw_l7_r", "bps", "application data that the other side has confirmed"),
    Row(Now, "m_tx_bw_l7_total_r", "bps", "application data sent"),
    Row(Now, "m_rx_bw_l7_r", "bps", "application data received"),
    Row(Now, "m_tx_pps_r", "pps", "packets sent"),
    Row(Now, "m_rx_pps_r", "pps", "packets received"),
    Row(Now, "m_avg_size", "B", "application data of a packet, on average over both directions"),
    Row(Now, "m_tx_ratio", "%", "how much of the data that is sent is confirmed"),
    LINE,
    Row(Span, "m_traffic_duration", "sec", "how long the traffic has lasted, or did"),
    LINE,
    Row(Bar, "TCP", "", ""),
    LINE,
    Row(Info, "tcps_connattempt", "", "connections that we began"),
    Row(Info, "tcps_accepts", "", "connections that the other side began"),
    Row(Info, "tcps_connects", "", "connections that were established"),
    Row(Info, "tcps_closed", "", "connections that are over, however they ended"),
    Row(Info, "tcps_segstimed", "", "segments whose round trip was to be measured"),
    Row(Info, "tcps_rttupdated", "", "round trips that were measured"),
    Row(Info, "tcps_delack", "", "acknowledgments that were held back for a while"),
    Row(Info, "tcps_sndtotal", "", "segments sent"),
    Row(Info, "tcps_sndpack", "", "segments with data sent"),
    Row(Info, "tcps_sndbyte", "", "bytes that applications sent"),
    Row(Info, "tcps_sndbyte_ok", "", "bytes of data that TCP sent"),
    Row(Info, "tcps_sndctrl", "", "segments with SYN, FIN or RST sent"),
    Row(Info, "tcps_sndacks", "", "segments sent that only acknowledge"),
    Row(Info, "tcps_rcvtotal", "", "segments received"),
    Row(Info, "tcps_rcvpack", "", "segments received in order"),
    Row(Info, "tcps_rcvbyte", "", "bytes received in order"),
    Row(Info, "tcps_rcvackpack", "", "segments received that acknowledge something new"),
    Row(Info, "tcps_rcvackbyte", "", "bytes of data that were acknowledged"),
    Row(Info, "tcps_rcvackbyte_of", "", "acknowledged numbers that are no data: of SYN and FIN"),
    Row(Info, "tcps_rcvoffloads", "", "segments that were joined on arrival"),
    Row(Info, "tcps_preddat", "", "segments with data that came as expected"),
    Row(Info, "tcps_drops", "", "connections that were broken off"),
    Row(Error, "tcps_conndrops", "", "connections that ended before they were established"),
    Row(Error, "tcps_timeoutdrop", "", "connections given up, as nothing sent again was acknowledged"),
    Row(Error, "tcps_rexmttimeo", "", "timeouts after which something was sent again"),
    Row(Error, "tcps_rexmttimeo_syn", "", "timeouts after which a SYN was sent again"),
    Row(Error, "tcps_persisttimeo", "", "timeouts after which a closed window was probed"),
    Row(Error, "tcps_keeptimeo", "", "timeouts of silence"),
    Row(Error, "tcps_keepprobe", "", "probes sent into a silence"),
    Row(Error, "tcps_keepdrops", "", "connections given up after a silence"),
    Row(Info, "tcps_testdrops", "", "connections that were ended with the test (no close)"),
    Row(Error, "tcps_sndrexmitpack", "", "segments with data sent again"),
    Row(Error, "tcps_sndrexmitbyte", "", "bytes of data sent again"),
    Row(Error, "tcps_sndprobe", "", "probes sent into a closed window"),
    Row(Error, "tcps_sndurg", "", "segments sent for urgent data alone"),
    Row(Info, "tcps_sndwinup", "", "segments sent for a larger window alone"),
    Row(Error, "tcps_rcvbadsum", "", "segments with a wrong checksum"),
    Row(Error, "tcps_rcvbadoff", "", "segments whose data begins where it cannot"),
    Row(Error, "tcps_rcvshort", "", "segments that are too short"),
    Row(Error, "tcps_rcvduppack", "", "segments with data that is all there already"),
    Row(Error, "tcps_rcvdupbyte", "", "bytes in these"),
    Row(Error, "tcps_rcvpartduppack", "", "segments with data that is partly there already"),
    Row(Error, "tcps_rcvpartdupbyte", "", "bytes in these that are there already"),
    Row(Error, "tcps_rcvoopackdrop", "", "segments out of order for which there was no room"),
    Row(Error, "tcps_rcvoobytesdrop", "", "bytes in these"),
    Row(Error, "tcps_rcvoopack", "", "segments received out of order"),
    Row(Error, "tcps_rcvoobyte", "", "bytes in these"),
    Row(Error, "tcps_rcvpackafterwin", "", "segments with data beyond our window"),
    Row(Error, "tcps_rcvbyteafterwin", "", "bytes beyond our window"),
    Row(Error, "tcps_rcvafterclose", "", "segments with data after we closed"),
    Row(Error, "tcps_rcvwinprobe", "", "probes received into our closed window"),
    Row(Error, "tcps_rcvdupack", "", "acknowledgments received that repeat one"),
    Row(Error, "tcps_rcvacktoomuch", "", "acknowledgments of what was never sent"),
    Row(Error, "tcps_rcvwinupd", "", "segments received for a larger window alone"),
    Row(Error, "tcps_pawsdrop", "", "segments that are too old by their timestamp (PAWS)"),
    Row(Info, "tcps_predack", "", "acknowledgments that came as expected"),
    Row(Error, "tcps_persistdrop", "", "connections given up before a closed window"),
    Row(Error, "tcps_badsyn", "", "SYNs that cannot be"),
    Row(Error, "tcps_reasalloc", "", "connections that began to keep what is out of order"),
    Row(Error, "tcps_reasfree", "", "connections that no longer had to"),
    Row(Error, "tcps_reas_hist_4", "", "connections that kept up to 4 pieces out of order"),
    Row(Error, "tcps_reas_hist_16", "", "connections that kept up to 16 pieces out of order"),
    Row(Error, "tcps_reas_hist_100", "", "connections that kept up to 100 pieces out of order"),
    Row(Error, "tcps_reas_hist_other", "", "connections that kept more pieces out of order"),
    Row(Error, "tcps_nombuf", "", "segments that could not be sent for want of memory"),
    Row(Error, "tcps_sack_recovery_episode", "", "repairs that selective acknowledgments began"),
    Row(Error, "tcps_sack_rexmits", "", "segments sent again in these"),
    Row(Error, "tcps_sack_rexmit_bytes", "", "bytes sent again in these"),
    Row(Error, "tcps_sack_rcv_blocks", "", "selective acknowledgments received"),
    Row(Error, "tcps_sack_send_blocks", "", "selective acknowledgments sent"),
    Row(Error, "tcps_sack_sboverflow", "", "times that there was no room to note one"),
    Row(Info, "tcps_ecn_ce", "", "packets that met congestion on their way (ECN)"),
    Row(Info, "tcps_ecn_ect0", "", "packets marked ECT(0)"),
    Row(Info, "tcps_ecn_ect1", "", "packets marked ECT(1)"),
    Row(Info, "tcps_ecn_shs", "", "connections that agreed on ECN"),
    Row(Info, "tcps_ecn_rcwnd", "", "times that ECN made the congestion window smaller"),
    LINE,
    Row(Bar, "UDP", "", ""),
    LINE,
    Row(Info, "udps_accepts", "", "flows that the other side began"),
    Row(Info, "udps_connects", "", "flows that we began"),
    Row(Info, "udps_closed", "", "flows that are over"),
    Row(Info, "udps_sndbyte", "", "bytes of messages sent"),
    Row(Info, "udps_sndpkt", "", "messages sent"),
    Row(Info, "udps_rcvbyte", "", "bytes of messages received"),
    Row(Info, "udps_rcvpkt", "", "messages received"),
    Row(Error, "udps_keepdrops", "", "flows given up after a silence"),
    Row(Error, "udps_nombuf", "", "messages that could not be sent for want of memory"),
    Row(Error, "udps_pkt_toobig", "", "messages that are too long for a packet"),
    LINE,
    Row(Bar, "Application", "", ""),
    LINE,
    Row(Info, "user_counter_A", "", "what programs added to counter A"),
    Row(Info, "user_counter_B", "", "what programs added to counter B"),
    Row(Info, "user_counter_C", "", "what programs added to counter C"),
    Row(Info, "user_counter_D", "", "what programs added to counter D"),
    Row(Info, "flows_total", "", "flows that programs began"),
    Row(Info, "flows_other", "", "of these, those of another template than the one before"),
    LINE,
    Row(Bar, "Flow Table", "", ""),
    LINE,
    Row(Info, "rss_redirect_rx", "", "frames taken over from other cores"),
    Row(Info, "rss_redirect_tx", "", "frames handed to other cores"),
    Row(Error, "rss_redirect_drops", "", "frames for other cores that were lost"),
    Row(Info, "rss_redirect_queue_full", "", "times that another core's queue was full"),
    Row(Info, "ignored_macs", "", "frames from MAC addresses that are ignored"),
    Row(Info, "ignored_ips", "", "frames from IPv4 addresses that are ignored"),
    Row(Error, "err_cwf", "", "frames for a client that has no such flow"),
    Row(Error, "err_no_syn", "", "segments for a server that has no such flow, and no SYN"),
    Row(Error, "err_len_err", "", "frames whose lengths are wrong"),
    Row(Error, "err_fragments_ipv4_drop", "", "fragments of IPv4 packets, which are not joined"),
    Row(Info, "err_no_tcp_udp", "", "frames that are neither TCP nor UDP"),
    Row(Error, "err_no_template", "", "frames for a server that no template has"),
    Row(Error, "err_no_memory", "", "flows that there was no memory for"),
    Row(Error, "err_dct", "", "flows whose two ends have one already: give more clients"),
    Row(Error, "err_l3_cs", "", "frames with a wrong checksum of IPv4"),
    Row(Error, "err_l4_cs", "", "frames with a wrong checksum of TCP or UDP"),
    Row(Error, "err_redirect_rx", "", "frames that the receive thread should have had, lost"),
    Row(Info, "redirect_rx_ok", "", "frames handed to the receive thread"),
    Row(Info, "err_rx_throttled", "", "times that the receive thread had too much to do"),
    Row(Error, "err_c_nf_throttled", "", "flows that clients held back"),
    Row(Error, "err_c_tuple_err", "", "flows that found all ports of their client in use: give more clients"),
    Row(Error, "err_s_nf_throttled", "", "flows that servers held back"),
    Row(Error, "err_flow_overflow", "", "flows that were too many at a time"),
    Row(Info, "defer_template", "", "flows whose first bytes chose the template (l7_map)"),
    Row(Error, "err_defer_no_template", "", "flows whose first bytes no template has (l7_map)"),
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
