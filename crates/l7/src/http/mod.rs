//! HTTP/1.1 (RFC 9110, RFC 9112): clients that ask for what a profile says and judge each response, and
//! servers that answer by path.
//!
//! | what | where |
//! |---|---|
//! | what is asked for, and its errors | `settings` |
//! | what clients send, and the values in it | `requests`, `values` |
//! | a head: its bytes, and what it says | `head_reader`, `head` |
//! | where a body ends | `body` |
//! | one connection of a client, of a server | `client`, `server` with `answers` |
//! | what is counted | `rows` |

mod answers;
mod body;
mod client;
mod head;
mod head_reader;
mod requests;
mod rows;
mod server;
mod settings;
mod values;

pub use client::HttpClients;
pub use rows::rows;
pub use server::HttpServers;
pub use settings::{
    Expected, HttpClientSettings, HttpRequest, HttpRequestBody, HttpRoute, HttpServerSettings,
    HttpSettingsError, HttpValue, HttpValueSource,
};
