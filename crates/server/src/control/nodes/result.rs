//! How the results of commands are written.

use allosaur_api::Error;
use serde_json::{Value, json};

/// What is wrong with a command, as batches tell it.
pub(super) fn error_of(error: &Error) -> Value {
    json!({"error": error.to_string()})
}
