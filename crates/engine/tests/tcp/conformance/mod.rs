//! What the RFCs say, each sentence with a script that holds only if we do it.

mod acknowledgments;
mod beginning;
mod ecn;
mod end;
mod loss;
mod options;
mod resets;
mod sack;
mod simultaneous;
mod time_wait;
mod timeouts;
mod windows;
