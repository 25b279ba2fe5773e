//! Who begins flows, and from which port: the clients of one template.

use std::sync::Arc;

use allosaur_packet::rss::RssShare;

use super::client_pool::{ClientPool, Drawn};
use super::filters::DisabledClients;
use super::pace::{Pace, Ramp};
use super::rss_ports::RssPorts;
use crate::template::{
    AddressSequence, ClientTemplate, CompiledProfile, HostTable, PoolHost, PoolShare, TemplateIndex,
};
use crate::time::{Due, MILLISECOND, Nanos};
use crate::transmit::PortIndex;

/// The first port of clients; those below are for services.
pub const PORT_MIN: u16 = 1024;
/// How far apart the first ports of templates are, in parts of 2^32 of all ports: the golden
/// section, which spreads any number of templates evenly.
const PORTS_APART: u32 = 0x9e37_79b9;
/// Clients with a port counter of their own; those of larger pools share some.
const COUNTERS_MAX: u64 = 1 << 20;
/// Flows that are later than this are given up and counted.
pub(super) const LATE_MAX: Nanos = 100 * MILLISECOND;

/// The clients of one template on one core.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) template: TemplateIndex,
    pool: ClientPool,
    servers: AddressSequence,
    /// The next port of each client.
    ports: Vec<u16>,
    own_ports: OwnPorts,
    /// By which of them the answers come here, where the card decides that.
    rss: Option<Box<RssPorts>>,
    /// When the next flow is due.
    next: Due,
    pace: Pace,
    /// Flows that may still begin; `None` is without limit.
    left: Option<u32>,
    /// A flow that ends makes room for another under the limit.
    continuous: bool,
}

/// The two ends of a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tuple {
    pub(super) client: Drawn,
    pub(super) server: u32,
    pub(super) client_port: u16,
}

/// Where and how fast clients begin.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) share: PoolShare,
    /// What the card brings to this core.
    pub(super) rss: Option<Arc<RssShare>>,
    /// What rates are multiplied by.
    pub(super) factor: f64,
    pub(super) start_at: Nanos,
    pub(super) ramp: Option<Ramp>,
    pub(super) seed: u32,
}

impl Terms {
    /// Those of a template: hosts are behind one port, whose cores share them alone.
    fn of(&self, client: &ClientTemplate) -> Terms {
        let share = match &client.hosts {
            Some(_) => PoolShare {
                pair: 0,
                pairs: 1,
                ..self.share
            },
            None => self.share,
        };
        Terms {
            share,
            ..self.clone()
        }
    }
}

impl Clients {
    /// Those on a port. `None` when this core has none of this template's flows.
    pub(super) fn new(
        profile: &CompiledProfile,
        template: TemplateIndex,
        port: PortIndex,
        terms: &Terms,
    ) -> Option<Clients> {
        let client = &profile.template(template).client;
        let terms = &terms.of(client);
        let share = terms.share;
        let left = client
            .limit
            .map(|flows| share.part_of(flows, client.core_base));
        // Without a rate, only programs make such flows.
        if left == Some(0) || client.rate_cps * terms.factor <= 0.0 {
            return None;
        }
        let seed = terms.seed ^ (u32::from(template.0) << 8) ^ share.thread();
        let distribution = |pool: usize| profile.pools()[pool].distribution;
        let sequence = |pool: usize, seed| {
            let range = profile.addresses(pool, share);
            AddressSequence::new(range, distribution(pool), seed)
        };
        let (number, own_seed) = (client.client_pool, seed ^ 0x5a5a);
        let pool = match &client.hosts {
            Some(hosts) if hosts.port() != port => return None,
            Some(hosts) => {
                let hosts = Arc::clone(hosts);
                ClientPool::of_hosts(hosts, share, distribution(number), own_seed)
            }
            // Who they are was never said.
            None if profile.pools()[number].hosts.is_some() => return None,
            None => ClientPool::Range(sequence(number, own_seed)),
        };
        let counters = pool.count().min(COUNTERS_MAX);
        // Cores begin one after another, so that all together are even.
        let pace = Pace::new(rate_cps(client, terms), terms.ramp);
        let phase = f64::from(share.thread()) / f64::from(share.threads());
        let rss = terms.rss.clone();
        let rss = rss.map(|rss| Box::new(RssPorts::new(rss, client)));
        let own_ports = match rss {
            // Other cores leave out those that this one takes.
            Some(_) => OwnPorts::of(0, 1),
            None => OwnPorts::of(share.rank, share.cores),
        };
        Some(Clients {
            template,
            servers: sequence(client.server_pool, seed ^ 0xa5a5),
            ports: vec![own_ports.beginning(template); counters as usize],
            own_ports,
            rss,
            pool,
            next: pace.after(terms.start_at, phase),
            pace,
            left,
            continuous: client.continuous,
        })
    }

    /// From now on at another rate. What is left of the time to the next flow shrinks or grows with
    /// the gaps, so cores stay one after another.
    pub(super) fn set_rate(&mut self, now: Nanos, client: &ClientTemplate, terms: &Terms) {
        let pace = self.pace.at_rate(rate_cps(client, &terms.of(client)));
        if self.next.at > now {
            let left = self.pace.flows_between(now, self.next.at);
            self.next = pace.after(now, left);
        }
        self.pace = pace;
    }

    /// When the next flow is due; `None` when no more may begin.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        (self.left != Some(0)).then_some(self.next.at)
    }

    /// Whether no more will ever begin.
    pub(super) fn is_done(&self) -> bool {
        self.left == Some(0) && !self.continuous
    }

    /// A flow is due: moves on to the next.
    pub(super) fn take(&mut self) {
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        self.next = self.pace.next(self.next);
    }

    /// Gives up what is too late. Returns how many flows. What has a limit is made, however late.
    pub(super) fn give_up_late(&mut self, now: Nanos) -> u64 {
        let horizon = now.saturating_sub(LATE_MAX);
        if self.next.at >= horizon || self.left.is_some() {
            return 0;
        }
        let missed = self.pace.flows_between(self.next.at, horizon);
        let missed = missed.floor().max(1.0);
        self.next = self.pace.after(self.next.at, missed);
        missed as u64
    }

    /// Flows that are due before a time, and were not begun.
    pub(super) fn due_before(&self, until: Nanos) -> u64 {
        if self.next.at >= until {
            return 0;
        }
        // The first of them is due at once.
        let due = self.pace.flows_between(self.next.at, until - 1).floor() as u64 + 1;
        self.left.map_or(due, |left| due.min(u64::from(left)))
    }

    /// A flow of this template is over, or could not be made.
    pub(super) fn handle_end(&mut self, now: Nanos) {
        if let (true, Some(left)) = (self.continuous, &mut self.left) {
            *left += 1;
            // It waited for this: the plan goes on from here.
            if self.next.at < now {
                self.next = Due::at(now);
            }
        }
    }

    /// The ends of the next flow, before its port is known to be free; `None` when all clients
    /// rest.
    pub(super) fn draw(&mut self, disabled: &DisabledClients) -> Option<Tuple> {
        let client = self.pool.draw(disabled)?;
        let server = self.servers.next_address();
        Some(Tuple {
            client,
            server,
            client_port: self.next_port(client, server, None),
        })
    }

    /// The host that a client is, and its table.
    pub(super) fn host(&self, client: Drawn) -> Option<(&HostTable, &PoolHost)> {
        self.pool.host(client.host?)
    }

    /// The table of the hosts that these clients are, where they are hosts.
    pub(super) fn hosts(&self) -> Option<&HostTable> {
        self.pool.table()
    }

    /// Another port for the same ends, for a flow of `template`, which may be that of other clients.
    pub(super) fn draw_port(
        &mut self,
        tuple: Tuple,
        template: TemplateIndex,
        client: &ClientTemplate,
    ) -> Tuple {
        let other = self.rss.as_ref().filter(|_| template != self.template);
        let other = other.map(|rss| rss.of(client));
        Tuple {
            client_port: self.next_port(tuple.client, tuple.server, other.as_ref()),
            ..tuple
        }
    }

    /// The next port of a client; `other_rss` is for flows of another template.
    #[inline]
    fn next_port(&mut self, client: Drawn, server: u32, other_rss: Option<&RssPorts>) -> u16 {
        let place = self.pool.place_of(client) % self.ports.len();
        if self.rss.is_some() {
            return self.next_rss_port(place, client, server, other_rss);
        }
        let counter = &mut self.ports[place];
        let port = self.own_ports.port(*counter);
        *counter = (*counter + 1) % self.own_ports.count;
        port
    }

    /// The next port of a client by which the answers come here.
    #[inline(never)]
    fn next_rss_port(
        &mut self,
        place: usize,
        client: Drawn,
        server: u32,
        other_rss: Option<&RssPorts>,
    ) -> u16 {
        let own_ports = self.own_ports;
        let Some(rss) = other_rss.or(self.rss.as_deref()) else {
            return own_ports.first;
        };
        let host = client.host.and_then(|place| self.pool.host(place));
        let answers = rss.answers(client.address, server, host.map(|(_, host)| host));
        let counter = &mut self.ports[place];
        for _ in 0..own_ports.count {
            let port = own_ports.port(*counter);
            *counter = (*counter + 1) % own_ports.count;
            if answers.come_here_by(port) {
                return port;
            }
        }
        // Who gave this core its share has made sure that there is one.
        own_ports.first
    }
}

/// The ports that clients use on one core: `port % cores == rank`, so that everybody knows from a
/// frame whose it is.
#[derive(Clone, Copy, Debug)]
struct OwnPorts {
    first: u16,
    step: u16,
    count: u16,
}

impl OwnPorts {
    fn of(rank: u32, cores: u32) -> OwnPorts {
        // There are at most 64 cores.
        let (rank, step) = (rank as u16, cores as u16);
        let first = PORT_MIN + (rank + step - PORT_MIN % step) % step;
        OwnPorts {
            first,
            step,
            count: (u16::MAX - first) / step + 1,
        }
    }

    /// Where a template begins: others may have the same clients, and look for free ports too.
    fn beginning(&self, template: TemplateIndex) -> u16 {
        let part = u32::from(template.0).wrapping_mul(PORTS_APART);
        ((u64::from(part) * u64::from(self.count)) >> 32) as u16
    }

    /// The `n`-th of them.
    fn port(&self, n: u16) -> u16 {
        self.first + n * self.step
    }
}

/// This core's share of a template's rate.
fn rate_cps(client: &ClientTemplate, terms: &Terms) -> f64 {
    client.rate_cps * terms.factor / f64::from(terms.share.threads())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_share_all_ports_by_their_remainder() {
        for cores in [1, 2, 3, 7, 64] {
            let mut all = Vec::new();
            for rank in 0..cores {
                let own = OwnPorts::of(rank, cores);
                let ports = (0..own.count).map(|n| own.port(n));
                let ports: Vec<u16> = ports.collect();
                assert!(ports.iter().all(|port| u32::from(*port) % cores == rank));
                all.extend(ports);
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(PORT_MIN..=u16::MAX), "{cores} cores");
        }
    }
}
