//! An emulation that takes the place of another, as a process that is started again.

use std::net::Ipv4Addr;

use allosaur_engine::time::Nanos;

use crate::emulation::{Emulation, Settings};

impl Emulation {
    /// Begins anew, without namespaces. Who shares frames out is told that all clients are gone.
    pub fn restart(&mut self, settings: Settings, now: Nanos) {
        let mut placements = std::mem::take(&mut self.shared.placements);
        let indices = self.namespaces.indices();
        for entry in indices.filter_map(|index| self.namespaces.get(index)) {
            let (key, clients) = (entry.namespace.key(), &entry.namespace.clients);
            for client in clients.ids().filter_map(|id| clients.get(id)) {
                placements.client_changed(key, client.mac, false);
                placements.ipv4_changed(key, client.ipv4, Ipv4Addr::UNSPECIFIED);
            }
        }
        *self = Emulation::new(settings, now);
        self.shared.placements = placements;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::placements::{PlacedAddress, Placement};
    use crate::shard_map::ShardMap;

    #[test]
    fn what_was_told_of_clients_is_taken_back() {
        let settings = Settings {
            shards: Some(Arc::new(ShardMap::new(vec![vec![0, 1]], 2))),
            ..Settings::default()
        };
        let mut emulation = Emulation::new(settings.clone(), 0);
        let clients: Vec<_> = (0..20_u8)
            .map(
                |n| json!({"mac": [2, 0, 0, n, 0, 0], "ipv4": [10, 0, 0, n], "plugs": {"arp": {}}}),
            )
            .collect();
        let mut ask = |method, params| emulation.handle_request(0, method, &params);
        ask("ctx_add", json!({"tunnels": [{"vport": 0}]})).expect("a namespace");
        ask("ctx_client_add", json!({ "clients": clients })).expect("twenty clients");
        let told = |emulation: &mut Emulation| -> Vec<Placement> {
            std::iter::from_fn(|| emulation.poll_placement()).collect()
        };
        let before = told(&mut emulation);
        let is_mac = |placement: &&Placement| matches!(placement.address, PlacedAddress::Mac(_));
        assert!(before.iter().filter(is_mac).count() > 3);
        emulation.restart(settings, 1);
        let mut after = told(&mut emulation);
        assert!(after.iter().all(|placement| !placement.is_here));
        after
            .iter_mut()
            .for_each(|placement| placement.is_here = true);
        assert_eq!(after, before);
    }
}
