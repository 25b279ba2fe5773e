"""Hosts that lease an IPv6 address by DHCPv6.

It tests a DHCPv6 server or relay. What must hold: `allosaur emu counters dhcpv6` has as many pktRxAck as
there are hosts, and every host has an address under dhcp_ipv6.

Run it:  allosaur emu load dhcpv6_clients -t clients=1000
Tunables: clients (hosts), plain (1 leaves out the options that ask for more than an address).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Mac


class Dhcpv6Clients:
    """A namespace of hosts with link-local addresses."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that lease an IPv6 address by DHCPv6.")
        parser.add_argument("--clients", type=int, default=100)
        parser.add_argument("--plain", type=int, default=0)
        options = parser.parse_args(tunables)
        dhcpv6 = {"options": {"rm_or": True, "rm_vc": True}} if options.plain else {}
        mac = Mac("02:00:00:70:00:01")
        hosts = [EMUClientObj(mac[i]) for i in range(options.clients)]
        plugins = {"ipv6": {}, "dhcpv6": dhcpv6}
        namespace = EMUNamespaceObj(
            EMUNamespaceKey(0), hosts, plugs={"ipv6": {"dmac": mac.V()}}, def_c_plugs=plugins
        )
        return EMUProfile(namespace)


def register():
    return Dhcpv6Clients()
