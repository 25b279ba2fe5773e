"""The commands of `allosaur`, one object each, in the order in which they are listed."""

from __future__ import annotations

from allosaur.cli._command import Command
from allosaur.cli.commands._about import Completion, Help, Version
from allosaur.cli.commands._binary import Config, Ports
from allosaur.cli.commands._bird import Bird
from allosaur.cli.commands._capture import Capture
from allosaur.cli.commands._compare import Compare
from allosaur.cli.commands._console import Console
from allosaur.cli.commands._demo import Demo
from allosaur.cli.commands._doctor import Doctor
from allosaur.cli.commands._emu import Emu
from allosaur.cli.commands._http import Http
from allosaur.cli.commands._http_server import HttpServer
from allosaur.cli.commands._metrics import Metrics
from allosaur.cli.commands._ndr import Ndr
from allosaur.cli.commands._neighbors import Arp, Ping
from allosaur.cli.commands._node import Node
from allosaur.cli.commands._plan import Plan
from allosaur.cli.commands._profiles import New, Profiles
from allosaur.cli.commands._push import Push
from allosaur.cli.commands._routes import Routes
from allosaur.cli.commands._run import Run
from allosaur.cli.commands._server import Server
from allosaur.cli.commands._sim import Sim
from allosaur.cli.commands._status import Status
from allosaur.cli.commands._top import Top
from allosaur.cli.commands._traffic import Clear, Start, Stats, Stop, Update

COMMANDS: tuple[Command, ...] = (
    Server(),
    Config(),
    Ports(),
    Doctor(),
    Profiles(),
    New(),
    Run(),
    Http(),
    HttpServer(),
    Start(),
    Stop(),
    Update(),
    Stats(),
    Clear(),
    Status(),
    Top(),
    Metrics(),
    Console(),
    Push(),
    Capture(),
    Ping(),
    Arp(),
    Emu(),
    Node(),
    Bird(),
    Routes(),
    Sim(),
    Plan(),
    Ndr(),
    Compare(),
    Demo(),
    Completion(),
    Version(),
    Help(),
)
