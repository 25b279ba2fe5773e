//! The topology of clients that is loaded.

use std::sync::Arc;

use allosaur_engine::stateful::topology::Topology as Routes;
use serde_json::Value;

use super::upload::Text;
use crate::control::upload::Upload;

/// The topology that is loaded, and what is on its way.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) upload: Option<Upload>,
    pub(super) text: Option<Text>,
    /// As it was given.
    pub(super) value: Option<Value>,
    /// As data threads have it.
    pub(super) routes: Arc<Routes>,
}
