//! Headers, checksums, the frame parser and capture files: bytes to meaning and back.
//!
//! One file per protocol ([`ethernet`], [`vlan`], [`arp`], [`ipv4`], [`ipv6`], its extension headers,
//! [`icmpv4`], [`icmpv6`], [`tcp`], [`udp`]), the internet [`checksum`], checksums that are left to a
//! card ([`offload`]), the one-pass parser of whole frames ([`frame`]), and capture files over byte
//! slices ([`capture`], [`pcap`], [`pcapng`], [`erf`]).
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

pub mod address;
pub mod arp;
pub mod capture;
pub mod checksum;
pub mod erf;
pub mod ethernet;
pub mod frame;
pub mod icmpv4;
pub mod icmpv6;
pub mod ip_protocol;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_extension;
pub mod ipv6_fragment;
pub mod ipv6_options;
pub mod ipv6_routing;
pub mod neighbor;
pub mod offload;
pub mod pcap;
pub mod pcapng;
pub mod tcp;
pub mod tcp_options;
pub mod udp;
pub mod vlan;

mod bytes;
mod error;
mod options;
mod pcapng_time;
mod pcapng_writer;

pub use address::MacAddress;
pub use error::HeaderError;
