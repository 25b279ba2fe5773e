//! What is told to all data threads that have flows.

use allosaur_engine::stateful::StatefulCommand;

use super::base::Core;
use super::port::Port;
use crate::control::worker_command::FlowCommand;

impl Core {
    /// Tells all data threads that there are the same; those that never had flows let it go.
    pub(in crate::control) fn command_all_flows(
        &mut self,
        mut command: impl FnMut() -> StatefulCommand,
    ) {
        for core in cores_of(self.ports.iter()) {
            self.command_flows(core, FlowCommand::Command(command()));
        }
    }

    /// The data threads that serve a port in stateful mode.
    pub(in crate::control) fn live_cores(&self) -> Vec<usize> {
        cores_of(self.ports.iter().filter(|port| port.is_stateful()))
    }
}

fn cores_of<'a>(ports: impl Iterator<Item = &'a Port>) -> Vec<usize> {
    let mut cores: Vec<usize> = ports.flat_map(|port| &port.config.cores).copied().collect();
    cores.sort_unstable();
    cores.dedup();
    cores
}
