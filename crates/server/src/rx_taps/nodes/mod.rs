//! Linux nodes: hosts of the kernel on a port's network. A frame for the MAC address of a node goes to it
//! alone; one for all goes to all that are in its VLAN. The VLAN tags of nodes are put on and taken off here.

mod flood;
pub(super) mod request;
mod table;

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::request::{NodeChange, NodeCounters, NodesAnswer, NodesRequest};
use self::table::PortNodeTable;
use super::message::{Answer, Request};
use super::rx_tap::{RxTap, bits_of};

/// Pieces of what nodes sent that are taken before the next port has its turn.
const BUDGET: usize = 64;

/// The nodes of all ports.
#[derive(Debug)]
pub(super) struct LinuxNodes {
    ports: Vec<Option<PortNodeTable>>,
    /// Which ports, as hosts, answer more than questions about addresses.
    port_answers: Vec<bool>,
}

impl LinuxNodes {
    /// Of so many ports; none has any yet.
    pub(super) fn new(ports: usize) -> LinuxNodes {
        LinuxNodes {
            ports: std::iter::repeat_with(|| None).take(ports).collect(),
            port_answers: vec![false; ports],
        }
    }

    fn table(&mut self, port: PortIndex) -> Option<&mut PortNodeTable> {
        self.ports[usize::from(port)].as_mut()
    }
}

impl RxTap for LinuxNodes {
    fn handle_request(&mut self, request: Request, _now: Nanos) -> ControlFlow<Answer, Request> {
        let Request::Nodes(request) = request else {
            return ControlFlow::Continue(request);
        };
        let mut answer = NodesAnswer::Done;
        match request {
            NodesRequest::Open { port, socket } => {
                let mut table = PortNodeTable::new(socket);
                table.port_answers = self.port_answers[usize::from(port)];
                self.ports[usize::from(port)] = Some(table);
            }
            NodesRequest::Change { port, changes } => {
                if let Some(table) = self.table(port) {
                    changes.into_iter().for_each(|change| match change {
                        NodeChange::Set(node) => table.set(*node),
                        NodeChange::Remove(mac) => table.remove(mac),
                    });
                }
            }
            NodesRequest::SetPortAnswers { port, answers } => {
                self.port_answers[usize::from(port)] = answers;
                if let Some(table) = self.table(port) {
                    table.port_answers = answers;
                }
            }
            NodesRequest::Close(port) => self.ports[usize::from(port)] = None,
            NodesRequest::Counters(port) => {
                let counters = self.table(port).map(|table| table.counters);
                answer = NodesAnswer::Counters(counters.unwrap_or_default());
            }
            NodesRequest::ClearCounters(port) => {
                if let Some(table) = self.table(port) {
                    table.counters = NodeCounters::default();
                }
            }
        }
        ControlFlow::Break(answer.into())
    }

    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => bits_of(&self.ports),
            Origin::Transmitted => 0,
        }
    }

    fn handle_frame(&mut self, _: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        self.table(port)
            .is_some_and(|table| table.handle_frame(frame))
    }

    fn poll_transmit(&mut self, _now: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        for (port, table) in (0..).zip(&mut self.ports) {
            if let Some(table) = table {
                table.flood_next();
                table.poll_transmit(BUDGET, &mut |frame| send(port, frame));
            }
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let mut tables = self.ports.iter().flatten();
        tables.any(PortNodeTable::is_flooding).then_some(0)
    }

    fn is_deferrable(&self) -> bool {
        true
    }

    fn answers(&self) -> bool {
        true
    }

    fn is_filtered(&self) -> bool {
        true
    }

    fn file_of(&self, port: usize) -> Option<BorrowedFd<'_>> {
        self.ports.get(port)?.as_ref().map(PortNodeTable::file)
    }
}
