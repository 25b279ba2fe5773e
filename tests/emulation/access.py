"""Linux between emulated clients and our servers, for tests: a router with a NAT, and what it has seen.

Clients are behind port 0, at 10.1.0.0/16 and 2001:db8:1::/64 (``daemons.Host``); our servers are behind
port 1, at 10.2.0.2 and 2001:db8:2::a02:2.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import Any

from allosaur import ASTFClient
from allosaur.server import LocalServer

SERVER = "10.2.0.2"
SERVER_PREFIX = "2001:db8:2::"
SERVER_V6 = "2001:db8:2::a02:2"
OUTSIDE = "10.2.0.1"
OUTSIDE_V6 = "2001:db8:2::1"


class Access:
    """The namespace of a host (``daemons.Host``) as a router: with ``nat`` its clients have its own address.

    ``far`` is our end of the link to the servers.
    """

    def __init__(self, network: Any, host: Any, nat: bool = True) -> None:
        self.network = network
        self.host = host
        self.far, self.outside = network.veth(host.namespace)
        host.run("ip", "address", "add", f"{OUTSIDE}/24", "dev", self.outside)
        for key in ("accept_ra", "router_solicitations", "autoconf", "accept_dad", "dad_transmits"):
            host.write(f"ipv6/conf/{self.outside}/{key}", "0")
        host.write(f"ipv6/conf/{self.outside}/disable_ipv6", "0")
        host.run("ip", "address", "add", f"{OUTSIDE_V6}/64", "dev", self.outside, "nodad")
        # A port of ours has no IPv6 address of its own that it would answer for.
        mac = network.mac(None, self.far)
        host.run("ip", "neighbor", "add", SERVER_V6, "lladdr", mac, "dev", self.outside)
        host.write("ipv4/ip_forward", "1")
        host.write("ipv6/conf/all/forwarding", "1")
        hides = "masquerade" if nat else "accept"
        for family in ("ip", "ip6"):
            rules = (
                f"table {family} access {{ chain out {{ type nat hook postrouting priority 100;"
                f' oifname "{self.outside}" {hides}; }}; }}\n'
            )
            network.run(host.namespace, "nft", "-f", "-", typed=rules)

    @property
    def ports(self) -> list[str]:
        """What a server is told to use: clients, servers."""
        return [f"af_packet:{self.host.near}", f"af_packet:{self.far}"]

    def connections(self, family: str = "ipv4") -> Counter[str]:
        """How many TCP connections of each client went through, as the kernel's table has them.

        All were to our server, were hidden behind the router, and were closed by both sides.
        """
        listed = self.host.run("conntrack", "-L", "-f", family, "-p", "tcp")
        hidden, server = {"ipv4": (OUTSIDE, SERVER), "ipv6": (OUTSIDE_V6, SERVER_V6)}[family]
        found: Counter[str] = Counter()
        for line in listed.splitlines():
            ends = re.findall(r"(src|dst)=(\S+)", line)
            assert ends[1:] == [("dst", server), ("src", server), ("dst", hidden)], line
            assert "TIME_WAIT" in line or "CLOSE" in line or "LAST_ACK" in line, line
            found[ends[0][1]] += 1
        return found

    def neighbors(self, *options: str) -> dict[str, str]:
        """The MAC addresses that the router found out of the hosts on the link of the clients."""
        listed = self.host.run("ip", *options, "neighbor", "show", "dev", self.host.link)
        lines = (line.split() for line in listed.splitlines() if "lladdr" in line)
        return {words[0]: words[words.index("lladdr") + 1] for words in lines}

    def forget_neighbors(self) -> None:
        """Have the router look again who has which address."""
        for option in ("-4", "-6"):
            self.host.run("ip", option, "neighbor", "flush", "dev", self.host.link)


@contextlib.contextmanager
def flows_and_clients(access: Access, doors: Any, cores: int = 1) -> Iterator[tuple[ASTFClient, Any]]:
    """A server whose clients are emulated: a client of its flows, and a door to its emulation."""
    with (
        LocalServer(ports=access.ports, cores=cores, stateful=True, emu=True) as server,
        doors.Door(server.emu_port) as door,
        server.client() as client,
    ):
        assert isinstance(client, ASTFClient)
        client.reset()
        client.set_service_mode(enabled=True)
        client.set_l3_mode(port=1, src_ipv4=SERVER, dst_ipv4=OUTSIDE)
        client.set_service_mode(enabled=False)
        yield client, door


def texts(addresses: dict[str, bytes]) -> dict[str, str]:
    """IPv6 addresses in the words of the kernel, by the same keys."""
    return {key: str(IPv6Address(address)) for key, address in addresses.items()}
