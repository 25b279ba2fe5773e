//! Commands that change the addresses of a port, and the gateways that ports find by themselves.

use allosaur_api::commands::layers::{ConfigureIpv6, SetL2, SetL3, SetVlan, SetVxlan};
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::time::Nanos;

use super::attributes::layers_changed;
use super::state::Ports;
use crate::control::config::mac_text;
use crate::control::core::Core;
use crate::control::core::layers::{Ipv4Layer, Layers, link_local};
use crate::control::domain::Others;
use crate::control::reply::{Reply, reply};
use crate::rx_taps::{PortAnswer, PortRequest};

/// What changes addresses when a gateway has answered.
const RESOLVE: &str = "resolve";

impl Ports {
    /// Asks which gateways have answered ports that look for theirs. What a port sends already keeps
    /// its destination.
    pub(super) fn ask_for_gateways(&mut self, control: &mut Core) {
        for id in control.port_ids() {
            let port = &control.ports[usize::from(id)];
            let asks = &mut self.asks_for_gateway[usize::from(id)];
            if *asks || port.layers.sought_gateway().is_none() {
                continue;
            }
            *asks = true;
            // Nobody waits for what stands for a reply here.
            let request = PortRequest::State(id);
            let _ = self.awaited.ask(
                control,
                request,
                move |ports, control, others, answer, view| {
                    ports.asks_for_gateway[usize::from(id)] = false;
                    if let Some(PortAnswer::State(state)) = answer {
                        note_gateway(control, others, id, state.gateway_mac, view.now_ns);
                    }
                    reply(&())
                },
            );
        }
    }
}

fn note_gateway(
    control: &mut Core,
    others: &mut Others<'_>,
    id: u8,
    mac: Option<[u8; 6]>,
    now_ns: Nanos,
) {
    let layers = &control.ports[usize::from(id)].layers;
    let Some(mac) = mac.filter(|_| layers.sought_gateway().is_some()) else {
        return;
    };
    let noted = set_layers(control, others, id, RESOLVE, |layers, _| {
        layers.destination_mac = mac;
        if let Some(layer) = &mut layers.ipv4 {
            layer.resolved = true;
        }
    });
    match noted {
        Ok(_) => {
            tracing::info!(port = id, mac = mac_text(mac), "found the gateway");
            let event = layers_changed(id, &control.ports[usize::from(id)]);
            control.queue_event(event, now_ns);
        }
        // The port transmits: at a later tick.
        Err(error) => tracing::debug!(port = id, "{error}"),
    }
}

pub(super) fn set_l2(control: &mut Core, others: &mut Others<'_>, fields: &Fields<'_>) -> Reply {
    let params = fields.read::<SetL2>()?;
    set_layers(control, others, params.port, "set_l2", |layers, _| {
        layers.destination_mac = params.destination_mac;
        layers.ipv4 = None;
    })
}

pub(super) fn set_l3(control: &mut Core, others: &mut Others<'_>, fields: &Fields<'_>) -> Reply {
    let params = fields.read::<SetL3>()?;
    set_layers(control, others, params.port, "set_l3", |layers, _| {
        if let Some(mac) = params.resolved_mac {
            layers.destination_mac = mac;
        }
        layers.ipv4 = Some(Ipv4Layer {
            source: params.source,
            destination: params.destination,
            resolved: params.resolved_mac.is_some(),
            seeking: false,
        });
    })
}

pub(super) fn configure_ipv6(
    control: &mut Core,
    others: &mut Others<'_>,
    fields: &Fields<'_>,
) -> Reply {
    let params = fields.read::<ConfigureIpv6>()?;
    set_layers(control, others, params.port, "conf_ipv6", |layers, mac| {
        let address = params.source.unwrap_or_else(|| link_local(mac));
        layers.ipv6 = params.enabled.then_some(address);
    })
}

pub(super) fn set_vlan(control: &mut Core, others: &mut Others<'_>, fields: &Fields<'_>) -> Reply {
    let params = SetVlan::parse(fields)?;
    if control.port(params.port)?.is_stateful() && params.tags.len() > 1 {
        return Err(Error::execution(format!(
            "'vlan' has {} tags, and stateful mode carries one: give one tag, or none",
            params.tags.len()
        )));
    }
    set_layers(control, others, params.port, "set_vlan", |layers, _| {
        layers.vlan = params.tags;
    })
}

pub(super) fn set_vxlan(control: &mut Core, others: &mut Others<'_>, fields: &Fields<'_>) -> Reply {
    let params = SetVxlan::parse(fields)?;
    let port = control.port(params.port)?;
    let vxlan = params.vxlan.map(|given| {
        let is_client = params.port % 2 == 0;
        port.layers.vxlan_end(&given, is_client)
    });
    let vxlan = vxlan.transpose().map_err(|(field, problem)| {
        let id = params.port;
        Error::execution(format!("'vxlan.{field}' of port {id} {problem}"))
    })?;
    set_layers(control, others, params.port, "set_vxlan", |layers, _| {
        layers.vxlan = vxlan;
    })
}

/// Changes the addresses of a port that does not transmit, and tells who answers for them.
fn set_layers(
    control: &mut Core,
    others: &mut Others<'_>,
    id: u8,
    command: &str,
    change: impl FnOnce(&mut Layers, [u8; 6]),
) -> Reply {
    check_quiet(control, others, id, command)?;
    control.change_layers(id, change);
    for domain in others.iter_mut() {
        domain.addresses_changed(control, id);
    }
    reply(&Empty {})
}

/// Refuses to change the addresses of a port while they are in use.
fn check_quiet(control: &Core, others: &Others<'_>, id: u8, command: &str) -> Result<(), Error> {
    control.port(id)?;
    let used = others.port_use(control, id);
    let is_fixed = match command {
        RESOLVE => used.has_fixed_gateway,
        _ => used.is_running,
    };
    if is_fixed {
        return Err(Error::execution(format!(
            "{command} cannot be executed while port {id} transmits: stop its traffic first"
        )));
    }
    Ok(())
}
