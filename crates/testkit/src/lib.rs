//! Helpers for tests only: virtual time, links with faults, golden captures.
