"""Hosts with sockets: TCP and UDP for the plugins that talk to servers, with settings of TCP.

DNS is what talks here, over UDP. What must hold: `allosaur emu counters transport` has as many packets
received as sent.

Run it:  allosaur emu load transport_sockets -t clients=10,server=16.0.0.1
Tunables: clients (hosts), server (the name server that they ask), mss (the longest segment of TCP), window
(segments that TCP begins with), buffer (bytes of TCP's buffers), rate (queries a second, of all together).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class TransportSockets:
    """A namespace of hosts that ask a name server."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts with sockets of TCP and UDP.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--server", default="16.0.0.1")
        parser.add_argument("--mss", type=int, default=1460)
        parser.add_argument("--window", type=int, default=10)
        parser.add_argument("--buffer", type=int, default=32768)
        parser.add_argument("--rate", type=float, default=10)
        options = parser.parse_args(tunables)
        transport = {
            "mss": options.mss,
            "initwnd": options.window,
            "rxbufsize": options.buffer,
            "txbufsize": options.buffer,
        }
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2")
        hosts = [EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg="16.0.0.1") for i in range(options.clients)]
        clients = {
            "arp": {},
            "icmp": {},
            "transport": transport,
            "dns": {"dns_server_ip": options.server},
        }
        play = {
            "rate": options.rate,
            "query_amount": 0,
            "min_client": mac.S(),
            "max_client": mac[options.clients - 1].S(),
            "client_step": 1,
            "hostname_template": "host%v.example",
            "min_hostname": 1,
            "max_hostname": 8,
            "hostname_step": 1,
            "type": "A",
            "class": "IN",
        }
        plugins = {"arp": {}, "icmp": {}, "dns": {"auto_play": True, "auto_play_params": play}}
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs=plugins, def_c_plugs=clients))


def register():
    return TransportSockets()
