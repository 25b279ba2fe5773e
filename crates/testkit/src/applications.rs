//! Applications over bytes for tests: one that echoes what it receives, and a client that knows what
//! must come back. They are what `docs/how-to-add/application.md` tells of.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use allosaur_engine::app::{
    AppCore, AppFlowInfo, AppFlows, Application, ApplicationContext, ApplicationFactory, CoreInfo,
    FlowEvent, Output,
};
use allosaur_engine::time::Nanos;

/// The byte at a place of what a client says: no period that a segment or a window could hide.
pub fn byte_at(place: u64) -> u8 {
    let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

fn text(from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(byte_at).collect()
}

/// Sends back what it receives, in pieces of its own choice, and closes when its peer has.
#[derive(Debug, Default)]
pub struct Echo {
    waiting: Vec<u8>,
    is_peer_closed: bool,
    has_closed: bool,
}

impl Application for Echo {
    type Shared = ();

    fn start(_: &mut (), _: &mut ApplicationContext<'_>, _: &AppFlowInfo) -> Echo {
        Echo::default()
    }

    fn handle_event(&mut self, _: &mut (), _: &mut ApplicationContext<'_>, event: FlowEvent) {
        self.is_peer_closed |= event == FlowEvent::PeerClosed;
    }

    fn handle_data(&mut self, _: &mut (), _: &mut ApplicationContext<'_>, data: &[u8]) -> usize {
        self.waiting.extend_from_slice(data);
        data.len()
    }

    fn poll_output(
        &mut self,
        _: &mut (),
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if self.waiting.is_empty() {
            let closes = self.is_peer_closed && !self.has_closed;
            self.has_closed |= closes;
            return closes.then_some(Output::Close);
        }
        // Not always all that fits.
        let most = self.waiting.len().min(room);
        let count = 1 + cx.rng.next31() as usize % most;
        out.extend(self.waiting.drain(..count));
        Some(Output::Data)
    }
}

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// How much it says.
    pub bytes: u64,
    /// How many bytes it reads every `pause`; without a pause, all that there are.
    pub gulp: usize,
    /// How long it rests after each gulp.
    pub pause: Nanos,
}

/// Says a text, compares what comes back with it, and closes when all came.
#[derive(Debug)]
pub struct Asker {
    habits: Habits,
    said: u64,
    read: u64,
    /// How much it may read until `due`.
    may_read: usize,
    due: Option<Nanos>,
    is_connected: bool,
    has_closed: bool,
    tally: Arc<Tally>,
}

/// What the clients saw.
#[derive(Debug, Default)]
pub struct Tally {
    /// Bytes that were right.
    pub right: AtomicU64,
    /// Bytes of pieces that were not.
    pub wrong: AtomicU64,
    /// What clients were told of the ends of their flows.
    pub ends: Mutex<Vec<FlowEvent>>,
}

/// What the clients of a core share: how they behave, and what they saw.
type Shared = (Habits, Arc<Tally>);

impl Application for Asker {
    type Shared = Shared;

    fn start(
        (habits, tally): &mut Shared,
        _: &mut ApplicationContext<'_>,
        flow: &AppFlowInfo,
    ) -> Asker {
        assert!(flow.is_client && flow.remote.port() == 80);
        Asker {
            habits: *habits,
            said: 0,
            read: 0,
            may_read: 0,
            due: None,
            is_connected: false,
            has_closed: false,
            tally: Arc::clone(tally),
        }
    }

    fn handle_event(&mut self, _: &mut Shared, cx: &mut ApplicationContext<'_>, event: FlowEvent) {
        match event {
            FlowEvent::Connected => {
                assert!(!self.is_connected, "told once");
                self.is_connected = true;
                if self.habits.pause > 0 {
                    self.due = Some(cx.now + self.habits.pause);
                }
            }
            FlowEvent::PeerClosed | FlowEvent::Ended(_) => {
                self.tally.ends.lock().expect("no panic").push(event);
            }
            FlowEvent::Acknowledged | FlowEvent::Woken => {}
        }
    }

    fn handle_data(
        &mut self,
        _: &mut Shared,
        _: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        assert!(self.is_connected);
        let count = match self.habits.pause {
            0 => data.len(),
            _ => data.len().min(self.may_read),
        };
        self.may_read -= count.min(self.may_read);
        let is_right = data[..count] == text(self.read, count as u64);
        let counter = if is_right {
            &self.tally.right
        } else {
            &self.tally.wrong
        };
        counter.fetch_add(count as u64, Ordering::Relaxed);
        self.read += count as u64;
        count
    }

    fn handle_timeout(&mut self, _: &mut Shared, cx: &mut ApplicationContext<'_>) {
        assert!(self.due.is_some_and(|due| due <= cx.now));
        self.may_read = self.habits.gulp;
        self.due = Some(cx.now + self.habits.pause);
    }

    fn poll_output(
        &mut self,
        _: &mut Shared,
        _: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        let left = self.habits.bytes - self.said;
        if left == 0 {
            let closes = self.read == self.habits.bytes && !self.has_closed;
            self.has_closed |= closes;
            return closes.then_some(Output::Close);
        }
        let count = left.min(room as u64).min(5_000);
        self.said += count;
        out.extend(text(self.said - count, count));
        Some(Output::Data)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.due.filter(|_| self.read < self.habits.bytes)
    }
}

/// Makes a server of each flow that sends back what it receives.
#[derive(Debug)]
pub struct Echoes;

impl ApplicationFactory for Echoes {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Echo>::new(()))
    }
}

/// Makes a client of each flow that says a text and compares what comes back.
#[derive(Debug)]
pub struct Askers {
    /// How each behaves.
    pub habits: Habits,
    /// What all of them saw.
    pub tally: Arc<Tally>,
}

impl ApplicationFactory for Askers {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Asker>::new((
            self.habits,
            Arc::clone(&self.tally),
        )))
    }
}
