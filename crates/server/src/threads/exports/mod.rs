//! The thread that does for emulated clients what reaches out of the emulation: it writes files, sends datagrams by
//! sockets of its own, and posts finished files.
//!
//! Posts wait beside each other; files and datagrams are written one after the other.

mod files;
mod post;
mod push;
mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::Sender as ReportSender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use allosaur_emulation::exports::{
    Destination, Export, ExportCounts, ExportReport, ExporterId, Post, PostReport,
};
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use self::files::{FileSet, Finished, Reason};
use crate::emulation::exports::{ExportChannel, ExportJob, TellExports};
use crate::threads::refusal::{Refusal, refused};

/// Jobs that are done before what came of them is told.
const JOBS_PER_TURN: usize = 1024;
/// The longest wait, when no file is open.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Something for the thread to do.
enum Job {
    /// What emulated clients say.
    Clients(ExportJob),
    /// A post was made, of an exporter of the emulation with this number.
    Posted(u32, ExporterId, PostReport, bool),
    /// Something was sent, likewise.
    Sent(u32, ExporterId, ExportCounts),
    /// The server ends.
    End,
}

/// The thread, which ends when this is dropped: it finishes files that are open.
#[derive(Debug)]
pub(super) struct ExportThread {
    jobs: UnboundedSender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl ExportThread {
    /// Starts it; gives the end of the emulated clients.
    ///
    /// # Errors
    ///
    /// When the system refuses what it needs.
    pub(super) fn start() -> Result<(ExportThread, ExportChannel), Refusal> {
        let (jobs, jobs_out) = unbounded_channel();
        let to_thread = jobs.clone();
        let tell: TellExports = Box::new(move |job| to_thread.send(Job::Clients(job)).is_ok());
        let (channel, reports) = ExportChannel::new(tell);
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(refused("what waits for posts"))?;
        let exporters = Exporters {
            jobs: jobs.clone(),
            reports,
            number: 0,
            open: BTreeMap::new(),
            touched: BTreeSet::new(),
        };
        let thread = thread::Builder::new().name("exports".to_owned());
        let thread = thread.spawn(move || run(&runtime, exporters, jobs_out));
        let thread = ExportThread {
            jobs,
            thread: Some(thread.map_err(refused("a thread for exports"))?),
        };
        Ok((thread, channel))
    }
}

impl Drop for ExportThread {
    fn drop(&mut self) {
        // Fails when the thread has ended already.
        let _ = self.jobs.send(Job::End);
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread for exports had panicked; see above");
        }
    }
}

fn run(runtime: &Runtime, mut exporters: Exporters, mut jobs: UnboundedReceiver<Job>) {
    runtime.block_on(async {
        loop {
            let next = tokio::time::timeout(exporters.wait(), jobs.recv()).await;
            let mut job = next.ok().flatten();
            for _ in 0..JOBS_PER_TURN {
                match job {
                    None => break,
                    Some(Job::End) => return exporters.reset(),
                    Some(job) => exporters.handle(job),
                }
                job = jobs.try_recv().ok();
            }
            exporters.end_files(Instant::now());
            exporters.report();
        }
    });
}

/// Where the messages of an exporter go.
enum Sink {
    /// A socket, and where it sends to; none when it could not be opened.
    Socket(Option<(UdpSocket, SocketAddr)>),
    /// Files, posted or not.
    Files(Box<FileSet>, Option<Arc<Post>>),
    /// Nowhere: files that are there already are sent.
    Folder { _task: Pushing },
}

/// A task that sends files; it ends when this is dropped.
struct Pushing(AbortHandle);

impl Drop for Pushing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One exporter.
struct Exporter {
    sink: Sink,
    counts: ExportCounts,
    posts: Vec<PostReport>,
    /// Posts that were begun.
    begun: u64,
}

/// All of them.
struct Exporters {
    /// For posts that tell that they were made.
    jobs: UnboundedSender<Job>,
    reports: ReportSender<(u32, ExportReport)>,
    /// Of the emulation.
    number: u32,
    open: BTreeMap<ExporterId, Exporter>,
    /// Those that have something to tell.
    touched: BTreeSet<ExporterId>,
}

impl Exporters {
    /// How long nothing is due.
    fn wait(&self) -> Duration {
        let files = self
            .open
            .values()
            .filter_map(|exporter| match &exporter.sink {
                Sink::Files(files, _) => Some(files.due()),
                Sink::Socket(_) | Sink::Folder { .. } => None,
            });
        let due = files.min();
        due.map_or(WAIT_MAX, |due| {
            due.saturating_duration_since(Instant::now())
        })
    }

    fn handle(&mut self, job: Job) {
        match job {
            Job::Clients(ExportJob::Reset) => self.reset(),
            Job::Clients(ExportJob::Do(number, export)) => {
                self.number = number;
                self.export(export);
            }
            Job::Posted(number, id, report, is_again) if number == self.number => {
                if let Some(exporter) = self.open.get_mut(&id) {
                    exporter.counts.retries += u64::from(is_again);
                    exporter.posts.push(report);
                    self.touched.insert(id);
                }
            }
            Job::Sent(number, id, counts) if number == self.number => {
                if let Some(exporter) = self.open.get_mut(&id) {
                    exporter.counts.writes += counts.writes;
                    exporter.counts.writes_failed += counts.writes_failed;
                    exporter.counts.bytes += counts.bytes;
                    self.touched.insert(id);
                }
            }
            // Nobody wants to know any more.
            Job::Posted(..) | Job::Sent(..) | Job::End => {}
        }
    }

    fn export(&mut self, export: Export) {
        match export {
            Export::Open(id, destination) => {
                let tell = Tell {
                    jobs: self.jobs.clone(),
                    number: self.number,
                    id,
                };
                let exporter = Exporter::open(destination, tell);
                self.open.insert(id, exporter);
            }
            Export::Message {
                exporter: id,
                bytes,
                templates,
                records,
            } => {
                self.touched.insert(id);
                let exporter = self.open.get_mut(&id);
                let finished = exporter.and_then(|it| it.write(&bytes, [templates, records]));
                self.post(id, finished);
            }
            Export::Close(id) => {
                self.finish(id, Reason::End);
                self.open.remove(&id);
                self.touched.remove(&id);
            }
        }
    }

    /// Ends the open file of an exporter.
    fn finish(&mut self, id: ExporterId, reason: Reason) {
        let Some(exporter) = self.open.get_mut(&id) else {
            return;
        };
        if let Sink::Files(files, _) = &mut exporter.sink {
            let finished = files.rotate(reason, &mut exporter.counts);
            self.touched.insert(id);
            self.post(id, finished);
        }
    }

    /// Ends files whose time is over.
    fn end_files(&mut self, now: Instant) {
        let is_due = |exporter: &Exporter| match &exporter.sink {
            Sink::Files(files, _) => files.due() <= now,
            Sink::Socket(_) | Sink::Folder { .. } => false,
        };
        let due = self.open.iter().filter(|(_, exporter)| is_due(exporter));
        let due: Vec<ExporterId> = due.map(|(id, _)| *id).collect();
        for id in due {
            self.finish(id, Reason::Interval);
        }
    }

    /// Posts a file that is finished, and again as often as the user wants it.
    fn post(&mut self, id: ExporterId, finished: Option<Finished>) {
        let Some((exporter, file)) = self.open.get_mut(&id).zip(finished) else {
            return;
        };
        let Sink::Files(_, Some(to)) = &exporter.sink else {
            return;
        };
        if to.posts_max != 0 && exporter.begun >= to.posts_max {
            exporter.counts.posts_left_out += 1;
            return;
        }
        exporter.begun += 1;
        let (to, file) = (Arc::clone(to), Arc::new(file));
        let tell = Tell {
            jobs: self.jobs.clone(),
            number: self.number,
            id,
        };
        tokio::spawn(async move { tell.posts(&to, &file).await });
    }

    /// Ends all exporters.
    fn reset(&mut self) {
        let ids: Vec<ExporterId> = self.open.keys().copied().collect();
        for id in ids {
            self.export(Export::Close(id));
        }
    }

    /// Tells what came of what was done.
    fn report(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            let Some(exporter) = self.open.get_mut(&id) else {
                continue;
            };
            let report = ExportReport {
                exporter: id,
                counts: std::mem::take(&mut exporter.counts),
                posts: std::mem::take(&mut exporter.posts),
            };
            // Fails when the receive thread has ended, and nobody listens.
            let _ = self.reports.send((self.number, report));
        }
    }
}

/// How a task tells what came of what it did for an exporter.
struct Tell {
    jobs: UnboundedSender<Job>,
    number: u32,
    id: ExporterId,
}

impl Tell {
    /// A post was made, and whether it was one that was made again.
    fn posted(&self, report: PostReport, is_again: bool) {
        // Fails when the server ends, as below.
        let _ = self
            .jobs
            .send(Job::Posted(self.number, self.id, report, is_again));
    }

    fn sent(&self, counts: ExportCounts) {
        let _ = self.jobs.send(Job::Sent(self.number, self.id, counts));
    }

    /// Posts a file as often as the user wants it.
    async fn posts(&self, to: &Arc<Post>, file: &Arc<Finished>) {
        for time in 0..=to.repeats {
            if time > 0 {
                tokio::time::sleep(Duration::from_nanos(to.repeat_wait_ns)).await;
            }
            let report = post::post(Arc::clone(to), Arc::clone(file), true).await;
            let will_retry = report.will_retry;
            self.posted(report, false);
            if will_retry {
                tokio::time::sleep(post::RETRY_WAIT).await;
                let report = post::post(Arc::clone(to), Arc::clone(file), false).await;
                self.posted(report, true);
            }
        }
    }
}

impl Exporter {
    fn open(destination: Destination, tell: Tell) -> Exporter {
        let sink = match destination {
            Destination::Udp(udp) => Sink::Socket(socket::open(&udp).ok()),
            Destination::Files(settings) => {
                Sink::Files(Box::new(FileSet::new(settings, false)), None)
            }
            Destination::Post(settings, to) => {
                Sink::Files(Box::new(FileSet::new(settings, true)), Some(Arc::new(to)))
            }
            Destination::FolderUdp(folder, to) => {
                let task = tokio::spawn(async move { push::by_udp(&folder, &to, &tell).await });
                Sink::Folder {
                    _task: Pushing(task.abort_handle()),
                }
            }
            Destination::FolderPost(folder, to) => {
                let to = Arc::new(to);
                let task = tokio::spawn(async move { push::by_post(&folder, &to, &tell).await });
                Sink::Folder {
                    _task: Pushing(task.abort_handle()),
                }
            }
        };
        Exporter {
            sink,
            counts: ExportCounts::default(),
            posts: Vec::new(),
            begun: 0,
        }
    }

    fn write(&mut self, bytes: &[u8], records: [u32; 2]) -> Option<Finished> {
        let counts = &mut self.counts;
        counts.handled += 1;
        match &mut self.sink {
            Sink::Files(files, _) => files.write(bytes, records, counts),
            // Its client has no generators.
            Sink::Folder { .. } => None,
            Sink::Socket(socket) => {
                let sent = socket
                    .as_ref()
                    .map(|(socket, to)| socket.send_to(bytes, to));
                if sent.is_some_and(|sent| sent.is_ok()) {
                    counts.writes += 1;
                    counts.bytes += bytes.len() as u64;
                    counts.templates += u64::from(records[0]);
                    counts.records += u64::from(records[1]);
                } else {
                    counts.writes_failed += 1;
                }
                None
            }
        }
    }
}
