//! A metric, as it is declared: name, kind, labels, meaning.

use std::borrow::Cow;

/// What all names begin with.
const PREFIX: &str = "allosaur_";

/// Where a value is read.
pub(super) type Read<S, V> = fn(&S) -> V;

/// A metric of a table: its name, what it says, and where its values are read.
pub(super) type Row<S, V> = (&'static str, &'static str, Read<S, V>);

/// A metric with its series, one for each set of labels ("metric family" in OpenMetrics).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, without what its kind adds.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// The names of its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: Cow<'static, str>,
    /// When there are series of it; nothing means always.
    pub when: &'static str,
}

/// What the values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows, or begins at zero again.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// How many values were at most so large, their sum and their number.
    Histogram,
    /// The sum and the number of values.
    Summary,
    /// 1; what there is to know is in the labels.
    Info,
}

impl Kind {
    /// Its name in OpenMetrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
            Kind::Info => "info",
        }
    }

    /// What the name of its series has behind that of the metric, where there is one kind of them.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram | Kind::Summary => "",
        }
    }
}

impl Family {
    /// The metric `name`, without our prefix.
    pub(super) fn new(
        kind: Kind,
        name: &str,
        labels: &'static [&'static str],
        help: impl Into<Cow<'static, str>>,
    ) -> Family {
        Family {
            name: format!("{PREFIX}{name}"),
            kind,
            labels,
            help: help.into(),
            when: "",
        }
    }

    /// The same, of which there are series only then.
    #[must_use]
    pub(super) fn when(mut self, when: &'static str) -> Family {
        self.when = when;
        self
    }

    /// The name of its series, as they are queried; of histograms and summaries what it begins with.
    pub fn series(&self) -> String {
        format!("{}{}", self.name, self.kind.suffix())
    }

    /// The unit of its values, which its name ends with.
    pub fn unit(&self) -> Option<&'static str> {
        let units = ["seconds", "bytes"];
        let ends_with = |unit: &&str| {
            let before = self.name.strip_suffix(*unit);
            before.is_some_and(|before| before.ends_with('_'))
        };
        units.into_iter().find(ends_with)
    }
}
