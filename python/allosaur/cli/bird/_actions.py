"""The actions of `allosaur bird`, one object each, over a client that is connected."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from allosaur.cli._action import Action
from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_USAGE, CommandError, bad_input

if TYPE_CHECKING:
    from allosaur.bird import PyBirdClient


class BirdAction(Action["PyBirdClient"]):
    """An action of BIRD."""

    #: It gives BIRD another configuration.
    changes: ClassVar[bool] = False


class Show(BirdAction):
    """`bird status`: how BIRD is doing, and its protocols."""

    name = "status"
    summary = "show how BIRD is doing, and its protocols"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        return

    def answer(self, client: PyBirdClient, options: argparse.Namespace) -> Answer:
        status, protocols = client.get_status(), client.get_protocols_info()
        process = f"process {status['pid']}" if status["pid"] is not None else "not running"
        has = "a client has it" if status["is_acquired"] else "no client has it"
        line = f"BIRD {status['version']}, {process} in {status['namespace']}"
        line = f"{line}, {status['state']}, restarts: {status['restarts']}, {has}"
        return Answer(f"{line}\n{protocols}", {**status, "protocols": protocols})


class Config(BirdAction):
    """`bird config`: the configuration in force."""

    name = "config"
    summary = "print the configuration that BIRD has"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        return

    def answer(self, client: PyBirdClient, options: argparse.Namespace) -> Answer:
        config = client.get_config()
        return Answer(config.rstrip("\n"), {"config": config})


class Set(BirdAction):
    """`bird set`: another configuration, of a file."""

    name = "set"
    summary = "give BIRD the configuration of a file; it checks it first"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a configuration of BIRD; - is the standard input")
        _force(parser)

    def check(self, options: argparse.Namespace) -> None:
        """Read the file."""
        try:
            text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise bad_input(f"{options.file}: cannot be read: {error}") from error
        options.text = text

    def answer(self, client: PyBirdClient, options: argparse.Namespace) -> Answer:
        from allosaur.bird import ConfigurationException

        try:
            with _acquired(client, options):
                said = client.set_config(options.text)
        except ConfigurationException as error:
            where = str(error).replace("bird.conf", options.file, 1)
            text = f"BIRD does not take it, and keeps the one it has: {where}"
            raise CommandError(text, EXIT_USAGE) from error
        return Answer(said, {"answer": said})


class Clear(BirdAction):
    """`bird clear`: no routes, no peers."""

    name = "clear"
    summary = "take all routes and peers away from BIRD"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _force(parser)

    def answer(self, client: PyBirdClient, options: argparse.Namespace) -> Answer:
        with _acquired(client, options):
            said = client.set_empty_config()
        return Answer(said, {"answer": said})


ACTIONS: tuple[BirdAction, ...] = (Show(), Config(), Set(), Clear())


def _force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="take BIRD away from another client")


@contextlib.contextmanager
def _acquired(client: PyBirdClient, options: argparse.Namespace) -> Iterator[None]:
    """Have BIRD inside the block."""
    client.acquire(force=options.force)
    try:
        yield
    finally:
        client.release()
