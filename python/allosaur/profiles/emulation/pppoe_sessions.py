"""Subscribers that dial in at a broadband gateway by PPPoE.

It tests an access concentrator: its sessions, its passwords, its pool of addresses. What must hold: every
subscriber has a session and an address (`allosaur emu show --mac 02:00:00:70:00:01`).

Run it:  allosaur emu load pppoe_sessions -t clients=100,password=secret
Tunables: clients (subscribers), user (their name; a number follows it unless there is one), password (of
all), timeout (seconds after which they ask again), vlan (their VLAN; 0 for none).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Mac


class PppoeSessions:
    """A namespace of subscribers."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Subscribers that dial in by PPPoE.")
        parser.add_argument("--clients", type=int, default=8)
        parser.add_argument("--user", default="subscriber")
        parser.add_argument("--password", default="secret")
        parser.add_argument("--timeout", type=int, default=5)
        parser.add_argument("--vlan", type=int, default=0)
        options = parser.parse_args(tunables)
        mac = Mac("02:00:00:70:00:01")
        subscribers = []
        for i in range(options.clients):
            user = f"{options.user}{i + 1}" if options.clients > 1 else options.user
            ppp = {"user": user, "password": options.password, "timeout": options.timeout}
            subscribers.append(EMUClientObj(mac[i], plugs={"ppp": ppp}))
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0, options.vlan), subscribers))


def register():
    return PppoeSessions()
