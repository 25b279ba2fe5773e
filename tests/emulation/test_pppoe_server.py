"""Emulated clients find the concentrator of RP-PPPoE and get sessions; PPP in them needs the kernel's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SESSIONS = 300
# In the place of pppd: it writes down which session of which client it should carry, and stays.
PPPD = """#!/bin/sh
echo "$*" >> {folder}/sessions
exec sleep 1000
"""


def test_sessions_are_those_of_the_concentrator(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    host = daemons.Host(network, doors, "concentrator")
    numbers = daemons.numbers(SESSIONS)
    pppd = tmp_path / "pppd"
    pppd.write_text(PPPD.format(folder=tmp_path))
    pppd.chmod(0o755)
    words = ["-F", "-I", host.link, "-C", "concentrator", "-N", str(SESSIONS), "-q", str(pppd)]
    words += ["-L", daemons.HOST_IPV4, "-R", "10.1.0.1"]
    with (
        host.daemon(tmp_path, "", "pppoe-server", *words),
        daemons.segment(doors, host.near) as segment,
    ):
        login = {"ppp": {"user": "alice", "password": "secret", "timeout": 1}}
        segment.add(numbers, login)

        def sessions() -> dict[str, int] | None:
            given = segment.each("ppp_c_client_session", numbers)
            found = dict(zip(map(daemons.text, segment.macs(numbers)), given, strict=True))
            return found if all(found.values()) else None

        ours = doors.await_it(sessions, "not all clients got a session")
        mac = network.mac(host.namespace, host.link)
        assert set(segment.each("ppp_c_server_mac", numbers)) == {mac}
        started = re.findall(r"-e (\d+):([0-9a-f:]{17})", (tmp_path / "sessions").read_text())
        theirs = {client: int(session) for session, client in started}
        assert theirs == ours and len(set(theirs.values())) == SESSIONS


# pppd reads the secrets of the machine; those of the test lie over them, for the daemon alone.
SECRETS = (
    'mount --bind "$1" /etc/ppp/pap-secrets && mount --bind "$1" /etc/ppp/chap-secrets && shift && exec "$@"'
)
LOGINS = 20


@pytest.mark.parametrize("protocol", ["pap", "chap", "mschap-v2"])
def test_clients_log_in_and_get_addresses(
    network: Any, doors: Any, daemons: ModuleType, tmp_path: Path, protocol: str
) -> None:
    if not Path("/dev/ppp").exists():
        pytest.skip("there is no /dev/ppp: the kernel has no PPP (module ppp_generic)")
    host = daemons.Host(network, doors, "concentrator")
    numbers = daemons.numbers(LOGINS)
    secrets, options = tmp_path / "secrets", tmp_path / "options"
    secrets.write_text('"alice" * "secret" *\n')
    secrets.chmod(0o600)
    options.write_text(f"require-{protocol}\nnodefaultroute\nnoproxyarp\nlcp-echo-interval 1\n")
    words = ["-F", "-I", host.link, "-C", "concentrator", "-N", str(LOGINS), "-O", str(options)]
    words += ["-q", daemons.path("pppd"), "-L", daemons.HOST_IPV4, "-R", "10.1.0.1"]
    server = ["sh", "-c", SECRETS, "sh", str(secrets), daemons.path("pppoe-server"), *words]
    with host.daemon(tmp_path, "", *server), daemons.segment(doors, host.near) as segment:
        segment.add(numbers, {"ppp": {"user": "alice", "password": "secret", "timeout": 1}})

        def addresses(some: Sequence[int]) -> list[Any]:
            given = segment.each("ppp_c_client_ip", some)
            return [address if address != "0.0.0.0" else None for address in given]

        given = segment.await_each(numbers, addresses)
        assert len(set(given.values())) == LOGINS
        links = host.run("ip", "-o", "-4", "address", "show")
        for address in given.values():
            assert f"peer {address}/32" in links
