//! What clients may take: all of it together is a few megabytes, whatever they do.

use std::time::Duration;

/// Bytes of a request up to its body, which nobody reads; a longer one is answered 431.
pub const HEADER_BYTES_MAX: usize = 16 << 10;
/// Headers of a request; one with more is answered 431.
pub const HEADERS_MAX: usize = 64;

/// What a server of HTTP grants; [`Limits::default`] but in tests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time. One more ends the oldest, so that clients that are slow or
    /// stuck keep nobody out.
    pub connections: usize,
    /// How long a connection lasts, from its begin to the last byte of the answer.
    pub connection: Duration,
    /// How long control may take to say what there is; then the answer is 503.
    pub control: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 32,
            connection: Duration::from_secs(10),
            control: Duration::from_secs(2),
        }
    }
}
