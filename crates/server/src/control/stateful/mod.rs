//! Stateful traffic, as control sees it: one owner, named profiles, their runs and what they count.
//!
//! | what | where |
//! |---|---|
//! | which command goes where, and time; the state of it all | here, `state` |
//! | what all profiles do together; service mode | `context` |
//! | texts that come in parts | `upload` |
//! | from the JSON of a profile to what data threads run | [`read_profile`], [`profile`], `profile_http`, `profile_tls` |
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
mod client_terms;
mod clients;
mod compile_profile;
mod context;
mod counters;
mod echo;
mod end;
mod figures;
mod flow_info;
mod groups;
mod hosts;
mod latency;
mod links;
mod loaded;
mod loaded_topology;
mod offered;
pub mod outcomes;
pub mod profile;
mod profile_http;
mod profile_tls;
mod profiles;
pub mod read_profile;
mod records;
pub mod rows;
mod run;
mod start;
mod state;
mod topology;
mod tunnels;
mod upload;

use std::ops::ControlFlow;

use allosaur_api::commands::statistics::GlobalStats;
use allosaur_api::commands::status::ProfileUse;
use allosaur_api::{Fields, StatefulMethod as Method};
use allosaur_engine::stateful;
use allosaur_engine::time::Nanos;

use crate::control::awaited::{Awaited, Awaits};
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::domain::{Domain, Others, PortUse, Scope};
use crate::control::reply::Reply;
use crate::control::worker_command::{FlowReport, WorkerReport};
use crate::metrics::Catalog;

pub(in crate::control) use self::state::Stateful;

impl Awaits for Stateful {
    fn awaited(&mut self) -> Option<&mut Awaited<Stateful>> {
        Some(&mut self.awaited)
    }
}

impl Domain for Stateful {
    fn call(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        method: allosaur_api::Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        let allosaur_api::Method::Stateful(method) = method else {
            return None;
        };
        Some(match method {
            // Who owns what is a matter of ports.
            Method::Acquire | Method::Release => return None,
            Method::Sync => self.sync_profiles(fields),
            Method::IncEpoch => self.inc_epoch(),
            Method::Service => self.context_service(control, fields),
            Method::ProfileFragment => self.profile_fragment(control, fields, view),
            Method::ProfileClear => self.profile_clear(control, fields, view),
            Method::ProfileList => self.stateful_profile_list(control, others, fields),
            Method::Start => self.start_profile(control, fields, view),
            Method::Stop => self.stop_profile(control, fields, view),
            Method::Update => self.update_profile(control, fields),
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
            Method::TrafficDistribution => self.traffic_distribution(control, fields),
            Method::StartLatency => self.start_latency(control, fields, view),
            Method::StopLatency => self.stop_latency(control),
            Method::UpdateLatency => self.update_latency(control, fields, view),
            Method::LatencyStats => self.latency_stats(control),
            Method::EnableClients => self.enable_clients(control, fields),
            Method::ClientsInfoStart => self.ask_for_clients(fields),
            Method::ClientsInfoPull => self.clients_info(control),
            Method::SetIgnoredMacs => self.set_ignored_macs(control, fields),
            Method::IgnoredMacs => self.ignored_macs(),
            Method::SetIgnoredIps => self.set_ignored_addresses(control, fields),
            Method::IgnoredIps => self.ignored_addresses(),
            Method::Topology => self.topology(),
            Method::TopologyFragment => self.topology_fragment(control, fields),
            Method::TopologyClear => self.clear_topology(control),
            Method::TunnelSupported => tunnels::is_supported(fields),
            Method::ActivateTunnel
            | Method::UpdateTunnelClient
            | Method::TunnelTopology
            | Method::TunnelTopologyFragment
            | Method::TunnelTopologyClear => tunnels::refuse(),
        })
    }

    fn handle_report(
        &mut self,
        control: &mut Core,
        thread: usize,
        report: WorkerReport,
        now_ns: Nanos,
    ) -> ControlFlow<(), WorkerReport> {
        let WorkerReport::Flows(report) = report else {
            return ControlFlow::Continue(report);
        };
        self.note_flow_report(control, thread, report, now_ns);
        ControlFlow::Break(())
    }

    fn handle_lost_thread(
        &mut self,
        control: &mut Core,
        thread: usize,
        ports: &[u8],
        now_ns: Nanos,
    ) {
        self.lose_flows(control, thread, ports, now_ns);
    }

    fn handle_tick(&mut self, _control: &mut Core, _others: &mut Others<'_>, view: &View<'_>) {
        self.read_flows(view);
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.flows_timeout()
    }

    fn handle_timeout(&mut self, control: &mut Core, view: &View<'_>) {
        self.finish_clears(control, view.now_ns);
        self.abort_slow_runs(control, view.now_ns);
        self.give_up_starts(control, view.now_ns);
    }

    fn describe(&self, control: &Core, view: &View<'_>, catalog: &mut Catalog) {
        catalog.runs = self.catalog_runs(view.now_ns);
        catalog.echo = self.catalog_echo();
        if self.flow_state().is_some() {
            for (port, entry) in control.ports.iter().zip(&mut catalog.ports) {
                entry.is_sending |= port.is_stateful();
            }
        }
    }

    fn port_use(&self, control: &Core, port: u8) -> PortUse {
        let is_stateful = control.ports[usize::from(port)].is_stateful();
        let state = self.flow_state().filter(|_| is_stateful);
        PortUse {
            state,
            is_running: state.is_some(),
            is_sending: state.is_some(),
            // Flows that have begun keep their gateway.
            has_fixed_gateway: false,
        }
    }

    fn sends_from(&self, control: &Core, port: u8, _thread: usize) -> bool {
        self.port_use(control, port).is_sending
    }

    fn sends_for(&self, scope: Scope, session: u32) -> bool {
        scope == Scope::Mode && self.has_flows_of(session)
    }

    fn is_transmitting(&self) -> bool {
        self.flow_state().is_some()
    }

    fn halt(&mut self, control: &mut Core, scope: Scope, session: u32, view: &View<'_>) {
        if scope == Scope::Mode {
            self.stop_flows_of(control, session, view);
            self.stop_latency_of(control, session);
        }
    }

    fn leave_mode(&mut self, control: &mut Core, view: &View<'_>) {
        self.abort_flows(control, view);
    }

    fn running_in_mode(&self) -> Option<String> {
        self.busy_profile()
    }

    fn mode_acquired(&mut self, control: &mut Core, has_other_ports: bool, now_ns: Nanos) {
        if has_other_ports {
            self.apply_port_set(control);
        }
        self.forget_unread_profiles(control, now_ns);
    }

    fn addresses_changed(&mut self, control: &mut Core, port: u8) {
        self.relay_link(control, port);
    }

    fn profile_uses(&self, control: &Core, scope: Scope, now_ns: Nanos) -> Vec<ProfileUse> {
        match scope {
            Scope::Mode => self.stateful_profiles(control, now_ns),
            Scope::Port(_) => Vec::new(),
        }
    }

    fn add_stats(&self, _control: &Core, now_ns: Nanos, stats: &mut GlobalStats) {
        stats.stateful = self.stateful_stats(now_ns);
    }
}

impl Stateful {
    /// A data thread tells of its flows.
    pub(super) fn note_flow_report(
        &mut self,
        control: &mut Core,
        core: usize,
        report: FlowReport,
        now_ns: Nanos,
    ) {
        match report {
            FlowReport::Event(stateful::Event::Ended { run, at, cause }) => {
                self.note_run_ended(control, core, run, at, cause, now_ns);
            }
            FlowReport::Samples { run, at, records } => self.note_samples(run, at, records),
        }
    }

    /// Derives rates; to be called about every half second.
    pub(super) fn read_flows(&mut self, view: &View<'_>) {
        for profile in self.profiles.values_mut() {
            if let Some(run) = &mut profile.run {
                run.read(view);
            }
        }
    }

    /// When profiles have something due.
    pub(super) fn flows_timeout(&self) -> Option<Nanos> {
        let profiles = self.profiles.values();
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
}
