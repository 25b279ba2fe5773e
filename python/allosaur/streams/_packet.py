"""The packet of a stream: from Scapy, from bytes, or from a capture, with its field engine program."""

from __future__ import annotations

import base64
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import STLPacketError, STLTypeError
from ..packets._capture_reader import first_frame
from ..packets._offline import offline
from ..packets._offsets import Layers
from ._program import STLScVmRaw
from ._vm import Instruction

if TYPE_CHECKING:
    from scapy.packet import Packet

#: The smallest and the largest packet in bytes, without FCS.
PACKET_BYTES_MIN = 14
PACKET_BYTES_MAX = 9238

_LINKTYPE_ETHERNET = 1
_HERE = str(Path(__file__).parents[1])
_PROFILES = f"{_HERE}/profiles/"


class STLPktBuilder:
    """A packet and what changes in it.

    ``pkt`` is a Scapy packet, or the path of a capture of which the first packet is taken;
    ``pkt_buffer`` is bytes. ``vm`` is an ``STLVM``, an ``STLScVmRaw`` or a list of instructions. With
    ``path_relative_to_profile`` the path starts at the directory of the calling file.
    ``build_raw`` takes a Scapy packet as it is: addresses that it leaves open are then not set to
    fixed values. ``remove_fcs`` drops a correct frame check sequence at the end of bytes; when the
    program gives places by name, it drops all that comes behind the IP datagram.

    Raises ``STLPacketError``.
    """

    def __init__(
        self,
        pkt: Packet | str | Path | None = None,
        pkt_buffer: bytes | None = None,
        vm: STLScVmRaw | list[Instruction] | None = None,
        path_relative_to_profile: bool = False,
        build_raw: bool = False,
        remove_fcs: bool = True,
    ) -> None:
        if isinstance(vm, list):
            vm = STLScVmRaw(vm) if vm else None
        if vm is not None and not isinstance(vm, STLScVmRaw):
            raise STLTypeError("vm", type(vm), (STLScVmRaw, list))
        if (pkt is None) == (pkt_buffer is None):
            raise STLPacketError("a packet builder needs a packet: give either pkt or pkt_buffer")
        self.vm = vm
        self.pkt: Packet | None = None
        self._explicit_macs = (False, False)
        self._remove_fcs = remove_fcs
        if pkt_buffer is not None:
            self._bytes = _bytes(pkt_buffer, remove_fcs)
        elif isinstance(pkt, (str, Path)):
            path = Path(_caller_directory(), pkt) if path_relative_to_profile else Path(pkt)
            self._bytes = _bytes(first_frame(path), remove_fcs)
        else:
            with offline():
                self._take_scapy(pkt, build_raw)
        with offline():
            layers = None if vm is None else self._layers(vm)
            self._check_size()
            self._vm_json = {"instructions": []} if vm is None or layers is None else vm.to_json(layers)

    def to_json(self) -> dict[str, Any]:
        """The ``packet`` and ``vm`` objects of the protocol."""
        return {"packet": self.dump_pkt(), "vm": self.vm_json()}

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLPktBuilder:
        """A builder from the ``packet`` and ``vm`` objects of the protocol."""
        try:
            binary = base64.b64decode(json_data["packet"]["binary"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise STLPacketError(f"field 'packet.binary' is missing or not base64: {error}") from error
        vm = json_data.get("vm") or {}
        program = STLScVmRaw.from_json(vm) if vm.get("instructions") or vm.get("cache") else None
        return STLPktBuilder(pkt_buffer=binary, vm=program, remove_fcs=False)

    def dump_pkt(self, encode: bool = True) -> dict[str, Any]:
        """The ``packet`` object of the protocol; with ``encode=False`` the bytes as they are."""
        binary: Any = base64.b64encode(self._bytes).decode() if encode else self._bytes
        return {"binary": binary, "meta": ""}

    def vm_json(self) -> dict[str, Any]:
        """The ``vm`` object of the protocol."""
        return {**self._vm_json, "instructions": [dict(line) for line in self._vm_json["instructions"]]}

    def dump_pkt_to_pcap(self, file_path: str | Path) -> None:
        """Write the packet to a capture file."""
        from scapy.packet import Raw
        from scapy.utils import wrpcap

        wrpcap(str(file_path), Raw(self._bytes), linktype=_LINKTYPE_ETHERNET)

    def get_pkt_len(self) -> int:
        """Bytes of the packet without FCS."""
        return len(self._bytes)

    def get_vm_data(self) -> dict[str, Any]:
        """The ``vm`` object of the protocol (a name that existing scripts use)."""
        return self.vm_json()

    def is_default_src_mac(self) -> bool:
        """Whether the packet leaves its source MAC to the port."""
        return not self._explicit_macs[0]

    def is_default_dst_mac(self) -> bool:
        """Whether the packet leaves its destination MAC to the port."""
        return not self._explicit_macs[1]

    def compile(self) -> None:
        """Does nothing: a builder is complete once it is made. Existing scripts call it."""

    def _take_scapy(self, pkt: object, build_raw: bool) -> None:
        from ..packets._scapy import Packet, check_bit_fields, explicit_macs, with_fixed_addresses

        if not isinstance(pkt, Packet):
            raise STLTypeError("pkt", type(pkt), ("Packet", str))
        check_bit_fields(pkt)
        self._explicit_macs = explicit_macs(pkt)
        self.pkt = pkt.copy() if build_raw else with_fixed_addresses(pkt)
        try:
            self._bytes = bytes(self.pkt)
        except Exception as error:
            raise STLPacketError(f"Scapy cannot build {pkt.summary()}: {error}") from error

    def _layers(self, vm: STLScVmRaw) -> Layers:
        packet = self.pkt
        if packet is None and vm.uses_names():
            from ..packets._scapy import Ether

            packet = Ether(self._bytes)
            if self._remove_fcs:
                self._drop_padding(packet)
        return Layers(packet, len(self._bytes))

    def _drop_padding(self, packet: Packet) -> None:
        """Drop what is behind the headers' payload: a recorded FCS, right or wrong, or padding."""
        from ..packets._scapy import Padding

        last = packet.lastlayer()
        if isinstance(last, Padding) and last.underlayer is not None:
            self._bytes = self._bytes[: -len(last.load)]
            last.underlayer.remove_payload()

    def _check_size(self) -> None:
        if not PACKET_BYTES_MIN <= len(self._bytes) <= PACKET_BYTES_MAX:
            raise STLPacketError(
                f"the packet has {len(self._bytes)} bytes: "
                f"give {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}, without FCS"
            )


def _bytes(pkt_buffer: bytes, remove_fcs: bool) -> bytes:
    if not isinstance(pkt_buffer, (bytes, bytearray)):
        raise STLTypeError("pkt_buffer", type(pkt_buffer), bytes)
    data = bytes(pkt_buffer)
    body, sequence = data[:-4], data[-4:]
    if remove_fcs and len(body) >= PACKET_BYTES_MIN and zlib.crc32(body).to_bytes(4, "little") == sequence:
        return body
    return data


def _caller_directory() -> Path:
    """The directory of the first file on the stack that is not this package's own code: the profile's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return Path(frame.f_code.co_filename).parent


def _is_ours(file: str) -> bool:
    return file.startswith(_HERE) and not file.startswith(_PROFILES)
