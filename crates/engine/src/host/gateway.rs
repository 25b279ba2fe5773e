//! Asking for the Ethernet address of a gateway until it answers (RFC 826, as the one who asks).

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::link::vlan::tags_of;

use super::link::Arrival;
use super::{HostSettings, arp};
use crate::time::{Nanos, SECOND};

/// Time between requests, once the first few had no answer (RFC 1122 section 2.3.2.1 recommends at
/// most one a second).
const INTERVAL: Nanos = SECOND;
/// Time between the first two requests; each pause is twice the one before. Both ends of a link are
/// often switched on together, and the first request comes before the gateway can answer.
const INTERVAL_MIN: Nanos = SECOND / 10;

/// Whom to find, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct GatewayResolver {
    /// Own address and the gateway's; none when there is nothing to find.
    whom: Option<(Ipv4Addr, Ipv4Addr)>,
    /// When the next request is due.
    due: Nanos,
    /// How long to wait after it.
    interval: Nanos,
    /// When the last request was sent.
    asked_at: Option<Nanos>,
    found: Option<MacAddress>,
    /// The tags of each frame, with their types.
    tags: Vec<u8>,
}

impl GatewayResolver {
    /// The first request is due at once.
    pub(super) fn new(settings: &HostSettings, now: Nanos) -> GatewayResolver {
        GatewayResolver {
            whom: settings.ipv4.zip(settings.gateway),
            due: now,
            interval: INTERVAL_MIN,
            asked_at: None,
            found: None,
            tags: tags_of(&settings.vlan),
        }
    }

    pub(super) fn is_seeking(&self) -> bool {
        self.whom.is_some() && self.found.is_none()
    }

    pub(super) fn found(&self) -> Option<MacAddress> {
        self.found
    }

    /// When the next request is due.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.is_seeking().then_some(self.due)
    }

    /// Writes the next request if it is due.
    pub(super) fn poll(
        &mut self,
        settings: &HostSettings,
        now: Nanos,
        frame: &mut Vec<u8>,
    ) -> bool {
        let Some((own, gateway)) = self
            .whom
            .filter(|_| self.found.is_none() && self.due <= now)
        else {
            return false;
        };
        arp::ask(settings.mac(), own, gateway, &self.tags, frame);
        self.asked_at = Some(now);
        self.due = now.saturating_add(self.interval);
        self.interval = (2 * self.interval).min(INTERVAL);
        true
    }

    /// Takes note of the gateway's answer. Anything else that the gateway says of itself by ARP, as
    /// when it announces its address, tells that it is there now: it is asked again at once.
    pub(super) fn receive(&mut self, settings: &HostSettings, arrival: &Arrival<'_>, now: Nanos) {
        let Some((_, gateway)) = self.whom else {
            return;
        };
        if arrival.ether_type != EtherType::ARP {
            return;
        }
        let Ok(told) = ArpHeader::parse(arrival.payload) else {
            return;
        };
        if told.sender_ip != gateway || !told.sender_mac.is_unicast() {
            return;
        }
        if told.operation == ArpOperation::REPLY && settings.is_addressed(arrival) {
            self.found = Some(told.sender_mac);
        } else if told.operation == ArpOperation::REQUEST {
            // Who announces itself without end is not asked without end.
            let again = self
                .asked_at
                .map_or(now, |at| at.saturating_add(INTERVAL_MIN));
            self.due = self.due.min(again.max(now));
        }
    }
}
