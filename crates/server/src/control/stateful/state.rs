//! The state of stateful traffic.

use std::collections::BTreeMap;

use allosaur_api::events::StatefulPhase;
use allosaur_engine::stateful::{RUNS_MAX, RunIndex};

use super::client_terms::ClientTerms;
use super::echo::EchoStreams;
use super::figures::{self, TableTotals};
use super::loaded::Profile;
use super::loaded_topology::Topology;
use super::rows::Rows;
use crate::control::awaited::Awaited;
use crate::control::profile_name::DEFAULT_PROFILE;

/// All that control knows of stateful traffic.
#[derive(Debug)]
pub(in crate::control) struct Stateful {
    pub(super) awaited: Awaited<Stateful>,
    /// How often traffic has begun when none ran.
    pub(super) epoch: u64,
    /// What was told last of all profiles together.
    pub(super) phase: StatefulPhase,
    pub(super) profiles: BTreeMap<String, Profile>,
    /// What runs that are forgotten have counted in this epoch.
    pub(super) retired: figures::Both,
    /// What the tables of flows had counted when the epoch began.
    pub(super) tables_before: TableTotals,
    pub(super) rows: Rows,
    pub(super) clients: ClientTerms,
    pub(super) topology: Topology,
    pub(super) echo: EchoStreams,
    /// The number that a run got last.
    pub(super) last_index: RunIndex,
}

impl Default for Stateful {
    fn default() -> Stateful {
        Stateful {
            awaited: Awaited::default(),
            epoch: 0,
            phase: StatefulPhase::Idle,
            profiles: BTreeMap::from([(DEFAULT_PROFILE.to_owned(), Profile::default())]),
            retired: figures::Both::default(),
            tables_before: TableTotals::default(),
            rows: Rows::new(),
            clients: ClientTerms::default(),
            topology: Topology::default(),
            echo: EchoStreams::default(),
            last_index: RunIndex(RUNS_MAX - 1),
        }
    }
}

impl Stateful {
    /// What all profiles do together: what the busiest does. A profile that goes is still there.
    pub(super) fn together(&self) -> StatefulPhase {
        let phases = self.profiles.values().map(|profile| match profile.phase {
            StatefulPhase::Delete => StatefulPhase::Loaded,
            phase => phase,
        });
        phases.max_by_key(|phase| rank(*phase)).unwrap_or_default()
    }
}

fn rank(phase: StatefulPhase) -> u8 {
    match phase {
        StatefulPhase::Idle => 0,
        StatefulPhase::Loaded | StatefulPhase::Delete => 1,
        StatefulPhase::Parse => 2,
        StatefulPhase::Build => 3,
        StatefulPhase::Cleanup => 4,
        StatefulPhase::Transmit => 5,
    }
}
