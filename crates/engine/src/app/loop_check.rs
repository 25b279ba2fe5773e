//! Loops that never end and never wait: a flow in one would do nothing else for ever.
//!
//! A loop may be as long as it likes when something in it waits (for bytes, an acknowledgment, a
//! time), or when what its jumps depend on changes. What only might be endless passes; the
//! application yields now and then anyway.
//!
//! Steps that wait are taken out, and what is left is cut into strongly connected parts (R. Tarjan,
//! 1972). In each part, jumps that will go the other way one day lose the way that stays inside;
//! until nothing is connected any more, or nothing can be cut.

use super::problem::ProgramProblem;
use super::spec::{ProgramCommand, UNTIL_CLOSE};
use super::variables::VARIABLES;

/// How deep loops may stand in each other.
const DEPTH_MAX: usize = 64;

/// A jump that goes both ways.
#[derive(Clone, Copy, Debug, Default)]
struct Edges {
    /// To the next step.
    next: Option<usize>,
    /// To the target.
    jump: Option<usize>,
}

/// Checks a program; an error names a step.
pub(super) fn check(steps: &[ProgramCommand]) -> Result<(), (usize, ProgramProblem)> {
    let goes_back = |i: usize| target(steps, i).is_some_and(|target| target <= i);
    if !(0..steps.len()).any(goes_back) {
        return Ok(());
    }
    let mut edges: Vec<Edges> = (0..steps.len()).map(|i| edges(steps, i)).collect();
    for _ in 0..DEPTH_MAX {
        let parts = parts(&edges);
        if parts.is_empty() {
            return Ok(());
        }
        for part in &parts {
            cut(steps, &mut edges, part)?;
        }
    }
    let part = parts(&edges).into_iter().flatten().next();
    part.map_or(Ok(()), |i| {
        Err((i, ProgramProblem::LoopsTooDeep(DEPTH_MAX)))
    })
}

/// Where a step jumps to, if it does.
fn target(steps: &[ProgramCommand], i: usize) -> Option<usize> {
    match steps[i] {
        ProgramCommand::JumpNotZero { offset, .. }
        | ProgramCommand::JumpWithin { offset, .. }
        | ProgramCommand::Jump { offset, .. } => i.checked_add_signed(offset as isize),
        _ => None,
    }
}

/// Where a step leads without waiting. What waits for the end of the peer waits once only.
fn edges(steps: &[ProgramCommand], i: usize) -> Edges {
    let inside = |i: usize| Some(i).filter(|i| *i < steps.len());
    match steps[i] {
        ProgramCommand::Send { .. }
        | ProgramCommand::Delay { .. }
        | ProgramCommand::DelayRandom { .. }
        | ProgramCommand::Reset
        | ProgramCommand::WaitForPeerClose
        | ProgramCommand::Connect
        | ProgramCommand::CloseMessage
        | ProgramCommand::ExecuteTemplate => Edges::default(),
        ProgramCommand::Receive { bytes: count, .. }
        | ProgramCommand::ReceiveMessages {
            messages: count, ..
        } if count > 0 && count != UNTIL_CLOSE => Edges::default(),
        ProgramCommand::Jump {
            condition: None, ..
        } => Edges {
            next: None,
            jump: target(steps, i).and_then(inside),
        },
        _ => Edges {
            next: inside(i + 1),
            jump: target(steps, i).and_then(inside),
        },
    }
}

/// Takes away the ways inside a part that will not be taken for ever.
fn cut(
    steps: &[ProgramCommand],
    edges: &mut [Edges],
    part: &[usize],
) -> Result<(), (usize, ProgramProblem)> {
    let changes = Changes::of(steps, part);
    let is_inside = |way: Option<usize>| way.is_some_and(|i| part.binary_search(&i).is_ok());
    let mut was_cut = false;
    for &i in part {
        let (goes_on, jumps) = (is_inside(edges[i].next), is_inside(edges[i].jump));
        match &steps[i] {
            // It leads to where all steps lead, so nothing is decided here.
            _ if goes_on == jumps && edges[i].next == edges[i].jump => {}
            ProgramCommand::JumpNotZero { variable, .. } if jumps && !changes.is_set(*variable) => {
                edges[i].jump = None;
                was_cut = true;
            }
            ProgramCommand::JumpWithin { variable, .. }
                if jumps && !changes.is_time_set(*variable) =>
            {
                edges[i].jump = None;
                was_cut = true;
            }
            ProgramCommand::Jump {
                condition: Some(condition),
                ..
            } if changes.is_moved(condition.variable) => {
                let way = if jumps {
                    &mut edges[i].jump
                } else {
                    &mut edges[i].next
                };
                *way = None;
                was_cut = true;
            }
            _ => {}
        }
    }
    if was_cut {
        return Ok(());
    }
    let (first, last) = (part[0], part[part.len() - 1]);
    Err((last, ProgramProblem::Endless { first, last }))
}

/// What happens to variables in a part.
#[derive(Debug, Default)]
struct Changes {
    set: [bool; VARIABLES],
    added: [bool; VARIABLES],
    time_set: [bool; VARIABLES],
}

impl Changes {
    fn of(steps: &[ProgramCommand], part: &[usize]) -> Changes {
        let mut changes = Changes::default();
        for &i in part {
            match &steps[i] {
                ProgramCommand::SetVariable { variable, .. } => {
                    changes.set[*variable as usize] = true
                }
                ProgramCommand::AddVariable { variable, value } if *value != 0 => {
                    changes.added[*variable as usize] = true;
                }
                ProgramCommand::JumpNotZero { variable, .. } => {
                    changes.added[*variable as usize] = true;
                }
                ProgramCommand::SetTick { variable } | ProgramCommand::AddTick { variable, .. } => {
                    changes.time_set[*variable as usize] = true;
                }
                _ => {}
            }
        }
        changes
    }

    fn is_set(&self, variable: u32) -> bool {
        self.set[variable as usize]
    }

    fn is_moved(&self, variable: u32) -> bool {
        self.added[variable as usize] && !self.is_set(variable)
    }

    fn is_time_set(&self, variable: u32) -> bool {
        self.time_set[variable as usize]
    }
}

/// The strongly connected parts with a loop in them, each in ascending order.
fn parts(edges: &[Edges]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![0; edges.len()],
        low: vec![0; edges.len()],
        waiting: Vec::new(),
        is_waiting: vec![false; edges.len()],
        found: 0,
        parts: Vec::new(),
    };
    for i in 0..edges.len() {
        if search.order[i] == 0 {
            search.from(i);
        }
    }
    search.parts
}

/// Tarjan's search, with a stack of its own: programs are long.
struct Search<'a> {
    edges: &'a [Edges],
    /// When a step was found, from 1.
    order: Vec<u32>,
    low: Vec<u32>,
    waiting: Vec<usize>,
    is_waiting: Vec<bool>,
    found: u32,
    parts: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn from(&mut self, start: usize) {
        // A step, and which of its two ways is next.
        let mut stack = vec![(start, 0)];
        self.find(start);
        while let Some((i, way)) = stack.last_mut() {
            let (i, turn) = (*i, *way);
            *way += 1;
            let to = match turn {
                0 => self.edges[i].next,
                1 => self.edges[i].jump,
                _ => {
                    stack.pop();
                    if let Some((before, _)) = stack.last() {
                        self.low[*before] = self.low[*before].min(self.low[i]);
                    }
                    self.finish(i);
                    continue;
                }
            };
            match to {
                Some(to) if self.order[to] == 0 => {
                    self.find(to);
                    stack.push((to, 0));
                }
                Some(to) if self.is_waiting[to] => {
                    self.low[i] = self.low[i].min(self.order[to]);
                }
                _ => {}
            }
        }
    }

    fn find(&mut self, i: usize) {
        self.found += 1;
        (self.order[i], self.low[i]) = (self.found, self.found);
        self.waiting.push(i);
        self.is_waiting[i] = true;
    }

    fn finish(&mut self, i: usize) {
        if self.low[i] != self.order[i] {
            return;
        }
        let first = self.waiting.iter().rposition(|&step| step == i);
        let first = first.expect("a step waits until its part is found");
        let mut part = self.waiting.split_off(first);
        for &step in &part {
            self.is_waiting[step] = false;
        }
        let edges = self.edges[i];
        if part.len() > 1 || edges.next == Some(i) || edges.jump == Some(i) {
            part.sort_unstable();
            self.parts.push(part);
        }
    }
}
