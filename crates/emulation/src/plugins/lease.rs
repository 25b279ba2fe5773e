//! What clients of DHCP for IPv4 and of DHCP for IPv6 have in common.

use std::sync::Arc;

use allosaur_engine::time::{Nanos, SECOND};
use serde_json::Value;

use crate::params::{Params, RpcError};

/// A lease that never ends, in seconds.
pub(super) const INFINITE_S: u32 = u32::MAX;
/// The most that options of a message may take, so that it fits into every link's packet.
pub(super) const OPTION_BYTES_MAX: usize = 1024;

/// Who renews or rebinds waits for half of what is left, at least and at most this long (RFC 2131
/// section 4.4.5; RFC 8415 asks more often than is good for a million clients).
const RENEW_INTERVAL_MIN: Nanos = 60 * SECOND;
const RENEW_INTERVAL_MAX: Nanos = 3600 * SECOND;
/// How many kinds of init JSON are remembered, for clients to share.
const RECENT_MAX: usize = 4;
/// Times between two messages when the init JSON does not say them.
const FIRST_INTERVAL_S: u32 = 5;
const REQUEST_INTERVAL_S: u32 = 10;

/// How long to wait before a lease is asked for again: half of the time until `end`, but not past it.
pub(super) fn retry_delay(now: Nanos, end: Nanos) -> Nanos {
    let left = end.saturating_sub(now);
    let wait = (left / 2).clamp(RENEW_INTERVAL_MIN, RENEW_INTERVAL_MAX);
    wait.min(left)
}

/// How long a client waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    /// To its first message, to all servers.
    pub(super) first: Nanos,
    /// To its request.
    pub(super) request: Nanos,
}

impl Intervals {
    /// Reads the seconds of an init JSON.
    pub(super) fn parse(init: Params<'_>) -> Result<Intervals, RpcError> {
        let seconds = |name, default| {
            let seconds: u32 = init.nonzero_or(name, default)?;
            Ok::<Nanos, RpcError>(u64::from(seconds) * SECOND)
        };
        Ok(Intervals {
            first: seconds("timerd", FIRST_INTERVAL_S)?,
            request: seconds("timero", REQUEST_INTERVAL_S)?,
        })
    }
}

/// What is made of an init JSON, the messages of a client.
pub(super) trait FromInit: Sized {
    /// Reads the init JSON of a client.
    fn parse(init: &Value) -> Result<Self, RpcError>;
}

/// Messages of the clients that came last, by their init JSON.
#[derive(Debug)]
pub(super) struct Recent<M>(Vec<(Value, Arc<M>)>);

impl<M> Default for Recent<M> {
    fn default() -> Self {
        Recent(Vec::new())
    }
}

impl<M: FromInit> Recent<M> {
    /// The messages of an init JSON.
    pub(super) fn messages(&mut self, init: &Value) -> Result<Arc<M>, RpcError> {
        if let Some((_, messages)) = self.0.iter().find(|(of, _)| of == init) {
            return Ok(Arc::clone(messages));
        }
        let messages = Arc::new(M::parse(init)?);
        self.0.truncate(RECENT_MAX - 1);
        self.0.insert(0, (init.clone(), Arc::clone(&messages)));
        Ok(messages)
    }
}
