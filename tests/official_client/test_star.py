"""`import *` of TRex's interfaces gives with our package what it gives with TRex's client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
#: Large layers of Scapy, of which the import takes long: a profile imports them itself.
LARGE = tuple(f"scapy.layers.{name}" for name in ("bluetooth", "dot11", "smb", "x509", "zigbee"))
#: Names of the Scapy of 2019 that TRex's client carries; today's Scapy has them no longer.
_GONE = (
    "BTLE_Corp_IDs BTLE_Versions BitVarSizeField CGlobal CPacketRes Ciphers DNSQRField "
    "DNSRRCountField DNSRRField DomainNameField ERSPAN ETH_P_8021Q ICMPv6MLReportV2 "
    "IPv6ExtHdrSegmentRoutingTLVPadding ISAKMP_class InheritOriginDNSStrPacket MLDv2Addr "
    "NBNSNodeStatusResponseEnd NBNSQueryResponseNegative NBNSRequest NTPControlDataPacketLenField "
    "NTPStatusPacket NewDefaultValues PPP_ SCTPChunkParamHearbeatInfo SixLoWPANAddrField "
    "TP_STATUS_VLAN_VALID UTF8LenField VarLenIntField WINDOWS_XP capability_list "
    "destiny_addr_mode export_object flowlabel_len get_alias_address get_if get_if_index "
    "get_if_raw_hwaddr get_iface_mode import_object int2str isCryptographyRecent isdnssecRR "
    "lambda_tuple_converter load_object load_session nhc_port orb pad_trafficclass reason_code "
    "sane_color save_object save_session set_iface_monitor source_addr_mode2 status_code "
    "str2bytes str2int str2ip tpacket_auxdata update_session "
)
GONE = set(_GONE.split())
BUILT_IN = {"range", "zip"}


@pytest.fixture(scope="module")
def theirs(client_python: str, client_environment: dict[str, str]) -> dict[str, dict[str, str]]:
    """The names of TRex's client by interface, each with its module."""
    done = subprocess.run(
        [client_python, str(HERE / "star.py")],
        env=client_environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("interface", ["trex.stl.api", "trex.astf.api", "trex_stl_lib.api"])
def test_no_name_is_missing(theirs: dict[str, dict[str, str]], interface: str) -> None:
    ours: dict[str, object] = {}
    exec(f"from {interface} import *", ours)
    wanted = {name for name, module in theirs[interface].items() if not module.startswith(LARGE)}
    assert len(wanted) > 200
    assert wanted - set(ours) - GONE - BUILT_IN == set()
