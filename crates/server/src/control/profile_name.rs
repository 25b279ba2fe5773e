//! Names of profiles, of streams and of flows.

/// The profile that is always there.
pub(in crate::control) const DEFAULT_PROFILE: &str = "_";
/// What stands for all profiles.
pub(in crate::control) const ALL_PROFILES: &str = "*";
