"""What a run did over time, and how to show it: counters, samples of them, and the HTML report.

Nothing here talks to a server: a sampler is given the function that reads the counters.
"""

from allosaur.report._counters import PortCounters, PortRates, Sampler, SizeClasses, port_rates, total
from allosaur.report._fields import difference
from allosaur.report._flow_counters import (
    SIDES,
    FlowCounters,
    FlowRates,
    FlowSampler,
    SideCounters,
    SideRates,
    flow_rates,
)
from allosaur.report._flow_outcomes import (
    FAILED,
    FAILED_LABELS,
    HTTP_CLASSES,
    TIMES,
    Outcomes,
    SideOutcomes,
    was_timed,
)
from allosaur.report._latency import (
    LATENCY_COLUMNS,
    LatencyRow,
    latency_headline,
    latency_section,
    times_table,
)
from allosaur.report._model import (
    Chart,
    Check,
    Column,
    Headline,
    Part,
    Report,
    Section,
    Series,
    Table,
    number,
    text,
)
from allosaur.report._numbers import NOT_COUNTED, count, microseconds, share, short
from allosaur.report._page import write_report
from allosaur.report._readings import Readings, whole
from allosaur.report._scale import Axis, Point, linear_axis, named_axis
from allosaur.report._streams import Direction, StreamCounters, StreamLatency, known_sum

__all__ = [
    "FAILED",
    "FAILED_LABELS",
    "HTTP_CLASSES",
    "LATENCY_COLUMNS",
    "NOT_COUNTED",
    "SIDES",
    "TIMES",
    "Axis",
    "Chart",
    "Check",
    "Column",
    "Direction",
    "FlowCounters",
    "FlowRates",
    "FlowSampler",
    "Headline",
    "LatencyRow",
    "Outcomes",
    "Part",
    "Point",
    "PortCounters",
    "PortRates",
    "Readings",
    "Report",
    "Sampler",
    "Section",
    "Series",
    "SideCounters",
    "SideOutcomes",
    "SideRates",
    "SizeClasses",
    "StreamCounters",
    "StreamLatency",
    "Table",
    "count",
    "difference",
    "flow_rates",
    "known_sum",
    "latency_headline",
    "latency_section",
    "linear_axis",
    "microseconds",
    "named_axis",
    "number",
    "port_rates",
    "share",
    "short",
    "text",
    "times_table",
    "total",
    "was_timed",
    "whole",
    "write_report",
]
