"""Hosts that ask servers on the other port over TCP, by a program: a request, and its response.

It tests what stands between with hosts that resolve, answer pings and open flows. What must hold:
`allosaur emu counters appsim` has no errors, and as many flows on both sides.

Run it:  allosaur emu load appsim_hosts -t clients=20,rate=5
Tunables: clients (hosts, and as many servers), rate (flows a second of each host), response (bytes), device
(1 when a device with the addresses 16.0.0.1 and 17.0.0.1 is between the ports; 0 when they are joined).
"""

import argparse
import base64

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac

REQUEST = b"GET / HTTP/1.1\r\nHost: allosaur\r\n\r\n"
PORT = 80


class AppsimHosts:
    """A namespace of hosts, and one of servers."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Hosts that ask servers over TCP.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--rate", type=float, default=1)
        parser.add_argument("--response", type=int, default=1000)
        parser.add_argument("--device", type=int, default=0)
        options = parser.parse_args(tunables)
        response = b"HTTP/1.1 200 OK\r\n\r\n" + b"*" * options.response
        programs = {
            "buf_list": [base64.b64encode(one).decode() for one in (REQUEST, response)],
            "program_list": [
                {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": len(response)}]},
                {"commands": [{"name": "rx", "min_bytes": len(REQUEST)}, {"name": "tx", "buf_index": 1}]},
            ],
            "tunable_list": [{}],
            "templates": [
                {
                    "client_template": {"program_index": 0, "tunable_index": 0},
                    "server_template": {"assoc": [{"port": PORT}], "program_index": 1},
                }
            ],
        }
        common = {"arp": {}, "icmp": {}, "transport": {}}
        networks = (Ipv4("16.0.0.1"), Ipv4("17.0.0.1"))
        namespaces = []
        for port, (own, other) in enumerate((networks, networks[::-1])):
            mac, hosts = Mac([2, 0, port, 0x70, 0, 1]), []
            for i in range(options.clients):
                stream = {
                    "cps": options.rate,
                    "t": "cs"[port],
                    "tid": 0,
                    "ipv6": False,
                    "stream": True,
                    "dst": f"{networks[1][i + 1].S()}:{PORT}",
                }
                plugins = {**common, "appsim": {"data": {"web": stream}}}
                gateway = own if options.device else other[i + 1]
                hosts.append(EMUClientObj(mac[i], ipv4=own[i + 1], ipv4_dg=gateway, plugs=plugins))
            namespaces.append(EMUNamespaceObj(EMUNamespaceKey(port), hosts))
        return EMUProfile(namespaces, def_ns_plugs={**common, "appsim": programs})


def register():
    return AppsimHosts()
