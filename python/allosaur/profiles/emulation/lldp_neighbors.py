"""Devices that announce themselves by LLDP, such as phones and access points at a switch.

It tests a switch's table of neighbors. What must hold: the switch lists every device, and forgets it two
minutes after `allosaur emu remove`.

Run it:  allosaur emu load lldp_neighbors -t clients=48
Tunables: clients (devices), timer (seconds between two announcements), name (the system name that they
announce, in a TLV of our own).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Mac

SYSTEM_NAME = 5
"""The type of the TLV, IEEE 802.1AB section 8.5.6."""


class LldpNeighbors:
    """A namespace of devices, each with a name of its own."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Devices that announce themselves by LLDP.")
        parser.add_argument("--clients", type=int, default=8)
        parser.add_argument("--timer", type=int, default=30)
        parser.add_argument("--name", default="phone")
        options = parser.parse_args(tunables)
        mac = Mac("02:00:00:70:00:01")
        devices = []
        for i in range(options.clients):
            name = f"{options.name}{i + 1}".encode()
            # Seven bits of type and nine of length.
            tlv = [SYSTEM_NAME << 1 | len(name) >> 8, len(name) & 0xFF, *name]
            lldp = {"timer": options.timer, "options": {"raw": tlv}}
            devices.append(EMUClientObj(mac[i], plugs={"lldp": lldp}))
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), devices))


def register():
    return LldpNeighbors()
