"""`allosaur config`: the server's binary writes and checks configuration files; this passes the words on."""

from __future__ import annotations

import argparse
from typing import NoReturn

from allosaur.cli import _output
from allosaur.cli._binary import become_server_binary


def execute(options: argparse.Namespace) -> NoReturn:
    """Do what `allosaur config` says. Comes back only with an error: the binary takes this process over."""
    words = ["config", options.action]
    if options.action == "init" and options.force:
        words.append("--force")
    if options.action == "check" and options.json:
        words.append("--json")
        _output.become_file(options)
    # Behind --, so that a file may be called anything; - is the standard output.
    become_server_binary([*words, "--", options.file])
