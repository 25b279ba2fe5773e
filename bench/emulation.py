"""Measures emulated clients on this machine, on one data thread and ports in memory.

    crate     the clients alone, without server or ports: `measure` of crates/emulation (needs cargo)
    clients   clients with ARP, ICMP, IPv6 and DHCP each: added a second by requests, memory of each,
              and the share of a core that all of them need while nobody asks them anything
    answers   ARP and echo requests of a stream to all clients, and how many are answered
    python    clients of a profile, made and added with the Python client: clients a second of its own
              processor time, given as addresses with default plugins, and as lists with plugins of their own
    leases    clients that take leases from a DHCP server on the other port, which the same thread
              emulates: leases a second while they are added

Rates are given by the clock and per second that the threads of frames ran, data and receive: neighbours on
the CPUs count in the first only. Run it with a release build, on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zmq
from allosaur import (
    STLVM,
    EMUClient,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
    Ipv4,
    Ipv6,
    Mac,
    STLPktBuilder,
    STLStream,
    STLTXCont,
)
from allosaur.server import LocalServer
from common import Result, cpu_seconds, machine, progress, server_binary, wide_console
from rich.console import Console
from rich.table import Table
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether

RESULTS = Path(__file__).parent / "results"
PLUGINS = ("arp", "icmp", "ipv6", "dhcp")
CLIENTS_A_REQUEST = 1_000
FIRST_IPV4 = 0x10000001
"""The address of the first client; the others follow."""
PEER_MAC = "02:00:ff:00:00:01"
FRAME_THREADS = ("data-0", "receive")
GOALS = {
    "clients added a second": 150_000,
    "clients of a profile added a second": 100_000,
    "memory a client, bytes": 1024,
    "ARP answers a second": 5_000_000,
    "echo answers a second": 5_000_000,
    "leases a second, all offers at once": 300_000,
    "leases a second while adding": 100_000,
    "idle share of a core": 0.05,
}
"""What the numbers are to reach, per second that the thread ran."""


def main() -> int:
    """Run what the command line asks for, print tables, keep the numbers in bench/results."""
    options = _options()
    console = wide_console()
    results: Result = {"machine": machine(), "binary": str(options.server)}
    sections: dict[str, Callable[[argparse.Namespace], Any]] = {
        "crate": crate,
        "clients": clients,
        "python": python,
        "answers": answers,
        "leases": leases,
    }
    table = Table("what", "by the clock", "per second of the thread", "goal", title="emulated clients")
    for name in options.only or sections:
        results[name] = sections[name](options)
        _rows(table, name, results[name])
    progress("")
    console.print(table)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = options.json or RESULTS / f"emulation-{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    Console().print(f"Kept in {path}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 clients and short runs")
    sections = ["crate", "clients", "python", "answers", "leases"]
    parser.add_argument("--only", nargs="+", choices=sections, help="sections to run")
    parser.add_argument("--clients", type=int, nargs="+", help="how many clients [100000 1000000]")
    parser.add_argument("--json", type=Path, help="file for the numbers [bench/results/emulation-TIME.json]")
    parser.add_argument("--server", type=server_binary, default="", help="the server's binary")
    options = parser.parse_args()
    options.clients = options.clients or ([10_000] if options.quick else [100_000, 1_000_000])
    options.seconds = 1.0 if options.quick else 5.0
    return options


def crate(options: argparse.Namespace) -> list[Result]:
    """The clients alone."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return []
    command = [cargo, "run", "--release", "--quiet", "-p", "allosaur-emulation", "--example", "measure", "--"]
    found = []
    for count in options.clients:
        progress(f"{count:,} clients without a server")
        words = [*command, str(count), *PLUGINS]
        output = subprocess.run(words, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
        found.append(json.loads(output.stdout))
    return found


def clients(options: argparse.Namespace) -> list[Result]:
    """Adding clients to a server, what they need, and what they cost when nothing happens."""
    return [_added(options, count) for count in options.clients]


def _added(options: argparse.Namespace, count: int) -> Result:
    messages = list(_messages(count, PLUGINS))
    with LocalServer(binary=options.server, emu=True) as server, Door(server) as door:
        door.call("ctx_add", tunnels=[{"vport": 0, "plugs": {name: {} for name in PLUGINS}}])
        progress(f"{count:,} clients are added")
        memory = _memory_bytes(server.pid)
        ran = Ran(server)
        for message in messages:
            door.send(message)
        result = {"clients": count, "added": ran.rates(count)}
        result["memory_bytes"] = (_memory_bytes(server.pid) - memory) / count
        result["memory_bytes_by_own_account"] = (
            door.call("ctx_resource_monitor_get")["memory"]["tableBytes"] / count
        )
        progress(f"{count:,} clients wait")
        result["idle_share"] = _idle_share(server, options)
        result["counters"] = door.call("ctx_cnt", mask=["txq", "veth"])
        return result


def _idle_share(server: LocalServer, options: argparse.Namespace) -> float:
    """The share of a core that a server takes while nobody asks it anything."""
    time.sleep(2.0)
    seconds: float = 2 * options.seconds
    before = cpu_seconds(server.pid)
    time.sleep(seconds)
    return (cpu_seconds(server.pid) - before) / seconds


def python(options: argparse.Namespace) -> list[Result]:
    """Profiles that are made and loaded with the Python client."""
    count = options.clients[0]
    results = []
    with (
        LocalServer(binary=options.server, emu=True) as server,
        EMUClient(server=server.host, sync_port=server.emu_port or 0, sync_timeout=60) as client,
    ):
        for what, make in (("addresses", _as_addresses), ("lists", _as_lists)):
            progress(f"{count:,} clients of a profile, as {what}")
            ran = Ran(server)
            began_s = time.process_time()
            profile = make(count)
            made_s = time.process_time()
            client.load_profile(profile)
            ended_s = time.process_time()
            results.append(
                {
                    "clients": count,
                    "what": what,
                    "added": {**ran.rates(count), "of_client": count / (ended_s - began_s)},
                    "making_s": made_s - began_s,
                    "sending_s": ended_s - made_s,
                }
            )
            client.remove_profile()
    return results


def _as_addresses(count: int) -> EMUProfile:
    mac, ipv4, ipv6 = Mac("02:00:00:00:00:00"), Ipv4("16.0.0.1"), Ipv6("2001:db8::1")
    gateway = Ipv4("16.255.0.1")
    plugs: dict[str, Any] = {name: {} for name in PLUGINS}
    hosts = [EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg=gateway, ipv6=ipv6[i]) for i in range(count)]
    return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs=plugs, def_c_plugs=plugs))


def _as_lists(count: int) -> EMUProfile:
    mac, ipv4, ipv6 = Mac("02:00:00:00:00:00"), Ipv4("16.0.0.1"), Ipv6("2001:db8::1")
    gateway = Ipv4("16.255.0.1")
    hosts = []
    for i in range(count):
        addresses = {"ipv4": ipv4[i].V(), "ipv4_dg": gateway.V(), "ipv6": ipv6[i].V()}
        own: dict[str, Any] = {name: {} for name in PLUGINS}
        hosts.append(EMUClientObj(mac[i].V(), **addresses, plugs=own))
    return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts))


def answers(options: argparse.Namespace) -> list[Result]:
    """Requests of a stream from port 0 to all clients of port 1, as fast as they come."""
    count = options.clients[0]
    with (
        LocalServer(binary=options.server, emu=True) as server,
        Door(server) as door,
        server.client() as client,
    ):
        door.call("ctx_add", tunnels=[{"vport": 1, "plugs": {name: {} for name in PLUGINS}}])
        for message in _messages(count, PLUGINS, port=1):
            door.send(message)
        client.reset(ports=[0, 1])
        results = []
        for name, packet in (("ARP", _arp), ("echo", _echo)):
            client.remove_all_streams(ports=[0])
            client.add_streams(STLStream(packet=packet(count), mode=STLTXCont()), ports=[0])
            rates = []
            for mpps in (1, 2, 3, 4, 5, 6, 8):
                progress(f"{name} requests to {count:,} clients, {mpps} Mpps")
                client.start(ports=[0], mult=f"{mpps}mpps", duration=-1, force=True)
                time.sleep(0.5)
                client.clear_stats()
                ran = Ran(server)
                time.sleep(options.seconds)
                stats = client.get_stats()
                rates.append({"mpps": mpps, **ran.rates(stats[1]["opackets"])})
                rates[-1]["asked"] = stats[0]["opackets"]
                client.stop(ports=[0])
            best = max(rates, key=lambda rate: float(rate["by_clock"]))
            results.append({"what": name, "clients": count, "best": best, "all": rates})
        return results


def _arp(count: int) -> STLPktBuilder:
    request = ARP(hwsrc=PEER_MAC, psrc="16.255.0.1", pdst="16.0.0.1")
    vm = STLVM()
    vm.var(name="client", min_value=0, max_value=count - 1, size=4, op="inc")
    vm.write(fv_name="client", pkt_offset="ARP.pdst", add_val=FIRST_IPV4)
    return STLPktBuilder(pkt=Ether(src=PEER_MAC, dst="ff:ff:ff:ff:ff:ff") / request, vm=vm)


def _echo(count: int) -> STLPktBuilder:
    header: Any = IP(src="16.255.0.1", dst="16.0.0.1")
    request = header / ICMP(id=7, seq=9) / bytes(18)
    vm = STLVM()
    vm.var(name="client", min_value=0, max_value=count - 1, size=4, op="inc")
    # Clients look whether a frame was sent to their MAC address, so both count on.
    vm.write(fv_name="client", pkt_offset=2)
    vm.write(fv_name="client", pkt_offset="IP.dst", add_val=FIRST_IPV4)
    vm.fix_chksum()
    return STLPktBuilder(pkt=Ether(src=PEER_MAC, dst="02:00:00:00:00:00") / request, vm=vm)


def leases(options: argparse.Namespace) -> list[Result]:
    """Clients of port 0 that take leases from a server among the clients of port 1."""
    return [_leased(options, count) for count in options.clients]


def _leased(options: argparse.Namespace, count: int) -> Result:
    plugins = ("arp", "icmp", "dhcp")
    messages = list(_messages(count, plugins, addresses=False))
    tunnel = {"vport": 1}
    mac = [2, 0, 0xFF, 0, 0, 2]
    pool = {"min": "10.0.0.2", "max": "10.63.255.250", "prefix": 8, "exclude": []}
    server_init = {"default_lease": 7200, "pools": [pool]}
    with LocalServer(binary=options.server, emu=True) as server, Door(server) as door:
        for port in (0, 1):
            door.call("ctx_add", tunnels=[{"vport": port, "plugs": {}}])
        host = {"mac": mac, "ipv4": [10, 0, 0, 1], "plugs": {"arp": {}, "dhcpsrv": server_init}}
        door.call("ctx_client_add", tun=tunnel, clients=[host])
        progress(f"{count:,} clients ask for leases")
        ran = Ran(server)
        for message in messages:
            door.send(message)
        added = ran.rates(count)
        acks, before = 0, -1
        # What was lost on the way is asked for again after seconds: not waited for.
        while acks != before and acks < count:
            before = acks
            time.sleep(0.2)
            found = door.call("dhcpsrv_c_cnt", tun=tunnel, mac=mac)
            acks = found.get("dhcpsrv", {}).get("pktTxAck", 0)
        result = {"clients": count, "added": added, "leased": acks, "leases": ran.rates(acks)}
        progress(f"{acks:,} clients hold leases")
        return {**result, "idle_share": _idle_share(server, options)}


def _messages(
    count: int, plugins: tuple[str, ...], port: int = 0, addresses: bool = True
) -> Iterator[tuple[str, str]]:
    """The method and the parameters of requests that add clients, as text without the closing brace."""
    plugs = json.dumps({name: {} for name in plugins})
    for first in range(0, count, CLIENTS_A_REQUEST):
        clients = []
        for number in range(first, min(first + CLIENTS_A_REQUEST, count)):
            octets = number.to_bytes(4, "big")
            text = f'{{"mac":{[2, 0, 0, *octets[1:]]},"plugs":{plugs}'
            if addresses:
                ipv4 = list((FIRST_IPV4 + number).to_bytes(4, "big"))
                ipv6 = [0x20, 0x01, *[0] * 10, *octets]
                text += f',"ipv4":{ipv4},"ipv4_dg":[16,255,0,1],"ipv6":{ipv6}'
            clients.append(text + "}")
        yield "ctx_client_add", f'{{"tun":{{"vport":{port}}},"clients":[{",".join(clients)}]'


class Door:
    """Requests to emulated clients."""

    def __init__(self, server: LocalServer) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, 60_000)
        self._socket.connect(f"tcp://{server.host}:{server.emu_port}")
        self._handle = ""
        self._handle = self.call("api_sync_v2", name="EMU", major=1, minor=1)["api_h"]

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.destroy(linger=0)

    def call(self, method: str, **params: Any) -> Any:
        """Do a request."""
        return self.send((method, json.dumps(params or {"all": True})[:-1]))

    def send(self, message: tuple[str, str]) -> Any:
        """Do a request that was made before."""
        method, params = message
        text = f'{params},"api_h":"{self._handle}"}}'
        self._socket.send_string(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{text}}}')
        reply = json.loads(self._socket.recv())
        if "error" in reply:
            raise SystemExit(f"{method}: {reply['error']['message']}")
        return reply["result"]


class Ran:
    """The time that has passed since this was made, and how much of it a server's threads ran."""

    def __init__(self, server: LocalServer) -> None:
        self._pid = server.pid
        self._began = time.monotonic()
        self._threads = self._ran()

    def _ran(self) -> dict[str, float]:
        """Seconds that each thread ran, by its name."""
        ran: dict[str, float] = {}
        for task in Path(f"/proc/{self._pid}/task").iterdir():
            name = (task / "comm").read_text(encoding="utf-8").strip()
            seconds = int((task / "schedstat").read_text(encoding="utf-8").split()[0]) / 1e9
            ran[name] = ran.get(name, 0.0) + seconds
        return ran

    def rates(self, events: int) -> Result:
        """So many events a second, by the clock and of the threads that frames pass."""
        elapsed = time.monotonic() - self._began
        now = self._ran()
        ran = {name: seconds - self._threads.get(name, 0.0) for name, seconds in now.items()}
        threads = max(sum(ran.get(name, 0.0) for name in FRAME_THREADS), 1e-9)
        return {
            "by_clock": events / elapsed,
            "of_thread": events / threads,
            "seconds": elapsed,
            "threads": {name: seconds for name, seconds in ran.items() if seconds > 0.001},
        }


def _memory_bytes(pid: int | None) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _rows(table: Table, name: str, found: list[Result]) -> None:
    """Add what a section found."""
    for result in found:
        many = f"{result['clients']:,} clients"
        if name == "crate":
            _crate_rows(table, many, result)
        elif name == "clients":
            _rate(table, f"{many}: added a second", "clients added a second", result["added"])
            _plain(table, f"{many}: memory each, bytes", "memory a client, bytes", result["memory_bytes"])
            own = "memory by the server's own account, bytes"
            _plain(table, f"{many}: {own}", own, result["memory_bytes_by_own_account"])
            _plain(table, f"{many}: idle share of a core", "idle share of a core", result["idle_share"])
        elif name == "python":
            what = "clients of a profile added a second"
            added = result["added"]
            row = f"{many} as {result['what']}: {what}, per second of the Python client"
            table.add_row(row, _text(added["by_clock"]), _text(added["of_client"]), _goal(what))
        elif name == "answers":
            what = f"{result['what']} answers a second"
            _rate(table, f"{many}: {what}", what, result["best"])
        else:
            what = "leases a second while adding"
            leased = f"{many} ({result['leased']:,} leased)"
            _rate(table, f"{leased}: {what}", what, result["leases"])
            _plain(table, f"{leased}: idle share of a core", "idle share of a core", result["idle_share"])


def _crate_rows(table: Table, many: str, result: Result) -> None:
    names = {
        "clients_per_second": "clients added a second",
        "bytes_per_client": "memory a client, bytes",
        "bytes_per_client_by_own_account": "memory by its own account, bytes",
        "bytes_per_client_with_lease": "memory a client, bytes",
        "bytes_per_client_with_lease_by_own_account": "memory by its own account, bytes",
        "arp_answers_per_second": "ARP answers a second",
        "arp_answers_per_second_in_random_order": "ARP answers a second",
        "echo_answers_per_second": "echo answers a second",
        "echo_answers_per_second_in_random_order": "echo answers a second",
        "leases_per_second_at_once": "leases a second, all offers at once",
        "leases_per_second_while_adding": "leases a second while adding",
        "idle_share_of_core": "idle share of a core",
    }
    for key, name in names.items():
        value = result[key]
        text = _text(value)
        table.add_row(f"{many}, no server: {name}", "", text, _goal(name))


def _rate(table: Table, what: str, goal: str, rate: Result) -> None:
    table.add_row(what, _text(rate["by_clock"]), _text(rate["of_thread"]), _goal(goal))


def _plain(table: Table, what: str, goal: str, value: float) -> None:
    table.add_row(what, _text(value), "", _goal(goal))


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2%}"


def _goal(name: str) -> str:
    goal = GOALS.get(name)
    if goal is None:
        return ""
    return f"< {goal:.0%}" if goal < 1 else f"{'≤' if 'bytes' in name else '≥'} {goal:,}"


if __name__ == "__main__":
    sys.exit(main())
