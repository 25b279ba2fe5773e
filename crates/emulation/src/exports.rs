//! What clients have the server do for them outside of the emulation: write files, send by its own
//! sockets, post to web servers.
//!
//! The emulation says what in [`Export`]s, in order; the server does it, and tells what came of it
//! in [`ExportReport`]s.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use rustc_hash::FxHashMap;

use crate::client::ClientId;

/// One client's way out. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExporterId(pub u64);

/// How messages are put into files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The folder; empty when files are kept in memory until they are posted.
    pub folder: String,
    /// What names of files begin with.
    pub prefix: String,
    /// Their ending, without compression's.
    pub extension: String,
    /// A file ends when it would be longer.
    pub bytes_max: u64,
    /// A file ends after so many nanoseconds.
    pub interval_max_ns: u64,
    /// The oldest goes when there are more; 0 is no limit.
    pub files_max: u32,
    /// Whether finished files are compressed (gzip).
    pub compress: bool,
}

/// Where finished files are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The address, of `http`.
    pub url: String,
    /// More fields of the request's header, by name.
    pub header_fields: Vec<(String, String)>,
    /// After so many posts no more are made; 0 is no limit.
    pub posts_max: u64,
    /// How often each file is posted again.
    pub repeats: u32,
    /// How long to wait before each time.
    pub repeat_wait_ns: u64,
}

/// Where datagrams go, by a socket of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    /// `host:port`.
    pub to: String,
    /// The address that they come from, though the server's machine has another; none is its own.
    pub from: Option<Ipv4Addr>,
    /// The interface that they leave by; none is that of the route.
    pub interface: Option<String>,
}

/// Files that are there already, and are sent as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// A folder, whose files are taken in the order of their names; or one file.
    pub path: String,
    /// How often they are read.
    pub scans: u32,
    /// How long to wait after a file; none is as long as the times in their names are apart.
    pub file_wait_ns: Option<u64>,
    /// By how many hundredths the times in names go faster.
    pub speedup_percent: u32,
    /// How long to wait after each datagram of a file.
    pub packet_wait_ns: u64,
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// By a socket of the server.
    Udp(Udp),
    /// Into files.
    Files(Files),
    /// Into files that are posted.
    Post(Files, Post),
    /// Nowhere: messages of files go by a socket of the server.
    FolderUdp(Folder, Udp),
    /// Nowhere: files are posted.
    FolderPost(Folder, Post),
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Export {
    /// Messages of this exporter follow.
    Open(ExporterId, Destination),
    /// A message.
    Message {
        /// Whose.
        exporter: ExporterId,
        /// What to write or send.
        bytes: Vec<u8>,
        /// Records of templates in it.
        templates: u32,
        /// Records of data in it.
        records: u32,
    },
    /// No more follow: what is open is finished.
    Close(ExporterId),
}

/// What was done since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Messages that were taken, whatever came of them.
    pub handled: u64,
    /// Messages that were written.
    pub writes: u64,
    /// Messages that could not be written.
    pub writes_failed: u64,
    /// Bytes of messages that were written.
    pub bytes: u64,
    /// Records of templates in them.
    pub templates: u64,
    /// Records of data in them.
    pub records: u64,
    /// Files that were finished.
    pub rotates: u64,
    /// Files that could not be finished.
    pub rotates_failed: u64,
    /// Files that ended since their time was over.
    pub interval_over: u64,
    /// Files that ended since they were long enough.
    pub size_over: u64,
    /// Files that went since there were too many.
    pub files_removed: u64,
    /// Posts that were left out since there had been enough.
    pub posts_left_out: u64,
    /// Finished files that were empty.
    pub empty_files: u64,
    /// Posts that were made again.
    pub retries: u64,
}

/// A file that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostReport {
    /// Its name.
    pub name: String,
    /// When, as text.
    pub time: String,
    /// The status and its name, such as `200 OK`; what went wrong when there was no reply.
    pub reply: Result<(u16, String), String>,
    /// What the server said.
    pub message: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Records of templates in it.
    pub templates: u64,
    /// Records of data in it.
    pub records: u64,
    /// Whether it is tried again, as there was no reply.
    pub will_retry: bool,
}

/// What came of an exporter's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportReport {
    /// Whose.
    pub exporter: ExporterId,
    /// What was done.
    pub counts: ExportCounts,
    /// Files that were posted.
    pub posts: Vec<PostReport>,
}

/// Whose an exporter is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExporterOwner {
    pub(crate) namespace: u32,
    pub(crate) client: ClientId,
    pub(crate) plugin: u8,
}

/// What waits to be done, and whose it is.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    /// Whether clients may have anything done outside.
    pub(crate) is_allowed: bool,
    waiting: VecDeque<Export>,
    owners: FxHashMap<ExporterId, ExporterOwner>,
    last: u64,
}

impl Exports {
    /// Nothing yet.
    pub(crate) fn new(is_allowed: bool) -> Exports {
        Exports {
            is_allowed,
            ..Exports::default()
        }
    }

    /// Opens an exporter for a client's plugin.
    pub(crate) fn open(&mut self, owner: ExporterOwner, destination: Destination) -> ExporterId {
        self.last += 1;
        let exporter = ExporterId(self.last);
        self.owners.insert(exporter, owner);
        self.waiting.push_back(Export::Open(exporter, destination));
        exporter
    }

    /// Gives it a message.
    pub(crate) fn write(&mut self, exporter: ExporterId, bytes: &[u8], counts: [u32; 2]) {
        let [templates, records] = counts;
        self.waiting.push_back(Export::Message {
            exporter,
            bytes: bytes.to_vec(),
            templates,
            records,
        });
    }

    /// Ends it.
    pub(crate) fn close(&mut self, exporter: ExporterId) {
        if self.owners.remove(&exporter).is_some() {
            self.waiting.push_back(Export::Close(exporter));
        }
    }

    /// Whose it is, while it is open.
    pub(crate) fn owner(&self, exporter: ExporterId) -> Option<ExporterOwner> {
        self.owners.get(&exporter).copied()
    }

    /// The next thing to do.
    pub(crate) fn pop(&mut self) -> Option<Export> {
        self.waiting.pop_front()
    }
}
