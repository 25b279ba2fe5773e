//! The words of the RPC: requests, replies, events, errors and the command table.
//!
//! Pure: what lives here knows JSON and nothing else. It opens no socket and decides nothing;
//! the server's `control` does. The reference page `docs/reference/rpc.md` is generated from the
//! command table by [`reference::markdown`].
//!
//! Modules, each importing only from those before it: [`limits`], [`fields`], [`error`], [`command`],
//! [`port_attributes`], [`events`], [`commands`] (one file a noun), [`schema`], [`table`], [`request`],
//! [`dialect`], [`exchange`], [`reference`](mod@reference), [`python`].

pub mod command;
pub mod commands;
pub mod dialect;
pub mod error;
pub mod events;
pub mod exchange;
pub mod fields;
pub mod json_schema;
pub mod limits;
mod method;
pub mod port_attributes;
#[cfg(feature = "schema")]
pub mod python;
pub mod read;
#[cfg(feature = "schema")]
pub mod reference;
pub mod request;
#[cfg(feature = "schema")]
pub mod schema;
pub mod table;

pub use command::{Access, Command, Empty, Example, Types};
pub use dialect::{BirdDialect, Dialect, MainDialect};
pub use error::Error;
pub use exchange::Exchange;
pub use fields::{FieldError, Fields};
pub use method::{
    CaptureMethod, Method, Mode, NodeMethod, PortMethod, RouteMethod, ServerMethod, StatefulMethod,
    StatelessMethod,
};
pub use read::ReadError;
pub use request::Request;
pub use table::{command, commands};
