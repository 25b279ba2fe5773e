"""Plug-ins of TRex's console: the class that they inherit, and checks of words that they use."""

from __future__ import annotations

import argparse
import ipaddress
import re
from typing import Any

from .._files import no_file

__all__ = ["ConsolePlugin", "check_ipv4_addr", "check_mac_addr", "is_valid_file"]


class ConsolePlugin:
    """A plug-in: a class in a file `plugin_NAME.py`, whose methods `do_WORD` are `plugins NAME WORD`.

    The console sets `trex_client`, its client, and calls :meth:`plugin_load`, in which the arguments of the
    methods are declared by :meth:`add_argument`. A method's docstring is its help.
    """

    trex_client: Any = None
    """The console's client, connected."""

    def plugin_description(self) -> str:
        """Return what the plug-in is for, in a line. Each has to say it."""
        raise NotImplementedError(f"{type(self).__name__} has no plugin_description()")

    def plugin_load(self) -> None:
        """Prepare: it was loaded."""

    def plugin_unload(self) -> None:
        """Clean up: it is unloaded, or the console ends."""

    def set_plugin_console(self, trex_console: Any) -> None:
        """Take note of the console, before :meth:`plugin_load`."""

    def add_argument(self, *names: str, **options: Any) -> None:
        """Declare an argument of methods, in argparse's words; they take it by the name of its `dest`.

        Raises ``ValueError`` when there is one of that name.
        """
        parser = argparse.ArgumentParser(add_help=False)
        dest = parser.add_argument(*names, **options).dest
        if dest in self.plugin_arguments():
            raise ValueError(f"the argument '{dest}' is declared twice: give each a name of its own")
        self.plugin_arguments()[dest] = (names, options)

    def plugin_arguments(self) -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
        """Return what was declared, by name; also of a class whose `__init__` calls no other."""
        found: dict[str, tuple[tuple[str, ...], dict[str, Any]]]
        found = self.__dict__.setdefault("_plugin_arguments", {})
        return found


def is_valid_file(text: str) -> str:
    """Take the name of a file that is there, as an argument's `type`."""
    if why := no_file(text, may_be_pipe=True):
        raise argparse.ArgumentTypeError(f"'{text}': {why}")
    return text


def check_mac_addr(text: str) -> str:
    """Take a MAC address (00:11:22:33:44:55), as an argument's `type`."""
    if not re.fullmatch(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no MAC address: give 00:11:22:33:44:55")
    return text


def check_ipv4_addr(text: str) -> str:
    """Take an IPv4 address, as an argument's `type`."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no IPv4 address: give 192.0.2.1") from None
    return text
