//! The simulator: streams as TRex's simulator sends them, and flows over any link.

mod goldens;
mod stateful;
