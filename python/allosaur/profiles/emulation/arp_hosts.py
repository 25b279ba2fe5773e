"""Hosts that resolve their gateway and answer ARP.

It tests the ARP table of a device, and how fast it learns. What must hold: every host finds the gateway
(`allosaur emu neighbors` says complete), and the device finds every host.

Run it:  allosaur emu load arp_hosts -t clients=1000
Tunables: clients (hosts, 1 to 65000), port (the port that they are on), vlan (their VLAN; 0 for none),
refresh (seconds after which a host asks for its gateway again).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class ArpHosts:
    """A namespace of hosts with one gateway."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that resolve their gateway and answer ARP.")
        parser.add_argument("--clients", type=int, default=100)
        parser.add_argument("--port", type=int, default=0)
        parser.add_argument("--vlan", type=int, default=0)
        parser.add_argument("--refresh", type=int, default=60)
        options = parser.parse_args(tunables)
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2")
        plugins = {"arp": {"timer": options.refresh}}
        hosts = [EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg="16.0.0.1") for i in range(options.clients)]
        key = EMUNamespaceKey(options.port, options.vlan)
        return EMUProfile(EMUNamespaceObj(key, hosts, plugs={"arp": {}}, def_c_plugs=plugins))


def register():
    return ArpHosts()
