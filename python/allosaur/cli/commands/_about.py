"""`allosaur help`, `version`, `completion`: commands about the program itself."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from allosaur.cli import _arguments, _completion
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, EXIT_SETUP


class Help(Command):
    """`allosaur help`."""

    name = "help"
    summary = "explain a command"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("of", metavar="COMMAND", nargs="?", help="tell of this command (default: of all)")

    def run(self, options: argparse.Namespace) -> int:
        """Print what `--help` prints."""
        try:
            options.all_commands.parse_args([*([options.of] if options.of else []), "--help"])
        except SystemExit as stop:  # --help ends this way
            return stop.code if isinstance(stop.code, int) else EXIT_SETUP
        return EXIT_OK


class Version(Command):
    """`allosaur version`."""

    name = "version"
    summary = "say which version this is"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        import platform

        binary, server = _server()
        versions = {
            "allosaur": _package("allosaur"),
            "server": server,
            "server_binary": binary,
            "python": platform.python_version(),
            "scapy": _package("scapy"),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        }
        if options.json:
            print(json.dumps({"command": "version", "ok": True, **versions}, indent=2))
        else:
            print(f"allosaur {versions['allosaur'] or '(not installed, running from its source)'}")
            print(f"  server: {server or 'not found; build it with `cargo build --release`'}")
            for name in ("server_binary", "python", "scapy", "system"):
                print(f"  {name.replace('_', ' ')}: {versions[name] or 'not found'}")
        return EXIT_OK


def _package(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _server() -> tuple[str | None, str | None]:
    """Return the server binary's path, and what it says its version is."""
    import subprocess

    from allosaur import STLError
    from allosaur.server import find_binary

    try:
        binary = Path(find_binary())
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError, STLError):
        return None, None
    return str(binary), said.stdout.strip()


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
