//! Captured packets: what a capture keeps of the frames that pass, and what it has counted.

use std::collections::VecDeque;

use crate::time::Nanos;
use crate::transmit::PortIndex;

/// Most packets that one capture keeps.
pub const CAPTURE_PACKETS_MAX: u32 = 1_000_000;
/// Bytes that a packet takes beside its own.
const PACKET_OVERHEAD: u64 = 96;

/// On which way a frame was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// When it left.
    Transmitted,
    /// When it arrived.
    Received,
}

/// One packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was seen.
    pub at: Nanos,
    /// At which port.
    pub port: PortIndex,
    /// On which way.
    pub origin: Origin,
    /// Its number in the capture, from 1, of all that matched.
    pub index: u64,
    /// Its length without FCS before it was cut.
    pub wire_bytes: u32,
    /// Its bytes, perhaps cut to the snap length.
    pub bytes: Box<[u8]>,
}

/// What happens when a capture is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It keeps the first packets; further ones are only counted.
    KeepFirst,
    /// It keeps the last packets.
    KeepLast,
}

/// What a capture wants. Ports are bits of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Ports whose frames are taken when they leave.
    pub transmit_ports: u64,
    /// Ports whose frames are taken when they arrive.
    pub receive_ports: u64,
    /// Packets to keep at most; 0 only counts.
    pub packets_max: u32,
    /// What happens then.
    pub overflow: Overflow,
    /// Bytes to keep of each; 0 is all.
    pub snap_bytes: usize,
    /// Memory for its packets at most. When it is taken the capture is full, as by packets.
    pub memory_max: u64,
}

/// One capture: its packets and counters. `F` says which frames it wants.
#[derive(Debug)]
pub struct Capture<F> {
    settings: CaptureSettings,
    filter: F,
    active: bool,
    packets: VecDeque<Captured>,
    matched: u64,
    fetched: u64,
    bytes: u64,
    short_of_memory: u64,
}

/// What a capture has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounters {
    /// Frames that it wanted.
    pub matched: u64,
    /// Packets that were taken out, or handed on.
    pub fetched: u64,
    /// Packets that it keeps.
    pub kept: u64,
    /// Their bytes, or those of the packets that were handed on.
    pub bytes: u64,
    /// Packets that it would keep if it had more memory.
    pub short_of_memory: u64,
}

impl<F: Fn(&[u8]) -> bool> Capture<F> {
    /// An active, empty capture.
    pub fn new(settings: CaptureSettings, filter: F) -> Capture<F> {
        Capture {
            settings,
            filter,
            active: true,
            packets: VecDeque::new(),
            matched: 0,
            fetched: 0,
            bytes: 0,
            short_of_memory: 0,
        }
    }

    /// What it was told to want.
    pub fn settings(&self) -> &CaptureSettings {
        &self.settings
    }

    /// Whether it still takes packets.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Takes no more packets; those that it has stay.
    pub fn stop(&mut self) {
        self.active = false;
    }

    /// What it has counted.
    pub fn counters(&self) -> CaptureCounters {
        CaptureCounters {
            matched: self.matched,
            fetched: self.fetched,
            kept: self.packets.len() as u64,
            bytes: self.bytes,
            short_of_memory: self.short_of_memory,
        }
    }

    /// Memory that its packets take.
    pub fn memory(&self) -> u64 {
        self.bytes + PACKET_OVERHEAD * self.packets.len() as u64
    }

    /// Shows it a frame that passed, when so much memory is left for all captures.
    pub fn offer(
        &mut self,
        at: Nanos,
        port: PortIndex,
        origin: Origin,
        frame: &[u8],
        memory_left: u64,
    ) {
        if !self.wants(port, origin) || !(self.filter)(frame) {
            return;
        }
        self.matched += 1;
        let memory_max = self.memory() + memory_left;
        let memory = PACKET_OVERHEAD + self.cut_bytes(frame) as u64;
        let had_room = self.packets.len() < self.settings.packets_max as usize;
        let is_kept = self.make_room(memory, memory_max.min(self.settings.memory_max));
        // Those that had to go are not what the packets would have been limited to.
        self.short_of_memory += u64::from(had_room && !is_kept);
        if is_kept {
            let packet = self.cut(at, port, origin, frame);
            self.bytes += packet.bytes.len() as u64;
            self.packets.push_back(packet);
        }
    }

    /// Shows it a frame that passed, and gives the packet to be handed on at once, for a capture
    /// that keeps nothing. It ends with the packets that it may have, unless they are 0.
    pub fn hand_on(
        &mut self,
        at: Nanos,
        port: PortIndex,
        origin: Origin,
        frame: &[u8],
    ) -> Option<Captured> {
        if !self.wants(port, origin) || !(self.filter)(frame) {
            return None;
        }
        self.matched += 1;
        let packets_max = u64::from(self.settings.packets_max);
        if packets_max > 0 && self.fetched >= packets_max {
            return None;
        }
        self.fetched += 1;
        let packet = self.cut(at, port, origin, frame);
        self.bytes += packet.bytes.len() as u64;
        Some(packet)
    }

    fn cut_bytes(&self, frame: &[u8]) -> usize {
        match self.settings.snap_bytes {
            0 => frame.len(),
            snap => frame.len().min(snap),
        }
    }

    fn cut(&self, at: Nanos, port: PortIndex, origin: Origin, frame: &[u8]) -> Captured {
        let length = self.cut_bytes(frame);
        Captured {
            at,
            port,
            origin,
            index: self.matched,
            wire_bytes: frame.len() as u32,
            bytes: frame[..length].into(),
        }
    }

    /// Takes out the oldest packets, at most `packets_max`.
    pub fn fetch(&mut self, packets_max: usize) -> Vec<Captured> {
        let n = self.packets.len().min(packets_max);
        let packets: Vec<Captured> = self.packets.drain(..n).collect();
        self.fetched += n as u64;
        self.bytes -= packets.iter().map(|p| p.bytes.len() as u64).sum::<u64>();
        packets
    }

    /// Whether it takes frames of a port on that way, if the filter does.
    pub fn wants(&self, port: PortIndex, origin: Origin) -> bool {
        let ports = match origin {
            Origin::Transmitted => self.settings.transmit_ports,
            Origin::Received => self.settings.receive_ports,
        };
        self.active && port < 64 && ports >> port & 1 == 1
    }

    /// Makes room for a packet of so much memory, if it may.
    fn make_room(&mut self, memory: u64, memory_max: u64) -> bool {
        let packets_max = self.settings.packets_max as usize;
        loop {
            let has_room = self.memory() + memory <= memory_max;
            if has_room && self.packets.len() < packets_max {
                return true;
            }
            if self.settings.overflow == Overflow::KeepFirst || packets_max == 0 {
                return false;
            }
            let Some(oldest) = self.packets.pop_front() else {
                return false;
            };
            self.bytes -= oldest.bytes.len() as u64;
            self.short_of_memory += u64::from(!has_room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory for all captures.
    const PLENTY: u64 = 1 << 30;

    fn settings(packets_max: u32, overflow: Overflow) -> CaptureSettings {
        CaptureSettings {
            transmit_ports: 0b01,
            receive_ports: 0b10,
            packets_max,
            overflow,
            snap_bytes: 0,
            memory_max: u64::MAX,
        }
    }

    fn all(_: &[u8]) -> bool {
        true
    }

    fn offer_five<F: Fn(&[u8]) -> bool>(capture: &mut Capture<F>) {
        for i in 0..5 {
            capture.offer(u64::from(i), 1, Origin::Received, &[i; 60], PLENTY);
        }
    }

    fn times(packets: &[Captured]) -> Vec<Nanos> {
        packets.iter().map(|packet| packet.at).collect()
    }

    #[test]
    fn a_full_capture_keeps_the_first_or_the_last() {
        for (overflow, expected) in [(Overflow::KeepFirst, [0, 1]), (Overflow::KeepLast, [3, 4])] {
            let mut capture = Capture::new(settings(2, overflow), all);
            offer_five(&mut capture);
            let counters = capture.counters();
            assert_eq!(
                (counters.matched, counters.kept, counters.bytes),
                (5, 2, 120)
            );
            assert_eq!(times(&capture.fetch(10)), expected);
            assert_eq!(capture.counters().bytes, 0);
        }
    }

    #[test]
    fn only_wanted_ports_ways_and_frames_match() {
        let mut capture = Capture::new(settings(9, Overflow::KeepFirst), |frame: &[u8]| {
            frame[0] % 2 == 0
        });
        offer_five(&mut capture);
        capture.offer(7, 0, Origin::Received, &[0; 60], PLENTY);
        capture.offer(8, 1, Origin::Transmitted, &[0; 60], PLENTY);
        capture.offer(9, 0, Origin::Transmitted, &[0; 60], PLENTY);
        capture.offer(10, 200, Origin::Received, &[0; 60], PLENTY);
        assert_eq!(times(&capture.fetch(10)), [0, 2, 4, 9]);
    }

    #[test]
    fn a_capture_of_no_packets_counts() {
        let mut capture = Capture::new(settings(0, Overflow::KeepLast), all);
        offer_five(&mut capture);
        assert_eq!(
            (capture.counters().matched, capture.counters().kept),
            (5, 0)
        );
    }

    #[test]
    fn packets_are_cut_and_say_how_long_they_were() {
        let cut = CaptureSettings {
            snap_bytes: 20,
            ..settings(9, Overflow::KeepFirst)
        };
        let mut capture = Capture::new(cut, all);
        capture.offer(0, 1, Origin::Received, &[1; 60], PLENTY);
        let packet = &capture.fetch(1)[0];
        assert_eq!(
            (packet.bytes.len(), packet.wire_bytes, packet.index),
            (20, 60, 1)
        );
    }

    #[test]
    fn a_capture_that_hands_on_ends_with_its_packets_or_never() {
        for (packets_max, expected) in [(2, 2), (0, 5)] {
            let mut capture = Capture::new(settings(packets_max, Overflow::KeepFirst), all);
            let offer = |at| capture.hand_on(at, 1, Origin::Received, &[0; 60]);
            let packets: Vec<u64> = (0..5).filter_map(offer).map(|p| p.at).collect();
            assert_eq!(packets.len(), expected);
            let counters = capture.counters();
            assert_eq!((counters.matched, counters.kept), (5, 0));
            assert_eq!(counters.bytes, 60 * expected as u64);
        }
    }

    #[test]
    fn memory_is_a_limit_as_packets_are() {
        let memory_of_two = 2 * (60 + PACKET_OVERHEAD);
        for (overflow, expected, short) in [
            (Overflow::KeepFirst, [0, 1], 3),
            (Overflow::KeepLast, [3, 4], 3),
        ] {
            for (own, all) in [(memory_of_two, PLENTY), (PLENTY, memory_of_two)] {
                let limited = CaptureSettings {
                    memory_max: own,
                    ..settings(5, overflow)
                };
                let mut capture = Capture::new(limited, super::tests::all);
                for i in 0..5 {
                    let left = all - capture.memory();
                    capture.offer(u64::from(i), 1, Origin::Received, &[i; 60], left);
                    assert!(capture.memory() <= memory_of_two);
                }
                assert_eq!(capture.counters().short_of_memory, short);
                assert_eq!(times(&capture.fetch(10)), expected);
                assert_eq!(capture.memory(), 0);
            }
        }
    }
}
