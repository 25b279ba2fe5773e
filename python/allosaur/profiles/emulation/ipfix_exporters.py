"""Routers that export records of flows by IPFIX or NetFlow 9 to a collector.

It tests a collector, or what stands before it. What must hold: the collector counts as many records as
`allosaur emu counters ipfix` (recordsDataSent).

Run it:  allosaur emu load ipfix_exporters -t clients=100,rate=10
Tunables: clients (routers), collector (its address), collector_port (its UDP port), rate (packets of data a
second, of each router), records (records of a packet), version (9 for NetFlow, 10 for IPFIX), stand_in (1
puts a host with the collector's address on port 1, which answers ARP; 0 when there is a collector).
"""

import argparse

from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class IpfixExporters:
    """A namespace of routers, each an observation domain of its own."""

    def get_profile(self, tunables):
        """Return the profile."""
        parser = argparse.ArgumentParser(description="Routers that export records of flows.")
        parser.add_argument("--clients", type=int, default=10)
        parser.add_argument("--collector", default="16.0.0.1")
        parser.add_argument("--collector_port", type=int, default=4739)
        parser.add_argument("--rate", type=float, default=3)
        parser.add_argument("--records", type=int, default=10)
        parser.add_argument("--version", type=int, default=10)
        parser.add_argument("--stand_in", type=int, default=1)
        options = parser.parse_args(tunables)
        fields = [
            {"name": "sourceIPv4Address", "type": 8, "length": 4, "data": [16, 0, 0, 1]},
            {"name": "destinationIPv4Address", "type": 12, "length": 4, "data": [48, 0, 0, 1]},
            {"name": "protocolIdentifier", "type": 4, "length": 1, "data": [17]},
            {"name": "octetDeltaCount", "type": 1, "length": 8, "data": [0, 0, 0, 0, 0, 0, 4, 0]},
        ]
        engine = {
            "engine_name": "sourceIPv4Address",
            "engine_type": "uint",
            "params": {"size": 2, "offset": 2, "op": "inc", "min": 1, "max": 1000},
        }
        generator = {
            "name": "flows",
            "template_id": 260,
            "rate_pps": options.rate,
            "data_records_num": options.records,
            "fields": fields,
            "engines": [engine],
        }
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("16.0.0.2")
        routers = []
        for i in range(options.clients):
            ipfix = {
                "netflow_version": options.version,
                "dst": f"{options.collector}:{options.collector_port}",
                "domain_id": i + 1,
                "generators": [generator],
            }
            plugins = {"arp": {}, "icmp": {}, "transport": {}, "ipfix": ipfix}
            routers.append(EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg=options.collector, plugs=plugins))
        namespaces = [EMUNamespaceObj(EMUNamespaceKey(0), routers)]
        if options.stand_in:
            host = EMUClientObj("02:00:01:70:00:01", ipv4=options.collector, plugs={"arp": {}, "icmp": {}})
            namespaces.append(EMUNamespaceObj(EMUNamespaceKey(1), host))
        return EMUProfile(namespaces, def_ns_plugs={"arp": {}, "icmp": {}})


def register():
    return IpfixExporters()
