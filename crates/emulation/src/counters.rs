//! Counters with their meaning, and the report of them that the RPC gives.

use std::collections::BTreeMap;

use allosaur_api::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::{Done, Listed};

/// How bad it is when a counter counts. The numbers are those of the RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing wrong.
    Info = 0x12,
    /// Worth a look.
    Warning = 0x13,
    /// Something is wrong.
    Error = 0x14,
}

/// What a counter means.
#[derive(Clone, Copy, Debug)]
pub struct CounterMeta {
    /// Its name in the RPC.
    pub name: &'static str,
    /// What it counts, for users.
    pub help: &'static str,
    /// Of what it counts, such as `pkts`, `bytes`, `ops`.
    pub unit: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Whether it is reported when it is zero.
    pub zero: bool,
}

/// A table of counters. [`counters!`](crate::counters!) makes one of a list.
pub trait Counters {
    /// The name of the table in the RPC.
    fn name(&self) -> &'static str;
    /// What the counters mean, in their order.
    fn meta(&self) -> &'static [CounterMeta];
    /// The value of one, by its place in `meta`.
    fn value(&self, index: usize) -> u64;
    /// Adds all to sums, in the order of `meta`.
    fn add_to(&self, sums: &mut [u64]) {
        for (index, sum) in sums.iter_mut().take(self.meta().len()).enumerate() {
            *sum += self.value(index);
        }
    }
    /// Sets all to zero.
    fn clear(&mut self);
}

/// Declares a struct of counters and its [`Counters`] implementation:
///
/// ```ignore
/// counters! {
///     /// Counters of ARP in a namespace.
///     pub(crate) struct ArpCounters: u64, "arp" {
///         pkt_rx_query: "pktRxArpQuery", "rx arp query", "pkts", Info;
///     }
/// }
/// ```
///
/// Per client, count in `u32`.
#[macro_export]
macro_rules! counters {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident: $number:ty, $table:literal {
            $($field:ident: $wire:literal, $help:literal, $unit:literal, $severity:ident $(, $zero:ident)?;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default)]
        $visibility struct $name {
            $(#[doc = $help] pub $field: $number,)*
        }

        impl $name {
            /// What the counters mean, in their order.
            pub(crate) const META: &'static [$crate::counters::CounterMeta] = &[
                $($crate::counters::CounterMeta {
                    name: $wire,
                    help: $help,
                    unit: $unit,
                    severity: $crate::counters::Severity::$severity,
                    zero: $crate::counters!(@zero $($zero)?),
                },)*
            ];
        }

        impl $crate::counters::Counters for $name {
            fn name(&self) -> &'static str {
                $table
            }

            fn meta(&self) -> &'static [$crate::counters::CounterMeta] {
                Self::META
            }

            fn value(&self, index: usize) -> u64 {
                let values = [$(u64::from(self.$field)),*];
                values[index]
            }

            fn add_to(&self, sums: &mut [u64]) {
                let values = [$(u64::from(self.$field)),*];
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += value;
                }
            }

            fn clear(&mut self) {
                *self = Self::default();
            }
        }
    };
    (@zero) => { false };
    (@zero zero) => { true };
}

/// What of counters is wanted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CounterParams {
    /// What the counters mean is wanted, not their values.
    pub meta: bool,
    /// Counters that are zero are wanted, too.
    pub zero: bool,
    /// Whether to set all to zero; nothing else is done then.
    pub clear: bool,
    /// The names of the tables that are wanted; all without any.
    pub mask: Listed<String>,
}

/// What of counters was wanted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CounterReport {
    /// They were set to zero.
    Cleared(Done),
    /// What they mean, by the names of their tables.
    Meta(BTreeMap<&'static str, CounterTable>),
    /// Their values by their names, by the names of their tables.
    Values(BTreeMap<&'static str, TableValues>),
}

/// Values of counters by their names.
pub type TableValues = BTreeMap<&'static str, u64>;

/// A table of counters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterTable {
    /// Its name.
    name: &'static str,
    /// Its counters.
    meta: Vec<CounterMeaning>,
}

/// What a counter means.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterMeaning {
    /// Its name.
    name: &'static str,
    /// What it counts.
    help: &'static str,
    /// Of what, such as `pkts`, `bytes`, `ops`.
    unit: &'static str,
    /// Whether it is reported when it is zero.
    zero: bool,
    /// How bad it is when it counts: 18 is nothing wrong, 19 worth a look, 20 an error.
    info: u8,
}

/// Answers a request for counters.
pub fn report(params: &CounterParams, tables: &mut [&mut dyn Counters]) -> CounterReport {
    let mut report = params.report();
    for table in tables {
        params.add(&mut report, *table);
    }
    report
}

impl CounterParams {
    /// The report on no tables.
    pub fn report(&self) -> CounterReport {
        match (self.clear, self.meta) {
            (true, _) => CounterReport::Cleared(Done),
            (false, true) => CounterReport::Meta(BTreeMap::new()),
            (false, false) => CounterReport::Values(BTreeMap::new()),
        }
    }

    /// Adds a table to a report, or clears it.
    pub fn add(&self, report: &mut CounterReport, table: &mut dyn Counters) {
        let name = table.name();
        match report {
            CounterReport::Cleared(_) => table.clear(),
            CounterReport::Meta(tables) => {
                tables.insert(name, meta_of(table));
            }
            CounterReport::Values(tables) => {
                let mask = &self.mask.0;
                if mask.is_empty() || mask.iter().any(|wanted| wanted == name) {
                    let values = values_of(table, self.zero);
                    if !values.is_empty() {
                        tables.insert(name, values);
                    }
                }
            }
        }
    }
}

fn meta_of(table: &dyn Counters) -> CounterTable {
    let rows = table.meta().iter().map(|row| CounterMeaning {
        name: row.name,
        help: row.help,
        unit: row.unit,
        zero: row.zero,
        info: row.severity as u8,
    });
    CounterTable {
        name: table.name(),
        meta: rows.collect(),
    }
}

/// The values of a table, those that are zero only where they are asked for.
pub fn values_of(table: &dyn Counters, zero: bool) -> TableValues {
    let rows = table.meta().iter().enumerate();
    let values = rows.map(|(index, row)| (row, table.value(index)));
    values
        .filter(|(row, value)| zero || row.zero || *value != 0)
        .map(|(row, value)| (row.name, value))
        .collect()
}
