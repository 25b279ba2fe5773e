//! Commands that read what stateful traffic has counted: of a profile, and of all together.

use allosaur_api::Fields;
use allosaur_api::commands::ports::profile_id;
use allosaur_api::commands::stateful::counters::{DynamicDescriptions, DynamicValues};
use serde_json::{Value, json};

use super::figures::{Both, Rate, TableTotals};
use super::rows::{Rows, Values};
use super::run::Run;
use crate::control::{Control, Reply, View};

/// What the values of counters are called.
const VALUES: &str = "counter vals";
/// What descriptions of counters are called.
const DESCRIPTIONS: &str = "counter desc";

/// The values of both sides, as the RPC has them.
pub(super) fn values_of(
    rows: &Rows,
    (name, epoch): (&str, u64),
    counters: &Both,
    rates: [Rate; 2],
    duration_s: f64,
    tables: Option<&TableTotals>,
) -> Value {
    let side = |side: usize| {
        rows.values(&Values {
            counters: &counters.0[side],
            rate: rates[side],
            duration_s,
            table: tables.map(|tables| &tables.0[side]),
        })
    };
    json!({"name": name, "epoch": epoch, "client": side(0), "server": side(1)})
}

impl Run {
    /// What belongs to no flow, in the time of this run.
    fn tables(&self, view: &View<'_>) -> TableTotals {
        let (before, after) = &self.tables;
        match after {
            Some(after) => after.since(before),
            None => TableTotals::of(view.snapshot).since(before),
        }
    }
}

impl Control {
    pub(super) fn counter_descriptions(&self, fields: &Fields<'_>) -> Reply {
        self.room.profile(&profile_id(fields)?)?;
        Ok(json!({"name": DESCRIPTIONS, "data": self.room.rows.descriptions()}))
    }

    pub(super) fn counter_values(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let name = profile_id(fields)?;
        let profile = self.room.profile_mut(&name)?;
        let epoch = profile.epoch;
        let Some(run) = &mut profile.run else {
            let (none, rates) = (Both::default(), Default::default());
            return Ok(values_of(
                &self.room.rows,
                (VALUES, epoch),
                &none,
                rates,
                0.0,
                None,
            ));
        };
        run.read(view);
        let tables = run.tables(view);
        let (counters, rates) = (run.totals(), run.rates());
        let duration_s = run.duration_s(view.now_ns);
        let tables = Some(&tables);
        Ok(values_of(
            &self.room.rows,
            (VALUES, epoch),
            &counters,
            rates,
            duration_s,
            tables,
        ))
    }

    pub(super) fn total_counter_values(&self, view: &View<'_>) -> Reply {
        let room = &self.room;
        let mut counters = room.retired.clone();
        let mut rates = <[Rate; 2]>::default();
        let runs = room.profiles.values();
        let runs = runs.filter_map(|profile| profile.run.as_ref());
        for run in runs.filter(|run| run.room_epoch == room.epoch) {
            counters.add(&run.totals());
            for (sum, rate) in rates.iter_mut().zip(run.rates()) {
                sum.add(&rate);
            }
        }
        let tables = TableTotals::of(view.snapshot).since(&room.tables_before);
        let about = (VALUES, room.epoch);
        // Each profile has a time of its own; all together have none.
        Ok(values_of(
            &room.rows,
            about,
            &counters,
            rates,
            0.0,
            Some(&tables),
        ))
    }

    pub(super) fn dynamic_descriptions(&self, fields: &Fields<'_>) -> Reply {
        let epoch = match DynamicDescriptions::parse(fields)? {
            DynamicDescriptions::Sum => self.room.epoch,
            DynamicDescriptions::Profile(name) => self.room.profile(&name)?.epoch,
        };
        Ok(json!({"name": DESCRIPTIONS, "epoch": epoch, "data": []}))
    }

    pub(super) fn dynamic_values(&self, fields: &Fields<'_>) -> Reply {
        let params = DynamicValues::parse(fields)?;
        let epoch = self.room.profile(&params.profile)?.epoch;
        Ok(no_values(epoch))
    }

    pub(super) fn total_dynamic_values(&self, fields: &Fields<'_>) -> Reply {
        DynamicValues::parse(fields)?;
        Ok(no_values(self.room.epoch))
    }
}

/// Nothing has dynamic counters, so there is no epoch that could be over.
fn no_values(epoch: u64) -> Value {
    json!({"name": VALUES, "epoch": epoch, "client": {}, "server": {}})
}
