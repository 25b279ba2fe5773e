//! Streams through the whole engine, in virtual time.

mod bench;
mod chains;
mod changes;
mod cores;
mod errors;
mod honesty;
mod rates;
mod replays;
mod reuse;
mod scaled_delays;
mod tunnel;
