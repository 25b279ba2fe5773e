//! Which receive queue of a device a frame arrives at.

use std::sync::Arc;

use allosaur_packet::rss::{HashFunction, Rss};

use super::device::Device;
use crate::distribution::RxDistribution;

/// What a device that runs tells of itself.
pub(super) fn of_device(device: &Device) -> RxDistribution {
    if let Some(end) = &device.ring_end {
        return match end.is_by_tx_queue {
            true => RxDistribution::ByTxQueue,
            false => RxDistribution::Unknown("several threads share a ring".to_owned()),
        };
    }
    if !device.shares_out {
        let why = "the driver does not share out by a hash what arrives";
        return RxDistribution::Unknown(why.to_owned());
    }
    let by_flow = |why: &str| RxDistribution::ByFlow(why.to_owned());
    let Some((key, has_ports)) = device.hash_key() else {
        return by_flow("the driver does not tell its hash key");
    };
    if !has_ports {
        return by_flow("the card's hash is not of the ports of TCP and UDP, over IPv4 and IPv6");
    }
    let Some(table) = device.indirection_table() else {
        return by_flow("the driver does not tell its indirection table");
    };
    match Rss::new(&key, &table, HashFunction::Toeplitz) {
        Ok(rss) => RxDistribution::Rss {
            rss: Arc::new(rss),
            queues: device.rx_queues.into(),
        },
        Err(error) => by_flow(&error.to_string()),
    }
}
