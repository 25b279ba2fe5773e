//! The command line of the server: reads it, opens files, says how the process ends.
//!
//! Exit codes: 0 is success, 1 is a simulation that failed, 2 is wrong usage or input, 3 is a set-up
//! that does not work: a socket or a port that cannot be had.
//! They are those of the `allosaur` command (docs/guide/command-line.md).

mod capture_file;
mod options;
mod output;
mod refusal;
mod simulate;
mod simulate_emulation;
mod simulation;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use allosaur_netdev::inventory::{self, Machine};
use allosaur_port::PortError;
use allosaur_port::description::PORTS_MAX;
use clap::Parser;
use clap::error::ErrorKind as Refusal;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::bench::{self, BenchError};
use crate::config::read::{Findings, Problem};
use crate::config::{self, Loaded, Surroundings, begin, show};
use crate::devices::prepare::{Wish, prepare};
use crate::devices::{self, show as show_devices};
use crate::sim::Scenario;
use crate::threads::control::ServiceError;
use crate::threads::job::DiskFiles;
use crate::threads::layout::plan;
use crate::threads::{affinity, control};
use crate::transport::SocketError;
pub use options::{
    BenchOptions, CommandLine, ConfigCommand, ConfigOptions, PortList, PortsCommand, PortsOptions,
    ServeOptions, SimOptions, Subcommands,
};
use refusal::one_line;
pub use simulate_emulation::SimEmulationOptions;
pub use simulation::SimStatefulOptions;

const FAILED: u8 = 1;
const WRONG_INPUT: u8 = 2;
const SETUP: u8 = 3;

/// What to print behind `error:`, and the exit code.
struct Failure(String, u8);

impl Failure {
    fn end(self) -> ExitCode {
        let Failure(message, code) = self;
        output::note(format_args!("error: {message}"));
        ExitCode::from(code)
    }
}

/// The whole process.
pub fn main() -> ExitCode {
    if let Err(failure) = log() {
        return failure.end();
    }
    let options = CommandLine::try_parse().unwrap_or_else(|error| refuse(&error));
    let result = match options.command {
        Subcommands::Serve(options) => serve(&options),
        Subcommands::Config(options) => configure(&options),
        Subcommands::Ports(options) => ports(&options),
        Subcommands::Sim(options) => sim(&options),
        Subcommands::SimStateful(options) => simulate::run(&options),
        Subcommands::SimEmulation(options) => simulate_emulation::run(&options),
        Subcommands::Bench(options) => measure(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}

/// Writes what is logged to stderr, from the levels on that `ALLOSAUR_LOG` names: `debug`, or by module
/// `warn,allosaur_server::threads=trace`.
fn log() -> Result<(), Failure> {
    let levels = match std::env::var("ALLOSAUR_LOG") {
        Ok(levels) => levels.parse().map_err(|error| {
            Failure(
                format!(
                    "ALLOSAUR_LOG={levels}: {error}: give a level (error, warn, info, debug, trace or off), \
                     or MODULE=LEVEL with commas between them"
                ),
                WRONG_INPUT,
            )
        })?,
        Err(_) => Targets::new().with_default(Level::INFO),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        // Without this, a log that nobody reads any more ends the server.
        .log_internal_errors(false)
        // <https://no-color.org>: not empty, whatever it is.
        .with_ansi(
            stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        );
    tracing_subscriber::registry()
        .with(lines)
        .with(levels)
        .init();
    Ok(())
}

/// Ends the process with help, or with what is wrong with the command line.
fn refuse(error: &clap::Error) -> ! {
    match error.kind() {
        Refusal::DisplayHelp | Refusal::DisplayVersion => error.exit(),
        Refusal::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::text(error.render());
            std::process::exit(0);
        }
        _ => {
            output::note(format_args!("error: {}", one_line(error)));
            std::process::exit(WRONG_INPUT.into());
        }
    }
}

fn serve(options: &ServeOptions) -> Result<(), Failure> {
    let around = options.surroundings(affinity::available());
    let file = options.config.as_deref();
    let loaded = file.map(|file| load(file, &around)).transpose()?;
    let settings = options.settings(loaded.map(|loaded| loaded.settings));
    if let Some(problem) = settings.problem() {
        return Err(Failure(problem, WRONG_INPUT));
    }
    // Not locked: another thread writes there too.
    control::serve(&settings, &mut stdout()).map_err(|error| {
        let code = match &error {
            ServiceError::Port(PortError::Interface(it)) if it.is_temporary => SETUP,
            // Any other port was named wrongly; threads are as the user said.
            ServiceError::Port(_) | ServiceError::Layout(_) => WRONG_INPUT,
            ServiceError::Socket(SocketError::Access(_) | SocketError::Unguarded(_)) => WRONG_INPUT,
            ServiceError::Socket(_) | ServiceError::Nodes(_) | ServiceError::System(_) => SETUP,
        };
        Failure(error.to_string(), code)
    })
}

/// Reads a configuration file, and says what of it does not apply.
fn load(file: &Path, around: &Surroundings) -> Result<Loaded, Failure> {
    let text = read(file)?;
    let name = file.display();
    match config::load(&text, around) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                output::note(format_args!("warning: {name}:{warning}"));
            }
            Ok(loaded)
        }
        Err(findings) => Err(wrong_file(&name, &findings)),
    }
}

/// One line for each problem; all but the first are set in.
fn wrong_file(name: &impl Display, findings: &Findings) -> Failure {
    let lines = findings.problems.iter();
    let lines: Vec<String> = lines.map(|problem| format!("{name}:{problem}")).collect();
    Failure(lines.join("\n       "), WRONG_INPUT)
}

fn read(file: &Path) -> Result<String, Failure> {
    let wrong = |problem: String| {
        let name = file.display();
        Failure(format!("{name}: cannot be read: {problem}"), WRONG_INPUT)
    };
    let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        wrong(format!("byte {place} is no UTF-8: it is not a text file"))
    })
}

fn configure(options: &ConfigOptions) -> Result<(), Failure> {
    match &options.command {
        ConfigCommand::Init { file, force } => init(file, *force),
        ConfigCommand::Check { file, json } => check(file, *json),
    }
}

fn init(file: &Path, force: bool) -> Result<(), Failure> {
    let text = begin::text(&devices::for_first_file(&Machine::look()), PORTS_MAX);
    if file == Path::new("-") {
        output::text(text);
        return Ok(());
    }
    let name = file.display();
    let mut open = OpenOptions::new();
    open.write(true)
        .create(true)
        .truncate(true)
        .create_new(!force);
    let written = open
        .open(file)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let problem = "is there already: name another file, or add --force to write over it";
            Failure(format!("{name}: {problem}"), WRONG_INPUT)
        }
        _ => Failure(format!("{name}: cannot be written: {error}"), WRONG_INPUT),
    })?;
    output::line(format_args!(
        "Wrote {name}. Start a server with it: allosaur server --config {name}"
    ));
    Ok(())
}

fn check(file: &Path, json: bool) -> Result<(), Failure> {
    let around = Surroundings {
        cpus: affinity::available(),
        ..Surroundings::default()
    };
    if json {
        let name = file.display().to_string();
        let mut result = config::load(&read(file)?, &around);
        if let Ok(loaded) = &mut result {
            loaded.warnings.extend(concerns(loaded));
        }
        output::line(show::json(&name, &result));
        return result
            .map(|_| ())
            .map_err(|findings| wrong_file(&name, &findings));
    }
    let loaded = load(file, &around)?;
    for warning in concerns(&loaded) {
        output::note(format_args!("warning: {}:{warning}", file.display()));
    }
    output::line(format_args!(
        "{}: {}",
        file.display(),
        show::summary(&loaded)
    ));
    // The file may be for another machine.
    match plan(&loaded.settings, &control::machine_of(&loaded.settings)) {
        Ok(layout) => {
            for line in layout.in_words() {
                output::line(format_args!("  {line}"));
            }
            for text in &layout.warnings {
                output::note(format_args!("warning: {text}"));
            }
        }
        Err(error) => output::note(format_args!(
            "warning: it would not start on this machine: {error}"
        )),
    }
    Ok(())
}

/// What of this machine does not suit a file that is right in itself.
fn concerns(loaded: &Loaded) -> Vec<Problem> {
    let machine = Machine::look();
    let ports = loaded.settings.ports.iter().zip(&loaded.ports);
    let concerns = ports.flat_map(|(port, mark)| {
        let concerns = devices::concerns(&machine, &port.description);
        concerns.into_iter().map(|text| mark.warning(text))
    });
    concerns.collect()
}

fn ports(options: &PortsOptions) -> Result<(), Failure> {
    let machine = Machine::look();
    let text = match &options.command {
        Some(PortsCommand::Prepare {
            target,
            driver,
            anyway,
        }) => {
            let wish = Wish {
                target,
                driver: driver.as_deref(),
                anyway: *anyway,
            };
            prepare(&machine, &wish).map_err(|problem| Failure(problem, WRONG_INPUT))?
        }
        None if options.json => {
            format!("{}\n", show_devices::json(&machine, &inventory::holders()))
        }
        None => show_devices::table(&machine, &inventory::holders()),
    };
    let mut output = stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        // Whoever read it has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure(
            format!("the list cannot be written: {error}"),
            SETUP,
        )),
        _ => Ok(()),
    }
}

fn sim(options: &SimOptions) -> Result<(), Failure> {
    let wrong = |file: &std::path::Path, error: &dyn std::fmt::Display| {
        Failure(format!("{}: {error}", file.display()), WRONG_INPUT)
    };
    let text = std::fs::read(&options.commands).map_err(|e| wrong(&options.commands, &e))?;
    let mut scenario = Scenario::parse(&text).map_err(|e| wrong(&options.commands, &e))?;
    scenario.limit_packets = options.limit.or(scenario.limit_packets);
    scenario.cores = options.cores.or(scenario.cores);
    let outcome = scenario
        .run(&DiskFiles::all())
        .map_err(|e| wrong(&options.commands, &e))?;
    std::fs::write(&options.output, &outcome.capture).map_err(|e| wrong(&options.output, &e))?;
    if options.json {
        output::line(serde_json::json!(outcome));
    } else {
        let more = if outcome.limited {
            " (the limit; there is more)"
        } else {
            ""
        };
        output::line(format_args!(
            "{} packets{more} in {}",
            outcome.packets,
            options.output.display()
        ));
    }
    Ok(())
}

fn measure(options: &BenchOptions) -> Result<(), Failure> {
    let seconds = options.seconds;
    if let Some(bytes) = options.response {
        let measured = bench::connections::run(bytes, options.rate, seconds);
        output::line(serde_json::json!(measured));
        return Ok(());
    }
    if let Some(ends) = options.flows {
        let measured = bench::holding::run(ends / 2 * 2, options.keepalive, seconds);
        let measured = measured.map_err(|error| Failure(error.to_string(), SETUP))?;
        output::line(serde_json::json!(measured));
        return Ok(());
    }
    let case = options.case.expect("one of them is required");
    let measured = match &options.ports {
        Some(ports) => bench::run_on(&ports.0, case, seconds),
        None => bench::run(case, options.receive, seconds).map_err(BenchError::from),
    };
    let measured = measured.map_err(|error| Failure(error.to_string(), SETUP))?;
    output::line(serde_json::json!(measured));
    Ok(())
}
