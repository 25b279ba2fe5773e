//! What takes too long for control: a job is a value that goes to a thread of its own, and so is what
//! comes of it. Which jobs there are, domains say, each its own: a struct that is a [`Work`].

use std::any::{Any, type_name};
use std::fmt;

use super::files::CaptureFiles;

/// Something to do that takes long, with all that it needs.
pub trait Work: Send + 'static {
    /// What comes of it.
    type Output: Send + 'static;

    /// Does it; the error says what is wrong.
    fn run(self, files: &dyn CaptureFiles) -> Result<Self::Output, String>;
}

/// Some domain's work.
pub struct Job {
    name: &'static str,
    run: Box<RunFn>,
}

/// Does a work and keeps what came of it.
type RunFn = dyn FnOnce(&dyn CaptureFiles) -> JobResult + Send;

/// What came of a job.
#[derive(Debug)]
pub enum JobResult {
    /// [`Work::Output`].
    Done(Box<dyn Any + Send>),
    /// What is wrong, or what came in between.
    Failed(String),
}

impl Job {
    /// A job of that work.
    pub fn new<W: Work>(work: W) -> Job {
        Job {
            name: type_name::<W>(),
            run: Box::new(|files| match work.run(files) {
                Ok(output) => JobResult::Done(Box::new(output)),
                Err(problem) => JobResult::Failed(problem),
            }),
        }
    }

    /// Does it.
    pub fn run(self, files: &dyn CaptureFiles) -> JobResult {
        (self.run)(files)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Job").field(&self.name).finish()
    }
}

impl JobResult {
    /// What came of that work.
    ///
    /// # Panics
    ///
    /// When it is the result of another work.
    pub(in crate::control) fn of<W: Work>(self) -> Result<W::Output, String> {
        match self {
            JobResult::Done(output) => {
                let output = output.downcast::<W::Output>();
                Ok(*output.expect("a job's name belongs to its result"))
            }
            JobResult::Failed(problem) => Err(problem),
        }
    }
}
