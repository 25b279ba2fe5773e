//! The thread for jobs, which take too long for control.

mod file_kind;
mod files;
mod key_logs;

use std::panic::{AssertUnwindSafe, catch_unwind};

use allosaur_engine::stream::CoreProgram;

use crate::control::{CaptureFiles, Job, JobId, JobResult, Work};
use crate::threads::background::BackgroundThread;
use crate::threads::waker::Notify;
pub use files::DiskFiles;

/// The way to the job thread.
#[derive(Debug)]
pub struct JobThread(BackgroundThread<(JobId, Job), (JobId, JobResult)>);

impl JobThread {
    /// Starts it, on the CPUs of the thread that calls this; `control` is told of results.
    ///
    /// # Errors
    ///
    /// When the system has no threads.
    pub fn start(files: DiskFiles, control: Notify) -> std::io::Result<JobThread> {
        let run = move |(id, job): (JobId, Job)| {
            let result = catch_unwind(AssertUnwindSafe(|| job.run(&files)));
            let broken = |_| JobResult::Failed("its job broke down, see the server's log".into());
            (id != JobId::NOBODYS).then(|| (id, result.unwrap_or_else(broken)))
        };
        BackgroundThread::start("jobs", control, run).map(JobThread)
    }

    /// Has a job done.
    pub fn send(&self, id: JobId, job: Job) {
        self.0.send((id, job));
    }

    /// Frees a program: a large one takes a while.
    pub fn free(&self, program: Box<CoreProgram>) {
        self.send(JobId::NOBODYS, Job::new(Free(program)));
    }

    /// Removes the namespaces of nodes that servers left which were killed.
    pub fn remove_leftovers(&self) {
        self.send(JobId::NOBODYS, Job::new(RemoveLeftovers));
    }

    /// The next result, if there is one.
    pub fn receive(&self) -> Option<(JobId, JobResult)> {
        self.0.receive()
    }
}

/// Frees what a data thread is done with.
struct Free(Box<CoreProgram>);

impl Work for Free {
    type Output = ();

    fn run(self, _: &dyn CaptureFiles) -> Result<(), String> {
        drop(self.0);
        Ok(())
    }
}

/// Looks for namespaces whose server is gone.
struct RemoveLeftovers;

impl Work for RemoveLeftovers {
    type Output = ();

    fn run(self, _: &dyn CaptureFiles) -> Result<(), String> {
        let count = allosaur_nodes::owner::remove_leftovers();
        if count > 0 {
            tracing::info!(
                count,
                "removed network namespaces of a server that was killed"
            );
        }
        Ok(())
    }
}
