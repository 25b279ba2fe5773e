"""Scenarios of ports as hosts and witnesses: captures, files that are sent, service mode, events."""

SCENARIOS = ()
