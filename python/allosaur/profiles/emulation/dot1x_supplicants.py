"""Hosts that log in at a switch by 802.1X.

It tests an authenticator and its RADIUS server. What must hold: every host is in (`allosaur emu show --mac
02:00:00:70:00:01` says EAP_DONE_OK), and with a wrong password none is.

Run it:  allosaur emu load dot1x_supplicants -t clients=24,password=secret
Tunables: clients (hosts), user (their name; a number follows it unless there is one host), password (of all),
method (md5, mschapv2, or any: what the switch asks for first).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac

FLAGS = {"any": 0, "mschapv2": 1, "md5": 2}
"""What each method leaves out of the others."""


class Dot1xSupplicants:
    """A namespace of hosts with a name and a password each."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that log in at a switch by 802.1X.")
        parser.add_argument("--clients", type=int, default=8)
        parser.add_argument("--user", default="host")
        parser.add_argument("--password", default="secret")
        parser.add_argument("--method", choices=FLAGS, default="any")
        options = parser.parse_args(tunables)
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2")
        hosts = []
        for i in range(options.clients):
            user = f"{options.user}{i + 1}" if options.clients > 1 else options.user
            dot1x = {"user": user, "password": options.password, "flags": FLAGS[options.method]}
            plugins = {"arp": {}, "icmp": {}, "dot1x": dot1x}
            hosts.append(EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg="16.0.0.1", plugs=plugins))
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs={"arp": {}, "icmp": {}}))


def register():
    return Dot1xSupplicants()
