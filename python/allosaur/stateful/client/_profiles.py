"""What a stateful client does with profiles: load them, ask about them, clear them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._errors import STLError, STLRpcError, STLTypeError
from ...client._places import DEFAULT_PROFILE
from .._arguments import ipv4
from .._profile import ASTFProfile, ASTFProfileLight
from ._connection import Pids, StatefulConnection
from ._session import STATE_NAMES, State

#: What a server says when it has the same text under another name.
_IS_ANOTHER = "already added on other profile"
#: How many profiles may be the same.
_ALIKE_MAX = 64


class Profiles:
    """Profiles on the server, by name; "_" is the default profile."""

    def __init__(self, connection: StatefulConnection) -> None:
        self._connection = connection

    def load_profile(
        self,
        profile: str | Path | ASTFProfile | ASTFProfileLight,
        tunables: Mapping[str, Any] | None = None,
        pid_input: str = DEFAULT_PROFILE,
    ) -> None:
        """Load a profile (an object, or a .py or .json file) onto the server under a name.

        ``tunables`` go to ``get_profile`` of a file. A profile that is there already is replaced; one
        that is the same is not sent again. Raises ``STLError``.
        """
        (profile_id,) = self._connection.pids(pid_input, known=False)
        self._connection.handler()
        if isinstance(profile, (str, Path)):
            profile = ASTFProfile.load(profile, **dict(tunables or {}))
        if not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
            raise STLTypeError("profile", type(profile), [ASTFProfile, ASTFProfileLight, str])
        text = profile.to_json_str(pretty=False, sort_keys=True)
        for spaces in range(_ALIKE_MAX):
            try:
                # A server takes no text twice; spaces at the end of JSON say nothing.
                self._connection.upload("profile_fragment", profile_id, text + " " * spaces)
                break
            except STLRpcError as error:
                if _IS_ANOTHER not in error.text or spaces == _ALIKE_MAX - 1:
                    raise
        # The state that follows from it is known before anybody asks.
        self._connection.session().drain_events()

    def clear_profile(self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE) -> None:
        """Take profiles off the server; "*" is all of them.

        Without ``block`` it happens a little later. A profile that runs is left alone, with a warning.
        """
        for profile_id in self._connection.pids(pid_input):
            self._connection.session().drain_events()
            state = self._connection.state_of(profile_id)
            if state not in (State.IDLE, State.LOADED):
                self._connection.say(
                    logging.WARNING, f"profile '{profile_id}' runs and is not cleared: call stop() first"
                )
                continue
            with self._connection.session().watch(profile_id) as watch:
                self._connection.owned("profile_clear", profile_id=profile_id)
                if block and state == State.LOADED:
                    self._connection.wait_for(
                        lambda: watch.is_cleared or State.IDLE in watch.states,
                        f"clearing profile '{profile_id}'",
                    )

    def get_profiles(self, profiles_in_ports: bool = False) -> list[Any]:
        """The names of the profiles on the server.

        With ``profiles_in_ports`` the last entry is a dictionary: the stateless profiles of each port.
        """
        names: list[Any] = self._connection.owned("get_profile_list", profiles_in_ports=profiles_in_ports)
        return names

    def get_profiles_state(self) -> dict[str, str]:
        """The state of each profile: "STATE_IDLE", "STATE_ASTF_LOADED", "STATE_TX" and so on."""
        states = dict(self._connection.session().profiles)
        known = {int(state): name for state, name in STATE_NAMES.items()}
        return {name: known.get(state, "STATE_UNKNOWN") for name, state in states.items()}

    def get_traffic_distribution(
        self, start_ip: str, end_ip: str, dual_ip: str, seq_split: bool
    ) -> dict[int, dict[int, dict[str, str]]]:
        """Which core of which client port has which addresses of a pool.

        ``dual_ip`` is the ``ip_offset`` of ``ASTFIPGenGlobal``; ``seq_split`` is whether the pool has
        ``per_core_distribution="seq"``.
        """
        where = "get_traffic_distribution"
        addresses = {"start_ip": start_ip, "end_ip": end_ip, "dual_ip": dual_ip}
        for name, address in addresses.items():
            ipv4(where, name, address)
        answer = self._connection.call("get_traffic_dist", **addresses, seq_split=bool(seq_split))
        return {
            int(port): {int(core): dict(share) for core, share in cores.items()}
            for port, cores in answer.items()
        }

    def inc_epoch(self) -> None:
        """Let the server begin a new epoch: clients then read the names of counters again."""
        self._connection.owned("inc_epoch")
        self._connection.session().sync()

    def check_loaded(self, profile_id: str) -> None:
        """Refuse to start what is not there, or runs. Raises ``STLError``."""
        state = self._connection.state_of(profile_id)
        if state == State.IDLE:
            raise STLError(f"profile '{profile_id}' has no traffic: call load_profile() first")
        if state != State.LOADED:
            word = STATE_NAMES[State(state)] if state in range(len(State)) else str(state)
            raise STLError(f"profile '{profile_id}' is in {word}: call stop() and wait_on_traffic() first")
