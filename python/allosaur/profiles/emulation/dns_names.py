"""Name servers on one port, and a resolver for each on the other that asks it for names, again and again.

It tests what stands between: a router, a NAT, a firewall that reads DNS. What must hold: `allosaur emu
counters dns` has as many responses as queries.

Run it:  allosaur emu load dns_names -t clients=20,rate=50
Tunables: clients (resolvers, and as many servers), names (names that each server knows: host1.example and
so on), rate (queries a second, of all resolvers together), queries (how many; 0 for no end), device (1 when
a device with the addresses 16.0.0.1 and 17.0.0.1 is between the ports; 0 when they are joined).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class DnsNames:
    """A namespace with servers, and one with resolvers that play by themselves."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Name servers, and resolvers that ask them.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--names", type=int, default=8)
        parser.add_argument("--rate", type=float, default=10)
        parser.add_argument("--queries", type=int, default=0)
        parser.add_argument("--device", type=int, default=0)
        options = parser.parse_args(tunables)
        answer, near, far = Ipv4("48.0.0.1"), Ipv4("16.0.0.1"), Ipv4("17.0.0.1")
        names = {
            f"host{i + 1}.example": [{"type": "A", "class": "IN", "answer": answer[i].S()}]
            for i in range(options.names)
        }
        common = {"arp": {}, "icmp": {}, "transport": {}}
        first, mac = Mac("02:00:00:70:00:01"), Mac("02:00:01:70:00:01")
        servers, resolvers = [], []
        for i in range(options.clients):
            server, resolver = near[i + 1], far[i + 1]
            dns = {"name_server": True, "database": names}
            gateway = near if options.device else resolver
            plugins = {**common, "dns": dns}
            servers.append(EMUClientObj(first[i], ipv4=server, ipv4_dg=gateway, plugs=plugins))
            gateway = far if options.device else server
            plugins = {**common, "dns": {"dns_server_ip": server.S()}}
            resolvers.append(EMUClientObj(mac[i], ipv4=resolver, ipv4_dg=gateway, plugs=plugins))
        play = {
            "rate": options.rate,
            "query_amount": options.queries,
            "min_client": mac.S(),
            "max_client": mac[options.clients - 1].S(),
            "client_step": 1,
            "hostname_template": "host%v.example",
            "min_hostname": 1,
            "max_hostname": options.names,
            "hostname_step": 1,
            "type": "A",
            "class": "IN",
        }
        plain = {"arp": {}, "icmp": {}}
        asking = {**plain, "dns": {"auto_play": True, "auto_play_params": play}}
        return EMUProfile(
            [
                EMUNamespaceObj(EMUNamespaceKey(0), servers, plugs=plain),
                EMUNamespaceObj(EMUNamespaceKey(1), resolvers, plugs=asking),
            ]
        )


def register():
    return DnsNames()
