//! The way from other threads that receive to the first receive thread: copies of frames that are
//! to be measured or shown, and back how ports shall receive and which are watched.

use std::collections::VecDeque;

use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::tap::{TapIn, TapOut, TapSwitch, tap};
use rtrb::{Consumer, Producer, RingBuffer};

use super::arrivals::MEASURE;
use super::client_frames::InhabitedPorts;
use crate::rx_taps::{Reception, RxTaps};
use crate::threads::waker::Waker;

/// Copies taken from one thread before the next has its turn.
const COPIES_BUDGET: usize = 256;
/// Changes of how ports receive that may be under way to one thread.
const CHANGES: usize = 256;
/// Which ports are watched, as the first receive thread tells the others.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Those of which anybody watches what they receive.
    any: TapSwitch,
    /// Those that have emulated clients.
    inhabited: InhabitedPorts,
    /// Those of which somebody wants all that they receive, not only what concerns a host.
    whole: TapSwitch,
    /// Those of which somebody measures by the time of arrival.
    timed: TapSwitch,
}

impl Watched {
    /// No port is watched yet; `inhabited` says where emulated clients come.
    pub(super) fn new(inhabited: InhabitedPorts) -> Watched {
        Watched {
            inhabited,
            ..Watched::default()
        }
    }

    /// The ports that somebody watches, as bits.
    #[inline]
    pub(super) fn any(&self) -> u64 {
        self.any.ports() | self.inhabited.ports()
    }

    /// Those of which somebody wants all, as bits.
    #[inline]
    pub(super) fn whole(&self) -> u64 {
        self.whole.ports()
    }

    /// Those of which somebody measures by the time of arrival, as bits: a sleep would be measured
    /// too.
    #[inline]
    pub(super) fn timed(&self) -> u64 {
        self.timed.ports()
    }
}

/// What a copy from another thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Its latency is measured; the time of the copy is when it arrived.
    Measure,
    /// It is shown to who watches the port.
    Show,
}

/// The end of the first receive thread.
#[derive(Debug)]
pub struct ForwardRx {
    copies: TapOut,
    changes: Producer<(PortIndex, Reception)>,
    /// Changes that found no room yet.
    waiting: VecDeque<(PortIndex, Reception)>,
    waker: Waker,
}

/// The end of the other thread.
#[derive(Debug)]
pub struct ForwardTx {
    pub(super) copies: TapIn,
    pub(super) changes: Consumer<(PortIndex, Reception)>,
    /// The ports that are watched.
    pub(super) watched: Watched,
    /// Wakes the first receive thread.
    first: Waker,
}

impl ForwardTx {
    /// What was forwarded becomes visible to the first thread, which wakes.
    pub(super) fn flush(&mut self) {
        self.copies.flush();
        self.first.wake();
    }
}

/// The two ends of the way from another thread, which `other` wakes; `first` wakes the first
/// receive thread, and `watched` says which ports are watched.
pub fn forward_channel(other: Waker, first: Waker, watched: Watched) -> (ForwardRx, ForwardTx) {
    let (copies_in, copies) = tap();
    let (changes, changes_out) = RingBuffer::new(CHANGES);
    let forward_rx = ForwardRx {
        copies,
        changes,
        waiting: VecDeque::new(),
        waker: other,
    };
    let forward_tx = ForwardTx {
        copies: copies_in,
        changes: changes_out,
        watched,
        first,
    };
    (forward_rx, forward_tx)
}

/// All that other threads forward.
#[derive(Debug)]
pub(super) struct ForwardedFrames {
    forward_rx: Vec<ForwardRx>,
    watched: Watched,
    /// How each port receives, as the others were told.
    told: Vec<Reception>,
    /// Copies to be shown that found no room, up to now.
    lost: u64,
}

impl ForwardedFrames {
    pub(super) fn new(
        forward_rx: Vec<ForwardRx>,
        watched: Watched,
        ports: usize,
    ) -> ForwardedFrames {
        ForwardedFrames {
            forward_rx,
            watched,
            told: vec![Reception::default(); ports],
            lost: 0,
        }
    }

    /// Says which ports are watched.
    pub(super) fn watch(&self, observer: &RxTaps) {
        self.watched.any.set(observer.watched_ports());
        self.watched.whole.set(observer.capturing_ports());
        self.watched.timed.set(observer.measured_ports());
    }

    /// Tells the other threads how a port shall receive from now on.
    pub(super) fn set(&mut self, port: usize, reception: Reception) {
        if std::mem::replace(&mut self.told[port], reception) == reception {
            return;
        }
        for forward_rx in &mut self.forward_rx {
            forward_rx.waiting.push_back((port as PortIndex, reception));
        }
    }

    /// Passes on what waits for room.
    pub(super) fn tell(&mut self) {
        self.forward_rx.iter_mut().for_each(ForwardRx::tell);
    }

    /// Hands copies to `each`, as (what for, time, port, bytes). Returns how many.
    pub(super) fn receive(
        &mut self,
        mut each: impl FnMut(Purpose, Nanos, PortIndex, &[u8]),
    ) -> usize {
        let mut copies = 0;
        for forward_rx in &mut self.forward_rx {
            let tap = &mut forward_rx.copies;
            copies += tap.receive(COPIES_BUDGET, |at, number, frame| {
                let purpose = match number & MEASURE {
                    0 => Purpose::Show,
                    _ => Purpose::Measure,
                };
                each(purpose, at, number & !MEASURE, frame);
            });
        }
        copies
    }

    /// Copies to be shown that were lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        let forward_rx = self.forward_rx.iter();
        let lost = forward_rx.map(|rx| rx.copies.lost_packets()).sum();
        lost - std::mem::replace(&mut self.lost, lost)
    }
}

impl ForwardRx {
    fn tell(&mut self) {
        let mut is_told = false;
        while let Some(change) = self.waiting.front() {
            if self.changes.push(*change).is_err() {
                break;
            }
            self.waiting.pop_front();
            is_told = true;
        }
        if is_told {
            self.waker.wake();
        }
    }
}
