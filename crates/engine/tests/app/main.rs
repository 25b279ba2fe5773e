//! Programs, and applications that run them: what they do, what is refused, and anything at all.

mod errors;
mod random;
mod runner;
mod runs;
mod substitution;
