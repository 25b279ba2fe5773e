//! Files of one exporter: the one that is written, and those that are finished.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use allosaur_emulation::exports::{ExportCounts, Files};
use chrono::{DateTime, Local};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Times in names of files.
pub(super) const NAME_TIME: &str = "%Y%m%d%H%M%S";

/// Why a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Its time is over.
    Interval,
    /// It is long enough.
    Size,
    /// The exporter ends.
    End,
}

/// A file that is finished, to be posted.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) name: String,
    /// What is in it, compressed if files are.
    pub(super) bytes: Vec<u8>,
    pub(super) is_compressed: bool,
    pub(super) templates: u64,
    pub(super) records: u64,
}

/// The files of an exporter.
#[derive(Debug)]
pub(super) struct FileSet {
    settings: Files,
    /// Whether finished files are given back, to be posted.
    is_posted: bool,
    /// The open file, where there is a folder.
    file: Option<File>,
    /// What is in it, where it is posted.
    content: Vec<u8>,
    bytes: u64,
    templates: u64,
    records: u64,
    began: Instant,
    began_at: DateTime<Local>,
    number: u64,
    kept: VecDeque<PathBuf>,
}

impl FileSet {
    /// None yet; the first begins now.
    pub(super) fn new(settings: Files, is_posted: bool) -> FileSet {
        FileSet {
            settings,
            is_posted,
            file: None,
            content: Vec::new(),
            bytes: 0,
            templates: 0,
            records: 0,
            began: Instant::now(),
            began_at: Local::now(),
            number: 0,
            kept: VecDeque::new(),
        }
    }

    /// When the open file ends.
    pub(super) fn due(&self) -> Instant {
        self.began + Duration::from_nanos(self.settings.interval_max_ns)
    }

    /// Writes a message with so many records; gives a file that had to be finished before.
    pub(super) fn write(
        &mut self,
        bytes: &[u8],
        [templates, records]: [u32; 2],
        counts: &mut ExportCounts,
    ) -> Option<Finished> {
        let length = bytes.len() as u64;
        let is_full = self.bytes > 0 && self.bytes + length > self.settings.bytes_max;
        let finished = match is_full {
            true => self.rotate(Reason::Size, counts),
            false => None,
        };
        match self.append(bytes) {
            Ok(()) => {
                self.bytes += length;
                self.templates += u64::from(templates);
                self.records += u64::from(records);
                counts.writes += 1;
                counts.bytes += length;
                counts.templates += u64::from(templates);
                counts.records += u64::from(records);
            }
            Err(error) => {
                tracing::debug!("a file of an exporter cannot be written: {error}");
                counts.writes_failed += 1;
            }
        }
        finished
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_posted {
            self.content.extend_from_slice(bytes);
        }
        if self.settings.folder.is_empty() {
            return Ok(());
        }
        let path = self.open_path();
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                fs::create_dir_all(&self.settings.folder)?;
                none.insert(File::create(path)?)
            }
        };
        file.write_all(bytes)
    }

    fn open_path(&self) -> PathBuf {
        let Files {
            folder,
            prefix,
            extension,
            ..
        } = &self.settings;
        Path::new(folder).join(format!("{prefix}.{extension}"))
    }

    /// Finishes the open file and begins another; gives it when it is to be posted. One that is
    /// empty stays.
    pub(super) fn rotate(&mut self, reason: Reason, counts: &mut ExportCounts) -> Option<Finished> {
        let (began_at, now) = (self.began_at, Local::now());
        (self.began, self.began_at) = (Instant::now(), now);
        if self.bytes == 0 {
            counts.empty_files += u64::from(reason == Reason::Interval);
            return None;
        }
        counts.interval_over += u64::from(reason == Reason::Interval);
        counts.size_over += u64::from(reason == Reason::Size);
        self.number += 1;
        let Files {
            prefix, extension, ..
        } = &self.settings;
        let name = format!(
            "{prefix}_{}.{}-{}.{extension}",
            self.number,
            began_at.format(NAME_TIME),
            now.format(NAME_TIME)
        );
        let content = std::mem::take(&mut self.content);
        let (templates, records) = (self.templates, self.records);
        (self.bytes, self.templates, self.records) = (0, 0, 0);
        match self.keep(&name, counts) {
            Ok(()) => counts.rotates += 1,
            Err(error) => {
                tracing::warn!("file {name} of an exporter cannot be finished: {error}");
                counts.rotates_failed += 1;
            }
        }
        self.is_posted
            .then(|| self.pack(name, content, [templates, records]))
    }

    fn pack(&self, name: String, content: Vec<u8>, [templates, records]: [u64; 2]) -> Finished {
        let compressed = self.settings.compress.then(|| gzip(&content)).transpose();
        let (name, bytes, is_compressed) = match compressed {
            Ok(Some(bytes)) => (format!("{name}.gz"), bytes, true),
            _ => (name, content, false),
        };
        Finished {
            name,
            bytes,
            is_compressed,
            templates,
            records,
        }
    }

    /// Gives the file on disk its last name, compressed if it shall be, and removes the oldest.
    fn keep(&mut self, name: &str, counts: &mut ExportCounts) -> io::Result<()> {
        if self.file.take().is_none() {
            return Ok(());
        }
        let (open, folder) = (self.open_path(), Path::new(&self.settings.folder));
        let last = match self.settings.compress {
            false => {
                let last = folder.join(name);
                fs::rename(&open, &last)?;
                last
            }
            true => {
                let last = folder.join(format!("{name}.gz"));
                fs::write(&last, gzip(&fs::read(&open)?)?)?;
                fs::remove_file(&open)?;
                last
            }
        };
        self.kept.push_back(last);
        let most = self.settings.files_max as usize;
        while most != 0 && self.kept.len() > most {
            if let Some(oldest) = self.kept.pop_front() {
                fs::remove_file(oldest)?;
                counts.files_removed += 1;
            }
        }
        Ok(())
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
