//! The server process: reads the command line, opens files, sets the exit code.
//!
//! Exit codes: 0 is success, 1 is a run that failed, 2 is wrong usage or input.

use std::io::{IsTerminal, stderr, stdout};
use std::process::ExitCode;

use allosaur_server::bench;
use allosaur_server::config::{BenchOptions, CommandLine, ServeOptions, SimOptions, Subcommands};
use allosaur_server::files::DiskFiles;
use allosaur_server::service::{self, ServiceError};
use allosaur_server::sim::Scenario;
use clap::Parser;
use tracing_subscriber::EnvFilter;

const FAILED: u8 = 1;
const WRONG_INPUT: u8 = 2;

/// What to print behind `error:`, and the exit code.
struct Failure(String, u8);

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("ALLOSAUR_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .init();
    let result = match CommandLine::parse().command {
        Subcommands::Serve(options) => serve(&options),
        Subcommands::Sim(options) => sim(&options),
        Subcommands::Bench(options) => measure(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(message, code)) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

fn serve(options: &ServeOptions) -> Result<(), Failure> {
    service::serve(options, &mut stdout().lock()).map_err(|error| {
        let code = match error {
            // A port that cannot be opened was named wrongly, or must be prepared first.
            ServiceError::Port(_) => WRONG_INPUT,
            ServiceError::Socket(_) | ServiceError::System { .. } => FAILED,
        };
        Failure(error.to_string(), code)
    })
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
        .run(&DiskFiles)
        .map_err(|e| wrong(&options.commands, &e))?;
    std::fs::write(&options.output, &outcome.capture).map_err(|e| wrong(&options.output, &e))?;
    if options.json {
        println!("{}", serde_json::json!(outcome));
    } else {
        let more = if outcome.limited {
            " (the limit; there is more)"
        } else {
            ""
        };
        println!(
            "{} packets{more} in {}",
            outcome.packets,
            options.output.display()
        );
    }
    Ok(())
}

fn measure(options: &BenchOptions) -> Result<(), Failure> {
    let measured = bench::run(options.case, options.receive, options.seconds)
        .map_err(|error| Failure(error.to_string(), FAILED))?;
    println!("{}", serde_json::json!(measured));
    Ok(())
}
