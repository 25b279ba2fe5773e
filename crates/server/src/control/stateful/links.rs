//! Where the frames of flows go: what data threads are told of the addresses of ports.

use allosaur_engine::flow_stats::VXLAN_PORT;
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::PoolShare;
use allosaur_packet::MacAddress;

use super::state::Stateful;
use crate::control::core::Core;
use crate::control::worker_command::FlowCommand;

/// The kind of port that has neither clients nor servers.
pub(super) const DUMMY: &str = "dummy";

impl Stateful {
    /// The ports with clients: the even ones.
    pub(super) fn client_ports(&self, control: &Core) -> Vec<u8> {
        let ports = (0_u8..).zip(&control.ports);
        let ports = ports.filter(|(_, port)| port.is_stateful());
        let clients = ports.filter(|(id, port)| id % 2 == 0 && port.config.driver != DUMMY);
        clients.map(|(id, _)| id).collect()
    }

    /// Refuses to send to gateways whose MAC address nobody knows.
    pub(super) fn check_links(&self, control: &Core, client_mask: u32) -> Result<(), String> {
        for id in self.client_ports(control) {
            let port = &control.ports[usize::from(id)];
            let gateway = port.layers.unresolved_gateway();
            if let (Some(gateway), true) = (gateway, client_mask >> id & 1 == 1) {
                return Err(format!(
                    "port {id}: the MAC address of {gateway} is not known yet: resolve it (set_l3 \
                     with resolved_mac), or leave the port out of client_mask"
                ));
            }
        }
        for (id, port) in (0..)
            .zip(&control.ports)
            .filter(|(_, port): &(u8, _)| port.is_stateful())
        {
            let threads = port.threads.len();
            let Some(udp_port) = port.layers.vxlan_port().filter(|_| threads > 1) else {
                continue;
            };
            if !port.config.shares_inner_flows {
                return Err(format!(
                    "port {id} has a tunnel and {threads} threads, and its card shares frames between \
                     threads by headers that a tunnel hides: give it one queue, or start the server with \
                     one thread (cores)"
                ));
            }
            if udp_port != VXLAN_PORT {
                return Err(format!(
                    "port {id} has a tunnel to udp_port {udp_port} and {threads} threads, which share the \
                     frames of port {VXLAN_PORT} alone by what is in them: use that port (set_vxlan), or \
                     start the server with one thread (cores)"
                ));
            }
        }
        self.check_topology(control)
    }

    /// Tells data threads the addresses of all ports.
    pub(super) fn send_links(&mut self, control: &mut Core, cores: &[usize]) {
        for id in control.stateful_ports() {
            for &core in cores {
                self.send_link(control, core, id);
            }
        }
    }

    /// Other ports have flows than before: data threads hear of all that holds for them, also those
    /// that never had flows.
    pub(super) fn apply_port_set(&mut self, control: &mut Core) {
        let ports = control.stateful_ports();
        let pairs = ports.iter().filter(|id| *id % 2 == 0).count() as u32;
        for id in ports {
            let pair = control.pair_of(id);
            let cores = control.ports[usize::from(id)].threads.clone();
            for (rank, &core) in (0..).zip(&cores) {
                let share = PoolShare {
                    rank,
                    cores: cores.len() as u32,
                    pair,
                    pairs,
                };
                let command = StatefulCommand::SetShare { port: id, share };
                control.command_flows(core, FlowCommand::Command(command));
            }
        }
        self.send_links(control, &control.live_cores());
        self.send_client_terms(control);
        self.send_topology(control);
    }

    /// The addresses of a port have changed.
    pub(in crate::control) fn relay_link(&mut self, control: &mut Core, id: u8) {
        if !control.ports[usize::from(id)].is_stateful() {
            return;
        }
        for core in control.live_cores() {
            self.send_link(control, core, id);
        }
        self.renew_topology(control);
    }

    fn send_link(&mut self, control: &mut Core, core: usize, id: u8) {
        let port = &control.ports[usize::from(id)];
        let command = StatefulCommand::SetLink {
            port: id,
            own_mac: MacAddress(port.config.hw_mac),
            peer_mac: MacAddress(port.layers.destination_mac()),
            encapsulation: port.layers.encapsulation(port.config.hw_mac),
        };
        control.command_flows(core, FlowCommand::Command(command));
    }
}
