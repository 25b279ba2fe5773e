//! Stateful traffic in the simulator: any profile over any link, by seeds.

mod faults;
mod mtu;
mod outcomes;
mod profiles;
mod seeds;
mod witness;
