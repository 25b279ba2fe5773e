"""`portattr`, `service`, `l2`, `l3`, `ipv6`, `vlan`, `vxlan`: what ports are, and their addresses."""

from __future__ import annotations

import argparse

from allosaur.cli._answer import Answer, listed
from allosaur.cli._errors import CommandError
from allosaur.cli._options import address
from allosaur.cli.console import _arguments, _tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

_ON_OFF = {"on": True, "off": False}
_UP_DOWN = {"up": True, "down": False}
_FLOW_CONTROL = {"none": 0, "tx": 1, "rx": 2, "full": 3}
_ABILITIES = (
    ("Promiscuous", "prom_supported"),
    ("Link status", "link_change_supported"),
    ("LED status", "led_change_supported"),
    ("Flow control", "fc_supported"),
    ("VXLAN FS", "is_vxlan_supported"),
    ("IEEE 1588", "is_ieee1588_supported"),
)


class PortAttr(ConsoleCommand):
    """`portattr`."""

    name = "portattr"
    summary = "show ports and their attributes, or change some"
    example = "portattr -p 0 --prom on"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        parser.add_argument("--prom", choices=_ON_OFF, help="receive what is for others")
        parser.add_argument("--mult", choices=_ON_OFF, help="receive all multicast")
        parser.add_argument("--link", choices=_UP_DOWN, help="put the link up or down")
        parser.add_argument("--led", choices=_ON_OFF, help="light the LED")
        parser.add_argument("--fc", choices=_FLOW_CONTROL, help="flow control")
        parser.add_argument("--vxlan-fs", nargs="*", type=int, metavar="UDP", help="UDP ports of VXLAN")
        parser.add_argument("--supp", action="store_true", help="show what the ports support")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        wanted = {
            "promiscuous": _ON_OFF.get(options.prom),
            "multicast": _ON_OFF.get(options.mult),
            "link_up": _UP_DOWN.get(options.link),
            "led_on": _ON_OFF.get(options.led),
            "flow_ctrl": _FLOW_CONTROL.get(options.fc),
            "vxlan_fs": options.vxlan_fs,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        every = session.client.get_all_ports()
        if options.supp:
            return _supported(session, every[0])
        if not given:
            return _tables.port_status(session.client, _arguments.chosen(session, options) or every)
        if session.settings.readonly:
            raise CommandError("portattr: this console is read-only; `acquire` takes the ports")
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        session.client.set_port_attr(ports, **given)
        return done(f"Applying attributes on port(s) {ports}", ports=ports, **given)


class Service(ConsoleCommand):
    """`service`, of a stateless console."""

    name = "service"
    summary = "let ports answer ARP and ping, and be captured; --off ends it"
    example = "service -p 0"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        _arguments.service(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        fields = _arguments.service_fields(options)
        session.client.set_service_mode(ports, **fields)
        return done(f"{_service_words(fields)} service mode on port(s) {ports}", ports=ports, **fields)


class ServiceOfAll(ConsoleCommand):
    """`service`, of a stateful console."""

    name = "service"
    summary = "let all ports answer ARP and ping, and be captured; --off ends it"
    example = "service --off"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.service(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        fields = _arguments.service_fields(options)
        session.flows.set_service_mode(**fields)
        return done(f"{_service_words(fields)} service mode on all ports", **fields)


class L2(ConsoleCommand):
    """`l2`."""

    name = "l2"
    summary = "send a port's frames to a MAC address"
    example = "l2 -p 0 --dst 02:00:00:00:00:01"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.port(parser)
        parser.add_argument("--dst", required=True, metavar="MAC", help="the MAC address")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        (port,) = _arguments.owned(session, [options.port])
        session.client.set_l2_mode(port, options.dst)
        return done(f"Setting port {port} in L2 mode: {options.dst}", port=port, dst=options.dst)


class L3(ConsoleCommand):
    """`l3`."""

    name = "l3"
    summary = "give a port an IPv4 address and a gateway, and find the gateway"
    example = "l3 -p 0 --src 192.0.2.1 --dst 192.0.2.2"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.port(parser)
        parser.add_argument("--src", required=True, type=address, metavar="IPv4", help="of the port")
        parser.add_argument("--dst", required=True, type=address, metavar="IPv4", help="of the gateway")
        _arguments.vlan(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        (port,) = _arguments.owned(session, [options.port])
        session.client.set_l3_mode(port, options.src, options.dst, vlan=options.vlan)
        mac = session.client.get_port(port).dst_mac
        text = f"Setting port {port} in L3 mode: {options.dst} is at {mac}"
        return done(text, port=port, src=options.src, dst=options.dst, dst_mac=mac)


class IPv6(ConsoleCommand):
    """`ipv6`."""

    name = "ipv6"
    summary = "switch IPv6 of a port"
    example = "ipv6 -p 0 --src 2001:db8::1"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.port(parser)
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("--off", action="store_true", help="no IPv6")
        group.add_argument("--auto-ipv6", action="store_true", help="with the address that its MAC makes")
        group.add_argument("-s", "--src", type=address, metavar="IPv6", help="with this address")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        (port,) = _arguments.owned(session, [options.port])
        session.client.conf_ipv6(port, not options.off, options.src)
        return done(f"Configuring IPv6 of port {port}", port=port, ipv6=not options.off)


class Vlan(ConsoleCommand):
    """`vlan`."""

    name = "vlan"
    summary = "tag the packets that ports send by themselves, such as ARP"
    example = "vlan -p 0 --vlan 10"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        group = parser.add_mutually_exclusive_group(required=True)
        _arguments.vlan(group)
        group.add_argument("-c", dest="clear_vlan", action="store_true", help="no tags")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        tags = [] if options.clear_vlan else options.vlan
        session.client.set_vlan(ports, tags)
        return done(f"VLAN {tags or 'cleared'} on {listed(ports, 'port')}", ports=ports, vlan=tags)


class Vxlan(ConsoleCommand):
    """`vxlan`."""

    name = "vxlan"
    summary = "send what ports generate in a network of VXLAN, and take it from there"
    example = "vxlan -p 0 --vni 100 --local 192.0.2.1 --remote 192.0.2.2"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("--vni", type=int, metavar="N", help="the number of the network, 0 to 16777215")
        group.add_argument("-c", dest="clear_vxlan", action="store_true", help="no tunnel")
        parser.add_argument("--local", type=address, metavar="IP", help="this end (default: of the port)")
        parser.add_argument(
            "--remote", type=address, metavar="IP", help="the other end (default: the gateway)"
        )
        parser.add_argument("--inner-mac", metavar="MAC", help="where frames go inside (default: as outside)")
        parser.add_argument("--udp-port", type=int, default=4789, metavar="N", help="of both ends (4789)")
        parser.add_argument("--any-vni", action="store_true", help="take frames of any network")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        session.client.set_vxlan(
            ports,
            options.vni,
            options.local,
            options.remote,
            options.udp_port,
            options.inner_mac,
            options.any_vni,
        )
        what = "cleared" if options.clear_vxlan else f"network {options.vni}"
        return done(f"VXLAN {what} on {listed(ports, 'port')}", ports=ports, vni=options.vni)


def _supported(session: Session, port: int) -> Answer:
    info = session.client.get_port_attr(port)
    facts = {name: info.get(key) for name, key in _ABILITIES}
    text = "\n".join(f"  {name + ':':<15}{value}" for name, value in facts.items())
    return Answer(f"Supported attributes for current NICs:\n{text}", facts)


def _service_words(fields: dict[str, object]) -> str:
    if not fields["enabled"]:
        return "Disabling"
    return "Enabling filtered" if fields.get("filtered") else "Enabling"
