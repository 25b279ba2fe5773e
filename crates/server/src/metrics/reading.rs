//! Metrics as `get_metrics` answers them.

use allosaur_api::commands::metrics::{
    MetricFamily, MetricSeries, MetricValue, Metrics, MetricsParams,
};
use allosaur_engine::time::Nanos;

use super::family::{Family, PREFIX};
use super::row::{Distribution, Label, Sink, Value};

/// Takes the metrics that a request asks for.
#[derive(Debug)]
pub(super) struct Reading<'p> {
    params: &'p MetricsParams,
    metrics: Metrics,
    /// Where the series go that come.
    name: String,
}

impl<'p> Reading<'p> {
    pub(super) fn new(params: &'p MetricsParams) -> Reading<'p> {
        Reading {
            params,
            metrics: Metrics::default(),
            name: String::new(),
        }
    }

    /// What was read.
    pub(super) fn finish(mut self, now_ns: Nanos) -> Metrics {
        self.metrics.time_ns = now_ns;
        self.metrics
    }
}

impl Sink for Reading<'_> {
    fn wants(&self, prefix: &str) -> bool {
        let prefixes = &self.params.prefixes;
        let full = format!("{PREFIX}{prefix}");
        prefixes.is_empty()
            || prefixes
                .iter()
                .any(|wanted| wanted.starts_with(&full) || full.starts_with(wanted.as_str()))
    }

    fn family(&mut self, family: Family) -> bool {
        let prefixes = &self.params.prefixes;
        let is_wanted = prefixes.is_empty()
            || prefixes
                .iter()
                .any(|prefix| family.name.starts_with(prefix.as_str()));
        if is_wanted && self.params.families {
            let described = MetricFamily {
                kind: family.kind.name(),
                unit: family.unit,
                labels: family.labels,
                help: family.help,
                is_error: family.is_error,
            };
            self.metrics.families.insert(family.name.clone(), described);
        }
        self.name = family.name;
        is_wanted
    }

    fn series(&mut self, labels: &[Label<'_>], value: Value) {
        let text = |label: &Label<'_>| match label {
            Label::Text(text) => (*text).to_owned(),
            Label::Number(number) => number.to_string(),
        };
        let value = match value {
            Value::Count(count) => MetricValue::Count(count),
            Value::Number(number) => MetricValue::Number(number),
            Value::Distribution(values) => MetricValue::Distribution(distribution(values)),
        };
        let series = MetricSeries(labels.iter().map(text).collect(), value);
        let metrics = &mut self.metrics.metrics;
        match metrics.get_mut(&self.name) {
            Some(all) => all.push(series),
            None => {
                metrics.insert(self.name.clone(), vec![series]);
            }
        }
    }
}

fn distribution(values: Distribution) -> allosaur_api::commands::metrics::Distribution {
    let mut below = 0;
    let buckets = values.buckets.into_iter().map(|(bound, count)| {
        below += count;
        (bound, below)
    });
    allosaur_api::commands::metrics::Distribution {
        count: values.count,
        sum: values.sum,
        buckets: buckets.collect(),
        quantiles: values.quantiles.into_iter().collect(),
        min: values.extremes.map(|(min, _)| min),
        max: values.extremes.map(|(_, max)| max),
    }
}
