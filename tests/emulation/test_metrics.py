"""Emulated clients in metrics: how many there are, which are ready, and what their plugins count."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from allosaur import (
    EMUClient,
    EMUClientKey,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
    Ipv4,
    Mac,
    STLClient,
)
from allosaur.server import LocalServer

KEY = EMUNamespaceKey(0)
MAC, IPV4 = Mac("02:00:00:71:00:01"), Ipv4("16.1.0.1")
GATEWAY = Mac("02:00:00:71:ff:01")
CLIENTS = 1100
"""More than are summed up at once."""


def host(number: int) -> EMUClientObj:
    """The first ten know their gateway."""
    forced: dict[str, Any] = {"ipv4_force_dg": True, "ipv4_force_mac": GATEWAY} if number < 10 else {}
    return EMUClientObj(MAC[number], ipv4=IPV4[number], ipv4_dg="16.1.255.254", **forced)


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def test_emulated_clients_are_in_both_pages_of_metrics() -> None:
    with LocalServer(emu=True, http=0) as server:
        where = {"server": server.host, "sync_port": server.rpc_port, "async_port": server.pub_port}
        with (
            STLClient(**where) as client,
            EMUClient(server=server.host, sync_port=server.emu_port or 0) as emu,
        ):

            def value(name: str) -> Any:
                return client.get_metrics(["allosaur_emulation_"]).value(f"allosaur_emulation_{name}")

            def page() -> str:
                assert server.http_url is not None
                with urllib.request.urlopen(f"{server.http_url}/metrics", timeout=60) as response:
                    return str(response.read().decode())

            wait_until(lambda: value("clients") == 0)
            assert value("arp_pkt_tx_arp_query") is None, "no namespace has had the plugin"
            families = client.get_metrics(["allosaur_emulation_"]).families
            assert families["allosaur_emulation_dhcp_pkt_tx_discover"].kind == "counter"
            errors = [name for name, family in families.items() if family.is_error]
            assert "allosaur_emulation_transmit_drops" in errors

            plugs: dict[str, Any] = {"arp": {"timer": 1}, "lldp": {"timer": 1}}
            hosts = [host(number) for number in range(CLIENTS)]
            emu.load_profile(EMUProfile(EMUNamespaceObj(KEY, hosts, plugs={"arp": {}}, def_c_plugs=plugs)))
            wait_until(lambda: value("clients") == CLIENTS and value("ready_clients") == 10)
            assert value("namespaces") == 1
            wait_until(lambda: value("lldp_pkt_tx") >= 2 * CLIENTS)
            queries = emu.arp.get_counters(KEY, verbose=False)["arp"].get("pktTxArpQuery", 0)
            wait_until(lambda: value("arp_pkt_tx_arp_query") >= queries > 0)

            text = page()
            assert f"\nallosaur_emulation_clients {CLIENTS}\n" in text
            told = re.search(r"^allosaur_emulation_lldp_pkt_tx_total (\d+)$", text, re.MULTILINE)
            assert told is not None and int(told[1]) <= value("lldp_pkt_tx")
            named = set(re.findall(r"^# TYPE (allosaur_emulation_\w+) ", text, re.MULTILINE))
            series = client.get_metrics(["allosaur_emulation_"]).values
            assert named == set(series)

            # What those counted that are gone stays.
            before = value("lldp_pkt_tx")
            emu.remove_clients([EMUClientKey(KEY, MAC[number]) for number in range(CLIENTS)])
            emu.remove_ns([KEY])
            wait_until(lambda: value("clients") == 0 and value("namespaces") == 0)
            assert value("lldp_pkt_tx") >= before
