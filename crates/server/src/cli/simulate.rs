//! `sim-stateful`: the files around a simulation of flows.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_packet::file::{CaptureError, Resolution};

use super::{FAILED, Failure, SETUP, SimStatefulOptions, WRONG_INPUT};
use crate::sim::stateful::{LinkWatch, Passing, compile, simulate};

/// Bytes of a capture that are kept back before they are written.
const BATCH_BYTES: usize = 1 << 16;

/// Runs the simulation that the options describe.
pub(super) fn run(options: &SimStatefulOptions) -> Result<(), Failure> {
    let text = super::read(&options.profile)?;
    let plan = options.plan();
    let profile = compile(&text, &plan).map_err(|error| wrong(&options.profile, &error))?;
    let mut client = Capture::open(options.client_pcap.as_ref(), Side::Client)?;
    let mut server = Capture::open(options.server_pcap.as_ref(), Side::Server)?;
    let outcome = simulate(&profile, &plan, (&mut client, &mut server));
    client.finish()?;
    server.finish()?;
    println!("{}", serde_json::json!(outcome));
    if outcome.verdict.ok {
        return Ok(());
    }
    Err(Failure(outcome.verdict.problems.join("; "), FAILED))
}

fn wrong(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure(format!("{}: {error}", file.display()), WRONG_INPUT)
}

/// Why a capture was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("cannot be written: {0}")]
    File(#[from] io::Error),
    #[error("{0}: write no capture of runs this long")]
    Frame(#[from] CaptureError),
}

/// What one side sends and receives, on its way to a file; or nothing.
struct Capture(Option<CaptureFile>);

struct CaptureFile {
    path: PathBuf,
    side: Side,
    form: PcapWriter,
    file: BufWriter<File>,
    result: Result<(), WriteError>,
}

impl Capture {
    fn open(path: Option<&PathBuf>, side: Side) -> Result<Capture, Failure> {
        let open = |path: &PathBuf| {
            let file = File::create(path)
                .map_err(|error| wrong(path, &format!("cannot be written: {error}")))?;
            Ok(CaptureFile {
                path: path.clone(),
                side,
                form: PcapWriter::new(Resolution::Nanoseconds),
                file: BufWriter::new(file),
                result: Ok(()),
            })
        };
        path.map(open).transpose().map(Capture)
    }

    fn finish(self) -> Result<(), Failure> {
        let Some(mut file) = self.0 else {
            return Ok(());
        };
        let result = std::mem::replace(&mut file.result, Ok(()));
        let result = result.and_then(|()| {
            file.write_out()?;
            Ok(file.file.flush()?)
        });
        result.map_err(|error| Failure(format!("{}: {error}", file.path.display()), SETUP))
    }
}

impl CaptureFile {
    fn keep(&mut self, at: Nanos, frame: &[u8]) -> Result<(), WriteError> {
        self.form.write_frame(at, frame)?;
        if self.form.bytes().len() >= BATCH_BYTES {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), WriteError> {
        self.file.write_all(self.form.bytes())?;
        self.form.clear();
        Ok(())
    }
}

impl LinkWatch for Capture {
    fn see(&mut self, at: Nanos, side: Side, _: Passing, frame: &[u8]) {
        let Some(file) = &mut self.0 else {
            return;
        };
        if file.side == side && file.result.is_ok() {
            file.result = file.keep(at, frame);
        }
    }
}
