"""`connect`, `acquire`, `release`, `reset`, `shutdown`, `global_cfg`: the server, and who owns it."""

from __future__ import annotations

import argparse

from allosaur.cli._answer import Answer, listed
from allosaur.cli._errors import CommandError, bad_input
from allosaur.cli._options import tunables
from allosaur.cli.console import _arguments
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session


class Connect(ConsoleCommand):
    """`connect`."""

    name = "connect"
    summary = "connect to the server again and own its ports"
    example = "connect --force"
    needs_server = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="take the ports from whoever has them")
        parser.add_argument("-r", dest="readonly", action="store_true", help="own no ports, only look")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.connect()
        if options.readonly:
            session.settings.readonly = True
        else:
            session.acquire(force=options.force)
        ports = session.client.get_acquired_ports()
        return done(f"Connected to {session.target}, {listed(ports, 'port')} ours", ports=ports)


class Disconnect(ConsoleCommand):
    """`disconnect`."""

    name = "disconnect"
    summary = "release the ports and disconnect; traffic goes on"
    example = "disconnect"

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.close()
        return done(f"Disconnected from {session.target}")


class Acquire(ConsoleCommand):
    """`acquire`, of a stateless console."""

    name = "acquire"
    summary = "own ports"
    example = "acquire -p 0 1 --force"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        parser.add_argument("--force", action="store_true", help="take them from whoever has them")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        wanted = _arguments.chosen(session, options, session.client.get_all_ports())
        ports = [port for port in wanted if port not in session.client.get_acquired_ports()]
        if not ports:
            raise CommandError(f"acquire: {listed(wanted, 'port')} ours already")
        session.acquire(ports, options.force)
        return done(f"Acquired {listed(ports, 'port')}", ports=ports)


class AcquireServer(ConsoleCommand):
    """`acquire`, of a stateful console."""

    name = "acquire"
    summary = "own the server with all its ports"
    example = "acquire --force"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="take it from whoever has it")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.acquire(force=options.force)
        return done("Acquired the server", ports=session.client.get_acquired_ports())


class Release(ConsoleCommand):
    """`release`."""

    name = "release"
    summary = "own ports no longer"
    example = "release -p 1"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        wanted, ours = _arguments.chosen(session, options), session.client.get_acquired_ports()
        ports = [port for port in wanted if port in ours]
        if not ports:
            raise CommandError("release: no port is ours" if not wanted else f"release: {wanted} not ours")
        if session.client.get_mode() == "ASTF":
            if ports != ours:
                raise bad_input("release: stateful traffic has all ports or none; leave -p out")
            session.flows.release()
        else:
            session.client.release(ports)
        return done(f"Released {listed(ports, 'port')}", ports=ports)


class Reset(ConsoleCommand):
    """`reset`, of a stateless console."""

    name = "reset"
    summary = "stop everything on ports and make them as they were at first"
    example = "reset -a"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)
        _restart(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.owned(session, _arguments.chosen(session, options))
        session.client.reset(ports, restart=options.restart)
        return done(f"Reset {listed(ports, 'port')}", ports=ports)


class ResetServer(ConsoleCommand):
    """`reset`, of a stateful console."""

    name = "reset"
    summary = "stop everything and make the server as it was at first"
    example = "reset"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _restart(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.flows.reset(restart=options.restart)
        return done("Reset the server")


class Shutdown(ConsoleCommand):
    """`shutdown`."""

    name = "shutdown"
    summary = "end the server"
    example = "shutdown --force"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="although others own ports")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.client.server_shutdown(force=options.force)
        return done(f"Shut the server at {session.target} down")


class GlobalCfg(ConsoleCommand):
    """`global_cfg`."""

    name = "global_cfg"
    summary = "show the settings of the whole server, or change some"
    example = "global_cfg -t sched_max_stretch=100"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-t", dest="values", type=tunables, metavar="KEY=VALUE,...", help="change these")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        if options.values:
            if session.settings.readonly:
                raise CommandError("global_cfg: this console is read-only; leave -t out to look")
            session.client.set_global_cfg(options.values)
        settings = session.client.get_global_cfg()
        return Answer("\n".join(f"{key} = {value}" for key, value in settings.items()), settings)


def _restart(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-r", "--restart", action="store_true", help="put the links down and up again, too")
