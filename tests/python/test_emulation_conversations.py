"""The client of emulated clients sends what TRex's client sent, and gives what it gave."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLError
from allosaur.emulation._client import EMUClient
from allosaur.emulation._profile import (
    EMUClientKey,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
)


def _replay_module() -> Any:
    name = "allosaur_tests_emulation_replay"
    if name not in sys.modules:
        path = Path(__file__).with_name("emulation_replay.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


replay_module = _replay_module()
PROFILES = sorted(path.name.removesuffix(".jsonl.gz") for path in replay_module.FOLDER.glob("40_*"))
PLUGINS = [
    *("20_arp", "21_icmp", "22_igmp", "23_ipv6", "24_dhcpv4", "27_dns", "28_mdns", "29_dot1x"),
    "32_ipfix_emu_udp",
]


@pytest.fixture
def begin() -> Callable[[str], tuple[Any, EMUClient]]:
    """Begin a conversation: the server of it, and a client that is connected."""

    def connected(name: str) -> tuple[Any, EMUClient]:
        replay = replay_module.Replay(name)
        client = EMUClient(transport=replay)
        client.connect()
        return replay, client

    return connected


def namespace(params: dict[str, Any]) -> EMUNamespaceKey:
    return EMUNamespaceKey(**params["tun"])


def client_key(params: dict[str, Any]) -> EMUClientKey:
    return EMUClientKey(namespace(params), params["mac"])


def count(client: EMUClient, name: str, of: str, params: dict[str, Any]) -> None:
    """The counters of a plugin, by that of its methods which the next request is of."""
    key = client_key(params) if "mac" in params else namespace(params)
    plugin = getattr(client, name)
    if params["clear"]:
        assert getattr(plugin, f"clear_{of}counters")(key) is True
        return
    is_verbose = params["meta"] or getattr(plugin, f"{of or 'ns_'}data_cnt", plugin.client_data_cnt).meta
    tables = getattr(plugin, f"get_{of}counters")(
        key, zero=params["zero"] or bool(is_verbose), verbose=bool(is_verbose)
    )
    for counters in tables.values():
        if is_verbose:
            assert all({"name", "value", "unit", "help", "info", "zero"} <= set(one) for one in counters)
            assert {one["info"] for one in counters} <= {"INFO", "WARNING", "ERROR"}


#: What to call for a request that comes next.
CALLS: dict[str, Callable[[EMUClient, dict[str, Any]], Any]] = {
    "arp_ns_get_cfg": lambda c, p: c.arp.get_cfg(namespace(p)),
    "arp_ns_set_cfg": lambda c, p: c.arp.set_cfg(namespace(p), p["enable"]),
    "arp_ns_cnt": lambda c, p: count(c, "arp", "", p),
    "arp_ns_iter": lambda c, p: c.arp.show_cache(namespace(p)),
    "arp_c_cmd_query": lambda c, p: c.arp.cmd_query(client_key(p), p["garp"]),
    "icmp_c_start_ping": lambda c, p: c.icmp.start_ping(
        *(client_key(p), p["amount"], p["pace"], p["dst"], p["timeout"], p["payloadSize"])
    ),
    "icmp_c_get_ping_stats": lambda c, p: c.icmp.get_ping_stats(client_key(p), p["zero"]),
    "icmp_c_stop_ping": lambda c, p: c.icmp.stop_ping(client_key(p)),
    "igmp_ns_get_cfg": lambda c, p: c.igmp.get_cfg(namespace(p)),
    "igmp_ns_set_cfg": lambda c, p: c.igmp.set_cfg(namespace(p), p["mtu"], p["dmac"]),
    "igmp_ns_sg_add": lambda c, p: c.igmp.add_mc_sg(
        namespace(p), [one["g"] for one in p["vec"]], [one["s"] for one in p["vec"]]
    ),
    "ipv6_mld_ns_get_cfg": lambda c, p: c.ipv6.get_cfg(namespace(p)),
    "ipv6_mld_ns_set_cfg": lambda c, p: c.ipv6.set_cfg(namespace(p), p["mtu"], p["dmac"]),
    "ipv6_nd_ns_iter": lambda c, p: c.ipv6.show_cache(namespace(p)),
    "ipv6_ns_cnt": lambda c, p: count(c, "ipv6", "", p),
    "ipv6_start_ping": lambda c, p: c.ipv6.start_ping(
        *(client_key(p), p["amount"], p["pace"], p["dst"], p["src"], p["timeout"], p["payloadSize"])
    ),
    "ipv6_get_ping_stats": lambda c, p: c.ipv6.get_ping_stats(client_key(p), p["zero"]),
    "ipv6_stop_ping": lambda c, p: c.ipv6.stop_ping(client_key(p)),
    "dhcp_client_cnt": lambda c, p: count(c, "dhcp", "", p),
    "dns_c_query": lambda c, p: c.dns.query(client_key(p), p["queries"]),
    "dns_c_cache_iter": lambda c, p: c.dns.get_cache(client_key(p)),
    "dns_c_get_domains": lambda c, p: c.dns.get_domains(client_key(p)),
    "dns_c_get_domain_entries": lambda c, p: c.dns.get_domain_entries(client_key(p), p["domain"]),
    "dns_c_add_remove_domain_entries": lambda c, p: (
        c.dns.remove_domain_entries if p["op"] else c.dns.add_domain_entries
    )(client_key(p), p["domain"], p["entries"]),
    "dns_c_cnt": lambda c, p: count(c, "dns", "client_", p),
    "dns_c_cache_flush": lambda c, p: c.dns.flush_cache(client_key(p)),
    "mdns_c_query": lambda c, p: c.mdns.query(client_key(p), p["queries"]),
    "mdns_ns_cache_iter": lambda c, p: c.mdns.get_cache(namespace(p)),
    "mdns_c_get_hosts": lambda c, p: c.mdns.get_client_hosts(client_key(p)),
    "mdns_c_add_remove_hosts": lambda c, p: c.mdns.add_remove_hosts(client_key(p), p["op"], p["hosts"]),
    "mdns_c_cnt": lambda c, p: count(c, "mdns", "client_", p),
    "mdns_ns_cnt": lambda c, p: count(c, "mdns", "ns_", p),
    "mdns_ns_cache_flush": lambda c, p: c.mdns.flush_cache(namespace(p)),
    "dot1x_client_info": lambda c, p: c.dot1x.get_clients_info(
        [EMUClientKey(namespace(p), mac) for mac in p["macs"]]
    ),
    "ipfix_c_get_gens_info": lambda c, p: c.ipfix.get_gen_info(client_key(p)),
    "ipfix_c_get_exp_info": lambda c, p: c.ipfix.get_exporter_info(client_key(p)),
    "ipfix_c_set_gen_state": lambda c, p: (
        c.ipfix.enable_generator(client_key(p), p["gen_name"], p["enable"])
        if "enable" in p
        else c.ipfix.set_gen_rate(client_key(p), p["gen_name"], p["template_rate"], p["rate"])
    ),
    "ipfix_c_set_state": lambda c, p: c.ipfix.enable_ipfix(client_key(p), p["enable"]),
    "ipfix_c_cnt": lambda c, p: count(c, "ipfix", "", p),
}


def groups(client: EMUClient, replay: Any, method: str, params: dict[str, Any]) -> None:
    """Join, read and leave groups, of IGMP or MLD: lists that go out in several requests are one call."""
    plugin: Any = client.igmp if method.startswith("igmp") else client.ipv6
    name, address = ("mc", "g") if method.startswith("igmp") else ("mld", "ipv6")
    key = namespace(params)
    if method.endswith("_iter"):
        pages = next(number for number, line in enumerate(replay.left) if line["rep"]["result"]["stopped"])
        after = [line["req"] for line in replay.left[pages + 1 : pages + 2]]
        if after and after[0]["method"].endswith("_remove") and len(after[0]["params"]["vec"]) > 1:
            getattr(plugin, f"remove_all_{name}")(key)
            return
        found = getattr(plugin, f"iter_{name}")(key, params["count"])
        assert all(address in one for one in found)
        return
    vec: list[Any] = []
    for line in replay.left:
        if line["req"]["method"] != method or (vec and len(vec) % 255):
            break
        vec += line["req"]["params"]["vec"]
    what = "add" if method.endswith("add") else "remove"
    getattr(plugin, f"{what}_{name}")(key, vec)


@pytest.mark.parametrize("name", PLUGINS)
def test_plugins_ask_as_those_of_trex(begin: Any, name: str) -> None:
    replay, client = begin(name)
    assert replay.left
    while replay.left:
        method, params = replay.next
        if method in CALLS:
            CALLS[method](client, params)
        else:
            groups(client, replay, method, params)


def test_all_groups_are_left_with_the_namespace(begin: Any) -> None:
    replay, client = begin("40_profile_simple_dns")
    replay.left = [
        line for line in replay.left if line["req"]["method"] in ("igmp_ns_iter", "ipv6_mld_ns_iter")
    ]
    key = namespace(replay.next[1])
    client.igmp.tear_down_ns(key)
    client.ipv6.tear_down_ns(key)
    assert replay.left == []


def profile_of(replay: Any) -> EMUProfile:
    """The profile that TRex's client loaded, made anew from the requests that came of it."""
    (defaults,) = replay.params("ctx_set_def_plugins")
    namespaces = {}
    for tunnel in replay.params("ctx_add")[0]["tunnels"]:
        key = EMUNamespaceKey(tunnel["vport"], tunnel["tci"], tunnel["tpid"])
        namespaces[key] = EMUNamespaceObj(key, plugs=tunnel["plugs"], def_c_plugs=tunnel["def_c_plugs"])
    for added in replay.params("ctx_client_add"):
        namespaces[namespace(added)].add_clients([EMUClientObj(**one) for one in added["clients"]])
    return EMUProfile(list(namespaces.values()), defaults["def_plugs"])


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_sent_read_and_removed_as_by_trex(begin: Any, name: str) -> None:
    replay, client = begin(name)
    client.load_profile(profile_of(replay))
    namespaces = client.get_all_ns_and_clients()
    assert namespaces
    for one in namespaces:
        assert one["clients"]
        assert all(
            client["mac"].count(":") == 5 and "arp" in client["plug_names"] for client in one["clients"]
        )
    assert client.get_counters()["ctx"]["activeNs"] == len(namespaces)
    client.remove_profile()
    assert "activeNs" not in client.get_counters().get("ctx", {})
    assert replay.left == []


def test_namespaces(begin: Any) -> None:
    replay, client = begin("03_ctx_add_remove")
    tunnels = replay.params("ctx_add")[0]["tunnels"]
    keys = [EMUNamespaceKey(one["vport"], one["tci"], one["tpid"]) for one in tunnels]
    client.add_ns([EMUNamespaceObj(key) for key in keys])
    infos = client.get_info_ns(keys)
    assert [one["tci"] for one in infos] == [None, "1, 0", "1, 2", "1, 2", "4095, 0"]
    assert [one["tpid"] for one in infos] == [
        None,
        "0x8100, 0x0",
        "0x8100, 0x8100",
        "0x88a8, 0x8100",
        "0x8100, 0x0",
    ]
    client.remove_ns(keys[:2])
    assert replay.left == []


def test_more_namespaces_than_a_page(begin: Any) -> None:
    replay, client = begin("04_ctx_iter")
    tunnels = [tunnel for params in replay.params("ctx_add") for tunnel in params["tunnels"]]
    client.add_ns([EMUNamespaceObj(EMUNamespaceKey(one["vport"], one["tci"])) for one in tunnels])
    assert len(client.get_all_ns_and_clients()) == len(tunnels) == 600
    # TRex's client ends with an error when it has removed the first page; ours goes on with what is left.
    with pytest.raises(replay_module.OtherRequestError, match=r"one more.*'ctx_iter'.*'reset': True"):
        client.remove_profile()
    assert replay.left == []


def test_default_plugins(begin: Any) -> None:
    replay, client = begin("05_def_plugins")
    for method, of in (("ctx_set_def_plugins", "ns"), ("ctx_client_set_def_plugins", "c")):
        params = replay.params(method)[0]
        key = [namespace(params)] if of == "c" else []
        getattr(client, f"set_def_{of}_plugs")(*key, params["def_plugs"])
        assert getattr(client, f"get_def_{of}_plugs")(*key) == params["def_plugs"]
    with pytest.raises(STLError, match="not a valid API"):
        client.get_all_ns()


def test_clients_with_all_their_keys(begin: Any) -> None:
    replay, client = begin("06_clients")
    added = replay.params("ctx_client_add")[0]
    key = namespace(added)
    client.add_ns(EMUNamespaceObj(key))
    client.add_clients(key, [EMUClientObj(**one) for one in added["clients"]])
    infos = client.get_info_clients([EMUClientKey(key, one["mac"]) for one in added["clients"]])
    assert replay.left == []
    first = infos[0]
    assert (first["ipv4"], first["ipv6"], first["ipv4_force_mac"]) == (
        "1.1.2.3",
        "2001:db8:1::2",
        "00:00:00:bb:00:01",
    )
    assert first["dgw"] == {"resolve": False, "rmac": "00:00:00:00:00:00"}
    assert (first["ipv6_router"]["prefix"], first["plug_names"]) == ("::", "arp, icmp, ipv6")


def test_a_thousand_clients(begin: Any) -> None:
    replay, client = begin("07_client_iter")
    added = replay.params("ctx_client_add")
    clients = [EMUClientObj(**one) for params in added for one in params["clients"]]
    key = namespace(added[0])
    client.add_ns(EMUNamespaceObj(EMUNamespaceKey(**replay.params("ctx_add")[0]["tunnels"][0])))
    client.add_clients(key, clients)
    keys = client.get_all_clients_for_ns(key)
    assert [one.mac for one in keys] == [one.mac for one in clients]
    wanted = replay.params("ctx_client_get_info")[0]["macs"]
    client.get_info_clients([EMUClientKey(key, mac) for mac in wanted])
    client.remove_clients(keys)
    client.remove_ns(key)
    assert replay.left == []


def test_counters(begin: Any) -> None:
    replay, client = begin("08_counters")
    assert client.get_counters()["timerw"]["ticks"]
    meta = client.get_counters(meta=True)
    assert {one["info"] for table in meta.values() for one in table["meta"]} == {"INFO", "ERROR"}
    assert client.get_counters(zero=True)["ctx"]["activeNs"] == 0
    assert set(client.get_counters(mask=["ctx", "timerw"])) == {"timerw"}
    assert "rss" in client.resource_monitor_get_counters()["Resource monitor"]
    client.resource_monitor_reset()
    assert replay.left == []


def test_ping_of_the_server(begin: Any) -> None:
    replay, client = begin("01_handshake")
    assert client.get_server_version()["mode"] == client.get_mode() == "emulation"
    assert client.ping_rpc_server() == {"ts": 10}
    assert replay.left == []
