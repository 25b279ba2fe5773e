//! Frames that arrive in bursts, some with their data apart.

use allosaur_packet::shared_payload::SplitFrame;

use super::rx::Frame;
use super::{Disposition, StatefulEngine};
use crate::flow::AddressSpace;
use crate::session::Encapsulation;
use crate::session::wire;
use crate::time::Nanos;
use crate::transmit::{PortIndex, TxQueues};

impl StatefulEngine {
    /// Frames arrived at a port, in this order. `told` hears of each whose it was, in order too.
    pub fn handle_frames<'f>(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frames: &[SplitFrame<'f>],
        tx_queues: &mut impl TxQueues,
        mut told: impl FnMut(&SplitFrame<'f>, Disposition),
    ) {
        for frame in frames {
            let disposition = if frame.is_split() {
                self.handle_split_frame(now, port, frame, tx_queues)
            } else {
                self.handle_frame(now, port, frame.head, tx_queues)
            };
            told(frame, disposition);
        }
    }

    /// A frame whose data is apart.
    fn handle_split_frame(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frame: &SplitFrame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        let Some(Some(info)) = self.ports.get(usize::from(port)) else {
            return Disposition::Other;
        };
        let side = info.side;
        let is_tunnel = matches!(info.encapsulation, Encapsulation::Tunnel(_));
        let read = if is_tunnel {
            None
        } else {
            wire::read_split(frame)
        };
        let Some((layout, received)) = read else {
            let mut scratch = std::mem::take(&mut self.scratch);
            let disposition = self.handle_frame(now, port, frame.bytes(&mut scratch), tx_queues);
            self.scratch = scratch;
            return disposition;
        };
        let it = Frame {
            bytes: frame.head,
            shared: frame.payload,
            layout: &layout,
            received: &received,
            tunnel: None,
        };
        let arrived = (port, AddressSpace::default());
        self.handle_read(now, arrived, side, it, tx_queues)
    }
}
