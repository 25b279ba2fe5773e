//! What the job thread does for speakers.

use std::sync::Arc;

use allosaur_api::commands::routes::AnnounceRoutes;

use super::tables::table_of;
use crate::control::files::CaptureFiles;
use crate::control::job::Work;
use crate::routes::{RouteAnswer, RouteRequest, RouteService};

/// Something that the thread with the sessions is asked to do.
#[derive(Debug)]
pub(super) struct RouteWork {
    pub(super) service: Arc<RouteService>,
    pub(super) task: RouteTask,
}

/// What is done.
#[derive(Debug)]
pub(super) enum RouteTask {
    /// This is asked.
    Ask(RouteRequest),
    /// A table is made, and announced.
    Announce(AnnounceRoutes),
}

impl Work for RouteWork {
    type Output = RouteAnswer;

    fn run(self, files: &dyn CaptureFiles) -> Result<RouteAnswer, String> {
        let request = match self.task {
            RouteTask::Ask(request) => request,
            RouteTask::Announce(params) => RouteRequest::Announce {
                table: Arc::new(table_of(&params.routes, files)?),
                speaker: params.speaker,
                name: params.name,
                rate: params.rate,
            },
        };
        self.service.ask(request)
    }
}
