"""Templates: two programs, who runs them, and how often they begin."""

from __future__ import annotations

from typing import Any

from ._addresses import ASTFIPGen
from ._arguments import U16_MAX, U32_MAX, flag, number, of_kind, whole
from ._association import ASTFAssociation, ASTFAssociationRule
from ._commands import ASTFCmdExecTemplate
from ._errors import ASTFError, ASTFErrorBadParamCombination, ASTFErrorBadTG
from ._http import HTTPProgram, check_side
from ._program import ASTFProgram
from ._replace import Pattern, Values
from ._tls import TLS
from ._tunables import ASTFGlobalInfoPerTemplate

_GROUP_CHARS_MAX = 20
_CPS_MAX = 1e9
_CORE_MAX = 255


class ASTFCluster:
    """Nothing yet: existing profiles give it."""

    def to_json(self) -> dict[str, Any]:
        """The words of the protocol."""
        return {}


class ASTFTCPOptions:
    """TCP options as a list of (name, value); existing profiles give it."""

    def __init__(self, opts: list[tuple[str, Any]] | None = None) -> None:
        self.fields: dict[str, Any] = dict(opts or [])

    @property
    def mss(self) -> Any:
        """The option MSS, None without."""
        return self.fields.get("MSS")

    @mss.setter
    def mss(self, value: int) -> None:
        self.fields["MSS"] = value

    def to_json(self) -> dict[str, Any]:
        """The options by name."""
        return dict(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ASTFTCPOptions) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]


class ASTFTCPClientTemplate:
    """The client's side: its program, its pools, and how many flows it opens.

    ``cps`` flows begin each second (times the multiplier of the start) to ``port``. ``limit`` is how many
    begin in all; with ``cont`` a flow that ends makes room for another, so that ``limit`` are open at a
    time. ``core_base`` is the core to begin with when ``limit`` is less than the cores. TCP and UDP
    alike. With ``tls`` the program runs over TLS; an ``HTTPClient`` may stand in its place. Raises
    ``ASTFError``.
    """

    def __init__(
        self,
        ip_gen: ASTFIPGen,
        cluster: ASTFCluster | None = None,
        program: ASTFProgram | HTTPProgram | None = None,
        port: int = 80,
        cps: float | None = 1,
        glob_info: ASTFGlobalInfoPerTemplate | None = None,
        limit: int | None = None,
        cont: bool | None = None,
        core_base: int | None = None,
        tls: TLS | None = None,
    ) -> None:
        where = "ASTFTCPClientTemplate"
        of_kind(where, "ip_gen", ip_gen, ASTFIPGen)
        of_kind(where, "program", program, (ASTFProgram, HTTPProgram))
        check_side(where, program, "client")
        if cluster is not None:
            of_kind(where, "cluster", cluster, ASTFCluster)
        if glob_info is not None:
            of_kind(where, "glob_info", glob_info, ASTFGlobalInfoPerTemplate)
        assert program is not None  # of_kind refuses None
        self.ip_gen = ip_gen
        self.cluster = cluster or ASTFCluster()
        self.program = program
        self.port = whole(where, "port", port, 1, U16_MAX)
        self.cps = number(where, "cps", cps, 0, _CPS_MAX) if cps else None
        self.glob_info = glob_info
        self.limit = whole(where, "limit", limit, 0, U32_MAX) if limit is not None else 0
        self.cont = flag(where, "cont", cont) if cont is not None else False
        self.core_base = whole(where, "core_base", core_base, 0, _CORE_MAX) if core_base is not None else None
        self.tls = _checked_tls(where, tls, "client", program)

    def is_stream(self) -> bool:
        """Whether it is for TCP."""
        return self.program.is_stream()

    def to_json(
        self, program_index: int | None = None, ip_gen: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The ``client_template`` of the protocol, with the numbers that the profile gave."""
        fields: dict[str, Any] = {
            "program_index": program_index,
            "ip_gen": ip_gen,
            "cluster": self.cluster.to_json(),
            "port": self.port,
        }
        if self.cps:
            fields["cps"] = self.cps
        if self.limit:
            fields["limit"] = self.limit
            if self.cont:
                fields["cont"] = True
            if self.core_base:
                fields["core_base"] = self.core_base
        if self.glob_info is not None:
            fields["glob_info"] = self.glob_info.to_json()
        if self.tls is not None:
            fields["tls"] = self.tls.to_json()
        return fields


class ASTFTCPServerTemplate:
    """The server's side: its program, and by which rules it knows its flows. TCP and UDP alike.

    With ``tls`` the program runs over TLS; an ``HTTPServer`` may stand in its place. Raises ``ASTFError``.
    """

    def __init__(
        self,
        program: ASTFProgram | HTTPProgram | None = None,
        assoc: ASTFAssociation | ASTFAssociationRule | None = None,
        glob_info: ASTFGlobalInfoPerTemplate | None = None,
        tls: TLS | None = None,
    ) -> None:
        where = "ASTFTCPServerTemplate"
        of_kind(where, "program", program, (ASTFProgram, HTTPProgram))
        check_side(where, program, "server")
        given = ASTFAssociation() if assoc is None else assoc
        of_kind(where, "assoc", given, (ASTFAssociation, ASTFAssociationRule))
        if glob_info is not None:
            of_kind(where, "glob_info", glob_info, ASTFGlobalInfoPerTemplate)
        assert program is not None  # of_kind refuses None
        self.program = program
        self.assoc = ASTFAssociation(given) if isinstance(given, ASTFAssociationRule) else given
        self.glob_info = glob_info
        self.tls = _checked_tls(where, tls, "server", program)
        if tls is not None and any(rule.l7_map for rule in self.assoc.rules):
            raise ASTFErrorBadParamCombination(
                f"{where}: tls stands beside an l7_map, which would look at the handshake: "
                f"tell servers apart by port or address"
            )

    def is_stream(self) -> bool:
        """Whether it is for TCP."""
        return self.program.is_stream()

    def to_json(self, program_index: int | None = None) -> dict[str, Any]:
        """The ``server_template`` of the protocol, with the number that the profile gave."""
        fields: dict[str, Any] = {"program_index": program_index, "assoc": self.assoc.to_json()}
        if self.glob_info is not None:
            fields["glob_info"] = self.glob_info.to_json()
        if self.tls is not None:
            fields["tls"] = self.tls.to_json()
        return fields


class ASTFTemplate:
    """One kind of flow: the client's template and the server's.

    Templates with the same ``tg_name`` (up to 20 characters) are counted together, as a template group.
    Raises ``ASTFError``.
    """

    def __init__(
        self,
        client_template: ASTFTCPClientTemplate | None = None,
        server_template: ASTFTCPServerTemplate | None = None,
        tg_name: str | None = None,
    ) -> None:
        of_kind("ASTFTemplate", "client_template", client_template, ASTFTCPClientTemplate)
        of_kind("ASTFTemplate", "server_template", server_template, ASTFTCPServerTemplate)
        assert client_template is not None and server_template is not None  # of_kind refuses None
        if client_template.is_stream() != server_template.is_stream():
            words = ["TCP" if side.is_stream() else "UDP" for side in (client_template, server_template)]
            raise ASTFError(
                f"ASTFTemplate: the client's program is for {words[0]} and the server's for {words[1]}: "
                f"give both the same stream="
            )
        check_group("ASTFTemplate", tg_name)
        self.client_template = client_template
        self.server_template = server_template
        self.tg_name = tg_name

    def replace_header(self, name: str, values: Values, distribution: str = "rand", side: str = "c") -> int:
        """Change a header that one ``side`` sends, and what the other waits for.

        See ``ASTFProgram.replace_header``.
        """
        sender, peer = self._sides(side)
        return sender.replace_header(name, values, distribution, peer)

    def replace_pattern(
        self,
        pattern: Pattern,
        values: Values,
        distribution: str = "rand",
        pad: bytes | str | None = None,
        side: str = "c",
    ) -> int:
        """Change what a pattern matches in what one ``side`` sends, and what the other waits for.

        See ``ASTFProgram.replace_pattern``.
        """
        sender, peer = self._sides(side)
        return sender.replace_pattern(pattern, values, distribution, pad, peer)

    def _sides(self, side: str) -> tuple[ASTFProgram, ASTFProgram]:
        if side not in ("c", "s"):
            raise ASTFError(f"ASTFTemplate: side is {side!r}, give 'c' for the client or 's' for the server")
        both = self.client_template.program, self.server_template.program
        sender, peer = both if side == "c" else (both[1], both[0])
        if isinstance(sender, HTTPProgram) or isinstance(peer, HTTPProgram):
            raise ASTFError(
                "ASTFTemplate: there is no program to change where a side speaks HTTP: "
                "write what is said into its requests and routes"
            )
        return sender, peer


def _checked_tls(where: str, tls: Any, side: str, program: ASTFProgram | HTTPProgram) -> TLS | None:
    """Refuse TLS that is not for that side, or not for this program. Raises ``ASTFError``."""
    if tls is None:
        return None
    of_kind(where, "tls", tls, TLS)
    given: TLS = tls
    given.check(side)
    if not program.is_stream():
        raise ASTFErrorBadParamCombination(f"{where}: tls is for TCP and the program for UDP: leave it out")
    if any(isinstance(command, ASTFCmdExecTemplate) for command in program.commands):
        raise ASTFErrorBadParamCombination(
            f"{where}: the program opens flows of other templates (exec_template), as none over TLS can: "
            f"leave out tls, or exec_template"
        )
    return given


def check_group(where: str, tg_name: Any) -> None:
    """Refuse what is no name of a template group. Raises ``ASTFErrorBadTG``."""
    if tg_name is None:
        return
    if not isinstance(tg_name, str) or not 1 <= len(tg_name) <= _GROUP_CHARS_MAX:
        raise ASTFErrorBadTG(f"{where}: tg_name is {tg_name!r}, give 1 to {_GROUP_CHARS_MAX} characters")
