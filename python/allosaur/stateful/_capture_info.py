"""Captures as parts of a profile: what plays, how often, and what is changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ._addresses import ASTFIPGen
from ._arguments import U16_MAX, U32_MAX, flag, number, of_kind, whole
from ._association import ASTFAssociation, ASTFAssociationRule
from ._capture_place import find_capture
from ._captured import flow_of
from ._commands import ASTFCmdDelay, ASTFCmdDelayRnd
from ._errors import ASTFError, ASTFErrorBadParamCombination
from ._replace import Pattern, Values
from ._templates import check_group
from ._tunables import ASTFGlobalInfoPerTemplate

_CPS_MAX = 1e9


class ASTFCapInfo:
    """A capture (pcap, pcapng) of one flow, as a template of a profile.

    ``file`` is looked for as ``ASTFProgram`` does. ``cps`` flows begin each second (1). ``l7_percent`` in
    place of ``cps`` for all captures of a profile, 100 in all: then the captures have ``cps`` by their
    share of all payload, as in TRex. ``port`` or ``assoc`` say how the server is found, else the port
    of the capture. ``ip_gen`` are other pools than the profile's, ``c_glob_info`` and ``s_glob_info``
    tunables of the sides, ``limit`` and ``cont`` as in ``ASTFTCPClientTemplate``, ``tg_name`` the
    template group, ``s_delay`` and ``udp_mtu`` as in ``ASTFProgram``.

    ``headers`` and ``patterns`` change fields of the application on the client's side:
    ``headers={"Host": "example.com", "User-Agent": ["one", "two"]}``; see ``ASTFProgram.replace_header``
    and ``replace_pattern``. Raises ``ASTFError``.
    """

    def __init__(
        self,
        file: str | Path | None = None,
        cps: float | None = None,
        assoc: ASTFAssociation | ASTFAssociationRule | None = None,
        ip_gen: ASTFIPGen | None = None,
        port: int | None = None,
        l7_percent: float | None = None,
        s_glob_info: ASTFGlobalInfoPerTemplate | None = None,
        c_glob_info: ASTFGlobalInfoPerTemplate | None = None,
        limit: int | None = None,
        cont: bool | None = None,
        tg_name: str | None = None,
        s_delay: ASTFCmdDelay | ASTFCmdDelayRnd | None = None,
        udp_mtu: int | None = None,
        headers: Mapping[str, Values] | None = None,
        patterns: Mapping[Pattern, Values] | None = None,
    ) -> None:
        where = "ASTFCapInfo"
        of_kind(where, "file", file, (str, Path))
        assert file is not None  # of_kind refuses None
        for name, value, kind in (
            ("ip_gen", ip_gen, ASTFIPGen),
            ("c_glob_info", c_glob_info, ASTFGlobalInfoPerTemplate),
            ("s_glob_info", s_glob_info, ASTFGlobalInfoPerTemplate),
        ):
            if value is not None:
                of_kind(where, name, value, kind)
        if assoc is not None:
            of_kind(where, "assoc", assoc, (ASTFAssociation, ASTFAssociationRule))
        if s_delay is not None:
            of_kind(where, "s_delay", s_delay, (ASTFCmdDelay, ASTFCmdDelayRnd))
        for first, second, pair in (
            (cps, l7_percent, "cps and l7_percent"),
            (assoc, port, "assoc and port"),
        ):
            if first is not None and second is not None:
                raise ASTFErrorBadParamCombination(f"{where}: {pair} exclude each other, give one of them")
        check_group(where, tg_name)
        self.file = file
        self.l7_percent = None if l7_percent is None else number(where, "l7_percent", l7_percent, 0, 100)
        self.cps = (
            None if l7_percent is not None else number(where, "cps", 1 if cps is None else cps, 0, _CPS_MAX)
        )
        if port is not None:
            assoc = ASTFAssociationRule(port=whole(where, "port", port, 1, U16_MAX))
        self.assoc = ASTFAssociation(assoc) if isinstance(assoc, ASTFAssociationRule) else assoc
        self.ip_gen = ip_gen
        self.c_glob_info = c_glob_info
        self.s_glob_info = s_glob_info
        self.limit = None if limit is None else whole(where, "limit", limit, 0, U32_MAX)
        self.cont = None if cont is None else flag(where, "cont", cont)
        self.tg_name = tg_name
        self.s_delay = s_delay
        self.udp_mtu = udp_mtu
        self.headers = dict(headers or {})
        self.patterns = dict(patterns or {})


class ASTFTCPInfo:
    """What a capture says of its two ends, for tunables: port, windows, TCP's options.

    ``port`` is the server's. ``client_window`` and ``server_window`` are those of the first segments in
    bytes, ``client_options`` and ``server_options`` TCP's options there by name ("MSS", "WScale"). All
    are zero or empty for UDP. Raises ``ASTFError``.
    """

    def __init__(self, file: str | Path) -> None:
        flow = flow_of(find_capture(file))
        self.is_stream = flow.stream
        self.port = flow.server_port
        self.client_window, self.server_window = flow.client.window, flow.server.window
        self.client_options = dict(flow.client.options)
        self.server_options = dict(flow.server.options)

    def glob_info(self, side: str) -> ASTFGlobalInfoPerTemplate:
        """The tunables of a side, "c" or "s", as the capture has them: the MSS and the receive buffer."""
        if side not in ("c", "s") or not self.is_stream:
            raise ASTFError(f"ASTFTCPInfo: side is {side!r}, give 'c' or 's', of a capture of TCP")
        options = self.client_options if side == "c" else self.server_options
        window = self.client_window if side == "c" else self.server_window
        info = ASTFGlobalInfoPerTemplate()
        if "MSS" in options:
            info.tcp.mss = options["MSS"]
        # What a first segment offers is not scaled; a buffer has at least a KiB.
        info.tcp.rxbufsize = max(window, 1 << 10)
        return info
