//! The job that reads a capture file for the ports that shall send it.

use allosaur_api::limits::CAPTURE_FILE_BYTES_MAX;
use allosaur_engine::stream::Replay;
use allosaur_engine::stream::recording::{Pace, both_ways, one_way};
use allosaur_engine::stream::replay::Macs;

use crate::control::config::PortConfig;
use crate::control::files::CaptureFiles;
use crate::control::job::Work;

/// Reads a capture file for one port, or for two, one for each direction.
#[derive(Debug)]
pub(super) struct ReadCapture {
    /// The file's name.
    pub(super) path: String,
    /// How fast its packets leave.
    pub(super) pace: Pace,
    /// Each port, and what its frames get in place of their own addresses.
    pub(super) ports: Vec<(PortConfig, Macs)>,
}

impl Work for ReadCapture {
    /// What each port sends.
    type Output = Vec<Replay>;

    fn run(self, files: &dyn CaptureFiles) -> Result<Vec<Replay>, String> {
        let bytes = files.read(&self.path, CAPTURE_FILE_BYTES_MAX);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let replays = match &self.ports[..] {
            [(_, macs)] => one_way(&bytes, &self.pace, *macs).map(|replay| vec![replay]),
            [(_, macs), (_, others)] => {
                both_ways(&bytes, &self.pace, [*macs, *others]).map(Vec::from)
            }
            _ => Ok(Vec::new()),
        };
        let replays = replays.map_err(|error| error.to_string())?;
        for ((config, _), replay) in self.ports.iter().zip(&replays) {
            let mut packets = replay.packets();
            packets.try_for_each(|frame| config.check_frame(frame))?;
        }
        Ok(replays)
    }
}
