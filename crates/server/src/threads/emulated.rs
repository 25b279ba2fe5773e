//! How emulated clients come to data threads, and others to them: frames that were received, control, and
//! the thread that takes their requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use allosaur_emulation::Settings;
use allosaur_emulation::namespace::NamespaceKey;
use allosaur_emulation::ready::ReadyClients;
use allosaur_emulation::shards::{NamespaceReader, ShardMap, ShardedCall};
use allosaur_port::tap::tap;

use super::client_frames::{ClientFrames, ClientLink, InhabitedPorts, placements};
use super::data::{ClientLinks, EmulationState};
use super::exports::ExportThread;
use super::refusal::{Refusal, refused};
use crate::control::QuestionId;
use crate::counters::Counters;
use crate::emulation::{EmulatedClients, EmulationAnswer, EmulationRequest, ProcessUsage};
use crate::rx_taps::Answer;
use crate::threads::clock::Clock;
use crate::threads::layout::Layout;
use crate::threads::request_channel::{RequestReceiver, RequestSender, request_channel};
use crate::threads::shard_links::shard_links;
use crate::threads::waker::{Notify, Waker};

/// Asks the emulated clients of a data thread.
pub(super) type ClientSender = RequestSender<EmulationRequest, EmulationAnswer>;

/// What emulated clients are set up among.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) ports: usize,
    pub(super) layout: &'a Layout,
    /// Each wakes a data thread.
    pub(super) wakers: &'a [Waker],
    /// Wakes the receive thread that hands frames over.
    pub(super) receiver: &'a Waker,
    pub(super) inhabited: &'a InhabitedPorts,
    pub(super) counters: &'a Counters,
    pub(super) clock: &'a Clock,
}

/// Emulated clients before the threads start.
pub(super) struct EmulatedParts {
    /// Those of each data thread.
    pub(super) states: Vec<EmulationState>,
    /// The way of received frames to them.
    pub(super) frames: ClientFrames,
    /// The ways of all others.
    pub(super) links: EmulationLinks,
}

/// The ways to emulated clients.
#[derive(Debug)]
pub(super) struct EmulationLinks {
    map: Arc<ShardMap>,
    /// Of control, to each data thread.
    questions: Vec<ClientSender>,
    /// Calls of control that are under way.
    running: BTreeMap<QuestionId, ControlCall>,
    /// Questions of control which clients are ready.
    searching: BTreeMap<QuestionId, Search>,
    reader: NamespaceReader,
    calls: Option<CallLinks>,
    /// What writes files, sends and posts for the clients of each data thread, where it is allowed.
    _exports: Vec<ExportThread>,
}

/// A call of control, for one data thread after the other.
#[derive(Debug)]
struct ControlCall {
    call: ShardedCall,
    number: u64,
    usage: Option<ProcessUsage>,
}

/// Which clients of a namespace are ready, asked of one data thread after the other.
#[derive(Debug)]
struct Search {
    namespace: NamespaceKey,
    is_ipv6: bool,
    /// Those that were not asked yet; the home is the first.
    cores: VecDeque<usize>,
    found: Option<ReadyClients>,
}

/// The ways of the thread that takes requests.
#[derive(Debug)]
pub(super) struct CallLinks {
    /// To each data thread.
    pub(super) requests: Vec<ClientSender>,
    /// Which of them has a namespace.
    pub(super) map: Arc<ShardMap>,
    /// What is told of answers.
    pub(super) notify: Notify,
}

impl EmulatedParts {
    /// No clients yet, which begin with `settings`.
    ///
    /// # Errors
    ///
    /// What the system refused.
    pub(super) fn new(
        settings: &Settings,
        surroundings: Surroundings<'_>,
        control_notify: &Notify,
    ) -> Result<EmulatedParts, Refusal> {
        let Surroundings {
            ports,
            layout,
            inhabited,
            ..
        } = surroundings;
        let threads = layout.data.len();
        let cores = (0..ports).map(|port| layout.cores_of(port)).collect();
        let map = Arc::new(ShardMap::new(cores, threads));
        let notify = Notify::new().map_err(refused("an eventfd"))?;
        let mut calls = CallLinks {
            requests: Vec::with_capacity(threads),
            map: Arc::clone(&map),
            notify,
        };
        let (mut questions, mut exports) = (Vec::new(), Vec::new());
        let (mut states, mut frames) = (Vec::new(), Vec::new());
        let shard_links = shard_links(surroundings.wakers);
        for ((core, waker), shards) in surroundings.wakers.iter().enumerate().zip(shard_links) {
            let (question, from_control) = channel(waker, control_notify);
            let (call, from_calls) = channel(waker, &calls.notify);
            questions.push(question);
            calls.requests.push(call);
            let (clients, export) = clients(settings, core, &map, surroundings)?;
            exports.extend(export);
            let (frames_in, frames_out) = tap();
            let (placements_in, placements_out) = placements(surroundings.receiver.clone());
            let links = ClientLinks {
                frames: frames_out,
                requests: vec![from_control, from_calls],
                inhabited: inhabited.of(core),
                placements: placements_in,
                shards,
            };
            states.push(EmulationState::new(clients, links, ports));
            let waker = waker.clone();
            frames.push(ClientLink {
                frames: frames_in,
                placements: placements_out,
                wake: Box::new(move || waker.wake()),
            });
        }
        Ok(EmulatedParts {
            states,
            frames: ClientFrames::new(Arc::clone(&map), frames, inhabited.clone()),
            links: EmulationLinks {
                map,
                questions,
                running: BTreeMap::new(),
                searching: BTreeMap::new(),
                reader: NamespaceReader::default(),
                calls: Some(calls),
                _exports: exports,
            },
        })
    }
}

/// The clients of a data thread, and what writes, sends and posts for them.
fn clients(
    settings: &Settings,
    core: usize,
    map: &Arc<ShardMap>,
    surroundings: Surroundings<'_>,
) -> Result<(EmulatedClients, Option<ExportThread>), Refusal> {
    let settings = Settings {
        shard: core as u32,
        shards: Some(Arc::clone(map)),
        ..settings.clone()
    };
    let (export, channel) = match settings.exports {
        true => ExportThread::start().map(Option::Some)?.unzip(),
        false => (None, None),
    };
    let now = surroundings.clock.now_ns();
    let clients = EmulatedClients::new(settings, surroundings.ports, now);
    let block = Arc::clone(&surroundings.counters.emulation[core]);
    Ok((clients.publishing(block).exporting(channel), export))
}

fn channel(
    waker: &Waker,
    asker: &Notify,
) -> (
    ClientSender,
    RequestReceiver<EmulationRequest, EmulationAnswer>,
) {
    request_channel(waker.clone(), asker.clone())
}

impl EmulationLinks {
    /// Asks the data threads that have the clients it is about.
    pub(super) fn ask(&mut self, question: QuestionId, request: EmulationRequest) {
        match request {
            EmulationRequest::ReadyClients { namespace, is_ipv6 } => {
                let home = std::iter::once(self.map.home(&namespace));
                let search = Search {
                    namespace,
                    is_ipv6,
                    cores: home.chain(self.map.away(&namespace)).collect(),
                    found: None,
                };
                self.searching.insert(question, search);
                self.search_on(question);
            }
            EmulationRequest::Call {
                call,
                number,
                usage,
            } => {
                let call = ShardedCall::new(&self.map, &self.reader, call);
                let running = ControlCall {
                    call,
                    number,
                    usage,
                };
                self.running.insert(question, running);
                self.give_part(question);
            }
        }
    }

    /// Gives the next part of a call of control to its data thread. Control has split it already.
    fn give_part(&mut self, question: QuestionId) {
        let Some(running) = self.running.get_mut(&question) else {
            return;
        };
        if let Some((core, call)) = running.call.poll_part(usize::MAX) {
            let request = EmulationRequest::Call {
                call,
                number: running.number,
                usage: running.usage,
            };
            self.questions[core].send(question, request);
        }
    }

    /// Asks the next data thread of a search.
    fn search_on(&mut self, question: QuestionId) {
        let search = self.searching.get_mut(&question);
        let Some(search) = search else { return };
        if let Some(core) = search.cores.pop_front() {
            let request = EmulationRequest::ReadyClients {
                namespace: search.namespace,
                is_ipv6: search.is_ipv6,
            };
            self.questions[core].send(question, request);
        }
    }

    /// What one data thread found; all of it, when that was the last.
    fn note_found(
        &mut self,
        question: QuestionId,
        found: Option<ReadyClients>,
    ) -> Option<EmulationAnswer> {
        let search = self.searching.get_mut(&question)?;
        match (&mut search.found, found) {
            (Some(all), Some(found)) => all.add(found),
            (None, found) => search.found = found,
            (Some(_), None) => {}
        }
        // Without a home there is no such namespace.
        if search.found.is_some() && !search.cores.is_empty() {
            self.search_on(question);
            return None;
        }
        let found = self.searching.remove(&question)?.found;
        Some(EmulationAnswer::ReadyClients(found))
    }

    /// The next answer, when all data threads that have a part in it have answered.
    pub(super) fn poll_answer(&mut self) -> Option<(QuestionId, Answer)> {
        loop {
            let mut answers = self.questions.iter_mut();
            let (question, answer) = answers.find_map(RequestSender::receive)?;
            let reply = match answer {
                EmulationAnswer::Called(reply) => reply,
                EmulationAnswer::ReadyClients(found) => match self.note_found(question, found) {
                    Some(answer) => return Some((question, answer.into())),
                    None => continue,
                },
            };
            let running = self.running.get_mut(&question)?;
            match running.call.handle_reply(reply, &mut self.reader) {
                Some(reply) => {
                    self.running.remove(&question);
                    return Some((question, EmulationAnswer::Called(reply).into()));
                }
                None => self.give_part(question),
            }
        }
    }

    /// The ways of the thread that takes requests, once.
    pub(super) fn take_calls(&mut self) -> Option<CallLinks> {
        self.calls.take()
    }
}
