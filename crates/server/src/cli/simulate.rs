//! `sim-stateful`: the files around a simulation of flows.

use std::path::{Path, PathBuf};

use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;

use super::capture_file::CaptureFile;
use super::output;
use super::{FAILED, Failure, SimStatefulOptions, WRONG_INPUT};
use crate::sim::stateful::{LinkWatch, Passing, compile_with, simulate};
use crate::threads::job::DiskFiles;

/// Runs the simulation that the options describe.
pub(super) fn run(options: &SimStatefulOptions) -> Result<(), Failure> {
    let text = super::read(&options.profile)?;
    let plan = options.plan();
    let files = DiskFiles::all();
    let profile = compile_with(&text, &plan, &files);
    let profile = profile.map_err(|error| wrong(&options.profile, &error))?;
    let mut client = Capture::open(options.client_pcap.as_ref(), Side::Client)?;
    let mut server = Capture::open(options.server_pcap.as_ref(), Side::Server)?;
    let outcome = simulate(&profile, &plan, (&mut client, &mut server));
    files.end();
    client.finish()?;
    server.finish()?;
    output::line(serde_json::json!(outcome));
    if outcome.verdict.ok {
        return Ok(());
    }
    Err(Failure(outcome.verdict.problems.join("; "), FAILED))
}

fn wrong(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure(format!("{}: {error}", file.display()), WRONG_INPUT)
}

/// What one side sends and receives, on its way to a file; or nothing.
struct Capture(Option<(Side, CaptureFile)>);

impl Capture {
    fn open(path: Option<&PathBuf>, side: Side) -> Result<Capture, Failure> {
        let open = |path: &PathBuf| Ok((side, CaptureFile::open(path)?));
        path.map(open).transpose().map(Capture)
    }

    fn finish(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |(_, file)| file.finish())
    }
}

impl LinkWatch for Capture {
    fn see(&mut self, at: Nanos, side: Side, _: Passing, frame: &[u8]) {
        if let Some((_, file)) = self.0.as_mut().filter(|(own, _)| *own == side) {
            file.keep(at, frame);
        }
    }
}
