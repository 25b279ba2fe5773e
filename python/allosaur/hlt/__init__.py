"""Streams by the names of TRex's high-level traffic API (HLTAPI); one noun a file.

``_values`` reads what callers give, ``_arguments`` is the table of all arguments, ``_headers`` makes the
packet, ``_changes`` the field engine program, ``_length`` the length of frames, ``_stream`` the streams. What
does not live here: the commands of that API to a server (``CTRexHltApi``), which are not there yet.
"""

from ._arguments import DEFAULTS
from ._stream import STLHltStream

__all__ = ["DEFAULTS", "STLHltStream"]
