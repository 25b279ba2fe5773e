//! A client that asks a server: its socket, and the answers that it remembers.

use std::net::{IpAddr, SocketAddr};

use allosaur_api::Error;
use allosaur_engine::time::Nanos;

use super::PORT;
use crate::client::ClientId;
use crate::datagrams;
use crate::dns::cache::Cache;
use crate::dns::message::{CODE, Message};
use crate::params::Params;
use crate::plugin::Context;

/// Most answers that one client remembers.
const ANSWERS_MAX: usize = 1024;

/// A client that asks a server.
#[derive(Debug)]
pub(super) struct Resolver {
    /// The port that it asks from.
    pub(super) port: u16,
    pub(super) server: SocketAddr,
    pub(super) cache: Cache,
}

impl Resolver {
    /// Reads the address of the server from the init JSON, and opens a socket to it.
    pub(super) fn open(
        context: &mut Context<'_>,
        client: ClientId,
        params: Params<'_>,
    ) -> Result<Resolver, Error> {
        let text = params.string_or("dns_server_ip", "")?;
        let invalid = || Error::execution(format!("invalid DNS server IP {text}"));
        let address: IpAddr = text.parse().map_err(|_| invalid())?;
        // A client without IPv6 cannot ask a server that has nothing else. An IPv4 address may
        // still come by DHCP.
        if address.is_ipv6() && datagrams::source(context, client, address).is_none() {
            return Err(invalid());
        }
        let server = SocketAddr::new(address, PORT);
        let owner = context.this().0;
        let port = context.namespace.sockets.of(client).open(server, owner);
        let port = port.ok_or_else(|| Error::execution("no source port is free"))?;
        Ok(Resolver {
            port,
            server,
            cache: Cache::new(ANSWERS_MAX),
        })
    }

    /// Keeps the answers of a response without error.
    pub(super) fn remember(&mut self, now: Nanos, response: &Message) {
        if response.flags & CODE == 0 {
            for answer in &response.answers {
                self.cache.insert(now, answer);
            }
        }
    }
}
