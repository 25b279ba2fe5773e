"""What a client changes while traffic runs: pause, resume, update; of profiles and of single streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._errors import STLArgumentError, STLError
from ..streams._multiplier import parse_multiplier
from ..streams._stream import STLStream
from ._connection import Connection
from ._places import PortProfileID, Ports, place
from ._port import PortProfile
from ._traffic import Traffic


class Changes:
    """Pause, resume, update, and what a profile would send."""

    def __init__(self, connection: Connection, traffic: Traffic) -> None:
        self._connection = connection
        self._traffic = traffic

    def pause(self, ports: Ports = None) -> None:
        """Hold the traffic of ports; without ``ports`` of all of ours that send.

        All of their streams must be continuous, and the run without a duration.
        """
        self._change("pause_traffic", self._active(ports, "transmitting"), "PAUSE")

    def resume(self, ports: Ports = None) -> None:
        """Let paused traffic go on; without ``ports`` that of all of ours that are paused."""
        self._change("resume_traffic", self._active(ports, "paused"), "TX")

    def update(
        self, ports: Ports = None, mult: str | float = "1", total: bool = False, force: bool = False
    ) -> None:
        """Change the rate of traffic that runs; without ``ports`` of all of ours that are active.

        ``mult`` is as for ``start``, and may end in + or - to add to the rate or take from it
        ("5kpps+"). With ``total`` the ports share it. ``force`` permits more than the line rate.
        """
        chosen = self._active(ports, "active")
        multiplier = parse_multiplier(mult, divide_count=len(chosen) if total else 1, allow_update=True)
        self._change("update_traffic", chosen, None, mul=multiplier, force=force)

    def pause_streams(self, port: int | str | PortProfileID, stream_ids: Any) -> None:
        """Hold single streams of a port that sends, by number. They must be continuous."""
        self._change_streams("pause_streams", port, stream_ids)

    def resume_streams(self, port: int | str | PortProfileID, stream_ids: Any) -> None:
        """Let streams go on that were held with ``pause_streams``, or started paused."""
        self._change_streams("resume_streams", port, stream_ids)

    def update_streams(
        self,
        port: int | str | PortProfileID,
        mult: str | float = "1",
        force: bool = False,
        stream_ids: Any = None,
    ) -> None:
        """Change the rate of single streams of a port that sends; ``mult`` is as for ``start``.

        A later ``update`` of the port starts from the rates that the streams have then.
        """
        self._change_streams("update_streams", port, stream_ids, mul=parse_multiplier(mult), force=force)

    def validate(self, ports: Ports = None) -> dict[int | str, dict[str, Any]]:
        """What the streams of ports would send, without sending it; without ``ports`` of all of ours.

        For each port (a profile with a name is "0.name"): ``rate`` is the highest rate (``max_``)
        and that of latency streams, which no multiplier changes (``min_``), in packets and bits a
        second (``bps_l1`` with preamble and gap) and in percent of the line rate (``line_util``).
        ``graph`` is how the rate changes: ``events`` of (``time_usec``, ``diff_pps``,
        ``diff_bps_l1``, ``diff_bps_l2``, ``stream_id``), and ``expected_duration`` in microseconds,
        -1 is forever. Raises ``STLError`` that says what is wrong with the streams.
        """
        chosen = self._connection.places_of(
            ports, lambda: self._connection.our_places(lambda profile: profile.is_loaded)
        )
        results = self._connection.each_place("validate", chosen)
        shown = [one.port_id if one == place(one.port_id) else str(one) for one in chosen]
        return dict(zip(shown, results, strict=True))

    def _active(self, ports: Ports, state: str) -> list[PortProfileID]:
        """The profiles that ``ports`` names, or all of a state. Raises ``STLError`` when there is none."""
        # "0.*" is about those that run, not about all that have streams.
        chosen = self._connection.places_of(ports, lambda: self._traffic.get_profiles_with_state(state))
        if any("*" in str(item) for item in _listed(ports)):
            chosen = [one for one in chosen if self._connection.profile(one).is_active]
        if not chosen:
            raise STLError(f"none of our ports is {state}: call start() first")
        return chosen

    def _change(self, method: str, chosen: list[PortProfileID], state: str | None, **params: Any) -> None:
        self._connection.each_place(method, chosen, **params)
        # The events of this change must not come after those of the next.
        self._connection.session().drain_events()
        if state is not None:
            self._traffic.mark([one for one in chosen if self._connection.profile(one).is_active], state)

    def _change_streams(
        self, method: str, port: int | str | PortProfileID, stream_ids: Any, **params: Any
    ) -> None:
        chosen = self._connection.places_of([port], self._traffic.default_places)
        if len(chosen) != 1:
            raise STLArgumentError("port", str(port), "one profile of one port")
        (one,) = chosen
        items = stream_ids if isinstance(stream_ids, (list, tuple, set, range)) else [stream_ids]
        numbers = [item.id if isinstance(item, STLStream) else item for item in items]
        self._check_streams(self._connection.profile(one), numbers)
        self._change(method, chosen, None, stream_ids=numbers, **params)

    def _check_streams(self, profile: PortProfile, numbers: list[Any]) -> None:
        known = ", ".join(str(number) for number in sorted(profile.streams)) or "none"
        unknown = [number for number in numbers if isinstance(number, bool) or number not in profile.streams]
        if unknown or not numbers:
            shown = unknown[0] if unknown else numbers
            raise STLArgumentError("stream_ids", shown, f"numbers of streams, there are: {known}")


def _listed(ports: Ports) -> list[Any]:
    return list(ports) if isinstance(ports, Iterable) and not isinstance(ports, str) else [ports]
