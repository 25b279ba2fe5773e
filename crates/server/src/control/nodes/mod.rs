//! Linux nodes of ports: batches of commands that change them or ask about them.
//!
//! A batch is done in parts by the job thread, which owns a port's nodes while it is at a part; between
//! two parts other jobs have their turn, progress is told, and a batch may be cancelled. Then the receive
//! thread takes note of what has changed, and only then a part counts as done.

mod batch;
mod counters;
mod port_host;
mod result;
mod table;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;

use allosaur_api::commands::nodes::{
    BatchResults, BatchTicket, NodeBatch, NodeCommand, NodeInfos, NodesOfPort, TicketParams,
};
use allosaur_api::{Empty, Error, Fields, Method, NodeMethod};
use allosaur_nodes::owner::Owner;
use serde_json::json;

use self::batch::{Batch, Batches};
use self::port_host::PortAddresses;
use self::table::NodeTable;
use self::work::{NodePart, PartDone};
use super::awaited::{Awaited, Awaits};
use super::config::{View, mac_text};
use super::core::Core;
use super::core::layers::Layers;
use super::core::pending::Wait;
use super::domain::{Domain, Others};
use super::reply::{Reply, reply};
use crate::routes::SpeakerPlace;
use crate::rx_taps::{NodesAnswer, NodesRequest};

/// Commands of a part. A node takes some milliseconds.
const PART_COMMANDS: usize = 16;

/// The nodes of all ports, and what is to be done with them.
#[derive(Debug)]
pub(in crate::control) struct Nodes {
    awaited: Awaited<Nodes>,
    batches: Batches,
    ports: Vec<PortWork>,
}

/// The nodes of a port.
#[derive(Debug, Default)]
struct PortWork {
    /// None before the first command, and while a part is being done.
    table: Option<Box<NodeTable>>,
    /// A part is being done.
    is_busy: bool,
    /// The tickets of batches that wait or are being done, in order.
    queue: VecDeque<u64>,
    /// The port's own addresses have changed, which its node must have before the next batch.
    must_set_own: bool,
    /// What requests wait for that changed them.
    own_waits: Vec<Wait>,
    /// The addresses that the port's node has.
    own: Option<Layers>,
}

impl Awaits for Nodes {
    fn awaited(&mut self) -> Option<&mut Awaited<Nodes>> {
        Some(&mut self.awaited)
    }
}

impl Domain for Nodes {
    fn call(
        &mut self,
        control: &mut Core,
        _others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        _view: &View<'_>,
    ) -> Option<Reply> {
        let Method::Nodes(method) = method else {
            return None;
        };
        Some(match method {
            NodeMethod::Batch => self.begin(control, fields),
            NodeMethod::Infos => self.ask_infos(control, fields),
            NodeMethod::Results => self.results(fields),
            NodeMethod::Cancel => self.cancel(fields),
        })
    }

    fn addresses_changed(&mut self, control: &mut Core, port: u8) {
        if !control.config.has_linux_stack {
            return;
        }
        let wait = self.awaited.await_later(control);
        let work = &mut self.ports[usize::from(port)];
        work.must_set_own = true;
        work.own_waits.push(wait);
        self.go_on(control, port);
    }

    fn node_place(&self, port: u8, mac: [u8; 6]) -> Option<Result<SpeakerPlace, String>> {
        let work = self.ports.get(usize::from(port))?;
        Some(match &work.table {
            Some(table) => table.place(mac).map_err(|error| error.to_string()),
            None if work.is_busy => Err(format!(
                "the nodes of port {port} are being changed: ask again when that is done (get_async_results)"
            )),
            None => Err(format!(
                "port {port} has no node {}: add it first (conf_ns_batch)",
                mac_text(mac)
            )),
        })
    }
}

impl Nodes {
    /// Of so many ports; none has nodes yet. With BIRD there is an owner of namespaces already.
    pub(in crate::control) fn new(ports: usize, owner: Option<Arc<Owner>>) -> Nodes {
        Nodes {
            awaited: Awaited::default(),
            batches: Batches::of(owner),
            ports: std::iter::repeat_with(PortWork::default)
                .take(ports)
                .collect(),
        }
    }

    fn begin(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<NodeBatch<'_>>()?;
        control.port(params.port)?;
        let ticket_id = self.batches.add(params.commands()?)?;
        self.ports[usize::from(params.port)]
            .queue
            .push_back(ticket_id);
        self.go_on(control, params.port);
        reply(&BatchTicket { ticket_id })
    }

    /// Asks for all nodes of a port, before what waits there: that may take a minute.
    fn ask_infos(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<NodesOfPort>()?;
        control.port(params.port)?;
        let ticket_id = self.batches.add(vec![Ok(NodeCommand::NodesInfo(None))])?;
        self.ports[usize::from(params.port)]
            .queue
            .push_front(ticket_id);
        self.go_on(control, params.port);
        reply(&BatchTicket { ticket_id })
    }

    fn results(&mut self, fields: &Fields<'_>) -> Reply {
        let TicketParams { ticket } = fields.read()?;
        let batch = self.batches.find(ticket)?;
        if !batch.is_done() {
            return reply(&BatchResults::Progress(batch.progress(ticket)));
        }
        reply(&BatchResults::Done(self.batches.take_results(ticket)))
    }

    fn cancel(&mut self, fields: &Fields<'_>) -> Reply {
        let TicketParams { ticket } = fields.read()?;
        self.batches.find(ticket)?.cancel();
        reply(&())
    }

    /// Begins the next part of what a port's nodes have to do, unless they are at one.
    fn go_on(&mut self, control: &mut Core, port: u8) {
        let work = &mut self.ports[usize::from(port)];
        if work.is_busy {
            return;
        }
        if std::mem::take(&mut work.must_set_own) {
            return self.set_own(control, port);
        }
        let owner = self.batches.owner.clone();
        let Some((ticket, batch)) = next_batch(&mut work.queue, &mut self.batches) else {
            return;
        };
        work.is_busy = true;
        if let Some(command) = batch.take_if(is_of_counters) {
            return self.count(control, port, ticket, &command);
        }
        // A port that never had nodes needs no namespace to say so.
        let is_asked = |command: &NodeCommand| matches!(command, NodeCommand::NodesInfo(None));
        if work.table.is_none() && batch.take_if(is_asked).is_some() {
            let none = NodeInfos { nodes: Vec::new() };
            return self.end_part(control, port, ticket, vec![json!({"result": none})]);
        }
        let part = NodePart {
            owner,
            port,
            table: work.table.take(),
            own: None,
            commands: batch.take_part(PART_COMMANDS, |command| !is_of_counters(command)),
        };
        let commands = part.commands.len();
        self.awaited
            .begin_job_aside(control, part, move |domain, control, done, view| {
                let done = done.unwrap_or_else(|problem| PartDone::broken(commands, &problem));
                domain.note_part(
                    control,
                    port,
                    done,
                    view,
                    move |domain, control, _, results, _| {
                        domain.end_part(control, port, ticket, results);
                    },
                );
                reply(&())
            });
    }

    /// Has the port itself have the addresses that it shall have.
    fn set_own(&mut self, control: &mut Core, port: u8) {
        let found = &control.ports[usize::from(port)];
        let layers = found.layers.clone();
        let own = PortAddresses::of(&layers, found.config.hw_mac);
        let work = &mut self.ports[usize::from(port)];
        let waits = std::mem::take(&mut work.own_waits);
        work.is_busy = true;
        let part = NodePart {
            owner: self.batches.owner.clone(),
            port,
            table: work.table.take(),
            own: Some(own),
            commands: Vec::new(),
        };
        self.awaited
            .begin_job_aside(control, part, move |domain, control, done, view| {
                let done = done.unwrap_or_else(|problem| PartDone::broken(0, &problem));
                let then = move |domain: &mut Nodes,
                                 control: &mut Core,
                                 others: &mut Others<'_>,
                                 _,
                                 set: Result<(), Error>| {
                    if let Err(error) = &set {
                        domain.undo_own(control, others, port, &layers, error);
                    } else {
                        domain.ports[usize::from(port)].own = Some(layers);
                    }
                    for wait in waits {
                        domain.awaited.forget(wait);
                        let reply = set.clone().and_then(|()| reply(&Empty {}));
                        control.settle(wait, Some(reply));
                    }
                    domain.ports[usize::from(port)].is_busy = false;
                    domain.go_on(control, port);
                };
                domain.note_part(control, port, done, view, then);
                reply(&())
            });
    }

    /// The system refuses the addresses of a port: it has those again that it had.
    fn undo_own(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        port: u8,
        refused: &Layers,
        error: &Error,
    ) {
        tracing::error!(port, "its addresses are not set: {error}");
        let before = self.ports[usize::from(port)].own.clone();
        // Somebody may have given it others meanwhile.
        let is_undone = control.ports[usize::from(port)].layers == *refused;
        let Some(before) = before.filter(|before| is_undone && before != refused) else {
            return;
        };
        control.change_layers(port, |layers, _| *layers = before);
        for domain in others.iter_mut() {
            domain.addresses_changed(control, port);
        }
        self.ports[usize::from(port)].must_set_own = true;
    }

    /// The job thread has done a part: the receive thread is told of it, and then `then` ends it.
    fn note_part(
        &mut self,
        control: &mut Core,
        port: u8,
        done: PartDone,
        view: &View<'_>,
        then: impl FnOnce(
            &mut Nodes,
            &mut Core,
            &mut Others<'_>,
            Vec<serde_json::Value>,
            Result<(), Error>,
        ) + 'static,
    ) {
        let PartDone {
            owner,
            table,
            own,
            results,
            changes,
            is_new,
        } = done;
        let (mut own, mut results) = (own, results);
        self.batches.owner = owner.or(self.batches.owner.take());
        let work = &mut self.ports[usize::from(port)];
        work.table = table;
        match &work.table {
            Some(table) if is_new => match view.endpoints.open_nodes(table.outer()) {
                Ok(socket) => control.tell_aside(NodesRequest::Open { port, socket }),
                Err(problem) => {
                    work.table = None;
                    results.fill(json!({"error": problem}));
                    own = Err(Error::execution(problem));
                    control.tell_aside(NodesRequest::Close(port));
                }
            },
            Some(_) => {}
            None => control.tell_aside(NodesRequest::Close(port)),
        }
        let has_nodes = work.table.as_ref().is_some_and(|table| table.has_others());
        control.set_has_nodes(port, has_nodes);
        let noted = move |domain: &mut Nodes,
                          control: &mut Core,
                          others: &mut Others<'_>,
                          _: Option<NodesAnswer>,
                          _: &View<'_>| {
            then(domain, control, others, results, own);
            reply(&())
        };
        let request = NodesRequest::Change { port, changes };
        self.awaited.ask_aside(control, request, noted);
    }

    fn end_part(
        &mut self,
        control: &mut Core,
        port: u8,
        ticket: u64,
        results: Vec<serde_json::Value>,
    ) {
        if let Ok(batch) = self.batches.find(ticket) {
            batch.add_results(results);
        }
        self.ports[usize::from(port)].is_busy = false;
        self.go_on(control, port);
    }

    /// Commands about counters are the receive thread's.
    fn count(&mut self, control: &mut Core, port: u8, ticket: u64, command: &NodeCommand) {
        let zeros = matches!(command, NodeCommand::CounterValues(zeros) if zeros.zeros);
        let is_meta = matches!(command, NodeCommand::CountersMeta);
        let request = match command {
            NodeCommand::ClearCounters => NodesRequest::ClearCounters(port),
            _ => NodesRequest::Counters(port),
        };
        self.awaited
            .ask_aside(control, request, move |domain, control, _, answer, _| {
                let result = match answer {
                    Some(NodesAnswer::Counters(_)) if is_meta => {
                        json!({"result": counters::meta()})
                    }
                    Some(NodesAnswer::Counters(counters)) => {
                        json!({"result": {"": counters::values(&counters, zeros)}})
                    }
                    _ => serde_json::Value::Null,
                };
                domain.end_part(control, port, ticket, vec![result]);
                reply(&())
            });
    }
}

/// The first batch of a queue that is not done; those that are leave it.
fn next_batch<'b>(
    queue: &mut VecDeque<u64>,
    batches: &'b mut Batches,
) -> Option<(u64, &'b mut Batch)> {
    while let Some(ticket) = queue.front().copied() {
        if batches.find(ticket).is_ok_and(|batch| !batch.is_done()) {
            let batch = batches.find(ticket).ok()?;
            return Some((ticket, batch));
        }
        queue.pop_front();
    }
    None
}

fn is_of_counters(command: &NodeCommand) -> bool {
    matches!(
        command,
        NodeCommand::ClearCounters | NodeCommand::CountersMeta | NodeCommand::CounterValues(_)
    )
}
