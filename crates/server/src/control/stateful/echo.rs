//! The echo streams beside flows, as control knows them.

use allosaur_engine::time::Nanos;

use crate::metrics::CatalogEcho;

/// The echo streams, as control knows them.
#[derive(Debug, Default)]
pub(super) struct EchoStreams {
    /// Counts the starts.
    pub(super) epoch: u32,
    pub(super) running: Option<Running>,
    /// What the last ones measured, also when they are over.
    pub(super) measured: Option<CatalogEcho>,
}

#[derive(Debug)]
pub(super) struct Running {
    /// The profile that they were started with.
    pub(super) profile: Option<String>,
    /// Who started them.
    pub(super) session: Option<u32>,
    /// When they end by themselves.
    pub(super) until: Option<Nanos>,
}

impl EchoStreams {
    /// Whether they have not ended.
    pub(super) fn is_running(&self, now_ns: Nanos) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.until.is_none_or(|until| now_ns < until))
    }
}
