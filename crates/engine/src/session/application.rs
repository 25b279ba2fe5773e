//! What runs on a flow: a program in place, or an application over bytes in a pool beside it.
//! `app_calls` calls those.

use std::sync::Arc;

use super::batch::BatchProgress;
use super::receive_buffer::ReceiveBuffer;
use crate::app::{
    AppCore, AppFlow, ApplicationFactory, CoreInfo, FlowId, ProgramEnd, ProgramRun, Wakes,
};
use crate::flow::FlowKey;
use crate::tcp::Seq;

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

/// Where an application over bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApplicationIndex(pub(super) u32);

/// Where an application over bytes runs: its core, and the number that this gave it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppPlace {
    pub(super) core: usize,
    pub(super) flow: AppFlow,
    pub(super) is_client: bool,
    /// See [`AppCore::wants_acknowledged`].
    pub(super) wants_acknowledged: bool,
    /// See [`AppCore::demultiplexer`].
    pub(super) demultiplexes: bool,
}

/// An application over bytes, and what its flow keeps for it.
#[derive(Debug)]
pub(super) struct ByteApplication {
    pub(super) place: AppPlace,
    key: FlowKey,
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
    /// The datagrams that the message to send is, where it is some.
    pub(super) batch: Option<BatchProgress>,
    /// It has nothing to say until it is called again: it was asked, and there was room.
    pub(super) is_idle: bool,
    /// Its flow is gone.
    pub(super) is_free: bool,
}

impl ByteApplication {
    pub(super) fn new(place: AppPlace, key: FlowKey) -> ByteApplication {
        ByteApplication {
            place,
            key,
            received: ReceiveBuffer::default(),
            missing: Vec::new(),
            has_read: false,
            is_peer_closed: false,
            has_ended: false,
            is_stopped: false,
            end: ProgramEnd::None,
            has_received: false,
            was_peer_closed: false,
            batch: None,
            is_idle: false,
            is_free: false,
        }
    }

    /// That of another flow, with the memory of this one.
    pub(super) fn renew(&mut self, place: AppPlace, key: FlowKey) {
        let missing = std::mem::take(&mut self.missing);
        *self = ByteApplication {
            missing,
            ..ByteApplication::new(place, key)
        };
    }
}

/// The applications of one factory on this core.
#[derive(Debug)]
pub(super) struct PooledCore {
    /// Whose they are: where the factory is.
    pub(super) factory: usize,
    pub(super) core: Box<dyn AppCore>,
    /// Runs that have it.
    holders: u32,
    /// The datagram that it was handed begins a connection, for which a flow is being made.
    begins: bool,
}

/// The address only tells factories apart.
pub(super) fn address(factory: &Arc<dyn ApplicationFactory>) -> usize {
    Arc::as_ptr(factory).cast::<()>().addr()
}

/// Places that were released and keep their memory; others begin without.
pub(super) const SPARE_MAX: usize = 1024;

/// The applications over bytes of all flows of a core.
#[derive(Debug, Default)]
pub struct ApplicationPool {
    /// `None` is at work, or has no memory.
    pub(super) places: Vec<Option<Box<ByteApplication>>>,
    pub(super) free: Vec<u32>,
    pub(super) cores: Vec<Option<PooledCore>>,
    /// Flows that others woke.
    pub(super) wakes: Wakes,
}

impl ApplicationPool {
    /// How many flows have one.
    pub fn in_use(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// A run begins that has these factories.
    pub fn hold_cores<'f>(
        &mut self,
        factories: impl Iterator<Item = &'f Arc<dyn ApplicationFactory>>,
        info: &CoreInfo,
    ) {
        for factory in factories {
            if let Some(held) = self.held(factory) {
                held.holders += 1;
                continue;
            }
            let made = Some(PooledCore {
                factory: address(factory),
                core: factory.core(info),
                holders: 1,
                begins: false,
            });
            match self.cores.iter_mut().find(|core| core.is_none()) {
                Some(place) => *place = made,
                None => self.cores.push(made),
            }
        }
    }

    /// A run with these factories is gone, and so are its flows.
    pub fn release_cores<'f>(
        &mut self,
        factories: impl Iterator<Item = &'f Arc<dyn ApplicationFactory>>,
    ) {
        for factory in factories {
            if let Some(held) = self.held(factory) {
                held.holders -= 1;
            }
        }
        for core in &mut self.cores {
            if core.as_ref().is_some_and(|held| held.holders == 0) {
                *core = None;
            }
        }
    }

    fn held(&mut self, factory: &Arc<dyn ApplicationFactory>) -> Option<&mut PooledCore> {
        let address = address(factory);
        let mut held = self.cores.iter_mut().flatten();
        held.find(|held| held.factory == address)
    }

    /// The core of a factory, by its place.
    pub(super) fn core_of(&self, factory: &Arc<dyn ApplicationFactory>) -> Option<usize> {
        let address = address(factory);
        let is_its = |core: &Option<PooledCore>| {
            let held = core.as_ref();
            held.is_some_and(|held| held.factory == address)
        };
        self.cores.iter().position(is_its)
    }

    /// The core of a factory, by its place, where it tells its UDP flows apart itself.
    pub fn demultiplexer_of(&mut self, factory: &Arc<dyn ApplicationFactory>) -> Option<usize> {
        let core = self.core_of(factory)?;
        let held = self.cores[core].as_mut()?;
        held.core.demultiplexer().is_some().then_some(core)
    }

    /// The datagram that a core was handed begins a connection: the next flow that is made is its.
    pub fn begin(&mut self, core: usize) {
        if let Some(held) = &mut self.cores[core] {
            held.begins = true;
        }
    }

    /// Whether a datagram began the flow that was made last, so that the core has it. Once.
    pub(super) fn take_begun(&mut self, core: usize) -> bool {
        let held = self.cores[core].as_mut();
        held.is_some_and(|held| std::mem::take(&mut held.begins))
    }

    /// Where no flow was made for what a datagram began, see
    /// [`Demultiplexer::discard`](crate::app::Demultiplexer::discard).
    pub fn discard_begun(&mut self, core: usize) {
        if !self.take_begun(core) {
            return;
        }
        let held = self.cores[core].as_mut();
        if let Some(demultiplexer) = held.and_then(|held| held.core.demultiplexer()) {
            demultiplexer.discard();
        }
    }

    /// Has a flow called soon.
    pub(super) fn wake(&mut self, flow: FlowId) {
        self.wakes.push(flow);
    }

    /// The key of a flow; `None` where it is gone.
    pub fn key_of(&self, flow: FlowId) -> Option<FlowKey> {
        let it = self.places.get(flow.0 as usize)?.as_ref();
        it.filter(|it| !it.is_free).map(|it| it.key)
    }

    /// A flow that another woke, and its key.
    pub fn pop_woken(&mut self) -> Option<FlowKey> {
        while let Some(flow) = self.wakes.pop() {
            if let Some(key) = self.key_of(flow) {
                return Some(key);
            }
        }
        None
    }

    /// How many flows were woken.
    pub fn woken(&self) -> u32 {
        self.wakes.len()
    }

    /// The place that the next flow gets.
    pub(super) fn next_place(&mut self) -> ApplicationIndex {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.wakes.make_room(self.places.len());
            self.places.len() as u32 - 1
        });
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

    /// Whether the core of one tells its flows apart itself.
    pub(super) fn is_demultiplexed(&self, index: ApplicationIndex) -> bool {
        self.look(index).is_some_and(|it| it.place.demultiplexes)
    }

    /// Whether one has datagrams to send.
    pub(super) fn has_batch(&self, index: ApplicationIndex) -> bool {
        self.look(index).is_some_and(|it| it.batch.is_some())
    }

    /// Bytes that wait for one.
    #[inline]
    pub(super) fn unread_bytes(&self, index: ApplicationIndex) -> u32 {
        let it = self.places[index.0 as usize].as_ref();
        it.map_or(0, |it| it.received.unread() as u32)
    }
}
