//! Capture files, as control sees them: a name goes in, bytes or the reason why not come out.

use std::fmt;

use thiserror::Error;

/// Where capture files are read.
pub trait CaptureFiles: fmt::Debug {
    /// All bytes of a file of at most `bytes_max`.
    fn read(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, FileError>;
}

/// Why a file is not read; says what is wrong and what to do.
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
        "it is not in {folder}, the folder whose captures this server sends: put the file there, or \
         start the server with --captures-folder and the file's folder (captures_folder in its \
         configuration); / allows all files"
    )]
    Outside {
        /// The folder.
        folder: String,
    },
    /// Something else of that name.
    #[error("it is {what}, not a file: name a capture file")]
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
}
