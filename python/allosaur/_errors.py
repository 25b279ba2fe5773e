"""What can go wrong, as exceptions that name the argument and the remedy.

``STLError`` is the one to catch: every other error of this package derives from it. The
``TRex...`` and ``CTRex...`` names are kept so that existing scripts find what they catch.
"""

from __future__ import annotations

from collections.abc import Iterable


class STLError(Exception):
    """Something the caller can act on. ``msg`` is the sentence that is shown."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg

    def __str__(self) -> str:
        return self.msg

    def brief(self) -> str:
        """The message (a name that existing scripts use)."""
        return self.msg


class STLTypeError(STLError):
    """An argument has the wrong type."""

    def __init__(self, arg_name: str, arg_type: object, valid_types: object) -> None:
        kinds = valid_types if isinstance(valid_types, (list, tuple)) else [valid_types]
        names = ", ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
        got = getattr(arg_type, "__name__", str(arg_type))
        super().__init__(f"argument '{arg_name}' is of type '{got}': give one of: {names}")


class STLArgumentError(STLError):
    """An argument has a value that cannot be used."""

    def __init__(
        self,
        name: str,
        got: object,
        valid_values: Iterable[object] | str | None = None,
        extended: str | None = None,
    ) -> None:
        text = f"argument '{name}' cannot be {got!r}"
        if valid_values is not None:
            text += (
                f": give {valid_values}"
                if isinstance(valid_values, str)
                else f": give one of {list(valid_values)}"
            )
        if extended:
            text += f" ({extended})"
        super().__init__(text)


class STLTimeoutError(STLError):
    """Waiting took longer than the caller allowed; ``timeout`` is in seconds."""

    def __init__(self, timeout: float, what: str = "the operation") -> None:
        super().__init__(f"{what} did not finish within {timeout} seconds")
        self.timeout = timeout


class STLConnectionError(STLError):
    """The server cannot be reached, did not answer in time, or went away."""


class NoServerError(STLConnectionError):
    """Nothing listens where the server should be."""


class ServerStartError(STLConnectionError):
    """A server that was to be started did not start.

    ``exit_code`` is that of its process, ``None`` when it had to be ended; 2 is wrong input.
    """

    def __init__(self, reason: str, exit_code: int | None) -> None:
        super().__init__(f"the server did not start: {reason}")
        self.reason = reason
        self.exit_code = exit_code


class STLRpcError(STLError):
    """The server refused a request.

    ``method`` is the request, ``code`` the JSON-RPC error code.
    """

    def __init__(self, method: str, code: int, text: str, where: str = "") -> None:
        super().__init__(f"{where}{text}")
        self.method = method
        self.code = code
        self.text = text


class WrongModeError(STLError):
    """The server is for the other kind of traffic; ``is_stateful`` says which it is for."""

    def __init__(self, msg: str, is_stateful: bool) -> None:
        super().__init__(msg)
        self.is_stateful = is_stateful


class STLPacketError(STLError):
    """A packet or its field engine program cannot be built."""

    def __init__(self, code: int | str, message: str | None = None) -> None:
        # Two forms: the message alone, or an error code and the message as TRex's scripts raise it.
        super().__init__(str(code) if message is None else message)
        self.code = code if isinstance(code, int) else 0
        self.message = self.msg


class STLProfileError(STLError):
    """A profile cannot be loaded; the message has the file and, where known, the line."""


class TunableError(STLProfileError):
    """What was given to a profile is wrong, not the profile itself."""


class NotInAllosaurError(STLError):
    """Something of TRex's client that is not built yet, or never will be."""


class NotInAllosaurAttributeError(NotInAllosaurError, AttributeError):
    """An attribute of TRex's clients that ours does not have; so ``hasattr`` says."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name} is not in Allosaur: {what}")


TRexError = STLError
TRexTypeError = STLTypeError
TRexArgumentError = STLArgumentError
TRexTimeoutError = STLTimeoutError
CTRexPacketBuildException = STLPacketError
