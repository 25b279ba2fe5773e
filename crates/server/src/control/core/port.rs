//! A port, as all of control knows it: owner, mode, attributes and addresses. What is sent on it is
//! known to the domain that sends.

use allosaur_api::Error;
use allosaur_api::commands::ports::MtuChange;
use allosaur_netdev::interface::LinkState;

use super::layers::Layers;
use super::owner::Owner;
use crate::control::action::Action;
use crate::control::config::{LinkOwner, PortConfig};
use crate::control::worker_command::PortMode;
use crate::rx_taps::{MacFilter, Reception, ServiceMode};

/// A port.
#[derive(Debug)]
pub(in crate::control) struct Port {
    pub(in crate::control) config: PortConfig,
    /// Whether streams are what it is for, or flows.
    pub(in crate::control) mode: PortMode,
    /// The data threads that served it at the start; `core_id` counts along this list.
    pub(in crate::control) threads: Vec<usize>,
    pub(in crate::control) owner: Option<Owner>,
    pub(in crate::control) promiscuous: bool,
    pub(in crate::control) multicast: bool,
    /// Linux nodes are behind it, which have MAC addresses of their own.
    pub(in crate::control) has_nodes: bool,
    /// Its link, and the UDP ports that carry VXLAN.
    pub(in crate::control) reception: Reception,
    /// Why the link is down, where the system says so.
    pub(in crate::control) link_cause: &'static str,
    /// The MTU of its interface, where it is not what it was at the start.
    pub(in crate::control) mtu_change: Option<MtuChange>,
    pub(in crate::control) layers: Layers,
    /// The most that users may send, at layer 1, also when forced.
    pub(in crate::control) load_max_bps: Option<f64>,
    pub(in crate::control) service: ServiceMode,
    /// Who set it last.
    pub(in crate::control) service_session: Option<u32>,
}

impl Port {
    pub(in crate::control) fn new(config: PortConfig, mode: PortMode) -> Port {
        Port {
            mode,
            threads: config.cores.clone(),
            layers: Layers::new(config.destination_mac),
            load_max_bps: None,
            service: ServiceMode::Off,
            service_session: None,
            config,
            owner: None,
            promiscuous: false,
            multicast: false,
            has_nodes: false,
            reception: Reception::default(),
            link_cause: "",
            mtu_change: None,
        }
    }

    /// Whether it is for flows.
    pub(in crate::control) fn is_stateful(&self) -> bool {
        self.mode == PortMode::Stateful
    }

    /// What the port takes of what arrives: with flows its own frames only, as long as it is not
    /// promiscuous and has no emulated clients; else all.
    pub(in crate::control) fn mac_filter(&self, has_emulation: bool) -> MacFilter {
        if !self.is_stateful() {
            return MacFilter::Any;
        }
        let takes_all = self.promiscuous || has_emulation;
        let filter = MacFilter::new(self.config.hw_mac, takes_all, self.multicast);
        filter.with_others(self.has_nodes)
    }

    /// Has the port's card let through what is for others, where somebody wants it.
    pub(in crate::control) fn set_receive(&self, port: u8) -> Action {
        Action::SetReceive {
            port,
            promiscuous: self.promiscuous || self.has_nodes,
            multicast: self.multicast || self.has_nodes,
        }
    }

    /// Refuses to send into a link that is down.
    pub(in crate::control) fn check_link_up(&self) -> Result<(), Error> {
        let remedy = match (self.reception.link_up, self.config.link) {
            (true, _) => return Ok(()),
            (false, LinkOwner::Server { .. }) => "Switch it up (set_port_attr with link_status)",
            (false, LinkOwner::System) if self.link_cause == LinkState::Gone.cause() => {
                "The interface is gone: make it again, and restart the server"
            }
            (false, LinkOwner::System) if self.link_cause == LinkState::Replaced.cause() => {
                "The interface was removed and made anew, and the server has the one that is gone: \
                 restart the server"
            }
            (false, LinkOwner::System) => {
                "Bring the interface and what it is joined to up (ip link set ... up)"
            }
        };
        let text = format!("Link state is DOWN. {remedy}, or use 'force'.");
        Err(Error::execution(text))
    }

    /// The data threads that transmit on it, one at least.
    pub(in crate::control) fn cores(&self) -> Result<&[usize], Error> {
        match self.config.cores.as_slice() {
            [] => Err(Error::execution(
                "the port has no data thread left, they broke down: restart the server",
            )),
            cores => Ok(cores),
        }
    }
}

/// The error of a command for a port that is not there.
pub(in crate::control) fn unknown_port(id: u8, ports: usize) -> Error {
    let last = ports.saturating_sub(1);
    Error::execution(format!("invalid port id {id} - should be: 0 to {last}"))
}

/// Refuses to do something to a port that is in the other mode.
pub(in crate::control) fn in_other_mode(id: u8, port: &Port) -> Error {
    let (mode, other) = match port.is_stateful() {
        true => ("stateful", "stateless"),
        false => ("stateless", "stateful"),
    };
    let who = port.owner.as_ref().map_or("nobody", |owner| &owner.user);
    Error::execution(format!(
        "port {id} is in {mode} mode, where '{who}' has it: acquire it in {other} mode first, with \
         'force' if it is somebody else's"
    ))
}

/// Refuses who does not own a port.
pub(in crate::control) fn check_owner(port: &Port, handler: &str) -> Result<(), Error> {
    match &port.owner {
        None => Err(Error::execution(
            "please acquire the port before modifying port state",
        )),
        Some(owner) if owner.handler != handler => Err(Error::execution(
            "port is not owned by you or your current executing session",
        )),
        Some(_) => Ok(()),
    }
}
