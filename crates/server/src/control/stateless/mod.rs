//! Stateless traffic, as control sees it: profiles of streams, what runs of them, packet groups, and
//! packets and captures that are sent once.

mod changes;
mod checks;
mod groups;
mod pgid;
mod port;
mod push;
mod read_capture;
mod remote;
mod start;
mod state;
mod stop;
pub mod stream;
mod streams;
mod validate;

use std::ops::ControlFlow;

use allosaur_api::commands::groups::{TpgData, TpgState, TpgStatus};
use allosaur_api::commands::ports::ProfileStates;
use allosaur_api::commands::status::{ProfileState, ProfileUse, RunUse};
use allosaur_api::{Error, Fields, Method, StatelessMethod};
use allosaur_engine::time::Nanos;

use self::port::{Profile, State};
use crate::control::awaited::{Awaited, Awaits};
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::domain::{Domain, Others, PortProfiles, PortUse, Scope};
use crate::control::profile_name::ALL_PROFILES;
use crate::control::reply::{Reply, reply};
use crate::control::time::seconds_since;
use crate::control::worker_command::WorkerReport;
use crate::metrics::{Catalog, CatalogProfile};

pub(in crate::control) use self::state::Stateless;

impl Awaits for Stateless {
    fn awaited(&mut self) -> Option<&mut Awaited<Stateless>> {
        Some(&mut self.awaited)
    }
}

impl Domain for Stateless {
    fn call(
        &mut self,
        control: &mut Core,
        _others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        let Method::Stateless(method) = method else {
            return None;
        };
        Some(match method {
            StatelessMethod::PushPackets => self.push_packets(control, fields, view),
            StatelessMethod::ProfileList => self.profile_list(control, fields),
            StatelessMethod::StreamList => self.stream_list(control, fields),
            StatelessMethod::AllStreams => self.all_streams(control, fields),
            StatelessMethod::Stream => self.stream(control, fields),
            StatelessMethod::AddStream => self.add_stream(control, fields, view),
            StatelessMethod::RemoveStream => self.remove_stream(control, fields),
            StatelessMethod::RemoveAllStreams => self.remove_all_streams(control, fields),
            StatelessMethod::StartTraffic => self.start_traffic(control, fields, view),
            StatelessMethod::StopTraffic => self.stop_traffic(control, fields),
            StatelessMethod::PushRemote => self.push_remote(control, fields),
            StatelessMethod::Validate => self.validate(control, fields),
            StatelessMethod::PauseTraffic => self.pause_traffic(control, fields, view),
            StatelessMethod::ResumeTraffic => self.resume_traffic(control, fields, view),
            StatelessMethod::UpdateTraffic => self.update_traffic(control, fields, view),
            StatelessMethod::PauseStreams => self.pause_streams(control, fields, view),
            StatelessMethod::ResumeStreams => self.resume_streams(control, fields, view),
            StatelessMethod::UpdateStreams => self.update_streams(control, fields, view),
            StatelessMethod::ActivePgids => self.active_pgids(),
            StatelessMethod::PgidStats => self.pgid_stats(fields, view),
            StatelessMethod::RemoveRxFilters => self.remove_rx_filters(control, fields),
            StatelessMethod::TpgStatus => tpg_status(control, fields),
        })
    }

    fn handle_report(
        &mut self,
        control: &mut Core,
        thread: usize,
        report: WorkerReport,
        now_ns: Nanos,
    ) -> ControlFlow<(), WorkerReport> {
        let WorkerReport::Streams(event) = report else {
            return ControlFlow::Continue(report);
        };
        self.note_worker_event(control, thread, event, now_ns);
        ControlFlow::Break(())
    }

    fn handle_lost_thread(&mut self, control: &mut Core, thread: usize, _: &[u8], now_ns: Nanos) {
        self.lose_thread(control, thread, now_ns);
    }

    fn handle_tick(&mut self, _control: &mut Core, _others: &mut Others<'_>, view: &View<'_>) {
        self.groups.read(view);
    }

    fn describe(&self, _control: &Core, _view: &View<'_>, catalog: &mut Catalog) {
        catalog.groups = self.groups.catalog();
        for (port, entry) in self.ports.iter().zip(&mut catalog.ports) {
            entry.is_sending |= port.state() >= State::Transmit;
            let profiles = port.profiles.iter();
            let used = profiles.filter(|(_, profile)| profile.state() != State::Idle);
            let used = used.map(|(name, profile)| CatalogProfile {
                name: name.clone(),
                streams: profile.streams.len(),
                is_running: profile.run.is_some(),
            });
            entry.profiles.extend(used);
        }
    }

    fn port_use(&self, _control: &Core, port: u8) -> PortUse {
        let state = self.ports[usize::from(port)].state();
        let is_running = state > State::Streams;
        PortUse {
            state: Some(state.name()),
            is_running,
            is_sending: state >= State::Transmit,
            // Packets have it in them.
            has_fixed_gateway: is_running,
        }
    }

    fn sends_from(&self, _control: &Core, port: u8, thread: usize) -> bool {
        self.ports[usize::from(port)].is_sent_on_by(thread)
    }

    fn sends_for(&self, scope: Scope, session: u32) -> bool {
        match scope {
            Scope::Port(port) => self.ports[usize::from(port)].sends_for(session),
            Scope::Mode => self.ports.iter().any(|port| port.sends_for(session)),
        }
    }

    fn is_transmitting(&self) -> bool {
        self.runs().next().is_some() || self.ports.iter().any(|port| port.playing.is_some())
    }

    fn halt(&mut self, control: &mut Core, scope: Scope, session: u32, _view: &View<'_>) {
        match scope {
            Scope::Port(port) => self.halt_port(control, port, session),
            Scope::Mode => {
                for port in control.stateful_ports() {
                    self.halt_port(control, port, session);
                }
            }
        }
    }

    fn leave_port(&mut self, control: &mut Core, port: u8) {
        let stopped = self.stop_profiles(control, port, ALL_PROFILES);
        stopped.expect("the port is there");
    }

    fn port_profiles(&self, port: u8) -> Option<PortProfiles> {
        let profiles = &self.ports[usize::from(port)].profiles;
        let ids = profiles
            .values()
            .filter_map(|p| p.streams.keys().next_back());
        Some(PortProfiles {
            names: profiles.keys().cloned().collect(),
            stream_id_max: ids.copied().max().unwrap_or(0),
        })
    }

    fn profile_state(&self, port: u8, profile: &str) -> Result<Option<ProfileStates>, Error> {
        let port = &self.ports[usize::from(port)];
        let state = |profile: &Profile| profile.state().name();
        if profile == ALL_PROFILES {
            let states = port.profiles.iter();
            let states = states.map(|(name, p)| (name.clone(), state(p)));
            return Ok(Some(ProfileStates::All(states.collect())));
        }
        Ok(Some(ProfileStates::One(state(port.profile(profile)?))))
    }

    fn profile_uses(&self, _control: &Core, scope: Scope, now_ns: Nanos) -> Vec<ProfileUse> {
        let Scope::Port(port) = scope else {
            return Vec::new();
        };
        let there = self.ports[usize::from(port)].profiles.iter();
        let there = there.filter(|(_, profile)| profile.state() != State::Idle);
        let used = there.map(|(name, profile)| ProfileUse {
            profile_id: name.clone(),
            state: ProfileState::Stateless(profile.state().name()),
            streams: Some(profile.streams.len()),
            run: profile.run.as_ref().map(|run| RunUse {
                running_s: seconds_since(run.start_at, now_ns),
                duration_s: run.duration_s,
                multiplier: run.factor,
            }),
        });
        used.collect()
    }
}

fn tpg_status(control: &Core, fields: &Fields<'_>) -> Reply {
    if let TpgStatus::Port(port) = TpgStatus::parse(fields)? {
        control.port(port)?;
    }
    reply(&TpgState {
        enabled: false,
        data: TpgData {
            acquired_ports: Vec::new(),
            rx_ports: Vec::new(),
            username: "-",
            num_tpgids: 0,
            num_tags: 0,
        },
    })
}
