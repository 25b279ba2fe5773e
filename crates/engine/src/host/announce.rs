//! When a host says without being asked where its addresses are.

use allosaur_packet::link::vlan::tags_of;

use super::{HostSettings, arp, neighbor};
use crate::time::{Nanos, SECOND};

/// Time between announcements; that of TRex.
pub(super) const INTERVAL: Nanos = 120 * SECOND;

/// The round of announcements: one for each address, then a pause.
#[derive(Clone, Debug)]
pub(super) struct Announcer {
    due: Option<Nanos>,
    /// Which of the addresses is next, IPv4 first.
    next: usize,
    /// The tags of each frame, with their types.
    tags: Vec<u8>,
}

/// Whether others have to be told that a host became another one.
pub(super) fn differ(before: &HostSettings, after: &HostSettings) -> bool {
    let told = |host: &HostSettings| (host.mac, host.ipv4);
    told(before) != told(after) || before.vlan != after.vlan || before.ipv6 != after.ipv6
}

impl Announcer {
    /// The first round is due at once.
    pub(super) fn new(settings: &HostSettings, now: Nanos) -> Announcer {
        let has_address = settings.ipv4.is_some() || !settings.ipv6.is_empty();
        Announcer {
            due: (has_address && !settings.is_passive).then_some(now),
            next: 0,
            tags: tags_of(&settings.vlan),
        }
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.due
    }

    /// Writes the next announcement if it is due. After the last of a round the pause begins.
    pub(super) fn poll(
        &mut self,
        settings: &HostSettings,
        now: Nanos,
        frame: &mut Vec<u8>,
    ) -> bool {
        frame.clear();
        if self.due.is_none_or(|due| now < due) {
            return false;
        }
        let mac = settings.mac();
        let first_ipv6 = usize::from(settings.ipv4.is_some());
        match settings.ipv4 {
            Some(own) if self.next == 0 => arp::announce(mac, own, &self.tags, frame),
            _ => neighbor::announce(
                mac,
                settings.ipv6[self.next - first_ipv6],
                &self.tags,
                frame,
            ),
        }
        self.next += 1;
        if self.next == first_ipv6 + settings.ipv6.len() {
            self.next = 0;
            // From now on and not from when it was due: a late round is not made up for.
            self.due = Some(now.saturating_add(INTERVAL));
        }
        true
    }
}
