"""A DHCP server on one port, and hosts on the other that lease from it.

It tests a switch or a DHCP relay between them; without one the two ports are joined. What must hold: all
hosts have addresses of the pool (`allosaur emu show --port 1`).

Run it:  allosaur emu load dhcp_server -t clients=200
Tunables: clients (hosts, at most 65000), lease (seconds that a lease lasts), server_port (the port of the
server), client_port (the port of the hosts; -1 for none).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Mac


class DhcpServer:
    """A namespace with one server, and one with hosts."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="A DHCP server, and hosts that lease from it.")
        parser.add_argument("--clients", type=int, default=50)
        parser.add_argument("--lease", type=int, default=300)
        parser.add_argument("--server_port", type=int, default=0)
        parser.add_argument("--client_port", type=int, default=1)
        options = parser.parse_args(tunables)
        pool = {"min": "16.0.0.10", "max": "16.0.255.250", "prefix": 16, "exclude": ["16.0.1.1"]}
        dhcpsrv = {
            "default_lease": options.lease,
            "min_lease": min(60, options.lease),
            "max_lease": max(600, options.lease),
            "pools": [pool],
        }
        plugins = {"arp": {}, "icmp": {}, "dhcpsrv": dhcpsrv}
        server = EMUClientObj("02:00:00:60:00:01", ipv4="16.0.0.1", plugs=plugins)
        namespaces = [EMUNamespaceObj(EMUNamespaceKey(options.server_port), server)]
        if options.client_port >= 0:
            mac, plugins = Mac("02:00:00:70:00:01"), {"arp": {}, "icmp": {}, "dhcp": {}}
            hosts = [EMUClientObj(mac[i]) for i in range(options.clients)]
            namespaces.append(
                EMUNamespaceObj(EMUNamespaceKey(options.client_port), hosts, def_c_plugs=plugins)
            )
        return EMUProfile(namespaces, def_ns_plugs={"arp": {}, "icmp": {}})


def register():
    return DhcpServer()
