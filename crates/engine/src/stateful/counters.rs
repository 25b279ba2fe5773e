//! What the flow table of a core counts, by TRex's names; and counters of flows as a row of numbers.

use super::run::GroupCounters;
use crate::app::ApplicationCounters;
use crate::app::UdpCounters;
use crate::session::{LatencyCounters, OutcomeCounters, SideCounters};
use crate::stats::counters;
use crate::tcp::TcpCounters;

counters! {
    /// Counters of one side of a core, by TRex's names. All only grow.
    FlowTableCounters;
    /// Frames that another core read and passed on to this one.
    rss_redirect_rx,
    /// Frames that this core read and passed on to others.
    rss_redirect_tx,
    /// Frames that were to be passed on and found no room.
    rss_redirect_drops,
    /// Times that there was no room for one.
    rss_redirect_queue_full,
    /// Frames that began no flow here, as their MAC address is ignored.
    ignored_macs,
    /// Frames that began no flow here, as their IPv4 address is ignored.
    ignored_ips,
    /// Frames for a client that has no such flow.
    err_cwf,
    /// Segments for a server that has no such flow, and are no SYN.
    err_no_syn,
    /// Frames whose lengths are wrong.
    err_len_err,
    /// Parts of IPv4 packets.
    err_fragments_ipv4_drop,
    /// Frames of other protocols.
    err_no_tcp_udp,
    /// Frames for a server that no template has.
    err_no_template,
    /// Frames with a wrong checksum of IPv4.
    err_l3_cs,
    /// Frames with a wrong checksum of TCP or UDP.
    err_l4_cs,
    /// Frames that service mode took before flows could.
    redirect_rx_ok,
    /// Flows that a client could not begin, as all its ports are in use.
    err_c_tuple_err,
    /// Flows that clients could not begin, as there are too many.
    err_c_nf_throttled,
    /// Flows that servers could not accept, as there are too many.
    err_s_nf_throttled,
    /// Flows of either side that there was no room for.
    err_flow_overflow,
    /// Flows whose template their first bytes decided.
    defer_template,
    /// Flows whose first bytes no template has.
    err_defer_no_template,
    /// Frames of a tunnel's network that their port is not in.
    err_tunnel_network,
    /// Frames for the end of a tunnel whose headers there are wrong, or cut off.
    err_tunnel_header,
    /// Flows that there was no address space for: a network of tunnels, or a pair of IPv6 prefixes.
    err_address_spaces,
}

const TCP: usize = TcpCounters::NAMES.len();
const UDP: usize = UdpCounters::NAMES.len();
const APPLICATION: usize = ApplicationCounters::NAMES.len();
const LATENCY: usize = LatencyCounters::NAMES.len();
const OUTCOMES: usize = OutcomeCounters::NAMES.len();

impl GroupCounters {
    /// How many numbers there are.
    pub const WORDS: usize = TCP + UDP + APPLICATION + LATENCY + OUTCOMES + 3;

    /// All its numbers.
    pub fn words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        let (tcp, rest) = words.split_at_mut(TCP);
        let (udp, rest) = rest.split_at_mut(UDP);
        let (application, rest) = rest.split_at_mut(APPLICATION);
        let (latency, rest) = rest.split_at_mut(LATENCY);
        let (outcomes, rest) = rest.split_at_mut(OUTCOMES);
        tcp.copy_from_slice(&self.flows.tcp.values());
        udp.copy_from_slice(&self.flows.udp.values());
        application.copy_from_slice(&self.flows.application.values());
        latency.copy_from_slice(&self.flows.latency.values());
        outcomes.copy_from_slice(&self.flows.outcomes.values());
        rest.copy_from_slice(&[self.active, self.established, self.missed]);
        words
    }

    /// The counters that [`words`](GroupCounters::words) gave: all but the rows of applications, of
    /// which each profile has others.
    pub fn from_words(words: [u64; Self::WORDS]) -> GroupCounters {
        let at = |first: usize| move |n: usize| first + n;
        let (udp, application) = (at(TCP), at(TCP + UDP));
        let latency = at(TCP + UDP + APPLICATION);
        let outcomes = at(TCP + UDP + APPLICATION + LATENCY);
        let rest = at(TCP + UDP + APPLICATION + LATENCY + OUTCOMES);
        GroupCounters {
            flows: SideCounters {
                tcp: TcpCounters::from_values(std::array::from_fn(|n| words[n])),
                udp: UdpCounters::from_values(std::array::from_fn(|n| words[udp(n)])),
                application: ApplicationCounters::from_values(std::array::from_fn(|n| {
                    words[application(n)]
                })),
                latency: LatencyCounters::from_values(std::array::from_fn(|n| words[latency(n)])),
                outcomes: OutcomeCounters::from_values(std::array::from_fn(|n| words[outcomes(n)])),
                rows: Box::default(),
            },
            active: words[rest(0)],
            established: words[rest(1)],
            missed: words[rest(2)],
        }
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &GroupCounters) {
        self.flows.tcp.add(&other.flows.tcp);
        self.flows.udp.add(&other.flows.udp);
        self.flows.application.add(&other.flows.application);
        self.flows.latency.add(&other.flows.latency);
        self.flows.outcomes.add(&other.flows.outcomes);
        self.flows.add_rows(&other.flows.rows);
        self.active += other.active;
        self.established += other.established;
        self.missed += other.missed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_survive_the_way_through_words() {
        let words = std::array::from_fn(|n| n as u64 + 1);
        let mut counters = GroupCounters::from_words(words);
        assert_eq!(counters.words(), words);
        assert_eq!(counters.missed, GroupCounters::WORDS as u64);
        counters.add(&counters.clone());
        let mut doubled = words.map(|word| 2 * word);
        // The shortest and the longest time are no sums.
        let first = TCP + UDP + APPLICATION;
        doubled[first..first + 2].copy_from_slice(&words[first..first + 2]);
        assert_eq!(counters.words(), doubled);
    }
}
