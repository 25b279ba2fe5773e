//! The front door for HTTP: metrics and health, on a thread of its own.
//!
//! The thread asks control for a [`Catalog`](crate::metrics::Catalog), which control gives
//! when it comes by ([`HttpServer::poll_request`]), and does all the rest itself. Whatever clients do,
//! it costs others nothing that they could notice: there are [`Limits`].

mod answer;
mod host;
mod limits;
mod server;

pub use answer::CatalogRequest;
pub use limits::{HEADER_BYTES_MAX, HEADERS_MAX, Limits};
pub use server::{HttpListener, HttpServer};
