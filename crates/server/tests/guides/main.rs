//! The parts of guides that are written from what the server knows.

mod configuration;
mod metrics;
mod metrics_text;
