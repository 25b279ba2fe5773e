//! What runs on a flow: a program in place, or an application over bytes in a pool beside it.

use super::receive_buffer::ReceiveBuffer;
use crate::app::{Application, ApplicationContext, FlowEvent, Program, ProgramEnd, ProgramRun};
use crate::tcp::{End, Seq};

/// What runs on a flow.
#[derive(Debug)]
pub(super) enum FlowApplication {
    /// A program.
    Program(ProgramRun),
    /// An application over bytes.
    Bytes(ApplicationIndex),
}

/// A flow that runs a program pays nothing for those that do not.
const _: () = assert!(size_of::<FlowApplication>() == size_of::<ProgramRun>());

impl FlowApplication {
    /// One more run of a program, or of the application in its place.
    pub(super) fn start(program: &Program, pool: &mut ApplicationPool) -> FlowApplication {
        match program.application() {
            None => FlowApplication::Program(ProgramRun::start(program)),
            Some(factory) => FlowApplication::Bytes(pool.insert(factory.start())),
        }
    }
}

/// Where an application over bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApplicationIndex(u32);

/// An application over bytes, and what its flow keeps for it.
#[derive(Debug)]
pub(super) struct ByteApplication {
    pub(super) application: Box<dyn Application>,
    pub(super) received: ReceiveBuffer,
    /// Which bytes of a segment had not arrived before it; here so that it keeps its memory.
    pub(super) missing: Vec<(Seq, Seq)>,
    /// It read bytes that had waited: the window may open.
    pub(super) has_read: bool,
    /// The peer is done; the application is told when it consumed the rest.
    pub(super) is_peer_closed: bool,
    /// It was told the end.
    pub(super) has_ended: bool,
    /// It is asked for nothing any more.
    pub(super) is_stopped: bool,
    /// How it said that it is through.
    pub(super) end: ProgramEnd,
    /// Something arrived.
    pub(super) has_received: bool,
    /// The peer was done before it ended.
    pub(super) was_peer_closed: bool,
}

impl ByteApplication {
    /// Tells it what happened.
    pub(super) fn tell(&mut self, cx: &mut ApplicationContext<'_>, event: FlowEvent) {
        self.application.handle_event(cx, event);
    }

    /// Tells it the end, once: a connection has ended before TIME-WAIT, and is over after it.
    pub(super) fn tell_end(&mut self, cx: &mut ApplicationContext<'_>, end: End) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.tell(cx, FlowEvent::Ended(end));
        }
    }

    /// Offers it bytes that need not wait; what it does not consume does.
    pub(super) fn offer_directly(&mut self, cx: &mut ApplicationContext<'_>, data: &[u8]) {
        let consumed = self.application.handle_data(cx, data);
        let rest = data.get(consumed..).unwrap_or_default();
        self.received.write(0, rest);
        self.received.advance(rest.len());
    }

    /// Offers it what waits, and then the end of it. Returns whether it consumed anything, or was
    /// told the end.
    pub(super) fn offer(&mut self, cx: &mut ApplicationContext<'_>) -> bool {
        let mut has_moved = false;
        while self.received.unread() > 0 {
            let front = self.received.front();
            let consumed = self.application.handle_data(cx, front);
            let (consumed, is_all) = (consumed.min(front.len()), consumed >= front.len());
            self.received.consume(consumed);
            self.has_read |= consumed > 0;
            has_moved |= consumed > 0;
            if !is_all {
                return has_moved;
            }
        }
        if std::mem::take(&mut self.is_peer_closed) {
            self.tell(cx, FlowEvent::PeerClosed);
            has_moved = true;
        }
        has_moved
    }
}

/// The applications over bytes of all flows of a core.
#[derive(Debug, Default)]
pub struct ApplicationPool {
    /// `None` is free, or at work.
    places: Vec<Option<Box<ByteApplication>>>,
    free: Vec<u32>,
}

impl ApplicationPool {
    /// How many flows have one.
    pub fn in_use(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn insert(&mut self, application: Box<dyn Application>) -> ApplicationIndex {
        let made = Box::new(ByteApplication {
            application,
            received: ReceiveBuffer::default(),
            missing: Vec::new(),
            has_read: false,
            is_peer_closed: false,
            has_ended: false,
            is_stopped: false,
            end: ProgramEnd::None,
            has_received: false,
            was_peer_closed: false,
        });
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = Some(made);
        ApplicationIndex(place)
    }

    /// Takes one out to work with it. Give it back by [`put_back`](ApplicationPool::put_back).
    pub(super) fn take(&mut self, index: ApplicationIndex) -> Box<ByteApplication> {
        let taken = self.places[index.0 as usize].take();
        taken.expect("a flow is called once at a time")
    }

    /// It has done its work.
    pub(super) fn put_back(&mut self, index: ApplicationIndex, it: Box<ByteApplication>) {
        self.places[index.0 as usize] = Some(it);
    }

    /// A look at one that is not at work; `None` where it is.
    pub(super) fn look(&self, index: ApplicationIndex) -> Option<&ByteApplication> {
        self.places[index.0 as usize].as_deref()
    }

    /// Whether one was told the end of its connection, and all before it.
    pub(super) fn has_heard_all(&self, index: ApplicationIndex) -> bool {
        let it = self.places[index.0 as usize].as_ref();
        it.is_some_and(|it| it.has_ended && !it.is_peer_closed && it.received.unread() == 0)
    }

    /// Bytes that wait for one.
    pub(super) fn unread_bytes(&self, index: ApplicationIndex) -> u32 {
        let it = self.places[index.0 as usize].as_ref();
        it.map_or(0, |it| it.received.unread() as u32)
    }

    /// Its flow is over.
    pub(super) fn release(&mut self, index: ApplicationIndex) {
        self.places[index.0 as usize] = None;
        self.free.push(index.0);
    }
}
