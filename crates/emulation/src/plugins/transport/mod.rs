//! Transport of clients: gives datagrams that arrive to the plugins whose sockets they are for.

mod tcp_counters;

use std::any::Any;
use std::net::{IpAddr, SocketAddr};

use allosaur_packet::frame::{Network, Transport as Protocol};
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_packet::transport::udp::UdpView;
use serde_json::Value;

use self::tcp_counters::TcpCounters;
use crate::client::ClientId;
use crate::counters;
use crate::frame::{Frame, FrameKind};
use crate::params::RpcError;
use crate::plugin::{Call, Context, Method, Plugin, PluginError, PluginId, Spec, Target};
use crate::sockets::Datagram;

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "transport",
    frames: &[FrameKind::Transport],
    methods: &[Method {
        name: "transport_client_cnt",
        target: Target::Client,
        needs_api: true,
    }],
    create: |_, _| Ok(Box::new(Transport)),
};

/// Transport in a namespace. The sockets are the namespace's, for they outlive this plugin's turn.
struct Transport;

impl Plugin for Transport {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        _client: ClientId,
        _init: &Value,
    ) -> Result<(), PluginError> {
        // The init JSON tunes TCP, which clients do not have yet.
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        context.namespace.sockets.remove(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let client = context.namespace.clients.by_mac(frame.destination());
        let client = client.filter(|client| context.has_this(*client));
        if let (Some(client), Protocol::Udp) = (client, frame.layout.transport) {
            receive(context, client, frame);
        }
    }

    fn call(&mut self, context: &mut Context<'_>, call: &Call<'_>) -> Result<Value, RpcError> {
        let client = call.client.ok_or_else(|| RpcError::new("mac is missing"))?;
        let sockets = context.namespace.sockets.get_mut(client);
        let Some(sockets) = sockets else {
            return Err(RpcError::new(" client does not have a transport context"));
        };
        let mut tcp = TcpCounters::default();
        counters::report(
            call.params,
            &mut [&mut tcp, &mut sockets.udp, &mut sockets.flows],
        )
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Gives a datagram to the owner of its flow.
fn receive(context: &mut Context<'_>, client: ClientId, frame: &Frame<'_>) {
    let packet = frame.packet();
    let (source, destination) = match frame.layout.network {
        Network::Ipv4 => match Ipv4View::new_checked(packet) {
            Ok(view) => (IpAddr::V4(view.source()), IpAddr::V4(view.destination())),
            Err(_) => return,
        },
        Network::Ipv6 => match Ipv6View::new_checked(packet) {
            Ok(view) => (IpAddr::V6(view.source()), IpAddr::V6(view.destination())),
            Err(_) => return,
        },
        _ => return,
    };
    let Ok(udp) = UdpView::new_checked(frame.segment()) else {
        return;
    };
    let is_ours = is_address_of(context, client, destination);
    // A client without sockets has nobody to give anything to, and keeps no memory for it.
    let Some(sockets) = context.namespace.sockets.get_mut(client) else {
        return;
    };
    if !is_ours {
        match destination {
            IpAddr::V4(_) => sockets.flows.new_no_client_ipv4 += 1,
            IpAddr::V6(_) => sockets.flows.new_no_client_ipv6 += 1,
        }
        return;
    }
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
