//! The attributes of a port, as clients and sessions that listen see them.

use allosaur_api::commands::ports::{Enabled, FlowControl, Link, PortAttributes};
use allosaur_api::events::Event;

use crate::control::core::port::Port;

/// Attributes that exist, and that no port of this version can change; the link of an interface
/// is changed by the system.
const FIXED_ATTRIBUTES: [&str; 3] = ["link_status", "led_status", "flow_ctrl_mode"];

pub(in crate::control) fn attributes(port: &Port) -> PortAttributes {
    let config = &port.config;
    PortAttributes {
        promiscuous: Enabled {
            enabled: port.promiscuous,
        },
        multicast: Enabled {
            enabled: port.multicast,
        },
        link: Link {
            up: port.reception.link_up,
            cause: port.link_cause,
            mtu: port.mtu_change,
        },
        speed: config.line_rate_bps / 1e9,
        rx_filter_mode: "all",
        vxlan_fs: port.reception.vxlan.others().to_vec(),
        fc: FlowControl { mode: -1 },
        vlan: Some(port.layers.vlan()),
        layer_cfg: Some(port.layers.layer_cfg(config.hw_mac)),
    }
}

/// What sessions hear when a port has found its gateway: all attributes, with the addresses. A
/// client that connected before would otherwise take the port for unresolved until it asks.
pub(in crate::control) fn layers_changed(id: u8, port: &Port) -> Event {
    let attributes = Box::new(attributes(port));
    let port = id;
    Event::PortAttributesChanged { port, attributes }
}

/// What sessions hear of a change: all attributes that are the port's own.
pub(in crate::control) fn attributes_changed(id: u8, port: &Port) -> Event {
    let attributes = Box::new(PortAttributes {
        layer_cfg: None,
        vlan: None,
        ..attributes(port)
    });
    let port = id;
    Event::PortAttributesChanged { port, attributes }
}

pub(in crate::control) fn attribute_problem(name: &str) -> String {
    if FIXED_ATTRIBUTES.contains(&name) {
        format!("Error applying {name}: operation is not supported for this NIC.")
    } else {
        format!("unknown attribute type: '{name:.64}'")
    }
}
