"""Hosts on both ports of a device that answer pings, and can ping each other through it.

It tests that a device forwards between two networks, 16.0.0.0/8 and 17.0.0.0/8. What must hold: a host of
the one is answered by a host of the other, `allosaur emu ping 17.0.0.2`.

Run it:  allosaur emu load ping_hosts -t clients=50,device=1
Tunables: clients (hosts on each port, 1 to 65000), device (1 when a device with the addresses 16.0.0.1 and
17.0.0.1 is between the ports; 0 when they are joined, and each host's gateway is its counterpart).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class PingHosts:
    """A namespace for each port."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts on both ports that answer pings.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--device", type=int, default=0)
        options = parser.parse_args(tunables)
        plugins = {"arp": {}, "icmp": {}}
        networks = (Ipv4("16.0.0.1"), Ipv4("17.0.0.1"))
        namespaces = []
        for port, (own, other) in enumerate((networks, networks[::-1])):
            mac, hosts = Mac([2, 0, port, 0x70, 0, 1]), []
            for i in range(options.clients):
                gateway = own if options.device else other[i + 1]
                hosts.append(EMUClientObj(mac[i], ipv4=own[i + 1], ipv4_dg=gateway))
            namespaces.append(EMUNamespaceObj(EMUNamespaceKey(port), hosts, def_c_plugs=plugins))
        return EMUProfile(namespaces, def_ns_plugs=plugins)


def register():
    return PingHosts()
