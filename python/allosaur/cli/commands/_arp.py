"""`allosaur arp`: who is a port's gateway."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from allosaur.cli import _arguments
from allosaur.cli._access import check_ports, remote_client, service_ports
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.commands._ping import check_addresses

if TYPE_CHECKING:
    from allosaur import STLClient


class Arp(Command):
    """`allosaur arp`."""

    name = "arp"
    summary = "find the MAC address of a port's gateway"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.asking_port(parser)
        parser.add_argument(
            "--retries",
            type=int,
            default=0,
            metavar="N",
            help="how often to ask again when nobody answers (default: 0)",
        )
        _arguments.server(parser, _arguments.FORCE_PORTS)

    def run(self, options: argparse.Namespace) -> int:
        check_addresses(options)
        if (options.source is None) != (options.gateway is None):
            raise bad_input("--source needs --gateway: the address to ask for")
        if options.retries < 0:
            raise bad_input(f"--retries: {options.retries} is not a number of times; write 0 or more")
        with Interrupt() as interrupt, remote_client(options) as client:
            check_ports(client, [options.port], "--port")
            with service_ports(client, [options.port], options.force):
                port = client.get_port(options.port)
                if options.source is None and not port.is_l3:
                    raise bad_input(f"port {options.port} has no IPv4 address: give --source and --gateway")
                with explained(f"port {options.port}", EXIT_FAILED):
                    _ask(client, options)
            result = {
                "command": "arp",
                "ok": port.is_resolved,
                "port": options.port,
                "server": str(options.server),
                "source": port.src_ipv4,
                "gateway": port.dst_ipv4,
                "gateway_mac": port.dst_mac,
            }
        if options.json:
            print(json.dumps(result, indent=2))
        else:
            print(f"port {options.port}: {result['gateway']} is at {result['gateway_mac']}")
        if interrupt.exit_code is not None:
            return interrupt.exit_code
        return EXIT_OK if result["ok"] else EXIT_FAILED


def _ask(client: STLClient, options: argparse.Namespace) -> None:
    """Ask as often as is wanted. Raises `STLError` when nobody answers."""
    from allosaur import STLError, STLRpcError

    retries = options.retries
    if options.source is not None:
        try:
            client.set_l3_mode(options.port, options.source, options.gateway, vlan=options.vlan)
            return
        except STLRpcError:
            raise
        except STLError:
            if not retries:
                raise
            retries -= 1
    client.resolve([options.port], retries=retries, vlan=options.vlan)
