//! Times that all domains tell alike.

use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};

/// Traffic that starts "now" starts so much later, so that all data threads know of it in time
/// and start together.
pub(in crate::control) const START_LEAD: Nanos = MILLISECOND;

/// From one time to another, which may be before it.
pub(in crate::control) fn seconds_since(then: Nanos, now_ns: Nanos) -> f64 {
    let seconds = |nanos: Nanos| nanos as f64 / SECOND as f64;
    if now_ns >= then {
        seconds(now_ns - then)
    } else {
        -seconds(then - now_ns)
    }
}
