"""`allosaur completion`: the script that has a shell complete commands, options and their values."""

from __future__ import annotations

import argparse

from allosaur.cli import _completion
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK


class Completion(Command):
    """`allosaur completion`."""

    name = "completion"
    summary = "print what has a shell complete commands, options, and names of profiles"
    is_result = True

    @property
    def description(self) -> str:
        """How to use what it prints."""
        return (
            f'{super().description} In ~/.bashrc: eval "$(allosaur completion bash)"; in ~/.zshrc, behind '
            'compinit: eval "$(allosaur completion zsh)"; in ~/.config/fish/config.fish: allosaur completion '
            "fish | source. The Debian package has done it."
        )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("shell", choices=_completion.SHELLS, help="the shell")

    def run(self, options: argparse.Namespace) -> int:
        print(_completion.script(options.shell), end="")
        return EXIT_OK
