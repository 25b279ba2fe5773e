//! What arrived at a port, as one thread counts it, and what it passes on to the first receive
//! thread.

use allosaur_engine::flow_stats::receive::{FlowTag, flow_tag_of};
use allosaur_engine::flow_stats::{Group, GroupTable, VxlanPorts};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{FCS_BYTES, Nanos};
use allosaur_engine::transmit::PortIndex;
use allosaur_port::tap::{TAPPED_PORTS_MAX, TapIn};

use crate::clock::Clock;
use crate::counters::ArrivalBlock;

/// Stands with the number of the port on a copy that is to be measured, not shown.
pub(super) const MEASURE: u8 = TAPPED_PORTS_MAX;

/// What one thread counts of what arrives at one port.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(super) received: DirectionCounters,
    pub(super) groups: GroupTable,
    pub(crate) vxlan: VxlanPorts,
    /// Frames that this thread had to drop.
    lost_here: u64,
    /// Frames that the link lost and this thread dropped, as it was last published.
    published_lost: u64,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals {
            received: DirectionCounters::default(),
            groups: GroupTable::default(),
            vxlan: VxlanPorts::STANDARD,
            lost_here: 0,
            published_lost: 0,
        }
    }
}

impl Arrivals {
    /// Counts a frame.
    #[inline]
    pub(crate) fn count(&mut self, frame: &[u8]) {
        self.received.count(1, frame.len());
    }

    /// Counts a frame of a group.
    #[inline]
    pub(super) fn count_group(&mut self, group: Group, frame: &[u8]) {
        self.groups.count(group, 1, frame.len() as u64 + FCS_BYTES);
    }

    /// What was received.
    pub(crate) fn received(&self) -> &DirectionCounters {
        &self.received
    }

    /// Whether there is something to publish when so many frames have arrived, and the queue has
    /// lost so many up to now.
    pub(crate) fn is_news(&mut self, arrived: usize, lost_packets: u64) -> bool {
        let lost = lost_packets + self.lost_here;
        let more_lost = lost > std::mem::replace(&mut self.published_lost, lost);
        arrived > 0 || more_lost
    }

    /// Publishes all of it.
    pub(crate) fn publish(&mut self, port: usize, block: &ArrivalBlock) {
        block.publish_port(port, &self.received, self.published_lost);
        block.publish_groups(port, &mut self.groups);
    }

    /// Counts a frame, and passes on what is to be measured or shown. Returns whether it was to be
    /// measured.
    ///
    /// A frame to be measured that finds no room is lost as in a port's own ring. One to be shown is
    /// counted all the same; that it is not shown, captures tell.
    #[inline]
    pub(crate) fn take(
        &mut self,
        at: Nanos,
        frame: &[u8],
        forward_channel: &mut Passing<'_>,
    ) -> bool {
        let mut measured = false;
        match flow_tag_of(frame, &self.vxlan) {
            None => {}
            Some(FlowTag::Flow(group)) => self.count_group(group, frame),
            Some(FlowTag::Latency) => {
                measured = true;
                if !forward_channel.measure(at, frame) {
                    self.lost_here += 1;
                    return true;
                }
            }
        }
        self.count(frame);
        if forward_channel.is_watched {
            forward_channel.show(at, frame);
        }
        measured
    }
}

/// How frames of one port are passed on.
pub(crate) struct Passing<'a> {
    pub(crate) copies: &'a mut TapIn,
    pub(crate) clock: &'a Clock,
    pub(crate) port: PortIndex,
    pub(crate) is_watched: bool,
    /// Who watches measures by the time of arrival.
    pub(crate) is_timed: bool,
    /// Whether the queue tells of each frame when it arrived.
    pub(crate) knows_arrivals: bool,
}

impl Passing<'_> {
    /// Passes on a frame whose latency is measured. False when there is no room.
    fn measure(&mut self, at: Nanos, frame: &[u8]) -> bool {
        self.copies
            .copy(self.arrival(at), self.port | MEASURE, frame)
    }

    /// Passes on a frame that is to be shown.
    pub(crate) fn show(&mut self, at: Nanos, frame: &[u8]) {
        let at = if self.is_timed { self.arrival(at) } else { at };
        if !self.copies.copy(at, self.port, frame) {
            self.copies.note_lost();
        }
    }

    /// When a frame arrived that the queue gave with the time `at`. The time of the turn would be
    /// too early: frames arrive while it lasts.
    fn arrival(&self, at: Nanos) -> Nanos {
        match self.knows_arrivals {
            true => at,
            false => self.clock.now_ns(),
        }
    }
}
