"""Hosts that find their router and their addresses by neighbor discovery, and join multicast groups by MLD.

It tests a router's advertisements and its MLD querier. What must hold: each host has an address of the
router's prefix (`allosaur emu show --mac 02:00:00:70:00:01`), and the router has the groups.

Run it:  allosaur emu load ipv6_hosts -t clients=200,groups=16
Tunables: clients (hosts), groups (multicast groups that are joined), version (of MLD, 1 or 2), fixed (1
gives each host an address of 2001:db8:1::/64 and the gateway 2001:db8:1::1, too).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv6, Mac


class Ipv6Hosts:
    """A namespace whose first client speaks for its groups."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that speak neighbor discovery and MLD.")
        parser.add_argument("--clients", type=int, default=50)
        parser.add_argument("--groups", type=int, default=4)
        parser.add_argument("--version", type=int, default=2)
        parser.add_argument("--fixed", type=int, default=0)
        options = parser.parse_args(tunables)
        mac, ipv6, group = Mac("02:00:00:70:00:01"), Ipv6("2001:db8:1::2"), Ipv6("ff05::db8:1")
        hosts = []
        for i in range(options.clients):
            addresses = {"ipv6": ipv6[i], "dg_ipv6": "2001:db8:1::1"} if options.fixed else {}
            hosts.append(EMUClientObj(mac[i], **addresses))
        groups = [group[i].V() for i in range(options.groups)]
        plugins = {"ipv6": {"dmac": mac.V(), "version": options.version, "vec": groups}}
        namespace = EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs=plugins, def_c_plugs={"ipv6": {}})
        return EMUProfile(namespace)


def register():
    return Ipv6Hosts()
