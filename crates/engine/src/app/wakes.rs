//! Flows that applications of the same core woke, in the order in which they are called.

/// A flow, for [`ApplicationContext::wake`](super::ApplicationContext::wake). The number of one that is
/// gone may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(pub(crate) u32);

/// It is not in the list.
const IDLE: u32 = u32::MAX;
/// Nobody is behind it.
const LAST: u32 = u32::MAX - 1;

/// A linked list in an array with a place for each flow. A flow that is woken again before it is called
/// is in it once: so to wake one allocates nothing, and the list never has more than there are flows.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// Of each flow: who comes after it, [`LAST`] or [`IDLE`].
    next: Vec<u32>,
    /// Meaningless while there is none.
    first: u32,
    last: u32,
    len: u32,
}

impl Wakes {
    /// There may be so many flows from now on.
    pub(crate) fn make_room(&mut self, flows: usize) {
        if flows > self.next.len() {
            self.next.resize(flows, IDLE);
        }
    }

    /// Adds a flow at the end, if it is not in it.
    pub(crate) fn push(&mut self, flow: FlowId) {
        match self.next.get_mut(flow.0 as usize) {
            Some(next) if *next == IDLE => *next = LAST,
            // It is in the list, or of another core.
            _ => return,
        }
        if self.len == 0 {
            self.first = flow.0;
        } else {
            self.next[self.last as usize] = flow.0;
        }
        self.last = flow.0;
        self.len += 1;
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<FlowId> {
        self.len = self.len.checked_sub(1)?;
        let flow = self.first;
        self.first = std::mem::replace(&mut self.next[flow as usize], IDLE);
        Some(FlowId(flow))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popped(wakes: &mut Wakes) -> Vec<u32> {
        std::iter::from_fn(|| wakes.pop())
            .map(|flow| flow.0)
            .collect()
    }

    #[test]
    fn flows_are_called_in_order_and_once() {
        let mut wakes = Wakes::default();
        wakes.make_room(4);
        for flow in [2, 0, 2, 3, 0] {
            wakes.push(FlowId(flow));
        }
        assert_eq!(wakes.len(), 3);
        assert_eq!(wakes.pop(), Some(FlowId(2)));
        // It was called, so it can be woken again: behind the others.
        wakes.push(FlowId(2));
        assert_eq!(popped(&mut wakes), [0, 3, 2]);
        wakes.push(FlowId(1));
        assert_eq!(popped(&mut wakes), [1]);
        assert_eq!(wakes.len(), 0);
    }

    #[test]
    fn who_is_no_flow_of_the_core_is_not_woken() {
        let mut wakes = Wakes::default();
        wakes.push(FlowId(0));
        wakes.make_room(1);
        wakes.push(FlowId(1));
        assert_eq!(popped(&mut wakes), []);
    }
}
