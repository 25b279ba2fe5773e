"""Devices that announce themselves by CDP.

It tests a switch's table of neighbors, and whether it keeps CDP off ports where it is off. What must hold:
the switch lists every device.

Run it:  allosaur emu load cdp_neighbors -t clients=48
Tunables: clients (devices), timer (seconds between two announcements), version (of CDP, 1 or 2), name (the
device's name, which a number follows).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Mac

DEVICE_ID = 1
"""The type of the TLV with the name of a device."""


class CdpNeighbors:
    """A namespace of devices, each with a name of its own."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Devices that announce themselves by CDP.")
        parser.add_argument("--clients", type=int, default=8)
        parser.add_argument("--timer", type=int, default=30)
        parser.add_argument("--version", type=int, default=2)
        parser.add_argument("--name", default="phone")
        options = parser.parse_args(tunables)
        mac = Mac("02:00:00:70:00:01")
        devices = []
        for i in range(options.clients):
            name = f"{options.name}{i + 1}".encode()
            tlv = [0, DEVICE_ID, 0, len(name) + 4, *name]
            cdp = {"timer": options.timer, "ver": options.version, "options": {"raw": tlv}}
            devices.append(EMUClientObj(mac[i], plugs={"cdp": cdp}))
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), devices))


def register():
    return CdpNeighbors()
