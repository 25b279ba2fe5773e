"""`emu_ipfix_push` and `emu_ipfix_load_profile_cfg`: what exports IPFIX without a profile in Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from allosaur.cli import _options
from allosaur.cli._answer import Answer
from allosaur.cli.console._command import done
from allosaur.cli.console.commands._emulation import PREFIX, EmulationCommand

if TYPE_CHECKING:
    from allosaur import EMUClient

_DEVICE_MAC, _DEVICE_IPV4 = "00:00:00:00:00:01", "1.1.1.1"
_DOMAIN = 270
"""As TRex's: who sends files has no records of a domain."""


class IpfixPush(EmulationCommand):
    """`emu_ipfix_push`."""

    name = f"{PREFIX}ipfix_push"
    summary = "let the server send files of IPFIX that it has, until emu_remove_profile"
    example = f"{PREFIX}ipfix_push --dst-url udp://127.0.0.1:4739 --dir /var/flows --files-wait-time 1s"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        text = "where to, of udp or http"
        add("--dst-url", required=True, metavar="URL", help=text)
        add("--dir", required=True, metavar="PATH", help="a folder of the server's machine, or a file")
        text = "read them so often (1)"
        add("--dir-scans-num", type=_options.whole_number, metavar="N", help=text)
        text = "wait after each file, as 10s (as long as the times in their names are apart)"
        add("--files-wait-time", metavar="TIME", help=text)
        text = "how much faster than the times in their names (1)"
        add("--files-wait-time-speedup", type=float, default=1.0, metavar="N", help=text)
        text = "post each again so often (0)"
        add("--http-repeats-num", type=_options.whole_number, metavar="N", help=text)
        text = "wait before each time, as 10s"
        add("--http-repeats-wait-time", metavar="TIME", help=text)
        for name, what in (("sites-per-tenant", "sites"), ("devices-per-site", "devices")):
            text = f"how many {what}, for the numbers in the URL"
            add(f"--http-{name}", type=_options.whole_number, metavar="N", help=text)
        text = "wait after each datagram of a file, as 10ms"
        add("--udp-packets-wait-time", metavar="TIME", help=text)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        from allosaur.emulation import _ipfix

        exporter = _ipfix.IpfixExporterParamsFactory().create_obj_from_dst_url(options.dst_url)
        common = (
            options.dir,
            options.dir_scans_num,
            options.files_wait_time,
            options.files_wait_time_speedup,
        )
        if isinstance(exporter, _ipfix.IpfixHttpExporterParams):
            if options.http_repeats_num is not None:
                exporter.set_repeats_num(options.http_repeats_num)
            if options.http_repeats_wait_time is not None:
                exporter.set_repeats_wait_time(options.http_repeats_wait_time)
            exporter.set_export_from_dir(True)
            exporter.set_export_from_dir_params(*common)
        elif isinstance(exporter, _ipfix.IpfixUdpExporterParams):
            exporter.set_export_from_dir(True)
            exporter.set_export_from_dir_params(*common, options.udp_packets_wait_time)
        else:
            from allosaur.cli._errors import bad_input

            raise bad_input(f"--dst-url {options.dst_url}: write one of udp or http")
        plugin = _ipfix.IpfixPlugin(exporter, None)
        plugin.set_domain_id(_DOMAIN)
        profile = _ipfix.IpfixDevicesAutoTriggerProfile(
            plugin,
            device_mac=_DEVICE_MAC,
            device_ipv4=_DEVICE_IPV4,
            sites_per_tenant=options.http_sites_per_tenant,
            devices_per_site=options.http_devices_per_site,
        )
        client.load_profile(profile.get_profile())
        return done(f"Sending the files of {options.dir} to {options.dst_url}")


class IpfixLoadConfig(EmulationCommand):
    """`emu_ipfix_load_profile_cfg`."""

    name = f"{PREFIX}ipfix_load_profile_cfg"
    summary = "emulate devices that export IPFIX, of a JSON file"
    example = f"{PREFIX}ipfix_load_profile_cfg --profile-cfg-file devices.json"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        text = "the JSON file, with device_groups"
        parser.add_argument("--profile-cfg-file", required=True, type=Path, metavar="FILE", help=text)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        from allosaur.emulation._ipfix_config import IpfixProfileJsonConfig

        profile = IpfixProfileJsonConfig(options.profile_cfg_file).get_profile()
        client.load_profile(profile)
        return done(f"Loading {options.profile_cfg_file}: {len(profile.ns_list)} groups of devices")
