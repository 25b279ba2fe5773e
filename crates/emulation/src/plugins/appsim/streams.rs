//! What a client does: the streams of its init JSON.

use std::net::SocketAddr;

use allosaur_api::Error;
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use serde_json::Value;

use crate::params::{Params, mismatch};
use crate::plugin::PluginError;
use crate::timers::TimerId;

/// What a stream may have.
const KEYS: [&str; 7] = ["cps", "t", "tid", "ipv6", "stream", "dst", "limit"];

/// No two flows of a stream begin closer together.
const PERIOD_MIN: Nanos = MICROSECOND;

/// Which side of a template a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// A stream of flows, or a server.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) role: Role,
    pub(super) template: usize,
    pub(super) is_ipv6: bool,
    /// Over TCP, else over UDP.
    pub(super) is_stream: bool,
    /// Where its flows go, if that could be read.
    pub(super) destination: Option<SocketAddr>,
    /// The time between two flows; none without a rate.
    pub(super) period: Option<Nanos>,
    /// Flows still to come; none is no limit.
    pub(super) left: Option<u64>,
    pub(super) is_started: bool,
    /// When the next flow is due.
    pub(super) next: Nanos,
    pub(super) timer: TimerId,
}

/// Reads the streams of a client. Those of a role that is not known do nothing.
pub(super) fn parse(init: &Value) -> Result<Vec<Stream>, PluginError> {
    let params = Params::object(init, "appsim.AppsimInit")?;
    let Some(data) = params.get("data") else {
        return Ok(Vec::new());
    };
    let wanted = "map[string]appsim.AppsimRec";
    let data = data.as_object().ok_or_else(|| mismatch(data, wanted))?;
    let mut streams = Vec::new();
    for (name, record) in data {
        streams.extend(stream(name, record)?);
    }
    Ok(streams)
}

fn stream(name: &str, record: &Value) -> Result<Option<Stream>, Error> {
    let params = Params::object(record, "appsim.AppsimRec")?;
    params.only_in(&format!("data.{name}"), &KEYS)?;
    let rate = match params.get("cps") {
        None => 0.0,
        Some(value) => value.as_f64().ok_or_else(|| mismatch(value, "float64"))?,
    };
    let role = match params.string_or("t", "")? {
        "c" => Some(Role::Client),
        "s" => Some(Role::Server),
        _ => None,
    };
    let template = params.number_or::<u32>("tid", 0)? as usize;
    let is_ipv6 = params.bool_or("ipv6", false)?;
    let is_stream = params.bool_or("stream", false)?;
    let destination = params.string_or("dst", "")?.parse().ok();
    let limit = params.number_or::<u32>("limit", 0)?;
    Ok(role.map(|role| Stream {
        role,
        template,
        is_ipv6,
        is_stream,
        destination,
        period: period(rate),
        left: (limit > 0).then_some(limit.into()),
        is_started: false,
        next: 0,
        timer: TimerId::NONE,
    }))
}

/// Exact: in whole milliseconds, as the reference has it, 700 flows a second would be 1000.
fn period(rate: f64) -> Option<Nanos> {
    if !rate.is_finite() || rate <= 0.0 {
        return None;
    }
    Some(((SECOND as f64 / rate) as Nanos).max(PERIOD_MIN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rate_is_kept() {
        for rate in [0.1, 3.0, 400.0, 600.0, 700.0, 999.0, 4000.0, 12_345.0] {
            let flows = SECOND as f64 / period(rate).expect("a rate") as f64;
            assert!(
                (flows / rate - 1.0).abs() < 1e-4,
                "{rate}: {flows} a second"
            );
        }
        assert_eq!(period(4000.0), Some(250_000));
        assert_eq!([period(0.0), period(-1.0), period(f64::NAN)], [None; 3]);
    }

    #[test]
    fn streams_of_no_role_do_nothing() {
        let init = json!({"data": {"a": {}, "b": {"t": "c", "dst": "[::1]:80", "limit": 3}}});
        let streams = parse(&init).expect("they are right");
        assert_eq!((streams.len(), streams[0].left), (1, Some(3)));
        assert!(streams[0].destination.is_some_and(|to| to.is_ipv6()));
        let error = parse(&json!({"data": {"a": {"cps": "x"}}})).expect_err("it is wrong");
        assert_eq!(
            error.0,
            "json: cannot unmarshal string into Go value of type float64"
        );
    }
}
