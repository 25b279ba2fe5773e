//! The values of the rows of [`FLOW_ROWS`], as TRex's replies have them.

use allosaur_api::commands::stateful::counters::{
    CounterDescription, CounterKind, CounterValue, ValuesByCounter,
};
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use serde_json::json;

use super::app_latency;
pub use super::figures::NamedRow;
use super::figures::Rate;
use crate::metrics::flow_rows::{Class, FLOW_ROWS, FlowPlace, FlowRow, FlowValues};

/// Where the value of a row comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    None,
    Now(fn(&Values<'_>) -> CounterValue),
    Counter(FlowPlace),
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
            sources: FLOW_ROWS.iter().map(source).collect(),
        }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.sources.len()
    }

    /// The descriptions of all rows, as `get_counter_desc` has them.
    pub(super) fn descriptions(&self) -> Vec<CounterDescription> {
        FLOW_ROWS.iter().enumerate().map(description).collect()
    }

    /// The values by the row's number; those that are 0 are left out, where clients expect that.
    pub(super) fn values(&self, of: &Values<'_>) -> ValuesByCounter {
        let counted = FlowValues::new(of.counters, of.table);
        let mut values = ValuesByCounter::new();
        for (id, (source, row)) in self.sources.iter().zip(&FLOW_ROWS).enumerate() {
            let value = match *source {
                Source::None => continue,
                Source::Now(read) => read(of),
                Source::Counter(place) => CounterValue::Count(counted.of(place)),
            };
            if row.0 == Class::Now || !value.is_zero() {
                values.insert(id, value);
            }
        }
        values
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
    let rows = FLOW_ROWS.iter().enumerate();
    let rows = rows.filter(|(_, row)| row.0 != Class::Bar);
    let named = rows.map(|(id, row)| NamedRow {
        name: row.1,
        value: json!(values.get(&id).unwrap_or(&CounterValue::Count(0))),
        is_error: row.0 == Class::Error,
    });
    named
        .chain(app_latency::named(&counters.flows.latency))
        .collect()
}

fn description((id, row): (usize, &FlowRow)) -> CounterDescription {
    let FlowRow(class, name, units, help) = *row;
    let is_real = class != Class::Bar;
    CounterDescription {
        id,
        name,
        help,
        units,
        info: match class {
            Class::Error => CounterKind::Error,
            _ => CounterKind::Info,
        },
        zero: class == Class::Now,
        abs: matches!(class, Class::Now | Class::Span | Class::Bar),
        real: is_real,
    }
}

fn source(row: &FlowRow) -> Source {
    if row.0 == Class::Bar {
        return Source::None;
    }
    let counter = || row.place().map_or(Source::None, Source::Counter);
    reader(row.1).map_or_else(counter, Source::Now)
}

/// What is no counter.
fn reader(name: &str) -> Option<fn(&Values<'_>) -> CounterValue> {
    use CounterValue::{Count, Measure};
    Some(match name {
        "m_active_flows" => |of| Count(of.counters.active),
        "m_est_flows" => |of| Count(of.counters.established),
        "m_tx_bw_l7_r" => |of| Measure(of.rate.acked_bps),
        "m_tx_bw_l7_total_r" => |of| Measure(of.rate.sent_bps),
        "m_rx_bw_l7_r" => |of| Measure(of.rate.received_bps),
        "m_tx_pps_r" => |of| Measure(of.rate.sent_pps),
        "m_rx_pps_r" => |of| Measure(of.rate.received_pps),
        "m_avg_size" => |of| Measure(of.rate.mean_bytes()),
        "m_tx_ratio" => |of| Measure(of.rate.acked_percent()),
        "m_traffic_duration" => |of| Measure(of.duration_s),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use allosaur_engine::app::{ApplicationCounters, UdpCounters};
    use allosaur_engine::tcp::TcpCounters;

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
        for (source, row) in rows.sources.iter().zip(&FLOW_ROWS) {
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
        let ids: Vec<usize> = values.keys().copied().collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let json = serde_json::to_value(&values).expect("it is JSON");
        assert_eq!(json["0"], json!(0));
        assert_eq!(json["2"], json!(0.0));
    }
}
