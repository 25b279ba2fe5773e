//! A profile, checked and resolved: what a data thread needs, the same for all of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::{PoolProblem, ProfileError, TemplateProblem};
use super::hosts::{HostNetwork, HostTable};
use super::pool::{AddressRange, PoolShare};
use super::servers::{PayloadKey, Servers, TemplateIndex, value_at};
use super::spec::{
    AssociationSpec, GROUP_NAME_BYTES_MAX, L7_OFFSETS_MAX, L7Map, PerCore, PoolSpec, ProfileSpec,
    Side, TemplateSpec,
};
use super::tunables::{SideTunables, Tunable, TunablesSpec};
use crate::app::{
    Addon, AppRow, ApplicationFactory, Buffers, DrawsSpec, Program, ProgramCommand, Surroundings,
    Transport,
};

/// Most templates of a profile.
pub const TEMPLATES_MAX: usize = 20_000;
/// Most programs of a profile.
pub const PROGRAMS_MAX: usize = 65_535;
/// Most pools of a profile.
pub const POOLS_MAX: usize = 10_000;
/// Fastest template, in connections per second before the multiplier.
const RATE_CPS_MAX: f64 = 1e9;

/// What a profile will run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Data cores of each pair of ports.
    pub cores: u32,
    /// Pairs of ports.
    pub pairs: u32,
}

impl Layout {
    /// One core, two ports.
    pub const SMALLEST: Layout = Layout { cores: 1, pairs: 1 };
}

/// The number of a program in its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramIndex(pub u16);

/// A profile that is right. It never changes; data threads share it.
#[derive(Clone, Debug)]
pub struct CompiledProfile {
    buffers: Arc<Buffers>,
    programs: Vec<Program>,
    pools: Vec<PoolSpec>,
    templates: Vec<Template>,
    servers: Servers,
    groups: Vec<String>,
    members: Vec<Vec<TemplateIndex>>,
    client: SideTunables,
    server: SideTunables,
    rampup_s: Option<u32>,
    /// What applications over bytes count: of each kind, its rows.
    row_lists: Vec<&'static [AppRow]>,
}

/// One kind of flows.
#[derive(Clone, Debug)]
pub struct Template {
    /// The client's side.
    pub client: ClientTemplate,
    /// The server's side.
    pub server: ServerTemplate,
    /// What carries it.
    pub transport: Transport,
    /// The number of its group; 0 is none.
    pub group: u16,
    /// Bytes that both programs send, each command once: what is expected of a flow.
    pub bytes: u64,
}

/// The client's side of a template.
#[derive(Clone, Debug)]
pub struct ClientTemplate {
    /// What it says.
    pub program: ProgramIndex,
    /// The number of the pool that its addresses are from.
    pub client_pool: usize,
    /// The number of the pool that its servers' addresses are from.
    pub server_pool: usize,
    /// The port that it asks for.
    pub port: u16,
    /// Connections per second at a multiplier of 1; 0 for flows that only programs make.
    pub rate_cps: f64,
    /// Flows in all, of all cores; see [`PoolShare::part_of`].
    pub limit: Option<u32>,
    /// A flow that ends is replaced.
    pub continuous: bool,
    /// Which core's share of the limit is the larger one.
    pub core_base: u32,
    /// How it behaves.
    pub tunables: SideTunables,
    /// The hosts of its pool, where that is one of hosts; see [`CompiledProfile::with_hosts`].
    pub hosts: Option<Arc<HostTable>>,
}

/// The server's side of a template.
#[derive(Clone, Debug)]
pub struct ServerTemplate {
    /// What it says.
    pub program: ProgramIndex,
    /// How it behaves.
    pub tunables: SideTunables,
}

impl CompiledProfile {
    /// Checks a profile as a whole.
    pub fn compile(spec: &ProfileSpec, layout: Layout) -> Result<CompiledProfile, ProfileError> {
        CompiledProfile::compile_with(spec, &DrawsSpec::default(), layout)
    }

    /// Checks a profile, and what its connections draw.
    pub fn compile_with(
        spec: &ProfileSpec,
        draws: &DrawsSpec,
        layout: Layout,
    ) -> Result<CompiledProfile, ProfileError> {
        check_sizes(spec)?;
        check_groups(&spec.groups)?;
        let buffers = Buffers::with_draws(&spec.buffers, draws)?;
        for (pool, range) in spec.pools.iter().enumerate() {
            let problem = check_pool(range, layout);
            problem.map_err(|problem| ProfileError::Pool { pool, problem })?;
        }
        check_tunables("c_glob_info", &spec.client)?;
        check_tunables("s_glob_info", &spec.server)?;
        let programs = compile_programs(spec, &buffers)?;
        let mut templates = Vec::with_capacity(spec.templates.len());
        for (i, template) in spec.templates.iter().enumerate() {
            check_own_tunables(i, Side::Client, &template.client.tunables)?;
            check_own_tunables(i, Side::Server, &template.server.tunables)?;
            let compiled = compile_template(spec, &programs, template);
            templates.push(compiled.map_err(|problem| at(i, problem))?);
        }
        let none = TunablesSpec::default();
        let rampup_s = spec.client.value(Tunable::RampupSec);
        Ok(CompiledProfile {
            servers: servers(spec, &templates, &programs, &buffers)?,
            members: members(spec)?,
            buffers: Arc::new(buffers),
            programs,
            pools: spec.pools.clone(),
            templates,
            groups: spec.groups.clone(),
            client: SideTunables::resolve(&spec.client, &none, Transport::Stream),
            server: SideTunables::resolve(&spec.server, &none, Transport::Stream),
            rampup_s: rampup_s.map(|seconds| seconds as u32),
            row_lists: Vec::new(),
        })
    }

    /// The constant data.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// A program.
    ///
    /// # Panics
    /// When there is no such program; templates name none of these.
    #[inline]
    pub fn program(&self, program: ProgramIndex) -> &Program {
        &self.programs[usize::from(program.0)]
    }

    /// The same, with flows that run an application over bytes in the place of a program; what is
    /// known of rates and servers stays that of the program.
    ///
    /// # Panics
    /// When there is no such program.
    #[must_use]
    pub fn with_application(
        mut self,
        program: ProgramIndex,
        application: Arc<dyn ApplicationFactory>,
    ) -> CompiledProfile {
        let lists = application.rows();
        let firsts = lists.into_iter().map(|rows| self.first_of(rows)).collect();
        let program = &mut self.programs[usize::from(program.0)];
        *program = program.clone().with_application(application, firsts);
        self
    }

    /// Where a list of rows begins among those of the profile, which has it from now on.
    fn first_of(&mut self, rows: &'static [AppRow]) -> usize {
        let mut first = 0;
        for known in &self.row_lists {
            if std::ptr::eq(*known, rows) {
                return first;
            }
            first += known.len();
        }
        self.row_lists.push(rows);
        first
    }

    /// What the applications over bytes of its flows count, in the order of
    /// [`SideCounters::rows`](crate::session::SideCounters).
    pub fn application_rows(&self) -> Vec<AppRow> {
        self.row_lists
            .iter()
            .flat_map(|rows| *rows)
            .copied()
            .collect()
    }

    /// What makes the applications over bytes of its flows.
    pub fn applications(&self) -> impl Iterator<Item = &Arc<dyn ApplicationFactory>> {
        self.programs.iter().filter_map(Program::application)
    }

    /// The networks whose hosts the clients of templates are, each once, and whether their
    /// addresses are IPv6.
    pub fn host_networks(&self) -> Vec<(HostNetwork, bool)> {
        let mut networks = Vec::new();
        for template in &self.templates {
            let wanted = self.network_of(template);
            if let Some(wanted) = wanted.filter(|wanted| !networks.contains(wanted)) {
                networks.push(wanted);
            }
        }
        networks
    }

    fn network_of(&self, template: &Template) -> Option<(HostNetwork, bool)> {
        let client = &template.client;
        let network = self.pools[client.client_pool].hosts?;
        Some((network, client.tunables.ipv6))
    }

    /// The same, with the hosts of a network for the templates whose clients they are. Until they
    /// are given, such templates begin no flows.
    #[must_use]
    pub fn with_hosts(
        mut self,
        network: HostNetwork,
        is_ipv6: bool,
        hosts: &Arc<HostTable>,
    ) -> CompiledProfile {
        for number in 0..self.templates.len() {
            if self.network_of(&self.templates[number]) == Some((network, is_ipv6)) {
                self.templates[number].client.hosts = Some(Arc::clone(hosts));
            }
        }
        self
    }

    /// How many hosts were given for networks, those of each network once.
    pub fn host_count(&self) -> usize {
        let mut known: Vec<(HostNetwork, bool)> = Vec::new();
        let mut count = 0;
        for template in &self.templates {
            if let (Some(network), Some(hosts)) =
                (self.network_of(template), &template.client.hosts)
            {
                let network = (
                    HostNetwork {
                        hosts_min: 0,
                        ..network.0
                    },
                    network.1,
                );
                if !known.contains(&network) {
                    known.push(network);
                    count += hosts.hosts().len();
                }
            }
        }
        count
    }

    /// All pools.
    pub fn pools(&self) -> &[PoolSpec] {
        &self.pools
    }

    /// What a core has of a pool.
    ///
    /// # Panics
    /// When there is no such pool; templates name none of these.
    pub fn addresses(&self, pool: usize, share: PoolShare) -> AddressRange {
        AddressRange::of(&self.pools[pool], share)
    }

    /// A template.
    ///
    /// # Panics
    /// When there is no such template; servers and groups name none of these.
    #[inline]
    pub fn template(&self, template: TemplateIndex) -> &Template {
        &self.templates[usize::from(template.0)]
    }

    /// All templates, in the profile's order.
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// Who serves whom.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The names of the template groups; the first has number 1.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The templates of a group; none for 0 and for groups that do not exist.
    pub fn templates_of(&self, group: u16) -> &[TemplateIndex] {
        self.members
            .get(usize::from(group))
            .map_or(&[], Vec::as_slice)
    }

    /// How a side behaves where no template says otherwise.
    pub fn tunables(&self, side: Side) -> &SideTunables {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// In how many seconds the rate rises from nothing to its height, if it does.
    pub fn rampup_s(&self) -> Option<u32> {
        self.rampup_s
    }

    /// Connections per second of all templates, at a multiplier of 1.
    pub fn rate_cps(&self) -> f64 {
        let rates = self
            .templates
            .iter()
            .map(|template| template.client.rate_cps);
        rates.sum()
    }

    /// The same when only a share of the pairs of ports takes part, 0 to 1. Hosts are behind one
    /// port: flows of theirs are not shared out.
    pub fn rate_cps_of(&self, share: f64) -> f64 {
        let templates = self.templates.iter();
        let rates = templates.map(|template| match &template.client.hosts {
            Some(_) => template.client.rate_cps,
            None => template.client.rate_cps * share,
        });
        rates.sum()
    }

    /// Bits per second that all programs send, at a multiplier of 1, without headers.
    pub fn rate_bps(&self) -> f64 {
        let bits = |template: &Template| template.client.rate_cps * template.bytes as f64 * 8.0;
        self.templates.iter().map(bits).sum()
    }
}

fn check_sizes(spec: &ProfileSpec) -> Result<(), ProfileError> {
    let lists = [
        ("ip_gen_dist_list", spec.pools.len(), POOLS_MAX),
        ("program_list", spec.programs.len(), PROGRAMS_MAX),
        ("templates", spec.templates.len(), TEMPLATES_MAX),
    ];
    for (list, count, max) in lists {
        if count == 0 {
            return Err(ProfileError::Empty(list));
        }
        if count > max {
            return Err(ProfileError::TooMany { list, count, max });
        }
    }
    let (list, count, max) = ("tg_names", spec.groups.len(), TEMPLATES_MAX);
    if count > max {
        return Err(ProfileError::TooMany { list, count, max });
    }
    Ok(())
}

fn check_groups(groups: &[String]) -> Result<(), ProfileError> {
    let mut places = HashMap::with_capacity(groups.len());
    for (group, name) in groups.iter().enumerate() {
        let name = name.as_str();
        if name.is_empty() || name.len() > GROUP_NAME_BYTES_MAX {
            let name = name.to_owned();
            return Err(ProfileError::GroupName { group, name });
        }
        if let Some(first) = places.insert(name, group) {
            return Err(ProfileError::GroupTwice {
                second: group,
                first,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

fn check_pool(pool: &PoolSpec, layout: Layout) -> Result<(), PoolProblem> {
    if pool.hosts.is_some() {
        return match pool.side {
            Side::Client => Ok(()),
            Side::Server => Err(PoolProblem::HostsOfServers),
        };
    }
    let Layout { cores, pairs } = layout;
    let addresses = pool.count();
    if addresses == 0 {
        return Err(PoolProblem::Empty);
    }
    let needed = match pool.per_core {
        PerCore::Default => cores.saturating_mul(pairs),
        PerCore::Sequence => cores,
    };
    // Servers may be the same for several cores: their clients differ.
    if pool.side == Side::Client && addresses < u64::from(needed) {
        let cores = needed;
        return Err(PoolProblem::TooFew { addresses, cores });
    }
    let further = u64::from(pairs.saturating_sub(1));
    if u64::from(pool.last) + further * u64::from(pool.offset) > u64::from(u32::MAX) {
        return Err(PoolProblem::BeyondTheEnd { pairs });
    }
    let is_shared = pool.per_core == PerCore::Sequence && pool.side == Side::Client;
    if is_shared && pairs > 1 && u64::from(pool.offset) < addresses {
        return Err(PoolProblem::OffsetTooSmall { pairs });
    }
    Ok(())
}

fn check_tunables(path: &str, spec: &TunablesSpec) -> Result<(), ProfileError> {
    match spec.out_of_range().next() {
        Some((row, value)) => Err(ProfileError::Tunable {
            path: format!("{path}.{}.{}", row.section, row.name),
            value,
            min: row.min,
            max: row.max,
        }),
        None => Ok(()),
    }
}

fn check_own_tunables(
    template: usize,
    side: Side,
    spec: &TunablesSpec,
) -> Result<(), ProfileError> {
    let path = format!("templates[{template}].{side}_template.glob_info");
    check_tunables(&path, spec)?;
    match spec.global_only().next() {
        Some(row) => Err(ProfileError::TunableOfAll {
            path: format!("{path}.{}.{}", row.section, row.name),
            instead: match side {
                Side::Client => "c_glob_info",
                Side::Server => "s_glob_info",
            },
        }),
        None => Ok(()),
    }
}

fn compile_programs(spec: &ProfileSpec, buffers: &Buffers) -> Result<Vec<Program>, ProfileError> {
    let surroundings = Surroundings {
        buffers,
        groups: spec.groups.len(),
    };
    let mut programs = Vec::with_capacity(spec.programs.len());
    for (program, commands) in spec.programs.iter().enumerate() {
        let compiled = Program::compile(commands, surroundings);
        programs.push(compiled.map_err(|error| match user_of(spec, program) {
            Some((template, side)) => ProfileError::Program {
                template,
                side,
                program,
                error,
            },
            None => ProfileError::UnusedProgram { program, error },
        })?);
    }
    Ok(programs)
}

/// The first template that uses a program, and on which side.
fn user_of(spec: &ProfileSpec, program: usize) -> Option<(usize, Side)> {
    let side = |template: &TemplateSpec| {
        if template.client.program as usize == program {
            Some(Side::Client)
        } else {
            (template.server.program as usize == program).then_some(Side::Server)
        }
    };
    let mut templates = spec.templates.iter().enumerate();
    templates.find_map(|(i, template)| side(template).map(|side| (i, side)))
}

fn at(template: usize, problem: TemplateProblem) -> ProfileError {
    ProfileError::Template { template, problem }
}

fn compile_template(
    spec: &ProfileSpec,
    programs: &[Program],
    template: &TemplateSpec,
) -> Result<Template, TemplateProblem> {
    let (client, server) = (&template.client, &template.server);
    let client_program = program(programs, Side::Client, client.program)?;
    let server_program = program(programs, Side::Server, server.program)?;
    let program = |index: ProgramIndex| &programs[usize::from(index.0)];
    let (asks, answers) = (program(client_program), program(server_program));
    if asks.transport() != answers.transport() {
        return Err(TemplateProblem::Transports {
            client: transport_name(asks.transport()),
            server: transport_name(answers.transport()),
        });
    }
    if !(0.0..=RATE_CPS_MAX).contains(&client.rate_cps) {
        return Err(TemplateProblem::Rate(client.rate_cps));
    }
    let (group, count) = (template.group, spec.groups.len());
    if group as usize > count {
        return Err(TemplateProblem::Group { group, count });
    }
    Ok(Template {
        client: ClientTemplate {
            program: client_program,
            client_pool: pool(spec, Side::Client, client.client_pool)?,
            server_pool: pool(spec, Side::Server, client.server_pool)?,
            port: client.port,
            rate_cps: client.rate_cps,
            limit: client.limit,
            continuous: client.continuous,
            core_base: client.core_base,
            tunables: SideTunables::resolve(&spec.client, &client.tunables, asks.transport()),
            hosts: None,
        },
        server: ServerTemplate {
            program: server_program,
            tunables: SideTunables::resolve(&spec.server, &server.tunables, asks.transport()),
        },
        transport: asks.transport(),
        group: group as u16,
        bytes: asks.sent_bytes() + answers.sent_bytes(),
    })
}

fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Stream => "TCP",
        Transport::Datagram => "UDP",
    }
}

fn program(
    programs: &[Program],
    side: Side,
    program: u32,
) -> Result<ProgramIndex, TemplateProblem> {
    let count = programs.len();
    match u16::try_from(program) {
        Ok(index) if usize::from(index) < count => Ok(ProgramIndex(index)),
        _ => Err(TemplateProblem::Program {
            side,
            program,
            count,
        }),
    }
}

fn pool(spec: &ProfileSpec, side: Side, pool: u32) -> Result<usize, TemplateProblem> {
    match spec.pools.get(pool as usize) {
        Some(range) if range.side == side => Ok(pool as usize),
        Some(_) => Err(TemplateProblem::PoolSide { side, pool }),
        None => Err(TemplateProblem::Pool {
            side,
            pool,
            count: spec.pools.len(),
        }),
    }
}

fn servers(
    spec: &ProfileSpec,
    templates: &[Template],
    programs: &[Program],
    buffers: &Buffers,
) -> Result<Servers, ProfileError> {
    let mut servers = Servers::default();
    for (i, template) in spec.templates.iter().enumerate() {
        let index = TemplateIndex(i as u16);
        let compiled = &templates[i];
        if template.server.associations.is_empty() {
            return Err(at(i, TemplateProblem::NoAssociation));
        }
        for association in &template.server.associations {
            let client = &programs[usize::from(compiled.client.program.0)];
            let payload = payload_key(association, client, buffers);
            let payload = payload.map_err(|problem| at(i, problem))?;
            let tunables =
                |other: TemplateIndex| templates[usize::from(other.0)].server.tunables.clone();
            servers.add(index, compiled.transport, association, payload, tunables)?;
        }
    }
    Ok(servers)
}

fn payload_key(
    association: &AssociationSpec,
    client: &Program,
    buffers: &Buffers,
) -> Result<PayloadKey, TemplateProblem> {
    if association.first > association.last {
        let port = association.port;
        return Err(TemplateProblem::EmptyRange { port });
    }
    let Some(map) = &association.l7_map else {
        return Ok(PayloadKey::default());
    };
    let offsets = &map.offsets;
    if offsets.is_empty() || offsets.len() > L7_OFFSETS_MAX {
        return Err(TemplateProblem::L7Count(offsets.len()));
    }
    if offsets.windows(2).any(|two| two[0] >= two[1]) {
        return Err(TemplateProblem::L7Order);
    }
    let mask = |i: usize| map.masks.get(i).copied().unwrap_or(u8::MAX);
    let bytes = offsets.iter().enumerate();
    let bytes: Vec<(u8, u8)> = bytes.map(|(i, offset)| (*offset, mask(i))).collect();
    let value = match &map.values {
        Some(values) => given_value(map, values, &bytes)?,
        None => sent_value(client, buffers, &bytes)?,
    };
    Ok(PayloadKey { bytes, value })
}

/// The value that the profile gives.
fn given_value(map: &L7Map, values: &[u8], bytes: &[(u8, u8)]) -> Result<u64, TemplateProblem> {
    if values.len() != map.offsets.len() {
        return Err(TemplateProblem::L7Values {
            offsets: map.offsets.len(),
            values: values.len(),
        });
    }
    let masked = values.iter().zip(bytes);
    Ok(masked.fold(0, |value, (byte, (_, mask))| {
        value << 8 | u64::from(byte & mask)
    }))
}

/// The value of what the template's own client sends: of the first bytes of a stream, of each
/// message.
fn sent_value(
    client: &Program,
    buffers: &Buffers,
    bytes: &[(u8, u8)],
) -> Result<u64, TemplateProblem> {
    let nothing = TemplateProblem::L7NothingSent;
    // Offsets count from where messages begin on the wire.
    let header_bytes = client.addon().map_or(0, Addon::header_bytes);
    let in_header = bytes.iter().map(|(offset, _)| *offset);
    if let Some(offset) = in_header.min().filter(|o| usize::from(*o) < header_bytes) {
        return Err(TemplateProblem::L7InHeader {
            offset,
            header_bytes,
        });
    }
    let sent: Vec<_> = match client.transport() {
        Transport::Stream => client.first_sent().into_iter().collect(),
        Transport::Datagram => client.sent().collect(),
    };
    let mut found = None;
    for buffer in sent {
        let mut start = [0; 256];
        let count = (buffers.len(buffer) as usize + header_bytes).min(start.len());
        let start = &mut start[..count];
        buffers.copy_to(buffer, 0, &mut start[header_bytes..]);
        let value = value_at(bytes, start).ok_or(TemplateProblem::L7Short {
            offset: bytes[bytes.len() - 1].0,
            bytes: count as u32,
        })?;
        if found.is_some_and(|found| found != value) {
            return Err(TemplateProblem::L7MessagesDiffer);
        }
        found = Some(value);
    }
    found.ok_or(nothing)
}

/// The templates of each group; those of none come first.
fn members(spec: &ProfileSpec) -> Result<Vec<Vec<TemplateIndex>>, ProfileError> {
    let mut members = vec![Vec::new(); spec.groups.len() + 1];
    for (i, template) in spec
        .templates
        .iter()
        .enumerate()
        .filter(|(_, t)| t.group > 0)
    {
        members[template.group as usize].push(TemplateIndex(i as u16));
    }
    // A program that chooses a group needs a template there.
    let is_empty = |group: &u32| members.get(*group as usize).is_none_or(Vec::is_empty);
    let chosen = spec.programs.iter().map(|program| {
        let mut commands = program.commands.iter();
        commands.find_map(|command| match command {
            ProgramCommand::SetTemplate { group: group @ 1.. } => Some(*group).filter(is_empty),
            _ => None,
        })
    });
    let chosen: Vec<Option<u32>> = chosen.collect();
    for (i, template) in spec.templates.iter().enumerate() {
        for (side, program) in [
            (Side::Client, template.client.program),
            (Side::Server, template.server.program),
        ] {
            if let Some(group) = chosen[program as usize] {
                return Err(at(i, TemplateProblem::EmptyGroup { side, group }));
            }
        }
    }
    Ok(members)
}
