//! Capture files and the key logs beside them, as control sees them: a name goes in, bytes, or what
//! takes lines, or the reason why not come out.

use std::fmt;
use std::sync::Arc;

use allosaur_l7::tls::KeyLines;

use thiserror::Error;

/// Where capture files are read, and keys of TLS are written for who reads captures.
pub trait CaptureFiles: fmt::Debug {
    /// All bytes of a file of at most `bytes_max`.
    fn read(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, FileError>;

    /// A key log, of which lines are appended to that file.
    fn open_key_log(&self, path: &str) -> Result<Arc<dyn KeyLines>, FileError>;
}

/// No files at all, for what reads profiles only to look at them.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl CaptureFiles for NoFiles {
    fn read(&self, _: &str, _: u64) -> Result<Vec<u8>, FileError> {
        Err(FileError::NoFiles)
    }

    fn open_key_log(&self, _: &str) -> Result<Arc<dyn KeyLines>, FileError> {
        Err(FileError::NoFiles)
    }
}

/// Why a file is not read or written; says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// Nothing of that name.
    #[error(
        "there is no such file on the server's machine: give an absolute path, or one relative to \
         the folder that the server was started in ({folder})"
    )]
    Missing {
        /// The folder.
        folder: String,
    },
    /// Outside of the folder that clients may name files of. It says nothing of what is there.
    #[error(
        "it is not in {folder}, the folder where clients of this server may name files: name one there, \
         or start the server with --captures-folder and the file's folder (captures_folder in its \
         configuration); / allows all files"
    )]
    Outside {
        /// The folder.
        folder: String,
    },
    /// Something else of that name.
    #[error("it is {what}, not a file: name a file")]
    NotAFile {
        /// What it is.
        what: &'static str,
    },
    /// More than is read.
    #[error("the file has {bytes} bytes and the limit is {bytes_max}: send a part of it")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The system says no.
    #[error("the system refused to read it: {0}")]
    Refused(String),
    /// The folder of a file to be written is missing.
    #[error("its folder is not there: make it on the server's machine, or name another")]
    NoFolder,
    /// The system says no.
    #[error("the system refused to write it: {0}: name a file that the server's user may write")]
    Unwritable(String),
    /// It would be spoilt.
    #[error(
        "something else is in it, and lines would be appended: name a new file, or one of keys (NSS)"
    )]
    NotAKeyLog,
    /// Too many at a time.
    #[error("{0} key logs are open, the most at a time: have templates share one")]
    TooManyKeyLogs(usize),
    /// Whoever reads the profile has no files.
    #[error("there are no files here: leave it out")]
    NoFiles,
}
