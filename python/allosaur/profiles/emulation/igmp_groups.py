"""Hosts that are in many multicast groups, with any source or with sources of their choice.

It tests IGMP snooping and multicast routing. What must hold: the device forwards the groups of
`allosaur emu groups` to this port, and no others.

Run it:  allosaur emu load igmp_groups -t groups=1000
Tunables: clients (hosts), groups (groups that are joined from the start), version (of IGMP, 1 to 3), mtu
(the longest report).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class IgmpGroups:
    """A namespace whose first client reports the groups of all."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that are in many multicast groups.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--groups", type=int, default=100)
        parser.add_argument("--version", type=int, default=3)
        parser.add_argument("--mtu", type=int, default=1500)
        options = parser.parse_args(tunables)
        mac, ipv4, group = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2"), Ipv4("239.1.0.1", mc=True)
        hosts = [EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg="16.0.0.1") for i in range(options.clients)]
        igmp = {
            "dmac": mac.V(),
            "mtu": options.mtu,
            "version": options.version,
            "vec": [group[i].V() for i in range(options.groups)],
        }
        plugins = {"arp": {}, "igmp": igmp}
        clients = {"arp": {}, "icmp": {}, "igmp": {}}
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs=plugins, def_c_plugs=clients))


def register():
    return IgmpGroups()
