"""The commands that add nodes, from the options of `node add`."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _options, _remedies
from allosaur.cli._errors import bad_input
from allosaur.cli.nodes import _batch, _find

if TYPE_CHECKING:
    from allosaur import NSCmds, STLClient

NEW = "new"
"""The shared namespace that is made first."""
_COUNT_MAX = 20_000
"""As many as a port may have."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a node is made of."""
    add = parser.add_argument
    add("mac", type=_options.mac, metavar="MAC", help="the MAC address of the node, or of the first")
    add("--ipv4", type=_interface(4), metavar="ADDRESS[/BITS]", help="its IPv4 address")
    add("--gateway", type=_options.address, metavar="ADDRESS", help="the gateway for IPv4")
    add(
        "--ipv6",
        nargs="?",
        const="",
        type=_interface(6),
        metavar="ADDRESS[/BITS]",
        help="IPv6: with the link-local address alone, or another besides",
    )
    add(
        "--vlan",
        type=_options.vlan,
        default=[],
        metavar="TAG[,TAG]",
        help="its VLAN, or two, the outer first",
    )
    add("--mtu", type=_options.whole_number, metavar="BYTES", help="its MTU (default: 1500)")
    add("--filter", metavar="BPF", help="which frames it gets, as for tcpdump (default: all)")
    add("--shared", metavar="NAMESPACE", help=f"the shared namespace that it is in; `{NEW}` makes one")
    add(
        "--count",
        type=_options.whole_number,
        default=1,
        metavar="N",
        help="so many nodes, each with addresses that are one higher (default: 1)",
    )


def check(options: argparse.Namespace) -> None:
    """Refuse what does not go together. Raises :class:`CommandError`."""
    if options.count > _COUNT_MAX:
        raise bad_input(f"--count: {options.count} nodes are too many; a port has {_COUNT_MAX} at most")
    if options.gateway is not None and (options.ipv4 is None or ":" in options.gateway):
        raise bad_input("--gateway is for IPv4: give it with --ipv4; IPv6 finds its routers by itself")
    ipv4 = options.ipv4
    if ipv4 is None:
        return
    if options.shared is not None and ipv4.bits is None:
        raise bad_input(f"--ipv4: in a shared namespace write the bits of its network, too: {ipv4.first}/24")
    if options.shared is None and ipv4.bits is None and options.gateway is None:
        raise bad_input(f"--ipv4: give --gateway, or the bits of its network: {ipv4.first}/24")


def add(client: STLClient, options: argparse.Namespace) -> list[_find.Node]:
    """Add nodes; return them. When a command fails none of them is there. Raises :class:`CommandError`."""
    from allosaur import NSCmds, STLError

    macs = list(_macs(options.mac, options.count))
    _refuse_present(client, options.port, macs)
    cmds, shared = NSCmds(), options.shared
    if shared == NEW:
        shared = client.set_namespace(options.port, "add_shared_ns")["result"]
    for number, mac in enumerate(macs):
        _node(cmds, options, mac, shared, number)
    if shared is not None and options.gateway is not None:
        cmds.set_dg(shared, options.gateway)
    cmds.get_nodes_info(macs)
    try:
        *_, told = _batch.done(client, options.port, cmds)
    except STLError:
        _remove(client, options.port, macs, shared if options.shared == NEW else None)
        raise
    return [_find.Node(options.port, info) for info in told["result"]["nodes"]]


def _node(cmds: NSCmds, options: argparse.Namespace, mac: str, shared: str | None, number: int) -> None:
    is_shared = shared is not None
    cmds.add_node(mac, shared_ns=shared)
    if options.vlan:
        cmds.set_vlan(mac, options.vlan)
    if options.mtu is not None:
        cmds.set_mtu(mac, options.mtu)
    if options.filter is not None:
        cmds.set_filter(mac, options.filter)
    if (ipv4 := options.ipv4) is not None:
        params: dict[str, Any] = {"mac": mac, "ipv4": ipv4.address(number), "shared_ns": is_shared}
        if ipv4.bits is not None:
            params["subnet"] = ipv4.bits
        if options.gateway is not None and not is_shared:
            params["dg"] = options.gateway
        cmds.add_cmd("set_ipv4", **params)
    if (ipv6 := options.ipv6) is not None:
        params = {"mac": mac, "enable": True, "src_ipv6": ipv6.address(number) if ipv6 else ""}
        if is_shared:
            params["shared_ns"] = True
        if ipv6 and ipv6.bits is not None:
            params["subnet"] = ipv6.bits
        cmds.add_cmd("set_ipv6", **params)


def _refuse_present(client: STLClient, port: int, macs: list[str]) -> None:
    """Refuse nodes that are there: what is meant for a new one would change them."""
    present = {node.mac for node in _find.of_ports(client, [port])}
    twice = [mac for mac in macs if mac in present]
    if twice:
        remove = f"{_remedies.command('ns remove', 'node remove')} {twice[0]} -p {port}"
        raise bad_input(
            f"port {port} has a node {twice[0]} already: give another MAC address, or type `{remove}` first"
        )


def _remove(client: STLClient, port: int, macs: list[str], shared: str | None) -> None:
    """Remove those of the nodes that came to be."""
    from allosaur import NSCmds, STLError

    cmds = NSCmds()
    for mac in macs:
        cmds.remove_node(mac)
    if shared is not None:
        cmds.remove_shared_ns(shared)
    try:
        _batch.done(client, port, cmds)
    except STLError:
        # Not all were there.
        return


@dataclass(frozen=True)
class _Interface:
    """An address, and the bits of its network, where they were given."""

    first: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int | None

    def address(self, number: int) -> str:
        """The address of the node of a number."""
        try:
            return str(self.first + number)
        except ValueError:
            raise bad_input(f"--count: there is no address {number} above {self.first}") from None


def _interface(version: int) -> Any:
    example = {4: "192.0.2.1 or 192.0.2.1/24", 6: "2001:db8::1 or 2001:db8::1/64"}[version]

    def read(text: str) -> _Interface | None:
        if not text:
            return None
        _, slash, bits = text.partition("/")
        try:
            first = ipaddress.ip_interface(text).ip
        except ValueError:
            first = None
        if first is None or first.version != version or (slash and not bits.isdecimal()):
            raise argparse.ArgumentTypeError(
                f"{text!r} is no IPv{version} address; write one such as {example}"
            )
        return _Interface(first, int(bits) if slash else None)

    return read


def _macs(first: str, count: int) -> Iterator[str]:
    start = int(first.replace(":", ""), 16)
    if start + count > 1 << 48:
        raise bad_input(f"--count: there are not {count} MAC addresses from {first} on")
    for value in range(start, start + count):
        digits = f"{value:012x}"
        yield ":".join(digits[at : at + 2] for at in range(0, 12, 2))
