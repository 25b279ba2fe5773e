//! The command that reads the registry of metrics: all that the server counts, by the names that
//! Prometheus has for it.

use std::collections::BTreeMap;

use crate::command::{Access, Command, Example, Types};
use crate::json_schema::JsonSchema;
use crate::method::{Method, ServerMethod};
use serde::{Deserialize, Serialize};

/// Parameters of `get_metrics`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct MetricsParams {
    /// What the names of the wanted metrics begin with; all without any. A prefix that no name has is
    /// no error.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// Whether to describe the metrics too.
    #[serde(default = "yes")]
    pub families: bool,
}

fn yes() -> bool {
    true
}

/// Reply of `get_metrics`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Metrics {
    /// The server's time of the reading, in nanoseconds: it only grows, and has no date.
    pub time_ns: u64,
    /// What the metrics are, by their names, also those without series; empty if nobody wants it.
    pub families: BTreeMap<String, MetricFamily>,
    /// The series of each metric that has any, by its name: each a list of the values of its labels and
    /// its value. That is a number, 1 of an `info`; of a `histogram` or a `summary` it has `count`, `sum`
    /// and, as far as they are known, `buckets` (upper bound, how many values are at most so large),
    /// `quantiles` (`0.5`, `0.9`, `0.99`, `0.999`), `min` and `max`.
    pub metrics: BTreeMap<String, Vec<MetricSeries>>,
}

/// What a metric is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MetricFamily {
    /// `counter`, `gauge`, `histogram`, `summary` or `info`.
    pub kind: &'static str,
    /// What its values are counted in; `null` where they are just times that something happened.
    pub unit: Option<&'static str>,
    /// The names of its labels, in the order in which series have their values.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    /// Whether it stays zero in a run in which nothing goes wrong.
    pub is_error: bool,
}

/// A series: the values of the labels, and its value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricSeries(pub Vec<String>, pub MetricValue);

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MetricValue {
    /// A whole number.
    Count(u64),
    /// Any number: of seconds, and of what goes up and down.
    Number(f64),
    /// Many values, of a histogram or a summary.
    Distribution(Distribution),
}

/// Many values, and what is known of how they are distributed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Distribution {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Of a histogram: upper bounds in rising order, and how many values are at most so large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(f64, u64)>,
    /// The values that these shares of them do not exceed: `0.5`, `0.9`, `0.99`, `0.999`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quantiles: BTreeMap<&'static str, f64>,
    /// The smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[Command {
    method: Method::Server(ServerMethod::Metrics),
    name: "get_metrics",
    access: Access::Api,
    doc: "All that the server counts, by the names that `/metrics` has for it (without `_total` and \
          `_info`): the guide to metrics lists them. Counters count from the server's start. TRex's \
          servers do not have it.",
    types: Types::of::<MetricsParams, Metrics>(),
    errors: &[],
    example: Example {
        params: r#"{"prefixes": ["allosaur_port_packets", "allosaur_flow_connect"]}"#,
        result: r#"{"time_ns": 8123456789, "families": {"allosaur_port_packets": {"kind": "counter", "unit": "packets", "labels": ["port", "direction"], "help": "Frames that a port sent (tx) and received (rx)", "is_error": false}}, "metrics": {"allosaur_port_packets": [[["0", "tx"], 1000], [["0", "rx"], 0]], "allosaur_flow_connect_seconds": [[["_"], {"count": 2, "sum": 0.003, "quantiles": {"0.5": 0.001, "0.9": 0.002, "0.99": 0.002, "0.999": 0.002}, "min": 0.001, "max": 0.002}]]}}"#,
    },
}];
