//! Metrics as text: OpenMetrics 1.0, and the older text format of Prometheus, 0.0.4.
//!
//! The formats: <https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md>,
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>. The crate `prometheus-client` does
//! not escape labels, which are names that users give here, and knows the first of the two only.

use std::fmt::{Display, Write};

use super::family::{Family, Kind};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4: for those who do not know OpenMetrics.
    Plain,
}

/// The value of a label.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label<'a> {
    Text(&'a str),
    Number(u64),
}

/// Writes one metric after the other, each with all its series.
#[derive(Debug)]
pub(super) struct Encoder {
    form: TextFormat,
    text: String,
}

/// Writes the series of a metric.
#[derive(Debug)]
pub(super) struct Series<'e> {
    text: &'e mut String,
    family: &'e Family,
}

impl Encoder {
    pub(super) fn new(form: TextFormat) -> Encoder {
        Encoder {
            form,
            text: String::with_capacity(64 << 10),
        }
    }

    /// Begins with a metric.
    pub(super) fn family<'e>(&'e mut self, family: &'e Family) -> Series<'e> {
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
        if let (TextFormat::OpenMetrics, Some(unit)) = (self.form, family.unit()) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let help = escaped(&family.help);
        let _ = writeln!(self.text, "# HELP {name} {help}");
        Series {
            text: &mut self.text,
            family,
        }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        if self.form == TextFormat::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }
}

impl Series<'_> {
    /// A number.
    pub(super) fn value(&mut self, labels: &[Label<'_>], value: impl Display) {
        let suffix = self.family.kind.suffix();
        self.sample(suffix, labels, None, value);
    }

    /// A histogram: the values are counted by their upper bounds, each value once, and the last
    /// count is of those above all bounds.
    pub(super) fn histogram(
        &mut self,
        labels: &[Label<'_>],
        bounds: impl IntoIterator<Item = f64>,
        counts: &[u64],
        sum: f64,
    ) {
        let mut below = 0;
        let bounds = bounds.into_iter().map(bound);
        let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
        for (bound, count) in bounds.zip(counts) {
            below += count;
            self.sample("_bucket", labels, Some(&bound), below);
        }
        self.summary(labels, below, sum);
    }

    /// The sum of values, and how many there are.
    pub(super) fn summary(&mut self, labels: &[Label<'_>], count: u64, sum: f64) {
        self.sample("_sum", labels, None, sum);
        self.sample("_count", labels, None, count);
    }

    fn sample(
        &mut self,
        suffix: &str,
        labels: &[Label<'_>],
        bound: Option<&str>,
        value: impl Display,
    ) {
        let names = self.family.labels;
        debug_assert_eq!(names.len(), labels.len(), "{}", self.family.name);
        *self.text += &self.family.name;
        *self.text += suffix;
        let mut separator = '{';
        for (name, label) in names.iter().zip(labels) {
            self.text.push(separator);
            separator = ',';
            *self.text += name;
            *self.text += "=\"";
            match label {
                Label::Text(text) => push_escaped(self.text, text),
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

impl<'a> From<&'a str> for Label<'a> {
    fn from(text: &'a str) -> Label<'a> {
        Label::Text(text)
    }
}

impl From<usize> for Label<'_> {
    fn from(number: usize) -> Self {
        Label::Number(number as u64)
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

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    push_escaped(&mut escaped, text);
    escaped
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
    use super::*;

    const LABELS: &[&str] = &["profile", "port"];

    fn family(kind: Kind, name: &str) -> Family {
        Family::new(kind, name, LABELS, "What \"it\" is")
    }

    #[test]
    fn names_that_users_give_are_escaped() {
        let counter = family(Kind::Counter, "packets");
        let mut encoder = Encoder::new(TextFormat::OpenMetrics);
        let mut series = encoder.family(&counter);
        series.value(&["a\"b\\c\nd{}=, é".into(), 3.into()], 7);
        assert_eq!(
            encoder.finish(),
            "# TYPE allosaur_packets counter\n\
             # HELP allosaur_packets What \\\"it\\\" is\n\
             allosaur_packets_total{profile=\"a\\\"b\\\\c\\nd{}=, é\",port=\"3\"} 7\n\
             # EOF\n"
        );
    }

    #[test]
    fn the_older_format_has_its_own_names_and_kinds() {
        let (counter, info) = (family(Kind::Counter, "bytes"), family(Kind::Info, "port"));
        let mut encoder = Encoder::new(TextFormat::Plain);
        encoder.family(&counter).value(&["_".into(), 0.into()], 1);
        encoder.family(&info).value(&["_".into(), 0.into()], 1);
        let text = encoder.finish();
        let types: Vec<_> = text.lines().filter(|line| line.contains("TYPE")).collect();
        assert_eq!(
            types,
            [
                "# TYPE allosaur_bytes_total counter",
                "# TYPE allosaur_port_info gauge"
            ]
        );
        assert!(!text.contains("EOF") && !text.contains("UNIT"), "{text}");
    }

    #[test]
    fn a_histogram_counts_all_that_is_below_a_bound() {
        let times = Family::new(Kind::Histogram, "times_seconds", &[], "Times");
        let mut encoder = Encoder::new(TextFormat::OpenMetrics);
        let mut series = encoder.family(&times);
        series.histogram(&[], [1e-5, 0.5, 10.0], &[1, 0, 2, 4], 60.5);
        let text = encoder.finish();
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
    fn bounds_are_canonical() {
        let wanted = ["1e-06", "9e-05", "0.0001", "0.005", "1.0", "64.0", "1518.0"];
        let bounds = [1e-6, 9e-5, 1e-4, 5e-3, 1.0, 64.0, 1518.0];
        assert_eq!(bounds.map(bound), wanted);
    }
}
