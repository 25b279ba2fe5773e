"""`allosaur ports`: the server's binary looks at the machine; this passes the words on."""

from __future__ import annotations

import argparse
from typing import NoReturn

from allosaur.cli import _output
from allosaur.cli._binary import become_server_binary


def execute(options: argparse.Namespace) -> NoReturn:
    """Do what `allosaur ports` says. Comes back only with an error: the binary takes this process over."""
    words = ["ports"]
    if options.action is None:
        if options.json:
            words.append("--json")
            _output.become_file(options)
    else:
        words.append(options.action)
        if options.driver is not None:
            words.append(f"--driver={options.driver}")
        if options.anyway:
            words.append("--anyway")
        # Behind --, so that an interface may be called anything.
        words += ["--", options.target]
    become_server_binary(words)
