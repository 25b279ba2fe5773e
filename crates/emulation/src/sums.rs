//! Sums up the counters of all namespaces and clients.
//!
//! There may be a million clients, so they are added up in slices: [`Emulation::sum_up`] goes on where it
//! was, and says when it is through.

use crate::client::ClientId;
use crate::counters::Counters;
use crate::emulation::{Emulation, Entry, ids};
use crate::memory::MemoryCounters;
use crate::ready::is_ready;
use crate::totals::{LAYOUT, OWN, Sums, Totals};

impl Emulation {
    /// What was summed up last.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What the tables of all namespaces have in memory.
    pub(crate) fn memory(&self) -> MemoryCounters {
        let mut counters = MemoryCounters {
            timer_bytes: self.shared.timers.table_bytes() as u64,
            queue_bytes: self.shared.tx.table_bytes() as u64,
            ..MemoryCounters::default()
        };
        let indices = self.namespaces.indices();
        for entry in indices.filter_map(|index| self.namespaces.get(index)) {
            let clients = &entry.namespace.clients;
            counters.clients += clients.len() as u64;
            counters.client_bytes += clients.table_bytes() as u64;
            counters.plugin_bytes += entry.plugins.table_bytes() as u64;
        }
        counters.sum_up();
        counters
    }

    /// Goes on summing up, with at most so many clients and namespaces. True when all are in the sums,
    /// which [`Emulation::totals`] has now; the next call begins anew.
    pub fn sum_up(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Totals { next, plugins, .. } = &mut self.totals;
            if next.namespace >= self.namespaces.slots() {
                self.finish_sums();
                return true;
            }
            let entry = self.namespaces.get_mut(next.namespace);
            let entry = entry.map(|entry| &mut **entry);
            let Some(entry) = entry.filter(|entry| {
                let end = entry.namespace.clients.slots();
                next.client.is_none_or(|client| client < end)
            }) else {
                (next.namespace, next.client) = (next.namespace + 1, None);
                continue;
            };
            let client = next.client.map(ClientId);
            *plugins |= entry.plugins.set();
            add(entry, client, &mut next.values);
            if let Some(id) = client.filter(|id| entry.namespace.clients.get(*id).is_some()) {
                next.clients += 1;
                next.ready += u64::from(is_ready(entry, id));
            }
            next.client = Some(next.client.map_or(0, |client| client + 1));
        }
        false
    }

    fn finish_sums(&mut self) {
        self.refresh_frames();
        let frames = &mut self.totals.next.values;
        let own: [&dyn Counters; OWN.len()] =
            [&self.veth, &self.parser, &self.tx_queue, &self.rx_queue];
        let mut begin = 0;
        for table in own {
            table.add_to(&mut frames[begin..]);
            begin += table.meta().len();
        }
        let namespaces = self.homes().count() as u64;
        let totals = &mut self.totals;
        totals.values.clone_from(&totals.next.values);
        totals.namespaces = namespaces;
        (totals.clients, totals.ready) = (totals.next.clients, totals.next.ready);
        totals.next = Sums {
            values: totals.gone.clone(),
            clients: 0,
            ready: 0,
            namespace: 0,
            client: None,
        };
    }

    /// Keeps what a client, or a namespace itself, has counted, as it goes.
    pub(crate) fn keep_counts(&mut self, namespace: u32, client: Option<ClientId>) {
        let Some(entry) = self.namespaces.get_mut(namespace) else {
            return;
        };
        self.totals.plugins |= entry.plugins.set();
        let mut counted = std::mem::take(&mut self.totals.scratch);
        counted.fill(0);
        add(entry, client, &mut counted);
        let is_next = self.totals.next.is_before(namespace, client);
        for (place, &count) in counted.iter().enumerate() {
            if count > 0 && !LAYOUT.rows[place].is_gauge {
                self.totals.gone[place] += count;
                self.totals.next.values[place] += if is_next { count } else { 0 };
            }
        }
        self.totals.scratch = counted;
    }
}

/// Adds what a client, or a namespace itself, has counted.
fn add(entry: &mut Entry, client: Option<ClientId>, sums: &mut [u64]) {
    let set = match client {
        None => entry.plugins.set(),
        Some(id) => match entry.namespace.clients.get(id) {
            Some(client) => client.plugins,
            None => return,
        },
    };
    for id in ids(set) {
        if let Some(plugin) = entry.plugins.get_mut(id) {
            let begins = &LAYOUT.plugins[usize::from(id.0)];
            plugin.counters(&mut entry.namespace, client, &mut |table, counters| {
                counters.add_to(&mut sums[begins[table]..]);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use allosaur_packet::MacAddress;
    use serde_json::json;

    use crate::test_net::Net;
    use crate::totals::rows;

    fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    fn value(net: &Net, name: &str) -> u64 {
        let place = rows().iter().position(|row| row.name == name);
        let place = place.unwrap_or_else(|| panic!("there is no {name}"));
        net.emulation.totals().values[place]
    }

    /// Sums up in slices of so many; gives how many there were.
    fn sum_up(net: &mut Net, most: usize) -> usize {
        let slices = std::iter::repeat_with(|| net.emulation.sum_up(most));
        1 + slices.take_while(|is_through| !is_through).count()
    }

    /// Two clients that have announced themselves four times each.
    fn busy() -> Net {
        let mut net = Net::new(&["arp"], &[]);
        for last in [1, 2] {
            let fields = json!({"ipv4": [10, 0, 0, last]});
            let added = net.add(mac(last), fields, json!({"lldp": {"timer": 1}, "arp": {}}));
            added.expect("it is new");
        }
        net.wait(3_500_000_000);
        net
    }

    #[test]
    fn all_clients_are_in_the_sums_however_long_the_slices_are() {
        for most in [1, 2, 3, 100] {
            let mut net = busy();
            let slices = sum_up(&mut net, most);
            assert_eq!(slices == 1, most == 100);
            let totals = net.emulation.totals();
            assert_eq!((totals.namespaces, totals.clients), (1, 2));
            // At once, and after each second.
            assert_eq!(value(&net, "lldp_pkt_tx"), 2 * 4);
            assert!(value(&net, "frames_tx_pkts") >= 2 * 4);
            let gratuitous = net.request("arp_ns_cnt", json!({})).expect("it is there");
            let sent = gratuitous["arp"]["pktTxGArp"].as_u64().unwrap_or(0);
            assert_eq!(value(&net, "arp_pkt_tx_garp"), sent);
        }
    }

    #[test]
    fn what_a_client_counted_that_is_gone_stays_in_the_sums() {
        // Before, between and behind what is in the sums already.
        for summed in 0..6 {
            let mut net = busy();
            sum_up(&mut net, 100);
            for _ in 0..summed {
                net.emulation.sum_up(1);
            }
            net.remove(mac(2));
            for _ in 0..2 {
                sum_up(&mut net, 1);
                assert_eq!(value(&net, "lldp_pkt_tx"), 2 * 4, "{summed}");
            }
            assert_eq!(net.emulation.totals().clients, 1);
        }
    }

    #[test]
    fn clients_with_all_that_they_need_are_ready() {
        let mut net = busy();
        let fields = json!({"ipv4": [10, 0, 0, 3], "ipv4_dg": [10, 0, 0, 254],
                            "ipv4_force_dg": true, "ipv4_force_mac": mac(0xfe).octets()});
        net.add(mac(3), fields, json!({"arp": {}}))
            .expect("it is new");
        sum_up(&mut net, 100);
        let totals = net.emulation.totals();
        assert_eq!((totals.clients, totals.ready), (3, 1));
    }
}
