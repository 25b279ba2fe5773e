"""The demo's flows: HTTP, a connection for each request of 100 bytes, answered by 32 KB.

Run it without the demo: allosaur run <this file> --local -m 500 -d 3
Tunables: response (bytes of an answer).
"""

from __future__ import annotations

from allosaur import (
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

REQUEST_BYTES = 100
RESPONSE_BYTES = 32_000
_ASK = b"GET / HTTP/1.1\r\nHost: demo.example\r\nX-Fill: "
_ANSWER = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


class DemoHttp:
    """One connection a second, times the multiplier."""

    def get_profile(self, response: int = RESPONSE_BYTES) -> ASTFProfile:
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(_ASK, size=REQUEST_BYTES, fill="x")
        asks.recv(response)
        answers.recv(REQUEST_BYTES)
        answers.send(_ANSWER, size=response, fill="*")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen, cps=1),
            server_template=ASTFTCPServerTemplate(program=answers),
        )
        info = ASTFGlobalInfo()
        # Without delayed acknowledgments a machine that stands still for long looks not like loss.
        info.tcp.no_delay_counter = 1
        return ASTFProfile(
            default_ip_gen=ip_gen,
            default_c_glob_info=info,
            default_s_glob_info=info,
            templates=template,
        )


def register() -> DemoHttp:
    """Return the profile, as the loader asks for it."""
    return DemoHttp()
