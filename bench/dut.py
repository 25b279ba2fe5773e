"""Sends through a Linux router and a NAT, and accounts for all packets: `sudo .venv/bin/python bench/dut.py`.

Two ports on veth, and between them, in a network namespace, the device. Four streams send 100 kpps
together for 10 seconds: three that are counted, one of them from a thousand hosts and ports, and one
whose latency is measured. Then our counters are put beside the kernel's: interfaces, rules of nftables,
the NAT's connections. The exit code is 1 when a packet is missing that nobody says was lost.

It needs root, nftables and conntrack.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from allosaur import STLVM, STLFlowLatencyStats, STLFlowStats, STLPktBuilder, STLStream, STLTXCont
from allosaur.api import IP, UDP, Ether
from allosaur.server import LocalServer
from common import Result, machine, progress, server_binary, wide_console
from rich.console import Console
from rich.table import Table

# The tests' own networks and devices.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "ports"))
import device
import network

RATE_PPS, SECONDS = 100_000, 10.0
MANY, LATENCY = 3, 4
#: The packets of each group without FCS in bytes, and their share of the load.
STREAMS = {1: (60, 0.3), 2: (1514, 0.1), MANY: (128, 0.5), LATENCY: (100, 0.1)}
HOSTS, PORTS = 250, 4
QUANTILES = ("total_min", "p50", "average", "p99", "p99_9", "total_max")


def main() -> int:
    """Measure both devices, print the tables, and keep the numbers if asked to."""
    options = _options()
    if problem := network.why_not() or _why_no_device():
        print(f"error: {problem}", file=sys.stderr)
        return 2
    results: Result = {"machine": machine(), "rate_pps": options.rate, "seconds": options.seconds, "runs": []}
    for name in ("router", "NAT"):
        progress(f"{options.rate:,} packets per second through the {name} for {options.seconds:g} s")
        results["runs"].append(_run(name, options))
    progress("")
    console = wide_console()
    _show_balance(results["runs"], console)
    _show_groups(results["runs"], console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    unexplained = [name for run in results["runs"] for name, missing in run["missing"].items() if missing]
    if unexplained:
        print(f"error: nobody says what became of packets: {', '.join(unexplained)}", file=sys.stderr)
    return 1 if unexplained else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", type=int, default=RATE_PPS, help="packets per second [100000]")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to send [10]")
    parser.add_argument("--kind", default="af_packet", help="kind of port: af_packet, af_xdp [af_packet]")
    parser.add_argument("--poll", choices=["adaptive", "busy"], default="adaptive", help="how threads wait")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=server_binary, default="", help="the binary")
    return parser.parse_args()


def _why_no_device() -> str | None:
    with network.Network() as space:
        return device.why_not(space)


def _run(name: str, options: argparse.Namespace) -> Result:
    """Send through one device. Gives all counters, and what nobody accounts for."""
    with network.Network() as space:
        between = device.Nat(space) if name == "NAT" else device.Router(space)
        ports = [f"{options.kind}:{port}" for port in between.ports]
        server = LocalServer(ports=ports, binary=options.server, options=["--poll", options.poll])
        with server, server.client() as client:
            client.reset()
            client.set_l2_mode(port=0, dst_mac=between.mac(0))
            client.add_streams([_stream(pg_id, options.rate) for pg_id in STREAMS], ports=[0])
            client.clear_stats()
            client.start(ports=[0], duration=options.seconds)
            client.wait_on_traffic(ports=[0])
            time.sleep(0.5)
            stats = client.get_stats()
        return {"device": name, **_balance(stats, between, options), "groups": _groups(stats)}


def _stream(pg_id: int, rate_pps: int) -> STLStream:
    size, share = STREAMS[pg_id]
    packet = Ether() / IP(src="10.0.0.2", dst="10.0.1.2") / UDP(sport=1024 + pg_id, dport=12)
    vm = None
    if pg_id == MANY:
        vm = STLVM()
        last_port = 2000 + PORTS - 1
        vm.tuple_var(
            name="who", ip_min="10.0.0.2", ip_max=f"10.0.0.{HOSTS + 1}", port_min=2000, port_max=last_port
        )
        vm.write(fv_name="who.ip", pkt_offset="IP.src")
        vm.write(fv_name="who.port", pkt_offset="UDP.sport")
        vm.fix_chksum_hw(l3_offset="IP", l4_offset="UDP", l4_type=11)
    return STLStream(
        packet=STLPktBuilder(pkt=packet / bytes(size - len(packet)), vm=vm),
        mode=STLTXCont(pps=rate_pps * share),
        flow_stats=STLFlowLatencyStats(pg_id) if pg_id == LATENCY else STLFlowStats(pg_id),
    )


def _balance(stats: Any, between: Any, options: argparse.Namespace) -> Result:
    """Put each place that a packet passes beside the one before it."""
    kernel, dropped = between.counters(), between.protocol()
    asked = round(options.rate * options.seconds)
    lost_by_us = stats[1]["rx_lost_packets"]
    lost_there, lost_here = between.lost(0), between.lost(1)
    if options.kind == "af_xdp":
        # The driver counts what its socket had no room for, too.
        lost_here -= min(lost_here, lost_by_us)
    counts = {
        "asked": asked,
        "sent": stats[0]["opackets"],
        "late": stats[0]["missed_packets"],
        "kernel in": kernel["in0"],
        "kernel dropped": dropped["InDiscards"] + dropped["InHdrErrors"] + kernel.get("invalid", 0),
        "kernel out": kernel["out1"],
        "received": stats[1]["ipackets"],
        "lost by us": lost_by_us,
        "lost on veth": lost_there + lost_here,
    }
    offered = counts["sent"] + counts["late"]
    missing = {
        # Of each stream one more packet or less may be due before the end.
        "asked, but neither sent nor late": asked - offered if abs(asked - offered) > len(STREAMS) else 0,
        "sent, but not in the kernel": counts["sent"] - counts["kernel in"] - lost_there,
        "in the kernel, but neither out nor dropped": counts["kernel in"]
        - counts["kernel out"]
        - counts["kernel dropped"],
        "out of the kernel, but neither received nor lost": counts["kernel out"]
        - counts["received"]
        - counts["lost by us"]
        - lost_here,
    }
    interfaces = {"in": between.received(0), "out": between.sent(1)}
    missing["seen by an interface, but not by the rules"] = interfaces["in"] - counts["kernel in"]
    missing["sent by an interface, but not by the rules"] = interfaces["out"] - counts["kernel out"]
    flows = None
    if isinstance(between, device.Nat):
        flows = between.connection_count()
        missing["connections of the NAT"] = flows - (HOSTS * PORTS + len(STREAMS) - 1)
    return {"counts": counts, "interfaces": interfaces, "connections": flows, "missing": missing}


def _groups(stats: Any) -> list[Result]:
    groups = []
    for pg_id in STREAMS:
        flow = stats["flow_stats"][pg_id]
        group: Result = {"group": pg_id, "sent": flow["tx_pkts"][0], "received": flow["rx_pkts"][1]}
        if pg_id == LATENCY:
            measured = stats["latency"][pg_id]
            group |= {name: measured["latency"][name] for name in QUANTILES}
            group["errors"] = {name: count for name, count in measured["err_cntrs"].items() if count}
        groups.append(group)
    return groups


def _show_balance(runs: list[Result], console: Console) -> None:
    table = Table("packets", *(run["device"] for run in runs), title="every packet, from place to place")
    for place in runs[0]["counts"]:
        table.add_row(place, *(f"{run['counts'][place]:,}" for run in runs))
    flows = ["-" if run["connections"] is None else f"{run['connections']:,}" for run in runs]
    table.add_row("connections", *flows)
    table.add_row("unexplained", *(f"{sum(abs(n) for n in run['missing'].values()):,}" for run in runs))
    console.print(table)


def _show_groups(runs: list[Result], console: Console) -> None:
    columns = ["device", "stream", "sent", "received", "lost"]
    table = Table(*columns, title="by stream; latency in µs")
    for name in ("lowest", "median", "average", "99 %", "99.9 %", "highest", "errors"):
        table.add_column(name)
    for run in runs:
        for group in run["groups"]:
            size = STREAMS[group["group"]][0]
            what = {MANY: f" {HOSTS * PORTS:,} flows", LATENCY: " latency"}.get(group["group"], "")
            cells = [f"{group['sent']:,}", f"{group['received']:,}", f"{group['sent'] - group['received']:,}"]
            if "errors" in group:
                cells += [f"{group[name]:,.1f}" for name in QUANTILES]
                cells.append(
                    ", ".join(f"{name} {count:,}" for name, count in group["errors"].items()) or "none"
                )
            table.add_row(run["device"], f"{size + 4} B{what}", *cells)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
