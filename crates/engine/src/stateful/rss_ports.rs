//! Ports of clients by which the answers come to the queue of this core, where a card shares frames
//! out by their hash (RSS).
//!
//! The hash of an answer is the XOR of those of its parts: those that all flows of a template have
//! are hashed once, the addresses once a flow, and each port that is tried takes two lookups.

use std::sync::Arc;

use allosaur_packet::rss::{PacketHash, RssShare};

use crate::template::{ClientTemplate, PoolHost};

/// What all answers to the clients of one template have in common.
#[derive(Debug)]
pub(super) struct RssPorts {
    share: Arc<RssShare>,
    is_ipv6: bool,
    /// The hash of the server's port, and of the prefixes of both addresses.
    common: u32,
    /// That of the client's prefix, which is in `common`.
    client_prefix: u32,
}

/// The answers to one flow, before its port is chosen.
pub(super) struct Answers<'a> {
    share: &'a RssShare,
    hash: &'a PacketHash,
    /// The hash of all but the client's port.
    rest: u32,
}

/// Where the last 32 bits of an address begin.
const fn last_bytes_at(is_ipv6: bool) -> usize {
    if is_ipv6 { 12 } else { 0 }
}

impl RssPorts {
    pub(super) fn new(share: Arc<RssShare>, client: &ClientTemplate) -> RssPorts {
        let is_ipv6 = client.tunables.ipv6;
        let hash = share.rss().packet_hash(is_ipv6);
        let prefixes = &client.tunables.prefixes;
        let (client_prefix, server_prefix) = match is_ipv6 {
            true => (
                hash.destination(0, &prefixes.client),
                hash.source(0, &prefixes.server),
            ),
            false => (0, 0),
        };
        RssPorts {
            is_ipv6,
            common: hash.source_port(client.port) ^ server_prefix ^ client_prefix,
            client_prefix,
            share,
        }
    }

    /// The same for another template.
    pub(super) fn of(&self, client: &ClientTemplate) -> RssPorts {
        RssPorts::new(Arc::clone(&self.share), client)
    }

    /// The answers of a server to a client, by the last 32 bits of their addresses; `host` is the
    /// client, where it is one of a table.
    #[inline]
    pub(super) fn answers(&self, client: u32, server: u32, host: Option<&PoolHost>) -> Answers<'_> {
        let hash = self.share.rss().packet_hash(self.is_ipv6);
        let at = last_bytes_at(self.is_ipv6);
        let mut rest = self.common
            ^ hash.source(at, &server.to_be_bytes())
            ^ hash.destination(at, &client.to_be_bytes());
        if let Some(host) = host.filter(|_| self.is_ipv6) {
            rest ^= self.client_prefix ^ hash.destination(0, &host.prefix);
        }
        Answers {
            share: &self.share,
            hash,
            rest,
        }
    }
}

impl Answers<'_> {
    /// Whether they come to this core when the client has this port.
    #[inline]
    pub(super) fn come_here_by(&self, port: u16) -> bool {
        self.share.has(self.rest ^ self.hash.destination_port(port))
    }
}
