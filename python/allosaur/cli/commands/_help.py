"""`allosaur help`: what `--help` prints, by the name of a command."""

from __future__ import annotations

import argparse

from allosaur.cli import _main


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur help` says; return the exit code."""
    return _main.main([options.of, "--help"]) if options.of else _main.main(["--help"])
