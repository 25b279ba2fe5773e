//! Flows that programs make (`exec_template`): who asks, and who waits for whom.
//!
//! Such a flow runs between the same two addresses as the one that asks, from a port of the same
//! client, by a template of the group that its program chose; where a group has several, each in
//! its turn. The one that asks goes on when it is over. Flows are made in the next turn, so that
//! programs that make each other go no deeper than a turn. Only clients make flows: where a
//! server's program asks for one, it goes on at once.

use std::collections::{HashMap, VecDeque};

use allosaur_packet::MacAddress;

use super::client_pool::Drawn;
use super::clients::Tuple;
use super::entry::FlowFlags;
use super::open::FlowOpener;
use super::{RunIndex, StatefulEngine};
use crate::flow::{FlowIndex, FlowKey};
use crate::template::{PoolHost, Side, TemplateIndex};
use crate::time::Nanos;
use crate::transmit::TxQueues;

/// Flows that are made, or flows that go on, in a turn at most.
const PER_TURN: u32 = 256;

/// Who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Executions {
    /// Who asks for a flow.
    asked: VecDeque<FlowIndex>,
    /// Who goes on, and the group that the other's program chose.
    done: VecDeque<(FlowIndex, u16)>,
    /// Of each flow that was made, who waits for it.
    parents: HashMap<FlowIndex, FlowIndex>,
    /// Of who waits, for whom.
    children: HashMap<FlowIndex, FlowIndex>,
}

impl Executions {
    /// Whether the next turn has something to do.
    pub(super) fn has_work(&self) -> bool {
        !self.asked.is_empty() || !self.done.is_empty()
    }

    /// A flow's program asks for another flow.
    pub(super) fn ask(&mut self, parent: FlowIndex) {
        self.asked.push_back(parent);
    }

    fn note_made(&mut self, parent: FlowIndex, child: FlowIndex) {
        self.parents.insert(child, parent);
        self.children.insert(parent, child);
    }

    /// A flow is over whose program asked, or was asked for.
    pub(super) fn leave(&mut self, flow: FlowIndex, next_group: u16) {
        if let Some(parent) = self.parents.remove(&flow) {
            self.children.remove(&parent);
            self.done.push_back((parent, next_group));
        }
        if let Some(child) = self.children.remove(&flow) {
            self.parents.remove(&child);
        }
        // Its place will be another's.
        self.asked.retain(|asked| *asked != flow);
        self.done.retain(|(done, _)| *done != flow);
    }
}

impl StatefulEngine {
    /// Lets programs go on whose flows are over, and makes those that were asked for.
    pub(super) fn execute(&mut self, now: Nanos, tx_queues: &mut impl TxQueues) {
        for _ in 0..PER_TURN {
            if let Some((parent, next_group)) = self.executions.done.pop_front() {
                if let Some(entry) = self.flows.at_mut(parent) {
                    entry.clear_flag(FlowFlags::Executing);
                }
                self.with_flow(now, parent, tx_queues, |session, cx, tx| {
                    session.handle_executed(cx, tx, next_group)
                });
            } else if let Some(parent) = self.executions.asked.pop_front() {
                self.make_asked(now, parent, tx_queues);
            } else {
                break;
            }
        }
    }

    /// Makes the flow that another asks for; where that cannot be, the other goes on.
    fn make_asked(&mut self, now: Nanos, parent: FlowIndex, tx_queues: &mut impl TxQueues) {
        match self.make_child(now, parent) {
            Some(child) => {
                self.executions.note_made(parent, child);
                self.send_first(now, child, tx_queues);
            }
            None => self.executions.done.push_back((parent, 0)),
        }
    }

    fn make_child(&mut self, now: Nanos, parent: FlowIndex) -> Option<FlowIndex> {
        let entry = self.flows.at(parent)?;
        let group = entry.session.executes()?;
        if entry.side() == Side::Server {
            return None;
        }
        let (run, clients, key) = (entry.run, entry.clients(), *entry.session.key());
        let template = self.template_of(run, group)?;
        let tuple = Tuple {
            client: self.client_of(run, clients, &key)?,
            server: key.remote,
            client_port: 0,
        };
        let who = FlowOpener {
            run,
            clients,
            template,
            is_executed: true,
        };
        let tuple = self.run_mut(run)?.draw_port(clients, template, tuple);
        self.make_client(now, who, tuple)
    }

    /// The client of a flow.
    fn client_of(&self, run: RunIndex, clients: u32, key: &FlowKey) -> Option<Drawn> {
        let run = self.runs[usize::from(run.0)].as_ref()?;
        let hosts = run.clients_at(clients).hosts();
        let prefix = key.space.and_then(|number| {
            let spaces = &self.pools.spaces;
            let (local, _) = spaces.addresses(number, key.local, key.remote)?;
            Some(PoolHost::new(local.into(), MacAddress::ZERO, MacAddress::ZERO).prefix)
        });
        Some(Drawn {
            address: key.local,
            host: hosts.and_then(|hosts| hosts.find(key.local, prefix.unwrap_or_default())),
        })
    }

    /// The template of a group whose turn it is.
    fn template_of(&mut self, run: RunIndex, group: u16) -> Option<TemplateIndex> {
        let run = self.run_mut(run).filter(|run| !run.is_closed)?;
        let templates = run.profile.templates_of(group);
        let turn = run.executed % templates.len().max(1) as u64;
        let template = templates.get(turn as usize).copied();
        run.executed += 1;
        template
    }
}
