//! Where the frames of flows go: what data threads are told of the addresses of ports.

use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::PoolShare;
use allosaur_packet::MacAddress;

use crate::control::Control;
use crate::control::worker_command::FlowCommand;

/// The kind of port that has neither clients nor servers.
pub(super) const DUMMY: &str = "dummy";

impl Control {
    /// The ports with clients: the even ones.
    pub(super) fn client_ports(&self) -> Vec<u8> {
        let ports = (0_u8..).zip(&self.ports);
        let ports = ports.filter(|(_, port)| port.is_stateful());
        let clients = ports.filter(|(id, port)| id % 2 == 0 && port.config.driver != DUMMY);
        clients.map(|(id, _)| id).collect()
    }

    /// Refuses to send to gateways whose MAC address nobody knows.
    pub(super) fn check_links(&self, client_mask: u32) -> Result<(), String> {
        for id in self.client_ports() {
            let port = &self.ports[usize::from(id)];
            let gateway = port.layers.unresolved_gateway();
            if let (Some(gateway), true) = (gateway, client_mask >> id & 1 == 1) {
                return Err(format!(
                    "port {id}: the MAC address of {gateway} is not known yet: resolve it (set_l3 \
                     with resolved_mac), or leave the port out of client_mask"
                ));
            }
        }
        Ok(())
    }

    /// Tells data threads the addresses of all ports.
    pub(super) fn order_links(&mut self, cores: &[usize]) {
        for id in self.stateful_ports() {
            for &core in cores {
                self.order_link(core, id);
            }
        }
    }

    /// Other ports have flows than before: data threads hear of all that holds for them, also those
    /// that never had flows.
    pub(super) fn apply_port_set(&mut self) {
        let ports = self.stateful_ports();
        let pairs = ports.iter().filter(|id| *id % 2 == 0).count() as u32;
        for id in ports {
            let pair = self.pair_of(id);
            let cores = self.ports[usize::from(id)].threads.clone();
            for (rank, &core) in (0..).zip(&cores) {
                let share = PoolShare {
                    rank,
                    cores: cores.len() as u32,
                    pair,
                    pairs,
                };
                let command = StatefulCommand::SetShare { port: id, share };
                self.order(core, FlowCommand::Command(command));
            }
        }
        self.order_links(&self.live_cores());
        self.order_client_terms();
        self.order_topology();
    }

    /// The addresses of a port have changed.
    pub(in crate::control) fn relay_link(&mut self, id: u8) {
        if !self.ports[usize::from(id)].is_stateful() {
            return;
        }
        for core in self.live_cores() {
            self.order_link(core, id);
        }
    }

    fn order_link(&mut self, core: usize, id: u8) {
        let port = &self.ports[usize::from(id)];
        let command = StatefulCommand::SetLink {
            port: id,
            own_mac: MacAddress(port.config.hw_mac),
            peer_mac: MacAddress(port.layers.destination_mac()),
            encapsulation: port.layers.outer_vlan().into(),
        };
        self.order(core, FlowCommand::Command(command));
    }
}
