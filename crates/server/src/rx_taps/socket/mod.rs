//! Sockets that ports are joined to: what a port receives goes there, what comes from there it
//! sends.

use std::ops::ControlFlow;

use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use super::rx_tap::{RxTap, bits_of};
use super::{Answer, PortState, Request, Wire};
use crate::rx_taps::filter::Filter;

/// Frames that are taken from one socket before the next has its turn.
const BUDGET: usize = 64;

/// The sockets of all ports.
#[derive(Debug)]
pub(super) struct PortSockets {
    ports: Vec<Option<PortSocket>>,
}

#[derive(Debug)]
struct PortSocket {
    endpoint: String,
    filter: Filter,
    wire: Box<dyn Wire>,
}

impl PortSockets {
    /// Of so many ports; none is joined yet.
    pub(super) fn new(ports: usize) -> PortSockets {
        PortSockets {
            ports: std::iter::repeat_with(|| None).take(ports).collect(),
        }
    }
}

impl RxTap for PortSockets {
    fn handle_request(&mut self, request: Request, _now: Nanos) -> ControlFlow<Answer, Request> {
        ControlFlow::Break(match request {
            Request::OpenWire {
                port,
                endpoint,
                filter,
                wire,
            } => {
                if self.ports[usize::from(port)].is_some() {
                    // Joined already: the answer tells to what.
                    return ControlFlow::Break(Answer::Port(self.state(port)));
                }
                self.ports[usize::from(port)] = Some(PortSocket {
                    endpoint,
                    filter,
                    wire,
                });
                Answer::Done
            }
            Request::SetWireFilter { port, filter } => match &mut self.ports[usize::from(port)] {
                Some(socket) => {
                    socket.filter = filter;
                    Answer::Done
                }
                None => Answer::Unknown,
            },
            Request::CloseWire(port) => {
                self.ports[usize::from(port)] = None;
                Answer::Done
            }
            others => return ControlFlow::Continue(others),
        })
    }

    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => bits_of(&self.ports),
            Origin::Transmitted => 0,
        }
    }

    fn handle_frame(&mut self, _: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        let socket = self.ports[usize::from(port)].as_mut();
        if let Some(socket) = socket.filter(|socket| socket.filter.matches(frame)) {
            socket.wire.push(frame);
        }
        false
    }

    fn poll_transmit(&mut self, _now: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        for (port, socket) in (0..).zip(&mut self.ports) {
            let Some(socket) = socket else {
                continue;
            };
            for _ in 0..BUDGET {
                let Some(frame) = socket.wire.receive() else {
                    break;
                };
                send(port, &frame);
            }
        }
    }

    fn describe_port(&self, port: PortIndex, state: &mut PortState) {
        let socket = self.ports[usize::from(port)].as_ref();
        state.wire = socket.map(|one| (one.endpoint.clone(), one.filter.text().to_owned()));
    }
}

impl PortSockets {
    fn state(&self, port: PortIndex) -> PortState {
        let mut state = PortState::default();
        self.describe_port(port, &mut state);
        state
    }
}
