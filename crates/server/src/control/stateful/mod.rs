//! Stateful traffic, as control sees it: one owner, named profiles, their runs and what they count.
//!
//! | what | where |
//! |---|---|
//! | the state of it all, which command goes where, and time | here |
//! | who owns the server; service mode | `context` |
//! | texts that come in parts | `upload` |
//! | from the JSON of a profile to what data threads run | [`profile`] |
//! | profiles: loaded, cleared, listed, and what is told of them | `profiles` |
//! | starting and stopping | `start`, `run` |
//! | the 140 rows, and their values | `rows`, `figures`, `counters`, `groups` |
//! | emulated clients as the clients of a profile | `hosts` |
//! | asked for against achieved | `offered` |
//! | latency: echo streams beside, and what the add-on of programs counts | `latency`, `app_latency` |
//! | how flows ended, and how long they took | `outcomes` |
//! | records of flows | `records` |
//! | clients, topology, where frames go, tunnels | `clients`, `topology`, `links`, `tunnels` |

mod app_latency;
mod clients;
mod context;
mod counters;
mod figures;
mod groups;
mod hosts;
mod latency;
mod links;
mod offered;
pub mod outcomes;
pub mod profile;
mod profiles;
mod records;
pub mod rows;
mod run;
mod start;
mod topology;
mod tunnels;
mod upload;

use std::collections::BTreeMap;

use allosaur_api::events::StatefulPhase;
use allosaur_api::{Fields, StatefulMethod as Method};
use allosaur_engine::stateful::{self, RUNS_MAX, RunIndex};
use allosaur_engine::time::Nanos;

use super::{Action, Control, Reply, View};
use crate::control::ports::owner::Owner;
use crate::control::ports::port::{DEFAULT_PROFILE, Port};
use crate::control::worker_command::{FlowCommand, FlowReport};

use clients::ClientTerms;
use figures::TableTotals;
use latency::EchoStreams;
use profiles::Profile;
use rows::Rows;
use topology::Topology;

/// All that control knows of stateful traffic.
#[derive(Debug)]
pub(super) struct StatefulState {
    pub(super) owner: Option<Owner>,
    /// How often traffic has begun when none ran.
    epoch: u64,
    /// What was told last of all profiles together.
    phase: StatefulPhase,
    profiles: BTreeMap<String, Profile>,
    /// What runs that are forgotten have counted in this epoch.
    retired: figures::Both,
    /// What the tables of flows had counted when the epoch began.
    tables_before: TableTotals,
    rows: Rows,
    clients: ClientTerms,
    topology: Topology,
    echo: EchoStreams,
    /// The number that a run got last.
    last_index: RunIndex,
}

impl Default for StatefulState {
    fn default() -> StatefulState {
        StatefulState {
            owner: None,
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

impl Control {
    /// One arm for each command of stateful mode.
    pub(super) fn call_stateful(
        &mut self,
        method: Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        match method {
            Method::Acquire => self.acquire_context(fields, view),
            Method::Release => self.release_context(),
            Method::Sync => self.sync_profiles(fields),
            Method::IncEpoch => self.inc_epoch(),
            Method::Service => self.context_service(fields),
            Method::ProfileFragment => self.profile_fragment(fields, view),
            Method::ProfileClear => self.profile_clear(fields, view),
            Method::ProfileList => self.stateful_profile_list(fields),
            Method::Start => self.start_profile(fields, view),
            Method::Stop => self.stop_profile(fields, view),
            Method::Update => self.update_profile(fields),
            Method::FlowRates => self.flow_rates(fields, view),
            Method::FlowOutcomes => self.flow_outcomes(fields),
            Method::FlowInfo => self.flow_info(fields),
            Method::CounterDescriptions => self.counter_descriptions(fields),
            Method::CounterValues => self.counter_values(fields, view),
            Method::TotalCounterValues => self.total_counter_values(view),
            Method::DynamicDescriptions => self.dynamic_descriptions(fields),
            Method::DynamicValues => self.dynamic_values(fields),
            Method::TotalDynamicValues => self.total_dynamic_values(fields),
            Method::GroupNames => self.group_names(fields),
            Method::GroupStats => self.group_stats(fields, view),
            Method::TrafficDistribution => self.traffic_distribution(fields),
            Method::StartLatency => self.start_latency(fields, view),
            Method::StopLatency => self.stop_latency(),
            Method::UpdateLatency => self.update_latency(fields, view),
            Method::LatencyStats => self.latency_stats(),
            Method::EnableClients => self.enable_clients(fields),
            Method::ClientsInfoStart => self.ask_for_clients(fields),
            Method::ClientsInfoPull => self.clients_info(),
            Method::SetIgnoredMacs => self.set_ignored_macs(fields),
            Method::IgnoredMacs => self.ignored_macs(),
            Method::SetIgnoredIps => self.set_ignored_addresses(fields),
            Method::IgnoredIps => self.ignored_addresses(),
            Method::Topology => self.topology(),
            Method::TopologyFragment => self.topology_fragment(fields),
            Method::TopologyClear => self.clear_topology(),
            Method::TunnelSupported => tunnels::is_supported(fields),
            Method::ActivateTunnel
            | Method::UpdateTunnelClient
            | Method::TunnelTopology
            | Method::TunnelTopologyFragment
            | Method::TunnelTopologyClear => tunnels::refuse(),
        }
    }

    /// A data thread tells of its flows.
    pub(super) fn note_flow_report(&mut self, core: usize, report: FlowReport, now_ns: Nanos) {
        match report {
            FlowReport::Event(stateful::Event::Ended { run, at, cause }) => {
                self.note_run_ended(core, run, at, cause, now_ns);
            }
            FlowReport::Samples { run, at, records } => self.note_samples(run, at, records),
        }
    }

    /// Derives rates; to be called about every half second.
    pub(super) fn read_flows(&mut self, view: &View<'_>) {
        for profile in self.room.profiles.values_mut() {
            if let Some(run) = &mut profile.run {
                run.read(view);
            }
        }
    }

    /// When profiles have something due.
    pub(super) fn flows_timeout(&self) -> Option<Nanos> {
        let profiles = self.room.profiles.values();
        let due = profiles.flat_map(|profile| {
            let clearing = profile.clearing.as_ref();
            let run = profile.run.as_ref();
            [
                clearing.map(|clearing| clearing.next_look_at),
                run.and_then(|run| run.abort_at),
                profile.starting.and_then(|starting| starting.until),
            ]
        });
        due.flatten().min()
    }

    /// Tells a data thread something about its flows.
    fn order(&mut self, core: usize, order: FlowCommand) {
        self.actions.push_back(Action::Flows { core, order });
    }

    /// Tells all data threads that there are the same; those that never had flows let it go.
    fn order_all(&mut self, mut command: impl FnMut() -> stateful::StatefulCommand) {
        for core in cores_of(self.ports.iter()) {
            self.order(core, FlowCommand::Command(command()));
        }
    }

    /// The data threads that serve a port in stateful mode.
    fn live_cores(&self) -> Vec<usize> {
        cores_of(self.ports.iter().filter(|port| port.is_stateful()))
    }
}

fn cores_of<'a>(ports: impl Iterator<Item = &'a Port>) -> Vec<usize> {
    let mut cores: Vec<usize> = ports.flat_map(|port| &port.config.cores).copied().collect();
    cores.sort_unstable();
    cores.dedup();
    cores
}
