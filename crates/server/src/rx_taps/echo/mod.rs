//! Echo streams beside flows, by which latency is measured.

pub(super) mod request;

use std::ops::ControlFlow;
use std::sync::Arc;

use allosaur_engine::capture::Origin;
use allosaur_engine::echo::{EchoArrival, Echoes};
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::request::{EchoAnswer, EchoRequest};
use super::message::{Answer, Request};
use super::rx_tap::{RxTap, bit};
use crate::counters::EchoBlock;

/// The echo streams of all ports.
#[derive(Debug, Default)]
pub(super) struct EchoStreams {
    /// The last ones, also when they are over: what they measured is still told.
    echoes: Option<Echoes>,
    /// Where it is published.
    block: Option<Arc<EchoBlock>>,
    /// Something was counted that is not published yet.
    has_news: bool,
    /// The ports that they are on, as bits.
    ports: u64,
    /// Their frames may arrive, or are to be sent.
    is_active: bool,
}

impl EchoStreams {
    fn active(&self) -> Option<&Echoes> {
        self.echoes.as_ref().filter(|_| self.is_active)
    }

    fn change(&mut self, change: impl FnOnce(&mut Echoes)) -> EchoAnswer {
        let Some(echoes) = &mut self.echoes else {
            return EchoAnswer::Unknown;
        };
        change(echoes);
        EchoAnswer::Done
    }

    fn publish(&mut self) {
        if let (Some(echoes), Some(block)) = (&self.echoes, &self.block) {
            for (port, counters, latency) in echoes.counted() {
                block.publish(port, counters, latency);
            }
        }
        self.has_news = false;
    }
}

impl RxTap for EchoStreams {
    fn handle_request(&mut self, request: Request, now: Nanos) -> ControlFlow<Answer, Request> {
        let Request::Echo(request) = request else {
            return ControlFlow::Continue(request);
        };
        let answer = match request {
            EchoRequest::Start { terms, block } => {
                let echoes = Echoes::new(terms, now);
                let ports = (0..u64::BITS as PortIndex).filter(|port| echoes.has(*port));
                self.ports = ports.fold(0, |bits, port| bits | bit(port.into()));
                self.echoes = Some(echoes);
                self.block = Some(block);
                self.is_active = true;
                EchoAnswer::Done
            }
            EchoRequest::SetRate(rate_pps) => self.change(|echoes| echoes.set_rate(now, rate_pps)),
            EchoRequest::Stop => self.change(|echoes| echoes.stop(now)),
            EchoRequest::Read => {
                EchoAnswer::Measured(self.echoes.as_ref().map_or(Vec::new(), Echoes::readout))
            }
        };
        ControlFlow::Break(answer.into())
    }

    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received if self.is_active => self.ports,
            _ => 0,
        }
    }

    fn handle_frame(&mut self, at: Nanos, port: PortIndex, _: Origin, frame: &[u8]) -> bool {
        let Some(echoes) = self.echoes.as_mut().filter(|_| self.is_active) else {
            return false;
        };
        let arrival = echoes.handle_frame(at, port, frame);
        if let (EchoArrival::Measured(latency_ns), Some(block)) = (arrival, &self.block) {
            block.count_latency(port, latency_ns);
        }
        let is_own = arrival != EchoArrival::Other;
        self.has_news |= is_own;
        is_own
    }

    fn poll_transmit(&mut self, now: Nanos, mut send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
        let Some(echoes) = self.echoes.as_mut().filter(|_| self.is_active) else {
            return;
        };
        self.has_news |= echoes.poll_transmit(now, &mut send) > 0;
        self.is_active = echoes.is_alive(now);
        if self.has_news {
            self.publish();
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.active().and_then(Echoes::poll_timeout)
    }

    fn answers(&self) -> bool {
        true
    }

    fn measured_ports(&self) -> u64 {
        self.wants(Origin::Received)
    }

    fn is_idle(&self) -> bool {
        !self.is_active
    }
}
