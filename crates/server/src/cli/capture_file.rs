//! A capture that a simulation writes while it runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use allosaur_engine::time::Nanos;
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_packet::file::{CaptureError, Resolution};

use super::{Failure, SETUP, WRONG_INPUT};

/// Bytes of a capture that are kept back before they are written.
const BATCH_BYTES: usize = 1 << 16;

/// Why a capture was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("cannot be written: {0}")]
    File(#[from] io::Error),
    #[error("{0}: write no capture of runs this long")]
    Frame(#[from] CaptureError),
}

/// A capture in a file. What goes wrong is told at the end.
pub(super) struct CaptureFile {
    path: PathBuf,
    form: PcapWriter,
    file: BufWriter<File>,
    result: Result<(), WriteError>,
}

impl CaptureFile {
    /// Makes the file.
    pub(super) fn open(path: &Path) -> Result<CaptureFile, Failure> {
        let file = File::create(path).map_err(|error| {
            let text = format!("{}: cannot be written: {error}", path.display());
            Failure(text, WRONG_INPUT)
        })?;
        Ok(CaptureFile {
            path: path.to_owned(),
            form: PcapWriter::new(Resolution::Nanoseconds),
            file: BufWriter::new(file),
            result: Ok(()),
        })
    }

    /// Adds a frame.
    pub(super) fn keep(&mut self, at: Nanos, frame: &[u8]) {
        if self.result.is_ok() {
            self.result = self.write_frame(at, frame);
        }
    }

    /// Writes what was kept back, and says whether all was written.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let result = std::mem::replace(&mut self.result, Ok(()));
        let result = result.and_then(|()| {
            self.write_out()?;
            Ok(self.file.flush()?)
        });
        result.map_err(|error| Failure(format!("{}: {error}", self.path.display()), SETUP))
    }

    fn write_frame(&mut self, at: Nanos, frame: &[u8]) -> Result<(), WriteError> {
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
