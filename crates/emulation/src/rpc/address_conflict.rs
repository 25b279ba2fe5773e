//! No two clients of a namespace have an address in common.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_api::Error;
use allosaur_packet::MacAddress;

use crate::client::{Client, Clients};

/// Whether a client can be added: none of others has its addresses.
pub(super) fn check_client(clients: &Clients, client: &Client) -> Result<(), Error> {
    let Client {
        mac, ipv4, ipv6, ..
    } = client;
    if *mac == MacAddress::ZERO {
        let text = " Adding client with invalid zero MAC (zero)";
        return Err(Error::execution(text));
    }
    if clients.by_mac(*mac).is_some() {
        return Err(mac_taken(*mac));
    }
    if !ipv4.is_unspecified() && clients.by_ipv4(*ipv4).is_some() {
        return Err(ipv4_taken(*ipv4));
    }
    if !ipv6.is_unspecified() && clients.by_ipv6(*ipv6).is_some() {
        return Err(ipv6_taken(*ipv6));
    }
    Ok(())
}

/// The error of a client whose MAC address another one has.
pub(crate) fn mac_taken(mac: MacAddress) -> Error {
    taken("MAC", &mac)
}

/// The same of its IPv4 address.
pub(crate) fn ipv4_taken(address: Ipv4Addr) -> Error {
    taken("IPv4", &numbers(&address.octets()))
}

/// The same of its IPv6 address.
pub(crate) fn ipv6_taken(address: Ipv6Addr) -> Error {
    taken("IPv6", &numbers(&address.octets()))
}

fn taken(what: &str, address: &dyn std::fmt::Display) -> Error {
    Error::execution(format!(
        " client with the same {what} {address} already exist"
    ))
}

/// Bytes as the reference's errors have them.
fn numbers(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!("[{}]", bytes.join(" "))
}
