//! Threads and what they drive: data and receive threads, rx taps, endpoints, transports, HTTP.

mod asking;
mod echo_streams;
mod emulated_threads;
mod emulation;
mod endpoints;
mod flow_threads;
mod gatherers;
mod http;
mod port_modes;
mod rx_taps;
mod second_transport;
