//! Files of keys of TLS, in the format of NSS: data threads give lines to a queue, and one thread writes
//! those of all files.
//!
//! The writer looks every [`PERIOD`], so that who gives it a line never wakes a thread.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use allosaur_l7::tls::KeyLines;

use super::file_kind::name_of;
use crate::control::FileError;

/// How often the writer looks.
const PERIOD: Duration = Duration::from_millis(20);
/// Lines of a file that wait for the writer at most: those of 3,000 handshakes of TLS 1.3.
const LINES_MAX: usize = 16_384;
/// Files at a time.
const FILES_MAX: usize = 64;
/// What lines begin with, and comments: a file that begins otherwise is something else.
const BEGINNINGS: [&[u8]; 6] = [
    b"CLIENT_",
    b"SERVER_",
    b"EXPORTER_",
    b"EARLY_",
    b"RSA ",
    b"#",
];
/// The longest of them.
const BEGINNING_BYTES: u64 = 9;

/// The key logs that are open. A file is closed when nobody writes to it any more.
#[derive(Debug, Default)]
pub(super) struct KeyLogs {
    state: Mutex<State>,
    is_ending: AtomicBool,
    /// Lines that are not in their files, of all.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<OpenFile>,
    writer: Option<JoinHandle<()>>,
}

/// A file, as the writer has it.
#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
    lines: Receiver<String>,
    queue: Weak<Queue>,
    /// Lines that found no place since the writer looked.
    refused: Arc<AtomicU64>,
    /// Whether lines were dropped when it last looked, which was told.
    is_dropping: bool,
    /// Whether the file may end within a line: the system took only a part of the last ones.
    is_torn: bool,
}

/// A file, as data threads have it.
#[derive(Debug)]
struct Queue {
    lines: SyncSender<String>,
    refused: Arc<AtomicU64>,
}

impl KeyLines for Queue {
    fn write(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl KeyLogs {
    /// None yet; lines that are dropped are counted there.
    pub(super) fn new(dropped: Arc<AtomicU64>) -> KeyLogs {
        KeyLogs {
            dropped,
            ..KeyLogs::default()
        }
    }

    /// Opens a file to append to; one that is open already is the same.
    pub(super) fn open(self: &Arc<Self>, path: &Path) -> Result<Arc<dyn KeyLines>, FileError> {
        let no = |error: io::Error| FileError::Unwritable(error.to_string());
        let file = open_file(path)?;
        let path = path.canonicalize().map_err(no)?;
        let mut state = self.lock();
        let open = state.open.iter().find(|open| open.path == path);
        if let Some(queue) = open.and_then(|open| open.queue.upgrade()) {
            return Ok(queue);
        }
        if state.open.len() == FILES_MAX {
            return Err(FileError::TooManyKeyLogs(FILES_MAX));
        }
        let (lines, waiting) = sync_channel(LINES_MAX);
        let refused = Arc::default();
        let queue = Arc::new(Queue {
            lines,
            refused: Arc::clone(&refused),
        });
        state.open.push(OpenFile {
            path,
            file,
            lines: waiting,
            queue: Arc::downgrade(&queue),
            refused,
            is_dropping: false,
            is_torn: false,
        });
        if state.writer.is_none() {
            let logs = Arc::clone(self);
            let writer = Builder::new().name("key-logs".to_owned());
            let started = writer.spawn(move || while logs.write_all() {});
            state.writer = Some(started.map_err(no)?);
        }
        Ok(queue)
    }

    /// Writes what is there, and waits for more; gives whether there may be some.
    fn write_all(&self) -> bool {
        // Before the files: what was given until then is written.
        let is_ending = self.is_ending.load(Ordering::Acquire);
        let mut state = self.lock();
        state.open.retain_mut(|open| open.write(&self.dropped));
        if state.open.is_empty() || is_ending {
            state.writer = None;
            return false;
        }
        drop(state);
        sleep(PERIOD);
        true
    }

    /// Waits until the lines that were given are written.
    pub(super) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        let writer = self.lock().writer.take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the writer of key logs broke down");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenFile {
    /// Writes what is there; gives whether somebody may still write to it.
    fn write(&mut self, dropped_by_all: &AtomicU64) -> bool {
        let (mut text, mut lines) = (String::new(), 0);
        if self.is_torn {
            text.push('\n');
        }
        let is_open = loop {
            match self.lines.try_recv() {
                Ok(line) => {
                    text.push_str(&line);
                    text.push('\n');
                    lines += 1;
                }
                Err(error) => break error == TryRecvError::Empty,
            }
            if lines == LINES_MAX as u64 {
                break true;
            }
        };
        let mut dropped = self.refused.swap(0, Ordering::Relaxed);
        let mut reason = "the disk is slower than handshakes".to_owned();
        if lines > 0 {
            let written = self.file.write_all(text.as_bytes());
            self.is_torn = written.is_err();
            if let Err(error) = written {
                dropped += lines;
                reason = error.to_string();
            }
        }
        if dropped > 0 && !self.is_dropping {
            let path = self.path.display();
            tracing::warn!("the key log {path} lacks {dropped} lines, maybe more follow: {reason}");
        }
        self.is_dropping = dropped > 0;
        dropped_by_all.fetch_add(dropped, Ordering::Relaxed);
        is_open
    }
}

/// Opens it, or makes it for its owner alone. What is in it stays, and must be a key log.
fn open_file(path: &Path) -> Result<File, FileError> {
    let no = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => FileError::NoFolder,
        _ => FileError::Unwritable(error.to_string()),
    };
    // Before it is opened: opening a pipe would wait for its reader, and to make what a link names
    // would leave the folder that clients may name files of.
    if let Ok(found) = path.symlink_metadata() {
        let kind = path.metadata().map(|target| target.file_type());
        let kind = kind.unwrap_or(found.file_type());
        if !kind.is_file() {
            let what = name_of(kind);
            return Err(FileError::NotAFile { what });
        }
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let file = options.open(path).map_err(no)?;
    let mut beginning = Vec::new();
    let read = (&file).take(BEGINNING_BYTES).read_to_end(&mut beginning);
    read.map_err(no)?;
    let begins = |with: &&[u8]| beginning.starts_with(with);
    match beginning.is_empty() || BEGINNINGS.iter().any(begins) {
        true => Ok(file),
        false => Err(FileError::NotAKeyLog),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("allosaur-key-logs-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn lines_are_appended_and_a_file_is_open_once() {
        let folder = folder("append");
        let path = folder.join("keys.log");
        fs::write(&path, "# mine\n").expect("a file");
        let logs = Arc::new(KeyLogs::default());
        let one = logs.open(&path).expect("a key log");
        let again = logs.open(&folder.join("./keys.log"));
        let made = logs.open(&folder.join("made.log")).expect("a key log");
        one.write("CLIENT_RANDOM 01 02".to_owned());
        again
            .expect("the same")
            .write("CLIENT_RANDOM 03 04".to_owned());
        made.write("CLIENT_RANDOM 05 06".to_owned());
        assert_eq!(logs.lock().open.len(), 2);
        logs.end();
        let text = fs::read_to_string(&path).expect("it is there");
        assert_eq!(text, "# mine\nCLIENT_RANDOM 01 02\nCLIENT_RANDOM 03 04\n");
        let mode = fs::metadata(folder.join("made.log")).expect("it is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn what_is_dropped_is_counted() {
        let folder = folder("dropped");
        let dropped = Arc::new(AtomicU64::new(0));
        let logs = Arc::new(KeyLogs::new(Arc::clone(&dropped)));
        let queue = logs.open(&folder.join("keys.log")).expect("a key log");
        // Who holds the lock stops the writer.
        let stopped = logs.lock();
        for _ in 0..LINES_MAX + 3 {
            queue.write("CLIENT_RANDOM 01 02".to_owned());
        }
        drop(stopped);
        drop(queue);
        logs.end();
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        let text = fs::read_to_string(folder.join("keys.log")).expect("it is there");
        assert_eq!(text.lines().count(), LINES_MAX);
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn what_cannot_be_a_key_log_is_refused() {
        let folder = folder("refused");
        fs::write(folder.join("a.pcap"), [0xd4, 0xc3, 0xb2, 0xa1]).expect("a file");
        let logs = Arc::new(KeyLogs::default());
        let refused = |path: &Path| logs.open(path).expect_err("no").to_string();
        assert!(refused(&folder).starts_with("it is a folder"));
        assert!(refused(Path::new("/dev/null")).starts_with("it is a device"));
        assert!(refused(&folder.join("a.pcap")).contains("something else is in it"));
        std::os::unix::fs::symlink(folder.join("nothing"), folder.join("link")).expect("a link");
        assert!(refused(&folder.join("link")).starts_with("it is a link to nothing"));
        assert!(!folder.join("nothing").exists());
        let said = refused(&folder.join("no/keys.log"));
        assert!(said.starts_with("its folder is not there"), "{said}");
        assert_eq!(fs::read(folder.join("a.pcap")).expect("it stays").len(), 4);
        let open = |n| logs.open(&folder.join(format!("{n}.log")));
        let all: Vec<_> = (0..FILES_MAX).map(|n| open(n).expect("one more")).collect();
        let said = open(all.len()).expect_err("too many").to_string();
        assert!(said.contains("64 key logs"), "{said}");
        drop(all);
        logs.end();
        fs::remove_dir_all(&folder).expect("ours");
    }
}
