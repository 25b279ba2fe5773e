//! Stateful traffic, as control sees it.
//!
//! What lives here so far: from the JSON of a profile to what data threads run ([`profile`]).

pub mod profile;
