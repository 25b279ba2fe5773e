"""A thousand emulated clients ask unbound for names: when they are told to, and by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

UNBOUND = """server:
  interface: {address}
  access-control: 10.0.0.0/8 allow
  username: ""
  chroot: ""
  directory: "{folder}"
  pidfile: "{folder}/unbound.pid"
  use-syslog: no
  do-daemonize: no
  verbosity: 1
  module-config: "iterator"
  num-threads: 1
  so-rcvbuf: 0
  statistics-cumulative: yes
  local-zone: "lan." static
{data}
remote-control:
  control-enable: yes
  control-interface: {folder}/control
  control-use-cert: no
"""
CACHED = {"A", "AAAA", "PTR"}


def address(kind: str, number: int) -> str:
    return f"10.9.{number >> 8}.{number & 0xFF}" if kind == "A" else str(ip_address("2001:db8::") + number)


def unbound(host: Any, folder: Path, daemons: ModuleType, numbers: Any) -> Any:
    """unbound on a host, with names of its own."""
    lines = []
    for number in numbers:
        name, reverse = f"host-{number}.lan", ip_address(address("A", number)).reverse_pointer
        lines += [f'  local-data: "{name} A {address("A", number)}"']
        lines += [f'  local-data: "{name} AAAA {address("AAAA", number)}"']
        lines += [f'  local-data: "{reverse} PTR {name}"']
    config = folder / "unbound.conf"
    text = UNBOUND.format(address=daemons.HOST_IPV4, folder=folder, data="\n".join(lines))
    config.write_text(text)
    return host.daemon(folder, "start of service", "unbound", "-d", "-p", "-c", str(config))


def questions(number: int) -> dict[tuple[str, str], str]:
    """What a client asks, and what the answers are."""
    name = f"host-{number}.lan"
    return {
        (name, "A"): address("A", number),
        (name, "AAAA"): address("AAAA", number),
        (ip_address(address("A", number)).reverse_pointer, "PTR"): name,
    }


def query(place: int) -> Callable[[int], list[dict[str, str]]]:
    """The question of a client at this place, as a request has it."""

    def of(number: int) -> list[dict[str, str]]:
        name, kind = list(questions(number))[place]
        return [{"name": name, "dns_type": kind}]

    return of


@pytest.fixture
def host(network: Any, doors: Any, daemons: ModuleType) -> Any:
    daemons.path("unbound")
    return daemons.Host(network, doors, "unbound")


def queries(host: Any, folder: Path, daemons: ModuleType) -> int:
    """How many queries unbound has counted."""
    words = [daemons.path("unbound-control"), "-c", str(folder / "unbound.conf"), "stats_noreset"]
    facts = dict(line.split("=") for line in host.run(*words).splitlines())
    return int(facts["total.num.queries"])


def plugins(daemons: ModuleType) -> dict[str, Any]:
    return {"arp": {}, "transport": {}, "dns": {"dns_server_ip": daemons.HOST_IPV4}}


def test_each_of_a_thousand_gets_the_answers_to_its_questions(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    numbers = daemons.numbers()
    server = unbound(host, tmp_path, daemons, numbers)
    with server, daemons.segment(doors, host.near) as segment:
        segment.add(
            numbers,
            plugins(daemons),
            ipv4=lambda number: doors.ipv4_bytes(doors.ipv4(number)),
            ipv4_dg=doors.ipv4_bytes(daemons.HOST_IPV4),
        )
        segment.await_gateways(numbers)
        sent = 0

        def answers(some: Sequence[int]) -> list[bool]:
            nonlocal sent
            for place in range(3):
                segment.each("dns_c_query", some, queries=query(place))
                sent += len(some)
            pages = segment.each("dns_c_cache_iter", some, reset=True, count=10)
            known = [
                {(one["name"], one["dns_type"]): one["answer"] for one in page["data"] or []}
                for page in pages
            ]
            return [one == questions(number) for number, one in zip(some, known, strict=True)]

        segment.await_each(numbers, answers)
        assert 3 * len(numbers) <= queries(host, tmp_path, daemons) <= sent


def test_they_ask_by_themselves_and_after_a_restart(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    numbers, amount = daemons.numbers(), 2000
    play = {
        "auto_play": True,
        "auto_play_params": {
            "rate": 1000.0,
            "query_amount": amount,
            "min_client": daemons.text(doors.mac(1)),
            "max_client": daemons.text(doors.mac(len(numbers))),
            "client_step": 1,
            "hostname_template": "host-%v.lan",
            "min_hostname": 1,
            "max_hostname": len(numbers),
            "init_hostname": 1,
            "hostname_step": 1,
            "type": "A",
            "class": "IN",
        },
    }
    server = unbound(host, tmp_path, daemons, numbers)
    with server, daemons.segment(doors, host.near, dns=play) as segment:
        segment.add(
            numbers,
            plugins(daemons),
            ipv4=lambda number: doors.ipv4_bytes(doors.ipv4(number)),
            ipv4_dg=doors.ipv4_bytes(daemons.HOST_IPV4),
        )
        segment.door.await_counter("autoPlayQueries", amount // 2, "dns_ns_cnt", tun=segment.tunnel)
        first = queries(host, tmp_path, daemons)
        server.stop()
        server.start()
        segment.door.await_counter("autoPlayQueries", amount, "dns_ns_cnt", tun=segment.tunnel)
        doors.await_it(lambda: queries(host, tmp_path, daemons) > 0, "nobody asked after the restart")
        pages = segment.each("dns_c_cache_iter", numbers, reset=True, count=10)
        right = [one for page in pages for one in page["data"] or []]
        assert first > 0 and len(right) > 0
        for one in right:
            number = int(one["name"].removeprefix("host-").removesuffix(".lan"))
            assert one["answer"] == address("A", number)
