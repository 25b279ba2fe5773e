"""What a run did over time, and how to show it: counters, samples of them, and the HTML report.

Nothing here talks to a server: a sampler is given the function that reads the counters.
"""

from allosaur.report._counters import PortCounters, SizeClasses, difference, total
from allosaur.report._html import Check, Report, write_report
from allosaur.report._sampling import PortRates, Sample, Sampler

__all__ = [
    "Check",
    "PortCounters",
    "PortRates",
    "Report",
    "Sample",
    "Sampler",
    "SizeClasses",
    "difference",
    "total",
    "write_report",
]
