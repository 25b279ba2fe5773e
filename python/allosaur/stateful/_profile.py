"""A stateful profile: templates that are loaded together, and its form on the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._errors import STLProfileError
from ..streams._loader import read_json
from ._addresses import ASTFIPGen, Pools
from ._arguments import listed, of_kind
from ._association import ASTFAssociation, ASTFAssociationRule
from ._buffers import Buffers
from ._capture_info import ASTFCapInfo
from ._capture_place import find_capture
from ._captured import flow_of
from ._commands import ASTFCmdDelay, ASTFCmdDelayRnd, ASTFCmdKeepaliveMsg
from ._errors import ASTFError, ASTFErrorBadParamCombination
from ._http import HTTPProgram
from ._loader import running
from ._program import ASTFProgram
from ._templates import ASTFTCPClientTemplate, ASTFTCPServerTemplate, ASTFTemplate
from ._tunables import ASTFGlobalInfo

_PERCENT_TOLERANCE = 0.01


class ASTFProfile:
    """Templates (``templates``) and captures (``cap_list``): one or more of either.

    ``default_ip_gen`` are the pools of captures that have none of their own, ``default_c_glob_info`` and
    ``default_s_glob_info`` the tunables of all clients and of all servers. ``s_delay`` and ``udp_mtu`` are
    for captures that have none of their own. Raises ``ASTFError``.
    """

    def __init__(
        self,
        default_ip_gen: ASTFIPGen,
        default_c_glob_info: ASTFGlobalInfo | None = None,
        default_s_glob_info: ASTFGlobalInfo | None = None,
        templates: ASTFTemplate | Sequence[ASTFTemplate] | None = None,
        cap_list: ASTFCapInfo | Sequence[ASTFCapInfo] | None = None,
        s_delay: ASTFCmdDelay | ASTFCmdDelayRnd | None = None,
        udp_mtu: int | None = None,
    ) -> None:
        where = "ASTFProfile"
        of_kind(where, "default_ip_gen", default_ip_gen, ASTFIPGen)
        for name, value in (
            ("default_c_glob_info", default_c_glob_info),
            ("default_s_glob_info", default_s_glob_info),
        ):
            if value is not None:
                of_kind(where, name, value, ASTFGlobalInfo)
        if s_delay is not None:
            of_kind(where, "s_delay", s_delay, (ASTFCmdDelay, ASTFCmdDelayRnd))
        if templates is None and cap_list is None:
            raise ASTFErrorBadParamCombination(
                f"{where}: templates and cap_list are missing, give one of them"
            )
        self.default_c_glob_info = default_c_glob_info
        self.default_s_glob_info = default_s_glob_info
        self.templates: list[ASTFTemplate] = (
            [] if templates is None else listed(where, "templates", templates, ASTFTemplate)
        )
        captures = [] if cap_list is None else listed(where, "cap_list", cap_list, ASTFCapInfo)
        self.templates += _captured_templates(captures, default_ip_gen, s_delay, udp_mtu)
        self._check_servers()
        #: What a loader says of where the profile comes from.
        self.meta: dict[str, Any] = {}

    @property
    def tg_name_to_id(self) -> dict[str, int]:
        """The numbers of the template groups, from 1, in the order in which templates name them."""
        names = dict.fromkeys(template.tg_name for template in self.templates if template.tg_name)
        return {str(name): number for number, name in enumerate(names, 1)}

    def to_json(self) -> dict[str, Any]:
        """The profile in the words of the protocol. Raises ``ASTFError`` that names template and command."""
        groups = self.tg_name_to_id
        buffers, pools = Buffers(), Pools()
        programs: dict[str, tuple[int, dict[str, Any]]] = {}

        def index_of(template: str, program: ASTFProgram | HTTPProgram) -> int:
            try:
                written = program.to_json(buffers, groups)
            except ASTFError as error:
                raise type(error)(f"{template}, {error}") from error
            key = json.dumps(written, sort_keys=True)
            return programs.setdefault(key, (len(programs), written))[0]

        templates = []
        for number, template in enumerate(self.templates):
            name = f"templates[{number}]"
            client, server = template.client_template, template.server_template
            indices = (
                index_of(f"{name}, the client's program", client.program),
                index_of(f"{name}, the server's program", server.program),
            )
            try:
                ip_gen = pools.add(client.ip_gen)
            except ASTFError as error:
                raise type(error)(f"{name}: {error}") from error
            fields = {
                "client_template": client.to_json(indices[0], ip_gen),
                "server_template": server.to_json(indices[1]),
            }
            if template.tg_name:
                fields["tg_id"] = groups[template.tg_name]  # type: ignore[assignment]
            templates.append(fields)
        return {
            "buf_list": buffers.to_json(),
            "ip_gen_dist_list": pools.to_json(),
            "program_list": [written for _, written in programs.values()],
            **self._tunables(),
            "templates": templates,
            "tg_names": list(groups),
            **({"draw_lists": draws} if (draws := buffers.draws_to_json()) else {}),
        }

    def to_json_str(self, pretty: bool = True, sort_keys: bool = False) -> str:
        """The profile as JSON text."""
        if pretty:
            return json.dumps(self.to_json(), indent=4, separators=(",", ": "), sort_keys=sort_keys)
        return json.dumps(self.to_json(), sort_keys=sort_keys)

    def print_stats(self) -> None:
        """Print the size of the profile, and what it sends at multiplier 1, without headers."""
        fields = self.to_json()
        print(f"Num buffers: {len(fields['buf_list'])}")
        print(f"Num programs: {len(fields['program_list'])}")
        total_cps = total_bps = 0.0
        for number, template in enumerate(self.templates):
            sides = template.client_template, template.server_template
            size = sum(side.program.total_send_bytes for side in sides)
            cps = template.client_template.cps or 0
            print(f"template {number}:")
            print(f"  total bytes:{size} cps:{cps} bps(bytes * cps * 8):{size * cps * 8}")
            total_cps, total_bps = total_cps + cps, total_bps + size * cps * 8
        print(f"total for all templates - cps:{total_cps} bps:{total_bps}")

    def save(self, path: str | Path) -> None:
        """Write the profile to a .json file that ``load`` reads. Raises ``ASTFError``."""
        try:
            Path(path).write_text(self.to_json_str() + "\n", encoding="utf-8")
        except OSError as error:
            raise ASTFError(f"profile {path} cannot be written: {error.strerror or error}") from error

    @staticmethod
    def clear_cache() -> None:
        """Nothing: profiles share nothing. Existing scripts call it."""

    @staticmethod
    def load(filename: str | Path, **tunables: Any) -> ASTFProfile | ASTFProfileLight:
        """Load a profile from a .py or .json file. Raises ``STLProfileError``.

        ``tunables`` go to the profile's ``get_profile``: as keyword arguments, or as the list
        ``tunables`` for ``argparse``.
        """
        path = Path(filename)
        if path.suffix == ".py":
            return _from_python(path, tunables)
        if path.suffix == ".json":
            return ASTFProfile.load_json(path)
        raise STLProfileError(
            f"profile {path}: files ending in '{path.suffix}' are not known, give .py or .json"
        )

    @staticmethod
    def load_py(python_file: str | Path, **tunables: Any) -> ASTFProfile | ASTFProfileLight:
        """Load a profile from a Python file that has ``register()``. Raises ``STLProfileError``."""
        return _from_python(Path(python_file), tunables)

    @staticmethod
    def load_json(json_file: str | Path) -> ASTFProfileLight:
        """Load a profile from a JSON file. Raises ``STLProfileError``."""
        path = Path(json_file)
        fields = read_json(path)
        try:
            return ASTFProfileLight(fields)
        except STLProfileError as error:
            raise STLProfileError(f"profile {path}: {error}") from error

    def _tunables(self) -> dict[str, Any]:
        given = {"c_glob_info": self.default_c_glob_info, "s_glob_info": self.default_s_glob_info}
        return {name: info.to_json() for name, info in given.items() if info is not None}

    def _check_servers(self) -> None:
        """Refuse two servers for the same flows. Raises ``ASTFError``."""
        known: list[tuple[int, bool, ASTFAssociationRule]] = []
        for number, template in enumerate(self.templates):
            server = template.server_template
            for rule in server.assoc.rules:
                for other_number, other_stream, other in known:
                    if other_stream == server.is_stream() and rule.overlaps(other):
                        raise ASTFError(
                            f"templates[{number}] and templates[{other_number}] serve the same flows "
                            f"on port {rule.port}: give one another port, other addresses, or an l7_map"
                        )
                known.append((number, server.is_stream(), rule))


class ASTFProfileLight:
    """A profile that is in the words of the protocol already."""

    def __init__(self, json_dict: dict[str, Any]) -> None:
        if not isinstance(json_dict, dict):
            raise STLProfileError(
                "a stateful profile in JSON is an object with buf_list, program_list, templates"
            )
        self.json_dict = json_dict

    def to_json(self) -> dict[str, Any]:
        """The profile in the words of the protocol."""
        return self.json_dict

    def to_json_str(self, pretty: bool = True, sort_keys: bool = False) -> str:
        """The profile as JSON text."""
        if pretty:
            return json.dumps(self.json_dict, indent=4, separators=(",", ": "), sort_keys=sort_keys)
        return json.dumps(self.json_dict, sort_keys=sort_keys)


def _from_python(path: Path, tunables: dict[str, Any]) -> ASTFProfile | ASTFProfileLight:
    """A profile of what a Python file gives. Raises ``STLProfileError``."""
    with running(path, tunables) as (profile, defaults):
        if not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
            raise STLProfileError(
                f"profile {path}: get_profile() returned {type(profile).__name__}, "
                f"it must return an ASTFProfile"
            )
        # Compiled here, so that an error of a program says the file, and no profile is half good.
        profile.to_json()
    if isinstance(profile, ASTFProfile):
        profile.meta = {"type": "python", "tunables": defaults}
    return profile


def _captured_templates(
    captures: list[ASTFCapInfo],
    ip_gen: ASTFIPGen,
    s_delay: ASTFCmdDelay | ASTFCmdDelayRnd | None,
    udp_mtu: int | None,
) -> list[ASTFTemplate]:
    """A template of each capture. Raises ``ASTFError``."""
    shares = _shares(captures)
    templates = []
    for number, one in enumerate(captures):
        cps = one.cps if shares is None else shares[number]
        try:
            templates.append(_captured_template(one, ip_gen, cps, s_delay, udp_mtu))
        except ASTFError as error:
            raise type(error)(f"cap_list[{number}] ({one.file}): {error}") from error
    return templates


def _shares(captures: list[ASTFCapInfo]) -> list[float] | None:
    """The flows a second of captures that have ``l7_percent``; None when they have ``cps``."""
    percents = [one.l7_percent for one in captures]
    if all(percent is None for percent in percents):
        return None
    if any(percent is None for percent in percents):
        raise ASTFErrorBadParamCombination(
            "cap_list: some captures have l7_percent and some cps, give all of them the same"
        )
    total_percent = sum(percent or 0 for percent in percents)
    if abs(total_percent - 100) > _PERCENT_TOLERANCE:
        raise ASTFError(f"cap_list: l7_percent of all captures is {total_percent:g} in all, it must be 100")
    sizes = [flow_of(find_capture(one.file)).payload_bytes for one in captures]
    if not sum(sizes):
        raise ASTFError("cap_list: the captures have no payload to share by l7_percent, give cps")
    # TRex's client gives each its share of the bytes, whatever its percentage: profiles count on it.
    return [size * 100.0 / sum(sizes) for size in sizes]


def _captured_template(
    one: ASTFCapInfo,
    ip_gen: ASTFIPGen,
    cps: float | None,
    s_delay: ASTFCmdDelay | ASTFCmdDelayRnd | None,
    udp_mtu: int | None,
) -> ASTFTemplate:
    mtu = udp_mtu if one.udp_mtu is None else one.udp_mtu
    client = ASTFProgram(file=one.file, side="c", udp_mtu=mtu)
    server = ASTFProgram(file=one.file, side="s", udp_mtu=mtu, s_delay=one.s_delay or s_delay)
    _share_keepalive(client, server)
    if not client.is_stream():
        _share_keepalive(server, client)
    assoc = one.assoc
    if assoc is None:
        assoc = ASTFAssociation(ASTFAssociationRule(flow_of(find_capture(one.file)).server_port))
    template = ASTFTemplate(
        ASTFTCPClientTemplate(
            program=client,
            ip_gen=one.ip_gen or ip_gen,
            port=assoc.port,
            cps=cps,
            limit=one.limit,
            cont=one.cont,
            glob_info=one.c_glob_info,
        ),
        ASTFTCPServerTemplate(program=server, assoc=assoc, glob_info=one.s_glob_info),
        tg_name=one.tg_name,
    )
    for name, header_values in one.headers.items():
        template.replace_header(name, header_values)
    for pattern, pattern_values in one.patterns.items():
        template.replace_pattern(pattern, pattern_values)
    return template


def _share_keepalive(one: ASTFProgram, other: ASTFProgram) -> None:
    """Both sides must bear the silence of either."""
    if one.commands and isinstance(one.commands[0], ASTFCmdKeepaliveMsg):
        other.commands.insert(0, one.commands[0])
