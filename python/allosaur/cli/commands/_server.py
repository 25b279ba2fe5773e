"""`allosaur server`: becomes the server binary, and says how to reach it.

This process turns into the server, so that signals, the exit code and the process number are the server's
own. A small child stays behind to read what the server says on its standard output: it adds how to connect.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from allosaur.cli import _options
from allosaur.cli._binary import server_binary
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, CommandError, bad_input

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Server(Command):
    """`allosaur server`."""

    name = "server"
    summary = "start a server on this machine"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--config",
            metavar="FILE",
            help="a file with all of this, in our form or TRex's; the options here go before what it says",
        )
        what.add_argument(
            "--ports",
            metavar="SPEC,...",
            help="the ports, in order; `memory` needs no network card, and two of them in a row are joined; "
            "a link can be slowed or disturbed: memory:rate=10gbps:delay=1ms:loss=0.1%%:seed=7, "
            "or have a limit: memory:police=1mpps "
            "(default: memory,memory)",
        )
        modes = parser.add_mutually_exclusive_group()
        modes.add_argument(
            "--stateful",
            action="store_true",
            help="all ports for TCP and UDP flows (default: each port is in the mode of who acquires it)",
        )
        modes.add_argument("--stateless", action="store_true", help="all ports for streams")
        parser.add_argument(
            "--cores", type=_options.whole_number, metavar="N", help="threads that send (default: 1)"
        )
        parser.add_argument(
            "--pin",
            action="store_true",
            help="bind each thread that sends to a CPU of its own, near its ports",
        )
        parser.add_argument(
            "--receive-threads",
            type=_options.whole_number,
            metavar="N",
            help="threads that receive (default: 1)",
        )
        parser.add_argument(
            "--poll",
            choices=["busy", "adaptive"],
            help="how threads wait: busy (best timing, a CPU each) or adaptive (they sleep when idle; "
            "they may share CPUs)",
        )
        _add_sockets(parser)

    def run(self, options: argparse.Namespace) -> NoReturn:
        """Turn into the server. Comes back only with an error."""
        for name in ("rpc_port", "pub_port", "emu_port", "bird_port"):
            port = getattr(options, name)
            if port is not None and not 0 <= port <= 65535:
                raise bad_input(f"--{name.replace('_', '-')} {port}: a port is a number of 0 to 65535")
        command = ["serve"]
        words = ["config", "ports", "cores", "receive_threads", "poll", "rpc_port", "pub_port", "listen"]
        for name in [
            *words,
            "emu_port",
            "bird_port",
            "stack",
            "emu_zmq",
            "http",
            "rpc_auth",
            "captures_folder",
        ]:
            value = getattr(options, name)
            if value is not None:
                command += [f"--{name.replace('_', '-')}", str(value)]
        for name in options.http_host:
            command += ["--http-host", name]
        command += ["--open"] * options.open
        command += ["--pin"] * options.pin + ["--emu"] * options.emu
        command += ["--emu-exports"] * options.emu_exports
        command += ["--bird-server"] * options.bird_server
        command += ["--stateful"] * options.stateful + ["--stateless"] * options.stateless
        become(command)


def _add_sockets(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the server is reached."""
    parser.add_argument(
        "--rpc-port",
        type=int,
        metavar="PORT",
        help=f"where clients ask (default: {_options.DEFAULT_RPC_PORT}; 0 picks a free one)",
    )
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="where clients hear events (default: one below --rpc-port; 0 picks a free one)",
    )
    parser.add_argument(
        "--emu",
        action="store_true",
        help="emulated clients: hosts that speak ARP, DHCP, IPv6 and more on the ports",
    )
    parser.add_argument(
        "--emu-port",
        type=int,
        metavar="PORT",
        help="where requests to emulated clients are taken, which there are then "
        f"(default with --emu: {_options.EMULATION_PORT}; 0 picks a free one)",
    )
    parser.add_argument(
        "--emu-exports",
        action="store_true",
        help="emulated clients may write files, send by sockets of the server and post to web servers",
    )
    parser.add_argument(
        "--bird-server",
        action="store_true",
        help="the routing daemon BIRD in a network namespace, for nodes that announce routes; it needs root",
    )
    parser.add_argument(
        "--bird-port",
        type=int,
        metavar="PORT",
        help="where requests to BIRD are taken, which there is then "
        f"(default with --bird-server: {_options.BIRD_PORT}; 0 picks a free one)",
    )
    parser.add_argument(
        "--stack",
        choices=["legacy", "linux_based"],
        help="who answers for the addresses of ports: the server (legacy, the default), or the kernel "
        "(linux_based), in a network namespace for each port, which needs root",
    )
    parser.add_argument(
        "--emu-zmq",
        choices=["ipc", "tcp"],
        nargs="?",
        const="ipc",
        help="let an emulation server of another process, such as TRex's, have hosts on the ports: by "
        "/tmp/emu-4511.ipc and /tmp/emu-4512.ipc, or by TCP ports 4511 and 4512",
    )
    _add_access(parser)


def _add_access(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where it listens beyond that, and who may do what."""
    parser.add_argument(
        "--http",
        metavar="[ADDRESS:]PORT",
        help="answer HTTP here, with metrics for Prometheus at /metrics (default: not; the address is "
        "127.0.0.1 unless given; 0 picks a free port)",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="which address, name or interface to listen on, * for all (default: 127.0.0.1: only this "
        "machine may connect); beyond this machine it needs --rpc-auth, or --open",
    )
    parser.add_argument(
        "--rpc-auth",
        metavar="FILE",
        help="lines NAME:TOKEN: who connects from another machine must have one",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="everyone who can reach the address of --listen may use the server, without a token",
    )
    parser.add_argument(
        "--http-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that HTTP is answered to, besides addresses, names without a dot and the machine's own; "
        "may be given several times",
    )
    parser.add_argument(
        "--captures-folder",
        metavar="FOLDER",
        help="where capture files are that clients may have the server send (push --remote), and where it "
        "may write key logs of TLS; / is all files (default: the folder that the server is started in)",
    )


def become(command: Sequence[str]) -> NoReturn:
    """Turn this process into the server with these arguments. Raises :class:`CommandError`."""
    binary = server_binary()
    sys.stdout.flush()
    from_server, to_reader = os.pipe()
    if os.fork() == 0:
        os.close(to_reader)
        _read_on(from_server)
    os.dup2(to_reader, sys.stdout.fileno())
    try:
        os.execv(binary, [binary, *command])
    except OSError as error:
        raise CommandError(f"cannot start {binary}: {error.strerror}") from error


def _read_on(from_server: int) -> NoReturn:
    """Pass on what the server says until it ends. It is the server that signals are for, not this process."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        with os.fdopen(from_server, encoding="utf-8", errors="replace") as lines:
            _pass_on(lines)
    finally:
        # Not sys.exit: what the parent has to clean up is the parent's.
        os._exit(EXIT_OK)


def _pass_on(lines: Iterable[str]) -> None:
    for line in lines:
        # The line itself comes first: a script that starts a server waits for it.
        print(line, end="", flush=True)
        words = line.split()
        if words[:1] == ["ready"]:
            facts = dict(word.partition("=")[::2] for word in words[1:])
            print(_welcome(facts), flush=True)


def _welcome(facts: dict[str, str]) -> str:
    """Return what to do next, from the words of the server's `ready` line."""
    rpc_port, pub_port = (facts.get(name, "").rpartition(":")[2] for name in ("rpc", "pub"))
    host = facts.get("rpc", "").removeprefix("tcp://").rpartition(":")[0]
    if host == "0.0.0.0":
        host = "127.0.0.1"
    options = "" if (rpc_port, host) == ("4501", "127.0.0.1") else f" --server {host}:{rpc_port}"
    if not rpc_port.isdecimal() or pub_port != str(int(rpc_port) - 1):
        options += f" --pub-port {pub_port}"
    profile, rate, client = ("imix", "100kpps", "STLClient")
    if facts.get("mode") == "stateful":
        profile, rate, client = ("http", "100", "ASTFClient")
    metrics = [f"Metrics for Prometheus are at {facts['http']}/metrics"] if "http" in facts else []
    emulation = [f"Requests to emulated clients are taken at {facts['emu']}"] if "emu" in facts else []
    lines = [
        f"Allosaur is ready: {facts.get('ports', '?')} ports, {facts.get('cores', '?')} sending thread(s).",
        "Send something from another terminal:",
        f"  allosaur run {profile} -m {rate} -d 10{options}",
        "or from Python:",
        f'  {client}(server="{host}", sync_port={rpc_port}, async_port={pub_port})',
        *emulation,
        *metrics,
        "Ctrl-C stops the server.",
    ]
    return "\n".join(lines)
