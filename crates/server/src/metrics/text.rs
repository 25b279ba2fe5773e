//! Metrics as text: OpenMetrics 1.0, and the older text format of Prometheus, 0.0.4.
//!
//! The formats: <https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md>,
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>. Decision 066 says why no crate
//! writes it.

use std::fmt::{Display, Write};

use super::family::{Family, Kind};
use super::row::{Distribution, Label, Sink, Value};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4: for those who do not know OpenMetrics.
    Plain,
}

/// Writes one metric after the other, each with all its series.
#[derive(Debug)]
pub(super) struct Encoder {
    form: TextFormat,
    text: String,
    /// The metric whose series come.
    family: Option<Family>,
    /// Its description is not written yet.
    is_new: bool,
}

impl Encoder {
    pub(super) fn new(form: TextFormat) -> Encoder {
        Encoder {
            form,
            text: String::with_capacity(64 << 10),
            family: None,
            is_new: false,
        }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        if self.form == TextFormat::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }

    fn describe(&mut self, family: &Family) {
        let name = match self.form {
            TextFormat::OpenMetrics => family.name.clone(),
            // There the name is that of the series, and this kind does not exist.
            TextFormat::Plain => family.series(),
        };
        let kind = match (self.form, family.kind) {
            (TextFormat::Plain, Kind::Info) => Kind::Gauge,
            (_, kind) => kind,
        };
        let _ = writeln!(self.text, "# TYPE {name} {}", kind.name());
        if let (TextFormat::OpenMetrics, Some(unit)) = (self.form, family.base_unit()) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = write!(self.text, "# HELP {name} ");
        push_escaped(&mut self.text, family.help);
        self.text.push('\n');
    }

    /// A distribution: a histogram has its buckets, and in the last of them all values.
    fn distribution(&mut self, family: &Family, labels: &[Label<'_>], values: &Distribution) {
        if family.kind == Kind::Histogram {
            let mut below = 0;
            for (upper, count) in &values.buckets {
                below += count;
                self.sample(family, "_bucket", labels, Some(&bound(*upper)), below);
            }
            self.sample(family, "_bucket", labels, Some("+Inf"), values.count);
        }
        self.sample(family, "_sum", labels, None, values.sum);
        self.sample(family, "_count", labels, None, values.count);
    }

    fn sample(
        &mut self,
        family: &Family,
        suffix: &str,
        labels: &[Label<'_>],
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.text += &family.name;
        self.text += suffix;
        let mut separator = '{';
        for (name, label) in family.labels.iter().zip(labels) {
            self.text.push(separator);
            separator = ',';
            self.text += name;
            self.text += "=\"";
            match label {
                Label::Text(text) => push_escaped(&mut self.text, text),
                Label::Number(number) => {
                    let _ = write!(self.text, "{number}");
                }
            }
            self.text.push('"');
        }
        if let Some(bound) = bound {
            let _ = write!(self.text, "{separator}le=\"{bound}\"");
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

impl Sink for Encoder {
    fn family(&mut self, family: Family) -> bool {
        self.is_new = family.is_sparse;
        if !family.is_sparse {
            self.describe(&family);
        }
        self.family = Some(family);
        true
    }

    fn series(&mut self, labels: &[Label<'_>], value: Value) {
        let Some(family) = self.family.take() else {
            return;
        };
        if std::mem::take(&mut self.is_new) {
            self.describe(&family);
        }
        let suffix = family.kind.suffix();
        match value {
            Value::Count(value) => self.sample(&family, suffix, labels, None, value),
            Value::Number(value) => self.sample(&family, suffix, labels, None, value),
            Value::Distribution(values) => self.distribution(&family, labels, &values),
        }
        self.family = Some(family);
    }
}

/// A bound as OpenMetrics wants it, so that the series of all servers are the same: `1e-05`, `0.5`,
/// `10.0`.
fn bound(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once("e-") {
        None if value < 1e-4 => {
            let text = format!("{value:e}");
            text.replace("e-", "e-0")
        }
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => text,
    }
}

/// OpenMetrics, "Escaping": line feeds, quotes and backslashes. In the older format help texts keep
/// their quotes; ours have none.
fn push_escaped(to: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\n' => *to += "\\n",
            '"' => *to += "\\\"",
            '\\' => *to += "\\\\",
            c => to.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Row, Table};
    use super::*;

    const LABELS: &[&str] = &["profile", "port"];

    fn text(
        form: TextFormat,
        labels: &'static [&'static str],
        row: Row<u64>,
        values: &[Label<'_>],
    ) -> String {
        let mut encoder = Encoder::new(form);
        let table = Table {
            prefix: "",
            labels,
            when: "",
            rows: &[row],
        };
        table.show(&mut encoder, [(values, 7)].into_iter());
        encoder.finish()
    }

    #[test]
    fn names_that_users_give_are_escaped() {
        let row = Row::counter("packets", "What \"it\" is", |value| *value);
        let labels = ["a\"b\\c\nd{}=, é".into(), 3.into()];
        assert_eq!(
            text(TextFormat::OpenMetrics, LABELS, row, &labels),
            "# TYPE allosaur_packets counter\n\
             # HELP allosaur_packets What \\\"it\\\" is\n\
             allosaur_packets_total{profile=\"a\\\"b\\\\c\\nd{}=, é\",port=\"3\"} 7\n\
             # EOF\n"
        );
    }

    #[test]
    fn the_older_format_has_its_own_names_and_kinds() {
        let labels = ["_".into(), 0.into()];
        let counter = Row::counter("bytes", "Bytes", |value| *value);
        let counter = text(TextFormat::Plain, LABELS, counter, &labels);
        assert!(counter.starts_with("# TYPE allosaur_bytes_total counter\n"));
        let info = text(
            TextFormat::Plain,
            LABELS,
            Row::info("port", "A port"),
            &labels,
        );
        assert!(info.starts_with("# TYPE allosaur_port_info gauge\n"));
        for text in [counter, info] {
            assert!(!text.contains("EOF") && !text.contains("UNIT"), "{text}");
        }
    }

    #[test]
    fn a_histogram_counts_all_that_is_below_a_bound() {
        let row = Row::histogram("times_seconds", "Times", |_| {
            Some(Distribution {
                count: 7,
                sum: 60.5,
                buckets: vec![(1e-5, 1), (0.5, 0), (10.0, 2)],
                ..Distribution::default()
            })
        });
        let text = text(TextFormat::OpenMetrics, &[], row, &[]);
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "allosaur_times_seconds_bucket{le=\"1e-05\"} 1",
                "allosaur_times_seconds_bucket{le=\"0.5\"} 1",
                "allosaur_times_seconds_bucket{le=\"10.0\"} 3",
                "allosaur_times_seconds_bucket{le=\"+Inf\"} 7",
                "allosaur_times_seconds_sum 60.5",
                "allosaur_times_seconds_count 7",
            ]
        );
        assert!(text.contains("# UNIT allosaur_times_seconds seconds\n"));
    }

    #[test]
    fn a_sparse_metric_is_not_there_without_series() {
        let row = |when| {
            Row::counter_if_any("x".into(), "X", |n: &u64, _| Some(*n).filter(|n| *n > 0), 0)
                .sparse(when)
        };
        let show = |values: &[u64]| {
            let mut encoder = Encoder::new(TextFormat::Plain);
            let table = Table {
                prefix: "",
                labels: &[],
                when: "",
                rows: &[row("it is not 0")],
            };
            let series = values.iter().map(|value| ([], value));
            table.show(&mut encoder, series);
            encoder.finish()
        };
        assert_eq!(show(&[]), "");
        assert_eq!(show(&[0, 0]), "");
        assert!(show(&[0, 1]).ends_with("allosaur_x_total 1\n"));
    }

    #[test]
    fn bounds_are_canonical() {
        let wanted = ["1e-06", "9e-05", "0.0001", "0.005", "1.0", "64.0", "1518.0"];
        let bounds = [1e-6, 9e-5, 1e-4, 5e-3, 1.0, 64.0, 1518.0];
        assert_eq!(bounds.map(bound), wanted);
    }
}
