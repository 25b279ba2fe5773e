"""``trex.emu.trex_emu_ipfix_profile`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.emulation._ipfix import (
    IpfixDevicesAutoTriggerListProfile,
    IpfixDevicesAutoTriggerProfile,
    IpfixExporterParams,
    IpfixExporterParamsFactory,
    IpfixFileExporterParams,
    IpfixGenerators,
    IpfixHttpExporterParams,
    IpfixPlugin,
    IpfixProfile,
    IpfixUdpExporterParams,
)
from allosaur.emulation._ipfix_fields import AvcIpfixFields, IpfixFields

__all__ = [
    "AvcIpfixFields",
    "IpfixDevicesAutoTriggerListProfile",
    "IpfixDevicesAutoTriggerProfile",
    "IpfixExporterParams",
    "IpfixExporterParamsFactory",
    "IpfixFields",
    "IpfixFileExporterParams",
    "IpfixGenerators",
    "IpfixHttpExporterParams",
    "IpfixPlugin",
    "IpfixProfile",
    "IpfixUdpExporterParams",
]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
