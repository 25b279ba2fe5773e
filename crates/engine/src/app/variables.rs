//! The variables of applications, in a pool: few programs use them.

use std::collections::HashMap;

/// Variables of each kind that an application has.
pub const VARIABLES: usize = 5;

/// Where the variables of an application are; none until it uses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VariableIndex(u32);

impl VariableIndex {
    /// None yet.
    pub(super) const NONE: VariableIndex = VariableIndex(u32::MAX);
}

/// The variables of one application; all are zero at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variables {
    /// Numbers.
    pub(super) numbers: [u64; VARIABLES],
    /// Times, in ticks.
    pub(super) ticks: [u64; VARIABLES],
    /// The number of the connection among those that draw, from 1; 0 is none yet.
    pub(super) number: u64,
}

/// The variables of all applications of a core that use some.
#[derive(Debug, Default)]
pub struct VariablePool {
    blocks: Vec<Variables>,
    free: Vec<u32>,
    /// Connections that drew texts, by the first buffer in which their program draws.
    drawing: HashMap<u32, u64>,
}

impl VariablePool {
    /// How many applications have variables now.
    pub fn used(&self) -> usize {
        self.blocks.len() - self.free.len()
    }

    /// The number of a connection among those that draw as it does: its own, or the next.
    pub(super) fn number(&mut self, index: &mut VariableIndex, first: u32) -> u64 {
        if self.at(index).number == 0 {
            let drawing = self.drawing.entry(first).or_default();
            *drawing += 1;
            let number = *drawing;
            self.at(index).number = number;
        }
        self.at(index).number - 1
    }

    /// The variables at `index`, made when there are none.
    pub(super) fn at(&mut self, index: &mut VariableIndex) -> &mut Variables {
        if *index == VariableIndex::NONE {
            *index = VariableIndex(self.take());
        }
        &mut self.blocks[index.0 as usize]
    }

    /// Gives the variables back.
    pub(super) fn release(&mut self, index: &mut VariableIndex) {
        if *index != VariableIndex::NONE {
            self.free.push(index.0);
            *index = VariableIndex::NONE;
        }
    }

    fn take(&mut self) -> u32 {
        if let Some(free) = self.free.pop() {
            self.blocks[free as usize] = Variables::default();
            return free;
        }
        let next = self.blocks.len() as u32;
        self.blocks.push(Variables::default());
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_begin_at_zero_also_the_second_time() {
        let mut pool = VariablePool::default();
        let (mut one, mut two) = (VariableIndex::NONE, VariableIndex::NONE);
        pool.at(&mut one).numbers[0] = 7;
        pool.at(&mut two).ticks[4] = 9;
        assert_eq!((pool.at(&mut one).numbers[0], pool.used()), (7, 2));
        pool.release(&mut one);
        assert_eq!((one, pool.used()), (VariableIndex::NONE, 1));
        assert_eq!(pool.at(&mut one).numbers, [0; VARIABLES]);
        assert_eq!(pool.at(&mut two).ticks[4], 9);
        pool.release(&mut one);
        pool.release(&mut one);
        assert_eq!(pool.used(), 1);
    }
}
