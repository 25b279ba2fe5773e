//! Batches, by their tickets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::commands::nodes::{BatchProgress, NodeCommand};
use allosaur_nodes::owner::Owner;
use serde_json::Value;

use super::result::error_of;

/// Batches that may wait or be done at a time, as TRex has them.
const WAITING_MAX: usize = 50;
/// Batches whose results are kept until somebody asks for them.
const RESULTS_MAX: usize = 128;

/// A command, or what is wrong with it.
type ReadCommand = Result<NodeCommand, Error>;

/// All batches.
#[derive(Debug, Default)]
pub(super) struct Batches {
    batches: BTreeMap<u64, Batch>,
    last: u64,
    /// The right to this server's namespaces, once there was a node.
    pub(super) owner: Option<Arc<Owner>>,
}

/// A batch.
#[derive(Debug)]
pub(super) struct Batch {
    commands: VecDeque<ReadCommand>,
    total: usize,
    results: Vec<Value>,
    errors: usize,
    /// Commands that are being done.
    under_way: usize,
    /// The results of those that were cancelled, which come last.
    skipped: Vec<Value>,
}

impl Batches {
    /// None yet, with the right to namespaces if the server has it already.
    pub(super) fn of(owner: Option<Arc<Owner>>) -> Batches {
        Batches {
            owner,
            ..Batches::default()
        }
    }

    /// Adds one; its ticket.
    pub(super) fn add(&mut self, commands: Vec<ReadCommand>) -> Result<u64, Error> {
        let waiting = self.batches.values().filter(|batch| !batch.is_done());
        if waiting.count() >= WAITING_MAX {
            return Err(Error::execution(format!(
                "{WAITING_MAX} batches of nodes wait already: ask for their results first \
                 (get_async_results), or cancel some (cancel_async_task)"
            )));
        }
        let done = self.batches.iter().filter(|(_, batch)| batch.is_done());
        let oldest = done.clone().next().map(|(ticket, _)| *ticket);
        if let Some(oldest) = oldest.filter(|_| done.count() >= RESULTS_MAX) {
            self.batches.remove(&oldest);
        }
        self.last += 1;
        let batch = Batch {
            total: commands.len(),
            commands: commands.into(),
            results: Vec::new(),
            errors: 0,
            under_way: 0,
            skipped: Vec::new(),
        };
        self.batches.insert(self.last, batch);
        Ok(self.last)
    }

    /// The batch of a ticket.
    pub(super) fn find(&mut self, ticket: u64) -> Result<&mut Batch, Error> {
        self.batches.get_mut(&ticket).ok_or_else(|| {
            Error::execution(format!(
                "'ticket_id' is {ticket}, and no batch of that ticket waits: its results were told \
                 already, or it was never given"
            ))
        })
    }

    /// The results of a batch, which is forgotten.
    pub(super) fn take_results(&mut self, ticket: u64) -> Vec<Value> {
        let batch = self.batches.remove(&ticket);
        batch.map_or_else(Vec::new, |batch| batch.results)
    }
}

impl Batch {
    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        self.commands.is_empty() && self.under_way == 0
    }

    /// How far it is.
    pub(super) fn progress(&self, ticket_id: u64) -> BatchProgress {
        BatchProgress {
            ticket_id,
            total_cmds: self.total,
            exec_cmds: self.results.len(),
            errs_cmds: self.errors,
        }
    }

    /// Nothing of it is begun any more: what was not is an error.
    pub(super) fn cancel(&mut self) {
        let error = Error::execution("the batch was cancelled before this command");
        let skipped = std::iter::repeat_n(error_of(&error), self.commands.len());
        self.skipped = skipped.collect();
        self.commands.clear();
        if self.under_way == 0 {
            self.add_results(Vec::new());
        }
    }

    /// Takes the next command if it is such a one.
    pub(super) fn take_if(
        &mut self,
        is_wanted: impl Fn(&NodeCommand) -> bool,
    ) -> Option<NodeCommand> {
        let next = self.commands.front()?.as_ref().ok()?;
        if !is_wanted(next) {
            return None;
        }
        self.under_way = 1;
        self.commands.pop_front()?.ok()
    }

    /// Takes the next commands as long as they are such ones, so many at most.
    pub(super) fn take_part(
        &mut self,
        most: usize,
        is_wanted: impl Fn(&NodeCommand) -> bool,
    ) -> Vec<ReadCommand> {
        let wanted = self.commands.iter().take(most);
        let wanted = wanted.take_while(|command| command.as_ref().map_or(true, &is_wanted));
        let count = wanted.count();
        self.under_way = count;
        self.commands.drain(..count).collect()
    }

    /// Takes the results of the commands that were under way.
    pub(super) fn add_results(&mut self, mut results: Vec<Value>) {
        results.append(&mut self.skipped);
        let failed = results
            .iter()
            .filter(|result| result.get("error").is_some());
        self.errors += failed.count();
        self.under_way = 0;
        self.results.extend(results);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn commands(count: usize) -> Vec<ReadCommand> {
        vec![Ok(NodeCommand::RemoveAll); count]
    }

    #[test]
    fn a_batch_that_is_cancelled_ends_after_what_is_under_way() {
        let mut batches = Batches::default();
        let ticket = batches.add(commands(5)).expect("the first");
        let batch = batches.find(ticket).expect("it is there");
        assert_eq!(batch.take_part(2, |_| true).len(), 2);
        batch.cancel();
        assert!(!batch.is_done(), "two are under way");
        batch.add_results(vec![Value::Null, json!({"error": "no"})]);
        assert!(batch.is_done());
        let progress = batch.progress(ticket);
        assert_eq!(
            (progress.total_cmds, progress.exec_cmds, progress.errs_cmds),
            (5, 5, 4)
        );
        let results = batches.take_results(ticket);
        assert_eq!(results[0], Value::Null);
        let told = results[4]["error"].as_str().expect("an error");
        assert!(told.contains("cancelled"), "{told}");
        let gone = batches.find(ticket).expect_err("told once");
        assert!(gone.to_string().contains("'ticket_id' is 1"), "{gone}");
    }

    #[test]
    fn batches_have_a_limit_and_old_results_are_forgotten() {
        let mut batches = Batches::default();
        let tickets: Vec<u64> = (0..WAITING_MAX)
            .map(|_| batches.add(commands(1)).expect("there is room"))
            .collect();
        let refused = batches.add(commands(1)).expect_err("too many");
        assert!(
            refused.to_string().contains("cancel_async_task"),
            "{refused}"
        );
        batches.find(tickets[0]).expect("it is there").cancel();
        for _ in 0..RESULTS_MAX {
            let ticket = batches.add(commands(1)).expect("one was cancelled");
            batches.find(ticket).expect("it is there").cancel();
        }
        assert!(batches.find(tickets[0]).is_err(), "the oldest result");
        assert!(batches.find(tickets[1]).is_ok(), "it waits");
    }
}
