"""The arguments of the commands that the server's binary does: server, config, ports."""

from __future__ import annotations

import argparse

from allosaur.cli import _options


def server(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur server`."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--config",
        metavar="FILE",
        help="a file with all of this, in our form or TRex's; the options here go before what it says",
    )
    what.add_argument(
        "--ports",
        metavar="SPEC,...",
        help="the ports, in order; `memory` needs no network card, and two of them in a row are joined; "
        "a link can be slowed or disturbed: memory:rate=10gbps:delay=1ms:loss=0.1%%:seed=7 "
        "(default: memory,memory)",
    )
    parser.add_argument(
        "--stateful",
        action="store_true",
        help="for TCP and UDP flows (stateful profiles), not for streams alone",
    )
    parser.add_argument(
        "--cores", type=_options.whole_number, metavar="N", help="threads that send (default: 1)"
    )
    parser.add_argument(
        "--pin", action="store_true", help="bind each thread that sends to a CPU of its own, near its ports"
    )
    parser.add_argument(
        "--receive-threads",
        type=_options.whole_number,
        metavar="N",
        help="threads that receive (default: 1)",
    )
    parser.add_argument(
        "--poll",
        choices=["busy", "adaptive"],
        help="how threads wait: busy (best timing, a CPU each) or adaptive (they sleep when idle; they may "
        "share CPUs)",
    )
    parser.add_argument(
        "--rpc-port",
        type=int,
        metavar="PORT",
        help=f"where clients ask (default: {_options.DEFAULT_RPC_PORT}; 0 picks a free one)",
    )
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="where clients hear events (default: one below --rpc-port; 0 picks a free one)",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="which address to listen on (default: 127.0.0.1: there is no password, so only this "
        "machine may connect)",
    )


def config(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur config`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    init = actions.add_parser(
        "init", help="write a first file for this machine", description="Write a first file for this machine."
    )
    init.add_argument(
        "file",
        nargs="?",
        default="allosaur.yaml",
        metavar="FILE",
        help="the file to write; - is the standard output (default: %(default)s)",
    )
    init.add_argument("--force", action="store_true", help="write over a file that is there")
    check = actions.add_parser(
        "check",
        help="say whether a file is right",
        description="Say whether a file is right, in our form or TRex's.",
    )
    check.add_argument("file", metavar="FILE", help="the file to read")
    _options.add_json(check)


def ports(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur ports`."""
    _options.add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    prepare = actions.add_parser(
        "prepare",
        help="print the commands that prepare one; none of them is run",
        description="Print the commands that prepare an interface or a network card. None of them is run.",
    )
    prepare.add_argument("target", metavar="NAME", help="a PCI address, for DPDK, or an interface")
    prepare.add_argument(
        "--driver",
        metavar="DRIVER",
        help="the driver that hands the card to DPDK; with it an interface means its card "
        "(default: vfio-pci)",
    )
    prepare.add_argument(
        "--anyway", action="store_true", help="also for an interface with the machine's default route"
    )
