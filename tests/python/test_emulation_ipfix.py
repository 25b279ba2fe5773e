"""Profiles that export IPFIX, by the names of TRex's modules: what comes out is what its own give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from allosaur import EMUProfile, STLError, STLProfileError
from trex.emu.trex_emu_ipfix_fields import AvcIpfixFields
from trex.emu.trex_emu_ipfix_generators import AVCGenerators, IpfixGenerators
from trex.emu.trex_emu_ipfix_json_config import IpfixProfileJsonConfig
from trex.emu.trex_emu_ipfix_profile import (
    IpfixDevicesAutoTriggerListProfile,
    IpfixDevicesAutoTriggerProfile,
    IpfixExporterParamsFactory,
    IpfixFileExporterParams,
    IpfixHttpExporterParams,
    IpfixPlugin,
    IpfixProfile,
    IpfixUdpExporterParams,
)

FIELDS = AvcIpfixFields()


class Generators(IpfixGenerators):
    """Two, the second with an engine."""

    def __init__(self, names: list[str] | None = None) -> None:
        super().__init__(FIELDS, names)
        plain = {"name": "plain", "template_id": 260, "fields": [FIELDS["protocolIdentifier"]]}
        engine = {"engine_name": "sourceIPv4Address", "engine_type": "uint", "params": {"size": 4}}
        counting = {"name": "counting", "template_id": 261, "engines": [engine]}
        self._generators = {"plain": plain, "counting": {**counting, "fields": [FIELDS["sourceIPv4Address"]]}}


def plugin(names: list[str] | None = None) -> IpfixPlugin:
    return IpfixPlugin(IpfixUdpExporterParams("10.0.0.1", 4739), Generators(names))


def test_fields_have_their_numbers() -> None:
    assert FIELDS["sourceIPv4Address"] == {
        "name": "sourceIPv4Address",
        "type": 8,
        "length": 4,
        "data": [192, 168, 0, 1],
    }
    assert FIELDS["interfaceName"]["data"] == list(b"Te0/0/0".ljust(32, b"\0"))
    assert FIELDS["serverIPv6Address"]["data"] == [0x20, 1, 255, 255, *[0] * 11, 4]
    assert FIELDS["observationPointId"]["data"] == [0, 0, 0, 0, 7, 3, 1, 4]
    assert all(len(field["data"]) == field["length"] for field in FIELDS._fields.values())
    ours = FIELDS["clientIPv4Address"]
    assert (ours["type"], ours["enterprise_number"], ours["length"]) == (45004, AvcIpfixFields.CISCO_PEN, 4)
    assert FIELDS.get("nothing") is None and FIELDS.get("nothing", 5) == 5
    with pytest.raises(KeyError):
        FIELDS["nothing"]
    FIELDS["protocolIdentifier"]["data"] = [6]
    assert FIELDS["protocolIdentifier"]["data"] == [17], "each is a copy"


def test_generators_are_taken_and_set_by_name() -> None:
    made = Generators()
    made.set_data_rate_all(8)
    made.set_data_rate("plain", 2)
    made.set_template_rate_all(4)
    made.set_template_rate("plain", 5)
    made.set_records_per_packet_all(3)
    made.set_records_per_packet("plain", 0)
    made.set_engine_params("counting", {"size": 2})
    numbers = ("rate_pps", "template_rate_pps", "data_records_num")
    assert [[one[name] for name in numbers] for one in made.get_all()] == [[2, 5, 0], [8, 4, 3]]
    assert made["counting"]["engines"][0]["params"] == {"size": 2} and made.get("none") is None
    assert [one["name"] for one in Generators(["counting"]).get_all()] == ["counting"]
    with pytest.raises(STLError, match=r"gen_name.*'palin'.*plain, counting"):
        made.set_data_rate("palin", 1)


def test_what_is_none_stays_as_it_is() -> None:
    """As with TRex's client: its profiles pass options on that nobody gave."""
    made = AVCGenerators(["266", "267"])
    made.set_data_rate_all(None)
    made.set_template_rate_all(None)
    made.set_records_per_packet_all(None)
    assert [(one["rate_pps"], one["data_records_num"]) for one in made.get_all()] == [(100, 10), (0.1, 0)]
    exporter = IpfixExporterParamsFactory().create_obj_from_dst_url(
        "http://10.0.0.1:80/api/ipfixfilecollector/t/s/d/post_file"
    )
    assert isinstance(exporter, IpfixHttpExporterParams)
    for name in ("max_interval", "max_size", "max_posts", "compress", "store_exported_files_on_disk"):
        getattr(exporter, f"set_{name}")(None)
    settings = IpfixPlugin(exporter, made)
    settings.set_domain_id(256)
    for name in ("max_template_records", "max_data_records", "max_time", "auto_start"):
        getattr(settings, f"set_{name}")(None)
    profile = IpfixDevicesAutoTriggerProfile(settings, device_mac="00:00:00:70:00:03", sites_per_tenant=None)
    assert "null" not in profile.dump_json()


def test_ready_generators_have_the_names_of_trex() -> None:
    made = AVCGenerators()
    names = [*("Dummy", "256", "257", "258", "259", "260", "266", "267", "268", "269"), "256-data-tcp-5t"]
    assert list(made._generators) == [*names, "257-options-applications", "258-options-attributes"]
    assert [len(one["fields"]) for one in made.get_all()] == [1, 2, 2, 4, 3, 10, 23, 23, 19, 19, 23, 3, 11]
    few = AVCGenerators(["257-options-applications", "256-data-tcp-5t"], apps_per_client=3)
    assert [one["name"] for one in few.get_all()] == ["257-options-template", "256-data-tcp-5t"]
    lists = [engine["params"].get("list") for engine in few["257-options-applications"]["engines"]]
    assert lists[:2] == [[3 << 24 | 7, 3 << 24 | 9, 3 << 24 | 13], ["echo", "discard", "daytime"]]
    (clients,) = (one for one in few["256-data-tcp-5t"]["engines"] if "repeat" in one["params"])
    assert clients["params"]["repeat"] == 3, "each client by each application"
    assert len(AVCGenerators(apps_per_client=10_000)._apps) > 41


def test_exporters_say_where_to() -> None:
    udp = IpfixUdpExporterParams("10.0.0.1", 4739)
    assert (udp.get_type(), udp.get_dst_url(), udp.get_json()) == ("udp", "udp://10.0.0.1:4739/", None)
    udp.set_use_emu_client_ip_addr(True)
    udp.set_raw_socket_interface_name("eth0")
    udp.set_export_from_dir(True)
    udp.set_export_from_dir_params("/d", 1, packets_wait_time="3ms")
    folder = {"dir": "/d", "dir_scans_num": 1, "packets_wait_time": "3ms"}
    assert udp.get_json() == {
        "use_emu_client_ip_addr": True,
        "raw_socket_interface_name": "eth0",
        "export_from_dir": True,
        "export_from_dir_params": folder,
    }
    file = IpfixFileExporterParams("/dir", "n.ipfix")
    assert (file.get_type(), file.get_dst_url()) == ("file", "file:///dir/n.ipfix")
    http = IpfixHttpExporterParams("https", "10.0.0.1", 80, "t", "s", "d")
    assert http.get_dst_url() == "https://10.0.0.1:80/api/ipfixfilecollector/t/s/d/post_file"
    given: dict[str, Any] = {
        "max_size": 1,
        "max_interval": "1s",
        "max_files": 2,
        "compress": True,
        "max_posts": 3,
    }
    given |= {"tls_cert_file": "c", "tls_key_file": "k", "store_exported_files_on_disk": True}
    given |= {
        "input_channel_capacity": 5,
        "repeats_num": 2,
        "repeats_wait_time": "1s",
        "export_from_dir": True,
    }
    for name, value in given.items():
        getattr(http, f"set_{name}")(value)
    http.set_export_from_dir_params("/d", files_wait_time="1s", files_wait_time_speedup=2.0)
    more = {"dir": "/d", "files_wait_time": "1s", "files_wait_time_speedup": 2.0}
    assert json.loads(http.dump_json()) == {**given, "export_from_dir_params": more}


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("udp://10.0.0.1:4739", IpfixUdpExporterParams),
        ("emu-udp://10.0.0.1:4739", IpfixUdpExporterParams),
        ("file:///a/b.ipfix", IpfixFileExporterParams),
        ("http://10.0.0.1:80/api/ipfixfilecollector/t/s/d/post_file", IpfixHttpExporterParams),
    ],
)
def test_the_exporter_of_a_url(url: str, kind: type) -> None:
    assert type(IpfixExporterParamsFactory().create_obj_from_dst_url(url)) is kind


@pytest.mark.parametrize(
    "url", ["ftp://10.0.0.1:5", "10.0.0.1:4739", "http://10.0.0.1:80/x", "udp://10.0.0.1"]
)
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(STLError, match=r"dst_url.*udp://HOST:PORT"):
        IpfixExporterParamsFactory().create_obj_from_dst_url(url)


def test_devices_export() -> None:
    made = plugin(["plain"])
    made.set_domain_id(3)
    made.set_max_data_records(4)
    made.set_max_template_records(5)
    made.set_max_time("9s")
    made.set_auto_start(False)
    assert made.get_json() == {
        "netflow_version": 10,
        "dst": "udp://10.0.0.1:4739/",
        "domain_id": 3,
        "max_data_records": 4,
        "max_template_records": 5,
        "max_time": "9s",
        "auto_start": False,
        "generators": Generators(["plain"]).get_all(),
    }
    profile = IpfixProfile(made, devices_num=2)
    (ns,) = profile.get_json()["namespaces"]
    assert [(one["mac"], one["ipv4"], one["ipv4_dg"]) for one in ns["clients"]] == [
        ("00:00:00:70:00:03", "1.1.1.3", "1.1.1.1"),
        ("00:00:00:70:00:04", "1.1.1.4", "1.1.1.1"),
    ]
    assert ns["clients"][1]["plugs"]["ipfix"] == made.get_json() == json.loads(made.dump_json())
    assert [key.mac.S() for key in profile.get_devices_keys()] == [one["mac"] for one in ns["clients"]]


def test_devices_come_by_themselves() -> None:
    part = IpfixDevicesAutoTriggerProfile(plugin(), devices_num=3, rampup_time="1s", total_rate_pps=100)
    part.set_clients_generator("20.0.0.1", 3, 2, "sourceIPv4Address")
    trigger = part.get_ns_ipfix_plugin_json()["devices_auto_trigger"]
    assert trigger.pop("device_init") == plugin().get_json()
    assert trigger == {
        "device_mac": [0, 0, 0, 112, 0, 1],
        "device_ipv4": [128, 1, 1, 1],
        "devices_num": 3,
        "rampup_time": "1s",
        "total_rate_pps": 100,
        "clients_generator": {
            "client_ipv4": [20, 0, 0, 1],
            "clients_per_device": 3,
            "data_records_per_client": 2,
            "client_ipv4_field_name": "sourceIPv4Address",
        },
    }
    assert len(part.get_devices_keys()) == 3
    several = IpfixDevicesAutoTriggerListProfile()
    several.add_devices_auto_trigger_profile(part)
    several.add_devices_auto_trigger_profile(IpfixDevicesAutoTriggerProfile(plugin(), ns_port=1))
    profile = several.get_profile()
    assert isinstance(profile, EMUProfile) and [ns.key.vport for ns in profile.ns_list] == [0, 1]
    assert json.loads(several.dump_json()) == several.get_json()


GROUP: dict[str, Any] = {
    "device_mac": "00:00:00:70:00:01",
    "device_ipv4": "128.1.1.1",
    "devices_num": 10,
    "rampup_time": "10s",
    "client_ipv4": "20.0.0.1",
    "clients_per_device": 5,
    "apps_per_client": 3,
    "exporter_params": {"dst_url": "udp://16.0.0.254:4739", "use_emu_client_ip_addr": True},
    "generators_params": {
        "generators": [{"name": "flows", "template_id": 260, "fields": []}, "dns"],
        "data_rate": 5,
        "template_rate": None,
    },
    "plugin_params": {"domain_id": 7, "auto_start": False},
}
DNS = {"dns": {"name": "dns", "template_id": 261, "fields": []}}


def config(tmp_path: Path, *groups: Any) -> Path:
    path = tmp_path / "devices.json"
    path.write_text(json.dumps({"device_groups": list(groups)}), encoding="utf-8")
    return path


def test_a_profile_of_a_json_file(tmp_path: Path) -> None:
    http = {
        "dst_url": "http://10.0.0.1:80/api/ipfixfilecollector/t/s/d/post_file",
        "max_posts": 3,
        "repeats_num": 2,
    }
    second = {**{name: GROUP[name] for name in ("plugin_params",)}, "exporter_params": http}
    second["generators_params"] = {"generators": ["dns", "266"]}
    made = IpfixProfileJsonConfig(config(tmp_path, GROUP, second), generators=DNS)
    first, other = made.get_profile().ns_list
    assert (first.key.vport, other.key.vport) == (0, 1)
    trigger = first.plugs["ipfix"]["devices_auto_trigger"]
    assert (trigger["devices_num"], trigger["rampup_time"]) == (10, "10s")
    assert trigger["clients_generator"]["data_records_per_client"] == 3
    init = trigger["device_init"]
    assert init["exporter_params"] == {"use_emu_client_ip_addr": True}
    assert [(one["name"], one["rate_pps"]) for one in init["generators"]] == [("flows", 5), ("dns", 5)]
    assert "template_rate_pps" not in init["generators"][0] and init["auto_start"] is False
    assert "rate_pps" not in DNS["dns"], "what is known stays as it is"
    init = other.plugs["ipfix"]["devices_auto_trigger"]["device_init"]
    assert init["exporter_params"] == {"max_posts": 3, "repeats_num": 2}
    assert [one["template_id"] for one in init["generators"]] == [261, 266]
    assert json.loads(made.dump_profile_json()) == made.get_profile_json()
    assert len(made.get_config_json()["device_groups"]) == 2


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GROUP.items() if key != name}


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (_without("exporter_params"), r"device_groups\[0\] needs exporter_params"),
        (_without("clients_per_device"), "needs clients_per_device beside"),
        ({**GROUP, "device_num": 3}, "'device_num' is not known: is it 'devices_num'"),
        ({**GROUP, "device_mac": "x"}, r"device_groups\[0\]: .*mac"),
        ({**GROUP, "exporter_params": {"dst_url": "file:///tmp/x"}}, "write one of udp or http"),
        ({**GROUP, "exporter_params": {}}, "needs dst_url"),
        ({**GROUP, "exporter_params": {"dst_url": "udp://10.0.0.1:1", "max_posts": 1}}, "'max_posts' is not"),
        ({**GROUP, "generators_params": {}}, "needs generators, a list"),
        ({**GROUP, "generators_params": {"generators": ["265"]}}, "'265' is not here.*266.*template_id"),
        ({**GROUP, "plugin_params": 5}, "plugin_params must be an object, not int"),
        (5, r"device_groups\[0\] must be an object"),
    ],
)
def test_a_json_file_that_is_wrong(tmp_path: Path, group: Any, words: str) -> None:
    with pytest.raises(STLProfileError, match=words):
        IpfixProfileJsonConfig(config(tmp_path, group), generators=DNS)


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "cannot be read"), ("{", "no JSON"), ("{}", "needs device_groups"), ("[]", "object")],
)
def test_a_file_that_is_none(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "devices.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(STLProfileError, match=words):
        IpfixProfileJsonConfig(path)
