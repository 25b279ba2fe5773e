"""What a client does with capture files: send them, read here or by the server."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._errors import STLArgumentError, STLError
from ..packets._capture_reader import told_early
from ..streams._multiplier import parse_duration
from ..streams._pcap_profile import CaptureTimeWarning
from ..streams._profile import STLProfile
from ._connection import Connection
from ._places import Ports, place
from ._traffic import Traffic

#: Each packet becomes a stream on the server, so larger captures need ``force``.
_CAPTURE_BYTES_MAX = 1 << 20
#: Bits of the ``count`` of ``push_remote``.
_SRC_MAC_PCAP, _DST_MAC_PCAP = 1 << 31, 1 << 30


class CapturePush:
    """Sending capture files."""

    def __init__(self, connection: Connection, traffic: Traffic) -> None:
        self._connection = connection
        self._traffic = traffic

    def push_pcap(
        self,
        pcap_filename: str | Path,
        ports: Ports = None,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        count: int = 1,
        duration: float = -1,
        force: bool = False,
        vm: Any = None,
        packet_hook: Callable[[bytes], bytes] | None = None,
        is_dual: bool = False,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> None:
        """Send a capture of this machine (pcap, pcapng or ERF) from ports, in place of their streams.

        ``count`` is how often, 0 is forever; ``duration`` in seconds, -1 is without a limit. The
        others are as for ``STLProfile.load_pcap``. With ``is_dual`` a port sends what came from
        whoever sent the first packet, and the other port of its pair (0 and 1, 2 and 3) the rest;
        both must be ours. ``force`` sends captures above 1 MB, too, and stops what runs. Raises
        ``STLError``.
        """
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        path = Path(pcap_filename)
        _check_size(path, force)
        profiles = STLProfile.load_pcap(
            path,
            ipg_usec=ipg_usec,
            speedup=speedup,
            loop_count=count,
            vm=vm,
            packet_hook=packet_hook,
            split_mode="MAC" if is_dual else None,
            min_ipg_usec=min_ipg_usec,
            src_mac_pcap=src_mac_pcap,
            dst_mac_pcap=dst_mac_pcap,
        )
        if isinstance(profiles, tuple):
            first, other = profiles
            loads = dict.fromkeys(chosen, first) | dict.fromkeys(self._partners(chosen), other)
        else:
            loads = dict.fromkeys(chosen, profiles)
        self._send_instead(loads, duration, force)

    def push_remote(
        self,
        pcap_filename: str | Path,
        ports: Ports = None,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        count: int = 1,
        duration: float = -1,
        is_dual: bool = False,
        min_ipg_usec: float | None = None,
        force: bool = False,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> None:
        """Send a capture of the server's machine from ports, packet by packet as the file has them.

        The server reads the file while it sends, so it may be of any size. ``pcap_filename`` is its
        path there. Packets leave with the file's gaps, divided by ``speedup``, and none shorter than
        ``min_ipg_usec``; or ``ipg_usec`` apart (microseconds). ``count`` is how often, 0 is forever;
        ``duration`` in seconds, -1 is without a limit. With ``src_mac_pcap`` and ``dst_mac_pcap``
        packets keep their MAC addresses, else they get the port's. With ``is_dual`` a port sends one
        direction of the file and the other port of its pair (0 and 1, 2 and 3) the other; both must
        be ours. ``force`` stops what runs. Streams of the ports stay. Raises ``STLError``.
        """
        _check_gaps(ipg_usec, min_ipg_usec, speedup)
        bits = _count_with_macs(count, src_mac_pcap, dst_mac_pcap)
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        partners = self._partners(chosen) if is_dual else []
        self._make_idle([*chosen, *partners], force)
        session = self._connection.session()
        session.drain_events()
        for port in chosen:
            slave = self._connection.port(port ^ 1).handler if is_dual else ""
            fields = {
                "pcap_filename": str(pcap_filename),
                "ipg_usec": -1 if ipg_usec is None else ipg_usec,
                "speedup": speedup,
                "count": bits,
                "duration": parse_duration(duration),
                "is_dual": is_dual,
                "slave_handler": slave,
                "min_ipg_usec": min_ipg_usec or 0,
            }
            both = [port, port ^ 1] if is_dual else [port]
            # A short file may end before the answer is here, so "sending" is noted before it begins.
            self._note_push(both, "PCAP_TX")
            try:
                replies = self._connection.each("push_remote", [port], **fields)
            except BaseException:
                self._note_push(both, "IDLE")
                raise
            if ipg_usec is None:
                _warn_of_times(pcap_filename, replies)

    def _note_push(self, ports: list[int], state: str) -> None:
        with self._connection.session().changed:
            for port in ports:
                self._connection.port(port).besides = state
            self._connection.session().changed.notify_all()

    def _make_idle(self, ports: list[int], force: bool) -> None:
        """Stop what runs on ports. Raises ``STLError`` when something runs and ``force`` is not given."""
        active = [port for port in ports if self._connection.port(port).is_active]
        if active and not force:
            raise _already_sending(active)
        if active:
            self._traffic.stop([f"{port}.*" for port in active])

    def _partners(self, ports: list[int]) -> list[int]:
        """The other port of each pair. Raises ``STLError``."""
        partners = [port ^ 1 for port in ports]
        both = [port for port in ports if port in partners]
        if both:
            raise STLArgumentError("ports", both, "one port of each pair; is_dual takes the other one, too")
        return self._connection.ports_of(partners, self._connection.acquired_ports)

    def _send_instead(self, loads: dict[int, STLProfile], duration: float, force: bool) -> None:
        """Replace the streams of ports, and start them together."""
        ports = list(loads)
        active = [port for port in ports if self._connection.profile(place(port)).is_active]
        if active and not force:
            raise _already_sending(active)
        if active:
            self._traffic.stop(active)
        self._traffic.remove_all_streams(ports)
        for port, profile in loads.items():
            self._traffic.add_streams(profile, ports=[port])
        self._traffic.start(ports, duration=duration, force=force)


def _warn_of_times(path: str | Path, replies: list[Any]) -> None:
    """Warn of times that go back in a file of the server's; one of TRex's tells nothing of them."""
    early = max((one.get("early_packets", 0) for one in replies if isinstance(one, dict)), default=0)
    if early:
        warnings.warn(told_early(path, early), CaptureTimeWarning, stacklevel=3)


def _already_sending(active: list[int]) -> STLError:
    return STLError(f"port(s) {active} already send: call stop() first, or give force=True")


def _check_gaps(ipg_usec: Any, min_ipg_usec: Any, speedup: Any) -> None:
    if ipg_usec is not None and min_ipg_usec is not None:
        raise STLArgumentError("min_ipg_usec", min_ipg_usec, "either ipg_usec or min_ipg_usec, not both")
    for name, value in (("ipg_usec", ipg_usec), ("min_ipg_usec", min_ipg_usec)):
        if value is not None and (not _is_number(value) or value < 0):
            raise STLArgumentError(name, value, "microseconds, 0 or more")
    if not _is_number(speedup) or speedup <= 0:
        raise STLArgumentError("speedup", speedup, "a factor above 0")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _count_with_macs(count: Any, src_mac_pcap: bool, dst_mac_pcap: bool) -> int:
    """The ``count`` of the protocol, whose upper bits say whose MAC addresses the packets have."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < _DST_MAC_PCAP:
        raise STLArgumentError("count", count, f"0 (forever) to {_DST_MAC_PCAP - 1}")
    return count | (_SRC_MAC_PCAP if src_mac_pcap else 0) | (_DST_MAC_PCAP if dst_mac_pcap else 0)


def _check_size(path: Path, force: bool) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise STLError(f"the capture {path} cannot be read: {error.strerror or error}") from error
    if size > _CAPTURE_BYTES_MAX and not force:
        raise STLError(
            f"the capture {path} has {size} bytes, more than {_CAPTURE_BYTES_MAX}: have the server "
            f"read it with push_remote(), or give force=True"
        )
