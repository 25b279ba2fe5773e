"""How long a client waits for its replies while another one asks for something slow.

The slow things are a capture file of a gigabyte and a stateful profile of 24 MB. What the machine itself
adds is seen where nothing is asked, and where another program reads a gigabyte. Each round is one server. The
quick client sends one ``ping`` after the other; the slow one is a process of its own, since Python has one
thread run at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import zmq
from allosaur.server import LocalServer
from common import progress, wide_console
from rich.table import Table

#: What others may wait, at most.
TARGET_S = 0.005


class Rpc:
    """A client that knows nothing but requests and replies."""

    def __init__(self, port: int, api: tuple[str, int, int]) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        self._socket.connect(f"tcp://127.0.0.1:{port}")
        self.handler = ""
        name, major, minor = api
        synced = self.ask("api_sync_v2", name=name, major=major, minor=minor)
        self._api_handle = synced["result"]["api_h"]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Give the whole reply."""
        known = {"api_h": getattr(self, "_api_handle", ""), "handler": self.handler}
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**known, **params}}
        self._socket.send(json.dumps(request).encode())
        reply: dict[str, Any] = json.loads(self._socket.recv())
        return reply


def nothing(rpc: Rpc, _: Path) -> None:
    """Ask for nothing slow."""
    for _round in range(20):
        rpc.ask("ping")
        time.sleep(0.1)


def foreign_file(_: Rpc, folder: Path) -> None:
    """Read a gigabyte without the server."""
    path = folder / "large"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    path.read_bytes()


def large_file(rpc: Rpc, folder: Path) -> None:
    """Ask for a capture file of a gigabyte, which is read and found to be none."""
    path = folder / "large.pcap"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    user = {"port_id": 0, "user": "slow", "session_id": 1, "force": True}
    rpc.handler = rpc.ask("acquire", **user)["result"]
    rpc.ask(
        "push_remote", port_id=0, pcap_filename=str(path), ipg_usec=-1, speedup=1.0, count=1,
        duration=-1, is_dual=False, slave_handler="", min_ipg_usec=0,
    )  # fmt: skip


def large_profile(rpc: Rpc, _: Path) -> None:
    """Load a stateful profile of 24 MB, start it, and wait until it has."""
    rpc.handler = rpc.ask("acquire", user="slow", session_id=1, force=True)["result"]["handler"]
    text = _profile_text()
    part = 900_000
    for at in range(0, len(text), part):
        rpc.ask(
            "profile_fragment", profile_id="_", fragment=text[at : at + part], frag_first=at == 0,
            frag_last=at + part >= len(text),
        )  # fmt: skip
    rpc.ask(
        "start", profile_id="_", mult=1, duration=1, nc=True, latency_pps=0, ipv6=False,
        client_mask=0xFFFFFFFF, e_duration=0, t_duration=0, dump_interval=0,
    )  # fmt: skip
    while rpc.ask("sync", profile_id="sync")["result"]["state"] in (2, 3):
        time.sleep(0.01)
    rpc.ask("stop", profile_id="_")


def _profile_text() -> str:
    """A profile of one template whose buffers have 24 MB in base64."""
    buffers = ["QUJD" * 60_000] * 100
    pool = {"distribution": "seq", "ip_offset": "1.0.0.0"}
    commands = [{"name": "tx", "buf_index": index} for index in range(len(buffers))]
    return json.dumps(
        {
            "buf_list": [f"{index:04d}{text[4:]}" for index, text in enumerate(buffers)],
            "ip_gen_dist_list": [
                {"dir": "c", "ip_start": "16.0.0.0", "ip_end": "16.0.0.255", **pool},
                {"dir": "s", "ip_start": "48.0.0.0", "ip_end": "48.0.255.255", **pool},
            ],
            "program_list": [{"commands": commands}, {"commands": [{"name": "rx", "min_bytes": 6}]}],
            "templates": [
                {
                    "client_template": {
                        "program_index": 0, "port": 80, "cps": 1, "cluster": {},
                        "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
                    },
                    "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
                    "tg_id": 0,
                }
            ],
            "tg_names": [],
        }
    )  # fmt: skip


Api = tuple[str, int, int]
Slow = Callable[[Rpc, Path], None]


def do_slowly(slow: Slow, port: int, api: Api, begun: Any) -> None:
    """What the process of the slow client does."""
    with tempfile.TemporaryDirectory() as folder:
        rpc = Rpc(port, api)
        begun.set()
        slow(rpc, Path(folder))


def waits(local: LocalServer, api: Api, slow: Slow) -> list[float]:
    """Give the round trips of a client while another does something slow."""
    context = get_context("spawn")
    begun = context.Event()
    process = context.Process(target=do_slowly, args=(slow, local.rpc_port, api, begun))
    process.start()
    begun.wait()
    quick = Rpc(local.rpc_port, api)
    measured = []
    while process.is_alive():
        began = time.perf_counter()
        quick.ask("ping")
        measured.append(time.perf_counter() - began)
        time.sleep(0.0005)
    process.join()
    return measured


def main() -> int:
    """Measure, and end with 1 when somebody waited too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", type=Path, default=os.environ.get("ALLOSAUR_SERVER"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cases: list[tuple[str, Api, list[str], Slow]] = [
        ("nothing", ("STL", 5, 1), [], nothing),
        ("another program reads 1 GiB", ("STL", 5, 1), [], foreign_file),
        ("a capture file of 1 GiB", ("STL", 5, 1), [], large_file),
        ("a profile of 24 MB", ("ASTF", 2, 3), ["--stateful"], large_profile),
    ]
    table = Table(
        "meanwhile", "replies", "median", "p99", "longest", title="how long others wait for a reply"
    )
    is_late = False
    for name, api, arguments, slow in cases:
        measured: list[float] = []
        for round_number in range(options.rounds):
            progress(f"{name}, round {round_number + 1} of {options.rounds}")
            with LocalServer(binary=options.server, options=arguments) as local:
                measured += waits(local, api, slow)
        measured.sort()
        late = measured[min(len(measured) - 1, len(measured) * 99 // 100)]
        is_late |= late > TARGET_S
        figures = [statistics.median(measured), late, measured[-1]]
        table.add_row(name, str(len(measured)), *(f"{figure * 1e3:.2f} ms" for figure in figures))
    wide_console().print(table)
    return int(is_late)


if __name__ == "__main__":
    sys.exit(main())
