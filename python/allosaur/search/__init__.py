"""The search for the highest load that a device carries: which trial comes next, and what was found.

Nothing here sends a packet or reads a clock: a search is given the function that makes a trial.
"""

from allosaur.search._binary import GUIDE_SHARE
from allosaur.search._bounds import Bounds, relevant_bounds
from allosaur.search._find import ALGORITHMS, find, time_left_s
from allosaur.search._plan import NDR, PDR, Goal, SearchPlan
from allosaur.search._trial import Journal, Measurer, Stopped, Trial

__all__ = [
    "ALGORITHMS",
    "GUIDE_SHARE",
    "NDR",
    "PDR",
    "Bounds",
    "Goal",
    "Journal",
    "Measurer",
    "SearchPlan",
    "Stopped",
    "Trial",
    "find",
    "relevant_bounds",
    "time_left_s",
]
