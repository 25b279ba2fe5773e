"""Methods of a client that one of its parts has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def delegate(
    part: str, method: Callable[Concatenate[Any, Parameters], Result]
) -> Callable[Concatenate[Any, Parameters], Result]:
    """A method of the client that calls the method of a part: same parameters, same documentation.

    ``part`` is its name in the client. Where a client has a part of a kind derived from this one, its method
    is called.
    """
    name = method.__name__

    @functools.wraps(method)
    def call(client: Any, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        result: Result = getattr(getattr(client, part), name)(*arguments, **keywords)
        return result

    return call
