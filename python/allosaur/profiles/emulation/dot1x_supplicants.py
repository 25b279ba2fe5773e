"""Hosts that log in at a switch by 802.1X.

It tests an authenticator and its RADIUS server. What must hold: every host is in (`allosaur emu show --mac
02:00:00:70:00:01` says EAP_DONE_OK), and with a wrong password none is.

Run it:  allosaur emu load dot1x_supplicants -t clients=24,password=secret
         allosaur emu load dot1x_supplicants -t method=peap,ca=ca.pem,anonymous=anonymous
Tunables: clients (hosts), user (their name; a number follows it unless there is one host), password (of all),
method (md5, mschapv2, tls, peap, ttls, ttls-pap, or any: md5 or mschapv2, as the switch asks), anonymous (the
name outside of a tunnel), ca (a PEM file: whom to trust, all without), cert (a PEM file: the certificate
of all, which tls needs), key (a PEM file: the key of cert).
"""

import argparse
from pathlib import Path

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac

FLAGS = {"any": 0, "mschapv2": 1, "md5": 2}
"""What each method leaves out of the others."""

OVER_TLS = ["tls", "peap", "ttls", "ttls-pap"]


def over_tls(options):
    """Return what all hosts have in common for a method over TLS."""
    method, _, phase2 = options.method.partition("-")
    shared = {"method": method, "password": options.password, "verify": options.ca is not None}
    files = {"ca_cert": options.ca, "client_cert": options.cert, "private_key": options.key}
    shared.update({key: path.read_text() for key, path in files.items() if path is not None})
    more = {"phase2": phase2, "anonymous_identity": options.anonymous}
    shared.update({key: text for key, text in more.items() if text})
    return shared


class Dot1xSupplicants:
    """A namespace of hosts with a name and a password each."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that log in at a switch by 802.1X.")
        parser.add_argument("--clients", type=int, default=8)
        parser.add_argument("--user", default="host")
        parser.add_argument("--password", default="secret")
        parser.add_argument("--method", choices=[*FLAGS, *OVER_TLS], default="any")
        parser.add_argument("--anonymous", default="")
        parser.add_argument("--ca", type=Path)
        parser.add_argument("--cert", type=Path)
        parser.add_argument("--key", type=Path)
        options = parser.parse_args(tunables)
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2")
        if options.method in OVER_TLS:
            common, own = over_tls(options), {}
        else:
            common, own = {}, {"password": options.password, "flags": FLAGS[options.method]}
        hosts = []
        for i in range(options.clients):
            user = f"{options.user}{i + 1}" if options.clients > 1 else options.user
            plugins = {"arp": {}, "icmp": {}, "dot1x": {"user": user, **own}}
            hosts.append(EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg="16.0.0.1", plugs=plugins))
        # What all have in common stands once, in the namespace.
        plugins = {"arp": {}, "icmp": {}, "dot1x": common}
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs=plugins))


def register():
    return Dot1xSupplicants()
