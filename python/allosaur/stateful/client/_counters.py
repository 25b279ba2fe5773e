"""What a stateful client reads of traffic: counters of profiles and template groups, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..._errors import STLError
from ...client._places import DEFAULT_PROFILE, Ports
from ...client._statistics import Statistics
from ...stats import FlowOutcomes, FlowRates, StatefulStats, TrafficStats
from ._connection import Pids, StatefulConnection
from ._counter_tables import DynamicBook, TrafficBook, errors_in
from ._latency import Latency
from ._session import StatefulSession


class Counters:
    """Statistics. The server's counters only grow: clearing is this client's view."""

    def __init__(self, connection: StatefulConnection, statistics: Statistics, latency: Latency) -> None:
        self._connection = connection
        self._statistics = statistics
        self._latency = latency
        self.forget()

    def begin(self, session: StatefulSession) -> None:
        """A session begins: count the sum of all profiles from here; each counts from its start."""
        call, known = session.rpc.call, session.supported_commands
        self._book, self._dynamic = TrafficBook(call), DynamicBook(call)
        # Servers of TRex 2.x have one profile, and no sums.
        if "get_total_counter_values" in known:
            self._book.clear(DEFAULT_PROFILE, True)
        if "get_total_dynamic_counter_values" in known:
            self._dynamic.clear(DEFAULT_PROFILE, True)

    def forget(self) -> None:
        """Count from what the server counts, and read again what counters there are."""
        self._book, self._dynamic = TrafficBook(self._connection.call), DynamicBook(self._connection.call)

    def count_since_server_start(self) -> None:
        """Count from the server's start, as its own counters do, and no longer from ``connect()``."""
        self._statistics.count_since_server_start()
        self.forget()

    def get_stats(
        self,
        ports: Ports = None,
        sync_now: bool = True,
        skip_zero: bool = True,
        pid_input: str = DEFAULT_PROFILE,
        is_sum: bool = False,
        *,
        only_given: bool = False,
    ) -> StatefulStats:
        """Counters and rates: keys are port numbers, "total", "global", "traffic", "latency".

        Ports and the sum of all profiles count from ``connect()``, or the last ``clear_stats()``; a profile
        from its start. All ports of the server are there, unless ``only_given`` says those of ``ports``.
        "traffic" is as ``get_traffic_stats`` gives it, "latency" as ``get_latency_stats``; the others are
        as in the stateless client: bytes with FCS, rates in bits or packets a second.
        """
        stats: dict[Any, Any] = self._statistics.get_stats(ports, sync_now, only_given=only_given)
        stats.pop("flow_stats", None)
        stats["traffic"] = self.get_traffic_stats(skip_zero, pid_input, is_sum)
        stats["latency"] = self._latency.get_latency_stats(skip_zero)
        return cast("StatefulStats", stats)

    def clear_stats(
        self,
        ports: Ports = None,
        clear_global: bool = True,
        clear_xstats: bool = True,
        clear_traffic: bool = True,
        pid_input: Pids = DEFAULT_PROFILE,
        *,
        only_given: bool = False,
    ) -> None:
        """Count from here: all ports, the sum of all profiles, and with ``clear_traffic`` those named.

        With ``only_given`` other ports than those of ``ports`` go on.
        """
        for profile_id in self._connection.pids(pid_input):
            if clear_traffic:
                self.clear_traffic_stats(profile_id)
        self.clear_traffic_stats(is_sum=True)
        self._statistics.clear_stats(ports, clear_global, clear_xstats=clear_xstats, only_given=only_given)

    def get_traffic_stats(
        self, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE, is_sum: bool = False
    ) -> TrafficStats:
        """The counters of a profile, or with ``is_sum`` of all: "client" and "server", each by name.

        Those that are zero are left out, unless ``skip_zero`` is False; then the lines that structure
        the table are among them, too.
        """
        return self._book.read(self._known(pid_input, is_sum), is_sum, skip_zero)

    def clear_traffic_stats(self, pid_input: str = DEFAULT_PROFILE, is_sum: bool = False) -> None:
        """Count a profile, or with ``is_sum`` the sum of all, from here."""
        self._book.clear(self._known(pid_input, is_sum), is_sum)

    def is_traffic_stats_error(
        self, stats: Mapping[str, Mapping[str, Any]]
    ) -> tuple[bool, dict[str, dict[str, str]]]:
        """Whether counters of ``get_traffic_stats`` are errors; and which, by side, with what they mean."""
        return errors_in(stats, self._book.errors(DEFAULT_PROFILE))

    def get_dynamic_traffic_stats(
        self, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE, is_sum: bool = False
    ) -> dict[str, Any]:
        """As ``get_traffic_stats``, of counters that are not always there, such as those of tunnels."""
        return self._dynamic.read(self._known(pid_input, is_sum), is_sum, skip_zero)

    def clear_dynamic_traffic_stats(self, pid_input: str | None = None, clear_all: bool = False) -> None:
        """Count the sum, and a profile or all that was read, from here."""
        if clear_all:
            self._dynamic.clear_all()
        if pid_input:
            self._dynamic.clear(self._known(pid_input), False)
        self._dynamic.clear(DEFAULT_PROFILE, True)

    def is_dynamic_traffic_stats_error(
        self,
        stats: Mapping[str, Mapping[str, Any]],
        pid_input: str = DEFAULT_PROFILE,
        is_sum: bool = False,
    ) -> tuple[bool, dict[str, dict[str, str]]]:
        """As ``is_traffic_stats_error``, of ``get_dynamic_traffic_stats`` with the same arguments."""
        return errors_in(stats, self._dynamic.errors(pid_input, is_sum))

    def get_tg_names(self, pid_input: str = DEFAULT_PROFILE) -> list[str]:
        """The names of the template groups of a profile."""
        return self._book.groups(self._known(pid_input))

    def get_traffic_tg_stats(
        self, tg_names: str | Sequence[str], skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE
    ) -> dict[str, TrafficStats]:
        """The counters of template groups: for each name as ``get_traffic_stats``.

        They are since the start of the profile. Raises ``ASTFErrorBadTG`` for unknown names.
        """
        names = [tg_names] if isinstance(tg_names, str) else list(tg_names)
        return self._book.read_groups(self._known(pid_input), names, skip_zero)

    def get_flow_rates(self, pid_input: str = DEFAULT_PROFILE) -> FlowRates:
        """What a profile was asked for against what it does; TRex's servers do not know that.

        ``offered_cps``, ``begun_cps`` and ``achieved_cps`` are connections a second that are asked for,
        that begin, and that are established; ``begun``, ``established`` and ``missed`` how many since the
        start: missed are those that were due and not opened in time. ``duration_s`` is since the start.
        ``hosts`` is how many emulated clients were ready when it began, where its clients are emulated.
        Raises ``STLError`` when the server does not count them.
        """
        if "get_flow_rates" not in self._connection.session().supported_commands:
            raise STLError("the server does not count missed flows: only Allosaur's servers do")
        rates: FlowRates = self._connection.call("get_flow_rates", profile_id=self._known(pid_input))
        return rates

    def get_flow_outcomes(self, pid_input: str = DEFAULT_PROFILE) -> FlowOutcomes:
        """How the flows of a profile ended, since its start; TRex's servers do not know that.

        "client" and "server" count the ends of flows that are ours, each once: ``completed`` (its program
        came to its end, and all that it sent was acknowledged), ``reset`` (by the peer), ``closed_early``
        (the peer closed while the program waited for data, or had some to deliver), ``timed_out`` (the
        peer was silent), ``refused``, ``cut_off`` (by the end of the test), ``aborted`` (given up here:
        no memory, no room). ``unanswered`` are flows that waited for data, and ended without any.
        ``http_2xx`` and so on are what clients got for requests of HTTP/1, by status; ``http_other`` began
        with no status line. "groups" has the same of each template group, by name. "times" of clients'
        flows are ``connect``, ``handshake`` (of TLS), ``first_byte`` and ``program`` (to its end, where it
        completed), of requests of HTTP ``response_begin`` and ``response`` (to its last byte): each with
        ``count``, ``min_us``, ``average_us``, ``max_us`` and ``p50_us`` to ``p99_9_us``. "applications" is a
        list of what TLS and HTTP counted, such as handshakes by kind and responses by status, and what went
        wrong by its name.

        Raises ``STLError`` when the server does not tell.
        """
        if "get_flow_outcomes" not in self._connection.session().supported_commands:
            raise STLError("the server does not tell how flows ended: only Allosaur's servers do")
        outcomes: FlowOutcomes = self._connection.call("get_flow_outcomes", profile_id=self._known(pid_input))
        return outcomes

    def _known(self, pid_input: str, is_sum: bool = False) -> str:
        """One profile that is there. Raises ``STLError``."""
        if is_sum or pid_input == DEFAULT_PROFILE:
            return pid_input
        (profile_id,) = self._connection.pids([pid_input])
        return profile_id
