//! The emulated clients of a data thread: those who ask for them, the frames that the receive thread hands
//! over, and what they send.

use allosaur_emulation::placements::Placement;
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::RxFrame;
use allosaur_port::tap::{TapOut, TapSwitch};

use crate::emulation::{EmulatedClients, EmulationAnswer, EmulationRequest};
use crate::threads::client_frames::{COPY, PlacementSender};
use crate::threads::request_channel::RequestReceiver;
use crate::threads::shard_links::ShardLinks;

/// Frames that are taken before what clients send has its turn.
const BUDGET: usize = 64;

/// The ways of a thread's emulated clients to others.
#[derive(Debug)]
pub struct ClientLinks {
    /// Frames that were received for them.
    pub frames: TapOut,
    /// Of those who ask them something.
    pub requests: Vec<RequestReceiver<EmulationRequest, EmulationAnswer>>,
    /// Where they say which ports have clients.
    pub inhabited: TapSwitch,
    /// Where they say where they are.
    pub placements: PlacementSender,
    /// To the clients of other data threads, and from them.
    pub shards: ShardLinks,
}

impl ClientLinks {
    /// Tells where clients are: what there was no room for before, and what is new. Returns what there is no
    /// room for now.
    #[inline]
    fn tell(
        &mut self,
        unsent: Option<Placement>,
        clients: &mut EmulatedClients,
    ) -> Option<Placement> {
        let mut next = unsent.or_else(|| clients.poll_placement());
        while let Some(placement) = next {
            if let Err(placement) = self.placements.send(placement) {
                return Some(placement);
            }
            next = clients.poll_placement();
        }
        None
    }
}

/// The emulated clients of a data thread.
#[derive(Debug)]
pub struct EmulationState {
    clients: EmulatedClients,
    links: ClientLinks,
    /// Of each who asks, when the next request was first seen. It waits for what was due then.
    asked: Vec<Option<Nanos>>,
    /// Where a client is, which could not be told yet.
    unsent: Option<Placement>,
    /// Frames that were lost on the way here.
    lost: u64,
    /// Of each port, what they sent.
    sent: Vec<TransmitCounters>,
    /// The same, and what else the thread sent.
    all_sent: Vec<TransmitCounters>,
}

impl EmulationState {
    /// Clients on so many ports.
    pub fn new(clients: EmulatedClients, links: ClientLinks, ports: usize) -> EmulationState {
        EmulationState {
            clients,
            asked: vec![None; links.requests.len()],
            links,
            unsent: None,
            lost: 0,
            sent: vec![TransmitCounters::default(); ports],
            all_sent: vec![TransmitCounters::default(); ports],
        }
    }

    /// Answers who asks, takes what was received, and has `send` send frames by ports and count them. Returns
    /// how many frames came and went; an answer counts as one, and so does a message.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        mut send: impl FnMut(PortIndex, &[u8], &mut TransmitCounters),
    ) -> u64 {
        let mut done = self.links.shards.receive(now, &mut self.clients);
        done += self.answer(now) + self.receive();
        let sent = &mut self.sent;
        self.clients.poll_transmit(now, |port, frame| {
            done += 1;
            send(port, frame, &mut sent[usize::from(port)]);
        });
        self.unsent = self.links.tell(self.unsent.take(), &mut self.clients);
        done + self.links.shards.send(&mut self.clients)
    }

    /// All are told which ports have clients, where these are, and what other threads are to know, before an
    /// answer leaves.
    fn answer(&mut self, now: Nanos) -> u64 {
        let mut answered = 0;
        for number in 0..self.links.requests.len() {
            if self.links.requests[number].question().is_none() {
                continue;
            }
            let asked = *self.asked[number].get_or_insert(now);
            if self.clients.has_due_timers(asked) {
                continue;
            }
            self.asked[number] = None;
            let Some((question, request)) = self.links.requests[number].take_question() else {
                continue;
            };
            let answer = self.clients.handle_request(request, now);
            self.links.inhabited.set(self.clients.inhabited());
            self.unsent = self.links.tell(self.unsent.take(), &mut self.clients);
            self.links.shards.send(&mut self.clients);
            self.links.requests[number].give_answer(question, answer);
            answered += 1;
        }
        answered
    }

    fn receive(&mut self) -> u64 {
        let clients = &mut self.clients;
        let frames = &mut self.links.frames;
        let taken = frames.receive_bursts(BUDGET, |burst| {
            for (number, bytes) in burst.iter().filter_map(of_port) {
                clients.prefetch(number & !COPY, [bytes]);
            }
            for frame in burst {
                match of_port(frame) {
                    Some((number, bytes)) if number & COPY != 0 => {
                        clients.handle_copy(frame.at_ns, number & !COPY, bytes);
                    }
                    Some((port, bytes)) => clients.handle_frame(frame.at_ns, port, bytes),
                    None => {}
                }
            }
        });
        let lost = frames.lost_packets();
        if lost != self.lost {
            clients.note_lost(lost - std::mem::replace(&mut self.lost, lost));
        }
        taken as u64
    }

    /// Of each port, what clients sent and `others` too.
    pub(super) fn add_sent(&mut self, others: &[TransmitCounters]) -> &[TransmitCounters] {
        let parts = self.sent.iter().zip(others);
        for (sum, (clients, others)) in self.all_sent.iter_mut().zip(parts) {
            *sum = *others;
            sum.add(clients);
        }
        &self.all_sent
    }

    /// When they have something to do, which may be a little late.
    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        let is_asked = self.asked.iter().any(Option::is_some);
        match is_asked || self.unsent.is_some() || self.links.shards.has_unsent() {
            true => Some(0),
            false => self.clients.poll_timeout(),
        }
    }
}

/// The number of the port of a frame that was handed over, and the frame.
#[inline]
fn of_port<'f>(frame: &RxFrame<'f>) -> Option<(PortIndex, &'f [u8])> {
    let (port, bytes) = frame.bytes.split_first()?;
    Some((*port, bytes))
}
