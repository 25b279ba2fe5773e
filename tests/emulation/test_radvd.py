"""A thousand emulated clients and the IPv6 of Linux: radvd's prefixes, and leases of dnsmasq's DHCPv6."""

from __future__ import annotations

import sys
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from types import ModuleType
from typing import Any

# Asks each host until it answers, and prints those that did.
PING = """
import socket, struct, sys
line = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
line.settimeout(1)
waiting = set(sys.stdin.read().split())
while waiting:
    for number, host in enumerate(sorted(waiting)):
        try:
            line.sendto(struct.pack("!BBHHH", 128, 0, 0, 7, 1) + bytes(16), (host, 0))
        except OSError:
            continue  # The kernel has no room for another neighbor now.
        if number % 50 == 49:
            line.settimeout(0.05)
            try:
                while True:
                    answer, (host, *_) = line.recvfrom(2000)
                    if answer[0] == 129:
                        waiting.discard(host)
            except TimeoutError:
                pass
    line.settimeout(1)
    try:
        while waiting:
            answer, (host, *_) = line.recvfrom(2000)
            if answer[0] == 129:
                waiting.discard(host)
    except TimeoutError:
        pass
print("all")
"""


def radvd(host: Any, folder: Path, prefix: str) -> Any:
    """radvd on a host: a prefix for whoever listens."""
    host.write("ipv6/conf/all/forwarding", "1")
    config = folder / f"radvd-{prefix.split('::')[0].replace(':', '-')}.conf"
    config.write_text(
        f"interface {host.link} {{ AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4;"
        f" prefix {prefix} {{ AdvOnLink on; AdvAutonomous on; }}; }};\n"
    )
    words = ["--nodaemon", "--logmethod=stderr", f"--config={config}", f"--pidfile={folder}/radvd.pid"]
    return host.daemon(folder, "version .* started", "radvd", *words)


def slaac(prefix: str, mac: list[int]) -> bytes:
    """The address that a host makes of a prefix of 64 bits (RFC 4291, appendix A)."""
    interface = bytes([mac[0] ^ 2, *mac[1:3], 0xFF, 0xFE, *mac[3:]])
    return IPv6Network(prefix).network_address.packed[:8] + interface


def test_a_thousand_make_addresses_of_the_routers_prefix(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "radvd")
    numbers = daemons.numbers()
    first, second = "2001:db8:1::/64", "2001:db8:2::/64"
    with daemons.segment(doors, host.near) as segment:
        with radvd(host, tmp_path, first):
            segment.add(numbers, {"ipv6": {}})
            found = segment.await_addresses(numbers, "ipv6_slaac")
            assert found == {
                daemons.text(doors.mac(number)): slaac(first, doors.mac(number)) for number in numbers
            }
            (router,) = {bytes(info["ipv6_router"]["dgmac"]) for info in segment.infos(numbers)}
            assert router.hex(":") == network.mac(host.namespace, host.link)
            hosts = "\n".join(str(IPv6Address(address)) for address in found.values())
            assert network.run(host.namespace, sys.executable, "-c", PING, typed=hosts) == "all\n"
            neighbors = host.run("ip", "-6", "neighbor", "show", "dev", host.link)
            known = [line.split() for line in neighbors.splitlines() if "lladdr" in line]
            macs = {words[words.index("lladdr") + 1]: IPv6Address(words[0]).packed for words in known}
            theirs = {mac: address for mac, address in macs.items() if mac in found and address[0] != 0xFE}
            assert theirs and theirs.items() <= found.items()
        with radvd(host, tmp_path, second):
            doors.await_it(
                lambda: (
                    set(segment.addresses(numbers, "ipv6_slaac").values())
                    == {slaac(second, doors.mac(number)) for number in numbers}
                ),
                "the new prefix was never taken",
            )


def leases(folder: Path) -> dict[bytes, str]:
    """dnsmasq's own table: the MAC addresses in the DUIDs of those who have addresses."""
    lines = [line.split() for line in (folder / "leases").read_text().splitlines()]
    return {IPv6Address(words[2]).packed: words[4][-17:] for words in lines if len(words) == 5}


def test_dnsmasq_leases_addresses_and_takes_them_back(
    network: Any, doors: Any, daemons: ModuleType, memory: Path
) -> None:
    host = daemons.Host(network, doors, "dnsmasq")
    words = [
        "--keep-in-foreground",
        "--log-facility=-",
        "--conf-file=/dev/null",
        "--user=root",
        "--pid-file=",
        "--port=0",
        f"--interface={host.link}",
        "--bind-interfaces",
        "--dhcp-lease-max=5000",
        f"--dhcp-leasefile={memory / 'leases'}",
        "--dhcp-range=2001:db8:1::1000,2001:db8:1::ffff,64,2m",
    ]
    # It waits a tenth of a second for the MAC address of each. A thousand are before Kea.
    numbers = daemons.numbers(50)
    server = host.daemon(memory, "started, version", "dnsmasq", *words)
    with server, daemons.segment(doors, host.near) as segment:
        segment.add(numbers, {"ipv6": {}, "dhcpv6": {"timerd": 1, "timero": 1}})
        found = segment.await_addresses(numbers, "dhcp_ipv6")
        assert len(set(found.values())) == len(numbers)
        segment.agree(lambda: leases(memory), {address: mac for mac, address in found.items()})
        # Who is removed gives its address back.
        segment.remove(numbers[:20])
        segment.agree(lambda: len(leases(memory)), len(numbers) - 20)
