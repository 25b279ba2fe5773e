//! The programs of a namespace: its init JSON in the form of stateful profiles, made ready to run by
//! the engine.

use std::sync::Arc;

use allosaur_engine::app::{
    BufferSpec, Buffers, Program, ProgramCommand, ProgramSpec, Surroundings, Transport, VARIABLES,
};
use allosaur_engine::time::{MICROSECOND, Nanos};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::schema;
use crate::datagrams::Wanted;
use crate::plugin::PluginError;
use crate::plugins::transport::Settings;

/// Steps in front of the commands of a program over TCP.
const PREFIX: usize = 1;

/// A program, for either carrier.
#[derive(Debug)]
pub(super) struct Runnable {
    pub(super) stream: Program,
    pub(super) datagram: Program,
    /// A server leaves it to its client to close (`nc`).
    pub(super) leaves_open: bool,
    /// It closes by itself (`close_msg`).
    pub(super) closes: bool,
}

/// One side of a template.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// Its program.
    pub(super) program: usize,
    /// How its connections behave.
    pub(super) tunables: Map<String, Value>,
    /// What they say of its datagrams.
    pub(super) wanted: Wanted,
}

/// A template.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) client: Option<Side>,
    pub(super) server: Option<Side>,
    /// Where its server listens.
    pub(super) port: u16,
}

/// All programs of a namespace.
#[derive(Debug, Default)]
pub(super) struct Programs {
    pub(super) buffers: Vec<Arc<[u8]>>,
    pub(super) programs: Vec<Runnable>,
    pub(super) templates: Vec<Template>,
}

impl Programs {
    /// Reads them. A namespace that has the plugin only for its clients has none.
    pub(super) fn parse(init: &Value) -> Result<Programs, PluginError> {
        if init.is_null() {
            return Ok(Programs::default());
        }
        let problems = schema::problems(init);
        if !problems.is_empty() {
            return Err(PluginError(problems));
        }
        let buffers = buffers(&init["buf_list"])?;
        let list = |name: &str| init[name].as_array().into_iter().flatten();
        let specs: Vec<BufferSpec> = buffers
            .iter()
            .map(|bytes| BufferSpec {
                base: bytes.to_vec(),
                ..BufferSpec::default()
            })
            .collect();
        let kept = Buffers::new(&specs).map_err(|error| PluginError(error.to_string()))?;
        let programs = list("program_list").enumerate();
        let programs = programs.map(|(place, program)| runnable(place, program, &kept));
        let programs: Vec<Runnable> = programs.collect::<Result<_, _>>()?;
        let tunables: Vec<&Value> = list("tunable_list").collect();
        let templates = list("templates")
            .enumerate()
            .map(|(place, given)| template(place, given, programs.len(), &tunables));
        let templates = templates.collect::<Result<_, _>>()?;
        Ok(Programs {
            buffers,
            programs,
            templates,
        })
    }
}

fn buffers(list: &Value) -> Result<Vec<Arc<[u8]>>, PluginError> {
    let items = list.as_array().into_iter().flatten().enumerate();
    let decode = |(place, item): (usize, &Value)| {
        let text = item.as_str().unwrap_or_default();
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| PluginError(format!("buf_list.{place} is not base64: {error}")))?;
        Ok(Arc::from(bytes))
    };
    items.map(decode).collect()
}

fn runnable(place: usize, program: &Value, buffers: &Buffers) -> Result<Runnable, PluginError> {
    let commands = program["commands"].as_array();
    let commands = commands.map_or(&[][..], |commands| &commands[..]);
    let names = |name: &str| commands.iter().any(|command| command["name"] == name);
    let compile = |transport| {
        let spec = ProgramSpec {
            commands: convert(commands, transport, buffers.count())?,
            transport,
            addon: None,
        };
        let surroundings = Surroundings { buffers, groups: 0 };
        Program::compile(&spec, surroundings).map_err(|error| {
            let command = error.command.saturating_sub(PREFIX);
            PluginError(format!(
                "program_list.{place}.commands.{command} ({}): {}",
                error.name, error.problem
            ))
        })
    };
    Ok(Runnable {
        stream: compile(Transport::Stream)?,
        datagram: compile(Transport::Datagram)?,
        leaves_open: names("nc"),
        closes: names("close_msg"),
    })
}

/// What does nothing.
const NOTHING: ProgramCommand = ProgramCommand::Jump {
    offset: 1,
    condition: None,
};

/// The commands of a program as the engine has them. What means nothing to a carrier does nothing, as
/// in the reference.
fn convert(
    commands: &[Value],
    transport: Transport,
    buffers: usize,
) -> Result<Vec<ProgramCommand>, PluginError> {
    // Who sends goes on as soon as there is room.
    let mut converted = vec![match transport {
        Transport::Stream => ProgramCommand::SendMode { blocking: false },
        Transport::Datagram => NOTHING,
    }];
    // In the engine, counts of what is waited for add up; here, each is by itself.
    let mut awaited = 0;
    for (place, given) in commands.iter().enumerate() {
        let left = (commands.len() - place) as i64;
        let command = match transport {
            Transport::Stream => stream_command(given, left, &mut awaited),
            Transport::Datagram => datagram_command(given, &mut awaited),
        };
        let command = command.unwrap_or_else(|| common_command(given));
        if let ProgramCommand::Send { buffer } | ProgramCommand::SendMessage { buffer } = command {
            if buffer as usize >= buffers {
                let text = format!("buffer index is bigger than {buffers}");
                return Err(PluginError(text));
            }
        }
        converted.push(command);
    }
    Ok(converted)
}

fn number(command: &Value, name: &str) -> u64 {
    command[name].as_u64().unwrap_or(0)
}

fn buffer(command: &Value) -> u32 {
    u32::try_from(number(command, "buf_index")).unwrap_or(u32::MAX)
}

/// Adds what is waited for.
fn total(command: &Value, name: &str, awaited: &mut u64) -> (u64, bool) {
    let total = awaited.saturating_add(number(command, name));
    let clear = command["clear"] == true;
    *awaited = if clear { 0 } else { total };
    (total, clear)
}

fn stream_command(command: &Value, left: i64, awaited: &mut u64) -> Option<ProgramCommand> {
    Some(match command["name"].as_str()? {
        "tx" => ProgramCommand::Send {
            buffer: buffer(command),
        },
        "rx" => {
            let (bytes, clear) = total(command, "min_bytes", awaited);
            ProgramCommand::Receive { bytes, clear }
        }
        "reset" => ProgramCommand::Reset,
        "close_msg" => ProgramCommand::Jump {
            offset: left,
            condition: None,
        },
        "tx_msg" | "rx_msg" | "keepalive" => NOTHING,
        _ => return None,
    })
}

fn datagram_command(command: &Value, awaited: &mut u64) -> Option<ProgramCommand> {
    Some(match command["name"].as_str()? {
        "tx" | "tx_msg" => ProgramCommand::SendMessage {
            buffer: buffer(command),
        },
        "rx_msg" => {
            let (messages, clear) = total(command, "min_pkts", awaited);
            ProgramCommand::ReceiveMessages { messages, clear }
        }
        "rx" => {
            *awaited += 1;
            ProgramCommand::ReceiveMessages {
                messages: *awaited,
                clear: false,
            }
        }
        "keepalive" if number(command, "msec") > 0 => ProgramCommand::Keepalive {
            timeout_ms: u32::try_from(number(command, "msec")).unwrap_or(u32::MAX),
            received_only: false,
        },
        "reset" | "close_msg" => ProgramCommand::CloseMessage,
        _ => return None,
    })
}

fn common_command(command: &Value) -> ProgramCommand {
    let variable = command["id"].as_u64().filter(|id| *id < VARIABLES as u64);
    let variable = variable.map(|id| id as u32);
    let microseconds = |name| number(command, name).saturating_mul(MICROSECOND) as Nanos;
    match (command["name"].as_str(), variable) {
        (Some("delay"), _) => ProgramCommand::Delay {
            duration: microseconds("usec"),
        },
        (Some("delay_rnd"), _) => ProgramCommand::DelayRandom {
            min: microseconds("min_usec"),
            max: microseconds("max_usec"),
        },
        (Some("set_var"), Some(variable)) => ProgramCommand::SetVariable {
            variable,
            value: number(command, "val"),
        },
        (Some("jmp_nz"), Some(variable)) => ProgramCommand::JumpNotZero {
            variable,
            offset: command["offset"].as_i64().unwrap_or(1),
        },
        _ => NOTHING,
    }
}

fn template(
    place: usize,
    given: &Value,
    programs: usize,
    tunables: &[&Value],
) -> Result<Template, PluginError> {
    let side = |name: &str| side(place, name, &given[name], programs, tunables);
    let port = given["server_template"]["assoc"][0]["port"].as_u64();
    Ok(Template {
        client: side("client_template")?,
        server: side("server_template")?,
        port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(80),
    })
}

fn side(
    place: usize,
    name: &str,
    side: &Value,
    programs: usize,
    tunables: &[&Value],
) -> Result<Option<Side>, PluginError> {
    let Some(program) = side["program_index"].as_u64() else {
        return Ok(None);
    };
    let program = usize::try_from(program).unwrap_or(usize::MAX);
    if program >= programs {
        let text = format!("program index is bigger than {programs}");
        return Err(PluginError(text));
    }
    let tunables = match side["tunable_index"].as_u64() {
        None => Map::new(),
        Some(index) => {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            let tunables = tunables
                .get(index)
                .and_then(|tunables| tunables.as_object());
            let missing = || {
                PluginError(format!(
                    "templates.{place}.{name}.tunable_index {index} is not in tunable_list"
                ))
            };
            tunables.cloned().ok_or_else(missing)?
        }
    };
    let wanted = Settings::default().with(&tunables).of_datagrams();
    Ok(Some(Side {
        program,
        tunables,
        wanted,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(commands: &Value) -> Result<Programs, PluginError> {
        Programs::parse(
            &json!({"buf_list": ["YQ=="], "program_list": [{"commands": commands}],
            "templates": [{"client_template": {"program_index": 0}}]}),
        )
    }

    #[test]
    fn what_cannot_run_is_named() {
        let error = |commands| parse(&commands).expect_err("it cannot run").0;
        let text = error(json!([{"name": "tx", "buf_index": 1}]));
        assert_eq!(text, "buffer index is bigger than 1");
        let text = error(json!([{"name": "nc"}, {"name": "jmp_nz", "id": 0, "offset": 9}]));
        assert!(
            text.starts_with("program_list.0.commands.1 (jmp_nz):"),
            "{text}"
        );
        assert!(parse(&json!([])).is_ok(), "nothing is a program too");
    }

    #[test]
    fn a_program_runs_over_either_carrier() {
        let commands = json!([{"name": "keepalive", "msec": 10}, {"name": "tx_msg", "buf_index": 0},
            {"name": "rx", "min_bytes": 1}, {"name": "rx", "min_bytes": 2, "clear": true},
            {"name": "set_var", "id": 99, "val": 1}, {"name": "connect"}, {"name": "close_msg"}]);
        let programs = parse(&commands).expect("it can run");
        let runnable = &programs.programs[0];
        assert!(runnable.closes && !runnable.leaves_open);
        assert_eq!((runnable.datagram.sends(), runnable.stream.sends()), (1, 0));
        assert_eq!(programs.templates[0].port, 80);
    }
}
