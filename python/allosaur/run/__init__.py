"""A run of traffic: kinds of traffic as loads, one driver for them, and what came of them.

A kind of traffic is a :class:`Load`, and what it did a :class:`Result`; `streams` and `flows` are such.
Sampling, interrupts, verdicts, thresholds, progress and documents are written here once, over any of them.
"""

from allosaur.run._drive import drive, drive_one
from allosaur.run._load import Load, Moment, Phase, Server
from allosaur.run._result import Ran, Result, Verdict
from allosaur.run._verdict import judge, judge_by

__all__ = [
    "Load",
    "Moment",
    "Phase",
    "Ran",
    "Result",
    "Server",
    "Verdict",
    "drive",
    "drive_one",
    "judge",
    "judge_by",
]
