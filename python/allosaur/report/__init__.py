"""What a run did over time, and how to show it: counters, samples of them, and the HTML report.

Nothing here talks to a server: a sampler is given the function that reads the counters.
"""

from allosaur.report._counters import PortCounters, PortRates, Sampler, SizeClasses, total
from allosaur.report._fields import difference
from allosaur.report._flow_counters import (
    SIDES,
    FlowCounters,
    FlowRates,
    FlowSampler,
    SideCounters,
    SideRates,
)
from allosaur.report._flow_outcomes import FAILED, HTTP_CLASSES, TIMES, Outcomes, SideOutcomes, was_timed
from allosaur.report._flow_view import FlowTraffic, flow_headlines, flow_hints, flow_sections
from allosaur.report._limit_view import Limit, LimitCase, LimitTrial, limit_sections
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
from allosaur.report._page import write_report
from allosaur.report._readings import Readings
from allosaur.report._scale import Axis, linear_axis, named_axis
from allosaur.report._stream_view import StreamTraffic, stream_headlines, stream_sections
from allosaur.report._streams import Direction, StreamCounters, StreamLatency, lost_total

__all__ = [
    "FAILED",
    "HTTP_CLASSES",
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
    "FlowTraffic",
    "Headline",
    "Limit",
    "LimitCase",
    "LimitTrial",
    "Outcomes",
    "Part",
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
    "StreamTraffic",
    "Table",
    "difference",
    "flow_headlines",
    "flow_hints",
    "flow_sections",
    "limit_sections",
    "linear_axis",
    "lost_total",
    "named_axis",
    "number",
    "stream_headlines",
    "stream_sections",
    "text",
    "total",
    "was_timed",
    "write_report",
]
