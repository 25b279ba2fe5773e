//! The time of a core, by which certificates and tickets are judged.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allosaur_engine::time::Nanos;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The time of one core. Configurations of the library hold it, so each core makes its own of them:
/// what one core writes, no other reads.
#[derive(Clone, Default)]
pub struct CoreClock(Arc<AtomicU64>);

impl CoreClock {
    /// It is so long since 1970.
    #[inline]
    pub fn set(&self, unix_time: Nanos) {
        self.0.store(unix_time, Ordering::Relaxed);
    }
}

impl fmt::Debug for CoreClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CoreClock({:?})", self.0)
    }
}

impl TimeProvider for CoreClock {
    fn current_time(&self) -> Option<UnixTime> {
        let now = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        Some(UnixTime::since_unix_epoch(now))
    }
}
