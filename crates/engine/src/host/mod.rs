//! What a port answers as a host on its network: ARP, neighbor discovery and echo requests, and
//! what it announces by itself.
//!
//! * [`arp`]: address resolution for IPv4.
//! * [`icmpv4`]: echo over IPv4.
//! * [`icmpv6`]: which messages over IPv6 are for us, and echo.
//! * [`neighbor`]: neighbor discovery for IPv6.
//! * [`announce`]: when to say without being asked where our addresses are.
//! * [`gateway`]: asking for the address of a gateway until it answers.
//! * [`link`]: Ethernet and VLAN tags, in and out.
//!
//! Called by the receive thread, with one [`Host`] per port.

mod announce;
mod arp;
mod gateway;
mod icmpv4;
mod icmpv6;
mod link;
mod neighbor;

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;

use crate::time::Nanos;
use announce::Announcer;
use gateway::GatewayResolver;
use link::Arrival;

/// Time between announcements of our addresses.
pub const ANNOUNCE_INTERVAL: Nanos = announce::INTERVAL;

/// Who a port is on its network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// The Ethernet address of the port.
    pub mac: [u8; 6],
    /// The VLANs that the host is in, none to two, outer first. Frames with other tags, more tags
    /// or fewer are not for it.
    pub vlan: Vec<u16>,
    /// The address for IPv4, if there is one.
    pub ipv4: Option<Ipv4Addr>,
    /// The gateway whose Ethernet address it shall find; none when it is known, or not wanted.
    pub gateway: Option<Ipv4Addr>,
    /// The addresses for IPv6: the link-local one and those that were configured.
    pub ipv6: Vec<Ipv6Addr>,
    /// Whether echo requests are answered. ARP and neighbor solicitations always are.
    pub answers_echo: bool,
    /// Somebody else answers and announces: all that is left to do is to find the gateway.
    pub is_passive: bool,
}

/// A port as a host.
///
/// Give it each frame that arrived with [`Host::handle_frame`]; send what it answers. Ask
/// [`Host::poll_timeout`] when it has something to say by itself, and from then on call
/// [`Host::poll_transmit`] until it has no more.
#[derive(Clone, Debug)]
pub struct Host {
    settings: HostSettings,
    announcer: Announcer,
    seeker: GatewayResolver,
}

impl Host {
    /// A host that announces its addresses at once.
    pub fn new(settings: HostSettings, now: Nanos) -> Host {
        Host {
            announcer: Announcer::new(&settings, now),
            seeker: GatewayResolver::new(&settings, now),
            settings,
        }
    }

    /// Makes it another host. What others may have remembered about it and is no longer true is
    /// announced at once; if there is no such thing, announcements stay when they were.
    pub fn configure(&mut self, settings: HostSettings, now: Nanos) {
        let before = std::mem::replace(&mut self.settings, settings);
        if announce::differ(&before, &self.settings) {
            self.announcer = Announcer::new(&self.settings, now);
        }
        if before != self.settings {
            self.seeker = GatewayResolver::new(&self.settings, now);
        }
    }

    /// Looks for the gateway's answer in a frame that arrived at `now`; of use while
    /// [`Host::is_seeking`].
    pub fn receive_gateway(&mut self, now: Nanos, frame: &[u8]) {
        if let Some(arrival) = Arrival::read(frame, &self.settings.vlan) {
            self.seeker.receive(&self.settings, &arrival, now);
        }
    }

    /// Whether it waits for the gateway's answer.
    #[inline]
    pub fn is_seeking(&self) -> bool {
        self.seeker.is_seeking()
    }

    /// The Ethernet address of the gateway that it was told to find, once it has answered.
    pub fn gateway_mac(&self) -> Option<[u8; 6]> {
        self.seeker.found().map(|mac| mac.octets())
    }

    /// Looks at a frame that arrived. When it asks for an answer, that is in `reply` (in place of
    /// what was there) and the return value is true.
    ///
    /// Costs a few compares for a frame that is not about ARP or ICMP.
    #[inline]
    pub fn handle_frame(&self, frame: &[u8], reply: &mut Vec<u8>) -> bool {
        reply.clear();
        if self.settings.is_passive || self.is_silent() {
            return false;
        }
        let Some(arrival) = Arrival::read(frame, &self.settings.vlan) else {
            return false;
        };
        let is_asking = match arrival.ether_type {
            EtherType::IPV4 => self.settings.answers_echo && icmpv4::is_icmp(arrival.payload),
            EtherType::IPV6 => icmpv6::is_icmp(arrival.payload),
            other => other == EtherType::ARP,
        };
        is_asking && self.answer(&arrival, reply)
    }

    /// When [`Host::poll_transmit`] has something to send; `None` for a host without addresses.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let dues = [self.announcer.due(), self.seeker.due()];
        dues.into_iter().flatten().min()
    }

    /// Writes the next frame that is due at `now` to `frame` (in place of what was there). Call it
    /// again until it returns false: there is one for each address, and one for the gateway.
    pub fn poll_transmit(&mut self, now: Nanos, frame: &mut Vec<u8>) -> bool {
        self.announcer.poll(&self.settings, now, frame)
            || self.seeker.poll(&self.settings, now, frame)
    }

    /// It has no address, so it answers nothing and says nothing.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.settings.ipv4.is_none() && self.settings.ipv6.is_empty()
    }

    /// Answers a frame that is about ARP or ICMP, if it is from another station.
    fn answer(&self, arrival: &Arrival<'_>, reply: &mut Vec<u8>) -> bool {
        if !arrival.source.is_unicast() || arrival.source == self.settings.mac() {
            return false;
        }
        let answer = match arrival.ether_type {
            EtherType::ARP => arp::answer(&self.settings, arrival, reply),
            EtherType::IPV4 => icmpv4::answer(&self.settings, arrival, reply),
            _ => icmpv6::answer(&self.settings, arrival, reply),
        };
        answer.is_some()
    }
}

impl HostSettings {
    /// The Ethernet address of the port.
    fn mac(&self) -> MacAddress {
        MacAddress(self.mac)
    }

    /// Whether a frame went to the port alone.
    fn is_addressed(&self, arrival: &Arrival<'_>) -> bool {
        arrival.destination == self.mac()
    }
}
