"""Each public name of TRex's official clients is here, or says why not and what to use instead."""

from __future__ import annotations

import inspect
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient, EMUClient, STLClient
from allosaur.compat._missing import NotInAllosaurError

HERE = Path(__file__).resolve().parent
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (STLClient, ASTFClient, EMUClient)}
#: How many names each client has.
COUNTS = {"STLClient": 161, "ASTFClient": 217, "EMUClient": 49}
#: What a decorator has in place of the parameters.
ANY = {"args", "kw", "kwargs"}


@pytest.fixture(scope="module")
def surface(client_python: str, client_environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [client_python, "-W", "ignore", str(HERE / "surface.py")],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=client_environment,
    )
    assert done.returncode == 0, f"the official client failed:\n{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def refusal(client: Any, name: str) -> str:
    """What is said when the name is used."""
    with pytest.raises(NotInAllosaurError) as caught:
        getattr(client, name)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_each_name_is_here_or_says_why_not(surface: dict[str, Any], kind: str) -> None:
    theirs, ours, client = surface[kind]["of_class"], KINDS[kind], KINDS[kind]()
    assert len(theirs) == COUNTS[kind]
    missing = [name for name in theirs if not hasattr(ours, name)]
    missing += [name for name in surface[kind]["of_object"] if name not in dir(client)]
    assert set(missing) == set(ours._not_here) - set(dir(client)), "what is missing is in the table, no more"
    for name in missing:
        said = refusal(client, name)
        assert said.startswith(f"{kind}.{name} is not in Allosaur: "), said
        assert "; " in said, f"no word of what to use instead: {said}"
        assert not hasattr(client, name), "scripts ask with hasattr"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_here_takes_their_arguments(surface: dict[str, Any], kind: str) -> None:
    compared = []
    for name, wanted in surface[kind]["of_class"].items():
        method = inspect.getattr_static(KINDS[kind], name, None)
        if wanted is None or method is None or ANY & set(wanted):
            continue
        compared.append(name)
        parameters = list(inspect.signature(getattr(KINDS[kind], name)).parameters.values())[1:]
        takes = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        by_name = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
        assert takes[: len(wanted)] == (wanted[: len(takes)] if by_name else wanted), name
    assert len(compared) >= 30


def test_another_name_is_no_attribute() -> None:
    for kind in KINDS.values():
        with pytest.raises(AttributeError, match=f"'{kind.__name__}' object has no attribute 'get_statz'"):
            _ = kind().get_statz
        with pytest.raises(AttributeError, match="no attribute") as caught:
            _ = kind()._no_such_thing
        assert not isinstance(caught.value, NotInAllosaurError)
