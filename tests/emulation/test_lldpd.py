"""Emulated clients are neighbors of lldpd, by LLDP and by CDP."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from types import ModuleType
from typing import Any


def cdp(number: int) -> list[int]:
    """TLVs of a device: its name, address, port, capabilities, software and platform."""
    address = struct.pack("!I", 1) + b"\x01\x01\xcc\x00\x04" + bytes([10, 1, number >> 8, number & 0xFF])
    fields = {
        1: f"device-{number}".encode(),
        2: address,
        3: b"Ethernet1/1",
        4: struct.pack("!I", 1),
        5: b"emulated",
        6: b"allosaur",
    }
    return list(b"".join(struct.pack("!HH", kind, 4 + len(data)) + data for kind, data in fields.items()))


def plugins(number: int) -> dict[str, Any]:
    system_name = f"host-{number}".encode()
    raw = [5 << 1, len(system_name), *system_name]
    return {
        "lldp": {"timer": 2, "options": {"raw": raw}},
        "cdp": {"timer": 2, "ver": 2, "options": {"raw": cdp(number)}},
    }


def neighbors(host: Any, folder: Path, daemons: ModuleType) -> dict[str, set[tuple[str, str]]]:
    """lldpd's own table: MAC addresses or names, and names, by the protocol that said so."""
    words = [daemons.path("lldpcli"), "-u", str(folder / "lldpd"), "-f", "keyvalue", "show", "neighbors"]
    shown = host.run(*words)
    found: dict[str, set[tuple[str, str]]] = {"LLDP": set(), "CDPv2": set()}
    for part in re.split(r"(?=^lldp\.\w+\.via=)", shown, flags=re.MULTILINE)[1:]:
        facts = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)
        facts = {name.split(".", 2)[2]: value for name, value in facts.items()}
        chassis = facts.get("chassis.mac") or facts.get("chassis.local") or ""
        found[facts["via"]].add((chassis, facts["chassis.name"]))
    return found


def test_lldpd_knows_its_neighbors_by_both_protocols(
    network: Any, doors: Any, daemons: ModuleType, memory: Path
) -> None:
    host = daemons.Host(network, doors, "switch")
    # It shows at most half a megabyte of neighbors; each client is two.
    numbers = daemons.numbers(300)
    words = ["-d", "-cc", "-H", "0", "-I", host.link, "-u", str(memory / "lldpd"), "-S", "switch"]
    server = host.daemon(memory, "", "lldpd", *words)
    with server, daemons.segment(doors, host.near) as segment:
        lldpcli = [daemons.path("lldpcli"), "-u", str(memory / "lldpd")]
        doors.await_it(
            lambda: network.try_run(
                host.namespace, *lldpcli, "configure", "system", "max-neighbors", str(2 * len(numbers))
            ),
            "lldpd never listened",
        )
        segment.add(numbers, plugins)
        expected = {
            "LLDP": {(daemons.text(doors.mac(number)), f"host-{number}") for number in numbers},
            "CDPv2": {(f"device-{number}", f"device-{number}") for number in numbers},
        }
        segment.agree(lambda: neighbors(host, memory, daemons), expected)
        sent = segment.counters("lldp_client_cnt", numbers)
        assert all(counters["pktTx"] >= 1 for counters in sent)
