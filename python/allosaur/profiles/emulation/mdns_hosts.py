"""Hosts that have names in the local network, and ask for those of others by multicast DNS.

It tests what a switch or an access point does with multicast DNS, and gateways that reflect it. What must
hold: each query has one answer (`allosaur emu counters mdns`).

Run it:  allosaur emu load mdns_hosts -t clients=20,rate=10
Tunables: clients (hosts on each of two ports; they are called desk1 and so on), rate (queries a second),
queries (how many; 0 for no end), ttl (seconds for which an answer holds).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class MdnsHosts:
    """Two namespaces; the hosts of the second ask for the names of the first."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts with names, by multicast DNS.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--rate", type=float, default=5)
        parser.add_argument("--queries", type=int, default=0)
        parser.add_argument("--ttl", type=int, default=240)
        options = parser.parse_args(tunables)
        named, asking = Mac("02:00:00:60:00:01"), Mac("02:00:00:70:00:01")
        first, second = Ipv4("16.0.1.1"), Ipv4("16.0.2.1")
        near, far = [], []
        for i in range(options.clients):
            mdns = {
                "hosts": [f"desk{i + 1}"],
                "domain_name": "office.local",
                "txt": [{"field": "floor", "value": "2"}],
                "ttl": options.ttl,
            }
            plugins = {"arp": {}, "icmp": {}, "mdns": mdns}
            near.append(EMUClientObj(named[i], ipv4=first[i], plugs=plugins))
            far.append(EMUClientObj(asking[i], ipv4=second[i], plugs={"arp": {}, "icmp": {}, "mdns": {}}))
        play = {
            "rate": options.rate,
            "query_amount": options.queries,
            "min_client": asking.S(),
            "max_client": asking[options.clients - 1].S(),
            "client_step": 1,
            "hostname_template": "desk%v",
            "min_hostname": 1,
            "max_hostname": options.clients,
            "hostname_step": 1,
            "type": "A",
            "class": "IN",
        }
        ns = {"arp": {}, "icmp": {}}
        playing = {**ns, "mdns": {"auto_play": True, "auto_play_params": play}}
        return EMUProfile(
            [
                EMUNamespaceObj(EMUNamespaceKey(0), near, plugs=ns),
                EMUNamespaceObj(EMUNamespaceKey(1), far, plugs=playing),
            ]
        )


def register():
    return MdnsHosts()
