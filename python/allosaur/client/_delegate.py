"""Methods of a client that one of its parts has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

Part = TypeVar("Part")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def delegate(
    part: Callable[[Any], Part], method: Callable[Concatenate[Part, Parameters], Result]
) -> Callable[Concatenate[Any, Parameters], Result]:
    """A method of the client that calls the method of a part: same parameters, same documentation.

    ``part`` gives the part of a client. Where a client has a part of a kind derived from this one, its
    method is called.
    """
    name = method.__name__

    @functools.wraps(method)
    def call(client: Any, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        result: Result = getattr(part(client), name)(*arguments, **keywords)
        return result

    return call
