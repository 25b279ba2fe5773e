"""A thousand emulated clients and Avahi find each other by multicast DNS."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

BUS = """<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
<allow receive_sender="*"/></policy></busconfig>
"""
AVAHI = """[server]
host-name=printer
domain-name=local
use-ipv4=yes
use-ipv6=no
allow-interfaces={link}
ratelimit-interval-usec=0
ratelimit-burst=0
objects-per-client-max=5000
cache-entries-max=20000
[wide-area]
enable-wide-area=no
[publish]
publish-workstation=no
publish-aaaa-on-ipv4=no
"""


def test_avahi_resolves_a_thousand_hosts_and_they_resolve_it(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "avahi")
    numbers = daemons.numbers()
    (tmp_path / "bus.conf").write_text(BUS.format(path=tmp_path / "bus"))
    (tmp_path / "avahi.conf").write_text(AVAHI.format(link=host.link))
    bus = f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={tmp_path / 'bus'}"
    dbus = ["--nofork", f"--config-file={tmp_path / 'bus.conf'}", "--print-address=1"]
    avahi = ["--no-drop-root", "--no-chroot", "--no-rlimits", "-f", str(tmp_path / "avahi.conf")]
    with (
        host.daemon(tmp_path, "unix:path", "dbus-daemon", *dbus),
        host.daemon(tmp_path, "startup complete", "avahi-daemon", *avahi, environment=[bus]),
        daemons.segment(doors, host.near) as segment,
    ):
        segment.add(
            numbers,
            lambda number: {"arp": {}, "mdns": {"hosts": [f"host-{number}.local"], "ttl": 120}},
            ipv4=lambda number: doors.ipv4_bytes(doors.ipv4(number)),
        )
        names = {f"host-{number}.local": doors.ipv4(number) for number in numbers}
        words = ["env", bus, daemons.path("avahi-resolve"), "-4", "-n"]
        found: dict[str, str] = {}

        def resolve() -> bool:
            missing = [name for name in names if name not in found]
            lines = host.run(*words, *missing[:250]).splitlines()
            found.update(line.split("\t") for line in lines if "\t" in line)
            return found == names

        doors.await_it(resolve, "Avahi never found all hosts")
        segment.each("mdns_c_query", numbers, queries=[{"name": "printer.local"}])

        def answers() -> list[str]:
            page = segment.door.call("mdns_ns_cache_iter", tun=segment.tunnel, reset=True, count=100)
            return [one["answer"] for one in page["data"] or [] if one["name"] == "printer.local"]

        assert doors.await_it(answers, "Avahi never answered") == [daemons.HOST_IPV4]
        counters = segment.door.counters("mdns_ns_cnt", tun=segment.tunnel)
        assert {name for name in counters if "Err" in name or "Bad" in name} == set()
