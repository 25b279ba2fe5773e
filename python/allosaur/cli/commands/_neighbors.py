"""`allosaur ping` and `arp`: is there somebody at an address, and who is a port's gateway."""

from __future__ import annotations

import argparse
import ipaddress
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli import _arguments, _options
from allosaur.cli._access import check_ports, remote_client, service_ports
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input, explained
from allosaur.cli._interrupt import Interrupt

if TYPE_CHECKING:
    from allosaur import STLClient


class Ping(Command):
    """`allosaur ping`."""

    name = "ping"
    summary = "ping an IP address from a port"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "address", type=_options.address, metavar="ADDRESS", help="the IPv4 or IPv6 address to ping"
        )
        _arguments.asking_port(parser)
        parser.add_argument(
            "-n",
            "--count",
            type=_options.whole_number,
            default=5,
            metavar="N",
            help="how many times (default: 5)",
        )
        parser.add_argument(
            "-i",
            "--interval",
            type=_options.seconds,
            default=1.0,
            metavar="TIME",
            help="time between two pings (default: 1)",
        )
        parser.add_argument(
            "-s",
            "--size",
            type=_options.whole_number,
            default=64,
            metavar="BYTES",
            help="size of the frame without FCS, 64 to 9216 (default: 64)",
        )
        parser.add_argument(
            "--timeout",
            type=_options.seconds,
            default=3.0,
            metavar="TIME",
            help="how long to wait for each answer (default: 3)",
        )
        _arguments.server(parser, _arguments.FORCE_PORTS)

    def run(self, options: argparse.Namespace) -> int:
        _check(options)
        records: list[Any] = []
        with Interrupt() as interrupt, remote_client(options) as client:
            check_ports(client, [options.port], "--port")
            with (
                service_ports(client, _answering(client, options), options.force),
                explained(f"cannot ping from port {options.port}"),
            ):
                _give_address(client, options)
                while len(records) < options.count and not interrupt:
                    if records:
                        interrupt.sleep(options.interval)
                    if not interrupt:
                        records += _once(client, options)
        result = _result(options, records)
        if options.json:
            print(json.dumps(result, indent=2))
        else:
            print(_text(result))
        if interrupt.exit_code is not None:
            return interrupt.exit_code
        return EXIT_OK if result["received"] else EXIT_FAILED


def _answering(client: STLClient, options: argparse.Namespace) -> list[int]:
    """Return the ports that must be in service mode: also one of the same server that has the address.

    A port answers pings only in service mode, as TRex's do.
    """
    theirs = [
        number
        for number, port in client.ports.items()
        if options.address in (port.src_ipv4, port.src_ipv6) and not port.is_service
    ]
    return list(dict.fromkeys([options.port, *theirs]))


def _give_address(client: STLClient, options: argparse.Namespace) -> None:
    """Give the port the address of `--source`, if there is one, and find its gateway."""
    if options.source is None:
        return
    if ":" in options.source:
        client.conf_ipv6(options.port, True, options.source)
    else:
        gateway = options.gateway or options.address
        client.set_l3_mode(options.port, options.source, gateway, vlan=options.vlan)


def _check(options: argparse.Namespace) -> None:
    if not 64 <= options.size <= 9216:
        raise bad_input(f"--size: {options.size} is not a size; write 64 to 9216 bytes")
    check_addresses(options)
    if options.source is not None:
        versions = {ipaddress.ip_address(one).version for one in (options.source, options.address)}
        if len(versions) > 1:
            raise bad_input(f"--source: {options.source} cannot reach {options.address}: one is IPv6")


def check_addresses(options: argparse.Namespace) -> None:
    """Refuse a gateway without a source, and one of IPv6."""
    if options.gateway is not None and options.source is None:
        raise bad_input("--gateway needs --source: the address that the port gets")
    if options.gateway is not None and ":" in options.gateway + options.source:
        raise bad_input("--gateway: only IPv4 has one here; neighbors of IPv6 are found as they are needed")


def _once(client: STLClient, options: argparse.Namespace) -> list[Any]:
    from allosaur import STLError

    try:
        records = client.ping_ip(
            options.port,
            options.address,
            pkt_size=options.size,
            count=1,
            vlan=options.vlan,
            timeout_sec=options.timeout,
        )
    except STLError as error:
        if "set_l3_mode" in str(error) or "resolve()" in str(error):
            raise bad_input(
                f"port {options.port} needs an address and a gateway: give --source and --gateway"
            ) from error
        raise
    if not options.json:
        print(records[0], flush=True)
    return records


def _result(options: argparse.Namespace, records: Sequence[Any]) -> dict[str, Any]:
    rtts = [record["rtt"] for record in records if record["status"] == "success"]
    return {
        "command": "ping",
        "ok": bool(rtts),
        "address": options.address,
        "port": options.port,
        "server": str(options.server),
        "sent": len(records),
        "received": len(rtts),
        "rtt_ms": {"min": min(rtts), "avg": sum(rtts) / len(rtts), "max": max(rtts)} if rtts else None,
        "replies": [{name: record[name] for name in record} for record in records],
    }


def _text(result: dict[str, Any]) -> str:
    line = f"{result['sent']} sent, {result['received']} answered"
    if result["rtt_ms"] is None:
        return f"{line}."
    times = "/".join(f"{result['rtt_ms'][name]:.3f}" for name in ("min", "avg", "max"))
    return f"{line}; round trip min/avg/max {times} ms."


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
