//! Captures: packets kept for clients, or handed to an endpoint at once.

pub(super) mod request;

use std::ops::ControlFlow;

use allosaur_engine::capture::{Capture, CaptureSettings, Origin, Overflow};
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::request::{
    CAPTURES_MAX, CAPTURES_MEMORY_MAX, CaptureAnswer, CaptureRequest, CaptureState,
};
use super::endpoint::{Endpoint, PacketSink};
use super::filter::Filter;
use super::message::{Answer, Request};
use super::rx_tap::RxTap;

/// A filter as captures want it.
pub(super) type Wanted = Box<dyn Fn(&[u8]) -> bool + Send>;

/// All captures.
#[derive(Debug, Default)]
pub(super) struct Captures {
    captures: Vec<Watching>,
    /// How many there were.
    started: u32,
}

/// One capture.
struct Watching {
    number: u32,
    started_at: Nanos,
    filter: String,
    capture: Capture<Wanted>,
    endpoint: Option<(Endpoint, Box<dyn PacketSink>)>,
    /// Frames that were lost on the way here, wanted or not, and packets on the way to the
    /// endpoint.
    lost: u64,
    /// The log has that its memory is full.
    is_told: bool,
}

impl RxTap for Captures {
    fn handle_request(&mut self, request: Request, now: Nanos) -> ControlFlow<Answer, Request> {
        let Request::Capture(request) = request else {
            return ControlFlow::Continue(request);
        };
        let answer = match request {
            CaptureRequest::Start {
                settings,
                filter,
                endpoint,
            } => self.start(now, settings, filter, endpoint),
            CaptureRequest::Stop(number) => self.stop(number),
            CaptureRequest::Fetch {
                capture,
                packets_max,
            } => self.fetch(capture, packets_max),
            CaptureRequest::Remove(number) => self.remove(number),
            CaptureRequest::List => {
                CaptureAnswer::Captures(self.captures.iter().map(Watching::state).collect())
            }
        };
        ControlFlow::Break(answer.into())
    }

    fn wants(&self, origin: Origin) -> u64 {
        let active = self.captures.iter().filter(|c| c.capture.is_active());
        active.fold(0, |ports, c| ports | c.ports(origin))
    }

    fn handle_frame(&mut self, at: Nanos, port: PortIndex, origin: Origin, frame: &[u8]) -> bool {
        let mut memory: u64 = self.captures.iter().map(|c| c.capture.memory()).sum();
        for watching in &mut self.captures {
            let others = memory - watching.capture.memory();
            let left = CAPTURES_MEMORY_MAX.saturating_sub(memory);
            watching.offer(at, port, origin, frame, left);
            memory = others + watching.capture.memory();
        }
        false
    }

    fn is_idle(&self) -> bool {
        self.captures.is_empty()
    }

    fn note_lost(&mut self, origin: Origin, frames: u64) {
        let captures = self.captures.iter_mut();
        for watching in captures.filter(|c| c.capture.is_active()) {
            if watching.ports(origin) != 0 {
                watching.lost += frames;
            }
        }
    }
}

impl Captures {
    fn start(
        &mut self,
        now: Nanos,
        settings: CaptureSettings,
        filter: Filter,
        endpoint: Option<(Endpoint, Box<dyn PacketSink>)>,
    ) -> CaptureAnswer {
        if self.captures.len() >= CAPTURES_MAX {
            return CaptureAnswer::Full;
        }
        self.started += 1;
        self.captures.push(Watching {
            number: self.started,
            started_at: now,
            filter: filter.text().to_owned(),
            capture: Capture::new(settings, Box::new(move |frame| filter.matches(frame))),
            endpoint,
            lost: 0,
            is_told: false,
        });
        CaptureAnswer::Started {
            capture: self.started,
        }
    }

    fn find(&mut self, number: u32) -> Option<&mut Watching> {
        self.captures.iter_mut().find(|c| c.number == number)
    }

    fn stop(&mut self, number: u32) -> CaptureAnswer {
        let Some(watching) = self.find(number) else {
            return CaptureAnswer::Unknown;
        };
        watching.capture.stop();
        let endpoint = watching.endpoint.as_ref();
        CaptureAnswer::Stopped {
            pending: watching.pending(),
            endpoint: endpoint.map_or(String::new(), |(endpoint, _)| endpoint.text.clone()),
        }
    }

    fn fetch(&mut self, number: u32, packets_max: usize) -> CaptureAnswer {
        let Some(watching) = self.find(number) else {
            return CaptureAnswer::Unknown;
        };
        let packets = watching.capture.fetch(packets_max);
        CaptureAnswer::Packets {
            packets,
            pending: watching.pending(),
            started_at: watching.started_at,
        }
    }

    fn remove(&mut self, number: u32) -> CaptureAnswer {
        let before = self.captures.len();
        self.captures.retain(|c| c.number != number);
        if self.captures.len() < before {
            CaptureAnswer::Done
        } else {
            CaptureAnswer::Unknown
        }
    }
}

impl Watching {
    /// The ports of which it wants frames of that origin, as bits.
    fn ports(&self, origin: Origin) -> u64 {
        let settings = self.capture.settings();
        match origin {
            Origin::Transmitted => settings.transmit_ports,
            Origin::Received => settings.receive_ports,
        }
    }

    fn offer(&mut self, at: Nanos, port: PortIndex, origin: Origin, frame: &[u8], left: u64) {
        let Some((_, sink)) = &mut self.endpoint else {
            self.capture.offer(at, port, origin, frame, left);
            self.tell_of_memory();
            return;
        };
        if let Some(packet) = self.capture.hand_on(at, port, origin, frame) {
            self.lost += u64::from(!sink.push(packet));
        }
    }

    /// Says once that it would keep more if it had the memory.
    fn tell_of_memory(&mut self) {
        if self.is_told || self.capture.counters().short_of_memory == 0 {
            return;
        }
        self.is_told = true;
        let (capture, mib) = (self.number, self.capture.memory() >> 20);
        tracing::warn!(
            capture,
            "the memory for captures is full: this one keeps {mib} MiB; fetch its packets, remove \
             other captures, or give it a snaplen"
        );
    }

    /// Packets that it was to keep, and had no memory for. One that keeps the last has those at least.
    fn kept_out(&self) -> u64 {
        match self.capture.settings().overflow {
            Overflow::KeepFirst => self.capture.counters().short_of_memory,
            Overflow::KeepLast => 0,
        }
    }

    /// Packets to be fetched, or on the way to the endpoint.
    fn pending(&self) -> u64 {
        match &self.endpoint {
            Some((_, sink)) => sink.pending(),
            None => self.capture.counters().kept,
        }
    }

    fn state(&self) -> CaptureState {
        let counters = self.capture.counters();
        CaptureState {
            number: self.number,
            settings: *self.capture.settings(),
            filter: self.filter.clone(),
            is_active: self.capture.is_active(),
            matched: counters.matched,
            fetched: counters.fetched,
            count: self.pending(),
            bytes: counters.bytes,
            lost: self.lost + self.kept_out(),
            endpoint: self.endpoint.as_ref().map(|(endpoint, _)| endpoint.clone()),
        }
    }
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watching").field(&self.state()).finish()
    }
}
