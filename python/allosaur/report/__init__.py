"""What a run did over time, and how to show it: counters, samples of them, and the HTML report.

Nothing here talks to a server: a sampler is given the function that reads the counters.
"""

from allosaur.report._counters import PortCounters, SizeClasses, difference, total
from allosaur.report._flow_counters import SIDES, FlowCounters, SideCounters
from allosaur.report._flow_outcomes import FAILED, HTTP_CLASSES, TIMES, Outcomes, SideOutcomes, was_timed
from allosaur.report._flow_report import FlowReport, flow_headlines, flow_sections, write_flow_report
from allosaur.report._flow_sampling import FlowRates, FlowSampler, SideRates
from allosaur.report._html import Report, write_report
from allosaur.report._limit_report import Limit, LimitCase, LimitReport, LimitTrial, write_limit_report
from allosaur.report._page import Check, Headline, Section
from allosaur.report._sampling import PortRates, Sampler
from allosaur.report._streams import Direction, StreamCounters, StreamLatency, lost_total

__all__ = [
    "FAILED",
    "HTTP_CLASSES",
    "SIDES",
    "TIMES",
    "Check",
    "Direction",
    "FlowCounters",
    "FlowRates",
    "FlowReport",
    "FlowSampler",
    "Headline",
    "Limit",
    "LimitCase",
    "LimitReport",
    "LimitTrial",
    "Outcomes",
    "PortCounters",
    "PortRates",
    "Report",
    "Sampler",
    "Section",
    "SideCounters",
    "SideOutcomes",
    "SideRates",
    "SizeClasses",
    "StreamCounters",
    "StreamLatency",
    "difference",
    "flow_headlines",
    "flow_sections",
    "lost_total",
    "total",
    "was_timed",
    "write_flow_report",
    "write_limit_report",
    "write_report",
]
