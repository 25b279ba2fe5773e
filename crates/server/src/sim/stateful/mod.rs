//! Stateful traffic in virtual time: the engines of a server, and a link between its ports.
//!
//! | what | where |
//! |---|---|
//! | which flows there are, and for how long | here |
//! | clients, servers, and the time | `world` |
//! | the link | `link` |
//! | a device that looks into frames | `faults` |
//! | what came of it | `outcome` |
//! | who sees the frames | `watch` |
//! | the ports' queues, random numbers | `queue`, `rng` |
//!
//! All that is random comes from one seed: the same plan gives the same frames, byte for byte.

mod faults;
mod link;
mod outcome;
mod queue;
mod rng;
mod watch;
mod world;

use std::sync::Arc;

use allosaur_engine::app::ProgramCommand;
use allosaur_engine::template::{CompiledProfile, Layout, ProfileSpec, Tunable};
use allosaur_engine::time::{Nanos, SECOND};

use crate::control::stateful::profile::StatefulError;
use crate::control::stateful::read_profile;
use crate::control::{CaptureFiles, NoFiles};

pub use faults::{Fault, FaultShare};
pub use link::{LinkCounters, LinkSettings};
pub use outcome::{GroupOutcome, Outcome, SideOutcome, Verdict};
pub use rng::SimRng;
pub use watch::{LinkWatch, Passing};
pub use world::{CLIENT_MAC, MTU_MAX, MTU_MIN, SERVER_MAC, SimSettings, World};

/// How long flows that are cut off may take to say so.
const CUT: Nanos = SECOND;

/// What shall happen.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What rates are multiplied by.
    pub factor: f64,
    /// How long flows begin; `None` is until all templates have reached their limits.
    pub duration: Option<Nanos>,
    /// Flows of each template at most.
    pub flows: Option<u32>,
    /// How long after `duration` (or, without one, after the beginning) flows may take.
    pub patience: Nanos,
    /// All flows in IPv6, whatever the profile says.
    pub ipv6: bool,
    /// The machine.
    pub settings: SimSettings,
}

impl Plan {
    /// One flow of each template.
    pub fn basic(settings: SimSettings) -> Plan {
        Plan {
            factor: 1.0,
            duration: None,
            flows: Some(1),
            patience: 600 * SECOND,
            ipv6: false,
            settings,
        }
    }
}

/// A profile that is ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What runs.
    pub profile: Arc<CompiledProfile>,
    /// Some of its programs end flows by a reset.
    pub resets: bool,
}

/// Reads and compiles a profile, as this plan wants it; it must name no files.
///
/// # Errors
/// What is wrong with the profile.
pub fn compile(text: &str, plan: &Plan) -> Result<Prepared, StatefulError> {
    compile_with(text, plan, &NoFiles)
}

/// The same, with the files that it names.
///
/// # Errors
/// What is wrong with the profile.
pub fn compile_with(
    text: &str,
    plan: &Plan,
    files: &dyn CaptureFiles,
) -> Result<Prepared, StatefulError> {
    let mut read = read_profile::read(text)?;
    if let Some(pool) = read.spec.pools.iter().position(|pool| pool.hosts.is_some()) {
        return Err(StatefulError::NotEmulated(pool));
    }
    prepare(&mut read.spec, plan);
    let layout = Layout {
        cores: plan.settings.cores,
        pairs: 1,
    };
    let compiled = read.compile(layout, files)?;
    let mut commands = read
        .spec
        .programs
        .iter()
        .flat_map(|program| &program.commands);
    Ok(Prepared {
        profile: Arc::new(compiled),
        resets: commands.any(|command| *command == ProgramCommand::Reset),
    })
}

fn prepare(spec: &mut ProfileSpec, plan: &Plan) {
    if plan.ipv6 {
        spec.client.set(Tunable::Ipv6Enable, 1);
        spec.server.set(Tunable::Ipv6Enable, 1);
    }
    let Some(flows) = plan.flows else {
        return;
    };
    for template in &mut spec.templates {
        let client = &mut template.client;
        client.limit = Some(client.limit.map_or(flows, |limit| limit.min(flows)));
        client.continuous = false;
    }
}

/// Runs a profile to its end. `watch` sees all frames.
pub fn simulate(prepared: &Prepared, plan: &Plan, watch: impl LinkWatch) -> Outcome {
    let mut world = World::new(&plan.settings, watch);
    world.start(&prepared.profile, plan.factor, plan.duration);
    let is_over = world.run_until(plan.duration.unwrap_or(0).saturating_add(plan.patience));
    let (left, in_time_wait) = (world.flows(), world.flows_in_time_wait());
    if !is_over {
        world.cut();
        world.run_until(world.passed() + CUT);
    }
    Outcome::of(&world, prepared, plan, [left, in_time_wait])
}
