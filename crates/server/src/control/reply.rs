//! What a request is answered with.

use allosaur_api::Error;
use serde::Serialize;
use serde_json::Value;

/// What a request is answered with: a result, or an error.
pub type Reply = Result<Value, Error>;

/// A reply out of a struct of `allosaur_api`.
pub(in crate::control) fn reply<T: Serialize>(value: &T) -> Reply {
    Ok(serde_json::to_value(value).expect("replies are plain structs with string keys"))
}
