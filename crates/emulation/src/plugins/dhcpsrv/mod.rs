//! DHCP for IPv4, the server (RFC 2131 section 4.3), for clients of its link and behind relays
//! (RFC 3046).
//!
//! A client with this plugin is a server: it has pools of addresses, and a record of each host that
//! it offered or leased one. A broadcast request goes to all servers of the namespace.

mod init;
mod pool;
mod replies;
mod server;

use allosaur_api::Access;
use serde_json::Value;

use self::server::Server;
use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::frame::{Frame, FrameKind};
use crate::namespace::Namespace;
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::spec::{Keys, Scope, Spec, client_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "dhcpsrv",
    frames: &[FrameKind::DhcpServer],
    commands: &[client_counters::<DhcpServers>(
        "dhcpsrv_c_cnt",
        Access::Open,
    )],
    counters: &[("", server::DhcpServerCounters::META)],
    keys: Keys::Only(&[
        "default_lease",
        "min_lease",
        "max_lease",
        "next_server_ip",
        "pools",
        "options",
    ]),
    scope: Scope::Namespace,
    create: |_, _| Ok(Box::<DhcpServers>::default()),
};

/// DHCP servers of a namespace.
#[derive(Debug, Default)]
struct DhcpServers {
    servers: ClientMap<Server>,
    /// Which there are.
    ids: Vec<ClientId>,
}

impl Plugin for DhcpServers {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        id: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        self.servers.insert(id, Server::new(init)?);
        self.ids.push(id);
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, id: ClientId) {
        self.servers.remove(id);
        self.ids.retain(|&other| other != id);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let to = frame.destination();
        let only = [context.namespace.clients.by_mac(to)];
        let unicast = only.iter().flatten();
        let all = if to.is_broadcast() {
            &self.ids[..]
        } else {
            &[]
        };
        for &id in all.iter().chain(unicast) {
            if let Some(server) = self.servers.get_mut(id) {
                server.handle_frame(context, id, frame);
            }
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let server = timeout.client.and_then(|id| self.servers.get_mut(id));
        if let Some(server) = server {
            server.handle_timeout(context, timeout);
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if let Some(server) = client.and_then(|id| self.servers.get_mut(id)) {
            show(0, &mut server.counters);
        }
    }

    fn table_bytes(&self) -> usize {
        self.servers.table_bytes()
    }
}

#[cfg(test)]
mod tests;
