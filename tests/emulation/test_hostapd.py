"""A thousand emulated clients log in at hostapd: the switch of 802.1X, with its own EAP server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MD5, MSCHAPV2 = 4, 26
IN, OUT = 4, 5
COUNTERS = "dot1x_client_cnt"
USERS = """
"alice" MD5,MSCHAPV2 "secret"
"bob" MSCHAPV2,MD5 "hunter2"
"eve" MD5 "guess"
"""
RADIUS = """
prefix = /usr
libdir = /usr/lib/freeradius
logdir = {folder}
max_requests = 4096
log {{ destination = stdout
auth = yes }}
security {{ reject_delay = 0 }}
client switch {{ ipaddr = 127.0.0.1
secret = testing }}
modules {{
eap {{ default_eap_type = md5
max_sessions = 4096
md5 {{ }}
mschapv2 {{ }} }}
mschap {{ }}
files {{ usersfile = {folder}/accounts }}
}}
server default {{
listen {{ type = auth
ipaddr = 127.0.0.1
port = 1812 }}
authorize {{
files
eap
}}
authenticate {{
eap
Auth-Type MS-CHAP {{
mschap
}}
}}
}}
"""
PATIENT = {"timeo_idle": 5, "max_start": 20}


@pytest.fixture
def host(network: Any, doors: Any, daemons: ModuleType) -> Any:
    daemons.path("hostapd")
    return daemons.Host(network, doors, "switch")


def hostapd(host: Any, folder: Path, **more: Any) -> Any:
    """hostapd on a host, as a switch with wires."""
    (folder / "users").write_text(USERS)
    settings = {
        "interface": host.link,
        "driver": "wired",
        "ieee8021x": 1,
        "eap_server": 1,
        "eap_user_file": folder / "users",
        "use_pae_group_addr": 0,
        "ctrl_interface": folder / "control",
        "eap_reauth_period": 0,
        **more,
    }
    config = folder / "hostapd.conf"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return host.daemon(folder, "AP-ENABLED", "hostapd", str(config))


def stations(host: Any, folder: Path, daemons: ModuleType) -> dict[str, dict[str, str]]:
    """hostapd's own table: what it knows of each MAC address."""
    words = [daemons.path("hostapd_cli"), "-p", str(folder / "control"), "-i", host.link, "all_sta"]
    found: dict[str, dict[str, str]] = {}
    for line in host.run(*words).splitlines():
        if re.fullmatch("([0-9a-f]{2}:){5}[0-9a-f]{2}", line):
            found[line] = {}
        elif "=" in line:
            name, value = line.split("=", 1)
            found[list(found)[-1]][name] = value
    return found


def inside(host: Any, folder: Path, daemons: ModuleType) -> set[str]:
    """The MAC addresses that hostapd lets in."""
    known = stations(host, folder, daemons)
    return {mac for mac, facts in known.items() if "[AUTHORIZED]" in facts["flags"]}


def states(segment: Any, numbers: Any) -> list[tuple[int, int]]:
    infos = segment.door.call("dot1x_client_info", tun=segment.tunnel, macs=segment.macs(numbers))
    return [(info["state"], info["method"]) for info in infos]


def ended(segment: Any, numbers: Any) -> list[tuple[int, int] | None]:
    """How the logins of clients ended, of those that did."""
    return [one if one[0] in (IN, OUT) else None for one in states(segment, numbers)]


def login(number: int) -> dict[str, Any]:
    """Every third client insists on MSCHAPv2, every third begins with it, every third does MD5."""
    alice = {"user": "alice", "password": "secret", **PATIENT}
    bob = {"user": "bob", "password": "hunter2", **PATIENT}
    return {"dot1x": [alice, {**alice, "flags": 1}, bob][number % 3]}


def test_a_thousand_log_in_and_log_in_again(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    numbers = daemons.numbers()
    methods = [[MD5, MSCHAPV2, MSCHAPV2][number % 3] for number in numbers]
    with hostapd(host, tmp_path, eap_reauth_period=4), daemons.segment(doors, host.near) as segment:
        segment.add(numbers, login)
        expected = [(IN, method) for method in methods]
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        assert list(found.values()) == expected
        before = dict(zip(numbers, segment.counters(COUNTERS, numbers), strict=True))

        def said_again(some: Sequence[int]) -> list[bool]:
            now = zip(some, segment.counters(COUNTERS, some), strict=True)
            return [counters["pktTxIdentity"] > before[number]["pktTxIdentity"] for number, counters in now]

        segment.await_each(numbers, said_again)
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        assert list(found.values()) == expected
        segment.agree(
            lambda: inside(host, tmp_path, daemons), {daemons.text(mac) for mac in segment.macs(numbers)}
        )
        known = stations(host, tmp_path, daemons)
        for number in numbers:
            facts = known[daemons.text(doors.mac(number))]
            assert facts["dot1xAuthSessionUserName"] == login(number)["dot1x"]["user"]


def test_who_does_not_know_the_password_stays_out(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    wrong = {
        1: {"user": "alice", "password": "wrong", **PATIENT},
        2: {"user": "bob", "password": "wrong", **PATIENT},
        3: {"user": "mallory", "password": "secret", **PATIENT},
        4: {"user": "eve", "password": "guess", **PATIENT, "flags": 1},
        5: {"user": "alice", "password": "secret", **PATIENT},
    }
    with hostapd(host, tmp_path) as switch, daemons.segment(doors, host.near) as segment:
        segment.add(wrong, lambda number: {"dot1x": wrong[number]})
        doors.await_it(
            lambda: [state for state, _ in states(segment, [1, 2, 5])] == [OUT, OUT, IN],
            "the password did not count",
        )
        assert inside(host, tmp_path, daemons) == {daemons.text(doors.mac(5))}
        assert not {state for state, _ in states(segment, [3, 4])} & {IN}
        # A switch that was restarted knows nobody until somebody logs in.
        switch.stop()
        switch.start()
        assert inside(host, tmp_path, daemons) == set()
        segment.remove([5])
        segment.add([5], {"dot1x": wrong[5]})
        segment.agree(lambda: inside(host, tmp_path, daemons), {daemons.text(doors.mac(5))})


def test_a_twentieth_of_all_frames_may_be_lost(
    network: Any, host: Any, doors: Any, daemons: ModuleType, bad_link: Any, tmp_path: Path
) -> None:
    numbers = daemons.numbers()
    near, wire, ends = daemons.across(network, host)
    with (
        hostapd(host, tmp_path) as switch,
        bad_link(wire, ends, loss=50) as link,
        daemons.segment(doors, near) as segment,
    ):
        segment.add(numbers, login)
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        assert {state for state, _ in found.values()} == {IN}
        # Its log, because it forgets, ten seconds later, who had to begin four times.
        let_in = re.findall("CTRL-EVENT-EAP-SUCCESS (\\S+)", switch.log())
        assert set(let_in) == {daemons.text(mac) for mac in segment.macs(numbers)}
    assert link.passed["lost"] > 0


def freeradius(host: Any, folder: Path) -> Any:
    """FreeRADIUS on a host's loopback, with the users of the other tests."""
    (folder / "dictionary").write_text("")
    (folder / "accounts").write_text(
        'alice Cleartext-Password := "secret"\nbob Cleartext-Password := "hunter2"\n'
    )
    (folder / "radiusd.conf").write_text(RADIUS.format(folder=folder))
    words = ["-f", "-l", "stdout", "-d", str(folder)]
    return host.daemon(folder, "Ready to process requests", "freeradius", *words)


def test_a_switch_may_ask_freeradius(host: Any, doors: Any, daemons: ModuleType, tmp_path: Path) -> None:
    # hostapd forgets the oldest when more than thirty requests wait for their answers.
    numbers = daemons.numbers(100)
    radius = {
        "eap_server": 0,
        "own_ip_addr": "127.0.0.1",
        "auth_server_addr": "127.0.0.1",
        "auth_server_port": 1812,
        "auth_server_shared_secret": "testing",
    }
    wrong = {"user": "alice", "password": "wrong", **PATIENT}
    with (
        freeradius(host, tmp_path) as server,
        hostapd(host, tmp_path, **radius),
        daemons.segment(doors, host.near) as segment,
    ):
        segment.add(numbers, lambda number: {"dot1x": wrong} if number > 90 else login(number))
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        states_found = [found[number][0] for number in numbers]
        assert states_found == [OUT if number > 90 else IN for number in numbers]
        logged_in = set(re.findall(r"Login OK: \[\w+\].* cli ([0-9A-F-]+)\)", server.log()))
        expected = {daemons.text(mac) for mac in segment.macs(numbers[:90])}
        assert {mac.replace("-", ":").lower() for mac in logged_in} == expected
        assert {method for _, method in found.values()} == {MD5, MSCHAPV2}
