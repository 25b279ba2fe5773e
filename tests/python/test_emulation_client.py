"""Values, profiles and tunables of emulated clients, requests in bulk, and bad input."""

from __future__ import annotations

import enum
import gc
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    EMUClient,
    EMUClientKey,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
    HostPort,
    Ipv4,
    Ipv6,
    Mac,
    STLConnectionError,
    STLError,
    STLProfileError,
    STLRpcError,
)
from allosaur.rpc._rpc import decode, encode

KEY = EMUNamespaceKey(vport=1, tci=7)
PROFILE = """
import argparse
from trex.emu.api import *

class Prof1:
    def get_profile(self, tuneables):
        parser = argparse.ArgumentParser()
        parser.add_argument("--clients", type=int, default=3)
        args = parser.parse_args(tuneables)
        hosts = [EMUClientObj(mac=Mac("00:00:00:70:00:01")[i].V()) for i in range(args.clients)]
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(vport=0), hosts, def_c_plugs={"arp": {}}))

def register():
    return Prof1()
"""


class Server:
    """A server that says yes to everything, or refuses a request by its number."""

    address = "mock://server"

    def __init__(self) -> None:
        self.messages: list[list[dict[str, Any]]] = []
        self.refused: dict[int, str] = {}
        self.results: dict[str, Any] = {"api_sync_v2": {"api_h": "x"}, "get_version": {"version": "mock"}}

    @property
    def requests(self) -> list[dict[str, Any]]:
        """All requests, in order."""
        return [request for message in self.messages for request in message]

    def open(self, timeout_s: float) -> None:
        """Be there."""

    def close(self) -> None:
        """Go away."""

    def subscribe(self) -> Any:
        """Nothing is published."""
        raise NotImplementedError

    def request(self, payload: bytes, timeout_s: float) -> bytes:
        """Answer one message."""
        body = decode(payload)
        message = body if isinstance(body, list) else [body]
        self.messages.append(message)
        first = len(self.requests) - len(message)
        answers = [self._answer(first + at, request) for at, request in enumerate(message)]
        return encode(answers if isinstance(body, list) else answers[0])

    def _answer(self, number: int, request: dict[str, Any]) -> dict[str, Any]:
        if number in self.refused:
            return {"id": request["id"], "error": {"code": -32600, "message": self.refused[number]}}
        return {"id": request["id"], "result": self.results.get(request["method"], True)}


OTHER_VALUES = [1, 1.0, True, {"a": 1}, {"a": True}, {"a": 1.0}, {"b": [1, "é"]}, {"b": (1, "é")}, None, {}]


class Level(enum.IntEnum):
    """A number that is no plain one."""

    HIGH = 3


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def client(server: Server) -> EMUClient:
    connected = EMUClient(transport=server)
    connected.connect()
    server.messages.clear()
    return connected


def hosts(count: int) -> list[EMUClientObj]:
    mac, ipv4 = Mac("00:00:00:70:00:01"), Ipv4("16.0.0.1")
    return [EMUClientObj(mac[at].V(), ipv4=ipv4[at], plugs={"arp": {"timer": at % 3}}) for at in range(count)]


def test_values_count_and_have_two_forms() -> None:
    assert Mac("00:00:00:00:00:ff")[2].S() == "00:00:00:00:01:01"
    assert Mac([0, 0, 0, 112, 0, 1]).V() == [0, 0, 0, 112, 0, 1]
    assert Ipv4("10.0.0.255")[2].V() == [10, 0, 1, 1]
    assert Ipv4("10.0.1.0")[-1].S() == "10.0.0.255"
    assert Ipv6("2001:DB8:1::2")[0xFFFF].S() == "2001:db8:1::1:1"
    assert Ipv4(Ipv4("224.0.0.1", mc=True))[1].mc
    assert str(HostPort("16.0.0.1", "80")) == "16.0.0.1:80"
    assert HostPort("2001:db8::1", 80).encode() == "[2001:db8::1]:80"
    assert HostPort.decode("[2001:db8::1]:80") == (Ipv6("2001:db8::1"), 80)
    assert HostPort.decode("16.0.0.1:80") == (Ipv4("16.0.0.1"), 80)
    assert Mac.is_valid([1] * 6) and not Mac.is_valid([256] * 6) and not Ipv4.is_valid([10, 0, 0, 1], mc=True)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Mac("00:00:00:70:00"), "mac.*'00:00:00:70:00'.*list of 6 bytes"),
        (lambda: Mac([0, 0, 0, 112, 0, 256]), "mac.*256"),
        (lambda: Ipv4("16.0.0"), "ipv4.*'16.0.0'.*16.0.0.1"),
        (lambda: Ipv6([1, 2]), "ipv6.*list of 16 bytes"),
        (lambda: Mac("ff:ff:ff:ff:ff:ff")[1], "past the last"),
        (lambda: Ipv4("0.0.0.0")[-1], "below the first"),
        (lambda: Ipv4("16.0.0.1", mc=True), "multicast group, 224.0.0.0"),
        (lambda: Ipv6("2001:db8::1", mc=True), "multicast group, ff00::"),
        (lambda: HostPort("16.0.0.1", 65536), "port.*65536.*0 to 65535"),
        (lambda: HostPort.decode("nowhere"), "nowhere"),
        (lambda: EMUNamespaceKey(vport=65536), "vport.*0 to 65535"),
        (lambda: EMUNamespaceKey(0, tci=[1, 2, 3]), "tci.*at most 2"),
        (lambda: EMUNamespaceKey(0, tci=4096), "tci.*4096.*0 to 4095"),
        (lambda: EMUNamespaceKey(0, tci=1, tpid=65536), "tpid.*65536.*0 to 65535"),
        (lambda: EMUClientObj("01:00:5e:00:00:01"), "mac.*01:00:5e:00:00:01.*single host, such as '00:00:5e"),
        (lambda: EMUClientObj([255] * 6), "mac.*ff:ff:ff:ff:ff:ff.*single host"),
        (lambda: EMUClient().add_clients(KEY, [*hosts(2), *hosts(1)]), "clients.*00:00:00:70:00:01.*another"),
        (lambda: EMUNamespaceKey(0, tpid=[0x8100, 0]), "tpid.*a tci as well"),
        (lambda: EMUNamespaceKey(0, tci=[0, 1], tpid=[0x8100, 0x8100]), "tpid.*0 where tci has no tag"),
        (lambda: EMUClientObj("00:00:00:70:00:01", ip4="16.0.0.1"), "'ip4'.*ipv4"),
        (lambda: EMUClientObj("00:00:00:70:00:01", ipv4="here"), "client 00:00:00:70:00:01: ipv4.*'here'"),
        (lambda: EMUClientObj("00:00:00:70:00:01", plugs=["arp"]), "plugs.*'list'.*dict"),
        (lambda: EMUNamespaceObj(KEY, [*hosts(2), *hosts(1)]), "00:00:00:70:00:01.*another MAC.*VLAN 7"),
        (lambda: EMUProfile([EMUNamespaceObj(KEY), EMUNamespaceObj(KEY)]), "port 1, VLAN 7.*another key"),
    ],
)
def test_bad_values_name_the_field_and_the_remedy(make: Any, words: str) -> None:
    with pytest.raises(STLError, match=words):
        make()


def test_the_server_says_the_usual_type_of_a_tag() -> None:
    assert EMUNamespaceKey(1, 7) == EMUNamespaceKey(1, [7, 0], [0x8100, 0])
    assert EMUNamespaceKey(1, 7) != EMUNamespaceKey(1, [7, 0], [0x88A8, 0])


def test_own_plugins_get_the_defaults_that_they_lack() -> None:
    own = {"arp": {"timer": 9}}
    ns = EMUNamespaceObj(
        KEY, EMUClientObj(Mac("00:00:00:70:00:01"), plugs=own), def_c_plugs={"arp": {}, "icmp": {}}
    )
    assert ns.clients[0].plugs == {"arp": {"timer": 9}, "icmp": {}}
    assert own == {"arp": {"timer": 9}}
    assert EMUProfile(ns, def_ns_plugs={"igmp": {}}).ns_list[0].plugs == {"igmp": {}}


def test_many_clients_go_in_few_messages_and_none_changes(client: EMUClient, server: Server) -> None:
    added = hosts(3_000)
    for at in random.Random(7).sample(range(3_000), 500):
        added[at].fields["ipv6"] = Ipv6("2001:db8::ff00")[at]
    client.add_clients(KEY, added)
    assert [len(one["params"]["clients"]) for one in server.requests] == [255] * 11 + [195]
    sent = [one for request in server.requests for one in request["params"]["clients"]]
    assert sent == json.loads(json.dumps([one.get_fields(to_bytes=True) for one in added]))
    assert all(one["params"]["tun"] == KEY.conv_to_dict() for one in server.requests)
    assert len(server.messages) == 1


def test_a_rate_sends_one_request_after_the_other(client: EMUClient, server: Server) -> None:
    client.add_clients(KEY, hosts(100), max_rate=5_000)
    client.add_clients(KEY, hosts(300), max_rate=100_000)
    assert [len(one["params"]["clients"]) for one in server.requests] == [100, 255, 45]
    with pytest.raises(STLError, match=r"max_rate.*above zero"):
        client.add_clients(KEY, hosts(1), max_rate=0)


def test_a_refusal_among_many_says_where(client: EMUClient, server: Server) -> None:
    server.refused[1] = "client with the same MAC already exist"
    with pytest.raises(STLRpcError, match=r"the same MAC.*256 to 510 of 600"):
        client.add_clients(KEY, hosts(600))


def test_clients_of_two_namespaces_are_not_asked_for_together(client: EMUClient, server: Server) -> None:
    keys = [EMUClientKey(EMUNamespaceKey(port), "00:00:00:70:00:01") for port in (0, 1)]
    with pytest.raises(STLError, match=r"one namespace at a time.*port 0.*port 1"):
        client.get_info_clients(keys)
    assert server.messages == []


def test_pings_return_refusals(client: EMUClient, server: Server) -> None:
    key = EMUClientKey(KEY, "00:00:00:70:00:01")
    assert client.icmp.start_ping(key, amount=3, dst="16.0.0.254") == (True, None)
    assert server.requests[0]["params"]["dst"] == [16, 0, 0, 254]
    server.refused[1] = "Client is already pinging or in timeout."
    result, error = client.icmp.start_ping(key)
    assert result is None and "already pinging" in str(error)


def test_groups_come_in_ranges_and_pairs(client: EMUClient, server: Server) -> None:
    client.igmp.add_gen_mc_sg(KEY, [239, 0, 0, 1], 2, [16, 0, 0, 1], 2)
    assert [(one["g"][3], one["s"][3]) for one in server.requests[0]["params"]["vec"]] == [
        *((1, 1), (1, 2), (2, 1), (2, 2))
    ]
    with pytest.raises(STLError, match=r"ipv4.*'16.0.0.1'.*multicast"):
        client.igmp.add_mc(KEY, ["16.0.0.1"])
    with pytest.raises(STLError, match=r"s_vec.*1 sources.*2 groups"):
        client.ipv6.add_mld_sg(KEY, ["ff05::1", "ff05::2"], ["::1"])
    with pytest.raises(STLError, match=r"mtu.*255.*256 to 9000"):
        client.igmp.set_cfg(KEY, 255, "00:00:00:70:00:01")
    assert len(server.requests) == 1


def test_a_profile_is_read_with_tunables(tmp_path: Path, client: EMUClient, server: Server) -> None:
    path = tmp_path / "hosts.py"
    path.write_text(PROFILE)
    server.results["ctx_iter"] = {"empty": True, "stopped": False, "data": None}
    client.load_profile(str(path), tunables=["--clients", "5"])
    assert [one["method"] for one in server.requests] == [
        *("ctx_iter", "ctx_set_def_plugins", "ctx_add", "ctx_client_set_def_plugins", "ctx_client_add")
    ]
    assert len(server.requests[-1]["params"]["clients"]) == 5
    assert len(EMUProfile.load(path, {"clients": 4}).ns_list[0].clients) == 4


def test_a_profile_shows_its_tunables_and_itself(
    tmp_path: Path, client: EMUClient, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hosts.py"
    path.write_text(PROFILE)
    client.load_profile(str(path), tunables=["-h"])
    assert "--clients" in capsys.readouterr().out
    client.load_profile(str(path), dry=True)
    assert len(json.loads(capsys.readouterr().out)["namespaces"][0]["clients"]) == 3
    assert server.messages == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "no register"),
        (PROFILE.replace("return EMUProfile(", "_ = EMUProfile("), "returns nothing.*EMUProfile"),
        (PROFILE.replace('"00:00:00:70:00:01"', '"nonsense"'), r"hosts.py, line 10.*mac.*'nonsense'"),
    ],
)
def test_a_wrong_profile_says_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "hosts.py"
    path.write_text(text)
    with pytest.raises(STLProfileError, match=words):
        EMUProfile.load(path, [])


def test_what_is_no_server_of_emulated_clients(client: EMUClient) -> None:
    with pytest.raises(STLConnectionError, match=r"--emu.*sync_port"):
        EMUClient(server="127.0.0.1", sync_port=1).connect()
    client.disconnect()
    with pytest.raises(STLConnectionError, match=r"call connect"):
        client.get_counters()


def test_names_of_trex() -> None:
    from trex.emu.api import EMUClient as Theirs
    from trex.emu.trex_emu_conversions import Mac as MacOfTheirs
    from trex.emu.trex_emu_profile import EMUProfile as ProfileOfTheirs

    assert (Theirs, MacOfTheirs, ProfileOfTheirs) == (EMUClient, Mac, EMUProfile)


def test_the_text_of_many_clients_is_what_they_are(server: Server, client: EMUClient) -> None:
    """Clients with any keys in any order, and values that are equal but not alike."""
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    made = []
    for number in range(700):
        fields: dict[str, Any] = {
            "ipv4": bytes(rng.choices((0, 9, 10, 99, 100, 255), k=4)),
            "ipv6": list(rng.randbytes(16)),
            "ipv4_force_mac": Mac("02:00:00:00:00:00")[number],
            "plugs": {"arp": rng.choice([*OTHER_VALUES, Level.HIGH])},
            "ipv4_mtu": rng.choice([1500, True, Level.HIGH]),
        }
        names = rng.sample(list(fields), rng.randint(0, len(fields)))
        made.append(EMUClientObj(Mac("00:00:00:70:00:01")[number], **{name: fields[name] for name in names}))
    client.add_clients(KEY, made)
    sent = [one for request in server.requests for one in request["params"]["clients"]]
    wanted = [one.get_fields(to_bytes=True) for one in made]
    assert json.dumps(sent, sort_keys=True) == json.dumps(wanted, sort_keys=True), f"seed {seed}"


def test_what_a_client_is_given_is_read_back() -> None:
    one = EMUClientObj("00:00:00:70:00:01", ipv4=[16, 0, 0, 1], ipv6="2001:db8::1", plugs={"arp": {}})
    assert one.fields == {"mac": one.mac, "ipv4": one.ipv4, "ipv6": one.ipv6, "plugs": {"arp": {}}}
    assert (one.mac, one.ipv4) == (Mac("00:00:00:70:00:01"), Ipv4("16.0.0.1"))
    assert type(one.ipv6) is Ipv6
    assert not hasattr(one, "ipv4_dg")
    assert pickle.loads(pickle.dumps(one)).fields == one.fields


def test_the_collector_is_on_again_after_a_profile(tmp_path: Path) -> None:
    for text in (PROFILE, PROFILE.replace("args = ", "args = nothing.")):
        path = tmp_path / "profile.py"
        path.write_text(text, encoding="utf-8")
        if text is PROFILE:
            EMUProfile.load(path)
        else:
            with pytest.raises(STLProfileError, match="nothing"):
                EMUProfile.load(path)
        assert gc.isenabled()
