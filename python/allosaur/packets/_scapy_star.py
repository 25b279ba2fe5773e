"""The names of Scapy that ``from allosaur.api import *`` gives: every layer of which the import is cheap."""

from __future__ import annotations

import functools
import importlib
from typing import Any

_MODULES = (
    *("main", "error", "compat", "themes", "dadict", "asn1.asn1", "asn1.ber", "asn1fields"),
    *("arch", "arch.common", "arch.linux", "layers.ipsec", "layers.eap", "layers.vrrp", "layers.lltd"),
    *("layers.mgcp", "layers.ppi", "layers.skinny", "layers.ir", "layers.sixlowpan", "layers.dot15d4"),
    *(
        "config",
        "base_classes",
        "volatile",
        "fields",
        "packet",
        "plist",
        "utils",
        "utils6",
        "sendrecv",
        "data",
    ),
    *(
        "layers.l2",
        "layers.inet",
        "layers.inet6",
        "layers.dns",
        "layers.dhcp",
        "layers.dhcp6",
        "layers.vxlan",
    ),
    *("layers.sctp", "layers.rtp", "layers.ntp", "layers.tftp", "layers.snmp", "layers.netflow"),
    *("layers.radius", "layers.ppp", "layers.pptp", "layers.l2tp", "layers.rip", "layers.hsrp"),
    *("layers.mobileip", "layers.llmnr", "layers.isakmp", "layers.netbios", "layers.gprs"),
)


@functools.cache
def scapy_star() -> dict[str, Any]:
    """The public names of these modules; of two with one name the later module has it."""
    importlib.import_module("allosaur.packets._scapy")  # Sets Scapy up before its other modules are imported.
    names: dict[str, Any] = {}
    for module in _MODULES:
        found = vars(importlib.import_module(f"scapy.{module}"))
        names.update({name: value for name, value in found.items() if not name.startswith("_")})
    return names
