"""A profile: a list of streams, and its forms on disk and on the wire."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, overload

from .._errors import STLArgumentError, STLError, STLProfileError
from ._loader import capture_arguments, read_json, read_yaml, run_python
from ._modes import STLTXCont
from ._multiplier import parse_duration, parse_multiplier
from ._stream import STLStream, link

CAPTURES = (".pcap", ".pcapng", ".erf", ".cap")
_ALL_CORES = (1 << 64) - 1


class STLProfile:
    """Streams that are loaded together. Raises ``STLError``."""

    def __init__(self, streams: STLStream | Iterable[STLStream] | None = None) -> None:
        if isinstance(streams, STLStream):
            streams = [streams]
        if streams is None or isinstance(streams, (str, bytes)) or not isinstance(streams, Iterable):
            streams = [] if streams is None else [streams]
        self.streams = list(streams)
        for stream in self.streams:
            if not isinstance(stream, STLStream):
                raise STLArgumentError("streams", stream, "STLStream objects")

    def get_streams(self) -> list[STLStream]:
        """The streams in order."""
        return list(self.streams)

    def has_flow_stats(self) -> bool:
        """Whether a stream is counted for itself."""
        return any(stream.has_flow_stats() for stream in self.streams)

    def has_custom_mac_addr(self) -> bool:
        """Whether a stream has a MAC address of its own."""
        return any(stream.has_custom_mac_addr() for stream in self.streams)

    def is_pauseable(self) -> bool:
        """Whether every stream is continuous."""
        return all(isinstance(stream.mode, STLTXCont) for stream in self.streams)

    def to_json(self) -> list[dict[str, Any]]:
        """The streams in the words of the protocol."""
        return [stream.to_json() for stream in self.streams]

    @staticmethod
    def from_json(json_data: list[dict[str, Any]]) -> STLProfile:
        """A profile from a list of streams in the words of the protocol. Raises ``STLError``."""
        streams = json_data
        if not isinstance(streams, list) or not all(isinstance(stream, dict) for stream in streams):
            raise STLProfileError("a profile in JSON is a list of streams: see STLProfile.to_json()")
        return STLProfile([STLStream.from_json(stream) for stream in streams])

    def to_commands(
        self, port_id: int = 0, mult: str | float = "1", duration: float = -1
    ) -> list[dict[str, Any]]:
        """The requests that load and start the profile on a port: what the simulator takes.

        ``mult`` is as for ``STLClient.start``, ``duration`` in seconds (-1 is forever).
        """
        ids = list(range(1, len(self.streams) + 1))
        requests = [
            _request("add_stream", port_id=port_id, stream_id=stream_id, stream=stream)
            for stream_id, stream in zip(ids, link(self.streams, ids), strict=True)
        ]
        start = _request(
            "start_traffic",
            force=True,
            port_id=port_id,
            mul=parse_multiplier(mult),
            duration=parse_duration(duration),
            core_mask=_ALL_CORES,
        )
        return [*requests, start]

    @staticmethod
    def load(filename: str | Path, direction: int = 0, port_id: int = 0, **tunables: Any) -> STLProfile:
        """Load a profile from a .py, .json or .yaml file, or from a capture (.pcap, .pcapng, .cap).

        ``tunables`` go to the profile's ``get_streams``; of a capture they are the arguments of
        ``load_pcap``, and with ``split_mode`` the profile is that of ``direction``. Raises
        ``STLProfileError``.
        """
        path = Path(filename)
        if path.suffix == ".py":
            return _from_python(path, direction, port_id, tunables)
        if path.suffix == ".json":
            return STLProfile.load_json(path)
        if path.suffix in (".yaml", ".yml"):
            return STLProfile.load_yaml(path)
        if path.suffix in CAPTURES:
            return _from_capture(path, direction, tunables)
        raise STLProfileError(
            f"profile {path}: files ending in '{path.suffix}' are not known, give .py, .json, .yaml or .pcap"
        )

    @staticmethod
    def load_py(python_file: str | Path, direction: int = 0, port_id: int = 0, **tunables: Any) -> STLProfile:
        """Load a profile from a Python file that has ``register()``. Raises ``STLProfileError``."""
        return _from_python(Path(python_file), direction, port_id, tunables)

    @staticmethod
    def load_json(json_file: str | Path) -> STLProfile:
        """Load a profile from a JSON file. Raises ``STLProfileError``."""
        path = Path(json_file)
        return _from_fields(path, read_json(path))

    @staticmethod
    def load_yaml(yaml_file: str | Path) -> STLProfile:
        """Load a profile from a YAML file. Raises ``STLProfileError``."""
        path = Path(yaml_file)
        return _from_fields(path, read_yaml(path))

    @overload
    @staticmethod
    def load_pcap(
        pcap_file: str | Path,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        loop_count: int = 1,
        vm: Any = None,
        packet_hook: Callable[[bytes], bytes] | None = None,
        split_mode: None = None,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> STLProfile: ...

    @overload
    @staticmethod
    def load_pcap(
        pcap_file: str | Path,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        loop_count: int = 1,
        vm: Any = None,
        packet_hook: Callable[[bytes], bytes] | None = None,
        *,
        split_mode: str,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> tuple[STLProfile, STLProfile]: ...

    @staticmethod
    def load_pcap(
        pcap_file: str | Path,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        loop_count: int = 1,
        vm: Any = None,
        packet_hook: Callable[[bytes], bytes] | None = None,
        split_mode: str | None = None,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> STLProfile | tuple[STLProfile, STLProfile]:
        """A profile from a capture (pcap, pcapng or ERF): each packet is a stream that starts the next.

        ``ipg_usec`` is the gap between packets in microseconds; without it the gaps are the
        recorded ones. ``speedup`` divides the gaps; none gets shorter than ``min_ipg_usec``.
        ``loop_count`` is how often the capture is sent, 0 is forever. ``vm`` is a field engine
        program for every packet, ``packet_hook`` a function that gets the bytes of each packet and
        returns those to send. MAC addresses are the port's, unless ``src_mac_pcap`` and
        ``dst_mac_pcap`` say that they are the capture's. ``split_mode`` gives two profiles, one for
        each side, told by the addresses of who sends to whom ("MAC" or "IP"): the side of whoever
        sent the first packet, and the other. Any number of hosts may be on a side. With a ``vm`` that
        gives places by name, what is behind the IP datagram (a recorded FCS, padding) is not sent.
        Raises ``STLProfileError``.
        """
        from ._pcap_profile import PcapOptions, load_pcap, load_pcap_split

        options = PcapOptions(
            ipg_usec=ipg_usec,
            speedup=speedup,
            loop_count=loop_count,
            vm=vm,
            packet_hook=packet_hook,
            split_mode=split_mode,
            min_ipg_usec=min_ipg_usec,
            src_mac_pcap=src_mac_pcap,
            dst_mac_pcap=dst_mac_pcap,
        )
        path = Path(pcap_file)
        if split_mode is None:
            return STLProfile(load_pcap(path, options))
        first, second = load_pcap_split(path, options)
        return STLProfile(first), STLProfile(second)

    def dump_json(self, path: str | Path) -> None:
        """Write the profile to a JSON file that ``load`` reads."""
        _write(Path(path), json.dumps(self.to_json(), indent=2) + "\n")

    def dump_yaml(self, path: str | Path) -> None:
        """Write the profile to a YAML file that ``load`` reads."""
        import yaml

        _write(Path(path), str(yaml.safe_dump(self.to_json(), sort_keys=False)))

    def dump_to_code(self, profile_file: str | Path | None = None) -> str:
        """The profile as Python code that ``load`` reads; also written to ``profile_file`` if given."""
        from ._code import profile_code

        code = profile_code(self.streams)
        if profile_file is not None:
            _write(Path(profile_file), code)
        return code

    def save(self, path: str | Path) -> None:
        """Write the profile to a .py, .json or .yaml file that ``load`` reads. Raises ``STLProfileError``."""
        kinds: dict[str, Callable[[str | Path], object]] = {
            ".py": self.dump_to_code,
            ".json": self.dump_json,
            ".yaml": self.dump_yaml,
            ".yml": self.dump_yaml,
        }
        suffix = Path(path).suffix
        if suffix not in kinds:
            raise STLProfileError(f"profile {path}: give a name that ends in .py, .json or .yaml")
        kinds[suffix](path)


def _from_python(path: Path, direction: int, port_id: int, tunables: dict[str, Any]) -> STLProfile:
    """A profile of what a Python file gives. Raises ``STLProfileError``."""
    path = path.resolve()
    streams = run_python(path, direction, port_id, tunables)
    if isinstance(streams, STLProfile):
        return streams
    listed = [streams] if isinstance(streams, STLStream) else streams
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, STLStream) for one in listed):
        raise STLProfileError(
            f"profile {path}: get_streams() returned {type(streams).__name__}, "
            f"it must return a list of STLStream"
        )
    return STLProfile(listed)


def _from_fields(path: Path, fields: Any) -> STLProfile:
    """A profile of what a file holds. Raises ``STLProfileError``."""
    try:
        return STLProfile.from_json(fields)
    except STLError as error:
        raise STLProfileError(f"profile {path}: {error}") from error


def _from_capture(path: Path, direction: int, tunables: dict[str, Any]) -> STLProfile:
    """A profile of a capture, or of a direction of one that is split. Raises ``STLProfileError``."""
    known = list(inspect.signature(STLProfile.load_pcap).parameters)[1:]
    arguments = capture_arguments(path, tunables, known)
    try:
        loaded: Any = STLProfile.load_pcap(path, **arguments)
    except STLProfileError:
        raise
    except STLError as error:
        raise STLProfileError(f"profile {path}: {error}") from error
    profile: STLProfile = loaded[direction % 2] if isinstance(loaded, tuple) else loaded
    return profile


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise STLProfileError(f"profile {path} cannot be written: {error.strerror or error}") from error


def _request(method: str, **params: Any) -> dict[str, Any]:
    return {"id": 1, "jsonrpc": "2.0", "method": method, "params": {"handler": 0, "api_h": "dummy", **params}}
