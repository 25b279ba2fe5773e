"""Hosts that lease their addresses by DHCP, and answer ARP and pings once they have one.

It tests a DHCP server: how many leases it gives, how fast, and whether it renews them. What must hold:
`allosaur emu counters dhcp` has as many pktRxAck as there are hosts, and no pktRxNack.

Run it:  allosaur emu load dhcp_clients -t clients=1000
Tunables: clients (hosts), discover (seconds between two DISCOVER), request (seconds between two REQUEST),
vendor (what they say that they are, option 60; empty for nothing), vlan (their VLAN; 0 for none).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Mac


class DhcpClients:
    """A namespace of hosts without addresses."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that lease their addresses by DHCP.")
        parser.add_argument("--clients", type=int, default=100)
        parser.add_argument("--discover", type=int, default=5)
        parser.add_argument("--request", type=int, default=10)
        parser.add_argument("--vendor", default="")
        parser.add_argument("--vlan", type=int, default=0)
        options = parser.parse_args(tunables)
        dhcp = {"timerd": options.discover, "timero": options.request}
        if options.vendor:
            names = ("discoverDhcpClassIdOption", "requestDhcpClassIdOption")
            dhcp["options"] = dict.fromkeys(names, options.vendor)
        mac = Mac("02:00:00:70:00:01")
        hosts = [EMUClientObj(mac[i]) for i in range(options.clients)]
        plugins = {"arp": {}, "icmp": {}, "dhcp": dhcp}
        key = EMUNamespaceKey(0, options.vlan)
        return EMUProfile(EMUNamespaceObj(key, hosts, plugs={"arp": {}, "icmp": {}}, def_c_plugs=plugins))


def register():
    return DhcpClients()
