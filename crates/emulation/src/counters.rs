//! Counters with their meaning, and the report of them that the RPC gives.

use allosaur_api::Error;
use serde_json::{Map, Value, json};

use crate::params::Params;

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

/// Answers a request for counters: `meta`, `zero`, `mask` and `clear` as the RPC has them.
///
/// # Errors
/// When a parameter has the wrong type.
pub fn report(params: &Value, tables: &mut [&mut dyn Counters]) -> Result<Value, Error> {
    let params = Params::new(params);
    let meta = params.bool_or("meta", false)?;
    let zero = params.bool_or("zero", false)?;
    let clear = params.bool_or("clear", false)?;
    let mask = params.strings("mask")?;
    if clear {
        tables.iter_mut().for_each(|table| table.clear());
        return Ok(Value::Bool(true));
    }
    let mut reply = Map::new();
    for table in tables.iter() {
        if meta {
            reply.insert(table.name().to_owned(), meta_of(&**table));
        } else if mask.is_empty() || mask.contains(&table.name()) {
            let values = values_of(&**table, zero);
            if !values.is_empty() {
                reply.insert(table.name().to_owned(), Value::Object(values));
            }
        }
    }
    Ok(Value::Object(reply))
}

fn meta_of(table: &dyn Counters) -> Value {
    let rows = table.meta().iter().map(|row| {
        json!({
            "name": row.name,
            "help": row.help,
            "unit": row.unit,
            "zero": row.zero,
            "info": row.severity as u8,
        })
    });
    json!({"name": table.name(), "meta": rows.collect::<Vec<_>>()})
}

/// The values of a table, those that are zero only where they are asked for.
pub fn values_of(table: &dyn Counters, zero: bool) -> Map<String, Value> {
    let rows = table.meta().iter().enumerate();
    let values = rows.map(|(index, row)| (row, table.value(index)));
    values
        .filter(|(row, value)| zero || row.zero || *value != 0)
        .map(|(row, value)| (row.name.to_owned(), Value::from(value)))
        .collect()
}
