//! Transport of clients: gives datagrams that arrive to the plugins whose sockets they are for, and has
//! their connections of TCP.

mod connections;
mod outbox;
mod settings;
mod socket;
mod tcp_counters;
#[cfg(test)]
pub(crate) mod tests;
mod wire;

use std::net::{IpAddr, SocketAddr};

use allosaur_api::{Command, Error, Example};
use allosaur_packet::frame::{Network, Transport as Protocol};
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_packet::transport::udp::UdpView;
use serde_json::Value;

use self::tcp_counters::{Counted, TcpCounters};
use crate::client::ClientId;
use crate::counters::{self, CounterParams, CounterReport, Counters};
use crate::frame::{Frame, FrameKind};
use crate::namespace::Namespace;
use crate::plugin::{Context, Plugin, PluginError, PluginId, Timeout};
use crate::sockets::{Datagram, FlowCounters, UdpCounters};
use crate::spec::{Keys, OfClient, Scope, Spec, about_client};

pub(crate) use self::connections::{ConnectError, Connections};
pub(crate) use self::settings::Settings;
pub(crate) use self::socket::Owned;

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "transport",
    frames: &[FrameKind::Transport],
    commands: &[Command {
        name: "transport_client_cnt",
        doc: "Gives the counters of a client's connections and datagrams, or clears them.",
        errors: &["the client has no connections and no sockets yet"],
        example: Example {
            params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
            result: r#"{"tcp": {"connects": 1}}"#,
        },
        ..about_client(&OfClient(Transport::count))
    }],
    counters: &[
        ("tcp", TcpCounters::META),
        ("", UdpCounters::META),
        ("flows", FlowCounters::META),
    ],
    keys: Keys::Only(&[
        "tcp_fasttick_msec",
        "tcp_keepalive",
        "tcp_no_delay",
        "tcp_no_delay_counter",
        "initwnd",
        "rxbufsize",
        "txbufsize",
        "do_rfc1323",
        "mss",
    ]),
    scope: Scope::Namespace,
    create: |_, _| Ok(Box::new(Transport::default())),
};

/// Transport in a namespace. The sockets are the namespace's, for they outlive this plugin's turn.
#[derive(Default)]
pub(crate) struct Transport {
    connections: Connections,
}

/// Does something with the connections of a namespace, in the turn of another plugin. `None` when the
/// namespace has no transport.
pub(crate) fn with_connections<R>(
    context: &mut Context<'_>,
    run: impl FnOnce(&mut Connections, &mut Context<'_>) -> R,
) -> Option<R> {
    context
        .with_plugin(|transport: &mut Transport, context| run(&mut transport.connections, context))
}

impl Plugin for Transport {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        self.connections.add_client(client, init);
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        self.connections.remove_client(context, client);
        context.namespace.sockets.remove(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let client = context.namespace.clients.by_mac(frame.destination());
        let client = client.filter(|client| context.has_this(*client));
        let Some(client) = client else {
            return receive_as_group(context, frame);
        };
        let Some(addresses) = addresses(context, client, frame) else {
            return;
        };
        match frame.layout.transport {
            Protocol::Udp => receive(context, client, addresses, frame),
            Protocol::Tcp => {
                let segment = frame.segment();
                let connections = &mut self.connections;
                connections.handle_segment(context, client, addresses, segment);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let (slot, timer) = (timeout.tag, timeout.timer);
        self.connections.handle_timeout(context, slot, timer);
    }

    fn counters(
        &mut self,
        namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        let Some(client) = client else {
            return;
        };
        if let Some(tcp) = self.connections.counted(client) {
            show(0, tcp);
        }
        if let Some(sockets) = namespace.sockets.get_mut(client) {
            show(1, &mut sockets.udp);
            show(2, &mut sockets.flows);
        }
    }

    fn table_bytes(&self) -> usize {
        self.connections.table_bytes()
    }
}

impl Transport {
    fn count(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: CounterParams,
    ) -> Result<CounterReport, Error> {
        let Some(sockets) = context.namespace.sockets.get_mut(client) else {
            return Err(Error::execution(
                " client does not have a transport context",
            ));
        };
        let mut none = Counted::default();
        let tcp = self.connections.counted(client).unwrap_or(&mut none);
        let tables: &mut [&mut dyn Counters] = &mut [tcp, &mut sockets.udp, &mut sockets.flows];
        Ok(counters::report(&params, tables))
    }
}

/// Where a packet comes from and where it goes.
fn ends(frame: &Frame<'_>) -> Option<(IpAddr, IpAddr)> {
    let packet = frame.packet();
    match frame.layout.network {
        Network::Ipv4 => {
            let view = Ipv4View::new_checked(packet).ok()?;
            Some((IpAddr::V4(view.source()), IpAddr::V4(view.destination())))
        }
        Network::Ipv6 => {
            let view = Ipv6View::new_checked(packet).ok()?;
            Some((IpAddr::V6(view.source()), IpAddr::V6(view.destination())))
        }
        _ => None,
    }
}

/// The same, if the packet is for an address of the client; else it is counted. A client without
/// sockets has nobody to give anything to, and keeps no memory for it.
fn addresses(
    context: &mut Context<'_>,
    client: ClientId,
    frame: &Frame<'_>,
) -> Option<(IpAddr, IpAddr)> {
    let (source, destination) = ends(frame)?;
    let is_ours = is_address_of(context, client, destination);
    let sockets = context.namespace.sockets.get_mut(client)?;
    if !is_ours {
        match destination {
            IpAddr::V4(_) => sockets.flows.new_no_client_ipv4 += 1,
            IpAddr::V6(_) => sockets.flows.new_no_client_ipv6 += 1,
        }
        return None;
    }
    Some((source, destination))
}

/// Gives a datagram to a group to all clients that take it.
fn receive_as_group(context: &mut Context<'_>, frame: &Frame<'_>) {
    let is_group = frame.destination().octets()[0] & 1 != 0;
    if !is_group || frame.layout.transport != Protocol::Udp {
        return;
    }
    let (Some(ends), Ok(udp)) = (ends(frame), UdpView::new_checked(frame.segment())) else {
        return;
    };
    let group = SocketAddr::new(ends.1, udp.destination_port());
    let members = context.namespace.sockets.members(group).to_vec();
    for client in members {
        receive(context, client, ends, frame);
    }
}

/// Gives a datagram to the owner of its flow.
fn receive(
    context: &mut Context<'_>,
    client: ClientId,
    (source, _): (IpAddr, IpAddr),
    frame: &Frame<'_>,
) {
    let Ok(udp) = UdpView::new_checked(frame.segment()) else {
        return;
    };
    let Some(sockets) = context.namespace.sockets.get_mut(client) else {
        return;
    };
    let datagram = Datagram {
        port: udp.destination_port(),
        remote: SocketAddr::new(source, udp.source_port()),
        payload: udp.payload(),
    };
    if let Some(owner) = sockets.accept(datagram.port, datagram.remote) {
        sockets.udp.rx_bytes += datagram.payload.len() as u32;
        context.post(PluginId(owner), client, 0, datagram.encode());
    }
}

fn is_address_of(context: &Context<'_>, client: ClientId, address: IpAddr) -> bool {
    let Some(found) = context.client(client) else {
        return false;
    };
    match address {
        IpAddr::V4(address) => found.ipv4 == address,
        IpAddr::V6(address) => {
            let prefix = context.namespace.router.and_then(|router| router.prefix);
            let slaac = prefix.map(|(prefix, _)| found.eui64(prefix));
            [found.dhcp_ipv6, found.ipv6, found.link_local()].contains(&address)
                || slaac == Some(address)
        }
    }
}
