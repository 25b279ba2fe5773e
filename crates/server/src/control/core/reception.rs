//! How ports receive: their link, their MAC filter, and service mode.

use std::collections::BTreeSet;

use allosaur_api::Error;

use super::base::Core;
use super::layers::{Layers, answers_echo};
use crate::control::config::LinkOwner;
use crate::rx_taps::{HostRequest, NodesRequest, PortRequest, Reception, ServiceMode};

impl Core {
    /// Tells the threads of a port what it takes of what arrives; and tells who counts streams which
    /// tunnel they are in.
    pub(in crate::control) fn update_reception(&mut self, id: u8) {
        let port = &self.ports[usize::from(id)];
        let mut reception = port.reception;
        reception.mac_filter = port.mac_filter(self.config.has_emulation);
        let tunnel = port.layers.tunnel(port.config.hw_mac);
        reception.tunnel = tunnel.filter(|_| !port.is_stateful());
        let set = self.set_reception(id, reception);
        set.expect("the port is there");
    }

    /// A port has Linux nodes from now on, or none any more: frames for them are let through.
    pub(in crate::control) fn set_has_nodes(&mut self, id: u8, has_nodes: bool) {
        let port = &mut self.ports[usize::from(id)];
        if std::mem::replace(&mut port.has_nodes, has_nodes) == has_nodes {
            return;
        }
        let action = port.set_receive(id);
        match has_nodes {
            true => tracing::info!(port = id, "frames for all stations: the port has nodes"),
            false => tracing::info!(port = id, "its own frames again: the port has no nodes"),
        }
        self.push(action);
        self.update_reception(id);
    }

    /// Tells the receive thread how a port shall receive from now on, and its peer, which has the
    /// same link. Gives the ports for which something has changed.
    pub(in crate::control) fn set_reception(
        &mut self,
        id: u8,
        reception: Reception,
    ) -> Result<BTreeSet<u8>, Error> {
        let mut changed = BTreeSet::new();
        let peer = match self.port(id)?.config.link {
            LinkOwner::Server { peer } => peer,
            LinkOwner::System => None,
        };
        for port in [Some(id), peer].into_iter().flatten() {
            let Some(found) = self.ports.get_mut(usize::from(port)) else {
                continue;
            };
            let mut wanted = found.reception;
            wanted.link_up = reception.link_up;
            if port == id {
                wanted.vxlan = reception.vxlan;
                wanted.tunnel = reception.tunnel;
                wanted.mac_filter = reception.mac_filter;
            }
            let before = found.reception;
            if wanted != before {
                found.reception = wanted;
                let reception = wanted;
                self.tell(PortRequest::SetReception { port, reception });
                // Filter and tunnel are no attributes: the filter follows from two, which the caller looks at.
                if (wanted.link_up, wanted.vxlan) != (before.link_up, before.vxlan) {
                    changed.insert(port);
                }
            }
        }
        Ok(changed)
    }

    /// Sets the service mode of a port.
    pub(in crate::control) fn set_service(
        &mut self,
        id: u8,
        mode: ServiceMode,
    ) -> Result<(), Error> {
        let port = self.port_mut(id)?;
        port.service = mode;
        port.service_session = port.owner.as_ref().map(|owner| owner.session);
        self.tell(PortRequest::SetService { port: id, mode });
        self.tell_host(id);
        Ok(())
    }

    /// Tells the port as a host who it is, and the port's own node what it may answer.
    fn tell_host(&mut self, port: u8) {
        let found = &self.ports[usize::from(port)];
        let answers = answers_echo(found.is_stateful(), found.service);
        let mut settings = found.layers.host(found.config.hw_mac, answers);
        settings.is_passive = self.config.has_linux_stack;
        self.tell(HostRequest::Set { port, settings });
        if self.config.has_linux_stack {
            self.tell(NodesRequest::SetPortAnswers { port, answers });
        }
    }

    /// Ends the service mode that a session switched on.
    pub(in crate::control) fn end_service_of(&mut self, id: u8, session: u32) {
        let port = &self.ports[usize::from(id)];
        if port.service == ServiceMode::Off || port.service_session != Some(session) {
            return;
        }
        let ended = self.set_service(id, ServiceMode::Off);
        ended.expect("the port is there");
    }

    /// Changes the addresses of a port, and tells who answers for them.
    pub(in crate::control) fn change_layers(
        &mut self,
        id: u8,
        change: impl FnOnce(&mut Layers, [u8; 6]),
    ) {
        let port = &mut self.ports[usize::from(id)];
        change(&mut port.layers, port.config.hw_mac);
        self.tell_host(id);
        self.update_reception(id);
    }
}
