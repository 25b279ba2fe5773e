//! Ports as hosts on their networks: ARP, neighbor discovery, ping, and finding the gateway.

pub(super) mod request;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use allosaur_engine::capture::Origin;
use allosaur_engine::host::Host;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::request::{HostAnswer, HostRequest};
use super::message::{Answer, Request};
use super::port::PortState;
use super::rx_tap::{RxTap, bit};

/// Answers that wait to be sent; requests beyond them are not answered.
const REPLIES_MAX: usize = 1024;

/// The hosts of all ports.
#[derive(Debug)]
pub(super) struct Hosts {
    ports: Vec<Option<Host>>,
    /// What they answer, until it is sent.
    replies: VecDeque<(PortIndex, Vec<u8>)>,
    /// Buffers of replies that were sent.
    spare: Vec<Vec<u8>>,
}

impl Hosts {
    /// Of so many ports; none is anybody yet.
    pub(super) fn new(ports: usize) -> Hosts {
        Hosts {
            ports: std::iter::repeat_with(|| None).take(ports).collect(),
            replies: VecDeque::new(),
            spare: Vec::new(),
        }
    }
}

impl RxTap for Hosts {
    fn handle_request(&mut self, request: Request, now: Nanos) -> ControlFlow<Answer, Request> {
        let Request::Host(HostRequest::Set { port, settings }) = request else {
            return ControlFlow::Continue(request);
        };
        match &mut self.ports[usize::from(port)] {
            Some(host) => host.configure(settings, now),
            none => *none = Some(Host::new(settings, now)),
        }
        ControlFlow::Break(HostAnswer::Done.into())
    }

    fn wants(&self, origin: Origin) -> u64 {
        if origin == Origin::Transmitted {
            return 0;
        }
        let ports = self.ports.iter().enumerate();
        let speaking = ports.filter(|(_, host)| host.as_ref().is_some_and(|one| !one.is_silent()));
        speaking.fold(0, |ports, (port, _)| ports | bit(port))
    }

    fn handle_frame(&mut self, at: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        let Some(host) = &mut self.ports[usize::from(port)] else {
            return false;
        };
        if host.is_seeking() {
            host.receive_gateway(at, frame);
        }
        if self.replies.len() >= REPLIES_MAX {
            return false;
        }
        let mut reply = self.spare.pop().unwrap_or_default();
        let is_answered = host.handle_frame(frame, &mut reply);
        if is_answered {
            self.replies.push_back((port, reply));
        } else {
            self.spare.push(reply);
        }
        is_answered
    }

    fn poll_transmit(&mut self, now: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        while let Some((port, reply)) = self.replies.pop_front() {
            send(port, &reply);
            self.spare.push(reply);
        }
        let due = |host: &&mut Host| host.poll_timeout().is_some_and(|at| at <= now);
        for (port, host) in (0..).zip(&mut self.ports) {
            let Some(host) = host.as_mut().filter(due) else {
                continue;
            };
            let mut frame = self.spare.pop().unwrap_or_default();
            while host.poll_transmit(now, &mut frame) {
                send(port, &frame);
            }
            self.spare.push(frame);
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        if !self.replies.is_empty() {
            return Some(0);
        }
        let hosts = self.ports.iter().flatten();
        hosts.filter_map(Host::poll_timeout).min()
    }

    fn is_deferrable(&self) -> bool {
        true
    }

    fn answers(&self) -> bool {
        true
    }

    fn describe_port(&self, port: PortIndex, state: &mut PortState) {
        let host = self.ports[usize::from(port)].as_ref();
        state.gateway_mac = host.and_then(Host::gateway_mac);
    }
}
