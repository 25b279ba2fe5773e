//! The job that understands the text of a profile.

use std::sync::Arc;

use allosaur_engine::template::{CompiledProfile, Layout};

use super::read_profile::compile_as;
use crate::control::files::CaptureFiles;
use crate::control::job::Work;

/// Understands the text of a profile.
#[derive(Debug)]
pub(super) struct CompileProfile {
    /// Its JSON.
    pub(super) text: Arc<String>,
    /// All its addresses are IPv6.
    pub(super) ipv6: bool,
    /// On how many threads and ports it runs.
    pub(super) layout: Layout,
}

impl Work for CompileProfile {
    /// What the text means.
    type Output = Arc<CompiledProfile>;

    fn run(self, files: &dyn CaptureFiles) -> Result<Arc<CompiledProfile>, String> {
        let compiled = compile_as(&self.text, self.ipv6, self.layout, files);
        compiled.map(Arc::new).map_err(|error| error.to_string())
    }
}
