"""What a client does with captures: load them here and send them as streams.

What does not live here: how a capture becomes streams (``_pcap_profile``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._client_traffic import TrafficMethods
from ._errors import STLArgumentError, STLError
from ._places import Ports, place
from ._profile import STLProfile

#: Each packet becomes a stream on the server, so larger captures need ``force``.
_CAPTURE_BYTES_MAX = 1 << 20


class CaptureMethods(TrafficMethods):
    """Sending captures."""

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
        """Send a capture of this machine (pcap or pcapng) from ports, in place of their streams.

        ``count`` is how often, 0 is forever; ``duration`` in seconds, -1 is without a limit. The
        others are as for ``STLProfile.load_pcap``. With ``is_dual`` a port sends what came from
        whoever sent the first packet, and the other port of its pair (0 and 1, 2 and 3) the rest;
        both must be ours. ``force`` sends captures above 1 MB, too, and stops what runs. Raises
        ``STLError``.
        """
        chosen = self._ports(ports, self.get_acquired_ports)
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

    def _partners(self, ports: list[int]) -> list[int]:
        """The other port of each pair. Raises ``STLError``."""
        partners = [port ^ 1 for port in ports]
        both = [port for port in ports if port in partners]
        if both:
            raise STLArgumentError("ports", both, "one port of each pair; is_dual takes the other one, too")
        return self._ports(partners, self.get_acquired_ports)

    def _send_instead(self, loads: dict[int, STLProfile], duration: float, force: bool) -> None:
        """Replace the streams of ports, and start them together."""
        ports = list(loads)
        active = [port for port in ports if self._profile(place(port)).is_active]
        if active and not force:
            raise STLError(f"port(s) {active} already send: call stop() first, or give force=True")
        if active:
            self.stop(active)
        self.remove_all_streams(ports)
        for port, profile in loads.items():
            self.add_streams(profile, ports=[port])
        self.start(ports, duration=duration, force=force)


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
