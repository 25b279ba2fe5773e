"""Devices under test made of the kernel: a router, a NAT and a bridge, each in a namespace of its own.

All of them lie between pairs of veth: the near ends are for our ports, the far ends are the device's. The
kernel counts for itself what it received, forwarded and dropped, so that we can be compared with it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from typing import Any

NAT_PROBE = "table ip probe { chain out { type nat hook postrouting priority 100; masquerade; }; }\n"


def why_not(network: Any) -> str | None:
    """What is missing on this machine for routers and NATs that count, or None."""
    missing = [tool for tool in ("nft", "conntrack") if shutil.which(tool) is None]
    if missing:
        return (
            f"there is no {' and no '.join(f'`{tool}`' for tool in missing)}: install nftables and conntrack"
        )
    if not network.try_run(network.namespace("nat-probe"), "nft", "-f", "-", typed=NAT_PROBE):
        return "this kernel has no NAT by nftables: it lacks CONFIG_NF_TABLES or CONFIG_NFT_MASQ"
    return None


class Device:
    """A namespace with pairs of veth. ``network`` is a ``network.Network``, which removes it."""

    def __init__(self, network: Any, name: str, links: int = 2, mtu: int = 1500) -> None:
        self.network = network
        self.namespace: str = network.namespace(name)
        self._links: list[tuple[str, str]] = [network.veth(self.namespace, mtu) for _ in range(links)]
        # The kernel holds frames back to join TCP; a device that joins none forwards what it got.
        for _, far in self._links:
            self.try_run("ethtool", "-K", far, "gro", "off")

    @property
    def ports(self) -> list[str]:
        """The near ends: what a server is told to use."""
        return [near for near, _ in self._links]

    def far(self, link: int) -> str:
        """The name of the device's own end."""
        return self._links[link][1]

    def mac(self, link: int) -> str:
        """The MAC address of the device's own end."""
        return str(self.network.mac(self.namespace, self.far(link)))

    def run(self, *command: str) -> str:
        """Run a command within the device. Gives what it prints."""
        return str(self.network.run(self.namespace, *command))

    def try_run(self, *command: str) -> None:
        """Run a command within the device that only some machines know."""
        if shutil.which(command[0]) is not None:
            self.network.try_run(self.namespace, *command)

    def write(self, path: str, text: str) -> None:
        """Write to a file below /proc/sys as the device sees it."""
        self.network.write(self.namespace, path, text)

    def received(self, link: int) -> int:
        """Packets that the kernel received on a link, by the counter of the interface."""
        return int(self.network.received(self.namespace, self.far(link))[0])

    def sent(self, link: int) -> int:
        """Packets that the kernel sent on a link, by the counter of the interface."""
        return int(self.network.sent(self.namespace, self.far(link))[0])

    def lost(self, link: int) -> int:
        """Packets that were lost on the two wires of a link, for want of room at the end of the wire."""
        ends = [(None, self._links[link][0]), (self.namespace, self.far(link))]
        facts = [self.network.facts(namespace, end)["stats64"] for namespace, end in ends]
        return sum(int(fact[way]["dropped"]) for fact in facts for way in ("rx", "tx"))


class Router(Device):
    """A Linux router. On link n it is 10.0.n.1/24, and 2001:db8:n::1/64 when it is told to route IPv6.

    With ``neighbors`` it knows that all hosts of link n are behind our port n, so that it asks nobody.
    """

    def __init__(
        self,
        network: Any,
        name: str = "router",
        links: int = 2,
        mtu: int = 1500,
        ipv6: bool = False,
        neighbors: bool = True,
    ) -> None:
        super().__init__(network, name, links, mtu)
        for link in range(links):
            self.run("ip", "address", "add", f"10.0.{link}.1/24", "dev", self.far(link))
            if ipv6:
                self._address_ipv6(link)
            if neighbors:
                self.introduce(link, [2], ipv6)
        self.write("/proc/sys/net/ipv4/ip_forward", "1")
        if ipv6:
            self.write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
        # Tests ask for more errors than a router in the field may send.
        self.write("/proc/sys/net/ipv4/icmp_ratelimit", "0")
        self._count()

    def introduce(self, link: int, hosts: Iterable[int], ipv6: bool = False) -> None:
        """Tell the router that hosts 10.0.link.host are behind our port, so that it need not ask."""
        mac = self.network.mac(None, self.ports[link])
        addresses = [f"10.0.{link}.{host}" for host in hosts]
        if ipv6:
            addresses += [f"2001:db8:{link}::{host:x}" for host in hosts]
        lines = [f"neighbor add {address} lladdr {mac} dev {self.far(link)}" for address in addresses]
        self.network.run(self.namespace, "ip", "-batch", "-", typed="\n".join(lines))

    def rules(self, text: str) -> None:
        """Add rules of nftables."""
        self.network.run(self.namespace, "nft", "-f", "-", typed=text)

    def counters(self) -> dict[str, int]:
        """Packets that the kernel counted by rules: "in0", "out1", "forwarded", "to-me" and the test's own.

        IPv4 and IPv6 alike; "in" is before and "out" is after all else that happens to a packet. What the
        kernel sends to groups of IPv6 of its own is left out.
        """
        listed = json.loads(self.run("nft", "-j", "list", "counters"))["nftables"]
        counters = [item["counter"] for item in listed if "counter" in item]
        return {counter["name"]: int(counter["packets"]) for counter in counters}

    def protocol(self, name: str = "Ip") -> dict[str, int]:
        """What the kernel's protocols counted, by the names of /proc/net/snmp: "Ip", "Icmp", "Ip6", ..."""
        if name.endswith("6"):
            words = (line.split() for line in self.run("cat", "/proc/net/snmp6").splitlines())
            return {key.removeprefix(name): int(value) for key, value in words if key.startswith(name)}
        lines = [
            line for line in self.run("cat", "/proc/net/snmp").splitlines() if line.startswith(f"{name}:")
        ]
        names, values = (line.split()[1:] for line in lines)
        return dict(zip(names, map(int, values), strict=True))

    def _address_ipv6(self, link: int) -> None:
        interface = f"/proc/sys/net/ipv6/conf/{self.far(link)}"
        # It looks for no other router, and sends nothing to see whether its address is taken.
        for name in ("accept_ra", "router_solicitations", "autoconf", "accept_dad", "dad_transmits"):
            self.write(f"{interface}/{name}", "0")
        self.write(f"{interface}/disable_ipv6", "0")
        self.run("ip", "address", "add", f"2001:db8:{link}::1/64", "dev", self.far(link), "nodad")

    def _count(self) -> None:
        links = range(len(self.ports))
        ins = [f'iifname "{self.far(link)}" counter name "in{link}"' for link in links]
        outs = [f'oifname "{self.far(link)}" counter name "out{link}"' for link in links]
        names = [*(f"in{link}" for link in links), *(f"out{link}" for link in links), "forwarded", "to-me"]
        outs.insert(0, "ip6 daddr ff00::/8 accept")
        chains = {
            "enters": ("prerouting priority -450", ins),
            "passes": ("forward priority 450", ['counter name "forwarded"']),
            "stays": ("input priority 450", ['counter name "to-me"']),
            "leaves": ("postrouting priority 450", outs),
        }
        lines = ["table inet watch {", *(f"  counter {name} {{ }}" for name in names)]
        for chain, (hook, rules) in chains.items():
            lines += [f"  chain {chain} {{", f"    type filter hook {hook};", *rules, "  }"]
        self.rules("\n".join([*lines, "}", ""]))


class Nat(Router):
    """A router that hides the hosts of link 0 behind its address on link 1: 10.0.1.1, and 2001:db8:1::1 with
    ``ipv6``.

    ``forwards`` maps UDP and TCP ports of 10.0.1.1 to where they really are: {8080: "10.0.0.2:80"}.
    """

    def __init__(
        self, network: Any, name: str = "nat", forwards: dict[int, str] | None = None, ipv6: bool = False
    ) -> None:
        super().__init__(network, name, ipv6=ipv6)
        inside, outside = self.far(0), self.far(1)
        to_inside = [
            f'    iifname "{outside}" {kind} dport {port} dnat ip to {place}'
            for port, place in (forwards or {}).items()
            for kind in ("udp", "tcp")
        ]
        lines = [
            "table inet nat {",
            "  chain incoming {",
            "    type nat hook prerouting priority -100;",
            *to_inside,
            "  }",
            "  chain outgoing {",
            "    type nat hook postrouting priority 100;",
            f'    iifname "{inside}" oifname "{outside}" masquerade',
            "  }",
            "}",
            "table inet filter {",
            "  counter invalid { }",
            "  chain pass {",
            "    type filter hook forward priority 0;",
            '    ct state invalid counter name "invalid" drop',
            "  }",
            "}",
            "",
        ]
        self.rules("\n".join(lines))

    def connections(self, ipv6: bool = False) -> list[dict[str, str]]:
        """The NAT's table: of each connection "protocol", and "src", "dst", "sport", "dport" both ways.

        The words of the way back begin with "reply-".
        """
        table = []
        for line in self.run("conntrack", "-L", "-f", "ipv6" if ipv6 else "ipv4").splitlines():
            words = re.findall(r"(src|dst|sport|dport|id)=(\S+)", line)
            connection = {"protocol": line.split()[0]}
            for word, value in words:
                connection[f"reply-{word}" if word in connection else word] = value
            table.append(connection)
        return table

    def connection_count(self) -> int:
        """How many connections the NAT knows."""
        return int(self.run("conntrack", "-C"))


class Bridge(Device):
    """A bridge over all links; it learns who is where. With ``vlans`` each link is only in those named."""

    def __init__(
        self, network: Any, name: str = "bridge", links: int = 2, vlans: dict[int, list[int]] | None = None
    ) -> None:
        super().__init__(network, name, links)
        # Nothing of its own: no spanning tree, no queries to multicast groups.
        options = ["stp_state", "0", "mcast_snooping", "0"]
        if vlans is not None:
            options += ["vlan_filtering", "1", "vlan_default_pvid", "0"]
        self.run("ip", "link", "add", "name", "bridge", "type", "bridge", *options)
        self.network.silence(self.namespace, "bridge")
        for link in range(links):
            self.run("ip", "link", "set", self.far(link), "master", "bridge")
        for link, numbers in (vlans or {}).items():
            for number in numbers:
                self.run("bridge", "vlan", "add", "dev", self.far(link), "vid", str(number))
        self.run("ip", "link", "set", "bridge", "up")

    def where(self, mac: str) -> int | None:
        """Behind which link the bridge saw this MAC address as a sender."""
        known = json.loads(self.run("bridge", "-j", "fdb", "show", "br", "bridge"))
        places = [
            entry["ifname"]
            for entry in known
            if entry["mac"] == mac and "permanent" not in (entry.get("state"), *entry.get("flags", []))
        ]
        return [self.far(link) for link in range(len(self.ports))].index(places[0]) if places else None


def vlan_filtering_works(network: Any) -> bool:
    """Whether the bridges of this kernel can keep VLANs apart."""
    space = network.namespace("vlan-probe")
    made = ["ip", "link", "add", "name", "probe", "type", "bridge", "vlan_filtering", "1"]
    if not network.try_run(space, *made):
        return False
    facts = network.facts(space, "probe")
    return bool(facts["linkinfo"]["info_data"].get("vlan_filtering"))
