//! Tables of routes, grouped by what they have in common: made by a seed, as a range, or read from MRT.

pub mod generate;
pub mod mrt;
pub mod table;
