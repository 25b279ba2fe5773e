"""Streams by the names of TRex's high-level traffic API (HLTAPI).

``_values`` reads what callers give, ``_arguments`` is the table of all arguments, ``_headers`` makes the
packet, ``_changes`` the field engine program, ``_length`` the length of frames, ``_stream`` the streams.
"""

from ._arguments import DEFAULTS
from ._stream import STLHltStream

__all__ = ["DEFAULTS", "STLHltStream"]
