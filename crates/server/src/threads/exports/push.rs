//! Files that are there already, sent as they are: posted, or by datagrams of one message each.
//!
//! For datagrams a file is one of IPFIX messages (RFC 5655), compressed (gzip) or not.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use allosaur_emulation::exports::{ExportCounts, Folder, Post, Udp};
use chrono::NaiveDateTime;
use flate2::read::GzDecoder;
use tokio::time::sleep;

use super::files::{Finished, NAME_TIME};
use super::post::unread;
use super::{Tell, socket};

/// The largest file, read or unpacked.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// How a message begins: its version, and its length with this header (RFC 7011, section 3.1).
const IPFIX: u16 = 10;
const HEADER_BYTES: usize = 16;
/// Digits of a time in the name of a file.
const TIME_DIGITS: usize = 14;
/// How compressed files end.
const COMPRESSED: &str = ".gz";

/// Sends the messages of files, each as a datagram.
pub(super) async fn by_udp(folder: &Folder, to: &Udp, tell: &Tell) {
    let failed = || ExportCounts {
        writes_failed: 1,
        ..ExportCounts::default()
    };
    let Ok(socket) = socket::open(to) else {
        return tell.sent(failed());
    };
    for _ in 0..folder.scans {
        for (path, wait) in files(folder, |error| {
            tracing::warn!("files to send: {}: {error}", folder.path);
            tell.sent(failed());
        }) {
            let bytes = match read(&path, true) {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::warn!("file to send: {}: {error}", path.display());
                    tell.sent(failed());
                    continue;
                }
            };
            for message in messages(&bytes) {
                let sent = message.and_then(|message| socket.0.send_to(message, socket.1));
                tell.sent(ExportCounts {
                    writes: u64::from(sent.is_ok()),
                    writes_failed: u64::from(sent.is_err()),
                    bytes: sent.as_ref().map_or(0, |bytes| *bytes as u64),
                    ..ExportCounts::default()
                });
                if let Err(error) = sent {
                    tracing::warn!("file to send: {}: {error}", path.display());
                }
                sleep(Duration::from_nanos(folder.packet_wait_ns)).await;
            }
            sleep(wait).await;
        }
    }
}

/// Posts files.
pub(super) async fn by_post(folder: &Folder, to: &Arc<Post>, tell: &Tell) {
    let mut begun = 0;
    for _ in 0..folder.scans {
        for (path, wait) in files(folder, |error| {
            tell.posted(unread(folder.path.clone(), &error), false);
        }) {
            if to.posts_max != 0 && begun >= to.posts_max {
                return;
            }
            begun += 1;
            let name = name(&path);
            match read(&path, false) {
                Err(error) => tell.posted(unread(name, &error), false),
                Ok(bytes) => {
                    let file = Finished {
                        is_compressed: name.ends_with(COMPRESSED),
                        name,
                        bytes,
                        templates: 0,
                        records: 0,
                    };
                    tell.posts(to, &Arc::new(file)).await;
                }
            }
            sleep(wait).await;
        }
    }
}

/// The files in order, and how long to wait after each.
fn files(folder: &Folder, failed: impl FnOnce(io::Error)) -> Vec<(PathBuf, Duration)> {
    let paths = list(Path::new(&folder.path)).unwrap_or_else(|error| {
        failed(error);
        Vec::new()
    });
    let next = paths.iter().skip(1).map(Some).chain([None]);
    let waits: Vec<Duration> = paths
        .iter()
        .zip(next)
        .map(|(path, next)| match folder.file_wait_ns {
            Some(wait) => Duration::from_nanos(wait),
            None => apart(path, next, folder.speedup_percent),
        })
        .collect();
    paths.into_iter().zip(waits).collect()
}

/// The files of a folder by name, or the one file.
fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the folder has no files",
        ));
    }
    paths.sort();
    Ok(paths)
}

/// How far the times in two names are apart; nothing when there are none, or in the last.
fn apart(path: &Path, next: Option<&PathBuf>, speedup_percent: u32) -> Duration {
    let times = next.and_then(|next| time_of(&name(path)).zip(time_of(&name(next))));
    let apart = times.and_then(|(first, second)| (second - first).to_std().ok());
    apart.unwrap_or_default() * 100 / speedup_percent.max(1)
}

/// The first time in a name, as in those of our own files.
fn time_of(name: &str) -> Option<NaiveDateTime> {
    let mut words = name.split(|letter: char| !letter.is_ascii_digit());
    let digits = words.find(|word| word.len() == TIME_DIGITS)?;
    NaiveDateTime::parse_from_str(digits, NAME_TIME).ok()
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn read(path: &Path, is_unpacked: bool) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    match is_unpacked && name(path).ends_with(COMPRESSED) {
        true => GzDecoder::new(file)
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?,
        false => file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?,
    };
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}

/// The messages of a file. What is none ends it with an error.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = io::Result<&[u8]>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let head = bytes.first_chunk::<4>();
        let length = head.and_then(|&[v0, v1, l0, l1]| {
            let length = usize::from(u16::from_be_bytes([l0, l1]));
            (u16::from_be_bytes([v0, v1]) == IPFIX && length >= HEADER_BYTES).then_some(length)
        });
        let message = length.and_then(|length| bytes.split_at_checked(length));
        let Some((message, rest)) = message else {
            bytes = &[];
            return Some(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what follows is no IPFIX message: write one file of IPFIX messages after the other",
            )));
        };
        bytes = rest;
        Some(Ok(message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: u16) -> Vec<u8> {
        let mut message = vec![0; usize::from(bytes)];
        message[..2].copy_from_slice(&IPFIX.to_be_bytes());
        message[2..4].copy_from_slice(&bytes.to_be_bytes());
        message
    }

    #[test]
    fn a_file_is_cut_into_its_messages() {
        let file = [message(16), message(40)].concat();
        let lengths: Vec<usize> = messages(&file).map(|m| m.expect("one").len()).collect();
        assert_eq!(lengths, [16, 40]);
    }

    #[test]
    fn what_is_no_message_ends_the_file() {
        for tail in [
            &[0u8, 9, 0, 20][..],
            &[0, 10, 0, 15],
            &[0, 10],
            &[0, 10, 1, 0],
        ] {
            let file = [&message(20)[..], tail].concat();
            let found: Vec<bool> = messages(&file).map(|message| message.is_ok()).collect();
            assert_eq!(found, [true, false], "{tail:?}");
        }
    }

    #[test]
    fn times_in_names_say_how_long_to_wait() {
        let first = Path::new("flows_1.20261123100000-20261123100100.ipfix.gz");
        let second = PathBuf::from("flows_2.20261123100100-20261123100200.ipfix.gz");
        let other = PathBuf::from("flows.ipfix");
        assert_eq!(apart(first, Some(&second), 100), Duration::from_secs(60));
        assert_eq!(apart(first, Some(&second), 6000), Duration::from_secs(1));
        assert_eq!(apart(&second, Some(&first.to_owned()), 100), Duration::ZERO);
        assert_eq!(apart(first, Some(&other), 100), Duration::ZERO);
        assert_eq!(apart(first, None, 100), Duration::ZERO);
    }

    #[test]
    fn a_folder_without_files_is_an_error() {
        let folder = std::env::temp_dir().join(format!("allosaur-push-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        assert!(list(&folder).is_err());
        assert!(list(&folder.join("none")).is_err());
        fs::write(folder.join("b"), "").expect("a file");
        fs::write(folder.join("a"), "").expect("a file");
        let names: Vec<String> = list(&folder)
            .expect("two")
            .iter()
            .map(|p| name(p))
            .collect();
        assert_eq!(names, ["a", "b"]);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
