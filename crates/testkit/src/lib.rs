//! Helpers for tests only: virtual time, a recorder of what an engine sends, captures that tell
//! what is right, applications over bytes, and where the data for tests lies.
//!
//! The project's own rules are tests of this crate (`tests/tidy`), because it stands above the
//! crates that they look at.

pub mod applications;
pub mod clock;
pub mod data;
pub mod golden;
pub mod hexdump;
pub mod recording;
