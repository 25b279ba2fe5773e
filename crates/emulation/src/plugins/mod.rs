//! The protocols of emulated clients: a folder each, and one list.

mod announcement;
pub mod appsim;
pub mod arp;
pub mod cdp;
pub mod dhcp;
pub mod dhcpsrv;
pub mod dhcpv6;
pub mod dns;
pub mod dot1x;
pub mod icmp;
pub mod igmp;
pub mod ipfix;
pub mod ipv6;
mod lease;
pub mod lldp;
pub mod mdns;
pub mod ppp;
pub mod tdl;
pub mod transe;
pub mod transport;

use crate::spec::Spec;

/// All plugins. A plugin's place is its number ([`PluginId`](crate::plugin::PluginId)); there is room
/// for 32.
pub static PLUGINS: &[&Spec] = &[
    &arp::SPEC,
    &icmp::SPEC,
    &igmp::SPEC,
    &ipv6::SPEC,
    &lldp::SPEC,
    &cdp::SPEC,
    &dot1x::SPEC,
    &ppp::SPEC,
    &dhcp::SPEC,
    &dhcpsrv::SPEC,
    &dhcpv6::SPEC,
    &transport::SPEC,
    &mdns::SPEC,
    &dns::SPEC,
    &ipfix::SPEC,
    &tdl::SPEC,
    &appsim::SPEC,
    &transe::SPEC,
    #[cfg(test)]
    &transport::tests::endpoint::SPEC,
];

#[cfg(test)]
mod tests {
    use allosaur_packet::MacAddress;
    use serde_json::{Value, json};

    use super::*;
    use crate::spec::Keys;
    use crate::test_net::Net;

    fn names(net: &mut Net) -> Value {
        let params = json!({"tunnels": [{"vport": 1}]});
        let info = net.request("ctx_get_info", params);
        info.expect("the namespace is there")[0]["plug_names"].take()
    }

    #[test]
    fn a_refused_client_leaves_nothing_in_its_namespace() {
        let mut refused = 0;
        for spec in PLUGINS {
            // What the namespace had before stays.
            let own = match spec.name {
                // They want an init JSON of the namespace.
                "appsim" | "ipfix" | "tdl" => &[][..],
                _ => &[spec.name],
            };
            for given in [&[][..], own, &["icmp"]] {
                let mut net = Net::new(given, &[]);
                let before = names(&mut net);
                let mac = MacAddress([0, 0, 1, 0, 0, 1]);
                let plugins = json!({spec.name: {"nobody knows this": 1}});
                if net.add(mac, json!({}), plugins).is_ok() {
                    assert!(!matches!(spec.keys, Keys::Only(_)), "{}", spec.name);
                    continue;
                }
                refused += 1;
                assert_eq!(names(&mut net), before, "{}", spec.name);
                net.remove(mac);
                net.wait(10_000_000_000);
                assert_eq!(names(&mut net), before, "{}", spec.name);
            }
        }
        assert!(refused > 30, "{refused}");
    }
}
