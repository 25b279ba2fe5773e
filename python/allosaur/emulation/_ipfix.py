"""Profiles that export IPFIX: where to (`Ipfix...ExporterParams`), what (`IpfixGenerators`), and by whom.

exporter = IpfixUdpExporterParams("16.0.0.254", 4739)
profile = IpfixProfile(IpfixPlugin(exporter, generators), devices_num=10).get_profile()
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from .._errors import STLArgumentError
from ._ipfix_fields import IpfixFields
from ._profile import EMUClientKey, EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile
from ._values import Ipv4, Mac

Json = dict[str, Any]
_COLLECTOR = "api/ipfixfilecollector"
_VERSION = 10


def _set(settings: Json, name: str, value: Any) -> None:
    """Set one thing; `None` leaves it as it is, as with TRex's client."""
    if value is not None:
        settings[name] = value


class IpfixGenerators:
    """Generators by name; who makes them puts them into `_generators`. With names only those are taken."""

    def __init__(self, fields: IpfixFields, gen_names_list: Iterable[str] | None = None) -> None:
        self._fields = fields
        self._gen_names_list = None if gen_names_list is None else list(gen_names_list)
        self._generators: dict[str, Json] = {}

    def __getitem__(self, gen_name: str) -> Json:
        """The generator of this name. Raises ``KeyError``."""
        return self._generators[gen_name]

    def get(self, gen_name: str, default: Any = None) -> Any:
        """The generator of this name, or the default."""
        return self._generators.get(gen_name, default)

    def get_all(self) -> list[Json]:
        """The generators that are taken."""
        names = self._generators if self._gen_names_list is None else self._gen_names_list
        return [self._generators[name] for name in names]

    def set_data_rate(self, gen_name: str, rate: float | None) -> None:
        """Set how many packets of data a generator sends a second."""
        _set(self._known(gen_name), "rate_pps", rate)

    def set_data_rate_all(self, rate: float | None) -> None:
        """Set how many packets of data each generator sends a second."""
        for generator in self.get_all():
            _set(generator, "rate_pps", rate)

    def set_template_rate(self, gen_name: str, rate: float | None) -> None:
        """Set how many templates a generator sends a second."""
        _set(self._known(gen_name), "template_rate_pps", rate)

    def set_template_rate_all(self, rate: float | None) -> None:
        """Set how many templates each generator sends a second."""
        for generator in self.get_all():
            _set(generator, "template_rate_pps", rate)

    def set_records_per_packet(self, gen_name: str, records: int | None) -> None:
        """Set how many records a packet of a generator has; 0 is as many as fit."""
        _set(self._known(gen_name), "data_records_num", records)

    def set_records_per_packet_all(self, records: int | None) -> None:
        """Set how many records a packet has."""
        for generator in self.get_all():
            _set(generator, "data_records_num", records)

    def set_engine_params(self, gen_name: str, params: Json) -> None:
        """Set the parameters of the engines of a generator."""
        for engine in self._known(gen_name).get("engines", []):
            engine["params"] = dict(params)

    def _known(self, gen_name: str) -> Json:
        if gen_name not in self._generators:
            names = ", ".join(self._generators) or "none"
            raise STLArgumentError("gen_name", gen_name, f"the name of a generator; there are {names}")
        return self._generators[gen_name]


class IpfixExporterParams:
    """Where records go, and how."""

    def __init__(self) -> None:
        self._params: Json = {}

    def get_type(self) -> str:
        """The scheme of the destination."""
        return urlsplit(self.get_dst_url()).scheme

    def get_dst_url(self) -> str:
        """The destination."""
        raise NotImplementedError

    def get_json(self) -> Json | None:
        """What is set, as the server wants it; None when nothing is."""
        return dict(self._params) or None

    def dump_json(self) -> str:
        """What is set, as text."""
        return json.dumps(self.get_json(), indent=4)

    def _set_dir(self, **params: Any) -> None:
        given = {name: value for name, value in params.items() if value is not None}
        self._params["export_from_dir_params"] = given


class IpfixUdpExporterParams(IpfixExporterParams):
    """To a collector over UDP, from a socket of the server."""

    def __init__(self, dst_ip_addr: str, dst_port: int | str) -> None:
        super().__init__()
        self._where = f"{dst_ip_addr}:{dst_port}"

    def get_dst_url(self) -> str:
        """The destination."""
        return f"udp://{self._where}/"

    def set_use_emu_client_ip_addr(self, use_emu_client_ip_addr: bool | None) -> None:
        """Send from the address of the client."""
        _set(self._params, "use_emu_client_ip_addr", use_emu_client_ip_addr)

    def set_raw_socket_interface_name(self, raw_socket_interface_name: str | None) -> None:
        """Send by this interface."""
        _set(self._params, "raw_socket_interface_name", raw_socket_interface_name)

    def set_export_from_dir(self, export_from_dir: bool | None) -> None:
        """Send files of a folder, instead of what generators make."""
        _set(self._params, "export_from_dir", export_from_dir)

    def set_export_from_dir_params(
        self,
        dir: str,
        dir_scans_num: int | None = None,
        files_wait_time: str | None = None,
        files_wait_time_speedup: float | None = None,
        packets_wait_time: str | None = None,
    ) -> None:
        """Say which folder, how often, and how long to wait between files and packets."""
        self._set_dir(
            dir=dir,
            dir_scans_num=dir_scans_num,
            files_wait_time=files_wait_time,
            files_wait_time_speedup=files_wait_time_speedup,
            packets_wait_time=packets_wait_time,
        )


class IpfixFileExporterParams(IpfixExporterParams):
    """Into files, which are finished by size or time."""

    def __init__(self, dir: str, name: str) -> None:
        super().__init__()
        self._dir, self._name = dir, name

    def get_dst_url(self) -> str:
        """The destination."""
        return f"file://{self._dir}/{self._name}"

    def set_max_size(self, max_size: int | None) -> None:
        """Finish a file at so many bytes."""
        _set(self._params, "max_size", max_size)

    def set_max_interval(self, max_interval: str | None) -> None:
        """Finish a file after such a time, as "10s"."""
        _set(self._params, "max_interval", max_interval)

    def set_max_files(self, max_files: int | None) -> None:
        """Keep so many files."""
        _set(self._params, "max_files", max_files)

    def set_compress(self, compress: bool | None) -> None:
        """Compress a file that is finished."""
        _set(self._params, "compress", compress)


class IpfixHttpExporterParams(IpfixFileExporterParams):
    """Into files that are posted to a collector."""

    def __init__(
        self, scheme: str, dst_ip_addr: str, dst_port: int | str, tenant_id: str, site_id: str, device_id: str
    ) -> None:
        super().__init__("", "")
        host = f"{scheme}://{dst_ip_addr}:{dst_port}"
        self._url = f"{host}/{_COLLECTOR}/{tenant_id}/{site_id}/{device_id}/post_file"

    def get_dst_url(self) -> str:
        """The destination."""
        return self._url

    def set_max_posts(self, max_posts: int | None) -> None:
        """Post so many files."""
        _set(self._params, "max_posts", max_posts)

    def set_tls_cert_file(self, tls_cert_file: str | None) -> None:
        """The file of the certificate."""
        _set(self._params, "tls_cert_file", tls_cert_file)

    def set_tls_key_file(self, tls_key_file: str | None) -> None:
        """The file of the certificate's key."""
        _set(self._params, "tls_key_file", tls_key_file)

    def set_store_exported_files_on_disk(self, store_exported_files_on_disk: bool | None) -> None:
        """Keep files that were posted."""
        _set(self._params, "store_exported_files_on_disk", store_exported_files_on_disk)

    def set_input_channel_capacity(self, input_channel_capacity: int | None) -> None:
        """Let so many packets wait to be written."""
        _set(self._params, "input_channel_capacity", input_channel_capacity)

    def set_repeats_num(self, repeats_num: int | None) -> None:
        """Post each file so often."""
        _set(self._params, "repeats_num", repeats_num)

    def set_repeats_wait_time(self, repeats_wait_time: str | None) -> None:
        """Wait such a time between two posts of a file."""
        _set(self._params, "repeats_wait_time", repeats_wait_time)

    def set_export_from_dir(self, export_from_dir: bool | None) -> None:
        """Post files of a folder, instead of what generators make."""
        _set(self._params, "export_from_dir", export_from_dir)

    def set_export_from_dir_params(
        self,
        dir: str,
        dir_scans_num: int | None = None,
        files_wait_time: str | None = None,
        files_wait_time_speedup: float | None = None,
    ) -> None:
        """Say which folder, how often, and how long to wait between files."""
        self._set_dir(
            dir=dir,
            dir_scans_num=dir_scans_num,
            files_wait_time=files_wait_time,
            files_wait_time_speedup=files_wait_time_speedup,
        )


class IpfixExporterParamsFactory:
    """Makes what suits a destination."""

    def create_obj_from_dst_url(self, dst_url: str) -> IpfixExporterParams:
        """The parameters for a URL. Raises ``STLError`` for one that is not understood."""
        url = urlsplit(dst_url)
        parts = url.path.strip("/").split("/")
        if url.scheme in ("udp", "emu-udp") and url.port is not None:
            return IpfixUdpExporterParams(str(url.hostname), url.port)
        if url.scheme == "file" and parts[-1]:
            return IpfixFileExporterParams(url.path.rpartition("/")[0], parts[-1])
        is_collector = url.path.startswith(f"/{_COLLECTOR}/") and len(parts) == len(_HTTP_PARTS)
        if url.scheme in ("http", "https") and url.port is not None and is_collector:
            tenant, site, device = parts[2:5]
            return IpfixHttpExporterParams(url.scheme, str(url.hostname), url.port, tenant, site, device)
        examples = f"udp://HOST:PORT, file:///FOLDER/NAME or http://HOST:PORT/{'/'.join(_HTTP_PARTS)}"
        raise STLArgumentError("dst_url", dst_url, examples)


_HTTP_PARTS = (*_COLLECTOR.split("/"), "TENANT", "SITE", "DEVICE", "post_file")


class IpfixPlugin:
    """The settings of the plugin `ipfix` of a client."""

    def __init__(self, exporter_params: IpfixExporterParams, generators: IpfixGenerators | None) -> None:
        self._exporter, self._generators = exporter_params, generators
        self._more: Json = {"domain_id": 1}

    def get_json(self) -> Json:
        """The settings, as the server wants them."""
        params = self._exporter.get_json()
        return {
            "netflow_version": _VERSION,
            "dst": self._exporter.get_dst_url(),
            **self._more,
            **({"exporter_params": params} if params else {}),
            **({"generators": self._generators.get_all()} if self._generators is not None else {}),
        }

    def dump_json(self) -> str:
        """The settings, as text."""
        return json.dumps(self.get_json(), indent=4)

    def set_domain_id(self, domain_id: int | None) -> None:
        """Set the observation domain."""
        _set(self._more, "domain_id", domain_id)

    def set_max_data_records(self, max_data_records: int | None) -> None:
        """Send so many records of data."""
        _set(self._more, "max_data_records", max_data_records)

    def set_max_template_records(self, max_template_records: int | None) -> None:
        """Send so many templates."""
        _set(self._more, "max_template_records", max_template_records)

    def set_max_time(self, max_time: str | None) -> None:
        """Send for such a time, as "10s"."""
        _set(self._more, "max_time", max_time)

    def set_auto_start(self, auto_start: bool | None) -> None:
        """Begin by itself, or when it is told to."""
        _set(self._more, "auto_start", auto_start)


class _Profile:
    """A profile that is made when it is asked for."""

    def get_profile(self) -> EMUProfile:
        """The profile."""
        raise NotImplementedError

    def get_json(self) -> Json:
        """The profile, as text and numbers."""
        return self.get_profile().to_json()

    def dump_json(self) -> str:
        """The profile, as text."""
        return json.dumps(self.get_json(), indent=4)


class IpfixProfile(_Profile):
    """Devices on a port, each with the plugin; domains count from that of the plugin."""

    def __init__(
        self,
        ipfix_plugin: IpfixPlugin,
        ns_port: int = 0,
        device_mac: str = "00:00:00:70:00:03",
        device_ipv4: str = "1.1.1.3",
        devices_num: int = 1,
    ) -> None:
        self._key = EMUNamespaceKey(ns_port)
        self._plugin, self._count = ipfix_plugin, devices_num
        self._mac, self._ipv4 = Mac(device_mac), Ipv4(device_ipv4)

    def get_devices_keys(self) -> list[EMUClientKey]:
        """The keys of the devices."""
        return [EMUClientKey(self._key, self._mac[number]) for number in range(self._count)]

    def get_profile(self) -> EMUProfile:
        """The profile."""
        gateway = Ipv4([*self._ipv4.V()[:3], 1])
        devices = [
            EMUClientObj(
                self._mac[number],
                ipv4=self._ipv4[number],
                ipv4_dg=gateway,
                plugs={"arp": {}, "ipfix": self._plugin.get_json()},
            )
            for number in range(self._count)
        ]
        return EMUProfile(EMUNamespaceObj(self._key, devices, plugs={"arp": {}}))


class IpfixDevicesAutoTriggerProfile(_Profile):
    """Devices that a namespace makes by itself, over a time."""

    def __init__(
        self,
        ipfix_plugin: IpfixPlugin,
        ns_port: int = 0,
        device_mac: str = "00:00:00:70:00:01",
        device_ipv4: str = "128.1.1.1",
        device_domain_id: int | None = None,
        devices_num: int = 1,
        rampup_time: str | None = None,
        sites_per_tenant: int | None = None,
        devices_per_site: int | None = None,
        total_rate_pps: float | None = None,
    ) -> None:
        self._key, self._plugin = EMUNamespaceKey(ns_port), ipfix_plugin
        self._mac, self._count = Mac(device_mac), devices_num
        given = {
            "device_mac": self._mac.V(),
            "device_ipv4": Ipv4(device_ipv4).V(),
            "device_domain_id": device_domain_id,
            "devices_num": devices_num,
            "rampup_time": rampup_time,
            "sites_per_tenant": sites_per_tenant,
            "devices_per_site": devices_per_site,
            "total_rate_pps": total_rate_pps,
        }
        self._trigger: Json = {name: value for name, value in given.items() if value is not None}

    def set_clients_generator(
        self,
        client_ipv4: str,
        clients_per_device: int,
        data_records_per_client: int,
        client_ipv4_field_name: str | None = None,
    ) -> None:
        """Let records of a device tell of so many clients of its own."""
        self._trigger["clients_generator"] = {
            "client_ipv4": Ipv4(client_ipv4).V(),
            "clients_per_device": clients_per_device,
            "data_records_per_client": data_records_per_client,
            **({"client_ipv4_field_name": client_ipv4_field_name} if client_ipv4_field_name else {}),
        }

    def get_devices_keys(self) -> list[EMUClientKey]:
        """The keys of the devices."""
        return [EMUClientKey(self._key, self._mac[number]) for number in range(self._count)]

    def get_ns_ipfix_plugin_json(self) -> Json:
        """The settings of the plugin `ipfix` of the namespace."""
        return {"devices_auto_trigger": {**self._trigger, "device_init": self._plugin.get_json()}}

    def get_profile(self) -> EMUProfile:
        """The profile."""
        return EMUProfile(EMUNamespaceObj(self._key, plugs={"ipfix": self.get_ns_ipfix_plugin_json()}))


class IpfixDevicesAutoTriggerListProfile(_Profile):
    """Several of these, on a port each."""

    def __init__(self) -> None:
        self._parts: list[IpfixDevicesAutoTriggerProfile] = []

    def add_devices_auto_trigger_profile(self, dat_profile: IpfixDevicesAutoTriggerProfile) -> None:
        """Add one."""
        self._parts.append(dat_profile)

    def get_profile(self) -> EMUProfile:
        """The profile."""
        namespaces = [
            EMUNamespaceObj(EMUNamespaceKey(port), plugs={"ipfix": part.get_ns_ipfix_plugin_json()})
            for port, part in enumerate(self._parts)
        ]
        return EMUProfile(namespaces)
