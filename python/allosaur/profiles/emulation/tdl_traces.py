"""Devices that send traces in Cisco's TDL to a collector.

It tests a collector of telemetry. What must hold: it reads as many objects as `allosaur emu counters tdl`
(pktsTx), each with the next index.

Run it:  allosaur emu load tdl_traces -t clients=10,rate=50
Tunables: clients (devices), collector (its address), collector_port (its UDP port), rate (objects a second,
of each device), stand_in (1 puts a host with the collector's address on port 1, which answers ARP; 0 when
there is a collector).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class TdlTraces:
    """A namespace of devices whose objects count."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Devices that send traces in TDL.")
        parser.add_argument("--clients", type=int, default=4)
        parser.add_argument("--collector", default="16.0.0.1")
        parser.add_argument("--collector_port", type=int, default=8080)
        parser.add_argument("--rate", type=float, default=3)
        parser.add_argument("--stand_in", type=int, default=1)
        options = parser.parse_args(tunables)
        entries = [{"name": "index", "type": "uint8"}]
        counting = {"size": 1, "offset": 0, "min": 1, "max": 255, "op": "inc"}
        tdl = {
            "dst": f"{options.collector}:{options.collector_port}",
            "rate_pps": options.rate,
            "header": {"magic": 255, "fru": 255, "uuid": 3650, "tenant_id": 5, "luid": [0] * 16},
            "meta_data": [{"name": "key", "type": "type_def", "data": {"luid": [1], "entries": entries}}],
            "object": {"name": "trace", "type": "key"},
            "init_values": [{"path": "trace.index", "value": 1}],
            "engines": [{"engine_name": "trace.index", "engine_type": "uint", "params": counting}],
        }
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2")
        plugins = {"arp": {}, "icmp": {}, "transport": {}, "tdl": tdl}
        devices = [
            EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg=options.collector, plugs=plugins)
            for i in range(options.clients)
        ]
        namespaces = [EMUNamespaceObj(EMUNamespaceKey(0), devices)]
        if options.stand_in:
            host = EMUClientObj("02:00:01:70:00:01", ipv4=options.collector, plugs={"arp": {}, "icmp": {}})
            namespaces.append(EMUNamespaceObj(EMUNamespaceKey(1), host))
        return EMUProfile(namespaces, def_ns_plugs={"arp": {}, "icmp": {}})


def register():
    return TdlTraces()
