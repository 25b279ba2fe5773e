//! What arrived at a port, as one thread counts it, and which of it is forwarded to the first
//! receive thread: to be measured or shown.

use allosaur_engine::encapsulation::{Encapsulation, Stripped};
use allosaur_engine::flow_stats::receive::{FlowTag, flow_tag_of};
use allosaur_engine::flow_stats::{Group, GroupTable, VxlanPorts};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{FCS_BYTES, Nanos};
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::link::ethernet;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_port::tap::{TAPPED_PORTS_MAX, TapIn};

use crate::counters::{ArrivalBlock, TunnelErrors};
use crate::rx_taps::Reception;
use crate::threads::clock::Clock;

/// Stands with the number of the port on a copy that is to be measured, not shown.
pub(super) const MEASURE: u8 = TAPPED_PORTS_MAX;

/// What one thread counts of what arrives at one port.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) received: DirectionCounters,
    pub(super) groups: GroupTable,
    vxlan: VxlanPorts,
    /// The tunnel that the port's streams are in; without one frames are taken as they are.
    encapsulation: Encapsulation,
    tunnel_errors: TunnelErrors,
    /// Frames that this thread had to drop, and that were lost on the way to queues that are gone.
    lost_here: u64,
    /// Frames that were lost on the way to the queue before it came here.
    lost_before: u64,
    /// Frames that the link lost and this thread dropped, as it was last published.
    published_lost: u64,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals {
            received: DirectionCounters::default(),
            groups: GroupTable::default(),
            vxlan: VxlanPorts::STANDARD,
            encapsulation: Encapsulation::Ethernet,
            tunnel_errors: TunnelErrors::default(),
            lost_here: 0,
            lost_before: 0,
            published_lost: 0,
        }
    }
}

impl Arrivals {
    /// How the port shall receive from now on.
    pub(super) fn set(&mut self, reception: &Reception) {
        self.vxlan = reception.vxlan;
        self.encapsulation = reception
            .tunnel
            .map_or(Encapsulation::Ethernet, Encapsulation::Tunnel);
    }

    /// The sign of a frame that arrived, if it has one; on a port with a tunnel, of the frame within it.
    #[inline]
    pub(super) fn flow_tag(&mut self, frame: &[u8]) -> Option<FlowTag> {
        match self.encapsulation.is_tunnel() {
            false => flow_tag_of(frame, &self.vxlan),
            true => self.flow_tag_in_tunnel(frame),
        }
    }

    #[inline(never)]
    fn flow_tag_in_tunnel(&mut self, frame: &[u8]) -> Option<FlowTag> {
        match self.encapsulation.strip(&SplitFrame::whole(0, frame)) {
            // The frame within begins with the Ethernet header that ends where its packet begins.
            Stripped::Packet {
                packet_offset,
                came_in,
                ..
            } if came_in.is_tunnel() => {
                let inner = &frame[packet_offset - ethernet::HEADER_BYTES..];
                flow_tag_of(inner, &self.vxlan)
            }
            Stripped::Packet { .. } | Stripped::Other => flow_tag_of(frame, &self.vxlan),
            Stripped::OtherNetwork => {
                self.tunnel_errors.other_network += 1;
                None
            }
            Stripped::Malformed => {
                self.tunnel_errors.bad_header += 1;
                None
            }
        }
    }

    /// Counts a frame of so many bytes, without FCS.
    #[inline]
    pub(super) fn count(&mut self, frame_bytes: usize) {
        self.received.count(1, frame_bytes);
    }

    /// The same for a burst of frames.
    #[inline]
    pub(super) fn count_burst(&mut self, frame_bytes: impl Iterator<Item = usize>) {
        self.received.count_burst(frame_bytes);
    }

    /// Counts a frame of a group.
    #[inline]
    pub(super) fn count_group(&mut self, group: Group, frame: &[u8]) {
        self.groups.count(group, 1, frame.len() as u64 + FCS_BYTES);
    }

    /// A queue comes here that has lost so many up to now: others have counted them.
    pub(super) fn begin_losses(&mut self, lost_packets: u64) {
        self.lost_before = lost_packets;
    }

    /// The queue goes, which has lost so many up to now.
    pub(super) fn end_losses(&mut self, lost_packets: u64) {
        self.lost_here += lost_packets - std::mem::take(&mut self.lost_before);
    }

    /// Whether there is something to publish when so many frames have arrived, and the queue has
    /// lost so many up to now.
    pub(super) fn is_news(&mut self, arrived: usize, lost_packets: u64) -> bool {
        let lost = lost_packets - self.lost_before + self.lost_here;
        let more_lost = lost > std::mem::replace(&mut self.published_lost, lost);
        arrived > 0 || more_lost
    }

    /// Publishes all of it.
    pub(super) fn publish(&mut self, port: usize, block: &ArrivalBlock) {
        block.publish_port(port, &self.received, self.published_lost);
        block.publish_tunnel_errors(port, self.tunnel_errors);
        block.publish_groups(port, &mut self.groups);
    }

    /// Counts a frame, and forwards what is to be measured or shown. Returns whether it was to be
    /// measured.
    ///
    /// A frame to be measured that finds no room is lost as in a port's own ring. One to be shown is
    /// counted all the same; that it is not shown, captures tell.
    #[inline]
    pub(super) fn handle_frame(
        &mut self,
        at: Nanos,
        frame: &[u8],
        forward: &mut FrameForwarder<'_>,
    ) -> bool {
        let mut measured = false;
        match self.flow_tag(frame) {
            None => {}
            Some(FlowTag::Flow(group)) => self.count_group(group, frame),
            Some(FlowTag::Latency) => {
                measured = true;
                if !forward.measure(at, frame) {
                    self.lost_here += 1;
                    return true;
                }
            }
        }
        self.count(frame.len());
        if forward.is_watched {
            forward.show(at, frame);
        }
        measured
    }
}

/// How frames of one port are forwarded.
pub(super) struct FrameForwarder<'a> {
    pub(super) copies: &'a mut TapIn,
    pub(super) clock: &'a Clock,
    pub(super) port: PortIndex,
    pub(super) is_watched: bool,
    /// Who watches measures by the time of arrival.
    pub(super) is_timed: bool,
    /// Whether the queue tells of each frame when it arrived.
    pub(super) knows_arrivals: bool,
}

impl FrameForwarder<'_> {
    /// Forwards a frame whose latency is measured. False when there is no room.
    fn measure(&mut self, at: Nanos, frame: &[u8]) -> bool {
        self.copies
            .copy(self.arrival(at), self.port | MEASURE, frame)
    }

    /// Forwards a frame that is to be shown.
    pub(super) fn show(&mut self, at: Nanos, frame: &[u8]) {
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
