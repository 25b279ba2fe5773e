//! Headers, checksums, the frame parser and capture files: bytes to meaning and back.
//!
//! A folder for each layer, with a file per protocol: [`link`], [`network`], [`transport`], [`application`]. Across them
//! stand the one-pass parser of whole frames ([`frame`]), the packet that an error quotes ([`icmp_quote`]), frames' [`builder`], checksums that are left to a card
//! ([`offload`]), which queue of a card a frame comes to ([`rss`]), and payloads that frames share ([`shared_payload`]); beside them
//! capture files over byte slices ([`file`]), and hints to the cache ([`prefetch`], [`prefetch_whole`],
//! [`prefetch_for_write`]).
//!
//! Everybody above may call this crate; it calls nobody.
//!
//! Every protocol file has the same order: the byte positions as named ranges, the *view* (over
//! anything that is `AsRef<[u8]>`, for reading and writing single fields in place), the *header*
//! (a plain struct with the meaning), the pretty printers, the tests.
//!
//! The panic contract: `new_checked` proves once that every accessor of a view is safe; a view
//! made by `new_unchecked` over too few bytes panics when a field is read. `Header::parse` never
//! panics. `Header::emit` panics when it is given fewer bytes than `buffer_len` says.
#![deny(clippy::cast_possible_truncation)]

mod address;
pub mod application;
pub mod builder;
mod bytes;
mod error;
pub mod file;
pub mod frame;
pub mod icmp_quote;
pub mod link;
pub mod network;
pub mod offload;
mod options;
mod prefetch;
pub mod rss;
pub mod shared_payload;
pub mod transport;
mod view;

pub use address::{MacAddress, MacAddressError};
pub use error::HeaderError;
pub use prefetch::{prefetch, prefetch_for_write, prefetch_whole};
