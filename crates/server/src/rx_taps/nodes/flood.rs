//! Frames for all nodes of a port. With thousands of them that takes long, so each turn of the receive
//! thread serves some nodes, and other work goes on.

use std::collections::VecDeque;

/// Frames that may wait; more are lost.
const FRAMES_MAX: usize = 256;
/// Nodes that are served in a turn.
const NODES_PER_TURN: usize = 64;

/// Frames on their way to all nodes.
#[derive(Debug, Default)]
pub(super) struct FloodQueue {
    frames: VecDeque<Vec<u8>>,
    /// Buffers of frames that were handed on.
    spare: Vec<Vec<u8>>,
    /// The node that the first frame goes to next.
    next: usize,
}

impl FloodQueue {
    /// Whether any waits.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Takes a frame; false when too many wait.
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        if self.frames.len() >= FRAMES_MAX {
            return false;
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        self.frames.push_back(copy);
        true
    }

    /// Hands frames to `each` of so many nodes, by their places, as many as have their turn.
    pub(super) fn serve(&mut self, nodes: usize, mut each: impl FnMut(usize, &[u8])) {
        let mut left = NODES_PER_TURN;
        while let Some(frame) = self.frames.front().filter(|_| left > 0) {
            let end = nodes.min(self.next + left);
            left -= end.saturating_sub(self.next);
            (self.next..end).for_each(|node| each(node, frame));
            self.next = end.max(self.next);
            if self.next >= nodes {
                self.next = 0;
                self.spare.extend(self.frames.pop_front());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_gets_each_frame_once_whatever_a_turn_allows() {
        for nodes in [1, 63, 64, 65, 200] {
            let mut queue = FloodQueue::default();
            assert!(queue.push(&[1]) && queue.push(&[2]));
            let mut got = vec![Vec::new(); nodes];
            let mut turns = 0;
            while !queue.is_empty() {
                let mut served = 0;
                queue.serve(nodes, |node, frame| {
                    got[node].push(frame[0]);
                    served += 1;
                });
                assert!(served <= NODES_PER_TURN);
                turns += 1;
            }
            assert_eq!(turns, (2 * nodes).div_ceil(NODES_PER_TURN), "{nodes}");
            assert!(got.iter().all(|frames| *frames == [1, 2]), "{nodes}");
        }
    }

    #[test]
    fn without_nodes_frames_are_gone_and_too_many_are_refused() {
        let mut queue = FloodQueue::default();
        for _ in 0..FRAMES_MAX {
            assert!(queue.push(&[1]));
        }
        assert!(!queue.push(&[1]));
        queue.serve(0, |_, _| panic!("there are none"));
        assert!(queue.is_empty());
    }
}
