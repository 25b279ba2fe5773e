//! One JSON-RPC 2.0 request.

use crate::error::Error;
use serde_json::{Map, Value};

/// One request: a method, its parameters, and the id that the reply carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Given back in the reply; anything but `null`.
    pub id: Value,
    /// The method's name.
    pub method: String,
    /// The parameters by name.
    pub params: Map<String, Value>,
}

/// A request that could not be understood, and the id to answer it with.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The request's id, `null` when there is none.
    pub id: Value,
    /// What is wrong.
    pub error: Error,
}

impl Request {
    /// Reads a request. The checks come in TRex's order: id, version, method, parameters.
    pub fn parse(value: Value) -> Result<Request, Refused> {
        let Value::Object(mut object) = value else {
            let error = Error::invalid_request(
                "Error in JSON request: a request is an object with 'jsonrpc', 'id', 'method' \
                 and 'params'",
            );
            return Err(Refused {
                id: Value::Null,
                error,
            });
        };
        let id = object.remove("id").unwrap_or(Value::Null);
        match parse_object(object) {
            _ if id.is_null() => Err(Refused {
                id,
                error: Error::invalid_request("Missing 'id' field"),
            }),
            Ok((method, params)) => Ok(Request { id, method, params }),
            Err(error) => Err(Refused { id, error }),
        }
    }
}

fn parse_object(mut object: Map<String, Value>) -> Result<(String, Map<String, Value>), Error> {
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Error::invalid_request("Invalid JSONRPC Version"));
    }
    let method = match object.remove("method") {
        None | Some(Value::Null) => return Err(Error::invalid_request("Missing Method Name")),
        Some(Value::String(name)) => name,
        Some(other) => return Err(Error::method_not_found(&other.to_string())),
    };
    match object.remove("params") {
        // Whether there is such a command is for those to say who have rows of their own, too.
        Some(Value::Object(params)) => Ok((method, params)),
        _ if crate::command(&method, crate::Mode::Any).is_none() => {
            Err(Error::method_not_found(&method))
        }
        _ => Err(Error::execution(
            "JSON-RPC2 params should be an object; send {} when there are none",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(value: Value) -> (i32, String) {
        let refused = Request::parse(value).expect_err("the request is wrong");
        (refused.error.code, refused.error.message)
    }

    #[test]
    fn what_is_no_request_is_refused_in_order() {
        assert_eq!(error(json!(5)).0, -32600);
        assert_eq!(error(json!({})), (-32600, "Missing 'id' field".into()));
        assert_eq!(error(json!({"id": null})).1, "Missing 'id' field");
        assert_eq!(
            error(json!({"id": 1, "jsonrpc": "1.0", "method": "ping"})).1,
            "Invalid JSONRPC Version"
        );
        assert_eq!(
            error(json!({"id": 1, "jsonrpc": "2.0"})).1,
            "Missing Method Name"
        );
        assert_eq!(
            error(json!({"id": 1, "jsonrpc": "2.0", "method": 5, "params": {}})),
            (-32601, "Method 5 not registered".into())
        );
        assert_eq!(
            error(json!({"id": 1, "jsonrpc": "2.0", "method": "ping", "params": []})).0,
            -32000
        );
    }
}
