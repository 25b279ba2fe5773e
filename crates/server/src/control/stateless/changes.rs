//! Commands that change traffic while it runs: pause, resume and update, of profiles and of single
//! streams.
//!
//! All data threads are told the same time, a little ahead, from when on the change holds. A pause
//! is answered when they have said that it does.

use std::collections::BTreeSet;

use allosaur_api::commands::changes::{StreamsParams, UpdateStreams, UpdateTraffic, Updated};
use allosaur_api::commands::traffic::{Multiplier, MultiplierOperation, ProfileParams};
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::stateless::{Change, StatelessCommand};
use allosaur_engine::stream::{ProfileRates, StreamId};
use allosaur_engine::time::Nanos;

use super::checks::check_line_rate;
use super::port::{Profile, Run, State, StreamPort, wrong_state};
use super::start::{factor, l1_bps};
use super::state::Stateless;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};
use crate::control::time::START_LEAD;

impl Stateless {
    pub(super) fn pause_traffic(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let ProfileParams { port, profile } = fields.read::<ProfileParams>()?;
        self.port(control, port)?
            .check_not_playing("pause", &profile)?;
        let found = self.port_mut(control, port)?.profile_mut(&profile)?;
        check_state(found, "pause", &[State::Transmit], &profile)?;
        let run = running(found, "pause", &profile)?;
        check_pausable(run, &profile)?;
        run.paused = true;
        self.change(control, port, &profile, Change::Pause, Wait::Yes, view);
        let all_paused = self.port(control, port)?.state() == State::Pause;
        control.queue_event(ApiEvent::ProfilePaused { port, profile }, view.now_ns);
        if all_paused {
            control.queue_event(ApiEvent::PortPaused { port }, view.now_ns);
        }
        reply(&Empty {})
    }

    pub(super) fn resume_traffic(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let ProfileParams { port, profile } = fields.read::<ProfileParams>()?;
        self.port(control, port)?
            .check_not_playing("resume", &profile)?;
        let all_paused = self.port(control, port)?.state() == State::Pause;
        let found = self.port_mut(control, port)?.profile_mut(&profile)?;
        check_state(found, "resume", &[State::Pause], &profile)?;
        running(found, "resume", &profile)?.paused = false;
        self.change(control, port, &profile, Change::Resume, Wait::No, view);
        control.queue_event(ApiEvent::ProfileResumed { port, profile }, view.now_ns);
        if all_paused {
            control.queue_event(ApiEvent::PortResumed { port }, view.now_ns);
        }
        reply(&Empty {})
    }

    pub(super) fn update_traffic(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<UpdateTraffic>()?;
        let streams = self.port(control, params.port)?;
        streams.check_not_playing("update", &params.profile)?;
        let (profile, run) = to_update(streams, &params.profile)?;
        let port = control.port(params.port)?;
        check_state(profile, "update", RUNNING, &params.profile)?;
        // What is added or taken off is of the rates that can change.
        let fixed = match params.rate.op {
            MultiplierOperation::Absolute => *run.compiled.fixed_rates(),
            MultiplierOperation::Add | MultiplierOperation::Subtract => ProfileRates::default(),
        };
        let wanted = Multiplier::new(params.rate.unit, params.rate.value);
        let wanted = factor(port, wanted, run.compiled.rates(), &fixed)?;
        let multiplier = match params.rate.op {
            MultiplierOperation::Absolute => wanted,
            MultiplierOperation::Add => run.factor + wanted,
            MultiplierOperation::Subtract => run.factor - wanted,
        };
        if multiplier <= 0.0 {
            return Err(Error::execution(format!(
                "'mul' takes {wanted} off a factor of {}, which leaves no rate: take less, or \
                 pause the traffic",
                run.factor
            )));
        }
        let l1_bps = l1_bps(&run.compiled, multiplier);
        check_line_rate(port, others_bps(streams, run) + l1_bps, params.force)?;
        let run = self.run_mut(control, params.port, &params.profile, "update")?;
        run.factor = multiplier;
        run.stream_factors.clear();
        run.l1_bps = l1_bps;
        let change = Change::Update(multiplier);
        self.change(
            control,
            params.port,
            &params.profile,
            change,
            Wait::No,
            view,
        );
        reply(&Updated { multiplier })
    }

    pub(super) fn pause_streams(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<StreamsParams>()?;
        let run = self.run_for_streams(control, &params, "pause_streams")?;
        check_pausable(run, &params.profile)?;
        let change = Change::PauseStreams(params.stream_ids.into());
        self.change(
            control,
            params.port,
            &params.profile,
            change,
            Wait::Yes,
            view,
        );
        reply(&Empty {})
    }

    pub(super) fn resume_streams(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<StreamsParams>()?;
        self.run_for_streams(control, &params, "resume_streams")?;
        let change = Change::ResumeStreams(params.stream_ids.into());
        self.change(
            control,
            params.port,
            &params.profile,
            change,
            Wait::No,
            view,
        );
        reply(&Empty {})
    }

    pub(super) fn update_streams(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<UpdateStreams>()?;
        let streams = &params.streams();
        let run = self.run_for_streams(control, streams, "update_streams")?;
        check_updatable(run, &streams.stream_ids)?;
        let port = control.port(streams.port)?;
        let of_port = self.port(control, streams.port)?;
        let (_, run) = to_update(of_port, &streams.profile)?;
        let mut factors = run.stream_factors.clone();
        let mut changed = Vec::with_capacity(streams.stream_ids.len());
        let rates = run.compiled.stream_rates();
        let fixed_ids: BTreeSet<StreamId> = run.compiled.fixed_streams().collect();
        // As in TRex, the rate of a stream whose latency is measured stays as it is.
        let changes =
            |id: &StreamId| streams.stream_ids.binary_search(id).is_ok() && !fixed_ids.contains(id);
        for (id, rates) in rates.filter(|(id, _)| changes(id)) {
            let fixed = ProfileRates::default();
            let factor = factor(port, params.multiplier, &rates, &fixed)?;
            factors.insert(id, factor);
            changed.push((id, factor));
        }
        changed.sort_unstable_by_key(|(id, _)| *id);
        let of = |id: StreamId| factors.get(&id).copied().unwrap_or(run.factor);
        let l1_bps = run.compiled.rates_at(of).bps_l1_max;
        check_line_rate(port, others_bps(of_port, run) + l1_bps, params.force)?;
        let run = self.run_mut(control, streams.port, &streams.profile, "update_streams")?;
        run.stream_factors = factors;
        run.l1_bps = l1_bps;
        let multiplier = changed.first().map_or(run.factor, |(_, factor)| *factor);
        let change = Change::UpdateStreams(changed.into());
        self.change(
            control,
            streams.port,
            &streams.profile,
            change,
            Wait::No,
            view,
        );
        reply(&Updated { multiplier })
    }

    /// The run that streams are to be changed in; each of them is there.
    fn run_for_streams(
        &mut self,
        control: &Core,
        params: &StreamsParams,
        command: &str,
    ) -> Result<&mut Run, Error> {
        let name = &params.profile;
        self.port(control, params.port)?
            .check_not_playing(command, name)?;
        let profile = self.port_mut(control, params.port)?.profile_mut(name)?;
        check_state(profile, command, RUNNING, name)?;
        let sent = |id: &StreamId| profile.streams.get(id).is_some_and(|s| s.spec.enabled);
        if let Some(id) = params.stream_ids.iter().find(|id| !sent(id)) {
            return Err(Error::execution(format!(
                "stream {id} is not sent by profile_id({name}): name streams that were added to \
                 it and are enabled"
            )));
        }
        running(profile, command, name)
    }

    fn run_mut(
        &mut self,
        control: &Core,
        port: u8,
        name: &str,
        command: &str,
    ) -> Result<&mut Run, Error> {
        let profile = self.port_mut(control, port)?.profile_mut(name)?;
        running(profile, command, name)
    }

    /// Tells the data threads that still send the profile.
    fn change(
        &mut self,
        control: &mut Core,
        port: u8,
        name: &str,
        change: Change,
        wait: Wait,
        view: &View<'_>,
    ) {
        let found = self.ports[usize::from(port)].profiles.get_mut(name);
        let Some(run) = found.and_then(|profile| profile.run.as_mut()) else {
            return;
        };
        let at = view.now_ns + START_LEAD;
        if wait == Wait::Yes {
            run.changing = run.running.clone();
            run.changing_at = at;
            let key = run.key;
            control.pendings.await_change(key);
        }
        for &core in &run.running {
            let command = StatelessCommand::ChangeProfile {
                port,
                profile: run.key,
                at,
                change: change.clone(),
            };
            control.command(core, command);
        }
    }
}

/// Whether the reply waits for the data threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

impl Run {
    /// A data thread has changed what it was told to change.
    pub(super) fn note_changed(&mut self, core: usize, at: Nanos) {
        if at < self.changing_at || self.changing.is_empty() {
            return;
        }
        self.changing.retain(|changing| *changing != core);
    }
}

/// The states of a profile that runs.
const RUNNING: &[State] = &[State::Transmit, State::Pause];

fn check_state(
    profile: &Profile,
    command: &str,
    allowed: &[State],
    name: &str,
) -> Result<(), Error> {
    let state = profile.state();
    if profile.run.as_ref().is_some_and(|run| run.stopping) {
        return Err(wrong_state(command, state, name, "It is still stopping."));
    }
    if allowed.contains(&state) {
        return Ok(());
    }
    let remedy = match state {
        State::Idle => "Add streams to it and start it first.",
        State::Streams => "Start it first.",
        State::Transmit | State::Playing => "Pause it first.",
        State::Pause => "It is paused already: resume_traffic lets it go on.",
    };
    Err(wrong_state(command, state, name, remedy))
}

fn running<'a>(profile: &'a mut Profile, command: &str, name: &str) -> Result<&'a mut Run, Error> {
    let state = profile.state();
    let run = profile.run.as_mut();
    run.ok_or_else(|| wrong_state(command, state, name, "Start it first."))
}

fn to_update<'a>(streams: &'a StreamPort, name: &str) -> Result<(&'a Profile, &'a Run), Error> {
    let profile = streams.profile(name)?;
    let missing = || wrong_state("update", profile.state(), name, "Start it first.");
    let run = profile.run.as_ref().ok_or_else(missing)?;
    Ok((profile, run))
}

/// What the other profiles of the port may need of the line.
fn others_bps(streams: &StreamPort, run: &Run) -> f64 {
    let runs = streams.profiles.values().filter_map(|p| p.run.as_ref());
    let others = runs.filter(|other| other.key != run.key);
    others.map(|other| other.l1_bps).sum()
}

/// As in TRex, pausing is for profiles that would go on until they are stopped.
fn check_pausable(run: &Run, name: &str) -> Result<(), Error> {
    if let Some(stream) = run.compiled.bursts().next() {
        return Err(Error::execution(format!(
            "stream {stream} of profile_id({name}) is not continuous, and nothing of a profile can \
             be paused unless all its streams are: stop the traffic, or put its bursts into \
             another profile"
        )));
    }
    if run.duration_s.is_some() {
        return Err(Error::execution(format!(
            "profile_id({name}) was started with a duration, and nothing of such a profile can be \
             paused: start it with duration -1"
        )));
    }
    Ok(())
}

fn check_updatable(run: &Run, ids: &[StreamId]) -> Result<(), Error> {
    let mut bursts = run.compiled.bursts();
    match bursts.find(|id| ids.binary_search(id).is_ok()) {
        None => Ok(()),
        Some(id) => Err(Error::execution(format!(
            "stream {id} is not continuous, and only continuous streams can be updated: leave it \
             out of stream_ids"
        ))),
    }
}
