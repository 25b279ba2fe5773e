//! The errors of the RPC: codes, messages, and the one sentence that helps.

use crate::fields::FieldError;
use serde_json::{Value, json};

/// The error object of a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .specific.as_deref().unwrap_or(.message))]
pub struct Error {
    /// The code, as JSON-RPC 2.0 and TRex number them.
    pub code: i32,
    /// The message that belongs to the code.
    pub message: String,
    /// What is wrong with this very request, and what to do.
    pub specific: Option<String>,
}

/// The request is not JSON.
pub const PARSE: i32 = -32700;
/// The request is JSON, but not a JSON-RPC 2.0 request.
pub const INVALID_REQUEST: i32 = -32600;
/// No method of that name.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A parameter is missing, of the wrong type or out of range.
pub const BAD_PARAMS: i32 = -32602;
/// The request cannot be handled at all, for instance because it is too large.
pub const INTERNAL: i32 = -32603;
/// The request is well-formed and the server refuses to do it now.
pub const EXECUTION: i32 = -32000;

impl Error {
    /// The request is not JSON.
    pub fn parse() -> Error {
        Error::plain(PARSE, "Bad JSON Format")
    }

    /// The request is not a JSON-RPC 2.0 request; `message` says why.
    pub fn invalid_request(message: impl Into<String>) -> Error {
        Error::plain(INVALID_REQUEST, message)
    }

    /// No method of that name.
    pub fn method_not_found(name: &str) -> Error {
        Error::plain(METHOD_NOT_FOUND, format!("Method {name} not registered"))
    }

    /// A parameter is missing, of the wrong type or out of range.
    pub fn bad_params(specific: impl Into<String>) -> Error {
        Error {
            specific: Some(specific.into()),
            ..Error::plain(BAD_PARAMS, "Bad parameters for method")
        }
    }

    /// The request is larger than the server takes.
    pub fn too_large(bytes: usize, bytes_max: usize) -> Error {
        let message = format!(
            "Request is too large ({bytes} bytes). The limit is {bytes_max} bytes: \
             split it into several requests."
        );
        Error::plain(INTERNAL, message)
    }

    /// The server refuses; `specific` says why and what to do.
    pub fn execution(specific: impl Into<String>) -> Error {
        Error {
            specific: Some(specific.into()),
            ..Error::plain(EXECUTION, "Failed To Execute Method")
        }
    }

    /// The error object as JSON.
    pub fn to_json(&self) -> Value {
        let mut object = json!({"code": self.code, "message": self.message});
        if let Some(specific) = &self.specific {
            object["specific_err"] = json!(specific);
        }
        object
    }

    fn plain(code: i32, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            specific: None,
        }
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Error {
        Error::bad_params(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specific_text_is_left_out_when_there_is_none() {
        assert_eq!(
            Error::parse().to_json(),
            json!({"code": -32700, "message": "Bad JSON Format"})
        );
        assert_eq!(
            Error::execution("no").to_json(),
            json!({"code": -32000, "message": "Failed To Execute Method", "specific_err": "no"})
        );
    }
}
