"""Emulated clients log in at hostapd: the switch of 802.1X, with its own EAP server or with FreeRADIUS."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MD5, TLS, TTLS, PEAP, MSCHAPV2 = 4, 13, 21, 25, 26
IN, OUT = 4, 5
COUNTERS = "dot1x_client_cnt"
USERS = """
"alice" MD5,MSCHAPV2 "secret"
"bob" MSCHAPV2,MD5 "hunter2"
"eve" MD5 "guess"
"certified" TLS
"peaps" PEAP
"ttlss" TTLS
"carol" MSCHAPV2 "tunnel" [2]
"dave" TTLS-PAP,TTLS-MSCHAPV2 "tunnel" [2]
"""
RADIUS_HEAD = """
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
"""
RADIUS = (
    RADIUS_HEAD
    + """eap {{ default_eap_type = md5
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
)
RADIUS_TLS = (
    RADIUS_HEAD
    + """eap {{ default_eap_type = peap
max_sessions = 4096
tls-config common {{
private_key_file = {tls}/server-rsa.key
certificate_file = {tls}/server-rsa.pem
ca_file = {tls}/ca.pem
tls_min_version = "{version}"
tls_max_version = "{version}"
fragment_size = 512
include_length = yes
cache {{ enable = no }} }}
tls {{ tls = common }}
ttls {{ tls = common
default_eap_type = mschapv2
virtual_server = inner }}
peap {{ tls = common
default_eap_type = mschapv2
virtual_server = inner }}
mschapv2 {{ }} }}
mschap {{ }}
pap {{ }}
files {{ usersfile = {folder}/accounts }}
}}
server default {{
listen {{ type = auth
ipaddr = 127.0.0.1
port = 1812 }}
authorize {{
eap
}}
authenticate {{
eap
}}
}}
server inner {{
authorize {{
files
mschap
pap
eap
}}
authenticate {{
eap
Auth-Type PAP {{
pap
}}
Auth-Type MS-CHAP {{
mschap
}}
}}
}}
"""
)
CERTIFICATES = Path(__file__).parents[1] / "data" / "tls"
VERSIONS = ["1.2", "1.3"]
RADIUS_CLIENT = {
    "eap_server": 0,
    "own_ip_addr": "127.0.0.1",
    "auth_server_addr": "127.0.0.1",
    "auth_server_port": 1812,
    "auth_server_shared_secret": "testing",
}
PATIENT = {"timeo_idle": 5, "max_start": 20}


def pem(name: str) -> str:
    """The text of a certificate or key."""
    return (CERTIFICATES / name).read_text(encoding="ascii")


OWN = {"client_cert": pem("client.pem"), "private_key": pem("client.key")}
STRANGE = {"client_cert": pem("stranger.pem"), "private_key": pem("stranger.key")}
# Each method, and the name that is said outside of its tunnel.
BY_TLS: list[tuple[int, dict[str, Any]]] = [
    (TLS, {"method": ["tls"], "user": "certified", **OWN}),
    (PEAP, {"method": ["peap", "md5"], "user": "carol", "anonymous_identity": "peaps"}),
    (TTLS, {"method": "ttls", "phase2": "pap", "user": "dave", "anonymous_identity": "ttlss"}),
    (TTLS, {"method": "ttls", "user": "dave", "anonymous_identity": "ttlss", "fragment_size": 200}),
]
COMMON = {"dot1x": {"ca_cert": pem("ca.pem"), "password": "tunnel", "timeo_idle": 5, "max_start": 20}}
"""Init JSON of a namespace, for all its clients."""


def by_tls(number: int, **more: Any) -> dict[str, Any]:
    """The methods over TLS in turn."""
    return {"dot1x": {**BY_TLS[number % len(BY_TLS)][1], **more}}


def method_of(number: int) -> int:
    return BY_TLS[number % len(BY_TLS)][0]


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


@pytest.mark.parametrize(("plugins", "count"), [(login, 1000), (by_tls, 200)])
def test_a_twentieth_of_all_frames_may_be_lost(
    network: Any,
    host: Any,
    doors: Any,
    daemons: ModuleType,
    bad_link: Any,
    tmp_path: Path,
    plugins: Callable[[int], dict[str, Any]],
    count: int,
) -> None:
    numbers = daemons.numbers(count)
    near, wire, ends = daemons.across(network, host)
    with (
        hostapd(host, tmp_path, **with_tls("1.3")) as switch,
        bad_link(wire, ends, loss=50) as link,
        daemons.segment(doors, near, **COMMON) as segment,
    ):
        segment.add(numbers, plugins)
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        assert {state for state, _ in found.values()} == {IN}
        # Its log, because it forgets, ten seconds later, who had to begin four times.
        let_in = re.findall("CTRL-EVENT-EAP-SUCCESS (\\S+)", switch.log())
        assert set(let_in) == {daemons.text(mac) for mac in segment.macs(numbers)}
    assert link.passed["lost"] > 0


def freeradius(host: Any, folder: Path, config: str = RADIUS, **words: Any) -> Any:
    """FreeRADIUS on a host's loopback, with the users of the other tests."""
    (folder / "dictionary").write_text("")
    accounts = {"alice": "secret", "bob": "hunter2", "carol": "tunnel", "dave": "tunnel"}
    lines = (f'{user} Cleartext-Password := "{password}"\n' for user, password in accounts.items())
    (folder / "accounts").write_text("".join(lines))
    (folder / "radiusd.conf").write_text(config.format(folder=folder, **words))
    options = ["-f", "-l", "stdout", "-d", str(folder)]
    return host.daemon(folder, "Ready to process requests", "freeradius", *options)


def test_a_switch_may_ask_freeradius(host: Any, doors: Any, daemons: ModuleType, tmp_path: Path) -> None:
    # hostapd forgets the oldest when more than thirty requests wait for their answers.
    numbers = daemons.numbers(100)
    wrong = {"user": "alice", "password": "wrong", **PATIENT}
    with (
        freeradius(host, tmp_path) as server,
        hostapd(host, tmp_path, **RADIUS_CLIENT),
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


def with_tls(version: str, cert: str = "server") -> dict[str, Any]:
    """What hostapd's EAP server needs for methods over TLS."""
    flags = "[ENABLE-TLSv1.3]" if version == "1.3" else "[DISABLE-TLSv1.3]"
    return {
        "ca_cert": CERTIFICATES / "ca.pem",
        "server_cert": CERTIFICATES / f"{cert}.pem",
        "private_key": CERTIFICATES / "server.key",
        "tls_flags": flags,
    }


def tls_infos(segment: Any, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """All that is known of the logins of clients."""
    infos: list[dict[str, Any]] = segment.door.call(
        "dot1x_client_info", tun=segment.tunnel, macs=segment.macs(numbers)
    )
    return infos


@pytest.mark.parametrize("version", VERSIONS)
def test_a_hundred_log_in_by_each_method_over_tls(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path, version: str
) -> None:
    numbers = daemons.numbers(100 * len(BY_TLS))
    settings = with_tls(version)
    with (
        hostapd(host, tmp_path, **settings),
        daemons.segment(doors, host.near, **COMMON) as segment,
    ):
        segment.add(numbers, by_tls)
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        assert found == {number: (IN, method_of(number)) for number in numbers}
        assert {info["tls_version"] for info in tls_infos(segment, numbers)} == {version}
        everybody = {daemons.text(mac) for mac in segment.macs(numbers)}
        segment.agree(lambda: inside(host, tmp_path, daemons), everybody)
        known = stations(host, tmp_path, daemons)
        for number in numbers:
            facts = known[daemons.text(doors.mac(number))]
            said = by_tls(number)["dot1x"]
            assert facts["last_eap_type_sta"].split()[0] == str(method_of(number))
            assert facts["dot1xAuthSessionUserName"] in {said["user"], said.get("anonymous_identity")}


@pytest.mark.parametrize("version", VERSIONS)
def test_who_may_not_log_in_over_tls_stays_out_and_knows_why(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path, version: str
) -> None:
    out: dict[int, dict[str, Any]] = {
        # Wrong passwords, a certificate of another authority, another authority of the server's.
        1: by_tls(1, password="wrong"),
        2: by_tls(2, password="wrong"),
        3: by_tls(3, password="wrong"),
        4: by_tls(4, **STRANGE),
        **{number: by_tls(number, ca_cert=pem("other-ca.pem")) for number in range(5, 9)},
        9: by_tls(9, server_name="other.example.org"),
    }
    reasons = [*["refuses"] * 4, *["UnknownIssuer"] * 4, "not valid for name"]
    right = by_tls(1, server_name="radius.example.org")
    with (
        hostapd(host, tmp_path, **with_tls(version)),
        daemons.segment(doors, host.near, **COMMON) as segment,
    ):
        segment.add([*out, 10], lambda number: out.get(number, right))
        found = segment.await_each([*out, 10], lambda some: ended(segment, some))
        assert [state for state, _ in found.values()] == [OUT] * len(out) + [IN]
        assert inside(host, tmp_path, daemons) == {daemons.text(doors.mac(10))}
        for info, reason in zip(tls_infos(segment, list(out)), reasons, strict=True):
            assert reason in info["reason"], info


def test_an_expired_certificate_is_refused_unless_nothing_is_verified(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path
) -> None:
    numbers = range(1, 9)
    with (
        hostapd(host, tmp_path, **with_tls("1.3", "expired")),
        daemons.segment(doors, host.near, **COMMON) as segment,
    ):
        segment.add(numbers, lambda number: by_tls(number, verify=number > 4))
        found = segment.await_each(numbers, lambda some: ended(segment, some))
        assert [state for state, _ in found.values()] == [IN] * 4 + [OUT] * 4
        assert all("xpired" in info["reason"] for info in tls_infos(segment, numbers[4:]))
        refused = segment.counters(COUNTERS, numbers[4:])
        assert all(one["tlsErrCertificate"] >= 1 for one in refused)


@pytest.mark.parametrize("version", VERSIONS)
def test_freeradius_lets_in_by_each_method_over_tls(
    host: Any, doors: Any, daemons: ModuleType, tmp_path: Path, version: str
) -> None:
    # No more at once than hostapd keeps requests of, and a tenth of them do not know the password.
    numbers = daemons.numbers(100 * len(BY_TLS))
    wrong = {number for number in numbers if number % 40 in {1, 2, 3}}
    radius = freeradius(host, tmp_path, RADIUS_TLS, tls=CERTIFICATES, version=version)
    with (
        radius as server,
        hostapd(host, tmp_path, **RADIUS_CLIENT),
        daemons.segment(doors, host.near, **COMMON) as segment,
    ):
        for first in range(0, len(numbers), 20):
            some = numbers[first : first + 20]
            segment.add(
                some, lambda number: by_tls(number, **({"password": "wrong"} if number in wrong else {}))
            )
            found = segment.await_each(some, lambda some: ended(segment, some))
            expected = {number: (OUT if number in wrong else IN, method_of(number)) for number in some}
            assert found == expected, server.log()[-4000:]
        assert {info["tls_version"] for info in tls_infos(segment, numbers)} == {version}
        logged_in = set(re.findall(r"Login OK: \[\w+\].* cli ([0-9A-F-]+)\)", server.log()))
        everybody = {daemons.text(doors.mac(number)) for number in numbers if number not in wrong}
        assert {mac.replace("-", ":").lower() for mac in logged_in} == everybody
        assert inside(host, tmp_path, daemons) == everybody
