//! A metric as it is declared: one [`Row`] says what it is and where it is read. Rows that are read of
//! the same thing, under the same labels, stand in a [`Table`].
//!
//! Everybody who shows metrics is a [`Sink`]: text, the RPC, the guide. So there is nothing to keep in
//! step with a row.

use std::borrow::{Borrow, Cow};

use super::family::{Family, Kind, ends_with_unit, full_name};

/// The units that are told where they are the last word of a name.
const UNITS: [&str; 3] = ["seconds", "bytes", "packets"];

/// One metric, read of an `S`.
#[derive(Clone, Debug)]
pub(super) struct Row<S: 'static> {
    name: Cow<'static, str>,
    kind: Kind,
    help: &'static str,
    unit: Option<&'static str>,
    when: &'static str,
    is_error: bool,
    is_sparse: bool,
    read: Read<S>,
}

/// How a value is read of an `S`.
#[derive(Clone, Debug)]
enum Read<S: 'static> {
    /// 1, always.
    One,
    Count(fn(&S) -> u64),
    Number(fn(&S) -> f64),
    /// The number at this place.
    Place(fn(&S, usize) -> u64, usize),
    /// The same, where there is one.
    PlaceIfAny(fn(&S, usize) -> Option<u64>, usize),
    /// No series where there is nothing.
    NumberIfAny(fn(&S) -> Option<f64>),
    /// The same.
    Distribution(fn(&S) -> Option<Distribution>),
}

/// A value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// Many values.
    Distribution(Distribution),
}

/// Many values, of which it is known how they are distributed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Distribution {
    /// How many there are.
    pub(super) count: u64,
    /// Their sum.
    pub(super) sum: f64,
    /// Upper bounds, and how many values are at most so large, each value counted once; those above
    /// all bounds are in none.
    pub(super) buckets: Vec<(f64, u64)>,
    /// The value that this share of them does not exceed, as far as that is known.
    pub(super) quantiles: Vec<(&'static str, f64)>,
    /// The smallest and the largest, as far as they are known.
    pub(super) extremes: Option<(f64, f64)>,
}

/// The quantiles that are told where they are known: their names, and the shares.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)];

/// The value of a label.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label<'a> {
    Text(&'a str),
    Number(u64),
}

/// Who takes metrics, one after the other.
pub(super) trait Sink {
    /// Whether it wants any metric of those whose names begin so, behind `allosaur_`. What nobody wants
    /// need not be read.
    fn wants(&self, _prefix: &str) -> bool {
        true
    }

    /// The next metric; its series follow if they are wanted.
    fn family(&mut self, family: Family) -> bool;

    /// A series of it: the values of its labels in order, and its value.
    fn series(&mut self, labels: &[Label<'_>], value: Value);
}

/// Metrics that are read of the same thing.
#[derive(Debug)]
pub(super) struct Table<'r, S: 'static> {
    /// What their names begin with, behind `allosaur_`, where they are the same for several things.
    pub(super) prefix: &'static str,
    /// The names of their labels.
    pub(super) labels: &'static [&'static str],
    /// When there are series of them; nothing means always.
    pub(super) when: &'static str,
    /// The metrics.
    pub(super) rows: &'r [Row<S>],
}

impl<S> Table<'_, S> {
    /// Shows all metrics: of each thing a series, under its labels.
    pub(super) fn show<'a, L, T>(
        &self,
        sink: &mut dyn Sink,
        things: impl Iterator<Item = (L, T)> + Clone,
    ) where
        L: AsRef<[Label<'a>]>,
        T: Borrow<S>,
    {
        for row in self.rows {
            if !sink.family(row.family(self)) {
                continue;
            }
            for (labels, thing) in things.clone() {
                let labels = labels.as_ref();
                debug_assert_eq!(labels.len(), self.labels.len(), "{}", row.name);
                if let Some(value) = row.read.of(thing.borrow()) {
                    sink.series(labels, value);
                }
            }
        }
    }
}

impl<S> Row<S> {
    const fn new(kind: Kind, name: &'static str, help: &'static str, read: Read<S>) -> Row<S> {
        Row {
            name: Cow::Borrowed(name),
            kind,
            help,
            unit: None,
            when: "",
            is_error: false,
            is_sparse: false,
            read,
        }
    }

    /// A number that only grows.
    pub(super) const fn counter(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> u64,
    ) -> Row<S> {
        Row::new(Kind::Counter, name, help, Read::Count(read))
    }

    /// The same, with a fraction.
    pub(super) const fn counter_of_parts(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> f64,
    ) -> Row<S> {
        Row::new(Kind::Counter, name, help, Read::Number(read))
    }

    /// A number that only grows, one of many.
    pub(super) fn counter_at(
        name: Cow<'static, str>,
        help: &'static str,
        read: fn(&S, usize) -> u64,
        place: usize,
    ) -> Row<S> {
        Row {
            name,
            ..Row::new(Kind::Counter, "", help, Read::Place(read, place))
        }
    }

    /// The same, where there may be none.
    pub(super) fn counter_if_any(
        name: Cow<'static, str>,
        help: &'static str,
        read: fn(&S, usize) -> Option<u64>,
        place: usize,
    ) -> Row<S> {
        Row {
            name,
            ..Row::new(Kind::Counter, "", help, Read::PlaceIfAny(read, place))
        }
    }

    /// A whole number that goes up and down.
    pub(super) const fn gauge(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> u64,
    ) -> Row<S> {
        Row::new(Kind::Gauge, name, help, Read::Count(read))
    }

    /// Any number that goes up and down.
    pub(super) const fn gauge_of_parts(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> f64,
    ) -> Row<S> {
        Row::new(Kind::Gauge, name, help, Read::Number(read))
    }

    /// The same, where there may be none.
    pub(super) const fn gauge_if_any(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> Option<f64>,
    ) -> Row<S> {
        Row::new(Kind::Gauge, name, help, Read::NumberIfAny(read))
    }

    /// How values are distributed, by upper bounds; there may be none.
    pub(super) const fn histogram(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> Option<Distribution>,
    ) -> Row<S> {
        Row::new(Kind::Histogram, name, help, Read::Distribution(read))
    }

    /// The sum and the number of values; there may be none.
    pub(super) const fn summary(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> Option<Distribution>,
    ) -> Row<S> {
        Row::new(Kind::Summary, name, help, Read::Distribution(read))
    }

    /// What is said by labels.
    pub(super) const fn info(name: &'static str, help: &'static str) -> Row<S> {
        Row::new(Kind::Info, name, help, Read::One)
    }

    /// Its values are counted in this, which its name does not end with.
    #[must_use]
    pub(super) const fn unit(mut self, unit: &'static str) -> Row<S> {
        self.unit = Some(unit);
        self
    }

    /// It goes down, too.
    #[must_use]
    pub(super) fn going_down(mut self) -> Row<S> {
        self.kind = Kind::Gauge;
        self
    }

    /// It stays zero in a run in which nothing goes wrong.
    #[must_use]
    pub(super) const fn error(mut self) -> Row<S> {
        self.is_error = true;
        self
    }

    /// There are series of it only then, and the text leaves it out until there are.
    #[must_use]
    pub(super) const fn sparse(mut self, when: &'static str) -> Row<S> {
        (self.is_sparse, self.when) = (true, when);
        self
    }

    fn family(&self, table: &Table<'_, S>) -> Family {
        let when = match self.when {
            "" => table.when,
            when => when,
        };
        Family {
            name: full_name(table.prefix, &self.name),
            kind: self.kind,
            unit: self.unit.or_else(|| ends_with_unit(&self.name, &UNITS)),
            labels: table.labels,
            help: self.help,
            when,
            is_error: self.is_error,
            is_sparse: self.is_sparse,
        }
    }
}

impl<S> Read<S> {
    /// The value, if there is a series.
    fn of(&self, thing: &S) -> Option<Value> {
        match *self {
            Read::One => Some(Value::Count(1)),
            Read::Count(read) => Some(Value::Count(read(thing))),
            Read::Number(read) => Some(Value::Number(read(thing))),
            Read::Place(read, place) => Some(Value::Count(read(thing, place))),
            Read::PlaceIfAny(read, place) => read(thing, place).map(Value::Count),
            Read::NumberIfAny(read) => read(thing).map(Value::Number),
            Read::Distribution(read) => read(thing).map(Value::Distribution),
        }
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
