//! A metric as it is described: name, kind, labels, meaning ("metric family" in OpenMetrics).

/// What all names begin with.
pub(super) const PREFIX: &str = "allosaur_";

/// A metric with its series, one for each set of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, without what its kind adds.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// What its values are counted in, if it is not just times that something happened.
    pub unit: Option<&'static str>,
    /// The names of its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    /// When there are series of it; nothing means always.
    pub when: &'static str,
    /// Whether it stays zero in a run in which nothing goes wrong.
    pub is_error: bool,
    /// Whether the text leaves it out while there are no series of it.
    pub(super) is_sparse: bool,
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
    /// The name of its series, as they are queried; of histograms and summaries what it begins with.
    pub fn series(&self) -> String {
        format!("{}{}", self.name, self.kind.suffix())
    }

    /// The unit of its values in OpenMetrics, which its name ends with.
    pub(super) fn base_unit(&self) -> Option<&'static str> {
        ends_with_unit(&self.name, &["seconds", "bytes"])
    }
}

/// That of the units which is the last word of a name.
pub(super) fn ends_with_unit(name: &str, units: &[&'static str]) -> Option<&'static str> {
    let last = name.rsplit('_').next();
    units.iter().copied().find(|unit| last == Some(unit))
}

/// A name with our prefix.
pub(super) fn full_name(prefix: &str, name: &str) -> String {
    match prefix {
        "" => format!("{PREFIX}{name}"),
        prefix => format!("{PREFIX}{prefix}_{name}"),
    }
}
