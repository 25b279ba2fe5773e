"""The commands of `allosaur`, one row each: name, module, what it does, and its arguments.

A command's module is imported when it is used; its `execute` takes the options and returns the exit code.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from allosaur.cli import (
    _arguments_flows,
    _arguments_ports,
    _arguments_profiles,
    _arguments_run,
    _arguments_server,
)


@dataclass(frozen=True)
class Command:
    """A command. With `is_result` what it prints is what it was asked for, which `--quiet` leaves alone."""

    name: str
    module: str
    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    function: str = "execute"
    is_result: bool = False


COMMANDS = (
    Command("server", "_server", "start a server on this machine", _arguments_server.server, is_result=True),
    Command(
        "config",
        "_config",
        "write a configuration file for this machine, or check one",
        _arguments_server.config,
        is_result=True,
    ),
    Command(
        "ports",
        "_ports",
        "list what this machine has for ports, or print how to prepare one",
        _arguments_server.ports,
        is_result=True,
    ),
    Command(
        "profiles",
        "_profiles",
        "list the profiles that come with allosaur, and their tunables",
        _arguments_profiles.profiles,
        is_result=True,
    ),
    Command("new", "_profiles", "write a profile to begin with", _arguments_profiles.new, "execute_new"),
    Command("run", "_run", "send a profile's traffic and report what happened", _arguments_run.run),
    Command("start", "_start", "start a profile on a server, and come back", _arguments_flows.start),
    Command("stop", "_stop", "stop traffic", _arguments_flows.stop),
    Command("update", "_update", "change the rate of traffic that runs", _arguments_flows.update),
    Command("stats", "_stats", "show what traffic counts", _arguments_flows.stats, is_result=True),
    Command("clear", "_clear", "take profiles or streams off the server", _arguments_flows.clear),
    Command(
        "status",
        "_status",
        "say what a server is, who owns its ports, and what runs since when",
        _arguments_flows.status,
        is_result=True,
    ),
    Command("push", "_push", "send a capture file, read here or by the server", _arguments_ports.push),
    Command(
        "capture", "_capture", "record what ports send and receive, or show it", _arguments_ports.capture
    ),
    Command("ping", "_ping", "ping an IP address from a port", _arguments_ports.ping),
    Command("arp", "_arp", "find the MAC address of a port's gateway", _arguments_ports.arp),
    Command(
        "sim",
        "_sim",
        "try a profile without a network, in virtual time: its packets, its flows",
        _arguments_run.sim,
    ),
    Command(
        "demo",
        "_demo",
        "start a server, send traffic both ways, check it, and write a report",
        _arguments_run.demo,
    ),
    Command("version", "_version", "say which version this is", _arguments_profiles.version, is_result=True),
    Command("help", "_help", "explain a command", _arguments_profiles.help_of, is_result=True),
)
