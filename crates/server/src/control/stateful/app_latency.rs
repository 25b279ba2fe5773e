//! What the add-on "latency" of programs counts, as people see it.

use allosaur_api::commands::stateful::counters::{
    CounterDescription, CounterKind, CounterValue, CounterValues, ValuesByCounter,
};
use allosaur_engine::session::LatencyCounters;
use allosaur_engine::template::CompiledProfile;
use serde_json::json;

use super::figures::{Both, NamedRow};
use super::loaded::Profile;

/// Of each counter, in the engine's order: unit, meaning, and whether it is no sum.
const ABOUT: [(&str, &str, bool); LatencyCounters::NAMES.len()] = [
    ("usec", "shortest time there and back", true),
    ("usec", "longest time there and back", true),
    ("", "answers that were measured", false),
    ("usec", "sum of their times", false),
    ("", "messages that arrived with a header", false),
];

/// Whether a template of the group has the add-on; of any group for `None`.
fn has_addon(profile: &CompiledProfile, group: Option<usize>) -> bool {
    let program = |index| profile.program(index).addon().is_some();
    let templates = profile.templates().iter();
    let mut templates =
        templates.filter(|template| group.is_none_or(|group| group == usize::from(template.group)));
    templates.any(|template| program(template.client.program) || program(template.server.program))
}

/// The descriptions of a group's further counters, from row `first` on; none without the add-on.
pub(super) fn of_group(
    profile: &CompiledProfile,
    group: usize,
    first: usize,
) -> Vec<CounterDescription> {
    match has_addon(profile, Some(group)) {
        true => descriptions(first),
        false => Vec::new(),
    }
}

/// Adds the further counters of a group to its values, from row `first` on.
pub(super) fn add_values(values: &mut CounterValues, counters: &Both, first: usize) {
    let sides = [&mut values.client, &mut values.server];
    for (values, counters) in sides.into_iter().zip(&counters.0) {
        values.extend(values_of(&counters.flows.latency, first));
    }
}

/// The counters by name, if there is something to tell.
pub(super) fn named(counters: &LatencyCounters) -> impl Iterator<Item = NamedRow> + use<> {
    let has_counted = *counters != LatencyCounters::default();
    let rows = LatencyCounters::NAMES.iter().zip(counters.values());
    let rows = rows.filter(move |_| has_counted);
    rows.map(|(name, value)| NamedRow {
        name,
        value: json!(value),
        is_error: false,
    })
}

/// A number that says which dynamic counters a profile has: 1 for those of the add-on, 0 for none.
pub(super) fn epoch(profile: &Profile) -> u64 {
    let run = profile.run.as_ref();
    u64::from(run.is_some_and(|run| has_addon(&run.profile, None)))
}

/// The descriptions of the dynamic counters of an epoch.
pub(super) fn of_epoch(epoch: u64) -> Vec<CounterDescription> {
    match epoch {
        0 => Vec::new(),
        _ => descriptions(0),
    }
}

/// The values of the dynamic counters of both sides.
pub(super) fn dynamic_values(epoch: u64, counters: &Both) -> [ValuesByCounter; 2] {
    let side = |n: usize| match epoch {
        0 => ValuesByCounter::new(),
        _ => values_of(&counters.0[n].flows.latency, 0).collect(),
    };
    [side(0), side(1)]
}

fn descriptions(first: usize) -> Vec<CounterDescription> {
    let rows = LatencyCounters::NAMES.iter().zip(ABOUT).enumerate();
    let description = |(n, (&name, (units, help, abs)))| CounterDescription {
        id: first + n,
        name,
        help,
        units,
        info: CounterKind::Info,
        zero: false,
        abs,
        real: true,
    };
    rows.map(description).collect()
}

fn values_of(
    counters: &LatencyCounters,
    first: usize,
) -> impl Iterator<Item = (usize, CounterValue)> {
    let values = counters.values().into_iter().enumerate();
    let values = values.filter(|(_, value)| *value != 0);
    values.map(move |(n, value)| (first + n, CounterValue::Count(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_only_where_something_was_counted() {
        let mut counters = LatencyCounters::default();
        assert_eq!(named(&counters).count(), 0);
        counters.total_pkts = 3;
        let told: Vec<_> = named(&counters).map(|row| (row.name, row.value)).collect();
        let zero = |name| (name, json!(0));
        let expected = [
            zero("min_time"),
            zero("max_time"),
            zero("measure_cnt"),
            zero("total_time"),
            ("total_pkts", json!(3)),
        ];
        assert_eq!(told, expected);
    }
}
