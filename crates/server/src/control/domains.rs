//! The list of all domains.

use super::capture::Captures;
use super::config::ControlConfig;
use super::domain::Domain;
use super::emulation::EmulatedClients;
use super::ports::Ports;
use super::server::Server;
use super::stateful::Stateful;
use super::stateless::Stateless;

/// The list of all domains, in the order in which they are told what happens: those that send
/// first, then those that ask what is sent.
pub(in crate::control) fn all_domains(config: &ControlConfig, now_ns: u64) -> Vec<Box<dyn Domain>> {
    vec![
        Box::new(Stateful::default()),
        Box::new(Stateless::new(config.ports.len())),
        Box::new(Captures::default()),
        Box::new(EmulatedClients::default()),
        Box::new(Ports::new(config.ports.len(), now_ns)),
        Box::new(Server::default()),
    ]
}
