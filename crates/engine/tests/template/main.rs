//! Profiles of stateful traffic: what is refused, in which words, and what comes out of the rest.

mod errors;
mod lookups;
mod profile;
mod random;
