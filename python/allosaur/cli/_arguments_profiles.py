"""The arguments of the commands about profiles and about the program: profiles, new, version, help."""

from __future__ import annotations

import argparse

from allosaur.cli import _options


def profiles(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur profiles`."""
    parser.add_argument("name", metavar="PROFILE", nargs="?", help="tell more of this one")
    _options.add_json(parser)


def new(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur new`."""
    parser.add_argument("name", metavar="NAME", help="the file to write; .py is added where it is missing")
    parser.add_argument("--stateful", action="store_true", help="flows over TCP and UDP, not streams")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    _options.add_json(parser)


def version(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur version`."""
    _options.add_json(parser)


def help_of(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur help`."""
    parser.add_argument("of", metavar="COMMAND", nargs="?", help="tell of this command (default: of all)")
