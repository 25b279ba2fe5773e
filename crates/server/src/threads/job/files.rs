//! The files of the machine, for what control has to read, and for keys of TLS.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use allosaur_l7::tls::KeyLines;

use super::file_kind::name_of;
use super::key_logs::KeyLogs;
use crate::control::{CaptureFiles, FileError};

/// The file system, seen from the folder that the process was started in; of one folder, when others
/// than who has started it name the files.
#[derive(Clone, Debug)]
pub struct DiskFiles {
    /// `None` is all.
    folder: Option<PathBuf>,
    key_logs: Arc<KeyLogs>,
}

impl DiskFiles {
    /// All of it.
    pub fn all() -> DiskFiles {
        DiskFiles {
            folder: None,
            key_logs: Arc::default(),
        }
    }

    /// One folder, with the folders in it; the one that the process was started in unless named. Lines
    /// that key logs lack are counted in `key_log_lines_dropped`.
    pub fn within(folder: Option<&Path>, key_log_lines_dropped: &Arc<AtomicU64>) -> DiskFiles {
        let named = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let folder = named.canonicalize().unwrap_or(named);
        DiskFiles {
            folder: Some(folder),
            key_logs: Arc::new(KeyLogs::new(Arc::clone(key_log_lines_dropped))),
        }
    }

    /// Waits until all that was given to key logs is written; nothing is written after that.
    pub fn end(&self) {
        self.key_logs.end();
    }

    /// Refuses what is outside, whether it is there or not, and wherever links lead.
    fn check(&self, path: &Path) -> Result<(), FileError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let outside = || FileError::Outside {
            folder: folder.display().to_string(),
        };
        let here = std::env::current_dir().map_err(|error| refused(&error))?;
        let path = here.join(path);
        let mut known = path.as_path();
        // What is there of the path says where it leads.
        let real = loop {
            match known.canonicalize() {
                Ok(real) => break real,
                Err(_) => known = known.parent().ok_or_else(outside)?,
            }
        };
        let rest = path.strip_prefix(known).map_err(|_| outside())?;
        let leaves = rest.components().any(|part| part == Component::ParentDir);
        match real.starts_with(folder) && !leaves {
            true => Ok(()),
            false => Err(outside()),
        }
    }
}

impl CaptureFiles for DiskFiles {
    fn read(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        self.check(Path::new(path))?;
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

    fn open_key_log(&self, path: &str) -> Result<Arc<dyn KeyLines>, FileError> {
        let path = Path::new(path);
        self.check(path)?;
        self.key_logs.open(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_small_file_is_named() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let file = format!("{folder}/Cargo.toml");
        let bytes = fs::read(&file).expect("it is there");
        let size = bytes.len() as u64;
        assert_eq!(DiskFiles::all().read(&file, size), Ok(bytes));
        let text = |path: &str, bytes_max| match DiskFiles::all().read(path, bytes_max) {
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

    #[test]
    fn what_is_outside_of_the_folder_is_not_told_of() {
        let name = format!("allosaur-captures-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let inner = folder.join("inner");
        fs::create_dir_all(&inner).expect("a folder");
        fs::write(inner.join("a.pcap"), "x").expect("a file");
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).expect("a link");
        let files = DiskFiles::within(Some(&folder), &Arc::default());
        let read = |path: &str| files.read(path, 1 << 20);
        let inside = |path: &str| format!("{}/{path}", folder.display());
        for path in [inside("inner/a.pcap"), inside("inner/../inner/a.pcap")] {
            assert_eq!(read(&path), Ok(b"x".to_vec()), "{path}");
        }
        assert!(matches!(
            read(&inside("no.pcap")),
            Err(FileError::Missing { .. })
        ));
        for path in [
            "/etc/passwd".to_owned(),
            "/etc/no-such-file".to_owned(),
            "/no/such/folder/a.pcap".to_owned(),
            "Cargo.toml".to_owned(),
            inside("link"),
            inside("../x"),
            inside("no/../../../etc/passwd"),
            inside("inner/../../../etc/passwd"),
        ] {
            let error = read(&path).expect_err("it is outside");
            assert!(
                error.to_string().contains("--captures-folder"),
                "{path}: {error}"
            );
            let error = files.open_key_log(&path).expect_err("it is outside");
            assert!(matches!(error, FileError::Outside { .. }), "{path}");
        }
        let all = DiskFiles::within(Some(Path::new("/")), &Arc::default());
        assert!(all.read("/etc/passwd", 1 << 20).is_ok());
        fs::remove_dir_all(&folder).expect("ours");
    }
}
