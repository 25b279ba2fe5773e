//! Whether each data thread of a port with flows reads a queue of its own, from what the port knows of
//! its queues; else the first thread reads all and passes on what belongs to the others.

use std::sync::Arc;

use allosaur_engine::stateful::CLIENT_PORT_MIN;
use allosaur_engine::template::Side;
use allosaur_packet::rss::{Rss, RssShare};
use allosaur_port::distribution::RxDistribution;
use allosaur_port::open::AnyPort;

use crate::threads::layout::{Layout, rule_of, side_of};

/// How the data threads of a port share what arrives for their flows.
#[derive(Clone, Debug)]
pub(super) enum FlowSharing {
    /// There is one thread.
    OneThread,
    /// Each thread reads a queue of its own, where all frames of its flows arrive.
    OwnQueues {
        /// How many threads that are.
        threads: usize,
        /// By which hash, where clients must choose their ports by it, and how many queues of the card
        /// are read.
        rss: Option<(Arc<Rss>, usize)>,
        /// Who brings the frames there.
        by: &'static str,
    },
    /// The first thread reads all, and passes on what belongs to the others.
    Software {
        /// Why, with the remedy if there is one.
        why: String,
    },
}

impl FlowSharing {
    /// Of all ports, where they are in stateful mode from the start; else of none.
    pub(super) fn of_all(ports: &[AnyPort], layout: &Layout) -> Vec<FlowSharing> {
        let ports = ports.iter().enumerate().filter(|_| layout.is_stateful);
        let of = |(number, port)| FlowSharing::of(port, number, layout.cores_of(number).len());
        ports.map(of).collect()
    }

    /// Of port `number`, with so many data threads.
    pub(super) fn of(port: &AnyPort, number: usize, threads: usize) -> FlowSharing {
        let queues = port.rx.len();
        if threads <= 1 {
            return FlowSharing::OneThread;
        }
        let own = |by| FlowSharing::OwnQueues {
            threads,
            rss: None,
            by,
        };
        let software = |why: &str| FlowSharing::Software {
            why: why.to_owned(),
        };
        match (&port.distribution, side_of(number)) {
            (RxDistribution::Unknown(why), _) => software(why),
            (RxDistribution::ByFlow(why), Side::Client) => software(why),
            _ if queues != threads => {
                let many = if queues == 1 { "" } else { "s" };
                software(&format!(
                    "{queues} receive queue{many} for {threads} threads"
                ))
            }
            (RxDistribution::ByTxQueue, _) => own("flows stay on their queues"),
            (RxDistribution::ByPort(rule), side) if *rule == rule_of(side) => {
                own("flows by their ports, in the kernel")
            }
            (RxDistribution::ByPort(_), _) => software("its queues are by another port of TCP"),
            (RxDistribution::ByFlow(_), Side::Server) => own("flows by the hash of the card"),
            (RxDistribution::Rss { .. }, Side::Server) => own("flows by RSS"),
            (RxDistribution::Rss { rss, queues }, Side::Client) => by_rss(rss, *queues, threads),
        }
    }

    /// What a card brings to the thread of this rank, where clients choose their ports by that.
    pub(super) fn rss_share(&self, rank: usize) -> Option<RssShare> {
        match self {
            FlowSharing::OwnQueues {
                rss: Some((rss, queues)),
                threads,
                ..
            } => Some(share(rss, *queues, rank, *threads)),
            _ => None,
        }
    }

    /// Whether what shares the frames of this port out looks at the packet within VXLAN, or at no header: a
    /// network card looks at the outer one.
    pub(super) fn is_by_inner_flow(&self, port: &AnyPort) -> bool {
        use RxDistribution::{ByPort, ByTxQueue};
        !self.has_own_queues() || matches!(port.distribution, ByPort(_) | ByTxQueue)
    }

    /// Whether each thread reads a queue of its own.
    pub(super) fn has_own_queues(&self) -> bool {
        matches!(self, FlowSharing::OwnQueues { .. })
    }

    /// The same for users; `None` where there is nothing to share.
    pub(super) fn in_words(&self) -> Option<String> {
        match self {
            FlowSharing::OneThread => None,
            FlowSharing::OwnQueues { by, threads, .. } => Some(format!("{by}, {threads} queues")),
            FlowSharing::Software { why } => Some(format!("flows shared out by software: {why}")),
        }
    }
}

/// Clients choose their ports so that the answers come to their thread, if its share of the table
/// lets them.
fn by_rss(rss: &Arc<Rss>, queues: usize, threads: usize) -> FlowSharing {
    let mut shares = (0..threads).map(|rank| share(rss, queues, rank, threads));
    if shares.clone().any(|share| share.is_empty()) {
        let why = "the card's indirection table leaves queues out (of an interface, ethtool -X equal \
                   gives each its part)";
        return FlowSharing::Software {
            why: why.to_owned(),
        };
    }
    match shares.all(|share| share.is_reached_by(CLIENT_PORT_MIN..=u16::MAX)) {
        true => FlowSharing::OwnQueues {
            threads,
            rss: Some((Arc::clone(rss), queues)),
            by: "answers by RSS",
        },
        false => FlowSharing::Software {
            why: "by the card's hash key, ports of clients do not choose among its queues (of an \
                  interface, ethtool -X hkey sets another)"
                .to_owned(),
        },
    }
}

/// The queues of one thread, of so many of the card's that are read: where these are more than there
/// are threads, the threads take turns.
fn share(rss: &Arc<Rss>, queues: usize, rank: usize, threads: usize) -> RssShare {
    RssShare::new(Arc::clone(rss), |queue| {
        let queue = usize::from(queue);
        queue < queues && queue % threads == rank
    })
}

#[cfg(test)]
mod tests {
    use allosaur_packet::rss::HashFunction;
    use allosaur_port::QueueCounts;
    use allosaur_port::description::parse_ports;
    use allosaur_port::open;
    use allosaur_port::sharing::Sharing;

    use super::*;

    const KEY: [u8; 40] = *b"some forty bytes that look like a key...";

    /// A port in memory of so many queues that says this of them.
    fn port(queues: usize, distribution: RxDistribution) -> AnyPort {
        let ports = parse_ports("memory,memory").expect("well formed");
        let counts = QueueCounts {
            tx: queues,
            rx: queues,
            ..QueueCounts::ONE
        };
        let mut ports = open::open(&ports, counts).expect("in memory");
        AnyPort {
            distribution,
            ..ports.remove(0)
        }
    }

    /// The hash of a card, of whose queues so many are read.
    fn rss_of(key: &[u8], table: &[u16], queues: usize) -> RxDistribution {
        let rss = Rss::new(key, table, HashFunction::Toeplitz);
        RxDistribution::Rss {
            rss: Arc::new(rss.expect("a whole key")),
            queues,
        }
    }

    fn rss(key: &[u8], table: &[u16]) -> RxDistribution {
        rss_of(key, table, 2)
    }

    fn words(queues: usize, distribution: RxDistribution, number: usize, threads: usize) -> String {
        let sharing = FlowSharing::of(&port(queues, distribution), number, threads);
        sharing.in_words().unwrap_or_default()
    }

    #[test]
    fn one_thread_shares_with_nobody() {
        assert_eq!(words(1, RxDistribution::ByTxQueue, 0, 1), "");
        assert_eq!(words(1, RxDistribution::Unknown(String::new()), 1, 1), "");
    }

    #[test]
    fn threads_have_queues_where_it_is_known_what_arrives_there() {
        for (distribution, number, expected) in [
            (
                RxDistribution::ByTxQueue,
                0,
                "flows stay on their queues, 2 queues",
            ),
            (
                RxDistribution::ByPort(Sharing::ByDestinationPort),
                0,
                "flows by their ports, in the kernel, 2 queues",
            ),
            (rss(&KEY, &[0, 1]), 0, "answers by RSS, 2 queues"),
            (rss(&KEY, &[0, 0]), 1, "flows by RSS, 2 queues"),
            (
                RxDistribution::ByFlow("secret".to_owned()),
                1,
                "flows by the hash of the card, 2 queues",
            ),
        ] {
            assert_eq!(words(2, distribution, number, 2), expected);
        }
    }

    #[test]
    fn else_software_shares_out_and_says_why() {
        let unknown = || RxDistribution::Unknown("it is a riddle".to_owned());
        for (queues, distribution, number, why) in [
            (2, unknown(), 1, "it is a riddle"),
            (2, RxDistribution::ByFlow("secret".to_owned()), 0, "secret"),
            (
                1,
                RxDistribution::ByTxQueue,
                0,
                "1 receive queue for 2 threads",
            ),
            (3, rss(&KEY, &[0, 1]), 1, "3 receive queues for 2 threads"),
            (
                2,
                RxDistribution::ByPort(Sharing::BySourcePort),
                0,
                "another port",
            ),
            (2, rss(&KEY, &[0, 2]), 0, "ethtool -X equal"),
            (2, rss(&[0; 40], &[0, 1]), 0, "ethtool -X hkey"),
        ] {
            let words = words(queues, distribution, number, 2);
            let start = "flows shared out by software: ";
            assert!(words.starts_with(start) && words.contains(why), "{words}");
        }
    }

    #[test]
    fn each_hash_belongs_to_one_thread() {
        let table: Vec<u16> = (0..64).map(|entry| entry % 4).collect();
        let sharing = FlowSharing::of(&port(2, rss_of(&KEY, &table, 4)), 0, 2);
        let shares = [0, 1].map(|rank| sharing.rss_share(rank).expect("it is RSS"));
        for entry in 0..64 {
            // Queues 0 and 2 are the first thread's.
            assert_eq!(
                [0, 1].map(|rank| shares[rank].has(entry)),
                [entry % 2 == 0, entry % 2 == 1]
            );
        }
        // What arrives at queue 3 is not read.
        let sharing = FlowSharing::of(&port(2, rss_of(&KEY, &table, 3)), 0, 2);
        let second = sharing.rss_share(1).expect("it is RSS");
        assert!(second.has(1) && !second.has(3));
        let sharing = FlowSharing::of(&port(2, RxDistribution::ByTxQueue), 0, 2);
        assert!(sharing.rss_share(0).is_none() && sharing.has_own_queues());
    }
}
