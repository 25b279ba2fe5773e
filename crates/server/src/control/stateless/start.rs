//! Starts traffic: from the streams of a profile to a program for each data thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use allosaur_api::commands::traffic::{Multiplier, StartTraffic, Started};
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::{Error, Fields};
use allosaur_engine::stateless::StatelessCommand;
use allosaur_engine::stream::{
    CoreProgram, CoreShare, Profile as Compiled, ProfileRates, StreamPortInfo, StreamSpec,
};
use allosaur_engine::time::{Nanos, SECOND};

use super::checks::{check_line_rate, check_resolved, check_sendable};
use super::port::{Run, State, StreamPort, wrong_state};
use super::state::Stateless;
use crate::control::config::ControlConfig;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::port::Port;
use crate::control::reply::{Reply, reply};
use crate::control::time::START_LEAD;

/// How far ahead a start may be asked for: a day.
const START_AHEAD_MAX_S: f64 = 86_400.0;

impl Stateless {
    pub(super) fn start_traffic(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<StartTraffic>()?;
        let streams = self.port(control, params.port)?;
        streams.check_not_playing("start", &params.profile)?;
        self.begin_latency(control, params.port, &params.profile)?;
        let port = control.port(params.port)?;
        let streams = self.port(control, params.port)?;
        let start_at = start_time(&params, view.now_ns)?;
        let profile = streams.profile(&params.profile)?;
        profile.check_not_transmitting("start", &params.profile)?;
        if !params.force {
            port.check_link_up()?;
            check_resolved(port, profile)?;
        }
        let compiled = compile((port, streams), &params.profile, &control.config, "start")?;
        let shares = core_shares(port, params.core_mask)?;
        check_pinned(port, &compiled, &shares)?;
        let (rates, fixed) = (compiled.rates(), compiled.fixed_rates());
        let factor = factor(port, params.multiplier, rates, fixed)?;
        let l1_bps = l1_bps(&compiled, factor);
        let running = streams.profiles.values().filter_map(|p| p.run.as_ref());
        let others_bps: f64 = running.map(|run| run.l1_bps).sum();
        check_line_rate(port, others_bps + l1_bps, params.force)?;
        self.launch(
            control,
            &params,
            compiled,
            (&shares, factor),
            start_at,
            view,
        );
        reply(&Started {
            multiplier: factor,
            ts: start_at as f64 / 1e9,
        })
    }

    /// Tells the data threads, and everybody else.
    fn launch(
        &mut self,
        control: &mut Core,
        params: &StartTraffic,
        compiled: Compiled,
        (shares, factor): (&[CoreShare], f64),
        start_at: Nanos,
        view: &View<'_>,
    ) {
        let key = self.next_key();
        let seconds = params.duration_s.map(|s| (s * SECOND as f64) as Nanos);
        let port = &control.ports[usize::from(params.port)];
        let session = port.owner.as_ref().map_or(0, |owner| owner.session);
        let programs = programs(port, &compiled, factor, shares);
        let mut running = Vec::with_capacity(shares.len() + 1);
        for (core, program) in programs {
            let command = StatelessCommand::StartProfile {
                port: params.port,
                profile: key,
                program: Box::new(program),
                start_at,
                duration: seconds,
            };
            running.push(core);
            control.command(core, command);
        }
        let port = &mut self.ports[usize::from(params.port)];
        let first = port.state() != State::Transmit;
        port.profiles.entry(params.profile.clone()).or_default().run = Some(Run {
            key,
            running,
            stopping: false,
            l1_bps: l1_bps(&compiled, factor),
            compiled: Arc::new(compiled),
            factor,
            stream_factors: BTreeMap::new(),
            session,
            start_at,
            duration_s: params.duration_s,
            paused: false,
            changing: Vec::new(),
            changing_at: 0,
        });
        let (port, profile) = (params.port, params.profile.clone());
        control.queue_event(ApiEvent::ProfileStarted { port, profile }, view.now_ns);
        if first {
            control.queue_event(ApiEvent::PortStarted { port }, view.now_ns);
        }
    }
}

fn start_time(params: &StartTraffic, now_ns: Nanos) -> Result<Nanos, Error> {
    let Some(at_s) = params.start_at_s else {
        return Ok(now_ns + START_LEAD);
    };
    let now_s = now_ns as f64 / 1e9;
    if at_s <= now_s || at_s - now_s > START_AHEAD_MAX_S {
        return Err(Error::execution(format!(
            "start_at_ts is {at_s} and the server's clock is at {now_s}: give a later time \
             within a day, counted from what ping answers"
        )));
    }
    Ok((at_s * 1e9) as Nanos)
}

/// Compiles a profile for `command`.
pub(super) fn compile(
    (port, streams): (&Port, &StreamPort),
    name: &str,
    config: &ControlConfig,
    command: &str,
) -> Result<Compiled, Error> {
    let profile = streams.profile(name)?;
    if profile.state() == State::Idle {
        let remedy = "Add a stream to it first.";
        return Err(wrong_state(command, State::Idle, name, remedy));
    }
    let specs = profile.streams.values().map(|s| placed(&s.spec, port));
    let specs: Vec<StreamSpec> = specs.collect();
    check_sendable(port, name, &specs)?;
    let facts = StreamPortInfo {
        line_rate_bps: port.config.line_rate_bps,
        source_mac: port.config.hw_mac,
        destination_mac: port.layers.destination_mac(),
        checksums: port.config.checksums,
        data_cores: config.data_cores,
        marking: Some(config.marking),
        vxlan: port.reception.vxlan,
        tunnel: port.layers.tunnel(port.config.hw_mac),
    };
    let compiled = Compiled::compile(&specs, &facts);
    let compiled = compiled.map_err(|error| Error::execution(error.to_string()))?;
    if compiled.is_empty() {
        return Err(Error::execution(format!(
            "no stream of profile_id({name}) is enabled: enable one"
        )));
    }
    Ok(compiled)
}

/// A stream with the number of the data thread that it is pinned to; users count along those of
/// the port.
fn placed(spec: &StreamSpec, port: &Port) -> StreamSpec {
    let thread = |n: u8| port.threads[usize::from(n)] as u8;
    StreamSpec {
        core: spec.core.map(thread),
        ..spec.clone()
    }
}

/// The data threads that a core mask selects: bit n is the n-th of the port.
fn core_shares(port: &Port, mask: u64) -> Result<Vec<CoreShare>, Error> {
    let cores = port.cores()?;
    let selected = |n: usize| n < 64 && (mask >> n) & 1 == 1;
    let chosen: Vec<usize> = cores
        .iter()
        .enumerate()
        .filter(|(n, _)| selected(*n))
        .map(|(_, core)| *core)
        .collect();
    if chosen.is_empty() {
        let threads = match cores.len() {
            1 => "1 data thread, the lowest bit: set it".to_owned(),
            count => format!("{count} data threads, the lowest bits: set one of them"),
        };
        return Err(Error::execution(format!(
            "core_mask {mask:#x} selects no data thread: the port has {threads}, or start the \
             server with more (--cores)"
        )));
    }
    let cores = chosen.len();
    let share = |(rank, core)| CoreShare { core, rank, cores };
    Ok(chosen.into_iter().enumerate().map(share).collect())
}

/// What each data thread sends that has anything to send. Streams whose latency is measured leave
/// from the port's first one, also when the core mask leaves it out.
fn programs(
    port: &Port,
    compiled: &Compiled,
    factor: f64,
    shares: &[CoreShare],
) -> Vec<(usize, CoreProgram)> {
    let first = port.config.cores.first().copied();
    let is_in_mask = shares.first().map(|share| share.core) == first;
    let mut programs = Vec::with_capacity(shares.len() + 1);
    if let Some(first) = first.filter(|_| !is_in_mask) {
        programs.push((first, compiled.measured_program()));
    }
    programs.extend(shares.iter().map(|share| match is_in_mask {
        true => (share.core, compiled.core_program(factor, *share)),
        false => (share.core, compiled.shared_program(factor, *share)),
    }));
    programs.retain(|(_, program)| !program.is_empty());
    programs
}

fn check_pinned(port: &Port, compiled: &Compiled, shares: &[CoreShare]) -> Result<(), Error> {
    let left_out = |core: u8| shares.iter().all(|share| share.core != usize::from(core));
    match compiled.pinned().find(|(_, core)| left_out(*core)) {
        None => Ok(()),
        Some((stream, core)) => {
            let n = port
                .threads
                .iter()
                .position(|of_port| *of_port == usize::from(core));
            let n = n.unwrap_or(usize::from(core));
            Err(Error::execution(format!(
                "stream {stream}: field 'core_id' is {n}, which core_mask leaves out: set its bit"
            )))
        }
    }
}

/// What a profile needs of the line at a factor.
pub(super) fn l1_bps(compiled: &Compiled, factor: f64) -> f64 {
    compiled.fixed_rates().bps_l1_max + compiled.rates().bps_l1_max * factor
}

/// What `rates` must be multiplied by, so that they and the `fixed` ones are as `multiplier` says.
pub(super) fn factor(
    port: &Port,
    multiplier: Multiplier,
    rates: &ProfileRates,
    fixed: &ProfileRates,
) -> Result<f64, Error> {
    let line_bps = port.config.line_rate_bps;
    let bits_l1 = |bps| (bps, rates.bps_l1_max, fixed.bps_l1_max);
    let (wanted, base, fixed) = match multiplier {
        Multiplier::Factor(factor) => (factor, 1.0, 0.0),
        Multiplier::PacketsPerSecond(pps) => (pps, rates.pps_max, fixed.pps_max),
        Multiplier::BitsPerSecondL2(bps) => (bps, rates.bps_l2_max, fixed.bps_l2_max),
        Multiplier::BitsPerSecondL1(bps) => bits_l1(bps),
        Multiplier::Percent(percent) => bits_l1(percent / 100.0 * line_bps),
    };
    if base <= 0.0 && fixed > 0.0 {
        // There is nothing that a multiplier could change.
        return Ok(1.0);
    }
    if base <= 0.0 {
        return Err(Error::execution(
            "the profile sends nothing whose rate 'mul' could change: use mul type 'raw', or add \
             a stream that is no dummy and is not measured for latency",
        ));
    }
    if wanted <= fixed {
        return Err(Error::execution(format!(
            "'mul' asks for {wanted} in all, and the streams whose latency is measured, whose \
             rate is fixed, have {fixed} alone: ask for more"
        )));
    }
    let factor = (wanted - fixed) / base;
    if !factor.is_finite() {
        return Err(Error::execution(
            "'mul' is too large for so slow a profile: lower it, or raise the streams' rates",
        ));
    }
    Ok(factor)
}
