//! A thread that does for control what takes long: one thing after the other, in order.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::threads::waker::Notify;

/// The way to such a thread. It ends when this is dropped, after what it is at: nobody waits for it.
#[derive(Debug)]
pub(super) struct BackgroundThread<J, R> {
    jobs: Sender<J>,
    results: Receiver<R>,
}

impl<J: Send + 'static, R: Send + 'static> BackgroundThread<J, R> {
    /// Starts it, on the CPUs of the thread that calls this; `control` is told of results, where
    /// there are any.
    pub(super) fn start(
        name: &str,
        control: Notify,
        mut run: impl FnMut(J) -> Option<R> + Send + 'static,
    ) -> io::Result<BackgroundThread<J, R>> {
        let (jobs, jobs_out) = channel();
        let (results, results_out) = channel();
        let body = move || {
            for job in jobs_out {
                let Some(result) = run(job) else {
                    continue;
                };
                if results.send(result).is_err() {
                    return;
                }
                control.notify();
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(BackgroundThread {
            jobs,
            results: results_out,
        })
    }

    pub(super) fn send(&self, job: J) {
        if self.jobs.send(job).is_err() {
            tracing::error!("a thread of control's has ended");
        }
    }

    /// The next result, if there is one.
    pub(super) fn receive(&self) -> Option<R> {
        self.results.try_recv().ok()
    }
}
