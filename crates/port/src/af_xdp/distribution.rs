//! Which hardware queue of an interface a frame arrives at.

use std::sync::Arc;

use allosaur_netdev::interface::{FUNCTION_TOEPLITZ, Interface, RxHash, TRANSFORMATION_XOR};
use allosaur_packet::rss::{HashFunction, Rss};

use crate::distribution::RxDistribution;

/// What an interface tells of itself whose first queues are read.
pub(super) fn of_interface(interface: &Interface, queues: usize) -> RxDistribution {
    match interface.rx_hash() {
        Ok(hash) => of_hash(&interface.name, &hash, queues),
        Err(_) => RxDistribution::Unknown(format!(
            "the driver does not tell by which hash it shares out what arrives (by af_packet:{} the \
             kernel shares it out)",
            interface.name
        )),
    }
}

fn of_hash(name: &str, hash: &RxHash, queues: usize) -> RxDistribution {
    if let Some(kind) = hash.without_ports.first() {
        return RxDistribution::ByFlow(format!(
            "the card's hash of {kind} is not of addresses and ports (ethtool -N {name} rx-flow-hash \
             {kind} sdfn makes it so)"
        ));
    }
    let function = match (hash.function, hash.transformation) {
        (FUNCTION_TOEPLITZ, 0) => HashFunction::Toeplitz,
        (FUNCTION_TOEPLITZ, TRANSFORMATION_XOR) => HashFunction::SymmetricXor,
        (FUNCTION_TOEPLITZ, _) => {
            return RxDistribution::ByFlow(format!(
                "the card's hash is of another input (ethtool -X {name} xfrm none changes that)"
            ));
        }
        _ => {
            return RxDistribution::ByFlow(format!(
                "the card's hash is not Toeplitz's (ethtool -X {name} hfunc toeplitz changes that)"
            ));
        }
    };
    let table: Result<Vec<u16>, _> = hash.table.iter().map(|queue| (*queue).try_into()).collect();
    match Rss::new(&hash.key, &table.unwrap_or_default(), function) {
        Ok(rss) => RxDistribution::Rss {
            rss: Arc::new(rss),
            queues,
        },
        Err(error) => RxDistribution::ByFlow(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_of_addresses_and_ports_is_known() {
        let usual = RxHash {
            table: vec![0, 1, 2, 3],
            key: vec![7; 40],
            function: FUNCTION_TOEPLITZ,
            transformation: 0,
            without_ports: Vec::new(),
        };
        let RxDistribution::Rss { rss, queues } = of_hash("eth0", &usual, 3) else {
            panic!("it is known");
        };
        assert_eq!((rss.table(), queues), (&[0, 1, 2, 3][..], 3));
        let symmetric = RxHash {
            transformation: TRANSFORMATION_XOR,
            ..usual.clone()
        };
        assert!(matches!(
            of_hash("eth0", &symmetric, 4),
            RxDistribution::Rss { .. }
        ));
        let why = |hash: RxHash| match of_hash("eth0", &hash, 4) {
            RxDistribution::ByFlow(why) => why,
            known => panic!("{known:?}"),
        };
        for (hash, expected) in [
            (
                RxHash {
                    without_ports: vec!["udp4", "udp6"],
                    ..usual.clone()
                },
                "ethtool -N eth0 rx-flow-hash udp4 sdfn",
            ),
            (
                RxHash {
                    function: 2,
                    ..usual.clone()
                },
                "hfunc toeplitz",
            ),
            (
                RxHash {
                    transformation: 2,
                    ..usual.clone()
                },
                "xfrm none",
            ),
            (
                RxHash {
                    key: vec![7; 16],
                    ..usual.clone()
                },
                "16 bytes",
            ),
            (
                RxHash {
                    table: vec![0, 1, 2],
                    ..usual.clone()
                },
                "3 entries",
            ),
        ] {
            let why = why(hash);
            assert!(why.contains(expected), "{why}");
        }
    }
}
