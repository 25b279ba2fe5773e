//! What a port answers as a host, from outside: frames in, frames out.

mod anything;
mod goldens;
mod random;
mod requests;
mod rules;
