"""A thousand emulated clients export flows to nfcapd, by IPFIX and NetFlow 9."""

from __future__ import annotations

import signal
import struct
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PORT = 9995
RECORDS = 5
COUNTERS = "ipfix_c_cnt"
# Name, number and bytes; what a NetFlow 9 exporter calls them is the same (RFC 7011, section 4).
FIELDS = {
    "sourceIPv4Address": (8, 4),
    "destinationIPv4Address": (12, 4),
    "protocolIdentifier": (4, 1),
    "sourceTransportPort": (7, 2),
    "destinationTransportPort": (11, 2),
    "octetDeltaCount": (1, 8),
    "packetDeltaCount": (2, 8),
}


def exporter(number: int, version: int, destination: str) -> dict[str, Any]:
    """Plugins of a client: flows of UDP, each of another port, whose bytes tell the client's number."""
    values = {
        "sourceIPv4Address": bytes([16, 0, number >> 8, number & 0xFF]),
        "destinationIPv4Address": bytes([48, 0, 0, 1]),
        "protocolIdentifier": b"\x11",
        "sourceTransportPort": struct.pack("!H", 1024),
        "destinationTransportPort": struct.pack("!H", 53),
        "octetDeltaCount": struct.pack("!Q", 1000 * number),
        "packetDeltaCount": struct.pack("!Q", number),
    }
    fields = [
        {"name": name, "type": FIELDS[name][0], "length": len(value), "data": list(value)}
        for name, value in values.items()
    ]
    engine = {
        "engine_name": "sourceTransportPort",
        "engine_type": "uint",
        "params": {"size": 2, "offset": 0, "op": "inc", "min": 1024, "max": 65535},
    }
    generator = {
        "name": "flows",
        "template_id": 260,
        "rate_pps": 1,
        "template_rate_pps": 1,
        "data_records_num": RECORDS,
        "fields": fields,
        "engines": [engine],
    }
    init = {
        "netflow_version": version,
        "dst": destination,
        "domain_id": number,
        "max_data_records": 2 * RECORDS,
        "max_template_records": 2,
        "generators": [generator],
    }
    return {"arp": {}, "transport": {}, "ipfix": init}


def flows(host: Any, folder: Path, daemons: ModuleType) -> Counter[tuple[str, int, int]]:
    """nfcapd's own files, read by nfdump: how many flows each source has, with their packets and bytes."""
    shown = host.run(daemons.path("nfdump"), "-R", str(folder), "-q", "-N", "-o", "fmt:%sa %pkt %byt")
    lines = (line.split() for line in shown.splitlines())
    return Counter((words[0], int(words[1]), int(words[2])) for words in lines if len(words) == 3)


@pytest.mark.parametrize("version", [10, 9], ids=["ipfix", "netflow9"])
def test_nfcapd_has_every_flow_of_a_thousand_exporters(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path, version: int
) -> None:
    host = daemons.Host(network, doors, "collector")
    numbers = daemons.numbers()
    files = tmp_path / "files"
    files.mkdir()
    words = ["-l", str(files), "-p", str(PORT), "-b", daemons.HOST_IPV4, "-B", str(8 << 20)]
    collector = host.daemon(tmp_path, "Startup", "nfcapd", *words)
    with collector, daemons.segment(doors, host.near) as segment:
        segment.add(
            numbers,
            lambda number: exporter(number, version, f"{daemons.HOST_IPV4}:{PORT}"),
            ipv4=lambda number: doors.ipv4_bytes(doors.ipv4(number)),
            ipv4_dg=doors.ipv4_bytes(daemons.HOST_IPV4),
        )
        counters = segment.await_counters(COUNTERS, numbers, recordsDataSent=2 * RECORDS)
        sent = {number: one["recordsDataSent"] for number, one in zip(numbers, counters, strict=True)}
        collector.signal(signal.SIGTERM)
    expected = {
        (f"16.0.{number >> 8}.{number & 0xFF}", number, 1000 * number): sent[number] for number in numbers
    }
    assert flows(host, files, daemons) == expected
    assert "Sequence Errors: 0, Bad Packets: 0" in collector.log()
