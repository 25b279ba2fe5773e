//! What always holds of a core's flows, whatever arrives: for tests that throw anything at them.
//!
//! Nothing here is called while traffic runs.

use super::StatefulEngine;
use super::entry::FlowFlags;
use super::run::place;
use crate::session::SideCounters;
use crate::template::Side;

/// What the flows of a core hold. All of it is zero when there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Flows, those that only answer stragglers among them.
    pub flows: usize,
    /// Keys by which they are found.
    pub keys: usize,
    /// Timers that are set.
    pub timers: usize,
    /// Blocks of TCP for what is lost or out of order.
    pub recovery: usize,
    /// Variables of programs.
    pub variables: usize,
    /// Lists of buffers that wait.
    pub outboxes: usize,
    /// Applications over bytes.
    pub applications: usize,
    /// Buffers that flows own.
    pub owned_buffers: usize,
    /// Address spaces.
    pub spaces: usize,
    /// Addresses on links.
    pub links: usize,
}

impl StatefulEngine {
    /// What the flows hold.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            flows: self.flows(),
            keys: self.table.len(),
            timers: self.timers.len() + self.time_wait.len(),
            recovery: self.pools.recovery.in_use(),
            variables: self.pools.variables.used(),
            outboxes: self.pools.outboxes.in_use(),
            applications: self.pools.applications.in_use(),
            owned_buffers: self.pools.outboxes.owned(),
            spaces: self.pools.spaces.in_use(),
            links: self.pools.links.in_use(),
        }
    }

    /// Says which rule does not hold. It looks at all flows: not for use while traffic runs.
    ///
    /// # Errors
    /// The rule, in words.
    pub fn audit(&self) -> Result<(), String> {
        let it = self.holdings();
        rule(it.keys == it.flows, "each flow has a key, and no other")?;
        // What is missing now, and what was lost before.
        rule(it.recovery <= 2 * it.flows, "a flow has two blocks at most")?;
        rule(it.outboxes <= it.flows, "a flow has one list at most")?;
        rule(it.variables <= it.flows, "a flow has variables once")?;
        let fits = it.applications <= it.flows;
        rule(fits, "a flow has one application at most")?;
        rule(it.spaces <= it.flows, "address spaces have flows")?;
        let mut half_open = 0;
        let mut working = vec![RunFlows::default(); self.runs.len()];
        for index in self.flows.indices() {
            let entry = self.flows.at(index).expect("it is in the list");
            let key = entry.session.key();
            let found = self.find(key.packed()) == Some(index);
            rule(found, &format!("{key:?} is found by its key"))?;
            let has_timer = self.timers.due(index).is_some();
            rule(has_timer, &format!("{key:?} has a timer"))?;
            half_open += usize::from(entry.is(FlowFlags::HalfOpen));
            if !entry.is(FlowFlags::Lingering) {
                let of_run = &mut working[usize::from(entry.run.0)];
                let side = place(entry.side());
                of_run.working[side] += 1;
                of_run.judged[side] += u64::from(entry.session.is_judged());
                of_run.in_time_wait += u64::from(entry.session.is_in_time_wait());
            }
        }
        for index in self.time_wait.indices() {
            let rest = self.time_wait.at(index).expect("it is in the list");
            let key = rest.key();
            let found = self.find(key.packed()) == Some(index);
            rule(found, &format!("{key:?} in TIME-WAIT is found by its key"))?;
            if !rest.is_lingering() {
                let of_run = &mut working[usize::from(rest.run().0)];
                of_run.working[place(rest.side())] += 1;
                of_run.judged[place(rest.side())] += 1;
                of_run.in_time_wait += 1;
            }
        }
        let counted = self.half_open.count();
        rule(half_open == counted, "those that may be nobody are counted")?;
        self.audit_runs(&working)
    }

    /// Each profile knows how many flows it has: of clients, of servers, and how many of both are
    /// in TIME-WAIT. Each of its flows that ended did so in one way.
    fn audit_runs(&self, working: &[RunFlows]) -> Result<(), String> {
        for (run, flows) in self.runs.iter().zip(working) {
            let Some(run) = run else {
                rule(*flows == RunFlows::default(), "flows belong to what runs")?;
                continue;
            };
            for side in [Side::Client, Side::Server] {
                let groups = || run.groups.iter().map(|group| &group[place(side)]);
                let active: u64 = groups().map(|group| group.active).sum();
                rule(
                    active == flows.working[place(side)],
                    "active flows are those there are",
                )?;
                let begun = groups().map(|group| begun(&group.flows));
                let judged = groups().map(|group| group.flows.outcomes.judged());
                rule(
                    begun.sum::<u64>() + flows.judged[place(side)] == active + judged.sum::<u64>(),
                    "flows that are over, or will not change, ended in one way",
                )?;
                rule(
                    groups().all(|group| group.established <= group.active),
                    "established flows are active",
                )?;
            }
            let [clients, servers] = flows.working;
            rule(run.flows == clients + servers, "a run counts its flows")?;
            rule(
                run.in_time_wait == flows.in_time_wait,
                "a run counts flows in TIME-WAIT",
            )?;
        }
        Ok(())
    }
}

/// The flows of a run: of clients and servers, all and those that were judged; and those of both that
/// are in TIME-WAIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunFlows {
    working: [u64; 2],
    judged: [u64; 2],
    in_time_wait: u64,
}

/// Flows that one side began or accepted.
fn begun(counters: &SideCounters) -> u64 {
    let (tcp, udp) = (&counters.tcp, &counters.udp);
    tcp.connattempt + tcp.accepts + udp.connects + udp.accepts
}

fn rule(holds: bool, name: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(name.into()) }
}
