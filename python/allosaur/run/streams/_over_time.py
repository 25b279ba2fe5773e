"""What streams did over time: a chart for each direction, and one of what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from allosaur.report._counters import PortRates
from allosaur.report._model import Chart, Series
from allosaur.report._numbers import count, share, short
from allosaur.report._readings import whole
from allosaur.report._scale import Point
from allosaur.report._streams import Direction

CHARTS_MAX = 16
"""Charts of single directions. The tables have them all."""
_SAME_SHARE = 0.01
_LEFT_OUT_MAX = 0.3


def charts(
    rates: Mapping[int, Sequence[PortRates]], directions: Sequence[Direction], duration_s: float
) -> tuple[list[Chart], str]:
    """Return the charts of a run, and what to say below them: of many directions those that lost most."""
    chosen, note = list(directions), ""
    if len(chosen) > CHARTS_MAX:
        chosen = sorted(chosen, key=lambda one: -(one.lost_packets or 0))[:CHARTS_MAX]
        chosen.sort(key=lambda one: one.port)
        note = f"{CHARTS_MAX} of {len(directions)} ports are drawn: those of which most was lost."
    shown = [_rate_chart(one, rates, duration_s) for one in chosen]
    lost = _lost_chart(chosen, rates, duration_s)
    return [*shown, *([lost] if lost else [])], note


def lost_so_far(sent: Sequence[int], received: Sequence[int]) -> list[int]:
    """Return how many packets were lost for good at each reading, from what was counted until then.

    Packets under way are not lost: at no time can more have been lost than are missing at any later one.
    """
    missing = [max(a - b, 0) for a, b in zip(sent, received, strict=True)]
    return list(accumulate(reversed(missing), min))[::-1]


def _rate_chart(one: Direction, rates: Mapping[int, Sequence[PortRates]], duration_s: float) -> Chart:
    receivers = _receivers(one, rates)
    sent = [(point.time_s, point.tx_pps) for point in whole(rates.get(one.port, ()), duration_s)]
    received = _summed([whole(rates[port], duration_s) for port in receivers])
    title = f"From port {one.port}"
    series = [Series("sent", [*sent], is_filled=True)]
    if receivers:
        title += f" to port {' and '.join(map(str, receivers))}"
        series.append(Series("received", received))
    # As the headline has it: of points that are whole intervals, the average is another one.
    average = one.sent_packets / duration_s if duration_s else 0.0
    sentence = f"{short(average, 'pps')} were sent on average"
    if one.lost_packets is not None:
        lost = one.lost_packets
        sentence += (
            f"; {count(lost)} of {count(one.sent_packets)} packets were lost"
            if lost
            else "; nothing was lost"
        )
    return Chart(
        *(title, "packets per second", series),
        sentence=f"{sentence}.",
        name=f"rate-{one.port}",
        end_s=duration_s,
    )


def _lost_chart(
    directions: Sequence[Direction], rates: Mapping[int, Sequence[PortRates]], duration_s: float
) -> Chart | None:
    """Return when packets were lost, of the directions whose loss the counters of ports show rightly."""
    series = [
        Series(f"from port {one.port}", points) for one in directions if (points := _lost_points(one, rates))
    ]
    if not series:
        return None
    lost = sum(one.lost_packets or 0 for one in directions)
    sent = sum(one.sent_packets for one in directions if one.lost_packets is not None)
    sentence = f"{count(lost)} packets were lost in all, {share(lost, sent)} of those sent."
    return Chart(
        *("Lost so far", "packets", series),
        sentence=sentence,
        name="lost",
        end_s=duration_s,
        is_whole=True,
    )


def _lost_points(one: Direction, rates: Mapping[int, Sequence[PortRates]]) -> list[Point]:
    receivers = _receivers(one, rates)
    if not one.lost_packets or not receivers:
        return []
    series = rates.get(one.port, ())
    times = [point.time_s for point in series]
    if any([point.time_s for point in rates[port]] != times for port in receivers):
        return []
    spans = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    sent = _counted([point.tx_pps for point in series], spans)
    by_port = [_counted([point.rx_pps for point in rates[port]], spans) for port in receivers]
    received = [sum(values) for values in zip(*by_port, strict=True)]
    lost = lost_so_far(sent, received)
    if not lost:
        return []
    # The intervals at the ends may be left out, and with them as large a share of what was lost.
    left_out = max(1 - sent[-1] / max(one.sent_packets, 1), 0.0)
    more = lost[-1] - one.lost_packets
    low, high = -(left_out + _SAME_SHARE) * one.lost_packets - 1, _SAME_SHARE * one.lost_packets + 1
    # Packets of others, and of other directions, hide what was lost: then this line would be wrong.
    is_right = left_out < _LEFT_OUT_MAX and low <= more <= high
    return [(0.0, 0.0), *zip(times, map(float, lost), strict=True)] if is_right else []


def _receivers(one: Direction, rates: Mapping[int, Sequence[PortRates]]) -> list[int]:
    return sorted(port for port in one.received_by_port if port in rates)


def _counted(rates: Sequence[float], spans: Sequence[float]) -> list[int]:
    return [
        round(value) for value in accumulate(rate * span for rate, span in zip(rates, spans, strict=True))
    ]


def _summed(series: Sequence[Sequence[PortRates]]) -> list[Point]:
    if not series:
        return []
    return [
        (points[0].time_s, sum(point.rx_pps for point in points)) for points in zip(*series, strict=False)
    ]
