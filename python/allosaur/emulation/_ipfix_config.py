"""IPFIX profiles of JSON files: groups of devices, each group on a port, that export what generators make.

    {"device_groups": [{
      "device_mac": "00:00:00:70:00:01", "device_ipv4": "128.1.1.1", "devices_num": 10, "rampup_time": "10s",
      "exporter_params": {"dst_url": "udp://16.0.0.254:4739"},
      "generators_params": {"data_rate": 5, "generators": [{"name": "a", "template_id": 260, "fields": []}]},
      "plugin_params": {"domain_id": 7}}]}

A generator is an object as in the plugin's init JSON, or the name of one: of `generators`, or of
`AVCGenerators`.
"""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._errors import STLError, STLProfileError
from ._ipfix import (
    IpfixDevicesAutoTriggerListProfile,
    IpfixDevicesAutoTriggerProfile,
    IpfixExporterParams,
    IpfixExporterParamsFactory,
    IpfixGenerators,
    IpfixHttpExporterParams,
    IpfixPlugin,
    IpfixUdpExporterParams,
    Json,
)
from ._ipfix_avc import AVCGenerators
from ._ipfix_fields import AvcIpfixFields
from ._profile import EMUProfile

_GROUPS = "device_groups"
_HTTP = (
    *("max_posts", "tls_cert_file", "tls_key_file", "store_exported_files_on_disk"),
    *("input_channel_capacity", "repeats_num", "repeats_wait_time"),
)
_UDP = ("use_emu_client_ip_addr", "raw_socket_interface_name")
_RATES = {
    "data_rate": IpfixGenerators.set_data_rate_all,
    "template_rate": IpfixGenerators.set_template_rate_all,
    "records_per_packet": IpfixGenerators.set_records_per_packet_all,
}
_PLUGIN = ("domain_id", "max_template_records", "max_data_records", "max_time", "auto_start")
_DEVICES = ("device_mac", "device_ipv4", "devices_num", "rampup_time", "total_rate_pps")
_CLIENTS = ("client_ipv4", "clients_per_device", "apps_per_client")
_PARTS = ("exporter_params", "generators_params", "plugin_params")


class IpfixProfileJsonConfig:
    """The profile of such a file. Raises ``STLProfileError``, which names the group and the key."""

    def __init__(self, config_file: str | Path, generators: Mapping[str, Json] | None = None) -> None:
        self._path = Path(config_file)
        self._known = {**AVCGenerators()._generators, **(generators or {})}
        self._config = self._read()
        self._profile = IpfixDevicesAutoTriggerListProfile()
        for number, group in enumerate(self._config[_GROUPS]):
            where = f"{_GROUPS}[{number}]"
            try:
                self._profile.add_devices_auto_trigger_profile(self._devices(where, group))
            except STLProfileError:
                raise
            except STLError as error:
                raise self._wrong(f"{where}: {error}") from None

    def get_config_json(self) -> Json:
        """What the file says."""
        return self._config

    def get_profile(self) -> EMUProfile:
        """The profile."""
        return self._profile.get_profile()

    def get_profile_json(self) -> Json:
        """The profile, as text and numbers."""
        return self._profile.get_json()

    def dump_profile_json(self) -> str:
        """The profile, as text."""
        return self._profile.dump_json()

    def _read(self) -> Json:
        try:
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise self._wrong(f"it cannot be read ({error.strerror}): give a JSON file") from error
        try:
            config = json.loads(text)
        except ValueError as error:
            raise self._wrong(f"it is no JSON ({error})") from None
        found = self._object("the file", config, (_GROUPS,))
        if not isinstance(found.get(_GROUPS), list) or not found[_GROUPS]:
            raise self._wrong(f"it needs {_GROUPS}, a list of groups of devices")
        return found

    def _devices(self, where: str, given: Any) -> IpfixDevicesAutoTriggerProfile:
        group = self._object(where, given, (*_PARTS, *_DEVICES, *_CLIENTS))
        for name in _PARTS:
            if name not in group:
                raise self._wrong(f"{where} needs {name}, an object")
        exporter = self._exporter(f"{where}.exporter_params", group["exporter_params"])
        generators = self._generators(f"{where}.generators_params", group["generators_params"])
        plugin = IpfixPlugin(exporter, generators)
        of_plugin = self._object(f"{where}.plugin_params", group["plugin_params"], _PLUGIN)
        for name, value in _said(of_plugin, _PLUGIN):
            getattr(plugin, f"set_{name}")(value)
        devices = IpfixDevicesAutoTriggerProfile(plugin, **dict(_said(group, _DEVICES)))
        clients = dict(_said(group, _CLIENTS))
        if clients:
            missing = [name for name in _CLIENTS if name not in clients]
            if missing:
                raise self._wrong(f"{where} needs {missing[0]} beside {next(iter(clients))}")
            devices.set_clients_generator(*(clients[name] for name in _CLIENTS))
        return devices

    def _exporter(self, where: str, given: Any) -> IpfixExporterParams:
        params = self._object(where, given, ("dst_url", *_HTTP, *_UDP))
        if not isinstance(params.get("dst_url"), str):
            raise self._wrong(f"{where} needs dst_url, such as udp://16.0.0.254:4739")
        exporter = IpfixExporterParamsFactory().create_obj_from_dst_url(params["dst_url"])
        if isinstance(exporter, IpfixHttpExporterParams):
            known: tuple[str, ...] = _HTTP
        elif isinstance(exporter, IpfixUdpExporterParams):
            known = _UDP
        else:
            raise self._wrong(f"{where}: dst_url {params['dst_url']}: write one of udp or http")
        self._object(where, params, ("dst_url", *known))
        for name, value in _said(params, known):
            getattr(exporter, f"set_{name}")(value)
        return exporter

    def _generators(self, where: str, given: Any) -> IpfixGenerators:
        params = self._object(where, given, ("generators", *_RATES))
        if not isinstance(params.get("generators"), list):
            raise self._wrong(f"{where} needs generators, a list of objects or names")
        made = IpfixGenerators(AvcIpfixFields())
        for one in params["generators"]:
            generator = self._generator(where, one)
            made._generators[generator["name"]] = generator
        for name, value in _said(params, tuple(_RATES)):
            _RATES[name](made, value)
        return made

    def _generator(self, where: str, one: Any) -> Json:
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            return dict(one)
        if isinstance(one, str) and one in self._known:
            return copy.deepcopy(self._known[one])
        names = f"known names are {', '.join(self._known)}"
        wanted = "write it as an object with name, template_id and fields, as in the plugin's init JSON"
        raise self._wrong(f"{where}: generator {one!r} is not here: {names}; {wanted}")

    def _object(self, where: str, given: Any, known: Iterable[str]) -> Json:
        if not isinstance(given, dict):
            raise self._wrong(f"{where} must be an object, not {type(given).__name__}")
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"is it '{near[0]}'?" if near else f"there are {', '.join(known)}"
                raise self._wrong(f"{where}: '{name}' is not known: {hint}")
        return given

    def _wrong(self, text: str) -> STLProfileError:
        return STLProfileError(f"profile {self._path}: {text}")


def _said(given: Json, names: Iterable[str]) -> list[tuple[str, Any]]:
    """Of these names, those that have a value."""
    return [(name, given[name]) for name in names if given.get(name) is not None]
