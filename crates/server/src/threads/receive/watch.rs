//! The way to the observer: the request channel, the taps of what data threads send, and a tx queue
//! of each port for what watchers want sent.

use allosaur_engine::capture::Origin;
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::TxQueue;
use allosaur_port::kind::PortTx;
use allosaur_port::tap::{TapOut, TapSwitch};

use crate::counters::ReceiveBlock;
use crate::rx_taps::{Request, RxTap, RxTaps};
use crate::threads::request_channel::RequestReceiver;
use crate::threads::tx_losses::{TxLosses, send_frame};
use crate::threads::waker::Waker;

/// Copies taken from one data thread's tap before the next has its turn.
const TAP_BUDGET: usize = 256;

/// The observer, and the receive thread's way to it.
#[derive(Debug)]
pub struct Watch {
    pub(super) observer: RxTaps,
    request_channel: RequestReceiver,
    taps: Vec<TapOut>,
    /// Copies that did not fit into the taps, up to now.
    lost: u64,
    switch: TapSwitch,
    /// Data threads that receive what is sent here on a link in memory.
    wakers: Vec<Waker>,
    ports: Vec<TxPort>,
}

/// A port's transmit queue for what watchers want sent.
#[derive(Debug)]
struct TxPort {
    queue: PortTx,
    losses: TxLosses,
    counters: TransmitCounters,
}

impl Watch {
    /// Watches ports that send through `queues`, one of each, and data threads through `taps`,
    /// which `switch` turns on and off.
    pub fn new(
        queues: Vec<PortTx>,
        taps: Vec<TapOut>,
        switch: TapSwitch,
        request_channel: RequestReceiver,
    ) -> Watch {
        let port = |queue| TxPort {
            queue,
            losses: TxLosses::default(),
            counters: TransmitCounters::default(),
        };
        Watch {
            observer: RxTaps::new(queues.len()),
            request_channel,
            taps,
            lost: 0,
            switch,
            wakers: Vec::new(),
            ports: queues.into_iter().map(port).collect(),
        }
    }

    /// The same, where data threads receive, which `wakers` wake.
    #[must_use]
    pub fn waking(mut self, wakers: Vec<Waker>) -> Watch {
        self.wakers = wakers;
        self
    }

    /// The same, with a tap behind all others.
    #[must_use]
    pub fn tapped_by(mut self, tap: Box<dyn RxTap>) -> Watch {
        self.observer = self.observer.with(tap);
        self
    }

    /// Whether what has arrived must be shown before the next answer.
    pub(super) fn must_look_first(&self) -> bool {
        self.request_channel
            .question()
            .is_some_and(Request::looks_back)
    }

    /// Answers control, tells `set` what is watched before the answer leaves, and shows what the data threads
    /// sent. Returns how many frames, and an answer counts as one.
    pub(super) fn answer(&mut self, now: Nanos, mut set: impl FnMut(&RxTaps)) -> usize {
        let observer = &mut self.observer;
        let has_answered = self.request_channel.answer(|request| {
            let answer = observer.handle(request, now);
            self.switch.set(observer.sending_ports());
            set(observer);
            answer
        });
        self.show_sent() + usize::from(has_answered)
    }

    /// Shows what the data threads sent. Returns how many frames.
    pub(super) fn show_sent(&mut self) -> usize {
        let observer = &mut self.observer;
        let mut show = |at, port, frame: &[u8]| observer.handle_sent(at, port, frame);
        let taps = self.taps.iter_mut();
        let shown: usize = taps.map(|tap| tap.receive(TAP_BUDGET, &mut show)).sum();
        if shown > 0 {
            let lost = self.taps.iter().map(TapOut::lost_packets).sum();
            self.observer
                .note_lost(Origin::Transmitted, lost - self.lost);
            self.lost = lost;
        }
        shown
    }

    /// Whether frames wait for another [`send`](Watch::send).
    pub(super) fn has_unsent(&self) -> bool {
        self.ports.iter().any(|port| port.queue.has_unsent())
    }

    /// Sends what watchers want sent. Returns how many frames. Data threads are woken if `others_read`:
    /// if they receive at a port.
    pub(super) fn send(&mut self, now: Nanos, block: &ReceiveBlock, others_read: bool) -> usize {
        let ports = &mut self.ports;
        let send = |port: PortIndex, frame: &[u8]| ports[usize::from(port)].send(now, frame);
        let sent = self.observer.poll_transmit(now, send);
        if sent == 0 && !self.has_unsent() {
            return 0;
        }
        for (number, port) in self.ports.iter_mut().enumerate() {
            block.publish_sent(number, &port.flush());
        }
        if others_read {
            self.wakers.iter().for_each(Waker::wake);
        }
        sent
    }
}

impl TxPort {
    /// What was written leaves; what waits too long is given up: each frame is sent for itself, and
    /// nobody offers more of them. Returns what has left up to now.
    fn flush(&mut self) -> TransmitCounters {
        self.queue.flush();
        if self.queue.has_unsent() {
            self.queue.end_traffic();
        }
        self.losses.take(&mut self.queue);
        self.losses.left(&self.counters, &mut self.queue)
    }

    fn send(&mut self, now: Nanos, frame: &[u8]) -> bool {
        let frame_bytes_max = self.queue.frame_bytes_max();
        send_frame(
            &mut self.queue,
            now,
            frame,
            frame_bytes_max,
            &mut self.counters,
        )
    }
}
