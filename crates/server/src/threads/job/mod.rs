//! The thread for jobs, which take too long for control. One after the other, in order.

mod files;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use allosaur_engine::stream::CoreProgram;

use crate::control::{Job, JobId, JobResult};
use crate::threads::waker::Notify;
pub use files::DiskFiles;

/// The way to the job thread. It ends when this is dropped, after the job that it is at: nobody
/// waits for it.
#[derive(Debug)]
pub struct JobThread {
    jobs: Sender<(JobId, Job)>,
    results: Receiver<(JobId, JobResult)>,
}

impl JobThread {
    /// Starts it, on the CPUs of the thread that calls this; `control` is told of results.
    ///
    /// # Errors
    ///
    /// When the system has no threads.
    pub fn start(control: Notify) -> std::io::Result<JobThread> {
        let (jobs, jobs_out) = channel::<(JobId, Job)>();
        let (results, results_out) = channel();
        let run = move || {
            for (id, job) in jobs_out {
                if id == JobId::NOBODYS {
                    job.run(&DiskFiles);
                    continue;
                }
                let result = catch_unwind(AssertUnwindSafe(|| job.run(&DiskFiles)));
                let broken =
                    |_| JobResult::Failed("its job broke down, see the server's log".into());
                if results.send((id, result.unwrap_or_else(broken))).is_err() {
                    return;
                }
                control.notify();
            }
        };
        thread::Builder::new().name("jobs".to_owned()).spawn(run)?;
        Ok(JobThread {
            jobs,
            results: results_out,
        })
    }

    /// Has a job done.
    pub fn send(&self, id: JobId, job: Job) {
        if self.jobs.send((id, job)).is_err() {
            tracing::error!("the job thread has ended");
        }
    }

    /// Frees a program: a large one takes a while.
    pub fn free(&self, program: Box<CoreProgram>) {
        self.send(JobId::NOBODYS, Job::Free(program));
    }

    /// The next result, if there is one.
    pub fn receive(&self) -> Option<(JobId, JobResult)> {
        self.results.try_recv().ok()
    }
}
