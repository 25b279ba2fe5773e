"""`arp`, `ping`, `scan6`, `map`, `pkt`: what is on the other end of a port's link."""

from __future__ import annotations

import argparse
from typing import Any

from allosaur.cli._answer import Answer, listed
from allosaur.cli._errors import EXIT_FAILED, CommandError, bad_input, explained
from allosaur.cli._options import address
from allosaur.cli.console import _arguments
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session


class Arp(ConsoleCommand):
    """`arp`."""

    name = "arp"
    summary = "find the MAC addresses of ports' gateways"
    example = "arp -p 0 -r 2"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        _arguments.vlan(parser)
        parser.add_argument("-r", "--retries", type=int, default=0, metavar="N", help="ask so often again")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        ports = _arguments.chosen(session, options, client.get_resolvable_ports())
        if not ports:
            raise CommandError(
                "arp: no port of ours has a gateway; `l3 -p 0 --src IPv4 --dst IPv4` gives one"
            )
        _arguments.owned(session, ports)
        with explained("arp", EXIT_FAILED):
            client.resolve(ports, retries=options.retries, vlan=options.vlan)
        found = {port: client.get_port(port).dst_mac for port in ports}
        return done(f"Resolved {listed(ports, 'port')}", gateways=found)


class Ping(ConsoleCommand):
    """`ping`."""

    name = "ping"
    summary = "ask the server whether it is there; or an IP address, from a port"
    example = "ping -p 0 -d 192.0.2.2 -n 3"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("-p", "--port", dest="port", type=int, metavar="PORT", help="the port that asks")
        add("-d", dest="ping_ip", type=address, metavar="IP", help="whom: IPv4 or IPv6")
        add("-s", dest="pkt_size", type=int, default=64, metavar="BYTES", help="size of the frames (64)")
        add("-n", "--count", type=int, default=5, metavar="N", help="how often (5)")
        _arguments.vlan(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        if options.port is None and options.ping_ip is None:
            return done("Pinging RPC server", ts=session.client.ping_rpc_server()["ts"])
        if options.port is None or options.ping_ip is None:
            raise bad_input("ping: give both -p PORT and -d IP, or neither to ask the server")
        (port,) = _arguments.owned(session, [options.port])
        # The client says each reply as it comes.
        records = session.client.ping_ip(
            port, options.ping_ip, options.pkt_size, options.count, vlan=options.vlan
        )
        fields = [{"ok": bool(one), "text": str(one)} for one in records]
        if not any(records):
            raise CommandError(f"ping: nobody answered at {options.ping_ip}", EXIT_FAILED)
        return Answer("", {"port": port, "destination": options.ping_ip, "pings": fields})


class Scan6(ConsoleCommand):
    """`scan6`."""

    name = "scan6"
    summary = "find the IPv6 nodes on the links of ports"
    example = "scan6 -p 0 -t 1"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        parser.add_argument("-t", dest="timeout", type=int, default=3, metavar="S", help="look so long (3)")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        found = session.client.scan6(ports, timeout=options.timeout)
        lines = [
            f"port {port}: {node['type']} {node['ipv6']} at {node['mac']}"
            for port, nodes in found.items()
            for node in nodes
        ]
        return Answer("\n".join(lines) or "No IPv6 node answered.", {"nodes": found})


class Map(ConsoleCommand):
    """`map`."""

    name = "map"
    summary = "find out which of our ports are joined"
    example = "map"
    changes = True

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, session.client.get_acquired_ports())
        found = session.client.map_ports(ports)
        lines = ["Acquired ports topology:", "", "Bi-directional ports:", ""]
        lines += [f"port {one} <--> port {other}" for one, other in found["bi"]]
        lines += ["", "Mapping unknown:", "", *(f"port {port}" for port in found["unknown"])]
        return Answer("\n".join(lines), {"pairs": found["bi"], "unknown": found["unknown"]})


class Pkt(ConsoleCommand):
    """`pkt`."""

    name = "pkt"
    summary = "send a packet in Scapy's notation once"
    example = 'pkt -p 0 -s Ether()/IP(dst="48.0.0.1")/UDP(dport=12)'
    raw_words = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        parser.add_argument("-n", "--dry", action="store_true", help="show the packet, send nothing")
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("-s", dest="packet", nargs="+", metavar="PACKET", help="in Scapy's notation")
        group.add_argument("-l", "--layers", action="store_true", help="list the layers that there are")
        parser.add_argument("--force", action="store_true", help="although traffic runs")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        layers = _layers()
        if options.layers:
            lines = [f"{name:<50} - {layer.name}" for name, layer in sorted(layers.items())]
            return Answer("\n".join(["Registered Layers:", "", *lines]), {"layers": sorted(layers)})
        text = " ".join(options.packet)
        packet = _packet(text, layers)
        if options.dry:
            shown = f"Packet (Size: {len(packet)} B):\n{packet.show2(dump=True)}\nNothing was sent."
            return Answer(shown, {"bytes": bytes(packet).hex()})
        if session.settings.readonly:
            raise CommandError("pkt: this console is read-only; `acquire` takes the ports")
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        session.client.push_packets(packet, ports=ports, force=options.force)
        return done(f"Pushing 1 packets on port(s) {ports}", ports=ports)


def _layers() -> dict[str, Any]:
    from allosaur import api

    found = vars(api).items()
    return {name: one for name, one in found if isinstance(one, type) and issubclass(one, api.Packet)}


def _packet(text: str, layers: dict[str, Any]) -> Any:
    """Return the packet that a text in Scapy's notation makes: layers and constants, nothing else."""
    import ast

    try:
        tree = ast.parse(text.strip().strip("'") if text[:1] == "'" else text.strip(), mode="eval")
        packet = _built(tree.body, layers)
        len(packet)
    except CommandError:
        raise
    except Exception as error:
        raise bad_input(f"pkt -s {text}: not a packet in Scapy's notation ({error})") from error
    return packet


def _built(node: Any, layers: dict[str, Any]) -> Any:
    import ast

    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _built(node.left, layers) / _built(node.right, layers)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _built(node.left, layers) * _built(node.right, layers)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in layers:
            from allosaur.cli._parser import nearest

            hint = nearest(node.func.id, layers) or "; `pkt --layers` lists them"
            raise bad_input(f"pkt: there is no layer {node.func.id}{hint}")
        keywords = {one.arg or "": _built(one.value, layers) for one in node.keywords}
        return layers[node.func.id](*[_built(one, layers) for one in node.args], **keywords)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_built(one, layers) for one in node.elts]
    return ast.literal_eval(node)
