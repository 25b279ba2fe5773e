//! What takes too long for control: a job is a value that goes to a thread of its own, and so is what
//! comes of it.

use std::sync::Arc;

use allosaur_api::limits::CAPTURE_FILE_BYTES_MAX;
use allosaur_engine::stream::CoreProgram;
use allosaur_engine::stream::Replay;
use allosaur_engine::stream::recording::{Pace, both_ways, one_way};
use allosaur_engine::stream::replay::Macs;
use allosaur_engine::template::{CompiledProfile, Layout};

use super::config::PortConfig;
use super::files::CaptureFiles;
use super::stateful::profile;

/// Something to do that takes long.
#[derive(Debug)]
pub enum Job {
    /// Read a capture file for the ports that shall send it: one, or one for each direction.
    ReadCapture {
        /// The file's name.
        path: String,
        /// How fast its packets leave.
        pace: Pace,
        /// Each port, and what its frames get in place of their own addresses.
        ports: Vec<(PortConfig, Macs)>,
    },
    /// Understand the text of a stateful profile.
    CompileProfile {
        /// Its JSON.
        text: Arc<String>,
        /// All its addresses are IPv6.
        ipv6: bool,
        /// On how many threads and ports it runs.
        layout: Layout,
    },
    /// Free what a data thread is done with.
    Free(Box<CoreProgram>),
}

/// What came of a job; texts say what is wrong.
#[derive(Debug)]
pub enum JobResult {
    /// What each port sends.
    Capture(Result<Vec<Replay>, String>),
    /// What the text means.
    Profile(Result<Arc<CompiledProfile>, String>),
    /// Nothing to tell.
    Done,
    /// Something else came in between.
    Failed(String),
}

impl Job {
    /// Does it.
    pub fn run(self, files: &dyn CaptureFiles) -> JobResult {
        match self {
            Job::ReadCapture { path, pace, ports } => {
                JobResult::Capture(read_capture(&path, &pace, &ports, files))
            }
            Job::CompileProfile { text, ipv6, layout } => {
                let compiled = profile::compile_as(&text, ipv6, layout);
                let compiled = compiled.map(Arc::new).map_err(|error| error.to_string());
                JobResult::Profile(compiled)
            }
            Job::Free(program) => {
                drop(program);
                JobResult::Done
            }
        }
    }
}

fn read_capture(
    path: &str,
    pace: &Pace,
    ports: &[(PortConfig, Macs)],
    files: &dyn CaptureFiles,
) -> Result<Vec<Replay>, String> {
    let bytes = files.read(path, CAPTURE_FILE_BYTES_MAX);
    let bytes = bytes.map_err(|error| error.to_string())?;
    let replays = match ports {
        [(_, macs)] => one_way(&bytes, pace, *macs).map(|replay| vec![replay]),
        [(_, macs), (_, others)] => both_ways(&bytes, pace, [*macs, *others]).map(Vec::from),
        _ => Ok(Vec::new()),
    };
    let replays = replays.map_err(|error| error.to_string())?;
    for ((config, _), replay) in ports.iter().zip(&replays) {
        let mut packets = replay.packets();
        packets.try_for_each(|frame| config.check_frame(frame))?;
    }
    Ok(replays)
}
