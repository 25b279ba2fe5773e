"""Values of which requests of HTTP are made: each request, or each connection, has one of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._arguments import whole
from ._errors import ASTFError, ASTFErrorWrongType

_EACH = ("request", "connection")
_DISTRIBUTIONS = ("rand", "seq")
_NUMBER_MAX = 999_999_999_999_999_999
_DIGITS_MAX = 18
_TEXTS_MAX = 65_535
_TEXT_BYTES_MAX = 4_096
_PLACE = re.compile(r"\$(?:\$|\{([^}]*)\})?")


class HTTPValue:
    """What the values of requests have in common: one of the classes below."""

    def __init__(self, source: Mapping[str, Any], each: str) -> None:
        self._fields = {**source, "each": _one_of(type(self).__name__, "each", each, _EACH)}

    def to_json(self, name: str) -> dict[str, Any]:
        """The value in the words of the protocol."""
        return {"name": name, **self._fields}


class HTTPValues(HTTPValue):
    """One text of a list: at random, or with the ``distribution`` "seq" one after another.

    ``each`` is "request" or "connection", whose requests have all the same. Raises ``ASTFError``.
    """

    def __init__(self, values: Sequence[str], distribution: str = "rand", each: str = "request") -> None:
        where = "HTTPValues"
        if isinstance(values, str) or not all(isinstance(one, str) for one in values):
            raise ASTFErrorWrongType(f"{where}: values is {values!r}, give a list of texts")
        if not 1 <= len(values) <= _TEXTS_MAX:
            raise ASTFError(f"{where}: values has {len(values)} texts, give 1 to {_TEXTS_MAX}")
        distribution = _one_of(where, "distribution", distribution, _DISTRIBUTIONS)
        super().__init__({"list": list(values), "distribution": distribution}, each)


class HTTPCounter(HTTPValue):
    """Numbers from ``first`` to ``last`` by ``step``, and from the first on again.

    They are filled up with zeros to so many ``digits``. ``each`` is "request" or "connection", whose
    requests have all the same. The cores of a server share the numbers out. Raises ``ASTFError``.
    """

    def __init__(self, first: int, last: int, step: int = 1, digits: int = 0, each: str = "request") -> None:
        where = "HTTPCounter"
        numbers = _numbers(where, first, last, digits)
        super().__init__({"counter": {**numbers, "step": whole(where, "step", step, 1, _NUMBER_MAX)}}, each)


class HTTPRandom(HTTPValue):
    """A random number from ``first`` to ``last``, filled up with zeros to so many ``digits``.

    ``each`` is "request" or "connection", whose requests have all the same. Raises ``ASTFError``.
    """

    def __init__(self, first: int, last: int, digits: int = 0, each: str = "request") -> None:
        super().__init__({"random": _numbers("HTTPRandom", first, last, digits)}, each)


class HTTPToken(HTTPValue):
    """A random text of ``length`` small letters and digits, such as the id of a session.

    ``each`` is "request" or "connection", whose requests have all the same. Raises ``ASTFError``.
    """

    def __init__(self, length: int = 16, each: str = "request") -> None:
        super().__init__({"token": whole("HTTPToken", "length", length, 1, _TEXT_BYTES_MAX)}, each)


#: Values by name; a list of texts is drawn from at random.
Values = Mapping[str, HTTPValue | Sequence[str]]


def checked_values(where: str, values: Values | None) -> dict[str, HTTPValue]:
    """Check the values of a client. Raises ``ASTFError``."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ASTFErrorWrongType(f"{where}: values is {values!r}, give a dict of values by name")
    return {
        name: value if isinstance(value, HTTPValue) else HTTPValues(value) for name, value in values.items()
    }


def check_template(where: str, field: str, text: str, values: Mapping[str, HTTPValue]) -> None:
    """Refuse a text that uses a value that is none of these. Raises ``ASTFError``."""
    for match in _PLACE.finditer(text):
        if match.group() == "$":
            raise ASTFError(f"{where}: {field} is {text!r}: a $ begins no ${{name}}, write $$ for a $")
        name = match.group(1)
        if name is not None and name not in values:
            raise ASTFError(f"{where}: {field} is {text!r}: values has no {name!r}, only {', '.join(values)}")


def _numbers(where: str, first: int, last: int, digits: int) -> dict[str, int]:
    last = whole(where, "last", last, 0, _NUMBER_MAX)
    return {
        "first": whole(where, "first", first, 0, last),
        "last": last,
        "digits": whole(where, "digits", digits, 0, _DIGITS_MAX),
    }


def _one_of(where: str, name: str, value: str, words: Sequence[str]) -> str:
    if value not in words:
        raise ASTFError(f"{where}: {name} is {value!r}, give {' or '.join(map(repr, words))}")
    return value
