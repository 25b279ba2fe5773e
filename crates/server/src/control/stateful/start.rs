//! Starting, changing and stopping stateful traffic.

use std::collections::HashSet;
use std::sync::Arc;

use allosaur_api::commands::stateful::profiles::StatefulProfile;
use allosaur_api::commands::stateful::runs::{StartProfile, UpdateProfile};
use allosaur_api::events::StatefulPhase;
use allosaur_api::limits::STATEFUL_PROFILES_MAX;
use allosaur_api::{Error, Fields};
use allosaur_engine::stateful::{EndCause, RUNS_MAX, RunIndex, RunLimits, StatefulCommand};
use allosaur_engine::template::{CompiledProfile, Layout};
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::Value;

use super::compile_profile::CompileProfile;
use super::figures::{Both, Readings, TableTotals};
use super::hosts::{HostSearch, are_all_hosts};
use super::loaded::{Starting, wrong_state};
use super::records::Records;
use super::run::Run;
use super::state::Stateful;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::pending::Wait;
use crate::control::reply::Reply;
use crate::control::time::START_LEAD;
use crate::control::worker_command::FlowCommand;
use crate::counters::RunBlock;

// A start finds a number as long as not all of them are taken.
const _: () = assert!(STATEFUL_PROFILES_MAX < RUNS_MAX as usize);

/// For so long after its end, who stops traffic is told that it ended.
const END_REPEATED_MAX: Nanos = 2 * SECOND;
/// Flows of a run that was stopped may take so long to end, unless `t_duration` says otherwise: TRex's
/// client waits for them without an end, and some flows would never end by themselves.
const STOPPED_CLOSE_MAX: Nanos = 5 * SECOND;
/// Why traffic that was asked for does not begin, as TRex's server begins the sentence.
const PARSE_PROBLEM: &str = "Profile parsing error: ";

impl Stateful {
    pub(super) fn start_profile(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params: StartProfile = fields.read()?;
        let name = &params.profile;
        let profile = self.profile(name)?;
        if profile.phase != StatefulPhase::Loaded {
            return Err(wrong_state("start", profile, name));
        }
        self.check_live_cores(control).map_err(Error::execution)?;
        let profile = self.profile_mut(name)?;
        profile.factor_updated = None;
        let compiled = profile.compiled[usize::from(params.ipv6)].clone();
        // Other ports may have flows now than when it was understood.
        let compiled = compiled.filter(|(layout, _)| *layout == self.flow_layout(control));
        match compiled {
            Some((_, compiled)) => self.build(control, &params, compiled, view),
            None => self.begin_compile(control, params, view.now_ns),
        }
        Ok(Value::Null)
    }

    /// Has the profile's text understood, and starts it then.
    fn begin_compile(&mut self, control: &mut Core, params: StartProfile, now_ns: Nanos) {
        let name = params.profile.clone();
        let layout = self.flow_layout(control);
        self.set_phase(control, &name, StatefulPhase::Parse, now_ns);
        let profile = self.profiles.get_mut(&name).expect("it was there");
        let text = profile.text.as_ref().expect("it is loaded");
        let work = CompileProfile {
            text: Arc::clone(&text.text),
            ipv6: params.ipv6,
            layout,
        };
        let job = self.awaited.begin_job_aside(
            control,
            work,
            move |stateful, control, compiled, view| {
                stateful.note_compiled(control, &params, compiled, view);
                Ok(Value::Null)
            },
        );
        let session = control.mode_owner.as_ref().map_or(0, |owner| owner.session);
        let profile = self.profiles.get_mut(&name).expect("it was there");
        profile.starting = Some(Starting {
            wait: Wait::Job(job),
            session,
            until: None,
        });
    }

    fn note_compiled(
        &mut self,
        control: &mut Core,
        params: &StartProfile,
        compiled: Result<Arc<CompiledProfile>, String>,
        view: &View<'_>,
    ) {
        let name = &params.profile;
        let layout = self.flow_layout(control);
        let Some(profile) = self.profiles.get_mut(name) else {
            return;
        };
        profile.starting = None;
        match compiled {
            Ok(compiled) => {
                profile.compiled[usize::from(params.ipv6)] = Some((layout, Arc::clone(&compiled)));
                self.build(control, params, compiled, view);
            }
            Err(problem) => {
                let problem = format!("{PARSE_PROBLEM}{problem}");
                self.move_on(
                    control,
                    name,
                    StatefulPhase::Loaded,
                    Some(problem),
                    view.now_ns,
                );
            }
        }
    }

    fn check_live_cores(&self, control: &Core) -> Result<(), String> {
        match control.live_cores().is_empty() {
            true => {
                Err("no port has a data thread left, they broke down: restart the server".into())
            }
            false => Ok(()),
        }
    }

    /// Starts what is understood, or tells why not.
    fn build(
        &mut self,
        control: &mut Core,
        params: &StartProfile,
        profile: Arc<CompiledProfile>,
        view: &View<'_>,
    ) {
        let name = &params.profile;
        self.set_phase(control, name, StatefulPhase::Build, view.now_ns);
        match HostSearch::of(params, &profile) {
            Some(search) => self.search_hosts(control, search, view),
            None => self.launch_checked(control, params, profile, view),
        }
    }

    /// Starts what is whole, or tells why not.
    pub(super) fn launch_checked(
        &mut self,
        control: &mut Core,
        params: &StartProfile,
        profile: Arc<CompiledProfile>,
        view: &View<'_>,
    ) {
        let name = &params.profile;
        let links = match are_all_hosts(&profile) {
            true => Ok(()),
            false => self.check_links(control, params.client_mask),
        };
        let checked = self
            .check_live_cores(control)
            .and(links)
            .and_then(|()| self.start_latency_with(control, view, params, &profile));
        match checked {
            Ok(()) => self.launch_flows(control, params, profile, view),
            Err(problem) => {
                self.move_on(
                    control,
                    name,
                    StatefulPhase::Loaded,
                    Some(problem),
                    view.now_ns,
                );
            }
        }
    }

    /// Tells the data threads, and everybody else.
    fn launch_flows(
        &mut self,
        control: &mut Core,
        params: &StartProfile,
        profile: Arc<CompiledProfile>,
        view: &View<'_>,
    ) {
        let name = &params.profile;
        let before = self.profiles.get_mut(name).and_then(|p| p.run.take());
        if let Some(before) = before {
            self.forget_run(control, &before);
        }
        self.begin_epoch(view);
        let cores = control.live_cores();
        let mut run = self.new_run(control, params, profile, &cores, view);
        let updated = self.profiles.get(name).and_then(|p| p.factor_updated);
        run.factor = updated.unwrap_or(run.factor);
        self.send_links(control, &cores);
        let clients = self.clients_of(control, params.client_mask);
        for (&core, block) in cores.iter().zip(&run.blocks) {
            let (run, block) = (run.index, Arc::clone(block));
            control.command_flows(core, FlowCommand::Publish { run, block });
        }
        for &core in &cores {
            control.command_flows(
                core,
                FlowCommand::Command(start_command(params, clients, &run)),
            );
            if let Some(interval_s) = params.record_interval_s {
                let interval = Some(Records::interval(interval_s));
                let run = run.index;
                control.command_flows(core, FlowCommand::Sample { run, interval });
            }
        }
        let profile = self.profiles.get_mut(name).expect("it was there");
        profile.epoch += 1;
        profile.run = Some(run);
        self.set_phase(control, name, StatefulPhase::Transmit, view.now_ns);
    }

    /// When nothing runs, what begins now begins a new epoch: sums count from here.
    fn begin_epoch(&mut self, view: &View<'_>) {
        let busy = [StatefulPhase::Transmit, StatefulPhase::Cleanup];
        let mut profiles = self.profiles.values();
        if profiles.any(|profile| busy.contains(&profile.phase)) {
            return;
        }
        self.epoch += 1;
        self.retired = Both::default();
        self.tables_before = TableTotals::of(view.snapshot);
    }

    fn new_run(
        &mut self,
        control: &Core,
        params: &StartProfile,
        profile: Arc<CompiledProfile>,
        cores: &[usize],
        view: &View<'_>,
    ) -> Run {
        let groups = profile.groups().len() + 1;
        let rows = profile.application_rows().len();
        let start_at = view.now_ns + START_LEAD;
        Run {
            index: self.free_run_index(),
            blocks: cores
                .iter()
                .map(|_| Arc::new(RunBlock::new(groups, rows)))
                .collect(),
            running: cores.to_vec(),
            factor: params.factor,
            share: self.client_share(control, params.client_mask),
            // How long flows may take has precedence.
            no_close: params.no_close && params.close_s_max.is_none(),
            has_close_limit: params.close_s_max.is_some(),
            abort_at: None,
            session: control.mode_owner.as_ref().map_or(0, |owner| owner.session),
            start_at,
            duration_s: params.duration_s,
            ended_at: None,
            cause: EndCause::Done,
            server_epoch: self.epoch,
            tables: (TableTotals::of(view.snapshot), None),
            readings: Readings::begin(groups, start_at),
            records: Records::default(),
            profile,
        }
    }

    /// A number that no run has. There are more numbers than profiles.
    fn free_run_index(&mut self) -> RunIndex {
        let runs = self.profiles.values();
        let used: HashSet<RunIndex> = runs.filter_map(|p| Some(p.run.as_ref()?.index)).collect();
        loop {
            self.last_index = RunIndex((self.last_index.0 + 1) % RUNS_MAX);
            if !used.contains(&self.last_index) {
                return self.last_index;
            }
        }
    }

    pub(super) fn stop_profile(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let StatefulProfile { profile: name } = fields.read()?;
        self.profile(&name)?;
        self.stop_flows(control, &name, view);
        Ok(Value::Null)
    }

    /// Stops the stateful traffic that a session has started, as `stop` does.
    pub(in crate::control) fn stop_flows_of(
        &mut self,
        control: &mut Core,
        session: u32,
        view: &View<'_>,
    ) {
        let profiles = self.profiles.iter();
        let its = profiles.filter(|(_, profile)| profile.is_sending_for(session));
        let its: Vec<String> = its.map(|(name, _)| name.clone()).collect();
        for name in its {
            if !profile_is(self, &name, StatefulPhase::Cleanup) {
                self.stop_flows(control, &name, view);
            }
        }
    }

    /// Whether there are flows of profiles that a session has started.
    pub(in crate::control) fn has_flows_of(&self, session: u32) -> bool {
        let mut profiles = self.profiles.values();
        profiles.any(|profile| profile.is_sending_for(session))
    }

    /// Ends all flows at once, and what measures latency beside them.
    pub(in crate::control) fn abort_flows(&mut self, control: &mut Core, view: &View<'_>) {
        let profiles = self.profiles.iter();
        let busy = profiles.filter(|(_, profile)| profile.is_busy());
        let busy: Vec<String> = busy.map(|(name, _)| name.clone()).collect();
        for name in busy {
            if !profile_is(self, &name, StatefulPhase::Cleanup) {
                self.stop_flows(control, &name, view);
            }
            self.send_stop(control, &name, true, None);
        }
        self.end_all_latency(control);
    }

    /// A profile that has flows, or may begin some.
    pub(in crate::control) fn busy_profile(&self) -> Option<String> {
        let mut profiles = self.profiles.iter();
        let busy = profiles.find(|(_, profile)| profile.is_busy());
        busy.map(|(name, _)| name.clone())
    }

    fn stop_flows(&mut self, control: &mut Core, name: &str, view: &View<'_>) {
        let Some(profile) = self.profiles.get(name) else {
            return;
        };
        if let Some(starting) = profile.starting {
            self.stop_starting(control, name, starting.wait, view.now_ns);
            return;
        }
        let Some(run) = profile.run.as_ref().filter(|_| profile.is_busy()) else {
            self.repeat_the_end(control, name, view.now_ns);
            return;
        };
        // Who stops what is stopping already does not want to wait for its flows.
        let abort = run.no_close || profile.phase == StatefulPhase::Cleanup;
        let patient = !abort && !run.has_close_limit;
        let abort_at = patient.then_some(view.now_ns + STOPPED_CLOSE_MAX);
        self.send_stop(control, name, abort, abort_at);
        self.end_latency_with(control, name);
        if profile_is(self, name, StatefulPhase::Transmit) {
            self.set_phase(control, name, StatefulPhase::Cleanup, view.now_ns);
        }
    }

    /// A profile that would have started shall not; clients expect the states of one that ends.
    fn stop_starting(&mut self, control: &mut Core, name: &str, wait: Wait, now_ns: Nanos) {
        self.awaited.forget(wait);
        if let Some(profile) = self.profiles.get_mut(name) {
            profile.starting = None;
        }
        self.set_phase(control, name, StatefulPhase::Cleanup, now_ns);
        self.set_phase(control, name, StatefulPhase::Loaded, now_ns);
    }

    /// Ends the flows of runs that were stopped long enough ago.
    pub(in crate::control) fn abort_slow_runs(&mut self, control: &mut Core, now_ns: Nanos) {
        let is_due = |at: Nanos| at <= now_ns;
        let profiles = self.profiles.iter();
        let slow = profiles.filter(|(_, profile)| {
            let abort_at = profile.run.as_ref().and_then(|run| run.abort_at);
            abort_at.is_some_and(is_due)
        });
        let slow: Vec<String> = slow.map(|(name, _)| name.clone()).collect();
        for name in slow {
            tracing::info!(
                profile = name,
                "its flows did not end after stop: ending them"
            );
            self.send_stop(control, &name, true, None);
        }
    }

    fn send_stop(&mut self, control: &mut Core, name: &str, abort: bool, abort_at: Option<Nanos>) {
        let profile = self.profiles.get_mut(name);
        let Some(run) = profile.and_then(|profile| profile.run.as_mut()) else {
            return;
        };
        run.abort_at = abort_at;
        let (index, running) = (run.index, run.running.clone());
        for core in running {
            let command = StatefulCommand::Stop { run: index, abort };
            control.command_flows(core, FlowCommand::Command(command));
        }
    }

    /// Traffic ended by itself just before it was stopped. TRex's client waits for it to end, and
    /// may have overlooked that it did: it is told once more.
    fn repeat_the_end(&mut self, control: &mut Core, name: &str, now_ns: Nanos) {
        let profile = self.profiles.get(name);
        let profile = profile.filter(|profile| profile.phase == StatefulPhase::Loaded);
        let ended_at = profile.and_then(|profile| profile.run.as_ref()?.ended_at);
        if ended_at.is_some_and(|at| at + END_REPEATED_MAX >= now_ns) {
            self.set_phase(control, name, StatefulPhase::Cleanup, now_ns);
            self.set_phase(control, name, StatefulPhase::Loaded, now_ns);
        }
    }

    /// Changes the rates of what runs, or of what is about to: TRex's console does not wait until what it started
    /// runs, so the next command of a batch may come before.
    pub(super) fn update_profile(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params: UpdateProfile = fields.read()?;
        let name = &params.profile;
        let profile = self.profile_mut(name)?;
        let is_starting = matches!(profile.phase, StatefulPhase::Parse | StatefulPhase::Build);
        if !is_starting && profile.phase != StatefulPhase::Transmit {
            return Err(wrong_state("update", profile, name));
        }
        let factor = params.factor;
        if !(factor.is_finite() && factor > 0.0) {
            return Err(Error::execution(format!(
                "Ratio between current rate and new one is invalid. 'mult' is {factor}: give a \
                 number above 0"
            )));
        }
        if is_starting {
            profile.factor_updated = Some(factor);
            return Ok(Value::Null);
        }
        let run = profile.run.as_mut().expect("what transmits has a run");
        run.factor = factor;
        let (index, running) = (run.index, run.running.clone());
        for core in running {
            let command = StatefulCommand::Update { run: index, factor };
            control.command_flows(core, FlowCommand::Command(command));
        }
        Ok(Value::Null)
    }

    /// On how many data threads and pairs of ports profiles run.
    pub(super) fn flow_layout(&self, control: &Core) -> Layout {
        let clients = self.client_ports(control);
        let cores = clients
            .iter()
            .map(|port| control.ports[usize::from(*port)].threads.len());
        Layout {
            cores: cores.max().unwrap_or(1).max(1) as u32,
            pairs: clients.len().max(1) as u32,
        }
    }

    /// The client ports that take part, as data threads are told: where there are none, servers run until they are
    /// stopped.
    fn clients_of(&self, control: &Core, mask: u32) -> u32 {
        let clients = self.client_ports(control);
        mask & clients.iter().fold(0, |bits, port| bits | 1 << port)
    }

    /// How much of all connections the selected client ports have.
    fn client_share(&self, control: &Core, mask: u32) -> f64 {
        let clients = self.client_ports(control);
        let chosen = clients.iter().filter(|port| mask >> **port & 1 == 1);
        chosen.count() as f64 / clients.len().max(1) as f64
    }
}

fn profile_is(stateful: &Stateful, name: &str, phase: StatefulPhase) -> bool {
    let profile = stateful.profiles.get(name);
    profile.is_some_and(|profile| profile.phase == phase)
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64) as Nanos
}

fn start_command(params: &StartProfile, clients: u32, run: &Run) -> StatefulCommand {
    // What is told of the end of flows has precedence over ending them at once.
    let at_once = params.no_close.then_some(0.0);
    let limits = RunLimits {
        establish_max: params.establish_s_max.map(nanos),
        close_max: params.close_s_max.or(at_once).map(nanos),
    };
    StatefulCommand::Start {
        run: run.index,
        profile: Arc::clone(&run.profile),
        factor: run.factor,
        start_at: run.start_at,
        duration: params.duration_s.map(nanos),
        clients,
        limits,
    }
}
