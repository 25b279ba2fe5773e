//! Stateful profiles as clients send them: which are taken, what they become, what is refused.

mod accepted;
mod mutated;
mod refused;
mod runs;
mod small;
