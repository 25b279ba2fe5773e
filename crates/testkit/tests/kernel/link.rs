//! The link between two ends: it delays, loses, doubles and reorders, by a seed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::host::Place;

/// What a link does to frames, in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) delay: Duration,
    /// Of a thousand frames.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// Held back for up to `late_by` more, and so overtaken.
    pub(crate) late: u64,
    pub(crate) late_by: Duration,
    /// Of a thousand frames that allow it: marked as having met congestion.
    pub(crate) marked: u64,
}

impl Faults {
    pub(crate) const NONE: Faults = Faults {
        delay: Duration::ZERO,
        lost: 0,
        doubled: 0,
        late: 0,
        late_by: Duration::ZERO,
        marked: 0,
    };

    /// A link without faults that takes so long each way.
    pub(crate) const fn slow(delay_ms: u64) -> Faults {
        Faults {
            delay: Duration::from_millis(delay_ms),
            ..Faults::NONE
        }
    }

    /// Whether it loses, doubles or reorders.
    pub(crate) fn is_bad(&self) -> bool {
        self.lost + self.doubled + self.late > 0
    }
}

/// Frames under way.
#[derive(Debug)]
pub(crate) struct Link {
    faults: Faults,
    random: u64,
    passed: u64,
    under_way: BTreeMap<(Instant, u64), (Place, Vec<u8>)>,
}

impl Link {
    pub(crate) fn new(faults: Faults, seed: u64) -> Link {
        Link {
            faults,
            random: seed,
            passed: 0,
            under_way: BTreeMap::new(),
        }
    }

    /// A frame goes to `to`.
    pub(crate) fn send(&mut self, now: Instant, to: Place, mut frame: Vec<u8>) {
        if self.draw(self.faults.lost) {
            return;
        }
        if self.draw(self.faults.marked) {
            mark(&mut frame);
        }
        let copies = 1 + u32::from(self.draw(self.faults.doubled));
        for _ in 0..copies {
            let mut at = now + self.faults.delay;
            if self.draw(self.faults.late) {
                let share = (self.next_random() % 1000) as u32;
                at += self.faults.late_by * share / 1000;
            }
            self.passed += 1;
            self.under_way
                .insert((at, self.passed), (to, frame.clone()));
        }
    }

    /// The next frame that has arrived.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Place, Vec<u8>)> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When the next frame arrives.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.under_way.keys().next().map(|key| key.0)
    }

    fn draw(&mut self, of_a_thousand: u64) -> bool {
        of_a_thousand > 0 && self.next_random() % 1000 < of_a_thousand
    }

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Marks an IPv4 packet that may be marked (RFC 3168, section 5), as a router does that is full.
fn mark(frame: &mut [u8]) {
    const NETWORK: usize = 14;
    let is_ipv4 = frame.get(12..14) == Some(&[8, 0]);
    if !is_ipv4 || frame[NETWORK + 1] & 0b11 == 0 {
        return;
    }
    frame[NETWORK + 1] |= 0b11;
    frame[NETWORK + 10..NETWORK + 12].fill(0);
    let header_bytes = 4 * usize::from(frame[NETWORK] & 0xf);
    let sum = allosaur_packet::network::checksum::checksum(&frame[NETWORK..NETWORK + header_bytes]);
    frame[NETWORK + 10..NETWORK + 12].copy_from_slice(&sum.to_be_bytes());
}
