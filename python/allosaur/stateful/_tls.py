"""TLS around the programs of a template: what each side says of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._files import no_file
from ._arguments import flag, number
from ._capture_place import beside_profile
from ._errors import ASTFError, ASTFErrorBadParamCombination, ASTFErrorWrongType

_WHERE = "TLS"
_VERSIONS = ("1.2", "1.3")
_KINDS = ("p256", "p384", "ed25519")
_MAKE_RSA = (
    "openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.pem "
    "-subj /CN=site.example -addext subjectAltName=DNS:site.example"
)
_PEM = "-----BEGIN "
#: Of which side each field is, where it is of one.
_OF_ONE_SIDE = {
    "pinned": "client",
    "resume": "client",
    "certificate_kind": "server",
    "tickets": "server",
}


class TLS:
    """TLS 1.2 and 1.3 around the program of one side of a template.

    The program begins when the handshake is through. What it sends leaves in records, and it waits for
    bytes that were in records; bytes are counted so in programs, and with records in statistics.

    Both sides: ``version`` ("1.2" or "1.3") is the only one, ``suites`` are cipher suites and ``groups``
    those that keys are exchanged over, both by IANA's names, ``alpn`` protocols of the application; of groups
    and protocols the best comes first, and clients send a key of the first group. ``certificate`` and
    ``key`` are files in PEM, or their texts; a relative name is looked for beside the profile and in the
    current folder. ``key_log`` is a file of the server's machine that the secrets of sessions are appended
    to, in the format of NSS: with it Wireshark reads captures. It must be in the folder of
    ``--captures-folder``.

    Clients: ``server_name`` is said to the server (SNI). Certificates are not verified, unless
    ``authorities`` (PEM) have signed them for that name, or they must be one of ``pinned`` (PEM).
    ``resume`` is the share of connections that resume a session where one is known, 0 to 1.

    Servers: without a ``certificate`` one is made when the profile starts, signed by itself, with a key of
    ``certificate_kind`` ("p256", "p384", "ed25519"), for ``server_name``. With ``authorities`` (PEM) clients
    must show a certificate that one of them has signed. With ``tickets=False`` clients cannot resume
    sessions. Raises ``ASTFError``.
    """

    def __init__(
        self,
        version: str | None = None,
        suites: Sequence[str] | None = None,
        alpn: Sequence[str] | None = None,
        server_name: str | None = None,
        authorities: str | Path | None = None,
        pinned: str | Path | None = None,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
        certificate_kind: str | None = None,
        resume: float | None = None,
        tickets: bool | None = None,
        key_log: str | Path | None = None,
        groups: Sequence[str] | None = None,
    ) -> None:
        _one_of("version", version, _VERSIONS)
        _check_kind(certificate_kind)
        if authorities is not None and pinned is not None:
            raise ASTFErrorBadParamCombination(
                f"{_WHERE}: authorities and pinned are given, leave one of them out"
            )
        if (certificate is None) != (key is None):
            given, missing = ("certificate", "key") if key is None else ("key", "certificate")
            raise ASTFErrorBadParamCombination(f"{_WHERE}: {given} is given without {missing}, give both")
        if server_name is not None and not isinstance(server_name, str):
            raise ASTFErrorWrongType(f"{_WHERE}: server_name is {server_name!r}, give the name of a host")
        if key_log is not None and (not isinstance(key_log, (str, Path)) or not str(key_log)):
            raise ASTFErrorWrongType(f"{_WHERE}: key_log is {key_log!r}, give the name of a file")
        fields = {
            "version": version,
            "suites": _names("suites", suites),
            "groups": _names("groups", groups),
            "alpn": _names("alpn", alpn),
            "server_name": server_name,
            "authorities": _pem("authorities", authorities),
            "pinned": _pem("pinned", pinned),
            "certificate": _pem("certificate", certificate),
            "key": _pem("key", key),
            "certificate_kind": certificate_kind,
            "resume": None if resume is None else number(_WHERE, "resume", resume, 0, 1),
            "tickets": None if tickets is None else flag(_WHERE, "tickets", tickets),
            "key_log": None if key_log is None else str(key_log),
        }
        self._fields = {name: value for name, value in fields.items() if value is not None}

    def check(self, side: str) -> None:
        """Refuse what is not of that side, "client" or "server". Raises ``ASTFError``."""
        for name in self._fields:
            if _OF_ONE_SIDE.get(name, side) != side:
                raise ASTFErrorBadParamCombination(
                    f"{_WHERE}: {name} is for the {_OF_ONE_SIDE[name]}'s side, "
                    f"and this is the {side}'s: leave it out"
                )
        if side == "server" and "certificate" in self._fields:
            for name in ("server_name", "certificate_kind"):
                if name in self._fields:
                    raise ASTFErrorBadParamCombination(
                        f"{_WHERE}: {name} is for a certificate that is made, and one is given: leave it out"
                    )

    def to_json(self) -> dict[str, Any]:
        """The ``tls`` of a template's side, in the words of the protocol."""
        return dict(self._fields)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise ASTFError(f"{_WHERE}: {name} is {value!r}, give one of: {', '.join(known)}")


def _check_kind(kind: Any) -> None:
    if isinstance(kind, str) and kind.lower().startswith("rsa"):
        raise ASTFError(
            f"{_WHERE}: certificate_kind is {kind!r}, and keys of RSA are not made here: make one by "
            f"`{_MAKE_RSA}`, and give the two files as certificate and key, or one of: {', '.join(_KINDS)}"
        )
    _one_of("certificate_kind", kind, _KINDS)


def _names(name: str, values: Any) -> list[str] | None:
    if values is None:
        return None
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise ASTFErrorWrongType(f"{_WHERE}: {name} is {values!r}, give a list of names")
    return list(values)


def _pem(name: str, given: Any) -> str | None:
    """The text of a file in PEM, or the text that was given. Raises ``ASTFError``."""
    if given is None:
        return None
    if not isinstance(given, (str, Path)):
        raise ASTFErrorWrongType(f"{_WHERE}: {name} is {given!r}, give the name of a file in PEM")
    if isinstance(given, str) and _PEM in given:
        return given
    path = Path(given)
    places = [path] if path.is_absolute() else [*beside_profile(path), path]
    place = next((place for place in places if place.exists()), places[0])
    if why := no_file(place):
        raise ASTFError(f"{_WHERE}: {name}: {place.absolute()} {why}: give a file in PEM")
    try:
        text = place.read_text(encoding="ascii")
    except OSError as error:
        raise ASTFError(f"{_WHERE}: {name}: {place} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        text = ""
    if _PEM not in text:
        raise ASTFError(
            f"{_WHERE}: {name}: {place} is no PEM, which has a line with BEGIN: "
            f"convert it (openssl x509 -inform der, or openssl pkey)"
        )
    return text
