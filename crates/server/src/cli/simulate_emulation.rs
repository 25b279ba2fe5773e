//! `sim-emulation`: emulated clients in virtual time, driven by lines of the standard input.
//!
//! A line is a message of the RPC of emulated clients, and is answered by its reply in a line; or it is
//! `{"run_until_s": 2.4}`, which lets time pass and is answered by how many packets there are.

use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;

use allosaur_engine::time::Nanos;
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::capture_file::CaptureFile;
use super::{Failure, SETUP, WRONG_INPUT};
use crate::sim::{EMULATED_PORTS_MAX, EmulatedNetwork};

/// What a line begins with that lets time pass.
const STEP: &[u8] = b"{\"run_until_s\"";
/// Time ends here, in seconds: a capture can say no more.
const UNTIL_S_MAX: f64 = 4_294_967_295.0;

/// Options of `sim-emulation`.
#[derive(Clone, Debug, Args)]
pub struct SimEmulationOptions {
    /// How many ports there are; 0 and 1 are joined, 2 and 3, and so on
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=EMULATED_PORTS_MAX.into()))]
    pub ports: u16,
    /// Packets that are written at most [default: no limit]
    #[arg(long)]
    pub limit: Option<u64>,
    /// Write what is sent on all ports to this pcap file
    #[arg(long)]
    pub pcap: Option<PathBuf>,
}

/// Time passes up to here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    run_until_s: f64,
}

/// What was sent.
struct Sent {
    file: Option<CaptureFile>,
    limit: u64,
    packets: u64,
    lost: u64,
}

impl Sent {
    fn see(&mut self, at: Nanos, frame: &[u8]) {
        if self.packets == self.limit {
            self.lost += 1;
            return;
        }
        self.packets += 1;
        if let Some(file) = &mut self.file {
            file.keep(at, frame);
        }
    }
}

/// Simulates until the standard input ends.
pub(super) fn run(options: &SimEmulationOptions) -> Result<(), Failure> {
    let file = options.pcap.as_deref().map(CaptureFile::open).transpose()?;
    let mut sent = Sent {
        file,
        limit: options.limit.unwrap_or(u64::MAX),
        packets: 0,
        lost: 0,
    };
    let mut network = EmulatedNetwork::new(options.ports);
    let broken = |error| Failure(format!("standard input and output: {error}"), SETUP);
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(broken)? == 0 {
            break;
        }
        let mut watch = |at, _: u16, frame: &[u8]| sent.see(at, frame);
        let mut reply = if line.starts_with(STEP) {
            network.run(until(&line)?, &mut watch);
            json!({"packets": sent.packets, "lost_packets": sent.lost})
                .to_string()
                .into_bytes()
        } else {
            network.request(line.trim_ascii_end(), &mut watch)
        };
        reply.push(b'\n');
        output.write_all(&reply).map_err(broken)?;
        output.flush().map_err(broken)?;
    }
    sent.file.map_or(Ok(()), CaptureFile::finish)
}

/// When a step ends.
fn until(line: &[u8]) -> Result<Nanos, Failure> {
    let step: Result<Step, _> = serde_json::from_slice(line);
    let step = step.map_err(|error| Failure(format!("run_until_s: {error}"), WRONG_INPUT))?;
    match step.run_until_s {
        seconds if (0.0..=UNTIL_S_MAX).contains(&seconds) => Ok((seconds * 1e9).round() as Nanos),
        seconds => {
            let text = format!("run_until_s: {seconds} is not from 0 to {UNTIL_S_MAX}");
            Err(Failure(text, WRONG_INPUT))
        }
    }
}
