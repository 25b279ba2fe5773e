"""`allosaur config`: the server's binary writes and checks configuration files; this passes the words on."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from allosaur.cli._binary import server_binary
from allosaur.cli._errors import CommandError


def execute(options: argparse.Namespace) -> NoReturn:
    """Do what `allosaur config` says. Comes back only with an error: the binary takes this process over."""
    binary = server_binary()
    command = [binary, "config", options.action]
    if options.action == "init" and options.force:
        command.append("--force")
    if options.action == "check" and options.json:
        command.append("--json")
    sys.stdout.flush()
    try:
        # Behind --, so that a file may be called anything; - is the standard output.
        os.execv(binary, [*command, "--", options.file])
    except OSError as error:
        raise CommandError(f"cannot start {binary}: {error.strerror}") from error
