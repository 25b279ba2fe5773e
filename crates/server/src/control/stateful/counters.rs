//! Commands that read what stateful traffic has counted: of a profile, and of all together.

use allosaur_api::Fields;
use allosaur_api::commands::stateful::counters::{
    CounterDescriptions, CounterValues, DynamicCounterDescriptions, DynamicCounterValues,
    DynamicDescriptions, DynamicValues, OtherCounters,
};
use allosaur_api::commands::stateful::profiles::StatefulProfile;

use super::app_latency;
use super::figures::{Both, Rate, TableTotals};
use super::rows::{Rows, Values};
use super::run::Run;
use super::state::Stateful;
use crate::control::config::View;
use crate::control::reply::{Reply, reply};

/// What the values of counters are called.
const VALUES: &str = "counter vals";
/// What descriptions of counters are called.
const DESCRIPTIONS: &str = "counter desc";

/// The values of both sides, as the RPC has them.
pub(super) fn values_of(
    rows: &Rows,
    (name, epoch): (String, u64),
    counters: &Both,
    rates: [Rate; 2],
    duration_s: f64,
    tables: Option<&TableTotals>,
) -> CounterValues {
    let side = |side: usize| {
        rows.values(&Values {
            counters: &counters.0[side],
            rate: rates[side],
            duration_s,
            table: tables.map(|tables| &tables.0[side]),
        })
    };
    CounterValues {
        name,
        epoch,
        client: side(0),
        server: side(1),
    }
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

impl Stateful {
    /// The runs of this epoch.
    fn runs(&self) -> impl Iterator<Item = &Run> {
        let profiles = self.profiles.values();
        let runs = profiles.filter_map(|profile| profile.run.as_ref());
        runs.filter(|run| run.server_epoch == self.epoch)
    }

    /// What all runs of this epoch have counted.
    fn totals(&self) -> Both {
        let mut totals = self.retired.clone();
        for run in self.runs() {
            totals.add(&run.totals());
        }
        totals
    }

    /// Which dynamic counters there are.
    fn dynamic_epoch(&self) -> u64 {
        self.profiles
            .values()
            .map(app_latency::epoch)
            .max()
            .unwrap_or(0)
    }
}

impl Stateful {
    pub(super) fn counter_descriptions(&self, fields: &Fields<'_>) -> Reply {
        let params: StatefulProfile = fields.read()?;
        self.profile(&params.profile)?;
        reply(&CounterDescriptions {
            name: DESCRIPTIONS,
            data: self.rows.descriptions(),
        })
    }

    pub(super) fn counter_values(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let StatefulProfile { profile: name } = fields.read()?;
        let profile = self.profile_mut(&name)?;
        let epoch = profile.epoch;
        let Some(run) = &mut profile.run else {
            let (none, rates) = (Both::default(), Default::default());
            return reply(&values_of(
                &self.rows,
                (VALUES.to_owned(), epoch),
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
        reply(&values_of(
            &self.rows,
            (VALUES.to_owned(), epoch),
            &counters,
            rates,
            duration_s,
            tables,
        ))
    }

    pub(super) fn total_counter_values(&self, view: &View<'_>) -> Reply {
        let room = self;
        let counters = room.totals();
        let mut rates = <[Rate; 2]>::default();
        for run in room.runs() {
            for (sum, rate) in rates.iter_mut().zip(run.rates()) {
                sum.add(&rate);
            }
        }
        let tables = TableTotals::of(view.snapshot).since(&room.tables_before);
        let about = (VALUES.to_owned(), room.epoch);
        // Each profile has a time of its own; all together have none.
        reply(&values_of(
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
            DynamicDescriptions::Sum => self.dynamic_epoch(),
            DynamicDescriptions::Profile(name) => app_latency::epoch(self.profile(&name)?),
        };
        reply(&DynamicCounterDescriptions {
            name: DESCRIPTIONS,
            epoch,
            data: app_latency::of_epoch(epoch),
        })
    }

    pub(super) fn dynamic_values(&self, fields: &Fields<'_>) -> Reply {
        let params: DynamicValues = fields.read()?;
        let profile = self.profile(&params.profile)?;
        let run = profile.run.as_ref();
        let counters = run.map_or_else(Both::default, Run::totals);
        reply(&dynamic_values(
            &params,
            app_latency::epoch(profile),
            &counters,
        ))
    }

    pub(super) fn total_dynamic_values(&self, fields: &Fields<'_>) -> Reply {
        let params: DynamicValues = fields.read()?;
        let room = self;
        reply(&dynamic_values(
            &params,
            room.dynamic_epoch(),
            &room.totals(),
        ))
    }
}

/// Values of the dynamic counters, if they are described as the client was told. Who knows more of
/// them than there are gets none.
fn dynamic_values(params: &DynamicValues, epoch: u64, counters: &Both) -> DynamicCounterValues {
    if params.epoch < epoch {
        return DynamicCounterValues::Other(OtherCounters {
            epoch_err: "there are other dynamic counters now: describe them again",
        });
    }
    let [client, server] = app_latency::dynamic_values(epoch, counters);
    DynamicCounterValues::Values(CounterValues {
        name: VALUES.to_owned(),
        epoch,
        client,
        server,
    })
}
