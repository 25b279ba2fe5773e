//! Sockets that ports are joined to: what a port receives goes there, what comes from there it
//! sends.

pub(super) mod request;

use std::ops::ControlFlow;

use allosaur_engine::capture::Origin;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::request::{SocketAnswer, SocketRequest};
use super::endpoint::Wire;
use super::filter::Filter;
use super::message::{Answer, Request};
use super::port::PortState;
use super::rx_tap::{RxTap, bits_of};

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
        let Request::Socket(request) = request else {
            return ControlFlow::Continue(request);
        };
        let answer = match request {
            SocketRequest::Open {
                port,
                endpoint,
                filter,
                wire,
            } => self.open(port, endpoint, filter, wire),
            SocketRequest::SetFilter { port, filter } => match &mut self.ports[usize::from(port)] {
                Some(socket) => {
                    socket.filter = filter;
                    SocketAnswer::Done
                }
                None => SocketAnswer::Unknown,
            },
            SocketRequest::Close(port) => {
                self.ports[usize::from(port)] = None;
                SocketAnswer::Done
            }
        };
        ControlFlow::Break(answer.into())
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
    fn open(
        &mut self,
        port: PortIndex,
        endpoint: String,
        filter: Filter,
        wire: Box<dyn Wire>,
    ) -> SocketAnswer {
        let socket = &mut self.ports[usize::from(port)];
        if let Some(joined) = socket {
            let endpoint = joined.endpoint.clone();
            return SocketAnswer::Joined { endpoint };
        }
        *socket = Some(PortSocket {
            endpoint,
            filter,
            wire,
        });
        SocketAnswer::Done
    }
}
