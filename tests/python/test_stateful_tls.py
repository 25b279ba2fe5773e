"""TLS in the profile language: its form on the wire, and what is refused in which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    TLS,
    ASTFAssociationRule,
    ASTFError,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

DATA = Path(__file__).resolve().parents[1] / "data" / "tls"
CERTIFICATE = (DATA / "server.pem").read_text()
KEY = (DATA / "server.key").read_text()


def ip_gen() -> ASTFIPGen:
    return ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]),
    )


def program(stream: bool = True) -> ASTFProgram:
    made = ASTFProgram(stream=stream)
    (made.send if stream else made.send_msg)(b"x")
    return made


def client(tls: TLS, of: ASTFProgram | None = None) -> ASTFTCPClientTemplate:
    return ASTFTCPClientTemplate(program=of or program(), ip_gen=ip_gen(), tls=tls)


def server(tls: TLS, **fields: Any) -> ASTFTCPServerTemplate:
    return ASTFTCPServerTemplate(program=program(), tls=tls, **fields)


def test_each_side_says_what_it_was_given() -> None:
    asks = TLS(version="1.3", server_name="a.example", pinned=DATA / "server.pem", resume=0.5, alpn=["h2"])
    answers = TLS(
        certificate=CERTIFICATE,
        key=str(DATA / "server.key"),
        authorities=CERTIFICATE,
        groups=["X25519MLKEM768", "X25519"],
        tickets=False,
        key_log=Path("keys.log"),
    )
    profile = ASTFProfile(ip_gen(), templates=ASTFTemplate(client(asks), server(answers)))
    [template] = profile.to_json()["templates"]
    assert template["client_template"]["tls"] == {
        "version": "1.3",
        "server_name": "a.example",
        "alpn": ["h2"],
        "pinned": CERTIFICATE,
        "resume": 0.5,
    }
    assert template["server_template"]["tls"] == {
        "certificate": CERTIFICATE,
        "key": KEY,
        "authorities": CERTIFICATE,
        "groups": ["X25519MLKEM768", "X25519"],
        "tickets": False,
        "key_log": "keys.log",
    }


def test_without_tls_nothing_is_said() -> None:
    template = ASTFTCPClientTemplate(program=program(), ip_gen=ip_gen())
    assert "tls" not in template.to_json(0, {})


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "version": (lambda: TLS(version="1.1"), "version is '1.1', give one of: 1.2, 1.3"),
    "both": (lambda: TLS(authorities=CERTIFICATE, pinned=CERTIFICATE), "leave one of them out"),
    "alone": (lambda: TLS(certificate=CERTIFICATE), "certificate is given without key"),
    "no file": (lambda: TLS(pinned="/nowhere.pem"), "pinned: /nowhere.pem no such file"),
    "folder": (lambda: TLS(pinned=DATA), "is a folder"),
    "no PEM": (lambda: TLS(pinned=__file__), "is no PEM"),
    "share": (lambda: TLS(resume=2), "resume is 2, give 0 to 1"),
    "name": (lambda: TLS(alpn="h2"), "alpn is 'h2', give a list of names"),  # type: ignore[arg-type]
    "group": (lambda: TLS(groups="X25519"), "groups is 'X25519', give a list"),  # type: ignore[arg-type]
    "of clients": (lambda: server(TLS(resume=1)), "resume is for the client's side"),
    "of servers": (lambda: client(TLS(tickets=True)), "tickets is for the server's side"),
    "made or given": (
        lambda: server(TLS(certificate=CERTIFICATE, key=KEY, server_name="a")),
        "server_name is for a certificate that is made",
    ),
    "RSA": (
        lambda: TLS(certificate_kind="rsa2048"),
        "keys of RSA are not made here: make one by `openssl req -x509 -newkey rsa:2048",
    ),
    "kind": (lambda: TLS(certificate_kind="p224"), "is 'p224', give one of: p256, p384, ed25519"),
    "key log": (lambda: TLS(key_log=""), "key_log is '', give the name of a file"),
    "no TLS": (lambda: client({"version": "1.3"}), "give an object of TLS"),  # type: ignore[arg-type]
    "UDP": (lambda: client(TLS(), program(stream=False)), "tls is for TCP"),
    "first bytes": (lambda: server(TLS(), assoc=ASTFAssociationRule(l7_map=[0])), "look at the handshake"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused(name: str) -> None:
    make, words = WRONG[name]
    with pytest.raises(ASTFError) as error:
        make()
    assert words in str(error.value)


def test_a_program_that_opens_flows_is_refused() -> None:
    opens = program()
    opens.set_next_template("other")
    opens.exec_template()
    with pytest.raises(ASTFError, match="exec_template"):
        client(TLS(), opens)
