//! The files of the machine, for what control has to read.

use std::fs::{self, File, FileType};
use std::io::{ErrorKind, Read};

use crate::control::{CaptureFiles, FileError};

/// The file system, seen from the folder that the process was started in.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl CaptureFiles for DiskFiles {
    fn read(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        // Looked at before it is opened: opening a pipe would wait for its writer.
        let found = fs::metadata(path).map_err(|error| refused(&error))?;
        let kind = found.file_type();
        if !kind.is_file() {
            let what = name_of(kind);
            return Err(FileError::NotAFile { what });
        }
        let too_large = |bytes| FileError::TooLarge { bytes, bytes_max };
        if found.len() > bytes_max {
            return Err(too_large(found.len()));
        }
        let mut bytes = Vec::with_capacity(found.len() as usize);
        let file = File::open(path).map_err(|error| refused(&error))?;
        // It may grow while it is read.
        let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| refused(&error))?;
        if bytes.len() as u64 > bytes_max {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(bytes)
    }
}

fn refused(error: &std::io::Error) -> FileError {
    if error.kind() != ErrorKind::NotFound {
        return FileError::Refused(error.to_string());
    }
    let folder = std::env::current_dir().map(|folder| folder.display().to_string());
    FileError::Missing {
        folder: folder.unwrap_or_else(|_| "which is gone".to_owned()),
    }
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else {
        "a device, pipe or socket"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_small_file_is_named() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let file = format!("{folder}/Cargo.toml");
        let bytes = fs::read(&file).expect("it is there");
        let size = bytes.len() as u64;
        assert_eq!(DiskFiles.read(&file, size), Ok(bytes));
        let text = |path: &str, bytes_max| match DiskFiles.read(path, bytes_max) {
            Ok(_) => panic!("{path} was read"),
            Err(error) => error.to_string(),
        };
        let said = text(&file, size - 1);
        assert!(said.contains(&format!("has {size} bytes and the limit is {}", size - 1)));
        assert!(text(folder, 1).starts_with("it is a folder"));
        assert!(text("/dev/zero", 1).starts_with("it is a device"));
        let said = text("no/such/file.pcap", 1);
        let here = std::env::current_dir().expect("a folder");
        assert!(said.starts_with("there is no such file"), "{said}");
        assert!(said.contains(&here.display().to_string()), "{said}");
        assert!(text(&format!("{file}/x"), 1).starts_with("the system refused"));
    }
}
