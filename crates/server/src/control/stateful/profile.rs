//! From the fields of a stateful profile to what the engine is asked to do.

use allosaur_api::commands::stateful::command::{
    CmpOp, Condition as JsonCondition, ProgramCommand as JsonCommand,
};
use allosaur_api::commands::stateful::profile as json;
use allosaur_api::commands::stateful::tunables::Tunables as Given;
use allosaur_api::fields::FieldError;
use allosaur_api::limits::STATEFUL_PROFILE_BYTES_MAX;
use allosaur_engine::app::{
    Addon, BufferSpec, Comparison, Condition, DRAWN_FIRST, DrawListSpec, DrawSpec, DrawnSpec,
    DrawsSpec, ProgramCommand, ProgramSpec, TICK, Transport,
};
use allosaur_engine::template::{
    AssociationSpec, ClientSpec, Distribution, HostNetwork, HostTag, L7Map, PerCore, PoolSpec,
    ProfileError, ProfileSpec, ServerSpec, Side, TUNABLES, TemplateSpec, TunablesSpec,
};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use base64::Engine as _;
use thiserror::Error;

/// Why a profile cannot be used. Displays as one sentence that names the place.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StatefulError {
    /// Longer than the server takes.
    #[error(
        "the profile is {0} bytes of JSON; the most is {STATEFUL_PROFILE_BYTES_MAX}: describe long buffers by base, size and fill"
    )]
    TooLarge(usize),
    /// Not JSON.
    #[error("the profile is not JSON: {0}")]
    Json(String),
    /// A field is missing or has the wrong form.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// What belongs in base64 is not.
    #[error("{path} is not base64: {problem}")]
    Base64 {
        /// Which field.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A name that nobody knows.
    #[error("{path} is not known; {known}")]
    Unknown {
        /// Which field.
        path: String,
        /// What is known instead.
        known: String,
    },
    /// Emulated clients, where there are none.
    #[error(
        "ip_gen_dist_list[{0}].emulation: the simulator has no emulated clients: give the pool a range of addresses (ip_start, ip_end), or run the profile on a server"
    )]
    NotEmulated(usize),
    /// The TLS of a template's side.
    #[error("{0}: {1}")]
    Tls(String, String),
    /// The HTTP of a program.
    #[error("{0}: {1}")]
    Http(String, String),
    /// What the fields say together.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Converts a profile.
pub fn convert(profile: &json::Profile<'_>) -> Result<(ProfileSpec, DrawsSpec), StatefulError> {
    let mut draws = DrawsSpec::default();
    for (i, list) in profile.draw_lists.iter().enumerate() {
        draws.lists.push(draw_list(i, list)?);
    }
    let buffers = profile.buffers.iter().enumerate();
    let buffers = buffers.map(|(i, buffer)| self::buffer(i, buffer));
    let mut programs = Vec::with_capacity(profile.programs.len());
    for (i, program) in profile.programs.iter().enumerate() {
        programs.push(self::program(i, program, &mut draws.buffers)?);
    }
    let templates = profile.templates.iter().enumerate();
    let templates = templates.map(|(i, template)| self::template(i, template));
    let spec = ProfileSpec {
        buffers: buffers.collect::<Result<_, _>>()?,
        pools: profile.pools.iter().map(pool).collect(),
        programs,
        templates: templates.collect::<Result<_, _>>()?,
        client: tunables("c_glob_info", &profile.client)?,
        server: tunables("s_glob_info", &profile.server)?,
        groups: profile.groups.iter().map(|&name| name.into()).collect(),
    };
    Ok((spec, draws))
}

fn decode(path: String, base64: &str) -> Result<Vec<u8>, StatefulError> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64);
    bytes.map_err(|error| StatefulError::Base64 {
        path,
        problem: error.to_string(),
    })
}

fn draw_list(i: usize, list: &json::DrawList<'_>) -> Result<DrawListSpec, StatefulError> {
    let values = list.values.iter().enumerate();
    let value =
        |(place, value): (usize, &&str)| decode(format!("draw_lists[{i}].values[{place}]"), value);
    Ok(DrawListSpec {
        values: values.map(value).collect::<Result<_, _>>()?,
        is_random: list.is_random,
    })
}

fn buffer(i: usize, buffer: &json::Buffer<'_>) -> Result<BufferSpec, StatefulError> {
    let (base, fill) = match buffer.size {
        None => ("", ""),
        Some(_) => (".base", ".fill"),
    };
    Ok(BufferSpec {
        base: decode(format!("buf_list[{i}]{base}"), buffer.base)?,
        bytes: buffer.size,
        fill: decode(format!("buf_list[{i}]{fill}"), buffer.fill.unwrap_or(""))?,
    })
}

fn pool(pool: &json::Pool) -> PoolSpec {
    PoolSpec {
        first: pool.start.into(),
        last: pool.end.into(),
        distribution: match pool.is_random {
            true => Distribution::Random,
            false => Distribution::Sequence,
        },
        side: match pool.is_client {
            true => Side::Client,
            false => Side::Server,
        },
        offset: pool.offset.into(),
        per_core: match pool.is_sequential_per_core {
            true => PerCore::Sequence,
            false => PerCore::Default,
        },
        hosts: pool.emulation.map(|emulation| HostNetwork {
            port: emulation.port,
            tags: emulation.tags.map(|(tpid, vlan)| HostTag { tpid, vlan }),
            hosts_min: emulation.ready_min,
        }),
    }
}

fn program(
    i: usize,
    program: &json::Program<'_>,
    drawn: &mut Vec<DrawnSpec>,
) -> Result<ProgramSpec, StatefulError> {
    let addon = match program.addon {
        None => None,
        Some("latency") if !program.is_stream => Some(Addon::Latency),
        Some(name) => {
            return Err(StatefulError::Unknown {
                path: format!("program_list[{i}].addon '{name:.40}'"),
                known: "it can only be 'latency', of a program with stream false".to_owned(),
            });
        }
    };
    let mut commands: Vec<ProgramCommand> = program.commands.iter().map(command).collect();
    for one in &program.drawn {
        let place = format!("program_list[{i}].commands[{}]", one.command);
        draw(&mut commands[one.command], one, place, drawn);
    }
    Ok(ProgramSpec {
        commands,
        transport: match program.is_stream {
            true => Transport::Stream,
            false => Transport::Datagram,
        },
        addon,
    })
}

/// Lets a command send a buffer with texts that are drawn.
fn draw(
    command: &mut ProgramCommand,
    one: &json::Drawn,
    place: String,
    drawn: &mut Vec<DrawnSpec>,
) {
    let (ProgramCommand::Send { buffer } | ProgramCommand::SendMessage { buffer }) = command else {
        unreachable!("only what sends was read with draws");
    };
    let draws = one.draws.iter();
    let draws = draws.map(|&(offset, list)| DrawSpec { offset, list });
    let of = std::mem::replace(buffer, DRAWN_FIRST + drawn.len() as u32);
    drawn.push(DrawnSpec {
        place,
        buffer: of,
        draws: draws.collect(),
    });
}

/// A number of a buffer that is none of a drawn one.
fn plain(buf_index: u32) -> u32 {
    buf_index.min(DRAWN_FIRST - 1)
}

/// Microseconds as nanoseconds; too many stay too many.
pub(super) fn nanos(usec: f64) -> Nanos {
    (usec * MICROSECOND as f64).round() as Nanos
}

/// Seconds as whole ticks, cut off as TRex does.
fn ticks(seconds: f64) -> u64 {
    (seconds * (SECOND / TICK) as f64) as u64
}

fn command(command: &JsonCommand) -> ProgramCommand {
    match *command {
        JsonCommand::Tx { buf_index } => ProgramCommand::Send {
            buffer: plain(buf_index),
        },
        JsonCommand::Rx { min_bytes, clear } => ProgramCommand::Receive {
            bytes: min_bytes,
            clear,
        },
        JsonCommand::RxUntilClose => ProgramCommand::ReceiveUntilClose,
        JsonCommand::TxMsg { buf_index } => ProgramCommand::SendMessage {
            buffer: plain(buf_index),
        },
        JsonCommand::RxMsg { min_pkts, clear } => ProgramCommand::ReceiveMessages {
            messages: min_pkts,
            clear,
        },
        JsonCommand::Keepalive { msec, rx_mode } => ProgramCommand::Keepalive {
            timeout_ms: msec,
            received_only: rx_mode,
        },
        JsonCommand::CloseMsg => ProgramCommand::CloseMessage,
        JsonCommand::Delay { usec } => ProgramCommand::Delay {
            duration: nanos(usec),
        },
        JsonCommand::DelayRnd { min_usec, max_usec } => ProgramCommand::DelayRandom {
            min: nanos(min_usec),
            max: nanos(max_usec),
        },
        JsonCommand::Reset => ProgramCommand::Reset,
        JsonCommand::Nc => ProgramCommand::WaitForPeerClose,
        JsonCommand::Connect => ProgramCommand::Connect,
        JsonCommand::TxMode { flags } => ProgramCommand::SendMode {
            blocking: flags & 1 == 0,
        },
        JsonCommand::SetTemplate { tg_id } => ProgramCommand::SetTemplate { group: tg_id },
        JsonCommand::ExecTemplate => ProgramCommand::ExecuteTemplate,
        _ => arithmetic(command),
    }
}

/// Variables, counters and jumps.
fn arithmetic(command: &JsonCommand) -> ProgramCommand {
    match *command {
        JsonCommand::SetVar { id, val } => ProgramCommand::SetVariable {
            variable: id,
            value: val,
        },
        JsonCommand::AddVar { id, val } => ProgramCommand::AddVariable {
            variable: id,
            value: val,
        },
        JsonCommand::SetTickVar { id } => ProgramCommand::SetTick { variable: id },
        JsonCommand::AddTickVar { id, duration } => ProgramCommand::AddTick {
            variable: id,
            ticks: ticks(duration),
        },
        JsonCommand::AddStats { stats_id, val } => ProgramCommand::AddStats {
            counter: stats_id,
            value: val,
        },
        JsonCommand::AddTickStats { stats_id, var_id } => ProgramCommand::AddTickStats {
            counter: stats_id,
            variable: var_id,
        },
        JsonCommand::JmpNz { id, offset } => ProgramCommand::JumpNotZero {
            variable: id,
            offset,
        },
        JsonCommand::JmpDp {
            id,
            offset,
            duration,
        } => ProgramCommand::JumpWithin {
            variable: id,
            offset,
            ticks: ticks(duration),
        },
        JsonCommand::JmpCmp { offset, condition } => ProgramCommand::Jump {
            offset,
            condition: condition.map(self::condition),
        },
        _ => unreachable!("`command` takes all others"),
    }
}

fn condition(condition: JsonCondition) -> Condition {
    Condition {
        variable: condition.id,
        comparison: match condition.cmp_op {
            CmpOp::Gt => Comparison::Greater,
            CmpOp::Lt => Comparison::Less,
            CmpOp::Eq => Comparison::Equal,
            CmpOp::Ge => Comparison::GreaterOrEqual,
            CmpOp::Le => Comparison::LessOrEqual,
            CmpOp::Ne => Comparison::NotEqual,
        },
        value: condition.cmp_val,
    }
}

fn template(i: usize, template: &json::Template) -> Result<TemplateSpec, StatefulError> {
    let (client, server) = (&template.client, &template.server);
    let path = |side| format!("templates[{i}].{side}_template.glob_info");
    Ok(TemplateSpec {
        client: ClientSpec {
            program: client.program,
            client_pool: client.client_pool,
            server_pool: client.server_pool,
            port: client.port,
            rate_cps: client.cps.unwrap_or(0.0),
            limit: client.limit,
            continuous: client.cont,
            core_base: client.core_base.into(),
            tunables: tunables(&path(Side::Client), &client.tunables)?,
        },
        server: ServerSpec {
            program: server.program,
            associations: server.associations.iter().map(association).collect(),
            tunables: tunables(&path(Side::Server), &server.tunables)?,
        },
        group: template.group,
    })
}

fn association(association: &json::Association) -> AssociationSpec {
    AssociationSpec {
        port: association.port,
        first: association.start.map_or(0, u32::from),
        last: association.end.map_or(u32::MAX, u32::from),
        l7_map: association.l7_map.as_ref().map(|map| L7Map {
            offsets: map.offsets.clone(),
            masks: map.masks.clone(),
            values: map.values.clone(),
        }),
    }
}

fn tunables(path: &str, given: &Given) -> Result<TunablesSpec, StatefulError> {
    let mut spec = TunablesSpec::default();
    spec.source_prefix = given.source_prefix;
    spec.destination_prefix = given.destination_prefix;
    for one in &given.numbers {
        let (section, name) = (one.section.as_str(), one.name.as_str());
        if (section, name) == ("scheduler", "accurate") {
            // TRex's own schema knows it, and nobody reads it.
            continue;
        }
        let mut rows = TUNABLES.iter();
        let row = rows.find(|row| (row.section, row.name) == (section, name));
        let row = row.ok_or_else(|| unknown(path, section, name))?;
        spec.set(row.tunable, one.value);
    }
    Ok(spec)
}

fn unknown(path: &str, section: &str, name: &str) -> StatefulError {
    let siblings = TUNABLES.iter().filter(|row| row.section == section);
    let siblings: Vec<&str> = siblings.map(|row| row.name).collect();
    let known = if siblings.is_empty() {
        "there are scheduler, ip, ipv6 and tcp".to_owned()
    } else {
        format!("there are {}", siblings.join(", "))
    };
    StatefulError::Unknown {
        path: format!("{path}.{section}.{name}"),
        known,
    }
}
