"""How flows ended, read from a server that tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allosaur.report._flow_outcomes import Outcomes

if TYPE_CHECKING:
    from allosaur import ASTFClient

_METHOD = "get_flow_outcomes"


def read(client: ASTFClient, profile: str | None = None, group: str | None = None) -> Outcomes | None:
    """Return the outcomes of a template group, of a profile, or of all; `None` where nobody tells."""
    if _METHOD not in client.get_server_supported_cmds():
        return None
    if profile is None:
        found = Outcomes()
        for name in client.get_profiles_state():
            found = found.plus(Outcomes.from_reply(client.get_flow_outcomes(name)))
        return found
    reply = client.get_flow_outcomes(profile)
    if group is None:
        return Outcomes.from_reply(reply)
    return Outcomes.from_reply(reply["groups"][group]) if group in reply["groups"] else None
